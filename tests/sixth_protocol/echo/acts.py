"""The names of the Echo API, for both sides: acts of a stream, parts of a body, finish words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core.events import Finish, FinishReason, Frame, StreamError, Usage
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import json_object, mapping, string

API = "echo"

SILENCE = "*silence*"
"""The data of the frame that ends a stream."""

FINISH_WORDS: dict[FinishReason, str] = {
    "stop": "finished",
    "tool_calls": "awaiting_gadgets",
    "length": "too_long",
    "content_filter": "censored",
    "refusal": "declined",
}
_REASONS = {word: reason for reason, word in FINISH_WORDS.items()}


def frame_of(act: str, **fields: Any) -> Frame:
    """The frame of an act; fields that are None are left out."""
    given = {name: value for name, value in fields.items() if value is not None}
    return Frame(dumps({"act": act, **given}), event=act)


def act_of(frame: Frame) -> Json | None:
    """The act that a frame holds; None where it holds none."""
    value = json_object(frame.data)
    return value if value is not None and isinstance(value.get("act"), str) else None


def write_finish(reason: FinishReason, raw: str | None) -> str:
    """The word for a reason; `raw` is repeated."""
    return raw or FINISH_WORDS[reason]


def read_finish(word: str) -> Finish:
    """The reason that a word stands for; a word that is not known stays as it is."""
    return Finish(_REASONS[word]) if word in _REASONS else Finish("stop", word)


def write_tally(usage: Usage | None) -> Json | None:
    """Usage as the end of an answer reports it."""
    if usage is None:
        return None
    counts = (usage.input, usage.output, usage.reasoning, usage.cached)
    written = {_WRITTEN: usage.cache_written} if usage.cache_written else {}
    return dict(zip(_COUNTS, counts, strict=True)) | written


_COUNTS = ("heard", "spoken", "mused", "remembered")
_WRITTEN = "memorised"


def read_tally(value: object) -> Usage | None:
    """The usage that a tally reports; None where it is none."""
    counts = [mapping(value).get(name) for name in (*_COUNTS, _WRITTEN)]
    if not all(type(count) is int for count in counts[:2]):
        return None
    return Usage(*(count if type(count) is int else 0 for count in counts))


def write_mishap(message: str, kind: str | None, number: str | None) -> Json:
    """An error; fields that are None are left out."""
    mishap = {"words": message, "kind": kind, "number": number}
    return {name: value for name, value in mishap.items() if value is not None}


def read_mishap(value: Mapping[str, Any]) -> StreamError | None:
    """The error that an object with a `mishap` reports; None where it has none."""
    mishap = value.get("mishap")
    if not isinstance(mishap, Mapping):
        return None
    words = string(mishap.get("words")) or "something went wrong"
    return StreamError(
        words, string(mishap.get("kind")) or None, string(mishap.get("number")) or None
    )
