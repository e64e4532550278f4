"""Accumulators with one mistake each, all of which real clients have made.

Each is one of the kit's reference accumulators, which are right, with a few lines put wrongly. A
name in backquotes is that of the quirk, or of the entry among the quirks, that the mistake was
seen with.
"""

from __future__ import annotations

from tests.checking.mutants import (
    agui,
    anthropic,
    byte_lines,
    chat_calls,
    chat_ends,
    chat_words,
    gemini,
    intermediate,
    responses,
)
from tests.checking.mutants.declared import MUTANTS, Mutant

__all__ = [
    "MUTANTS",
    "Mutant",
    "agui",
    "anthropic",
    "byte_lines",
    "chat_calls",
    "chat_ends",
    "chat_words",
    "gemini",
    "intermediate",
    "responses",
]
