"""Two consecutive chunks as one: the service sends the parts that are ready in one chunk."""

from __future__ import annotations

from mockllm.core.events import Frame
from mockllm.protocols.gemini.fields import wire
from mockllm.protocols.records import Json
from mockllm.protocols.values import plain_object


def join(first: Frame, second: Frame) -> Frame | None:
    """One chunk with the content of two; None where that is not possible."""
    one, other = plain_object(first), plain_object(second)
    if one is None or other is None:
        return None
    mine, theirs = _candidate(one), _candidate(other)
    if mine is None or theirs is None or "finishReason" in mine:
        return None
    if (set(mine) - {"content", "index"}) & set(theirs):
        return None  # both have metadata, which cannot be merged
    before = mine["content"]["parts"]
    # The empty text of the last chunk only stands for content that came before.
    more = [part for part in theirs["content"]["parts"] if not before or part != {"text": ""}]
    content = {**mine["content"], **theirs["content"], "parts": [*before, *more]}
    candidate = {**mine, **theirs, "content": content}
    return Frame(wire({**one, **other, "candidates": [candidate]}))


def _candidate(chunk: Json) -> Json | None:
    candidates = chunk.get("candidates")
    if not isinstance(candidates, list) or len(candidates) != 1:
        return None
    candidate = candidates[0]
    content = candidate.get("content") if isinstance(candidate, dict) else None
    parts = content.get("parts") if isinstance(content, dict) else None
    return candidate if isinstance(parts, list) else None
