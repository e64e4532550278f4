"""Shortened bodies: what a journal keeps of a request that is too large to keep whole. Pure.

Long strings in the JSON are cut (images, files, long documents), so that the calls, results and
texts of the conversation can still be read and judged.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from mockllm.core.jsontext import has_too_many_values

MAX_BODY = 1024 * 1024
"""The most bytes that a journal keeps of one body."""

LONGEST = 32 * 1024
"""Longer strings, in characters, are cut."""

_KEPT = 1024
_MARK = re.compile(r"\[cut: \d+ characters, sha256 [0-9a-f]{64}\]")


def shortened_body(body: bytes) -> bytes:
    """At most `MAX_BODY` bytes of a body: the body itself, if it is no larger.

    A larger JSON body is returned with its long strings cut. Where that is not enough, the body has
    too many values, or it is no JSON, the first bytes are returned, which are no JSON any more.
    """
    if len(body) <= MAX_BODY:
        return body
    if has_too_many_values(body):
        return body[:MAX_BODY]
    try:
        value = shortened_value(json.loads(body))
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):  # no JSON, or nested too deeply
        return body[:MAX_BODY]
    shortened = text.encode("utf-8", "surrogatepass")  # as `json.loads` decodes bytes
    return shortened if len(shortened) <= MAX_BODY else body[:MAX_BODY]


def shortened_value(value: Any) -> Any:
    """A JSON value as a shortened body has it.

    Of a long string the beginning is kept, with its length and digest: equal strings stay equal and
    different ones different. A value that was shortened stays as it is.
    """
    if isinstance(value, str):
        return _shortened_text(value)
    if isinstance(value, dict):
        return {name: shortened_value(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shortened_value(inner) for inner in value]
    return value


def _shortened_text(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:_KEPT]}[cut: {len(text)} characters, sha256 {digest}]"


def is_shortened(text: str) -> bool:
    """Whether a text, or a string in JSON text, was cut by `shortened_value`."""
    return _MARK.search(text) is not None
