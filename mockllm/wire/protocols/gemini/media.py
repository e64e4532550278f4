"""Images and sounds as parts with their bytes, and back.

https://ai.google.dev/api/caching#Blob
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping

from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import base64_bytes, string

_TYPE = re.compile(r"(?:image|audio)/[^\r\n]+\Z")


def write_media(media_type: str, data: bytes) -> Json:
    """The part with the bytes."""
    return {"inlineData": {"mimeType": media_type, "data": base64.b64encode(data).decode()}}


def read_media(part: Fields) -> tuple[str, bytes] | None:
    """The media type and the bytes of a part; None for a part of another kind, for files that are
    neither, and for the drafts that a model shows among its thoughts."""
    blob = part.get("inlineData")
    if not isinstance(blob, Mapping) or part.get("thought") or part.get("text") is not None:
        return None
    if blob.keys() - {"mimeType", "data"}:
        return None
    media_type = string(blob.get("mimeType"))
    data = base64_bytes(blob.get("data"))
    return (media_type, data) if data and _TYPE.match(media_type) else None


def is_continued(media_type: str) -> bool:
    """Whether parts of this type that follow each other are one: sound is streamed in pieces, and
    each image is whole."""
    return media_type.startswith("audio/")


def with_whole_sounds(parts: Iterable[Json]) -> list[Json]:
    """The parts of a body: the pieces of one sound are one part there."""
    whole: list[Json] = []
    pieces: list[bytes] = []
    open_type = ""
    for part in parts:
        media_type, data = read_media(part) or ("", b"")
        if open_type and media_type == open_type and part.keys() == {"inlineData"}:
            pieces.append(data)
            continue
        _close(whole, open_type, pieces)
        open_type, pieces = (media_type if is_continued(media_type) else ""), [data]
        whole.append(part)
    _close(whole, open_type, pieces)
    return whole


def _close(whole: list[Json], media_type: str, pieces: list[bytes]) -> None:
    if len(pieces) > 1:
        whole[-1] = {**whole[-1], **write_media(media_type, b"".join(pieces))}
