"""Citations as grounding metadata, and back.

https://ai.google.dev/api/generate-content#GroundingMetadata
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mockllm.core.events import Cite
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, mapping, string


def grounding(cites: Sequence[Cite], text: str) -> Json:
    """The `groundingMetadata` of an answer.

    Args:
        text: all visible text; offsets in it count bytes of UTF-8, as the API reference requires.
    """
    supports = [
        {"segment": _segment(cite.cited_text, text), "groundingChunkIndices": [index]}
        for index, cite in enumerate(cites)
        if cite.cited_text
    ]
    return {
        "groundingChunks": [_source(cite) for cite in cites],
        **({"groundingSupports": supports} if supports else {}),
    }


def _source(cite: Cite) -> Json:
    title = {"title": cite.title} if cite.title else {}
    if not cite.url:
        return {"retrievedContext": title}
    return {"web": {"uri": cite.url, **title}}


def _segment(passage: str, text: str) -> Json:
    at = text.find(passage)
    if at < 0:
        return {"text": passage}
    start = _size(text[:at])
    begin = {"startIndex": start} if start else {}
    return {**begin, "endIndex": start + _size(passage), "text": passage}


def _size(text: str) -> int:
    """In bytes of UTF-8, where half of a surrogate pair has three."""
    return len(text.encode("utf-8", "surrogatepass"))


def cites_of(value: object) -> list[Cite]:
    """The citations of part 0 in metadata: one for each source, with its first passage. A source of
    a file search may have no URL."""
    metadata = mapping(value)
    passages = _passages(array(metadata.get("groundingSupports")))
    sources = map(_read_source, array(metadata.get("groundingChunks")))
    return [
        Cite(0, string(source.get("uri")), string(source.get("title")), passages.get(index, ""))
        for index, source in enumerate(sources)
    ]


def _read_source(chunk: object) -> Fields:
    return next((mapping(value) for value in mapping(chunk).values()), {})


def _passages(supports: list[Any]) -> dict[int, str]:
    passages: dict[int, str] = {}
    for support in map(mapping, supports):
        text = string(mapping(support.get("segment")).get("text"))
        for index in array(support.get("groundingChunkIndices")):
            if isinstance(index, int):
                passages.setdefault(index, text)
    return passages


def merge_cites(known: list[Cite], more: list[Cite]) -> list[Cite]:
    """The citations of a stream so far: services repeat those of earlier chunks, or do not."""
    if more[: len(known)] == known:
        return more
    return known + [cite for cite in more if cite not in known]
