"""The annotations of a text, as neutral citations.

Citations of files have no address. Their `url` names the file: `file_citation:FILE#INDEX`,
`container_file_citation:CONTAINER/FILE`, `file_path:FILE#INDEX`. Only pure functions may live here.
"""

from __future__ import annotations

import re

from mockllm.core.events import Cite
from mockllm.core.turn import Text
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import mapping, string

ANNOTATIONS = frozenset({"url_citation", "file_citation", "container_file_citation", "file_path"})
"""The types of annotations with a neutral form."""

_FILE = re.compile(r"(file_citation|file_path):([^#]*)(?:#([0-9]{1,7}))?\Z")
_CONTAINER_FILE = re.compile(r"container_file_citation:([^/]*)/(.*)\Z", re.DOTALL)


def citation(part: int, value: object, text: str) -> Cite:
    """The citation of an annotation of a known type; its cited text is cut from the whole text."""
    fields = mapping(value)
    kind, file = string(fields.get("type")), string(fields.get("file_id"))
    if kind in ("file_citation", "file_path"):
        index = _count(fields.get("index"))
        url = f"{kind}:{file}" + (f"#{index}" if index is not None else "")
        return Cite(part, url, string(fields.get("filename")))
    cited = text[_count(fields.get("start_index")) or 0 : _count(fields.get("end_index")) or 0]
    if kind == "container_file_citation":
        url = f"{kind}:{string(fields.get('container_id'))}/{file}"
        return Cite(part, url, string(fields.get("filename")), cited)
    return Cite(part, string(fields.get("url")), string(fields.get("title")), cited)


def annotations_of(part: Text) -> list[Json]:
    """The annotations of a text. The span of a citation is where its cited text is next after the
    last citation, else where it is first, else the end."""
    annotations = []
    after = 0
    for cite in part.citations:
        if not cite.has_address:
            continue
        start, end = _span(cite, part.text, after)
        annotations.append(_annotation(cite, start, end))
        after = end if cite.cited_text else after
    return annotations


def ends(annotations: list[Json], text: str) -> list[int]:
    """For each annotation of a text, how long the text must be before the annotation is sent."""
    due, least = [], 0
    for annotation in annotations:
        start, end = (annotation.get(name) for name in ("start_index", "end_index"))
        end = annotation.get("index", 0) if end is None else end
        least = max(least, len(text) if start == end else min(end, len(text)))
        due.append(least)
    return due


def _span(cite: Cite, text: str, after: int) -> tuple[int, int]:
    start = -1
    if cite.cited_text:
        start = text.find(cite.cited_text, after)
        start = start if start >= 0 else text.find(cite.cited_text)
    return (start, start + len(cite.cited_text)) if start >= 0 else (len(text), len(text))


def _annotation(cite: Cite, start: int, end: int) -> Json:
    span = {"start_index": start, "end_index": end}
    if file := _FILE.match(cite.url):
        index = end if file[3] is None else int(file[3])
        named = {"filename": cite.title} if file[1] == "file_citation" or cite.title else {}
        return {"type": file[1], "file_id": file[2], **named, "index": index}
    if file := _CONTAINER_FILE.match(cite.url):
        return {
            "type": "container_file_citation",
            "container_id": file[1],
            "end_index": end,
            "file_id": file[2],
            "filename": cite.title,
            "start_index": start,
        }
    return {"type": "url_citation", **span, "title": cite.title, "url": cite.url}


def _count(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if whole else None  # type: ignore[return-value]
