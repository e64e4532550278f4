"""E-mail addresses with letters of any language."""

from __future__ import annotations

import pytest

from mockllm.record.redaction.find.personal import emails, is_address


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("an Björk@corp.io.", "Björk@corp.io"),
        ("an bjo\u0308rk@corp.io", "bjo\u0308rk@corp.io"),
        ("Ørsted.Ærø+x@corp.io", "Ørsted.Ærø+x@corp.io"),
        ("пишите: иван@почта.рф", "иван@почта.рф"),
        ("anna@büro.example", "anna@büro.example"),
        ("anna@xn--bro-hoa.xn--p1ai!", "anna@xn--bro-hoa.xn--p1ai"),
        ("联系eve@corp.io谢谢", "eve@corp.io"),
        ("x:日本@corp.io", "日本@corp.io"),
    ],
)
def test_an_address_with_other_letters(text: str, found: str) -> None:
    """All of the mailbox and of the domain, without the words around it that have no space."""
    assert [text[slice(*span)] for span in emails(text)] == [found]
    assert is_address(found)
    assert not is_address(f"to {found}")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("via the@agent.instructions\nargument", []),
        ("carried via@agent.tool", []),
        ("bob@corp.comThanks", ["bob@corp.com"]),
        ("bob@corp.com.Thanks", ["bob@corp.com"]),
        ("иван@почта.рфпривет", ["иван@почта.рф"]),
        ("eve@mail.corp, eve@db.internal", ["eve@mail.corp", "eve@db.internal"]),
    ],
)
def test_the_top_level_domain_exists(text: str, found: list[str]) -> None:
    """Where it does not, there is no address; what a text without spaces adds is no part of it."""
    assert [text[slice(*span)] for span in emails(text)] == found
