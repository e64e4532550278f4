"""The reason phrases of HTTP status lines (RFC 9112, section 4)."""

from __future__ import annotations

from http import HTTPStatus


def reason_phrase(status: int) -> str:
    """The usual phrase of a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else "Unknown"


def unusual_reason(status: int, reason: str | None) -> str | None:
    """A reason phrase as received, which may be empty; None for the usual one, or an unknown
    one."""
    return None if reason == reason_phrase(status) else reason
