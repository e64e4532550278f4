"""The ways in which documented clients read an answer of Gemini: the first candidate of a chunk or
the candidate 0, the first or the last finish reason, and the usage of the last chunk.

`chunk.text` of google-genai joins all parts of a chunk, so clients that read its first part only
are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.wire.protocols.records import Fields, NamedEvent, Way
from mockllm.wire.protocols.values import count, mapping, objects, string
from mockllm.wire.protocols.ways import first_and_last

_COUNTS = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
_FURTHER = ("toolUsePromptTokenCount",)


def ways(events: Sequence[NamedEvent]) -> Iterator[Way]:
    """All ways of reading an answer."""
    chunks = [event for _, event in events]
    zero = [
        candidate
        for chunk in chunks
        for candidate in objects(chunk.get("candidates"))
        if not candidate.get("index")
    ]
    first = [candidate for chunk in chunks for candidate in objects(chunk.get("candidates"))[:1]]
    yield Way("text", "the first candidate of each chunk", "".join(map(_text, first)))
    yield Way("text", "the candidate 0", "".join(map(_text, zero)))
    reasons = (candidate.get("finishReason") for candidate in zero)
    yield from first_and_last("finish", "`finishReason`", reasons)
    yield from first_and_last("answer id", "id", (chunk.get("responseId") for chunk in chunks))
    usages = [usage for chunk in chunks if (usage := mapping(chunk.get("usageMetadata")))]
    if usages:
        yield Way("usage", "the usage of the last chunk", _counts(chunks[-1].get("usageMetadata")))
        yield Way("usage", "the last usage", _counts(usages[-1]))
        total = usages[-1].get("totalTokenCount")
        given = sum(count(usages[-1].get(name)) for name in (*_COUNTS, *_FURTHER))
        yield Way("total tokens", "`totalTokenCount`", total)
        yield Way("total tokens", "the counts added up", given)


def _text(candidate: Fields) -> str:
    parts = objects(mapping(candidate.get("content")).get("parts"))
    return "".join(string(part.get("text")) for part in parts if not part.get("thought"))


def _counts(usage: object) -> tuple[int, ...]:
    return tuple(count(mapping(usage).get(name)) for name in _COUNTS)
