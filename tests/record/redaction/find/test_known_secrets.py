"""Secrets that are known are found wherever they are, and parts of them too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.record.redaction.find.spans import MIN_MATCH, KnownSecrets
from tests.cases import for_all

LONG = "abcdefghijklmnopqrstuvwxyz"


def find(text: str, *secrets: str) -> list[tuple[str, tuple[int, int]]]:
    return list(KnownSecrets(secrets).find(text))


@for_all("start", range(14))
@for_all("before", [0, 1, 5, 6, 11])
def test_any_twelve_characters_are_found(start: int, before: int) -> None:
    """At any position of the text and of the secret."""
    part = LONG[start : start + 12]
    for after in ("", "!"):
        assert find("." * before + part + after, LONG) == [(LONG, (before, before + 12))]
    assert find("." * before + part[1:] + "!", LONG) == []


def test_the_longest_part_is_found() -> None:
    """As far as text and secret are equal, to both sides."""
    assert find(f"x{LONG[2:20]}y", LONG) == [(LONG, (1, 19))]
    assert find(LONG, LONG) == [(LONG, (0, 26))]
    assert find(f"{LONG} {LONG}", LONG) == [(LONG, (0, 26)), (LONG, (27, 53))]
    assert find(f"{LONG[:13]}.{LONG[5:20]}", LONG) == [(LONG, (0, 13)), (LONG, (14, 29))]


def test_of_several_the_longest_match_counts() -> None:
    """And of equal ones the first."""
    other = "0123456789" + LONG[:14]
    assert find(LONG[:14], LONG, other) == [(LONG, (0, 14))]
    assert find(LONG[:14], other, LONG) == [(other, (0, 14))]
    assert find(f"89{LONG[:14]}", LONG, other) == [(other, (0, 16))]


def test_the_time_in_an_id_is_no_part_of_it() -> None:
    """Ids of one moment begin alike; the whole one, and any part behind the time, is found."""
    session, other = "01a226d2-ac11-72b2-9855-e08e5cbd6139", "01a226d2-ac18-7a40-91ae-479dcebfa67f"
    assert find(f"id={other}", session) == []
    assert find(f"id={session}:0", session) == [(session, (3, 39))]
    assert find("72b2-9855-e08e", session) == [(session, (0, 14))]


@given(st.text("abc", min_size=12, max_size=30), st.text("abc.", max_size=20), st.integers(0, 18))
def test_what_is_found_is_in_both(secret: str, noise: str, at: int) -> None:
    """Whatever the text, and a part of twelve characters is never missed. Parts that overlap in the
    text are found as one."""
    part = secret[at % (len(secret) - 11) :][:12]
    text = f"{noise}{part}{noise}"
    found = find(text, secret)
    assert found or len(set(part)) < 3
    for known, (start, end) in found:
        assert known == secret
        assert end - start >= MIN_MATCH
        assert text[start : start + MIN_MATCH] in secret
        assert text[end - MIN_MATCH : end] in secret


@for_all(
    ("secret", "text", "spans"),
    [
        ("pass1word", "my pass1word!", [(3, 12)]),
        ("pass1word", "mypass1word", []),
        ("pass1word", "pass1words", []),
        ("pass1word", "pass1word pass1word", [(0, 9), (10, 19)]),
        ("pass1wor", "pass1wor", [(0, 8)]),
        ("pass1wo", "pass1wo", []),
        ("password", "password", []),
        ("pass word", "a pass word b", [(2, 11)]),
        ("p.ss1word", "pass1word", []),
        ("twelve3chars", "xtwelve3charsx", [(1, 13)]),
        ("eleven3char", "xeleven3charx", []),
    ],
)
def test_short_secrets_are_whole_words(
    secret: str, text: str, spans: list[tuple[int, int]]
) -> None:
    """Of eight characters at least; those that could be words are passed over."""
    assert find(text, secret) == [(secret, span) for span in spans]


def test_of_short_secrets_the_longest_counts() -> None:
    """Where one is the beginning of another."""
    assert find("pass1word/2", "pass1word", "pass1word/2") == [("pass1word/2", (0, 11))]


def test_a_repeated_character_is_no_part() -> None:
    """Zeros and padding are everywhere; beside other characters they are a part of the secret."""
    token = f"{'A' * 20}MLheAAAABBBB{'0' * 20}"
    zeros = "A" * 100
    assert find(f"{zeros}!{'0' * 100}", token) == []
    assert find(f"{zeros}!{token}!{zeros}", token) == [(token, (101, 101 + len(token)))]


def test_names_are_whole_words() -> None:
    """Of accounts: their parts are in other names too."""
    text = "github.com/acme-corp/acme-corp-tools and acme-corp-tools-team, acme-co"
    known = KnownSecrets((), ["acme-corp-tools-team", "acme-co"])
    assert list(known.find(text)) == [("acme-corp-tools-team", (41, 61))]


def test_keys_that_begin_alike() -> None:
    """Each is found as itself; what they share counts as a part of the first."""
    first, second = (f"sk-ant-api03-{word}" for word in ("Zq8x0Vb2Nm4K", "Hj7w9Tc3Rp5L"))
    assert [secret for secret, _ in find(f"{second} {first}", first, second)] == [second, first]
    assert find("sk-ant-api03-...", first, second) == [(first, (0, 13))]


@pytest.mark.parametrize(
    ("secrets", "short"),
    [(["pass1word"], True), (["pass1word", LONG], True), ([LONG], False), (["password"], False)],
)
def test_whether_short_ones_are_among_them(secrets: list[str], short: bool) -> None:
    """Then no text is too short to be searched."""
    assert KnownSecrets(secrets).short == short
    assert not KnownSecrets(()).short


def test_the_domain_of_an_address_is_no_secret() -> None:
    """Many share it; the mailbox is searched with its `@`."""
    address = "eve.longname@corp.example"
    assert find("ask eve.longname@other.example", address) == [(address, (4, 17))]
    assert find("ask bob@corp.example", address) == []
    assert find("evename1@ x", "evename1@corp.io") == [("evename1@", (0, 9))]
    assert find("evename1 x", "evename1@corp.io") == []
    strange = "user@name@host.example"
    assert find(strange, strange) == [(strange, (0, 22))]
    assert find("localuser123@host", "localuser123@host") == [("localuser123@host", (0, 17))]
