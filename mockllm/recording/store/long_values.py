"""Long values of a turn in files of their own: signatures, encrypted reasoning, images in base64.

People read the YAML. A signature of four thousand characters is nothing to read, and a picture
even less. Pure: the folder writes the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mockllm.scenario.jsontext import compact
from mockllm.scenario.model import (
    AnyPart,
    FramePart,
    InterleavedPart,
    ParallelPart,
    ReasoningPart,
    ServerToolPart,
    TextFile,
    TextPart,
    ToolPart,
    TurnSpec,
)

_MOST_OPAQUE = 512
"""Longer signatures and other values that only machines read get a file; in characters."""

_BASE64 = re.compile(rf"[A-Za-z0-9+/=_-]{{{_MOST_OPAQUE + 1}}}")

_MOST_TEXT = 64 * 1024
"""Longer texts get a file; in characters."""


def with_files(turn: TurnSpec, new_file: Callable[[], str]) -> tuple[TurnSpec, dict[str, bytes]]:
    """The turn with its long values as `TextFile`, and the contents of their files.

    Args:
        new_file: the name of a file that is not there yet.
    """
    files: dict[str, bytes] = {}

    def stored(text: str | None, most: int) -> str | None:
        if text is None or len(text) <= most or isinstance(text, TextFile):
            return text
        file = TextFile(text, new_file())
        files[file.file] = text.encode()
        return file

    def part_of(part: Any) -> Any:
        match part:
            case TextPart(split=split) | ReasoningPart(split=split):
                most = _MOST_TEXT if not isinstance(split, tuple) else len(part.text)
                text = stored(part.text, most) or ""
                return replace(part, text=text, signature=stored(part.signature, _MOST_OPAQUE))
            case ToolPart():
                return replace(part, signature=stored(part.signature, _MOST_OPAQUE))
            case ServerToolPart():
                most = _MOST_TEXT if _is_readable(part.output or "") else _MOST_OPAQUE
                return replace(part, output=stored(part.output, most))
            case FramePart(data=data) if data is not None:
                text = data if isinstance(data, str) else compact(data)
                found = stored(text, _MOST_TEXT if _is_readable(text) else _MOST_OPAQUE)
                return replace(part, data=found) if isinstance(found, TextFile) else part
            case ParallelPart(calls=calls):
                return replace(part, calls=tuple(map(part_of, calls)))
            case InterleavedPart(parts=parts):
                return replace(part, parts=tuple(map(part_of, parts)))
        return part

    return replace(turn, reply=tuple(map(part_of, turn.reply))), files


def _is_readable(text: str) -> bool:
    return _BASE64.search(text) is None


def files_of(turn: TurnSpec) -> set[str]:
    """The names of the files that hold long values of a turn."""
    found: set[str] = set()

    def search(part: AnyPart) -> None:
        match part:
            case ParallelPart(calls=members) | InterleavedPart(parts=members):
                for member in members:
                    search(member)
            case _:
                for name in ("text", "signature", "output", "data"):
                    value = getattr(part, name, None)
                    if isinstance(value, TextFile):
                        found.add(value.file)

    for part in turn.reply:
        search(part)
    return found
