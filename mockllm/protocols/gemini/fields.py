"""What the two directions of Gemini share: options, JSON as Google writes it, finish words.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse

Only pure functions and data may live here.
"""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from mockllm.core import events as ev
from mockllm.core.turn import ToolCall
from mockllm.protocols.base import dumps

__all__ = [
    "API",
    "BLOCKED",
    "NO_JSON",
    "SAFETY_RATINGS",
    "Options",
    "arguments_of",
    "blocked_reason",
    "compact",
    "json_value",
    "read_finish",
    "signature_of",
    "wire",
    "write_finish",
]

API = "gemini"


@dataclass(frozen=True, slots=True)
class Options:
    """What of a request the answer's bytes depend on.

    Args:
        array: whether the stream is one JSON array instead of events.
        ids: whether function calls carry their ids.
        partial: whether arguments are streamed in fragments.
        bare: whether a call without arguments is sent without `args`.
        candidates: how many candidates are asked for; all say the same.
        vertex: whether Vertex AI was asked.
    """

    array: bool = False
    ids: bool = False
    partial: bool = False
    bare: bool = False
    candidates: int = 1
    vertex: bool = False


# JSON

NO_JSON = object()
"""What `json_value` gives for text that is not JSON."""

_spaced = json.JSONEncoder(ensure_ascii=False, separators=(",", ": ")).encode
# Google escapes what could end a script element, controls, and characters that do not show.
_ESCAPED = re.compile(
    "[<>\x7f-\x9f\u00ad\u0600-\u0603\u06dd\u070f\u17b4\u17b5\u200b-\u200f\u2028-\u202e"
    "\u2060-\u2064\u206a-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def wire(value: object) -> str:
    """A value as Google's servers write JSON: a space after `:`, none after `,`."""
    return _ESCAPED.sub(_escape, _spaced(value))


def compact(value: object) -> str:
    """A value as compact JSON text that UTF-8 can hold, lone surrogates included."""
    return _SURROGATE.sub(_escape, dumps(value))


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is beyond a double")
    return number


def json_value(text: str) -> Any:
    """The value of a JSON text; `NO_JSON` for anything else, infinite numbers included."""
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        return NO_JSON


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The arguments of a call as the wire has them, a JSON object; None for a malformed call."""
    value = json_value(call.arguments)
    return value if isinstance(value, dict) else None


def signature_of(value: str) -> str:
    """A signature as the wire can carry it: base64, made so where it is not."""
    try:
        base64.b64decode(value, validate=True)
    except ValueError:
        return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    return value


# Why an answer ends

BLOCKED = "promptFeedback.blockReason="
"""What the `finish_raw` of a refused prompt begins with; such an answer has no candidate."""

SAFETY_RATINGS = [
    {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
]
"""The ratings that go with `SAFETY`."""

_MALFORMED = "MALFORMED_FUNCTION_CALL"
_UNSAID = "FINISH_REASON_UNSPECIFIED"
_WORD = re.compile(r"(?:promptFeedback\.blockReason=)?[A-Z][A-Z_]*\Z")
_WORDS: dict[ev.FinishReason, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "refusal": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
}
_REASONS: dict[str, ev.FinishReason] = {
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
            "MODEL_ARMOR",
            "ESCALATION",
        ),
        "content_filter",
    ),
}


def write_finish(reason: ev.FinishReason, raw: str | None, *, malformed: bool) -> str:
    """The `finishReason` for an end, or `BLOCKED` and the reason of a refused prompt.

    Args:
        raw: said as it is where it can be a word of this API.
        malformed: whether the turn has a call that the service could not read.
    """
    if raw is not None and raw != _UNSAID and _WORD.match(raw):
        return raw
    word = _WORDS[reason]
    return _MALFORMED if malformed and word == "STOP" else word


def read_finish(word: str, *, calls: bool) -> ev.Finish | None:
    """What a `finishReason` means; `STOP` after calls is `tool_calls`. None: nothing ended."""
    if word in ("", _UNSAID):
        return None
    if word.startswith(BLOCKED):
        return ev.Finish("content_filter", word)
    reason = _REASONS.get(word, "tool_calls" if calls else "stop")
    usual = word == _WORDS[reason]
    return ev.Finish(reason, None if usual else word)


def blocked_reason(word: str) -> str | None:
    """Why the prompt was refused, if that is what the word says."""
    return word.removeprefix(BLOCKED) if word.startswith(BLOCKED) else None
