"""The error that a failed answer carries, in whatever shape, and how long to wait. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.core.text import shorten
from mockllm.protocols.base import WireProtocol
from mockllm.scenario.durations import MAX_DURATION
from mockllm.scenario.model import ErrorSpec
from mockllm.tapes.captured import Captured

__all__ = ["error_of", "retry_after_of"]

_MAX_TEXT = 300


def error_of(protocol: WireProtocol, value: object, text: str) -> ErrorSpec:
    """The error in a body: in the shape of its API, in any other shape, or at least its text.

    Args:
        value: the JSON value of the body; None where it is no JSON.
    """
    own = protocol.decode_error(value) if isinstance(value, Mapping) else None
    if own is not None:
        return ErrorSpec(own.message, own.type, own.code)
    found = value[0] if isinstance(value, list) and value else value
    if isinstance(found, Mapping):
        found = found.get("error") or found
    if not isinstance(found, Mapping):
        return ErrorSpec(_short(found if isinstance(found, str) else text))
    message = found.get("message") or found.get("detail")
    type, code = (found.get(name) for name in ("type", "code"))
    return ErrorSpec(
        _short(message if isinstance(message, str) else text),
        type if isinstance(type, str) else None,
        code if isinstance(code, str) else None,
    )


def _short(text: str) -> str | None:
    line = " ".join(text.split())
    return shorten(line, _MAX_TEXT, mark="...") or None


def retry_after_of(plain: Captured) -> float | None:
    """The seconds that the service asks to wait; None where it names no number of seconds."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(plain.header(name)) / unit
        except ValueError:
            continue
        if 0 <= seconds <= MAX_DURATION / 1_000_000:
            return seconds
    return None
