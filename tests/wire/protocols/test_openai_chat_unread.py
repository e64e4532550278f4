"""Chat Completions: fields of a chunk that the decoder does not read are never dropped."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.events import Frame, Raw
from mockllm.core.timeline import normal
from mockllm.core.turn import Opaque, TokenUsage, Turn
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.openai_chat.protocol import PROTOCOL
from mockllm.wire.protocols.openai_chat.request import Options
from tests import strategies
from tests.cases import for_all
from tests.wire.protocols.streams import played, read
from tests.wire.protocols.test_openai_chat_corpus import chunks, entries, objects
from tests.wire.protocols.test_openai_chat_decoder import USED, Json, calls, chunk, entry

CITED = {"url": "https://e.org", "title": "E"}


def frames_kept(*items: Json) -> list[Json]:
    """The chunks that are kept as frames, because nothing in them is known."""
    decoder = PROTOCOL.decoder()
    events = [event for item in items for event in decoder.decode(Frame(json.dumps(item)))]
    return [json.loads(event.frame.data or "") for event in events if isinstance(event, Raw)]


def left(delta: Json | None = None, **more: Any) -> Json:
    """A chunk with nothing that is known."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": None, **more}
    return {"choices": [choice]}


A = {"content": "a"}
REAL = {"content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}]}

RESTS: dict[str, tuple[Json, Json]] = {
    "of the chunk": (chunk(A, provider="P"), {"provider": "P"}),
    "of the choice": (
        {"choices": [{"index": 0, "delta": A, "native_finish_reason": "eos"}]},
        left(native_finish_reason="eos"),
    ),
    "of the delta": (chunk({**A, "channel": "analysis"}), left({"channel": "analysis"})),
    "log probabilities": (
        {"choices": [{"index": 0, "delta": A, "logprobs": REAL}]},
        left(logprobs=REAL),
    ),
    "Groq": (chunk(A, x_groq={"id": "r", "usage": USED}), {"x_groq": {"id": "r"}}),
    "cost": (
        chunk({}, "stop", usage={**USED, "cost": 0.5, "cost_details": {"x": 0}}),
        {"usage": {"cost": 0.5}},
    ),
    "usage in detail": (
        chunk({}, "stop", usage={**USED, "prompt_tokens_details": {"cached_tokens": 2, "z": 1}}),
        {"usage": {"prompt_tokens_details": {"z": 1}}},
    ),
    "a total that is no sum": (
        chunk({}, "stop", usage={**USED, "total_tokens": 99}),
        {"usage": {"total_tokens": 99}},
    ),
    "signature of a call": (
        calls(entry("{}", "f", "a", 0, extra_content={"signature": "s"})),
        left({"tool_calls": [{"index": 0, "extra_content": {"signature": "s"}}]}),
    ),
    "span of a citation": (
        chunk({**A, "annotations": [
            {"type": "url_citation", "url_citation": CITED},
            {"type": "url_citation", "url_citation": {**CITED, "start_index": 1, "end_index": 2}},
        ]}),
        left({"annotations": [
            {"type": "url_citation"},
            {"type": "url_citation", "url_citation": {"start_index": 1, "end_index": 2}},
        ]}),
    ),
    "image among the text": (
        chunk({"content": [{"type": "text", "text": "a"}, {"type": "image", "image": "u"}]}),
        left({"content": [{"type": "image", "image": "u"}]}),
    ),
    "detail of reasoning": (
        chunk({"reasoning": "a", "reasoning_details": [{"type": "t", "text": "a", "format": "f"}]}),
        left({"reasoning_details": [{"type": "t", "format": "f"}]}),
    ),
    "another choice": (
        {"choices": [{"index": 0, "delta": A}, {"index": 1, "delta": {"content": "b"}}]},
        {"choices": [{"index": 1, "delta": {"content": "b"}}]},
    ),
}  # fmt: skip


@for_all("name", RESTS)
def test_unread_fields_leave_no_frame(name: str) -> None:
    """Unknown fields beside known ones are left out; a tape has them."""
    assert frames_kept(RESTS[name][0]) == []


def test_a_chunk_without_anything_known_is_a_frame() -> None:
    """It is kept whole, at its place."""
    for chunk_ in ({"provider": "P", "choices": []}, left({"channel": "analysis"})):
        assert frames_kept(chunk(A), chunk_) == [chunk_]


NOTHING: dict[str, Json] = {
    "envelope": chunk(A, model="m", created=1, service_tier="x", system_fingerprint="f"),
    "padding": chunk({"role": "assistant", "content": "a", "refusal": None}, obfuscation="xyz"),
    "empty provider fields": chunk({**A, "tool_calls": []}, token_ids=None, filter={"hate": {}}),
    "no log probabilities": {
        "choices": [{"delta": A, "logprobs": {"content": None, "refusal": None}}]
    },
    "usual usage": chunk({}, "stop", usage={**USED, "prompt_tokens_details": {"audio_tokens": 0}}),
    "cached tokens by another name": chunk(
        {}, "stop", usage={**USED, "prompt_cache_hit_tokens": 2, "prompt_cache_miss_tokens": 3}
    ),
    "a span that tells nothing": chunk({**A, "annotations": [
        {"type": "url_citation", "url_citation": {**CITED, "start_index": 0, "end_index": 0}}
    ]}),
}  # fmt: skip


@for_all("name", NOTHING)
def test_empty_fields_are_not_kept(name: str) -> None:
    """The usual envelope, padding, nulls and zeros leave no frame."""
    assert frames_kept(NOTHING[name]) == []


rich = chunks.flatmap(
    lambda chunk: (
        st.fixed_dictionaries(
            {
                "choices": st.lists(
                    objects(
                        index=st.integers(0, 1),
                        delta=objects(
                            content=strategies.texts | st.lists(objects(text=strategies.texts)),
                            reasoning_details=st.lists(
                                objects(text=strategies.texts, data=st.just(1))
                            ),
                            tool_calls=st.lists(
                                entries | objects(index=st.just(0), extra=st.just(1))
                            ),
                            channel=st.just("x"),
                        ),
                        seed=st.integers(),
                    ),
                    max_size=2,
                )
            },
            optional={key: st.just(value) for key, value in chunk.items() if key != "choices"},
        )
        if isinstance(chunk, dict)
        else st.just(chunk)
    )
)


@given(st.lists(rich | chunks, max_size=3))
def test_a_rest_decodes_to_itself(items: list[Any]) -> None:
    """Nothing is read from a frame that was kept, so that keeping it again changes nothing."""
    decoder = PROTOCOL.decoder()
    events = [event for item in items for event in decoder.decode(Frame(json.dumps(item)))]
    for kept in [event for event in events if isinstance(event, Raw)]:
        fresh = PROTOCOL.decoder()
        again = [*fresh.decode(kept.frame), *fresh.close()]
        assert [event.frame for event in again if isinstance(event, Raw)] == [kept.frame]
        assert len(again) == 1


kept_frames = st.sampled_from(
    [
        Opaque("chat", Frame(json.dumps(value, separators=(",", ":"))))
        for _, value in RESTS.values()
        if frames_kept(value)
    ]
)


@given(strategies.turns(strategies.parts | kept_frames))
def test_turns_with_kept_frames_survive(turn: Turn) -> None:
    """A turn with such frames at any position comes back from its stream with all of them."""
    reply = Reply("s", "0" * 40, "m", Options(True), TokenUsage(0, 0))
    assert read(PROTOCOL, played(PROTOCOL, turn, reply)) == normal(PROTOCOL.project(turn))
