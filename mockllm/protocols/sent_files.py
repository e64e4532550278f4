"""Readers of the images and files in messages, as the protocols share them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mockllm.core.request import SentFile
from mockllm.protocols.values import string


def sent_by_url(url: object, media_type: str) -> SentFile | None:
    """A file by its URL or id, or from a data URL (RFC 2397); None for what is no text, or "".

    Args:
        media_type: of what is no data URL: `image/*`.
    """
    text = string(url)
    if not text:
        return None
    head, comma, data = text.partition(",")
    if not head.startswith("data:") or not comma:
        return SentFile(media_type, reference=text)
    return SentFile(head[5:].partition(";")[0] or media_type, data)


def sent_as_base64(data: object, media_type: str) -> SentFile | None:
    """A file from its base64; None for what is no text, or ""."""
    return SentFile(media_type, string(data)) if string(data) else None


def found(files: Iterable[SentFile | None]) -> tuple[SentFile, ...]:
    """The files without those that are missing."""
    return tuple([file for file in files if file is not None])


def of_openai(content: object) -> tuple[SentFile, ...]:
    """The files in the parts of a message, as the APIs of OpenAI write them."""
    if not isinstance(content, list):
        return ()
    return found(_of_openai(part) for part in content if isinstance(part, Mapping))


def _of_openai(part: Mapping[str, object]) -> SentFile | None:
    kind = part.get("type")
    given = part.get(kind) if isinstance(kind, str) else None
    inner = given if isinstance(given, Mapping) else part
    match kind:
        case "image_url":
            return sent_by_url(inner.get("url") or given, "image/*")
        case "input_image":
            return sent_by_url(part.get("image_url") or part.get("file_id"), "image/*")
        case "input_audio":
            return sent_as_base64(inner.get("data"), f"audio/{string(inner.get('format')) or '*'}")
        case "file" | "input_file":
            names = ("file_data", "file_id", "file_url")
            return sent_by_url(next(filter(None, map(inner.get, names)), None), "*/*")
    return None
