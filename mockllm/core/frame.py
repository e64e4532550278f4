"""One event of a stream as fields: what every framing is read into and written from. Only data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Frame", "LineEnd"]


LineEnd = Literal["lf", "crlf", "cr"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of the stream, or one comment, or (`raw`) text sent exactly as it is.

    `retry` is in milliseconds. `data` of None means that no `data` line was there.
    """

    data: str | None = None
    event: str | None = None
    id: str | None = None
    retry: int | None = None
    comment: str | None = None
    raw: str | None = None
