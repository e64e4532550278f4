"""Chat Completions: recorded streams, and malformed ones."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import WireError
from mockllm.core.events import Frame, Start, TextDelta, Timed, Usage
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.framing import sse
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.openai_chat.protocol import PROTOCOL
from tests.cases import for_all
from tests.corpus import needs_corpus, recorded_streams
from tests.strategies import json_values, objects, texts

STREAMS = recorded_streams("chat")

Json = dict[str, Any]


entries = objects(
    index=st.integers(-1, 2),
    id=st.sampled_from("abc"),
    function=objects(name=st.sampled_from("fg"), arguments=texts),
)
deltas = objects(
    role=st.just("assistant"),
    content=texts,
    refusal=texts,
    reasoning=texts,
    reasoning_details=st.lists(objects(text=texts, summary=texts), max_size=2),
    annotations=st.lists(objects(url_citation=objects(url=texts, title=texts)), max_size=2),
    function_call=objects(name=texts, arguments=texts),
    tool_calls=st.lists(entries, max_size=3),
)
choices = objects(
    index=st.just(0),
    finish_reason=st.sampled_from(["stop", "tool_calls", "eos"]),
    logprobs=objects(content=st.lists(json_values, max_size=1)),
    delta=deltas,
    message=deltas,
    usage=objects(prompt_tokens=st.integers()),
)
chunks = objects(
    id=texts,
    choices=st.lists(choices, max_size=2),
    usage=objects(prompt_tokens=st.integers(), completion_tokens_details=json_values),
    x_groq=objects(usage=json_values),
    error=objects(message=texts),
)


@given(st.lists(chunks | json_values, max_size=5))
def test_nothing_makes_the_decoder_fail(items: list[Any]) -> None:
    """Chunks with any JSON decode to a turn."""
    turn, _ = decode_turn(PROTOCOL, [Frame(json.dumps(item)) for item in items])
    assert isinstance(turn, Turn)


@given(chunks)
def test_a_body_is_read_or_refused(body: Any) -> None:
    """A body with any JSON decodes to a turn, or is refused with a reason."""
    with contextlib.suppress(WireError):
        assert isinstance(PROTOCOL.decode_body(body if isinstance(body, dict) else {}), Turn)


def payloads(path: Path) -> list[Json]:
    """The JSON of the `data` lines; the recordings have one line an event."""
    lines = path.read_bytes().replace(b"\r\n", b"\n").split(b"\n")
    found = [line[5:].strip() for line in lines if line.startswith(b"data:")]
    return [json.loads(item) for item in found if item != b"[DONE]"]


def accumulated(chunks: list[Json]) -> Json:
    """Text, reasoning, calls, finish and usage, accumulated in the simplest way."""
    total: Json = {"text": "", "reasoning": "", "calls": {}, "finish": None, "usage": None}
    for item in chunks:
        groq = (item.get("x_groq") or {}).get("usage")
        total["usage"] = item.get("usage") or groq or total["usage"]
        for choice in item.get("choices") or []:
            delta = choice.get("delta") or {}
            content = delta.get("content") or ""
            if isinstance(content, list):
                for part in content:
                    for inner in part.get("thinking", []):
                        total["reasoning"] += inner["text"]
                    total["text"] += part.get("text", "")
                content = ""
            total["text"] += content
            thought = delta.get("reasoning_content") or delta.get("reasoning") or ""
            for detail in delta.get("reasoning_details") or []:
                thought = thought or detail.get("text", "")
            total["reasoning"] += thought
            for fragment in delta.get("tool_calls") or []:
                call = total["calls"].setdefault(fragment["index"], ["", "", ""])
                call[0] = call[0] or fragment.get("id") or ""
                call[1] = call[1] or fragment["function"].get("name") or ""
                call[2] += fragment["function"].get("arguments") or ""
            total["finish"] = total["finish"] or choice.get("finish_reason")
    return total


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_a_recorded_stream_equals_its_chunks(path: Path) -> None:
    """The decoded turn of a recorded stream equals the sum of its chunks."""
    decoder = PROTOCOL.decoder()
    got = [e for frame in sse.decode(path.read_bytes()) for e in decoder.decode(frame)]
    played = fold(Timed(0, event) for event in [*got, *decoder.close()])
    chunks = payloads(path)
    expected = accumulated(chunks)
    assert (played.text, played.reasoning) == (expected["text"], expected["reasoning"])
    assert [[c.id, c.name, c.arguments] for c in played.tool_calls] == [
        [id, name, arguments or "{}"]
        for _, (id, name, arguments) in sorted(expected["calls"].items())
    ]
    failed = any(item.get("error") for item in chunks)
    assert (played.error is not None) == failed
    if not failed:
        assert (played.finish_raw or played.finish) == expected["finish"]
    usage = expected["usage"]
    assert (played.usage is None) == (usage is None)
    if played.usage is not None:
        assert played.usage.input == usage["prompt_tokens"]
        assert played.usage.output == usage["completion_tokens"]
    done = b"data: [DONE]" in path.read_bytes()
    assert decoder.complete == (expected["finish"] is not None or done or failed)


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_a_recorded_stream_decodes_the_same_at_any_cuts(path: Path) -> None:
    """A recorded stream in parts of seven bytes decodes to the same frames."""
    stream = path.read_bytes()
    decoder = sse.SSEDecoder()
    parts = [stream[i : i + 7] for i in range(0, len(stream), 7)]
    assert [f for part in parts for f in decoder.decode(part)] == sse.decode(stream)


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_recorded_usage_and_start_come_once_each(path: Path) -> None:
    """A recorded stream has one start, before any text, and at most one usage."""
    decoder = PROTOCOL.decoder()
    got = [e for frame in sse.decode(path.read_bytes()) for e in decoder.decode(frame)]
    events = [e for e in got if isinstance(e, (Start, TextDelta, Usage))]
    assert sum(isinstance(e, Start) for e in events) == (1 if events else 0)
    assert not events or isinstance(events[0], Start)
