"""Readers of the bytes of images and sounds: in a file beside the YAML, or as base64."""

from __future__ import annotations

import base64
from collections.abc import Callable

from mockllm.scenario.part_model import MediaSource
from mockllm.scenario.reading.nodes import Mapping, Node
from mockllm.scenario.reading.tables import file_content, inner_path, table
from mockllm.scenario.reading.values import Findings, fields

_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "pcm": "audio/pcm",
}
"""By the ending of a file's name, the type that needs not be written."""


def usual_type(file: str) -> str:
    """The media type that the name of a file shows; "" where it shows none."""
    return _TYPES.get(file.rpartition(".")[2].lower(), "")


def ending(type: str) -> str:
    """The ending of the name of a file of a media type."""
    return next((f".{ending}" for ending, usual in _TYPES.items() if usual == type), ".bin")


def _source(kind: str) -> Callable[[Node, Findings], MediaSource | None]:
    example = next(type for type in _TYPES.values() if type.startswith(kind))
    keys = table(
        kind, base64="base64 text", file=inner_path, type=f"a media type such as {example}"
    )

    def read(node: Node, findings: Findings) -> MediaSource | None:
        before = len(findings.found)
        values = fields(node, findings, keys)
        if values is None or not isinstance(node, Mapping):
            return None
        given = [key for key in ("file", "base64") if key in node.entries]
        if len(given) != 1:
            got = " and ".join(given) or "none"
            findings.add(node, f"must have either 'file' or 'base64', got {got}")
        if len(findings.found) > before:
            return None
        file = values.get("file", "")
        type: str = values.get("type") or usual_type(file)
        if not type.startswith(f"{kind}/"):
            why = f"; the name of the file shows {type or 'none'}" if file else ""
            findings.add(node, f"needs the key 'type', such as {example}{why}")
            return None
        if not file:
            return MediaSource(base64.b64decode(values["base64"]), type)
        content = file_content(file, node, findings, "write it here as base64")
        return None if content is None else MediaSource(content, type, file)

    return read


image = _source("image")
audio = _source("audio")
