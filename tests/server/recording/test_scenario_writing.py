"""Exchanges that wait to be scenarios: bounded, in order, and none for the fault of another."""

import os
import threading

import pytest

from mockllm.errors import ScenarioError
from mockllm.recording.drafting.drafts import MatchRule
from mockllm.recording.store.locks import alone
from mockllm.recording.store.pending import Pending
from mockllm.redaction.redact import Redactor, Rules
from mockllm.replay.loading import load
from mockllm.server.recording import scenario_writing
from mockllm.server.recording.recording_job import recording_job
from mockllm.server.recording.recording_messages import Reported, ScenariosWritten, Setup, Waiting
from mockllm.server.recording.scenario_writing import ScenarioWriting
from mockllm.server.recording.worker import Fault
from tests.recording.exchanging import answer, user
from tests.timeouts import GIVE_UP


class FaultyRedactor(Redactor):
    """Has a fault that one text triggers."""

    def pattern(self, text):
        if text == "poison":
            raise ZeroDivisionError("the fault")
        return super().pattern(text)


class Writing:
    """A `ScenarioWriting` with what it sends, and the numbers of the exchanges that may end."""

    def __init__(self, folder, redactor=None, **setup):
        folder.mkdir()
        self.folder = folder
        self.sent = []
        self.saved = []
        rules = Rules()
        options = Setup(folder, rules, MatchRule(), False, frozenset(), **setup)
        self.pending = Pending(folder)
        self.writing = ScenarioWriting(options, redactor or Redactor(rules), self.sent.append)

    def add(self, *texts):
        for text in texts:
            exchange = answer([user(text)], f"answer to {text}")
            file = self.pending.put(exchange)
            self.writing.add(exchange, file, lambda text=text: self.saved.append(text))

    def lines(self):
        return [line for one in self.sent if isinstance(one, Reported) for line in one.lines]

    def of_kind(self, kind):
        return [one for one in self.sent if isinstance(one, kind)]

    def names(self):
        return {scenario.name for scenario in load([self.folder])}


TEXTS = [f"text {number}" for number in range(100)]
NAMES = {f"text-{number}" for number in range(100)}


def test_all_are_written_in_their_order(tmp_path):
    """Everything that was added is a scenario after the end, found again, with a line in the order
    of the exchanges, and nothing stays put aside."""
    writing = Writing(tmp_path / "recorded")
    writing.add(*TEXTS)
    writing.writing.close()
    assert writing.names() == NAMES
    assert [line.scenario for line in writing.lines()] == [f"text-{n}" for n in range(100)]
    assert [line.not_found for line in writing.lines()] == [""] * 100
    assert writing.saved == TEXTS
    assert writing.pending.left() == ()
    assert not list(writing.folder.glob(".recording-*/*.jsonl"))


def test_a_tape_without_a_scenario_does_not_count_as_written(tmp_path):
    """A recorder that is killed between the tape and the YAML leaves a tape that no scenario names.
    The next one writes the exchange, which is still put aside."""
    writing = Writing(tmp_path / "recorded")
    exchange = answer([user("hello")], "answer to hello")
    writing.pending.put(exchange)
    writing.pending.close()
    ((captured, file),) = Pending(writing.folder).left()
    copy = file.read_bytes()
    writing.writing.add(captured, file, lambda: None)
    writing.writing.close()
    file.write_bytes(copy)  # as if it had been killed before
    os.utime(file, ns=(0, 0))
    tapes = list(writing.folder.glob("hello*.jsonl"))
    assert tapes
    (writing.folder / "hello.yaml").unlink()
    next_one = ScenarioWriting(
        Setup(writing.folder, Rules(), MatchRule(), False, frozenset()),
        Redactor(Rules()),
        writing.sent.append,
    )
    next_one.add_left([(captured, file)])
    next_one.close()
    assert [one.name for one in load([writing.folder])] == ["hello"]
    assert not file.exists()


def test_the_end_of_an_answer_waits_while_too_many_wait(tmp_path, monkeypatch):
    """While nothing can be written, only so many answers may end; the others end when there is
    room."""
    monkeypatch.setattr(scenario_writing, "_MOST_WAITING", 10)
    writing = Writing(tmp_path / "recorded")
    with alone(writing.folder):
        writing.add(*TEXTS[:30])
        assert writing.saved == TEXTS[:10]
    writing.writing.close()
    assert sorted(writing.saved) == sorted(TEXTS[:30])
    assert len(writing.names()) == 30


def test_the_bytes_that_wait_are_bounded(tmp_path, monkeypatch):
    """The bound is also one of bytes: of those that wait already. One large answer alone ends."""
    monkeypatch.setattr(scenario_writing, "_MOST_BYTES", 1_000)
    writing = Writing(tmp_path / "recorded")
    with alone(writing.folder):
        writing.add("short", "x" * 1_000, "short too")
        assert writing.saved == ["short", "x" * 1_000]
    writing.writing.close()
    assert len(writing.saved) == 3


def test_no_answer_waits_for_a_full_disk(tmp_path, monkeypatch):
    """If nothing can be written at all, answers end nevertheless, and at the end each exchange is
    reported as lost. The next recorder finds them."""
    monkeypatch.setattr(scenario_writing, "_MOST_WAITING", 3)
    writing = Writing(tmp_path / "recorded")
    obstacle = writing.folder / ".text-0.yaml.unfinished"
    obstacle.mkdir()
    writing.add(*TEXTS[:20])
    writing.writing.close()
    assert sorted(writing.saved) == sorted(TEXTS[:20])
    assert [line.lost for line in writing.lines()] == [True] * 20
    assert len(list(writing.folder.glob(".recording-*/*.jsonl"))) == 20
    with pytest.raises(ScenarioError):
        writing.names()


def test_a_fault_is_reported_for_its_exchange_only(tmp_path):
    """An exchange with which mockllm has a fault is reported; those beside it are written."""
    writing = Writing(tmp_path / "recorded", FaultyRedactor(Rules()))
    with alone(writing.folder):
        writing.add(*TEXTS[:5], "poison", *TEXTS[5:10])
    writing.writing.close()
    assert writing.names() == {f"text-{n}" for n in range(10)}
    (fault,) = writing.of_kind(Fault)
    assert fault.error == "ZeroDivisionError: the fault"
    assert sorted(line.scenario for line in writing.lines()) == [f"text-{n}" for n in range(10)]


def test_what_is_left_is_shown_at_the_end(tmp_path):
    """While it ends, it sends how many still wait; the last number is that of the last group."""
    writing = Writing(tmp_path / "recorded")
    closing = threading.Thread(target=writing.writing.close)
    with alone(writing.folder):
        writing.add(*TEXTS)
        closing.start()
        while not writing.writing._closing:
            pass
    closing.join(GIVE_UP)
    counts = [one.count for one in writing.of_kind(Waiting) if one.closing]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] <= 100
    assert 0 < counts[-1] <= 32


def test_what_a_killed_recorder_has_written_is_not_written_again(tmp_path):
    """If a recorder is killed after it has written a scenario and before it has removed what it had
    put aside, the next one writes only the others."""
    first = Writing(tmp_path / "recorded")
    exchange = answer([user("hello")], "hi")
    file = first.pending.put(exchange)
    copy, status = file.read_bytes(), file.stat()
    (left,) = first.pending._path.glob("*.jsonl")
    first.writing.add(exchange, left, lambda: None)
    first.writing.close()
    left.write_bytes(copy)
    os.utime(left, ns=(status.st_atime_ns, status.st_mtime_ns))
    missing = answer([user("missing")], "here")
    first.pending.put(missing)
    os.close(first.pending._lock)  # as if it were killed
    before = sorted(file.name for file in first.folder.glob("hello*"))
    setup = Setup(first.folder, Rules(), MatchRule(), False, frozenset())
    job = recording_job(setup, first.sent.append)
    job.close()
    assert first.names() == {"hello", "missing"}
    assert sorted(file.name for file in first.folder.glob("hello*")) == before
    assert not list(first.folder.glob(".recording-*"))


@pytest.mark.parametrize("wanted", [True, False])
def test_scenarios_are_sent_only_where_they_are_of_use(tmp_path, wanted):
    """A recorder that answers nothing from recordings gets no scenarios."""
    writing = Writing(tmp_path / "recorded", sends_scenarios=wanted)
    writing.add("hello")
    writing.writing.close()
    sent = [one.name for message in writing.of_kind(ScenariosWritten) for one in message.scenarios]
    assert sent == (["hello"] if wanted else [])
