"""A quirk of framing: characters that Python's `splitlines` and others treat as line ends.

Section 9.2.5 of the SSE specification ends lines at CR, LF and CRLF only.
"""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.turn import Part, Reasoning, Refusal, Text, Turn
from mockllm.protocols import PROTOCOLS
from mockllm.quirks.base import Context, Item, Quirk, Variant
from mockllm.quirks.samples import TEXT


class _Separated:
    """Adds separators after every character of the model's text. Each character is changed by
    itself, so the deltas and an event that repeats the whole text (`response.output_text.done`)
    stay consistent, however the text is cut."""

    def __init__(self, separators: str) -> None:
        self._separators = separators

    def frames(self, items: list[Item], context: Context) -> list[Item]:
        """The change of the frames."""
        for item in items:
            item.data = PROTOCOLS[context.api].events.map_text(item.data, self._text)
        return items

    def expected(self, turn: Turn) -> Turn:
        """The turn with the same change."""
        return replace(turn, parts=tuple(map(self._part, turn.parts)))

    def _part(self, part: Part) -> Part:
        match part:
            case Text() | Reasoning() | Refusal():
                return replace(part, fragments=tuple(map(self._text, part.fragments)))
        return part

    def _text(self, text: str) -> str:
        return "".join(character + self._separators for character in text)


def _separators(name: str, characters: str) -> Variant:
    separated = _Separated(characters)
    return Variant(name, frames=separated.frames, expected=separated.expected)


SEPARATORS = Quirk(
    "sse-unicode-line-separators",
    TEXT,
    (
        _separators("all", "\u2028\u2029\u0085"),
        _separators("line-separator", "\u2028"),
        _separators("paragraph-separator", "\u2029"),
        _separators("next-line", "\u0085"),
        _separators("controls", "\x0b\x0c\x1c\x1d\x1e"),
    ),
)
