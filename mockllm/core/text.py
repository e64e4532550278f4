"""How messages quote texts and values: on one line, and not at any length."""

from __future__ import annotations

__all__ = ["display", "shorten"]

_DISPLAYED = 120


def shorten(
    text: str, limit: int, *, keep: int | None = None, tail: int = 0, mark: str = "…"
) -> str:
    """The text if it has at most `limit` characters, else its beginning, a mark and its end.

    Args:
        limit: in characters.
        keep: how many characters of the beginning are kept; default: `limit`.
        tail: how many characters of the end are kept.
        mark: what stands for the characters that are left out.
    """
    if len(text) <= limit:
        return text
    return f"{text[: limit if keep is None else keep]}{mark}{text[len(text) - tail :]}"


def display(value: object) -> str:
    """The `repr` of a value, with its length where it is shortened."""
    text = repr(value)
    return shorten(text, _DISPLAYED, mark=f"… ({len(text)} characters)")
