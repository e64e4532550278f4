"""The kinds of secrets in docs/secrets.md."""

from __future__ import annotations

from tests.docs.secrets_page import BEGIN, END, PAGE, with_page


def test_the_kinds_are_up_to_date() -> None:
    """The document is as generated: `python -m tests.docs.secrets_page` writes it."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert text == with_page(text)
