"""What holds for every fault and every splitting of bytes."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.http import TimedBytes
from mockllm.play.faults.breaking import break_answer
from mockllm.play.faults.places import EventReader, SeenEvent, seen_events
from mockllm.play.faults.transmission import Transmission
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.broken_answer import circumstances
from mockllm.play.replay.client_requests import first_request
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.scenario.fault_model import Fault, Place, PlaceKind
from mockllm.wire.framing.json_array import ElementScanner
from mockllm.wire.framing.sse import SSE
from mockllm.wire.protocols import PROTOCOLS
from tests.play.faults.playing import SCENARIO
from tests.scenario.strategies import all_faults, places

APIS = sorted(PROTOCOLS)


@cache
def answer(api: str) -> Transmission:
    """The answer of the scenario, an event every 10 ms."""
    request = first_request(PROTOCOLS[api], SCENARIO, "Hello", "mock-model")
    played = Replayer().answer(Selection(SCENARIO, 0, 0), request, PROTOCOLS[api])
    parts = tuple(TimedBytes(10_000 * at, data) for at, data in enumerate(played.data))
    return Transmission(played.status, played.headers, parts, True)


def broken(api: str, fault: Fault) -> Transmission:
    request = first_request(PROTOCOLS[api], SCENARIO, "Hello", "mock-model")
    return break_answer(answer(api), (fault,), circumstances(PROTOCOLS[api], request, "/path"))


@given(st.sampled_from(APIS), all_faults(places))
def test_what_was_due_before_arrives(api: str, fault: Fault) -> None:
    """Up to the byte where a fault strikes, the answer is as it was, and not earlier."""
    whole, changed = answer(api), broken(api, fault)
    if changed.missed:
        assert changed.parts == whole.parts
        return
    if fault.name in ("cut", "stall", "drip", "burst", "duplicate", "reorder"):
        struck = changed.struck or 0
        assert changed.body[:struck] == whole.body[:struck]
        due = {at: part.at for part, at in _positions(whole)}
        assert all(part.at >= due.get(at, 0) for part, at in _positions(changed))
    assert all(part.data for part in changed.parts)
    assert [part.at for part in changed.parts] == sorted(part.at for part in changed.parts)


def _positions(sent: Transmission) -> list[tuple[TimedBytes, int]]:
    found, at = [], 0
    for part in sent.parts:
        found.append((part, at))
        at += len(part.data)
    return found


@given(st.sampled_from(APIS), st.data())
def test_events_are_the_same_however_they_arrive(api: str, data: st.DataObject) -> None:
    """Also where CRLF or a character is cut in two."""
    body = answer(api).body
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    if PROTOCOLS[api].usual is SSE:
        body = body.replace(b"\r\n", b"\n").replace(b"\n", end)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    reader = EventReader(PROTOCOLS[api], PROTOCOLS[api].usual)
    found: list[SeenEvent] = []
    for begin, stop in zip([0, *cuts], [*cuts, len(body)], strict=True):
        found += reader.read(body[begin:stop])
    assert found + reader.close() == seen_events(PROTOCOLS[api], body, PROTOCOLS[api].usual)
    assert "".join(one.data for one in found)
    assert [one.begin for one in found[1:]] == [one.end for one in found[:-1]]


json_values: st.SearchStrategy[Any] = st.recursive(
    st.text() | st.integers() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(), json_values) | st.lists(json_values)), st.data())
def test_elements_are_found_in_pieces(values: list[Any], data: st.DataObject) -> None:
    """Each element of an array, whatever is in its strings."""
    body = json.dumps(values, ensure_ascii=data.draw(st.booleans()), indent=1).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    scanner = ElementScanner()
    spans = []
    for begin, stop in zip([0, *cuts], [*cuts, len(body)], strict=True):
        spans += scanner.read(body[begin:stop])
    assert [json.loads(body[begin:stop]) for begin, stop in spans] == values


@pytest.mark.parametrize("api", APIS)
def test_times_of_faults(api: str) -> None:
    """A stall moves what comes later by its time; a cut at a time ends then."""
    (stall,) = (Fault("stall", _place("events", 2), (("for", 500_000),)),)
    times = [part.at for part in broken(api, stall).parts]
    assert times[:2] == [0, 10_000]
    assert times[2:] == [part.at + 500_000 for part in answer(api).parts[2:]]
    cut = broken(api, Fault("cut", _place("time", 25_000)))
    assert ([part.at for part in cut.parts], cut.end_at) == ([0, 10_000, 20_000], 25_000)


def _place(kind: PlaceKind, number: int) -> Place:
    return Place(kind, number)


def test_an_event_that_is_nested_too_deeply_is_no_end() -> None:
    """A service may send what no JSON reader holds; its stream is passed on all the same."""
    body = b"data: " + b"[" * 100_000 + b"\n\n"
    (event,) = seen_events(PROTOCOLS["chat"], body, PROTOCOLS["chat"].usual)
    assert not event.finishes
