"""Images and sounds among the parts of a body.

https://ai.google.dev/api/caching#Blob
"""

from __future__ import annotations

from collections.abc import Iterable

from mockllm.wire.protocols.gemini_common import read_media, write_media
from mockllm.wire.protocols.records import Json


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
