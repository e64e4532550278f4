"""What a service makes up anew for each answer, and the form of a body among its events. Pure."""

from __future__ import annotations

from typing import Any

from mockllm.protocols.base import WireProtocol
from mockllm.protocols.records import Normalisation


def in_envelope(protocol: WireProtocol, body: dict[str, Any]) -> dict[str, Any]:
    """A body as the events of a stream hold it."""
    envelope = protocol.normalize.envelope
    return {envelope: body} if envelope else body


def answer_in(protocol: WireProtocol, value: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `in_envelope`."""
    envelope = protocol.normalize.envelope
    inner: dict[str, Any] = value[envelope] if envelope else value
    return inner


def is_made_up(rules: Normalisation, path: str, key: str, type: object = None) -> bool:
    """Whether a comparison leaves out a field.

    Args:
        path: of the object that has it, with dots.
        type: of the event.
    """
    inner = f"{path}.{key}" if path else key
    only = rules.answer_fields.get(path)
    replaced = rules.replaced.get(type) if isinstance(type, str) else None
    repeated = replaced is not None and inner == f"item.{replaced}"
    return inner in rules.made_up or (only is not None and key not in only) or repeated
