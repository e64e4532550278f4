"""Secrets that a text announces: passwords that are words, connection strings, quoted headers."""

from __future__ import annotations

import pytest

from mockllm.record.redaction.find.secret_names import find_assignments
from tests.cases import for_all


def found(text: str) -> list[tuple[str, str]]:
    return [(kind, text[slice(*span)]) for kind, span in find_assignments(text)]


@for_all(
    ("text", "secret"),
    [
        ("Server=db;Uid=app;Pwd=hunter;", "hunter"),
        ("Server=db;Password=pw;Uid=app", "pw"),
        ("Uid=app; Pwd='a b c'", "a b c"),
        ('Uid=app;Pwd="correct horse";', "correct horse"),
        ("password=swordfish and more", "swordfish"),
        ("password=correct-horse-battery", "correct-horse-battery"),
        ("Your password: swordfish", "swordfish"),
        ("Your password: swordfish.\nBye", "swordfish"),
        ("passphrase: open-sesame\r\nnext", "open-sesame"),
        ("PWD=Swordfish!", "Swordfish"),
        ("password=" + "abcdefghi" * 99, "abcdefghi" * 99),
        ("api_key=" + "a1b2c3d4_" * 99, "a1b2c3d4_" * 99),
    ],
)
def test_a_password_that_is_a_word(text: str, secret: str) -> None:
    """Right after `=`, as the last of its line after `:`, or between semicolons; all of it."""
    assert found(text) == [("password or key", secret)]


@for_all(
    "text",
    [
        "the password: should contain a digit",
        "password: string;",
        "password=undefined",
        "Pwd=required;",
        "password: string",
        "password=getpass();",
        "password = input()",
        "password: ********",
        "password=your-password-here",
        "password=$PASSWORD;",
        "password=%PASSWORD%;",
        "password: ",
        "password:",
        "the password is swordfish",
        "token=swordfish-and-more",
        "next_page_token=abcdefgh1234567890",
        "Key: uploads/abcdefgh1234567890",
        "sort_key=abcdefgh1234567890",
        "max_tokens=12345678",
    ],
)
def test_what_is_no_password(text: str) -> None:
    """Prose about passwords, types, variables and calls; names that only end like a secret's."""
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Token 9944b09199c62bcf", "9944b09199c62bcf"),
        ("curl -H 'Authorization: Token token9944b091' x", "token9944b091"),
        ('{"authorization": "Bot MTk4NjIyNDgz"}', "MTk4NjIyNDgz"),
        ("AUTHORIZATION: ApiKey AbCdEfGhIjKlMnOpQr", "AbCdEfGhIjKlMnOpQr"),
    ],
)
def test_a_header_authorization(text: str, secret: str) -> None:
    """With any scheme."""
    assert ("token", secret) in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Token YOUR_API_TOKEN",
        "Authorization: Bearer <token>",
        "Authorization: Token $TOKEN_1234",
        "Authorization: token required",
    ],
)
def test_a_header_with_a_variable(text: str) -> None:
    """The name of a variable is no credential."""
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Cookie: session=abc; theme=dark", "session=abc; theme=dark"),
        ("curl -H 'Cookie: sid=a1b2c3' x", "sid=a1b2c3"),
        ("set-cookie: id=42; Path=/; HttpOnly", "id=42; Path=/"),
    ],
)
def test_a_header_cookie(text: str, secret: str) -> None:
    """All pairs of it."""
    assert ("cookie", secret) in found(text)


def test_positions_beside_letters_that_grow() -> None:
    """A letter that is longer in lower case moves nothing."""
    assert found("İİİ password=swordfish") == [("password or key", "swordfish")]
