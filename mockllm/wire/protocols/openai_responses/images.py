"""Images of an answer as items of the tool that makes them. The API has no other images, and no
sound.

https://platform.openai.com/docs/guides/tools-image-generation
"""

from __future__ import annotations

import base64
from dataclasses import replace

from mockllm.core.events import Frame
from mockllm.core.turn import Media, Opaque, Part, ServerTool, Turn
from mockllm.wire.protocols.base import dumps


def with_image_calls(turn: Turn) -> Turn:
    """The turn with calls of the image tool in place of images, and nothing in place of sound; the
    parts keep their numbers."""
    if not any(isinstance(part, Media) for part in turn.parts):
        return turn
    return replace(turn, parts=tuple(map(_expressible, turn.parts)))


def _expressible(part: Part) -> Part:
    if not isinstance(part, Media):
        return part
    kind, _, format = part.media_type.partition("/")
    if kind != "image":
        return Opaque("", Frame())  # a frame of no API is not sent
    result = base64.b64encode(b"".join(part.data)).decode()
    format = dumps({"output_format": format})
    return ServerTool("image_generation", fragments=(format,), output=dumps(result))
