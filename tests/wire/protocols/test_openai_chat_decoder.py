"""Chat Completions of real servers: every variant decodes to the same events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mockllm.core.events import Event, Finish, Frame, PartEnd, Raw, Start, StreamError, Timed
from mockllm.core.timeline import fold
from mockllm.core.turn import Opaque, Reasoning, Text, TokenUsage, Turn
from mockllm.wire.protocols.openai_chat.protocol import PROTOCOL
from tests.cases import for_all

Json = dict[str, Any]


def chunk(delta: Json | None, finish: str | None = None, **more: Any) -> Json:
    return {"id": "x1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def calls(*entries: Json, finish: str | None = None) -> Json:
    return chunk({"tool_calls": list(entries)}, finish)


def entry(
    arguments: object = ..., name: object = ..., id: object = ..., index: object = ..., **more: Any
) -> Json:
    """A fragment of a call; `...` leaves a key out."""
    function = {"name": name, "arguments": arguments}
    out = {"index": index, "id": id, **more}
    return {
        **{k: v for k, v in out.items() if v is not ...},
        "function": {k: v for k, v in function.items() if v is not ...},
    }


def events(*items: Json | str | Frame) -> list[Event]:
    decoder = PROTOCOL.decoder()
    out: list[Event] = []
    for item in items:
        frame = (
            item
            if isinstance(item, Frame)
            else Frame(item if isinstance(item, str) else json.dumps(item))
        )
        out += decoder.decode(frame)
    return [*out, *decoder.close()]


def turn(*items: Json | str | Frame) -> Turn:
    return fold(Timed(0, event) for event in events(*items))


REASONING = {
    "reasoning_content": chunk({"content": None, "reasoning_content": "Hm"}),
    "reasoning": chunk({"content": "", "reasoning": "Hm", "role": "assistant"}),
    "both": chunk({"reasoning_content": "Hm", "reasoning": "Hm"}),
    "with details": chunk(
        {"reasoning": "Hm", "reasoning_details": [{"type": "reasoning.text", "text": "Hm"}]}
    ),
    "details alone": chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm"}]}),
    "thinking in a list": chunk(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}
    ),
}


@pytest.mark.parametrize("name", REASONING)
def test_reasoning_comes_once(name: str) -> None:
    """Reasoning is read from whichever field has it, and never twice."""
    got = turn(REASONING[name])
    assert (got.reasoning, got.text, len(got.parts)) == ("Hm", "", 1)


def test_a_thinking_part_without_text_is_an_empty_fragment() -> None:
    """Mistral sends such a part at the end of the reasoning; what holds more stays a chunk that is
    not understood."""
    end: Json = {"type": "thinking", "thinking": [], "closed": True}
    got = turn(REASONING["thinking in a list"], chunk({"content": [end]}), chunk({"content": "Hi"}))
    assert got == Turn((Reasoning(("Hm", "")), Text(("Hi",))))
    odd = turn(chunk({"content": [{"type": "reference", "reference_ids": [1]}]}))
    assert not odd.reasoning
    assert any(isinstance(part, Opaque) for part in odd.parts)


def test_content_as_a_list_of_parts() -> None:
    """Text in a list of parts is text."""
    got = turn(chunk({"content": [{"type": "text", "text": "Hel"}, "lo"]}))
    assert got == Turn((Text(("Hello",)),))


def test_empty_content_is_a_fragment_only_when_alone() -> None:
    """An empty content beside a role or a finish is padding; alone it is a fragment."""
    padding = [chunk({"role": "assistant", "content": ""}), chunk({"content": ""}, "stop")]
    assert turn(*padding).parts == ()
    assert turn(chunk({"content": ""})).parts == (Text(("",)),)


FINISHES: list[tuple[str, list[Json], str, str | None]] = [
    ("stop", [], "stop", None),
    ("stop", [calls(entry("", "f", "a", 0))], "tool_calls", "stop"),
    ("stop", [chunk({"refusal": "No"})], "refusal", None),
    ("tool_calls", [calls(entry("", "f", "a", 0))], "tool_calls", None),
    ("eos", [], "stop", "eos"),
    ("end_turn", [calls(entry("", "f", "a", 0))], "tool_calls", "end_turn"),
    ("max_tokens", [], "length", "max_tokens"),
    ("content_filter", [calls(entry("", "f", "a", 0))], "content_filter", None),
]


@pytest.mark.parametrize(("sent", "before", "reason", "raw"), FINISHES)
def test_finish_reasons(sent: str, before: list[Json], reason: str, raw: str | None) -> None:
    """The finish depends on the parts and on the reason, which is kept if it is unusual."""
    got = turn(*before, chunk({}, sent))
    assert (got.finish, got.finish_raw) == (reason, raw)


def test_the_finish_may_come_in_any_chunk() -> None:
    """A finish beside the last fragment, without a delta, or sent twice counts, once."""
    assert turn(chunk({"content": "lo"}, "stop")) == Turn((Text(("lo",)),), "stop")
    assert turn(chunk(None, "length")).finish == "length"
    twice = events(chunk({}, "tool_calls"), chunk({}, "stop"))
    assert [e for e in twice if isinstance(e, (Finish, Raw))] == [Finish("tool_calls")]
    for none in ("", None):
        assert turn(chunk({"content": "a"}, none)).finish is None


def test_text_after_the_finish_is_kept() -> None:
    """A delta that a proxy moved behind the finish still belongs to the answer."""
    got = turn(chunk({"content": "Hel"}), chunk({}, "stop"), chunk({"content": "lo"}))
    assert (got.text, got.finish) == ("Hello", "stop")


@pytest.mark.parametrize(
    ("items", "complete"),
    [
        ([chunk({"content": "a"})], False),
        ([chunk({"content": "a"}, "stop")], True),
        ([chunk({"content": "a"}), "[DONE]"], True),
        ([" [DONE] "], True),
        ([{"error": "no"}], True),
        ([], False),
    ],
)
def test_complete(items: list[Json | str], complete: bool) -> None:
    """A stream is complete after [DONE], a finish or an error, and not before."""
    decoder = PROTOCOL.decoder()
    for item in items:
        decoder.decode(Frame(item if isinstance(item, str) else json.dumps(item)))
    assert decoder.complete is complete


USED = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
USAGES = {
    "empty choices": {"choices": [], "usage": USED},
    "no choices": {"usage": USED},
    "null choices": {"choices": None, "usage": USED},
    "beside the finish": chunk({}, "stop", usage=USED),
    "in the choice": {"choices": [{"index": 0, "delta": {}, "usage": USED}]},
    "in Groq's field": chunk({}, "stop", x_groq={"usage": USED}),
    "details null": {"usage": {**USED, "prompt_tokens_details": None}},
    "floats": {"usage": {"prompt_tokens": 5.0, "completion_tokens": 3.0}},
}


@pytest.mark.parametrize("name", USAGES)
def test_usage_may_come_in_any_field(name: str) -> None:
    """Usage is read from each field where servers send it."""
    assert turn(USAGES[name]).usage == TokenUsage(5, 3)


def test_last_usage_wins() -> None:
    """Running usage is not summed, and a chunk without usage does not wipe it."""
    first = {"usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    assert turn(first, {"usage": USED}, {"choices": []}).usage == TokenUsage(5, 3)


def test_usage_details() -> None:
    """Reasoning and cached tokens are read under each name that servers use."""
    details = {
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    assert turn({"usage": {**USED, **details}}).usage == TokenUsage(5, 3, 2, 4)
    flat = {"prompt_cache_hit_tokens": 4, "reasoning_tokens": 2}
    assert turn({"usage": {**USED, **flat}}).usage == TokenUsage(5, 3, 2, 4)


ERRORS: list[tuple[Json | str | Frame, StreamError]] = [
    ({"error": {"message": "m", "type": "t", "code": "c"}}, StreamError("m", "t", "c")),
    ({"error": {"message": "m", "code": 502}}, StreamError("m", None, "502")),
    ({"error": "m"}, StreamError("m")),
    ({"object": "error", "message": "m", "code": 400}, StreamError("m", None, "400")),
    (
        chunk({"content": ""}, "error", error={"message": "m", "code": 1}),
        StreamError("m", None, "1"),
    ),
    (Frame('{"error":{"message":"m"}}', event="error"), StreamError("m")),
    (Frame("it broke", event="error"), StreamError("it broke")),
]


@pytest.mark.parametrize(("item", "error"), ERRORS)
def test_errors_in_the_stream(item: Json | str | Frame, error: StreamError) -> None:
    """Each form of an error in a stream is an error, and the parts before it stay."""
    got = turn(chunk({"content": "a"}), item)
    assert (got.text, got.error, got.finish) == ("a", error, None)


KEPT: dict[str, Frame] = {
    "comment": Frame(comment="OPENROUTER PROCESSING"),
    "no data": Frame(id="7"),
    "empty data": Frame(""),
    "keepalive as data": Frame(": keepalive"),
    "broken JSON": Frame('{"choices":['),
    "not an object": Frame("[1]"),
    "Azure's first chunk": Frame(
        '{"choices":[],"id":"","object":"","prompt_filter_results":[{"prompt_index":0}]}'
    ),
    "Azure's filter results": Frame(
        '{"choices":[{"content_filter_offsets":{"start":1},"index":0}],"object":""}'
    ),
    "another choice": Frame(json.dumps({"choices": [{"index": 1, "delta": {"content": "B"}}]})),
    "encrypted reasoning": Frame(
        json.dumps(chunk({"content": "", "reasoning_details": [{"type": "x", "data": "e"}]}))
    ),
    "deeply nested": Frame("[" * 100_000),
}


@for_all("name", KEPT)
def test_unknown_frames_are_kept(name: str) -> None:
    """A frame that the decoder cannot read is kept after the parts, and decoding goes on."""
    got = turn(KEPT[name], chunk({"content": "a"}), KEPT[name], chunk({}, "stop"))
    kept = Opaque("chat", KEPT[name])
    assert got == Turn((Text(("a",)), kept, kept), "stop", order=(1, 0, 2))


def test_nothing_counts_after_done() -> None:
    """A chunk after [DONE] is kept as a frame, not read; a second [DONE] is ignored."""
    late = chunk({"content": "b"})
    got = turn(chunk({"content": "a"}, "stop"), "[DONE]", late, "[DONE]")
    assert (got.text, got.parts[1:]) == ("a", (Opaque("chat", Frame(json.dumps(late))),))


def test_start_has_the_identity() -> None:
    """The answer's id and model are those of its first chunk; later changes are ignored."""
    got = events(chunk({"role": None}, model="m"), {**chunk({"content": "a"}), "id": "x2"})
    assert got[:2] == [
        Raw(
            got[0].part if isinstance(got[0], Raw) else -1,
            "chat",
            Frame(json.dumps(chunk({"role": None}, model="m"))),
        ),
        Start("x1", ""),
    ]
    assert events(chunk({"role": "assistant"}, model="m"))[0] == Start("x1", "m")


def test_citations() -> None:
    """Annotations are citations of the text, also when they come before it."""
    cite = {"type": "url_citation", "url_citation": {"url": "https://e.org", "title": "E"}}
    before = turn(chunk({"annotations": [cite]}), chunk({"content": "a"}))
    after = turn(chunk({"content": "a"}), chunk({"annotations": [cite]}))
    assert before == after
    (text,) = before.parts
    assert isinstance(text, Text)
    assert [(c.url, c.title) for c in text.citations] == [("https://e.org", "E")]
    assert turn(chunk({"annotations": [cite]})).parts == (Text(("",), text.citations),)


def test_parts_end_before_the_finish() -> None:
    """Each part that began ends, once, before the answer finishes."""
    got = events(chunk({"content": "a"}), calls(entry("{}", "f", "a", 0)), chunk({}, "stop"))
    assert [e for e in got if isinstance(e, PartEnd)] == [PartEnd(1), PartEnd(4)]
    assert isinstance(got[-1], Finish)
