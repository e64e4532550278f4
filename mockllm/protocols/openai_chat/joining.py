"""Two consecutive chunks as one, as servers do that send several deltas at once."""

from __future__ import annotations

from typing import Any

from mockllm.core.events import Frame
from mockllm.protocols.base import dumps
from mockllm.protocols.records import Json
from mockllm.protocols.values import plain_object

_CHOICE = {"index", "delta", "logprobs", "finish_reason"}
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
_DELTA = {"role", "tool_calls", *_TEXTS}


def join(first: Frame, second: Frame) -> Frame | None:
    """One chunk with the content of two; None where that is not possible, or where one of them is
    not a plain delta."""
    one, other = plain_object(first), plain_object(second)
    if one is None or other is None:
        return None
    mine, theirs = _choice(one), _choice(other)
    if mine is None or theirs is None or mine["index"] != theirs["index"]:
        return None
    if not _continues(mine["delta"], theirs["delta"]):
        return None
    if mine.get("finish_reason") is not None or one.get("usage") is not None:
        return None
    delta = _joined(mine["delta"], theirs["delta"])
    choice = {**mine, "delta": delta, "finish_reason": theirs.get("finish_reason")}
    logprobs = _logprobs(mine.get("logprobs"), theirs.get("logprobs"))
    if "logprobs" in mine or "logprobs" in theirs:
        choice["logprobs"] = logprobs
    return Frame(dumps({**other, "choices": [choice]}))


def _choice(chunk: Json) -> Json | None:
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return None
    choice: Json = choices[0]
    delta = choice.get("delta")
    if not choice.keys() <= _CHOICE or "index" not in choice or not isinstance(delta, dict):
        return None
    texts = (delta.get(name) for name in _TEXTS)
    if not delta.keys() <= _DELTA or not all(t is None or isinstance(t, str) for t in texts):
        return None
    calls = delta.get("tool_calls", [])
    if not isinstance(calls, list) or not all(map(_plain_call, calls)):
        return None
    indexes = {call["index"] for call in calls}
    return choice if len(indexes) == len(calls) else None


def _plain_call(call: Any) -> bool:
    return (
        isinstance(call, dict)
        and isinstance(call.get("index"), int)
        and isinstance(call.get("function"), dict)
        and isinstance(call["function"].get("arguments", ""), str)
    )


def _continues(one: Json, other: Json) -> bool:
    """Whether entries of one call can become one entry: the second has nothing but arguments.
    Otherwise it may be another call of the same index (`chat-index-all-zero`), or the rest of the
    name (`chat-name-split`)."""
    known = {call["index"] for call in one.get("tool_calls", [])}
    return all(
        call.keys() <= {"index", "function"} and call["function"].keys() <= {"arguments"}
        for call in other.get("tool_calls", [])
        if call["index"] in known
    )


def _joined(one: Json, other: Json) -> Json:
    delta = {**one, **{key: value for key, value in other.items() if key not in one}}
    for name in _TEXTS:
        if name in one and name in other:
            texts = [text for text in (one[name], other[name]) if text is not None]
            delta[name] = "".join(texts) if texts else None
    if "tool_calls" in one and "tool_calls" in other:
        delta["tool_calls"] = _calls(one["tool_calls"], other["tool_calls"])
    return delta


def _calls(one: list[Json], other: list[Json]) -> list[Json]:
    calls = {call["index"]: call for call in one}
    for call in other:
        before = calls.get(call["index"])
        if before is None:
            calls[call["index"]] = call
            continue
        function = dict(before["function"])
        more = call["function"].get("arguments")
        if more is not None:
            function["arguments"] = (function.get("arguments") or "") + more
        calls[call["index"]] = {**call, **before, "function": {**call["function"], **function}}
    return list(calls.values())


def _logprobs(one: Any, other: Any) -> Any:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other if one is None else one
    return {
        key: [*(one.get(key) or []), *(other.get(key) or [])]
        if one.get(key) or other.get(key)
        else other.get(key, one.get(key))
        for key in {**one, **other}
    }
