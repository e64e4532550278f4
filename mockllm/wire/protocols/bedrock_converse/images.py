"""Images in answers. Converse streams no sound.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ImageBlockStart.html
"""

from __future__ import annotations

import base64

from mockllm.core.turn import Media
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import base64_bytes, mapping, string

_FORMATS = frozenset({"gif", "jpeg", "png", "webp"})


def format_of(part: Media) -> str:
    """The format of an image; "" for what Converse does not have."""
    kind, _, format = part.media_type.partition("/")
    return format if kind == "image" and format in _FORMATS else ""


def read_format(start: Fields) -> str:
    """The format in the start of a block; "" for another block."""
    image = mapping(start.get("image"))
    format = string(image.get("format"))
    return format if image.keys() == {"format"} and format in _FORMATS else ""


def write_bytes(data: bytes) -> Json:
    """The member of a delta with bytes of the image."""
    return {"source": {"bytes": base64.b64encode(data).decode()}}


def read_bytes(delta: Fields) -> bytes | None:
    """The bytes in a delta; None for one without them."""
    image = mapping(delta.get("image"))
    source = mapping(image.get("source"))
    if image.keys() != {"source"} or source.keys() != {"bytes"}:
        return None
    return base64_bytes(source["bytes"])
