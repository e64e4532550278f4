"""Bytes with a time, of which an answer's body consists. Only data may live here."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TimedBytes"]


@dataclass(frozen=True, slots=True)
class TimedBytes:
    """Bytes that are sent together, and when, in microseconds after the request."""

    at: int
    data: bytes
