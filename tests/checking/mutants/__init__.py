"""Accumulators with one mistake each, all of which real clients have made.

Each is one of the kit's reference accumulators with a few lines changed. A name in backquotes is
the quirk that shows the mistake. Reports name these classes and modules, and the golden record
holds the reports: a new name changes its digests.
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
