"""The keys of services: each kind is found, and the patterns take linear time."""

from __future__ import annotations

import json
import random
import re
import string
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mockllm.record.redaction.find.finder import Finder
from mockllm.record.redaction.find.patterns import (
    PATTERNS,
    Detector,
    candidates,
    credentials_in,
    gitleaks_rules,
)
from mockllm.record.redaction.find.personal import PERSONAL
from mockllm.record.redaction.find.secret_names import entropy
from tests.cases import for_all

HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits


def drawn(count: int, alphabet: str = ALNUM, seed: int = 1) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=count - 2)) + "a1"


KEYS = {
    "Telegram token": f"7123456789:AA{drawn(33)}",
    "Discord token": f"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{drawn(27)}",
    "Docker token": f"dckr_pat_{drawn(27)}",
    "Vault token": f"hvs.{drawn(90)}",
    "Shopify token": f"shpat_{drawn(32, HEX)}",
    "Grafana token": f"glsa_{drawn(32)}_{drawn(8, HEX)}",
    "Sentry token": f"sntryu_{drawn(64, HEX)}",
    "Atlassian token": f"ATATT3xFfGF0{drawn(170)}",
    "Linear key": f"lin_api_{drawn(40)}",
    "Notion token": f"ntn_{drawn(46)}",
    "Figma token": f"figd_{drawn(40)}",
    "Supabase key": f"sbp_{drawn(40, HEX)}",
    "Twilio key": f"SK{drawn(32, HEX)}",
    "Twilio account": f"AC{drawn(32, HEX)}",
    "Mailgun key": f"key-{drawn(32, HEX)}",
    "Fireworks key": f"fw_{drawn(24)}",
    "Voyage key": f"pa-{drawn(43)}",
    "ElevenLabs key": f"sk_{drawn(48, HEX)}",
    "SendGrid key": f"SG.{drawn(22)}.{drawn(43)}",
    "doppler-api-token": f"dp.pt.{drawn(43, HEX)}",
    "postman-api-token": f"PMAK-{drawn(24, HEX)}-{drawn(34, HEX)}",
}

UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
URL_SAFE = f"{ALNUM}-_"
CAPITALS = string.ascii_uppercase + string.digits
PREFIXES = {
    "NRAK-": (CAPITALS, 27),
    "nfp_": (ALNUM, 36),
    "tskey-auth-": (ALNUM, 44),
    "sk_prod_": (ALNUM, 24),
    "CFPAT-": (URL_SAFE, 43),
    "tfp_": (f"{ALNUM}-_.=", 59),
    "oy2": (string.ascii_lowercase + string.digits, 43),
    "sl.": (f"{URL_SAFE}=", 135),
    "xoxc-": (f"{ALNUM}-", 60),
    "xoxd-": (f"{ALNUM}%+/=-", 60),
    "ABIA": (CAPITALS, 16),
    "EAAB": (ALNUM, 150),
    "sq0csp-": (URL_SAFE, 43),
    "rzp_live_": (ALNUM, 14),
    "tgp_v1_": (URL_SAFE, 43),
    "e2b_": (HEX, 40),
    "fc-": (HEX, 32),
    "jina_": (ALNUM, 60),
    "phx_": (ALNUM, 43),
    "napi_": (string.ascii_lowercase + string.digits, 64),
    "apify_api_": (ALNUM, 36),
    "wandb_v1_": (f"{ALNUM}_", 60),
    "figd_": (URL_SAFE, 40),
    "sb_secret_": (URL_SAFE, 31),
    "glpat-": (URL_SAFE, 20),
    "pypi-": (URL_SAFE, 100),
    "sk-proj-": (URL_SAFE, 80),
}
"""The beginnings of keys, the characters that follow, and how many."""


@for_all("prefix", PREFIXES)
def test_random_keys_of_a_service(prefix: str) -> None:
    """Each of many is found whole, wherever its hyphens are."""
    for seed in range(200):
        alphabet, count = PREFIXES[prefix]
        random_part = drawn(count, alphabet, seed)
        key = prefix + (random_part.upper() if alphabet == CAPITALS else random_part)
        text = f"the key is {key}, keep it"
        assert key in [text[slice(*span)] for _, span in credentials_in(text)]


@for_all(
    ("text", "secret"),
    [
        (f"SG.{'Abc-' * 5}x1.{'d-Ef' * 10}a1", f"SG.{'Abc-' * 5}x1.{'d-Ef' * 10}a1"),
        (f"pat-na1-{UUID}", f"pat-na1-{UUID}"),
        (f"amzn.mws.{UUID}", f"amzn.mws.{UUID}"),
        (f"sk.eyJ{'1a' * 20}.{'b2' * 11}", f"sk.eyJ{'1a' * 20}.{'b2' * 11}"),
        ('{"auth": "dXNlcjpwYXNzd29yZA=="}, see', "dXNlcjpwYXNzd29yZA=="),
        (r"{\"auth\":\"dXNlcjpwYXNzd29yZA==\"}", "dXNlcjpwYXNzd29yZA=="),
        (f'a key: {{"kty":"OKP","x":"a","d":"{drawn(43)}"}}', drawn(43)),
        ("<user>a</user><password>hunter2</password>", "hunter2"),
        ("machine a.example login joe password hunter", "hunter"),
        ("machine a.example\n login joe\n password hunter2\n", "hunter2"),
        ("password=abcdefg1&user=joe", "abcdefg1"),
        ("client_secret=a1&b2c3d4e&grant[type]=x", "a1&b2c3d4e"),
        ("password=p%40ss%26word1&x=1", "p%40ss%26word1"),
        ("DATADOG_API: 0123456789abcdef0123456789abcdef01234567",
         "0123456789abcdef0123456789abcdef01234567"),
        ("okta token => '00Ab3dEf6hIjKlMnOpQrStUvWxYz0123456789AbCd'",
         "00Ab3dEf6hIjKlMnOpQrStUvWxYz0123456789AbCd"),
    ],
)  # fmt: skip
def test_a_secret_by_its_place(text: str, secret: str) -> None:
    """Where a format or the name of a service says that it is one; a form's `&` ends a value."""
    assert secret in [text[slice(*span)] for _, span in credentials_in(text)]


@for_all(
    "text",
    [
        '{"auth": "YWJjZGVmZ2hpamtsbW5vcA=="}, see',
        "<password>string</password> <password>${env.PASSWORD}</password>",
        "the machine has login and password fields",
        "twitter, abcdefghijklmnopqrstuvwxy; discord: gpt-4o-mini-2024-07-18-and-so-on",
        '{"d": "M10 10 L 20 20 and 0123456789abcdef0123456789abcdef"}, a path',
    ],
)
def test_the_same_places_without_a_secret(text: str) -> None:
    """What is no key, and words in such places."""
    assert list(credentials_in(text)) == []


@for_all(
    ("value", "secrets"),
    [
        ({"kty": "EC", "x": "a" * 43, "d": drawn(43)}, {drawn(43)}),
        ({"keys": [{"kty": "oct", "k": drawn(22)}], "d": drawn(30)}, {drawn(22)}),
        ({"auths": {"a.example": {"auth": "dXNlcjpwYXNzd29yZA=="}}}, {"dXNlcjpwYXNzd29yZA=="}),
        ({"datadog": drawn(40, HEX)}, {drawn(40, HEX)}),
        (
            {
                "d": drawn(43),
                "auth": "none",
                "key": "claude-sonnet-4-5-20250929",
                "dog": drawn(40, HEX),
            },
            set(),
        ),
    ],
)
def test_fields_of_documents(value: dict[str, Any], secrets: set[str]) -> None:
    """The private fields of a JSON Web Key, Docker's `auth`, and the names of services."""
    found = Finder().find(json.dumps(value))
    assert {secret for finder in found for secret in finder.secrets()} == secrets


@for_all("kind", KEYS)
@for_all("around", ["{}", "my key is {}, keep it", '("{}")', "a={}\n", "x/{}."])
def test_the_key_of_a_service(kind: str, around: str) -> None:
    """All of it is found, whatever stands beside it, and nothing else."""
    text = around.format(KEYS[kind])
    found = {text[slice(*span)] for one, span in credentials_in(text) if one == kind}
    assert found == {KEYS[kind]}


@for_all("kind", KEYS)
def test_no_key_inside_a_word(kind: str) -> None:
    """After a letter or digit it is a part of something else."""
    text = f"Z{KEYS[kind]}"
    assert kind not in [one for one, _ in credentials_in(text)]


def test_webhooks_and_addresses_with_keys() -> None:
    """Of a URL only what opens something."""
    hook = f"https://discord.com/api/webhooks/198622483471925248/{drawn(68)}"
    assert [hook[slice(*span)] for kind, span in credentials_in(hook)] == [drawn(68)]
    dsn = f"https://{drawn(32, HEX)}@o1.ingest.us.sentry.io/42"
    assert [dsn[slice(*span)] for kind, span in credentials_in(dsn)] == [drawn(32, HEX)]


@for_all("rule", tuple(gitleaks_rules()), ids=[rule.kind for rule in gitleaks_rules()])
@pytest.mark.slow
def test_a_rule_of_gitleaks_finds_what_it_describes(rule: tuple[str, str, float, str]) -> None:
    """Its triggers lead to it, and the expression finds whatever has its form."""
    kind, _, least, regex = rule

    @settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.from_regex(re.compile(regex, re.ASCII), fullmatch=True))
    def finds(key: str) -> None:
        text = f"key: {key} {ALNUM}"
        assert kind in [candidate.kind for candidate in candidates(text)]
        if entropy(key) >= least:
            assert any(
                text[slice(*span)].startswith(key[:-3])
                for one, span in credentials_in(text)
                if one == kind
            )

    finds()


def test_a_word_that_is_no_key() -> None:
    """Prose, names in code, commits, identifiers and base64 are none."""
    text = (
        "internationalisation-wise characteristics-of-things call_8Zk1aBcDeFgHiJkLmNoPqRsT "
        "msg_0123456789abcdef0123456789abcdef chatcmpl-9xYzAbCdEfGhIjKlMnOpQrStUvWx1 "
        "da39a3ee5e6b4b0d3255bfef95601890afd80709 550e8400-e29b-41d4-a716-446655440000 "
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E "
        "this.s.abcdefghijklmnopqrstuvwx pa-ttern_with_a_hyphen_in_it secret_of_monkey_island_two"
    )
    assert list(Detector().find(text)) == []


# Time


def _near_misses() -> dict[str, str]:
    """Texts of 50 kB in which patterns nearly match, again and again."""
    size = 50_000
    starts = {trigger for pattern in PATTERNS for trigger in pattern.triggers}
    texts = {f"{start!r} alone": start * (size // len(start)) for start in sorted(starts)}
    for start in sorted(starts):
        unit = f"{start}{ALNUM[:15]}-"
        texts[f"{start!r} and letters"] = unit * (size // len(unit))
    for unit in (
        "-----BEGIN PRIVATE KEY-----", "-eyJ", "-eyJhbGciOiJIUzI1NiJ9.", "AKIAABCDEFGHIJKLMNOP ",
        "://a:b", "password=", "pwd=a;", "authorization: token ", "cookie: a=b; ", "@a.b", "a@",
        "1-", "4 ", "+1 ", "DE89", "key:", " ", "\\n", "key = '", "a" * 50 + ".",
    ):  # fmt: skip
        texts[f"{unit!r} repeated"] = unit * (size // len(unit))
    return texts


@pytest.mark.slow
def test_searching_takes_linear_time() -> None:
    """50 kB of any near miss take at most 40 times as long for each character as 50 kB of prose
    with signs and runs; in quadratic time it is hundreds of times."""
    detector = Detector(frozenset(kind.lower() for kind in PERSONAL))
    prose = "The key: a value of_sixteen_letters-or-more, see https://a.example/b?c=d&e. " * 660
    took = min(_seconds(detector, prose) for _ in range(3)) / len(prose)
    slow = {}
    for name, text in _near_misses().items():
        ratio = _seconds(detector, text) / len(text) / took
        if ratio > 40:
            slow[name] = round(ratio)
    assert slow == {}


def _seconds(detector: Detector, text: str) -> float:
    start = time.process_time()
    for _ in detector.find(text):
        pass
    return time.process_time() - start
