"""The kit takes accumulators of a registered protocol through its cases."""

from __future__ import annotations

from functools import partial

import httpx
import pytest

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking import (
    Policy,
    case,
    cases,
    check,
    examine,
    examine_bodies,
    examine_client,
)
from mockllm.play.quirks import QUIRKS
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.loading import load, loads, shipped_scenarios
from mockllm.wire.protocols import PROTOCOLS
from tests.sixth_protocol.accumulator import EchoAccumulator, LastFragment
from tests.sixth_protocol.conftest import KEY, NUMBERS
from tests.sixth_protocol.echo.client import CLIENT
from tests.sixth_protocol.echo.protocol import PROTOCOL

WATCHED = Policy(intermediate=True)


@pytest.fixture(autouse=True)
def _reference(monkeypatch):
    """A reference accumulator needs a line in a table as well."""
    monkeypatch.setitem(REFERENCES, "echo", EchoAccumulator)


@pytest.fixture(scope="module")
def shipped():
    return load([shipped_scenarios()])


@pytest.mark.slow
def test_a_right_accumulator(shipped):
    """Over all shipped scenarios, variations and quirks, nothing is reported."""
    report = examine(EchoAccumulator, cases("echo", shipped, variations=1), WATCHED)
    assert report.failures == ()
    assert report.runs > 40
    quirks = {name.partition("+")[2].partition("~")[0].partition(":")[0] for name in report.skipped}
    assert {"sse-crlf", "sse-cut", "sse-malformed-json"} <= quirks


@pytest.mark.slow
def test_a_right_reader_of_bytes():
    """Quirks of framing are met below the events; the end marker is that of the protocol."""
    found = list(cases("echo", loads(NUMBERS), variations=3, level="bytes"))
    quirks = {each.quirk.partition(":")[0] for each in found} - {""}
    assert quirks == {name for name, quirk in QUIRKS.items() if not quirk.only}
    assert all(each.chunks for each in found)
    report = examine(partial(ReferenceBytes, "echo"), found, level="bytes")
    assert report.failures == ()
    assert report.runs == len(found)


@pytest.mark.slow
def test_a_mistake_has_its_name(shipped):
    """An accumulator with one mistake breaks one invariant."""
    report = examine(LastFragment, cases("echo", shipped, variations=1), WATCHED)
    assert list(report.broken()) == ["arguments-concatenate"]
    with pytest.raises(AssertionError, match="arguments-concatenate"):
        check(LastFragment, loads(NUMBERS), api="echo", variations=1)
    check(EchoAccumulator, loads(NUMBERS), api="echo", variations=1)


def test_quirks_change_the_stream():
    """What a quirk of framing makes of a stream differs from the plain one, and is expected."""
    (scenario,) = loads("scenario: hi\nmatch: {user: hi}\nturns: [{reply: {text: Hello}}]")
    plain = case(scenario, "echo")
    separated = case(scenario, "echo", quirk="sse-unicode-line-separators:next-line")
    assert plain.expected.text == "Hello"
    assert separated.expected.text == "".join(f"{letter}\x85" for letter in "Hello")
    cut = case(scenario, "echo", quirk="sse-cut:eof")
    assert b"bow" in b"".join(plain.chunks)
    assert b"Hello" in b"".join(cut.chunks)
    assert b"".join(plain.chunks).startswith(b"".join(cut.chunks))
    assert b"".join(cut.chunks).endswith(b'"finished","tall')


def test_bodies(shipped):
    """An answer that is not streamed is compared with the stream."""

    def read(body):
        turn = PROTOCOLS["echo"].decode_body(body)
        probe = EchoAccumulator()
        for part in range(len(turn.parts)):
            for act in _acts(body["script"][part], part):
                probe.feed(act)
        probe.feed({"act": "bow", "why": body["why"], "tally": body["tally"]})
        probe.close()
        return probe.outcome()

    report = examine_bodies(read, cases("echo", shipped, variations=0, quirks=False))
    assert report.failures == ()
    assert report.runs > 10


def _acts(entry, part):
    acts = {"line": ["line"], "musing": ["musing"], "balk": ["balk"], "cue": ["cue", "setting"]}
    for act in (*acts[entry["kind"]], "seal"):
        yield {**entry, "act": act, "part": str(part)}
    yield {"act": "hush", "part": str(part)}


@pytest.mark.slow
def test_a_whole_client(hall):
    """A client over HTTP gets every case right, framing quirks included."""

    def client(url, each):
        probe = ReferenceBytes("echo")
        body = first_body(PROTOCOL, each.model, each.prompt, each.tools)
        try:
            with httpx.stream("POST", url, json=body, headers=KEY, timeout=60) as answer:
                for data in answer.iter_raw():
                    probe.feed(data)
        except httpx.TransportError:
            pass  # the accumulator sees by itself that something is missing
        probe.close()
        return probe.outcome()

    one = hall(speed=0)

    def at(each):
        one.thread.ask(one.thread.server.reload, [each.scenario])
        return one.url + CLIENT.path

    found = list(cases("echo", loads(NUMBERS), variations=0))
    assert examine_client(client, at, found).failures == ()
