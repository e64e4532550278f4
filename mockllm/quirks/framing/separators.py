"""A quirk of framing: characters that are no line ends, and look like some."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mockllm.core.turn import Part, Reasoning, Refusal, Text, Turn
from mockllm.quirks.base import Context, Item, Quirk, Variant
from mockllm.quirks.samples import TEXT
from mockllm.scenario.model import Api

__all__ = ["SEPARATORS"]

_WORDS: dict[Api, frozenset[str]] = {
    "chat": frozenset({"content", "refusal", "reasoning_content"}),
    "responses": frozenset({"text", "refusal", "delta"}),
    "anthropic": frozenset({"text", "thinking"}),
    "gemini": frozenset({"text"}),
    "agui": frozenset({"delta"}),
}
_TELLING = ("text.delta", "refusal.delta", "MESSAGE_CONTENT")
_NO_WORDS = frozenset({"functionCall", "groundingMetadata", "input", "logprobs", "tools"})
_DEEPEST = 12  # no protocol has its words deeper; frames of a scenario may hold anything


class _Separated:
    """Puts characters behind every character of what the model says.

    Character by character, so that text says the same however it was cut, and where an event
    repeats all of it.
    """

    def __init__(self, separators: str) -> None:
        self._separators = separators

    def frames(self, items: list[Item], context: Context) -> list[Item]:
        """The change of the frames."""
        for item in items:
            item.data = self._value(item.data, _WORDS[context.api])
        return items

    def meaning(self, turn: Turn) -> Turn:
        """What the frames say then."""
        return replace(turn, parts=tuple(map(self._part, turn.parts)))

    def _part(self, part: Part) -> Part:
        match part:
            case Text() | Reasoning() | Refusal():
                return replace(part, fragments=tuple(map(self._text, part.fragments)))
        return part

    def _text(self, text: str) -> str:
        return "".join(character + self._separators for character in text)

    def _value(self, value: Any, words: frozenset[str], depth: int = 0) -> Any:
        if depth == _DEEPEST:
            return value
        if isinstance(value, list):
            return [self._value(item, words, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        changed = {}
        for key, item in value.items():
            if isinstance(item, str) and key in words and _tells(key, value):
                changed[key] = self._text(item)
            else:
                inner = key not in _NO_WORDS
                changed[key] = self._value(item, words, depth + 1) if inner else item
        return changed


def _tells(key: str, event: dict[str, Any]) -> bool:
    """Whether a `delta` is one of words, not of arguments; other keys leave no doubt."""
    return key != "delta" or str(event.get("type")).endswith(_TELLING)


def _separators(name: str, characters: str, says: str) -> Variant:
    separated = _Separated(characters)
    return Variant(name, says, frames=separated.frames, meaning=separated.meaning)


SEPARATORS = Quirk(
    name="sse-unicode-line-separators",
    group="F",
    title="Characters in the text that some libraries take for line ends",
    servers="any, when a model writes them",
    right="same",
    correct="Only CR and LF end a line; the text is unchanged",
    faults="The event is cut in two: an error about JSON, or lost text",
    invariant="chunking-free",
    sample=TEXT,
    sources=(
        "florimondmanca/httpx-sse#34",
        "florimondmanca/httpx-sse#37",
        "modelcontextprotocol/python-sdk#1356",
        "modelcontextprotocol/typescript-sdk#1925",
        "modelscope/evalscope#1642",
        "langgenius/dify#39008",
        "langchain-ai/langgraph#2560",
        "Soju06/codex-lb#1010",
    ),
    variants=(
        _separators("all", "\u2028\u2029\u0085", "U+2028, U+2029, U+0085 in the text"),
        _separators("line-separator", "\u2028", "U+2028 in the text"),
        _separators("paragraph-separator", "\u2029", "U+2029 in the text"),
        _separators("next-line", "\u0085", "U+0085 in the text"),
        _separators(
            "controls",
            "\x0b\x0c\x1c\x1d\x1e",
            "U+000B, U+000C, U+001C to U+001E in the text, escaped as JSON demands",
        ),
    ),
)
