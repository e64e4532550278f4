"""What looks like a secret in a text: where it begins and ends, and what is none."""

from __future__ import annotations

import pytest

from mockllm.record.redaction.find.patterns import (
    PATTERNS,
    Pattern,
    candidates,
    credentials_in,
    part_at_end,
)
from mockllm.record.redaction.find.personal import emails
from mockllm.record.redaction.find.secret_names import (
    could_be_password,
    has_letters_and_digits,
    looks_generated,
    looks_random,
)
from tests.cases import for_all


def credentials(text: str) -> list[tuple[str, str]]:
    return [(kind, text[slice(*span)]) for kind, span in credentials_in(text)]


def test_the_pattern_of_a_kind() -> None:
    """The first group is the secret, or all of a match; `accepts` refuses what only looks so."""
    whole = Pattern("k", ("a",), "a[0-9]+")
    assert list(whole.find("a1 a22 b3")) == [(0, 2), (3, 6)]
    group = Pattern("k", ("a",), "a([0-9])([0-9])?")
    assert list(group.find("a1 a22")) == [(1, 2), (4, 5)]
    chosen = Pattern("k", ("a",), "a([0-9]+)", lambda value: value == "22")
    assert list(chosen.find("a1 a22")) == [(4, 6)]


def test_the_candidates_of_a_text() -> None:
    """Each pattern whose trigger is there, once, in the order of the table; those of keys only
    beside a run of 16 letters, digits, `_` and `-`."""
    assert candidates("plain text") == []
    assert [candidate.kind for candidate in candidates("AKIA ASIA sk- earer")] == ["token"]
    assert [candidate.kind for candidate in candidates("sk- " + "a" * 15)] == []
    found = candidates("AKIA ASIA whsec_ earer " + "a" * 16)
    assert [one.kind for one in found] == ["AWS access key", "Stripe key", "token"]
    assert found == [pattern for pattern in PATTERNS if pattern in found]


@for_all(
    ("text", "found"),
    [
        ('api_key = "abcdef1"', "abcdef1"),
        ("api_key='abcdefghij'", "abcdefghij"),
        ("API-KEY: abcdefg1", "abcdefg1"),
        ('"apiKey":"abcdef1"', "abcdef1"),
        ("password=abcdefg1,", "abcdefg1"),
        ("password=abcdefg1.", "abcdefg1"),
        ("my_client_secret : abcdefg1", "abcdefg1"),
        ("secret=abcdefgh12345678", "abcdefgh12345678"),
        ("token: abcdefgh1234567890", "abcdefgh1234567890"),
        ("OPENAI_API_KEY=abcdefg1", "abcdefg1"),
    ],
)
def test_a_value_after_its_name(text: str, found: str) -> None:
    """With `=` or `:`, in quotation marks or not."""
    assert credentials(text) == [("password or key", found)]


@pytest.mark.parametrize(
    "text",
    [
        "api_key = abcdefgh",
        'api_key = "abcdef"',
        "api_key abcdefg1",
        "api_key  ,  abcdefg1",
        "secret=abcdefg1",
        "secret=abcdefgh1234567",
        "monkey=abcdefg1",
        "password=abcd1",
        "api_key =      abcdefg1",
    ],
)
def test_a_value_that_is_no_secret(text: str) -> None:
    """Too short for its name, a word, or too far away."""
    assert credentials(text) == []


def test_several_values_after_their_names() -> None:
    """Each with its own name; a long text before does not belong to the name."""
    text = "password=abcdefg1 api_key=hijklmn2"
    assert [credential for _, credential in credentials(text)] == ["abcdefg1", "hijklmn2"]
    assert [credential for _, credential in credentials("x" * 40 + "_password=abcdefg1")] == [
        "abcdefg1"
    ]


@for_all(
    ("text", "part"),
    [
        ("see sk-Abcdefgh1", "sk-Abcdefgh1"),
        ("sk-Abcdefg", None),
        ("xsk-Abcdefgh1", None),
        ("sk-Abcdefgh1 ", None),
        ("sk-abcdefgh", None),
        ("sk-" + "A" * 253, "sk-" + "A" * 253),
        ("sk-" + "A" * 254, None),
        ("AKIAABCDEFGH", "AKIAABCDEFGH"),
        ("github_pat_AB12", "github_pat_AB12"),
        ("plain", None),
        ("", None),
    ],
)
def test_a_part_of_a_key_at_the_end(text: str, part: str | None) -> None:
    """Where a stream was cut within a key; only the last 256 characters are looked at."""
    span = part_at_end(text)
    assert (None if span is None else text[slice(*span)]) == part


@for_all(
    ("text", "found"),
    [
        ("eve@corp.io", ["eve@corp.io"]),
        ("to: Eve.O'Neil+x_y%z-1@Mail.Corp.example!", ["Eve.O'Neil+x_y%z-1@Mail.Corp.example"]),
        ("a@b.cc, c@d.ee", ["a@b.cc", "c@d.ee"]),
        ("(eve@corp.io)", ["eve@corp.io"]),
        ("'eve@corp.io'", ["eve@corp.io"]),
        ("..eve@corp.io", ["eve@corp.io"]),
        ("%eve@corp.io", ["eve@corp.io"]),
        ("x:日本@corp.io", ["日本@corp.io"]),
        ("git@github.com", []),
        ("git@github.com and eve@corp.io", ["eve@corp.io"]),
        ("icon@2x.png", []),
        ("icon@2x.PNG", []),
        ("@corp.io", []),
        (" @corp.io", []),
        ("eve@corp", []),
        ("eve@corp.i", []),
        ("eve@-corp.io", []),
        ("eve at corp.io", []),
        ("ev\0e@corp.io", []),
        ("https://user:pass@corp.io", []),
        ("https://user:x/eve@corp.io", ["eve@corp.io"]),
        ("mailto:eve@corp.io", ["eve@corp.io"]),
        ("x" * 200 + "@corp.io", ["x" * 128 + "@corp.io"]),
    ],
)
def test_addresses(text: str, found: list[str]) -> None:
    """Mailbox and domain; what is a file, a repository or a password is none."""
    assert [text[slice(*span)] for span in emails(text)] == found


@pytest.mark.parametrize(
    ("value", "random"),
    [
        ("sk-abc", False),
        ("sk-abcD", True),
        ("sk-abc1", True),
        ("sk-" + "a" * 20, True),
        ("sk-" + "a" * 19, False),
        ("SK-abc", False),
        ("abc", False),
        ("ABC", True),
        ("ABC-", True),
        ("figd_Abc-def", True),
        ("SG.abc-def.ghi", False),
    ],
)
def test_what_looks_random(value: str, random: bool) -> None:
    """Words in lower case after the first word do not."""
    assert looks_random(value) == random


@for_all(
    ("value", "both", "generated", "password"),
    [
        ("abc123", True, True, True),
        ("abc12", True, False, True),
        ("ab123", True, False, True),
        ("abcdef", False, False, False),
        ("abcdefghij", False, False, True),
        ("abcdefghi", False, False, False),
        ("123456", False, False, True),
        ("ABC123", True, True, True),
        ("$abc123", True, True, False),
        ("<abc123", True, True, False),
        ("{abc123", True, True, False),
        ("550e8400-e29b-41d4-a716-446655440000", True, False, True),
        ("550e8400-e29b-41d4-a716-446655440000a", True, True, True),
        ("", False, False, True),
    ],
)
def test_what_could_be_a_password(value: str, both: bool, generated: bool, password: bool) -> None:
    """Not the name of a type or a variable; a UUID is an identifier."""
    assert has_letters_and_digits(value) == both
    assert looks_generated(value) == generated
    assert could_be_password(value) == password
