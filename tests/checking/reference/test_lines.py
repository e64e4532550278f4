"""The reference accumulator on bytes: SSE framing as servers and proxies send it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.accumulators import lines
from examples.accumulators.lines import Lines, ReferenceBytes
from mockllm.checking.outcome import Call, Outcome, Usage
from mockllm.checking.probes import Delta
from mockllm.core.turn import Text, Turn
from mockllm.play.quirks.samples import UNICODE
from mockllm.wire.framing.sse import SSEDecoder
from tests.cases import for_all
from tests.checking.reference.playing import basic_delta, by_bytes, cut_at, sent

HELLO = Outcome("Hello", finish="stop")


def chunk(text: str = "", finish: str | None = None, **more: Any) -> str:
    delta = {"content": text} if text else {}
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


HEL, LO, STOP = chunk("Hel"), chunk("lo"), chunk(finish="stop")
DONE = "data: [DONE]\n\n"


def sse(*events: str, end: str = "\n") -> str:
    return "".join(f"data: {event}{end}{end}" for event in events)


def spread(event: str) -> str:
    """An event over several `data` lines."""
    text = json.dumps(json.loads(event), indent=1)
    return "".join(f"data: {line}\n" for line in text.split("\n")) + "\n"


WHOLE = sse(HEL, LO, STOP)
FRAMINGS = {
    "plain": WHOLE + DONE,
    "sse-crlf": sse(HEL, LO, STOP, "[DONE]", end="\r\n"),
    "sse-crlf, lone": sse(HEL, LO, STOP, "[DONE]", end="\r"),
    "sse-crlf, mixed": sse(HEL, end="\r\n") + sse(LO, end="\r") + sse(STOP) + DONE,
    "sse-no-space": (WHOLE + DONE).replace("data: ", "data:"),
    "sse-comments": ": OPENROUTER PROCESSING\n\n" + sse(HEL) + ": x\n" + sse(LO, STOP) + DONE,
    "sse-bare-colon": sse(HEL) + ":\n\n" + sse(LO, STOP) + DONE,
    "sse-id-then-comment": "id: 7\n" + sse(HEL) + ": ping\n\n" + sse(LO, STOP) + DONE,
    "sse-event-without-data": "event: ping\n\n" + WHOLE + DONE,
    "sse-empty-data": "data: \n\ndata\n\n" + WHOLE + DONE,
    "sse-retry-field": "retry: 3000\n\n" + WHOLE + DONE,
    "sse-other-fields": "id: as-1\nkit: x\nevent: result\n" + WHOLE + DONE,
    "sse-multiline-data": spread(HEL) + spread(LO) + spread(STOP) + DONE,
    "sse-bom": "\ufeff" + WHOLE + DONE,
    "sse-no-final-blank": WHOLE[:-1],
    "sse-no-final-blank, no line end": WHOLE[:-2],
    "sse-done-variants, no space": WHOLE + "data:[DONE]\n\n",
    "sse-done-variants, trailing": WHOLE + "data: [DONE] \n\n",
    "sse-done-variants, twice": WHOLE + DONE + DONE,
    "sse-done-variants, unterminated": WHOLE + "data: [DONE]",
    "chat-no-done": WHOLE,
    "chat-data-after-done": WHOLE + DONE + sse(LO, "{broken") + "data: {",
    "sse-content-type": WHOLE + DONE,
}


@for_all("name", FRAMINGS)
def test_framing_does_not_change_the_outcome(name):
    """The outcome is the same for every framing, whole and byte by byte."""
    data = FRAMINGS[name].encode()
    assert by_bytes("chat", [data]).outcome == HELLO
    run = by_bytes("chat", cut_at(data, range(1, len(data))))
    assert run.outcome == HELLO
    assert "no-final" in name or run.text == "Hello"


BROKEN = {
    "sse-malformed-json": (sse(HEL, LO[:-1], STOP), "stream_error", "Hel"),
    "sse-single-newline": (WHOLE.replace("\n\n", "\n") + "\n", "stream_error", ""),
    "sse-keepalive-as-data": (sse(HEL, ": keepalive", LO, STOP), "stream_error", "Hel"),
    "sse-trim": (sse(HEL) + "data:  [DONE]\n\n", "stream_error", "Hel"),
    "sse-cut": (sse(HEL) + "data: " + LO[:20], "truncated", "Hel"),
    "sse-cut, in a second line": (sse(HEL) + spread(LO)[:20], "truncated", "Hel"),
    "chat-finish-never": (sse(HEL) + DONE, "truncated", "Hel"),
    "second bom": ("\ufeff\ufeff" + WHOLE, "", "lo"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_framing_is_an_error(name):
    """Broken framing is an error of the named kind, and the text before it is kept."""
    data, kind, text = BROKEN[name]
    outcome = by_bytes("chat", [data.encode()]).outcome
    assert [trouble.kind for trouble in outcome.errors] == [kind] * bool(kind)
    assert outcome.text == text


ERROR = {"error": {"message": "boom", "code": 502}}
BODIES = {
    "err-json-200": json.dumps(ERROR),
    "err-json-200, with a line end": json.dumps(ERROR) + "\n",
    "err-json-200, pretty": json.dumps(ERROR, indent=2),
    "gem-raw-error-lines": sse(HEL) + json.dumps(ERROR, indent=2) + "\n\n",
    "gem-array-form": json.dumps([ERROR]),
    "ollama-error-line": '{"error":"boom (502)"}\n',
    "err-in-stream": sse(HEL, json.dumps(ERROR)),
    "err-event-line": "event: error\n" + sse(json.dumps(ERROR)),
    "unterminated": "event: error\ndata: " + json.dumps(ERROR),
}


@for_all("api", ["chat", "responses", "anthropic", "gemini", "agui"])
@for_all("name", BODIES)
def test_an_error_is_found_in_every_form(name, api):
    """An error is read as an event, as the whole body, and after events, over every API."""
    outcome = by_bytes(api, [BODIES[name].encode()]).outcome
    assert [trouble.message for trouble in outcome.errors] == ["boom (502)"]
    assert outcome.errors[0].kind == "stream_error"


def test_an_array_of_chunks_is_an_answer():
    """`gem-array-form`: the body without `alt=sse` is read; if it is cut, it is truncated."""
    values = [
        {"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "lo"}]}, "finishReason": "STOP"}]},
    ]
    data = "[" + "\n,\r\n".join(map(json.dumps, values)) + "\n]"
    for chunks in ([data.encode()], cut_at(data.encode(), range(len(data)))):
        assert by_bytes("gemini", chunks).outcome == Outcome("Hello", finish="STOP")
    cut = by_bytes("gemini", [data[:-1].encode()]).outcome
    assert [trouble.kind for trouble in cut.errors] == ["truncated"]


@pytest.mark.parametrize("api", ["responses", "anthropic", "gemini", "agui"])
def test_a_done_sentinel_is_ignored_by_other_protocols(api):
    """`anth-done-sentinel`: `[DONE]` changes nothing, with or without an end of line."""
    whole = sent(Turn((Text(("Hi",)),), "stop"), api)
    plain = by_bytes(api, [whole]).outcome
    assert (plain.text, plain.errors) == ("Hi", ())
    for more in (b"data: [DONE]\n\n", b"data: [DONE]", b"data: [DONE]\n\n: bye\n\n"):
        assert by_bytes(api, [whole + more]).outcome == plain


def test_usage_in_an_unfinished_event_counts():
    """`sse-no-final-blank`: a complete last event is read without its blank line."""
    usage = {"prompt_tokens": 12, "completion_tokens": 7}
    data = WHOLE + "data: " + json.dumps({"choices": [], "usage": usage}) + "\n"
    assert by_bytes("chat", [data.encode()]).outcome.usage == Usage(12, 7)


def test_only_line_ends_end_lines():
    """`sse-unicode-line-separators`, `sse-utf8-split`: the text is equal, cut at every byte."""
    (part,) = UNICODE.turns[0].reply
    turn = Turn((Text(part.split),), "stop")
    for api in ("chat", "gemini", "agui"):
        data = sent(turn, api)
        assert by_bytes(api, cut_at(data, range(len(data)))).outcome.text == turn.text


def test_an_event_has_a_length_limit(monkeypatch):
    """`sse-huge-event`: an event above the limit is an error that names the limit."""
    long = sse(chunk("x" * 300_000), STOP).encode()
    assert by_bytes("chat", cut_at(long, range(0, len(long), 4096))).outcome.text == "x" * 300_000
    monkeypatch.setattr(lines, "MAX_EVENT", 1000)
    for data in (long, b"data: x\n" * 1000):
        outcome = by_bytes("chat", cut_at(data, range(0, len(data), 100))).outcome
        assert [trouble.kind for trouble in outcome.errors] == ["stream_error"]
        assert "1000 characters" in outcome.errors[0].message


def test_a_chunk_of_bytes_gives_one_delta():
    """One delta joins the text and calls of all events that a chunk completes."""
    called = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    call = json.dumps({"choices": [{"delta": {"tool_calls": [called]}}]})
    probe = ReferenceBytes("chat")
    data = sse(HEL, LO, call).encode()
    assert basic_delta(probe.feed(data[:-1])) == Delta("Hello")
    assert basic_delta(probe.feed(data[-1:])) is None
    assert probe.pending() == 1
    assert basic_delta(probe.feed(sse(STOP).encode())) == Delta(tool_calls=(Call("f", {}, "c"),))
    assert probe.pending() == 0


def test_policies_reach_the_accumulator():
    """ReferenceBytes accepts the policies of its accumulator."""
    called = {"index": 0, "function": {"name": "f", "arguments": "{"}}
    data = sse(json.dumps({"choices": [{"delta": {"tool_calls": [called]}}]}), STOP).encode()
    kept = by_bytes("chat", [data], malformed="keep").outcome
    assert kept == Outcome(tool_calls=(Call("f", "{", "call_0"),), finish="stop")
    for policies, kind in (
        ({"missing_id": "error"}, "missing_id"),
        ({"tools": ()}, "unknown_tool"),
    ):
        errors = by_bytes("chat", [data], **policies).outcome.errors
        assert [trouble.kind for trouble in errors] == [kind]


@given(st.binary() | st.text(st.sampled_from("data: {}[]\n\r\ufeffé:")).map(str.encode), st.data())
def test_lines_do_not_depend_on_cuts(data, draw):
    """Any bytes, cut anywhere, give the same lines and outcome, and raise nothing."""
    chunks = cut_at(data, draw.draw(st.lists(st.integers(0, len(data)), max_size=8)))
    one, many = Lines(), Lines()
    assert one.feed(data) == [line for chunk in chunks for line in many.feed(chunk)]
    assert one.rest() == many.rest()
    for api in ("chat", "gemini"):
        assert by_bytes(api, chunks).outcome == by_bytes(api, [data]).outcome


@given(st.text(st.sampled_from("ab: \n\r\ufeff\u2028"), max_size=30))
def test_lines_are_those_of_the_specification(text):
    """The data lines are those of mockllm's own SSE decoder."""
    events = "".join(f"data:{line}\n\n" for line in text.split("\n"))
    mine = [line[5:] for line in Lines().feed(events.encode()) if line.startswith("data:")]
    theirs = [
        frame.data for frame in SSEDecoder().decode(events.encode()) if frame.data is not None
    ]
    assert [line.removeprefix(" ") for line in mine] == theirs
