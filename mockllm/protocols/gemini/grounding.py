"""Citations as grounding metadata, and back where the metadata has nothing but citations.

https://ai.google.dev/api/generate-content#GroundingMetadata

Only pure functions may live here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mockllm.core.events import Cite
from mockllm.protocols.values import mapping, string

__all__ = ["cites_of", "grounding"]


def grounding(cites: Sequence[Cite], text: str) -> dict[str, Any]:
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
        "groundingChunks": [{"web": _web(cite)} for cite in cites],
        **({"groundingSupports": supports} if supports else {}),
    }


def _web(cite: Cite) -> dict[str, str]:
    return {"uri": cite.url, **({"title": cite.title} if cite.title else {})}


def _segment(passage: str, text: str) -> dict[str, Any]:
    at = text.find(passage)
    if at < 0:
        return {"text": passage}
    start = len(text[:at].encode())
    begin = {"startIndex": start} if start else {}
    return {**begin, "endIndex": start + len(passage.encode()), "text": passage}


def cites_of(value: object, part: int) -> list[Cite] | None:
    """The citations of `part` in metadata; None if the metadata holds anything else.

    Each source has a URL, perhaps a title, and at most one passage that it alone supports.
    """
    metadata = mapping(value)
    chunks, supports = metadata.get("groundingChunks"), metadata.get("groundingSupports", [])
    if not isinstance(chunks, list) or not isinstance(supports, list):
        return None
    if not metadata.keys() <= {"groundingChunks", "groundingSupports"}:
        return None
    passages = _supported(supports, len(chunks))
    if passages is None or not all(map(_is_source, chunks)):
        return None
    webs = [chunk["web"] for chunk in chunks]
    return [
        Cite(part, string(web.get("uri")), string(web.get("title")), passages.get(index, ""))
        for index, web in enumerate(webs)
    ]


def _is_source(chunk: object) -> bool:
    web = mapping(chunk).get("web")
    return (
        isinstance(web, Mapping)
        and mapping(chunk).keys() == {"web"}
        and web.keys() <= {"uri", "title"}
    )


def _supported(supports: list[Any], chunks: int) -> dict[int, str] | None:
    """The passage of each source, by the index of the source; None if they are not that simple."""
    passages: dict[int, str] = {}
    for support in map(mapping, supports):
        match support.get("groundingChunkIndices"):
            case [int(index)] if 0 <= index < chunks and index not in passages:
                segment = mapping(support.get("segment"))
            case _:
                return None
        known = support.keys() <= {"segment", "groundingChunkIndices"}
        if not known or not segment.keys() <= {"partIndex", "startIndex", "endIndex", "text"}:
            return None
        passages[index] = string(segment.get("text"))
    return passages
