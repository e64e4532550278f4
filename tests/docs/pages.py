"""Reads pages of docs/."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def text_of(*names: str) -> str:
    """The text of pages, in this order."""
    return "\n".join((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in names)
