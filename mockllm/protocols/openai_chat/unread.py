"""The fields of a chunk that the decoder does not read: fields of providers, details, spans.

They are kept as a chunk of their own, without any field that would be read, so that recording and
replaying lose nothing and this chunk decodes to itself only. Fields that every service sends, and
values that are null, empty or (in usage) zero, are dropped. Only pure functions may live here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from mockllm.core.frame import Frame
from mockllm.protocols.base import dumps
from mockllm.protocols.openai_chat.fields import (
    called,
    count_of,
    names_call,
    split_content,
    usage_of,
    write_logprobs,
)

__all__ = ["unread_choice", "unread_chunk"]

_Rest = Callable[[Any], object]

_ENVELOPE = ("id", "object", "created", "model", "service_tier", "system_fingerprint")
_DEEP = 4
"""How many levels of a value are searched for content."""


def unread_chunk(chunk: Mapping[str, Any], choices: list[Any]) -> Frame | None:
    """The frame with the unread fields of a chunk; None if there are none.

    Args:
        choices: the unread fields of each choice (`unread_choice`), or whole unread choices.
    """
    skipped = {*_ENVELOPE, "obfuscation", "choices", "error"}
    if chunk.get("object") == "error":
        return None  # all of it is the error
    rest = _rest(chunk, skipped, {"usage": _usage, "x_groq": _groq})
    if not isinstance(chunk.get("choices"), list) and _has_content(chunk.get("choices")):
        rest["choices"] = chunk["choices"]
    left = [choice for choice in choices if _has_content(choice)]
    if not rest and not left:
        return None
    envelope = {key: chunk[key] for key in _ENVELOPE if key in chunk}
    return Frame(_json({**envelope, "choices": left, **rest}))


def unread_choice(choice: Mapping[str, Any], length: int) -> dict[str, Any]:
    """The unread fields of a choice; {} if there are none.

    Args:
        length: the characters of text so far. A citation whose span is all of them is what the
            encoder writes, so the span is dropped.
    """
    delta = choice.get("delta")
    rest = _rest(
        choice,
        {"index", "delta", *(["finish_reason"] if _has_reason(choice) else [])},
        {"usage": _usage, "logprobs": lambda value: _logprobs(value, delta)},
    )
    left = _delta(delta, length) if isinstance(delta, Mapping) else delta
    if not rest and not _has_content(left):
        return {}
    index = {"index": choice["index"]} if "index" in choice else {}
    return {**index, "delta": left, "finish_reason": None, **rest}


def _has_reason(choice: Mapping[str, Any]) -> bool:
    return isinstance(choice.get("finish_reason"), str)


def _rest(
    value: Mapping[str, Any], skipped: set[str] | frozenset[str], within: Mapping[str, _Rest]
) -> dict[str, Any]:
    """The unread fields of an object that have content.

    Args:
        skipped: the fields that are read.
        within: by field, the unread rest of a value that is read in part.
    """
    kept = {}
    for key, inner in value.items():
        if key not in skipped:
            left = within[key](inner) if key in within else inner
            if _has_content(left):
                kept[key] = left
    return kept


def _has_content(value: object, depth: int = _DEEP) -> bool:
    """Whether a value holds anything but null, empty strings and empty containers."""
    if value is None or value == "":
        return False
    if not isinstance(value, (dict, list)) or not depth:
        return True
    inside = value.values() if isinstance(value, dict) else value
    return any(_has_content(item, depth - 1) for item in inside)


def _json(value: object) -> str:
    text = dumps(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can hold only as an escape
        return json.dumps(value, separators=(",", ":"))
    return text


# Inside a delta


def _delta(delta: Mapping[str, Any], length: int) -> dict[str, Any]:
    texts = ("role", "refusal", "reasoning_content", "reasoning")
    return _rest(
        delta,
        {key for key in texts if isinstance(delta.get(key), str)},
        {
            "content": _content,
            "reasoning_details": _details,
            "tool_calls": _entries,
            "function_call": _function,
            "annotations": lambda value: _annotations(value, length),
        },
    )


def _content(content: object) -> object:
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return content
    parts = [_part(part) if isinstance(part, dict) else part for part in content]
    return [part for part in parts if not isinstance(part, str) and _has_content(part)]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """A content part without its text; the type is kept if it is not one that is read."""
    skipped = {"type"} if part.get("type") in ("text", "output_text", "thinking") else set()
    if part.get("type") == "thinking":
        rest = _rest(part, skipped, {"thinking": _content})
    else:
        read = {"text"} if isinstance(part.get("text"), str) else set()
        rest = _rest(part, skipped | read, {})
    return {"type": part.get("type"), **rest} if rest else {}


def _details(details: object) -> object:
    """Reasoning details without their text; those with nothing but type and index are dropped."""
    if not isinstance(details, list):
        return details
    kept = []
    for item in details:
        if not isinstance(item, dict):
            kept.append(item)
            continue
        texts = {key for key in ("text", "summary") if isinstance(item.get(key), str)}
        rest = _rest(item, texts, {})
        if rest.keys() - {"type", "index"}:
            kept.append(rest)
    return kept


def _entries(entries: object) -> object:
    if not isinstance(entries, list):
        return entries
    kept = []
    for entry in entries:
        if not isinstance(entry, dict):
            kept.append(entry)
            continue
        _, custom = called(entry)
        key = "custom" if custom else "function"
        foreign = entry.get("type") == "custom" and not custom
        skipped = {"index"} if foreign else {"index", "type"}
        if isinstance(entry.get("id"), str | int):
            skipped.add("id")
        rest = _rest(entry, skipped, {key: _function} if names_call(entry) else {})
        if rest:
            index = {"index": entry["index"]} if "index" in entry else {}
            kept.append({**index, **rest})
    return kept


def _function(function: object) -> object:
    """A function's fields besides name and arguments."""
    if not isinstance(function, dict):
        return function
    skipped = {"input" if function.get("arguments") is None else "arguments"}
    if isinstance(function.get("name"), str | int):
        skipped.add("name")
    return _rest(function, skipped, {})


def _annotations(annotations: object, length: int) -> object:
    """Annotations without the read fields of citations; [] if none has an unread field."""
    if not isinstance(annotations, list):
        return annotations
    rests = [_annotation(item, length) for item in annotations]
    if not any(map(_has_content, rests)):
        return []
    # All annotations keep their positions; the type stands for one without unread fields.
    return [rest or {"type": "url_citation"} for rest in rests]


def _annotation(item: object, length: int) -> object:
    cited = item.get("url_citation") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(cited, dict):
        return item
    if not isinstance(cited.get("url"), str):
        return item
    span = cited.get("start_index") or 0, cited.get("end_index") or 0
    skipped = {"start_index", "end_index"} if span in ((0, length), (0, 0)) else set()
    texts = {key for key in ("url", "title", "content") if isinstance(cited.get(key), str)}
    rest = _rest(item, {"type", "url_citation"}, {})
    inner = _rest(cited, skipped | texts, {})
    if inner:
        rest["url_citation"] = inner
    return {"type": "url_citation", **rest} if rest else {}


def _logprobs(value: object, delta: object) -> object:
    """Log probabilities; None if they are those that the encoder derives."""
    content = delta.get("content") if isinstance(delta, Mapping) else None
    return None if value == write_logprobs([split_content(content)[1]]) else value


# Usage


def _usage(usage: object) -> object:
    read = usage_of(usage)
    if read is None or not isinstance(usage, Mapping):
        return usage
    known = {
        "total_tokens": read.input + read.output,
        "reasoning_tokens": read.reasoning,
        "prompt_cache_hit_tokens": read.cached,
        "prompt_cache_miss_tokens": read.input - read.cached,
        "cached_tokens": read.cached,
    }
    rest: dict[str, object] = {}
    for key, value in usage.items():
        if key in ("prompt_tokens", "completion_tokens") and count_of(value) is not None:
            continue
        if key in known and value == known[key]:
            continue
        if isinstance(value, Mapping):
            inner = value.items()
            left = {k: v for k, v in inner if _counts(v) and not (k in known and v == known[k])}
            rest |= {key: left} if left else {}
        elif _counts(value):
            rest[key] = value
    return rest


def _counts(value: object) -> bool:
    """Whether a value has content and is not zero."""
    return _has_content(value) and (isinstance(value, bool) or value != 0)


def _groq(value: object) -> object:
    return _rest(value, frozenset(), {"usage": _usage}) if isinstance(value, Mapping) else value
