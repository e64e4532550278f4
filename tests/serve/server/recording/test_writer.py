"""The writer of a recorder: all of a group in order, and none for the fault of another."""

import pytest

from mockllm.play.replay.loading import load
from mockllm.record.recording.drafting.matches import MatchRule
from mockllm.record.recording.store.ended import EndedExchanges
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules
from mockllm.serve.server.recording.writer import Writer, WriterSetup
from tests.record.recording.exchanging import answer, user


class FaultyRedactor(Redactor):
    """Has a fault that one text triggers."""

    def pattern(self, text):
        if text == "poison":
            raise ZeroDivisionError("the fault")
        return super().pattern(text)


TEXTS = [f"text {number}" for number in range(20)]
NAMES = [f"text-{number}" for number in range(20)]


def group_of(*texts):
    exchanges = [answer([user(text)], f"answer to {text}") for text in texts]
    return tuple(enumerate(exchanges, 1))


@pytest.fixture
def writer(tmp_path):
    """Makes a writer into the folder `recorded`."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    ended = EndedExchanges(folder)

    def make(redactor=None, **setup):
        options = WriterSetup(folder, ended.path, Rules(), MatchRule(), False, frozenset(), **setup)
        return Writer(options, redactor)

    make.folder, make.written = folder, lambda: (ended.path / "written").read_text().split()
    yield make
    ended.close()


def test_all_are_written_in_their_order(writer):
    """Everything is a scenario, found again, with a line in the order of the exchanges, and its
    number is noted."""
    result = writer().write(group_of(*TEXTS))
    assert result.handled == len(TEXTS)
    assert [line.scenario for line in result.lines] == NAMES
    assert [line.not_found for line in result.lines] == [""] * len(TEXTS)
    assert {scenario.name for scenario in load([writer.folder])} == set(NAMES)
    assert writer.written() == [str(number) for number in range(1, len(TEXTS) + 1)]


def test_a_fault_is_reported_for_its_exchange_only(writer):
    """An exchange with which mockllm has a fault is reported; those beside it are written."""
    made = writer(FaultyRedactor(Rules()))
    result = made.write(group_of(*TEXTS[:5], "poison", *TEXTS[5:]))
    assert result.handled == len(TEXTS) + 1
    (lost,) = [line for line in result.lines if line.lost]
    assert "a fault of mockllm: ZeroDivisionError: the fault" in lost.description
    assert {scenario.name for scenario in load([writer.folder])} == set(NAMES)


def test_what_cannot_be_written_is_not_handled(writer):
    """The result names the obstacle, and what is given again later is written then."""
    made = writer()
    obstacle = writer.folder / ".text-3.yaml.unfinished"
    obstacle.mkdir()
    group = group_of(*TEXTS)
    result = made.write(group)
    assert (result.handled, result.lines) == (0, ())
    assert result.obstacle.startswith("it cannot be written: ")
    assert not list(writer.folder.glob("*.yaml"))
    obstacle.rmdir()
    assert made.write(group).handled == len(TEXTS)
    assert {scenario.name for scenario in load([writer.folder])} == set(NAMES)


@pytest.mark.parametrize("wanted", [True, False])
def test_scenarios_are_sent_only_where_they_are_of_use(writer, wanted):
    """A recorder that answers nothing from recordings gets no scenarios."""
    result = writer(sends_scenarios=wanted).write(group_of("hello"))
    assert list(result.scenarios) == (["hello"] if wanted else [])
