"""Bytes with a time: what an answer's body is made of. Only data may live here."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TimedBytes"]


@dataclass(frozen=True, slots=True)
class TimedBytes:
    """Bytes that are sent together, and when: microseconds after the request."""

    at: int
    data: bytes
