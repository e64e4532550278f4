"""Where streams are cut, and what a prefix has of the answer."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking.cuts.judging import CutAnswer, judge_cut
from mockllm.checking.cuts.prefixes import (
    cut_of,
    cut_samples,
    kit_samples_of,
    prefix_at,
    prefixes,
    prefixes_at,
    samples_of,
)
from mockllm.checking.judging.difference import call_key
from mockllm.checking.judging.running import drive
from mockllm.checking.outcome import Call
from mockllm.checking.rules import CUT_RULES
from mockllm.conformance.cuts import answer_to
from mockllm.play.faults.places import seen_events
from mockllm.play.replay.loading import loads
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import OVER_HTTP
from tests.carried import CARRIED
from tests.cases import for_all
from tests.checking.cuts.clients import BrokenBytes

APIS = tuple(api for api in REFERENCES if api in OVER_HTTP)
FRAMED = CARRIED | {
    api: protocol for api in OVER_HTTP if (protocol := PROTOCOLS[api]).usual.name != "sse"
}
SAMPLES = {(api, case.scenario.name): case for api in APIS for case in kit_samples_of(api)}

END_OF_CONTENT = {
    "chat": '"finish_reason":"tool_calls"',
    "responses": '"type":"response.completed"',
    "anthropic": '"type":"message_delta"',
    "gemini": '"finishReason": "STOP"',
    "agui": '"type":"RUN_FINISHED"',
    "ollama": '"done":true',
    "completions": '"finish_reason":"stop"',
    "cohere": '"type":"message-end"',
    "interactions": '"event_type":"interaction.completed"',
    "bedrock": '"stopReason":"tool_use"',
    "live": '"toolCall"',
}
"""The event from which on a prefix may be taken for a whole answer; see docs/cuts.md."""


@pytest.mark.parametrize("api", APIS)
def test_content_is_complete_from_the_event_that_the_api_defines(api):
    """Before this event a cut has to be reported; from it on, either is right."""
    case = SAMPLES[api, "cut-two-calls"]
    body = b"".join(case.chunks)
    every = list(map(cut_of, prefixes_at(case, range(len(body) + 1))))
    first = next(one.size for one in every if one.content_complete)
    assert all(one.content_complete for one in every[first:])
    events = seen_events(PROTOCOLS[api], body, PROTOCOLS[api].usual)
    begin = max(event.end for event in events if event.end < first)
    assert END_OF_CONTENT[api].encode() in body[begin:first]
    assert END_OF_CONTENT[api].encode() not in body[:begin]


@for_all("api", APIS)
@for_all("level", ["payloads", "bytes"])
def test_prefixes_are_real_and_never_complete(api, level):
    """Each has the first bytes of the stream, and none has the whole content."""
    for case in kit_samples_of(api):
        body = b"".join(case.chunks)
        sizes = []
        for prefix in map(cut_of, prefixes(case, level)):
            assert b"".join(prefix.chunks) == body[: prefix.size]
            assert body[: prefix.size].endswith(prefix.rest)
            assert not prefix.content_complete
            sizes.append(prefix.size)
        assert sizes == sorted(set(sizes))
        assert sizes[0] == 0


@pytest.mark.parametrize("api", [api for api in APIS if api not in FRAMED])
def test_places_inside_characters_and_line_ends(api):
    """Each place has the bytes that its name says."""
    for (owner, _), case in SAMPLES.items():
        if owner != api:
            continue
        body = b"".join(case.chunks)
        for prefix in map(cut_of, prefixes(case)):
            before, after = body[: prefix.size], body[prefix.size :]
            if PROTOCOLS[api].usual.name == "eventstream":
                continue  # whose frames are found by their lengths
            inside = after[0] & 0xC0 == 0x80
            assert inside == (prefix.place == "inside-character")
            ends = (b"\n",) if api == "ollama" else (b"\n\n", b"\r\n\r\n")
            whole = before.endswith(ends) or not before
            assert whole == (prefix.place in ("between-events", "before-first-event"))
            if prefix.place == "before-blank-line":
                assert after[:1] in (b"\r", b"\n")


@pytest.mark.parametrize("api", FRAMED)
def test_places_in_frames_of_other_carriers(api, monkeypatch):
    """Each place has the bytes that its name says; a frame with a checksum is whole with it, a line
    without its end."""
    protocol = FRAMED[api]
    monkeypatch.setitem(PROTOCOLS, api, protocol)
    for case in kit_samples_of(api):
        body = b"".join(case.chunks)
        events = seen_events(protocol, body, protocol.usual)
        places = {prefix.size: prefix for prefix in map(cut_of, prefixes(case))}
        assert {"inside-event", "between-events"} <= {one.place for one in places.values()}
        for size, prefix in places.items():
            inside = [event for event in events if event.begin < size < event.end]
            assert bool(inside) == (prefix.place not in ("between-events", "before-first-event"))
            assert prefix.events == sum(event.end <= size for event in events)
            if prefix.place == "before-blank-line":
                assert body[size : size + 1] == b"\n"
                assert protocol.usual.name != "eventstream"
            if prefix.place == "inside-character":
                assert body[size] & 0xC0 == 0x80
        if protocol.usual.name == "eventstream":
            for event in events[:2]:
                parts = protocol.usual.parts(body[event.begin : event.end])
                assert {event.begin + begin for begin, _ in parts.values()} <= {*places}


@pytest.mark.parametrize("api", FRAMED)
def test_content_is_complete_where_a_client_may_use_the_last_event(api, monkeypatch):
    """With the checksum of its frame, or without its line end."""
    protocol = FRAMED[api]
    monkeypatch.setitem(PROTOCOLS, api, protocol)
    case = next(case for case in kit_samples_of(api) if case.scenario.name == "cut-text")
    body = b"".join(case.chunks)
    events = seen_events(protocol, body, protocol.usual)
    finish = next(event for event in events if event.finishes)
    first = finish.end if protocol.usual.name == "eventstream" else finish.end - 1
    sizes = range(finish.begin, len(body))
    complete = [cut_of(prefix).content_complete for prefix in prefixes_at(case, sizes)]
    assert complete == [size >= first for size in sizes]


@pytest.mark.parametrize("api", APIS)
def test_calls_end_where_the_api_marks_their_end(api):
    """A call counts as ended no earlier than its last fragment."""
    case = SAMPLES[api, "cut-call-spaced"]
    for prefix in map(cut_of, prefixes(case, "payloads")):
        if prefix.ended:
            assert api != "chat"  # it has no mark but the finish reason
            assert prefix.begun == 1
            assert prefix.ended == (call_key(Call("order", {"city": "Paris"})),)


def test_arguments_that_responses_repeats_as_a_whole_are_ended():
    """`function_call_arguments.done` comes before `output_item.done`, and is an end, too."""
    found = map(cut_of, prefixes(SAMPLES["responses", "cut-call"], "payloads"))
    first = next(one for one in found if one.ended)
    assert '"type":"response.function_call_arguments.done"' in first.last_event


@pytest.mark.parametrize("api", APIS)
def test_runners_get_the_same_prefix(api):
    """The case of a prefix has its bytes, and at the level of payloads its events."""
    for case in kit_samples_of(api):
        for prefix in prefixes(case, "payloads"):
            assert prefix.chunks == cut_of(prefix).chunks
            assert len(prefix.payloads) == cut_of(prefix).events
            assert prefix.reaction == "error"


def test_samples_have_arguments_whose_beginning_is_valid_json():
    """`1` of `12`, `{}` with more behind it, an object and a space."""
    for name in ("cut-number", "cut-placeholder", "cut-call-spaced"):
        assert ("chat", name) in SAMPLES
    assert ("gemini", "cut-number") not in SAMPLES  # arguments are values there
    assert len(cut_samples()) == 8


def test_scenarios_of_the_user_are_cut_as_well():
    """Every streamed turn is a sample; an answer that ends with an error is none."""
    found = samples_of(
        "chat",
        loads(
            """\
scenario: mine
turns:
  - reply: {text: Hello}
  - reply: [{text: Hel}, {error: {message: The service is overloaded.}}]
"""
        ),
    )
    assert [case.scenario.name for case in found] == ["mine-1"]


# Any cut at any byte


def chunked(data: bytes, sizes: list[int]) -> list[tuple[bytes]]:
    found, start, number = [], 0, 0
    while start < len(data):
        size = sizes[number % len(sizes)]
        found.append((data[start : start + size],))
        start, number = start + size, number + 1
    return found


@settings(max_examples=60, deadline=None)
@given(
    sample=st.sampled_from(sorted(SAMPLES)),
    where=st.floats(0, 1),
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    fault=st.sampled_from(["", "ignores", "strict", "discards"]),
)
def test_a_cut_is_judged_the_same_however_its_bytes_come(sample, where, sizes, fault):
    """The judgement of a cut at any byte depends on the bytes, not on the reads they come in."""
    case = SAMPLES[sample]
    make = partial(BrokenBytes, fault=fault) if fault else ReferenceBytes
    whole = sum(map(len, case.chunks))
    prefix = prefix_at(case, round(where * whole))
    one = answer_to(lambda: make(case.api), prefix, "bytes")
    other = drive(make(case.api), chunked(b"".join(prefix.chunks), sizes))
    for rule in CUT_RULES:
        judged = judge_cut(rule, cut_of(prefix), one)
        assert judge_cut(rule, cut_of(prefix), CutAnswer(other)) == judged
        if not fault:
            assert not judged
