"""The reference accumulator of Chat Completions: how servers identify calls."""

from __future__ import annotations

from typing import Any

import pytest

from examples.accumulators import ChatAccumulator
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta
from tests.cases import for_all
from tests.checking.reference.chunks import (
    A1,
    B2,
    CET,
    CITY,
    PARIS,
    TOOLS,
    TZ,
    Z0,
    a1,
    b2,
    called,
    chunk,
    entry,
)
from tests.checking.reference.playing import basic, basic_delta, by_events

CALLS: dict[str, tuple[list[Any], list[Call]]] = {
    "chat-index-missing": ([called(a1(PARIS, None)), called(b2(CET, None))], [A1, B2]),
    "chat-index-missing, in fragments": (
        [called(a1("", None)), *(called(entry(part, None)) for part in CITY)],
        [A1],
    ),
    "chat-index-missing, without ids": (
        [called(entry(PARIS, None, name="get_weather")), called(entry(CET, None, name="get_time"))],
        [Call(A1.name, A1.arguments, "call_0"), Call(B2.name, B2.arguments, "call_1")],
    ),
    "chat-index-first-only": (
        [
            called(a1()),
            called(b2()),
            *(called(entry(part, None, "call_A1")) for part in CITY),
            *(called(entry(part, None, "call_B2")) for part in TZ),
        ],
        [A1, B2],
    ),
    "chat-index-all-zero": ([called(a1(PARIS)), called(b2(CET, 0))], [A1, B2]),
    "chat-index-all-zero, in fragments": (
        [
            called(a1()),
            *(called(entry(part)) for part in CITY),
            called(b2("", 0)),
            *(called(entry(part)) for part in TZ),
        ],
        [A1, B2],
    ),
    "chat-index-same-one-chunk": ([called(a1(PARIS), b2(CET, 0))], [A1, B2]),
    "chat-index-duplicate-fragments": ([called(a1(CITY[0]), entry(CITY[1]))], [A1]),
    "chat-index-from-one": ([called(a1(PARIS, 1)), called(b2(CET, 3))], [A1, B2]),
    "chat-index-reversed": ([called(b2(CET, 1)), called(a1(PARIS, 0))], [A1, B2]),
    "chat-id-repeated": (
        [called(a1(name="get_weather")), *(called(entry(p, id="call_A1")) for p in CITY)],
        [A1],
    ),
    "chat-id-new-every-chunk": (
        [called(entry("", id="1", name="get_weather"))]
        + [called(entry(part, id=str(n))) for n, part in enumerate(CITY, 2)],
        [Call(A1.name, A1.arguments, "1")],
    ),
    "chat-id-empty-later": (
        [called(a1()), *(called(entry(part, id="", name="")) for part in CITY)],
        [A1],
    ),
    "chat-id-null-later": (
        [called(a1())]
        + [
            called(
                {"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": p}}
            )
            for p in CITY
        ],
        [A1],
    ),
    "chat-id-never": (
        [called(entry(PARIS, name="get_weather")), called(entry(CET, 1, name="get_time"))],
        [Call(A1.name, A1.arguments, "call_0"), Call(B2.name, B2.arguments, "call_1")],
    ),
    "chat-name-repeated": (
        [called(a1()), *(called(entry(part, name="get_weather")) for part in CITY)],
        [A1],
    ),
    "chat-name-split": (
        [called(a1(name="get_")), called(entry("", name="weather")), called(entry(PARIS))],
        [A1],
    ),
    "chat-name-empty-first": (
        [called(a1(name="")), called(entry(PARIS, name="get_weather"))],
        [A1],
    ),
    "chat-args-null-first": (
        [called({**a1(), "function": {"name": "get_weather", "arguments": None}})]
        + [called(entry(part)) for part in CITY],
        [A1],
    ),
    "chat-args-null-only": (
        [called({"index": 0, "id": "call_Z0", "function": {"name": "list_issues"}})],
        [Z0],
    ),
    "chat-args-empty-zero": ([called(entry("", id="call_Z0", name="list_issues"))], [Z0]),
    "chat-args-object": ([called(a1({"city": "Paris"}))], [A1]),
    "chat-args-before-name": (
        [called(entry(CITY[0], id="call_A1")), called(entry(CITY[1], name="get_weather"))],
        [A1],
    ),
    "chat-dedupe-by-overlap": (
        [called(a1('{"n":')), *(called(entry("6")) for _ in range(3)), called(entry("}"))],
        [Call("get_weather", {"n": 666}, "call_A1")],
    ),
    "chat-two-calls-one-chunk": ([called(a1(PARIS), b2(CET))], [A1, B2]),
    "chat-calls-interleaved": (
        [called(a1()), called(b2())]
        + [
            called(entry(part, index))
            for pair in zip(CITY, TZ, strict=True)
            for index, part in enumerate(pair)
        ],
        [A1, B2],
    ),
    "chat-type-missing": ([called(a1(PARIS))], [A1]),
    "chat-content-key-absent": ([chunk({"role": "assistant", "tool_calls": [a1(PARIS)]})], [A1]),
    "ollama-args-object": (
        [
            called(
                {
                    "id": "call_A1",
                    "function": {"index": 0, "name": A1.name, "arguments": A1.arguments},
                }
            )
        ],
        [A1],
    ),
}


@for_all("name", CALLS)
def test_calls_are_kept_separate(name):
    """However a server identifies its calls, they surface complete, in order, and each once."""
    chunks, calls = CALLS[name]
    run = by_events("chat", [*chunks, TOOLS])
    assert run.outcome == Outcome(tool_calls=tuple(calls), finish="tool_calls")
    assert sorted(map(repr, run.calls)) == sorted(map(repr, calls))
    assert run.pending == 0


MALFORMED = {
    "chat-args-repeated-at-end": [
        called(a1(CITY[0])),
        called(entry(CITY[1])),
        called(entry(PARIS)),
    ],
    "chat-args-lost-prefix": [called(a1('city":"Paris"}'))],
    "chat-args-truncated": [called(a1('{"city":"Pa'))],
    "no object": [called(a1('["Paris"]'))],
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_arguments_are_an_error_that_names_the_call(name):
    """The call is dropped; the error has its tool, id and raw text, and the text is kept."""
    chunks = [chunk({"content": "Hello"}), *MALFORMED[name], TOOLS]
    outcome = by_events("chat", chunks).outcome
    (trouble,) = outcome.errors
    assert (outcome.text, outcome.tool_calls) == ("Hello", ())
    assert (trouble.kind, trouble.tool) == ("malformed_arguments", 0)
    assert "get_weather" in trouble.message
    assert "call_A1" in trouble.message
    assert "Pa" in trouble.message


@pytest.mark.parametrize("field", ["id", "name"])
def test_the_string_null_is_an_error(field):
    """`chat-placeholder-null-string`: a call with the id or name "null" is an error."""
    identity = {"id": "call_A1", "name": "get_weather", field: "null"}
    outcome = by_events("chat", [called(entry(PARIS, **identity)), TOOLS]).outcome
    assert outcome.tool_calls == ()
    assert "null" in outcome.errors[0].message


def test_a_call_surfaces_at_the_finish_reason():
    """A call surfaces neither when its arguments parse nor at the next index."""
    probe = ChatAccumulator()
    for each in (called(a1(PARIS)), called(b2(CET))):
        assert basic_delta(probe.feed(each)) is None
    assert (probe.pending(), basic(probe.outcome()).tool_calls) == (2, ())
    assert basic_delta(probe.feed(TOOLS)) == Delta(tool_calls=(A1, B2))
    assert probe.pending() == 0
    assert basic_delta(probe.feed(called(entry("more")))) is None
    probe.close()
    assert basic(probe.outcome()) == Outcome(tool_calls=(A1, B2), finish="tool_calls")


def test_a_call_may_be_completed_after_the_finish_reason():
    """`chat-delta-after-finish`: calls with incomplete arguments stay pending until the end."""
    probe = ChatAccumulator()
    probe.feed(called(a1(), b2(TZ[0])))
    assert basic_delta(probe.feed(TOOLS)) is None
    probe.feed(called(entry(PARIS), entry(TZ[1], 1)))
    assert probe.pending() == 2
    probe.close()
    assert basic(probe.outcome()) == Outcome(tool_calls=(A1, B2), finish="tool_calls")


def test_a_missing_id_is_an_error_under_that_policy():
    """With `missing_id="error"` the call is dropped, and the others are kept."""
    chunks = [called(entry(PARIS, name="get_weather"), b2(CET)), TOOLS]
    outcome = by_events("chat", chunks, missing_id="error").outcome
    assert outcome.tool_calls == (B2,)
    assert [(e.kind, e.tool) for e in outcome.errors] == [("missing_id", 0)]


def test_a_synthesised_id_is_unique_and_stable():
    """A synthesised id equals no other id, and is the same in every run."""
    chunks = [called(entry(PARIS, name="f"), entry(CET, 1, "call_0", "g")), TOOLS]
    first, again = (by_events("chat", chunks).outcome for _ in range(2))
    assert [call.id for call in first.tool_calls] == ["call_0_", "call_0"]
    assert first == again


def test_a_tool_that_was_not_offered_is_an_error():
    """Its call is dropped, and the others are kept."""
    chunks = [called(a1(PARIS), b2(CET)), TOOLS]
    outcome = by_events("chat", chunks, tools=["get_time"]).outcome
    assert outcome.tool_calls == (B2,)
    assert [(e.kind, e.tool) for e in outcome.errors] == [("unknown_tool", 0)]


def test_a_call_without_a_name_is_an_error():
    """The call is dropped, and the error has its id."""
    outcome = by_events("chat", [called(entry(PARIS, id="call_A1")), TOOLS]).outcome
    assert outcome.tool_calls == ()
    assert "call_A1" in outcome.errors[0].message


def test_a_hundred_parallel_calls_surface_in_order():
    """All calls surface in the order of their indexes, whatever the order of their fragments."""
    calls = [Call("f", {"n": n}, f"call_{n}") for n in range(100)]
    opened = [called(entry('{"n":', n, f"call_{n}", "f")) for n in reversed(range(100))]
    closed = [called(*(entry(f"{n}}}", n) for n in range(100)))]
    run = by_events("chat", [*opened, *closed, TOOLS])
    assert run.outcome == Outcome(tool_calls=tuple(calls), finish="tool_calls")
    assert run.pending == 0
