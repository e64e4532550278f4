"""One event of a stream as fields, independent of the framing. Only data may live here."""

from __future__ import annotations

from typing import Literal

from mockllm.core.record import record

LineEnd = Literal["lf", "crlf", "cr"]


@record
class Frame:
    """One event of the stream, or one comment, or (`raw`) text that is sent unchanged.

    `retry` is in milliseconds. `data` is None if there is no `data` line.
    """

    data: str | None = None
    event: str | None = None
    id: str | None = None
    retry: int | None = None
    comment: str | None = None
    raw: str | None = None
