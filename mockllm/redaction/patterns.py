"""What secrets look like in a text: keys of well-known services, passwords after their names.

A pattern is tried only where one of its triggers is in the text: `in` is much faster than a regular
expression. The secret is the first group of a match, or all of it where the pattern has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from mockllm.redaction.randomness import has_letters_and_digits, looks_random
from mockllm.redaction.secret_names import field_is_secret

__all__ = ["PATTERNS", "Pattern", "candidates", "credentials_in", "emails", "part_at_end"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one kind of secret looks like.

    Args:
        kind: for reports.
        triggers: texts of which one is in every secret of this kind.
        regex: finds it; compiled at its first use, for most are never needed.
        accepts: refuses what only looks like one.
    """

    kind: str
    triggers: tuple[str, ...]
    regex: str
    accepts: Callable[[str], bool] | None = None

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Where such secrets are in a text."""
        regex = _compiled(self.regex)
        group = min(regex.groups, 1)
        for match in regex.finditer(text):
            if self.accepts is None or self.accepts(match[group]):
                yield match.span(group)


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.DOTALL)


def _pattern(
    kind: str, triggers: str, regex: str, accepts: Callable[[str], bool] | None = None
) -> Pattern:
    return Pattern(kind, tuple(triggers.split()), regex, accepts)


_NOT_IN_WORD = r"(?<![A-Za-z0-9])"
_STRONG = (
    r"(?:api[_-]?key|subscription[_-]?key|access[_-]?key|secret[_-]?key|account[_-]?key"
    r"|private[_-]?key|client[_-]?secret|access[_-]?token|refresh[_-]?token|auth[_-]?token"
    r"|session[_-]?token|id[_-]?token|passw(?:or)?d|passphrase|pwd)"
)
_CLEAR = (
    r"sk-[A-Za-z0-9_-]{8,}|AIza[A-Za-z0-9_-]{8,}|ya29\.[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{8,}"
    r"|github_pat_[A-Za-z0-9_]{4,}|xox[abeoprs]-[A-Za-z0-9-]{8,}|(?:AKIA|ASIA)[A-Z0-9]{8,}"
    r"|hf_[A-Za-z0-9]{9,}|gsk_[A-Za-z0-9]{8,}|xai-[A-Za-z0-9]{8,}|[rs]k_(?:live|test)_[A-Za-z0-9]{4,}"
)

PATTERNS: tuple[Pattern, ...] = (
    _pattern(
        "private key",
        "PRIVATE",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----\s*"
        r"([\w+/=\s:,.-]+?)\s*(?:-----END|\Z|(?=[^\w+/=\s:,.-]))",
    ),
    _pattern("API key", "sk-", _NOT_IN_WORD + r"sk-[A-Za-z0-9_-]{16,}", looks_random),
    _pattern("Google API key", "AIza", _NOT_IN_WORD + r"AIza[A-Za-z0-9_-]{30,}"),
    _pattern("Google API key", "AQ.", _NOT_IN_WORD + r"AQ\.[A-Za-z0-9_-]{30,}"),
    _pattern("Google token", "ya29.", _NOT_IN_WORD + r"ya29\.[A-Za-z0-9_.-]{19,}[A-Za-z0-9_-]"),
    _pattern("Google token", "1//0", _NOT_IN_WORD + r"1//0[A-Za-z0-9_-]{30,}"),
    _pattern("Google client secret", "GOCSPX-", _NOT_IN_WORD + r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    _pattern(
        "GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", _NOT_IN_WORD + r"gh[pousr]_[A-Za-z0-9]{30,}"
    ),
    _pattern("GitHub token", "github_pat_", _NOT_IN_WORD + r"github_pat_[A-Za-z0-9_]{20,}"),
    _pattern("GitLab token", "glpat-", _NOT_IN_WORD + r"glpat-[A-Za-z0-9_-]{16,}"),
    _pattern("Slack token", "xox", _NOT_IN_WORD + r"xox[abeoprs]-[A-Za-z0-9-]{10,}", looks_random),
    _pattern("Slack token", "xapp-", _NOT_IN_WORD + r"xapp-[A-Za-z0-9-]{20,}", looks_random),
    _pattern("Slack webhook", "hooks.slack", r"hooks\.slack\.com/services/([A-Za-z0-9/]{20,})"),
    _pattern(
        "AWS secret key",
        "AKIA ASIA",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}(?=[^A-Z0-9]).{0,120}?"
        r"(?<![A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    _pattern(
        "AWS access key", "AKIA ASIA", _NOT_IN_WORD + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    ),
    _pattern(
        "Stripe key", "_live_ _test_", _NOT_IN_WORD + r"[rsp]k_(?:live|test)_[A-Za-z0-9]{10,}"
    ),
    _pattern("Stripe key", "whsec_", _NOT_IN_WORD + r"whsec_[A-Za-z0-9+/=]{16,}"),
    _pattern("Hugging Face token", "hf_", _NOT_IN_WORD + r"hf_[A-Za-z0-9]{20,}"),
    _pattern("Groq key", "gsk_", _NOT_IN_WORD + r"gsk_[A-Za-z0-9]{20,}"),
    _pattern("xAI key", "xai-", _NOT_IN_WORD + r"xai-[A-Za-z0-9]{20,}"),
    _pattern(
        "API key",
        "pplx- r8_ nvapi- csk- tvly- npm_ lsv2_ pcsk_ dop_v1_ pypi- dapi SG.",
        _NOT_IN_WORD
        + r"(?:(?:pplx-|r8_|nvapi-|csk-|tvly-(?:dev-)?|npm_|lsv2_[a-z]{2}_|pcsk_|dop_v1_|pypi-)"
        r"[A-Za-z0-9_-]{20,}|dapi[0-9a-f]{32}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})",
        looks_random,
    ),
    _pattern(
        "organization", "org-", _NOT_IN_WORD + r"org-[A-Za-z0-9]{20,}", has_letters_and_digits
    ),
    _pattern("project", "proj_", _NOT_IN_WORD + r"proj_[A-Za-z0-9]{20,}", has_letters_and_digits),
    _pattern(
        "token",
        "eyJ",
        _NOT_IN_WORD + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?",
    ),
    _pattern(
        "token",
        "earer EARER",
        r"(?i:\bbearer)\s+([A-Za-z0-9._~+/=-]{11,}[A-Za-z0-9_=-])",
        has_letters_and_digits,
    ),
    _pattern(
        "password",
        "asic ASIC",
        r"(?i:\bbasic)\s+([A-Za-z0-9+/]{11,}[A-Za-z0-9+/=]{1,3})",
        has_letters_and_digits,
    ),
    _pattern(
        "password",
        "://",
        r"://[^\s:/@?#\"'<>\\]{0,256}:([^\s/@\"'<>\\]{1,256})@",
    ),
    _pattern(
        "query parameter",
        "? &",
        r"[?&](?i:(?:x-goog-|x-amz-)?(?:credential|signature|security-token)|"
        rf"{_STRONG}|token|auth|key|sig)=([^&\s\"'#<>\\]{{5,}}[^&\s\"'#<>\\.,)])",
    ),
)

_TRIGGERED: dict[str, list[int]] = {}
for _index, _one in enumerate(PATTERNS):
    for _trigger in _one.triggers:
        _TRIGGERED.setdefault(_trigger, []).append(_index)


def candidates(text: str) -> list[Pattern]:
    """The patterns that may be in a text, in the order of `PATTERNS`."""
    near: set[int] = set()
    for trigger, indexes in _TRIGGERED.items():
        if trigger in text:
            near.update(indexes)
    return [PATTERNS[index] for index in sorted(near)]


_ASSIGNED = re.compile(
    r"(?i:key|secret|token|passw(?:or)?d|passphrase|pwd|credentials?|authorization)"
    r"[\"']?\s{0,4}[:=]\s{0,4}(?:[\"']([^\"'\s]{6,})[\"']"
    r"|([A-Za-z0-9+/_=.~!@#%^&*-]{7,}[A-Za-z0-9+/_=~!-]))"
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9_-]*\Z")


def _assigned(text: str) -> Iterator[tuple[int, int]]:
    """Where a text gives a name a value that is a secret for such a name: `api_key = "..."`."""
    if ":" not in text and "=" not in text:
        return
    for found in _ASSIGNED.finditer(text):
        group = 1 if found[1] is not None else 2
        before = _IDENTIFIER.search(text, max(0, found.start() - 24), found.start())
        name = (before[0] if before is not None else "") + re.split(
            r"[^\w-]", found[0], maxsplit=1
        )[0]
        value = found[group]
        if field_is_secret(name, value) and (group == 1 or has_letters_and_digits(value)):
            yield found.span(group)


def credentials_in(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The credentials in a text, each with its kind and where it is; they may overlap."""
    for pattern in candidates(text):
        for span in pattern.find(text):
            yield pattern.kind, span
    for span in _assigned(text):
        yield "password or key", span


_PART = re.compile(rf"{_NOT_IN_WORD}(?:{_CLEAR})\Z")


def part_at_end(text: str) -> tuple[int, int] | None:
    """Where a text ends within a key, because the stream or the model's answer was cut there."""
    rest = max(0, len(text) - 256)
    found = _PART.search(text, rest)
    return found.span() if found is not None and looks_random(found[0]) else None


_LOCAL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+'-"
_DOMAIN = re.compile(r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.)+([A-Za-z]{2,})")
_NO_DOMAIN = frozenset(
    (
        "png",
        "jpg",
        "jpeg",
        "gif",
        "svg",
        "webp",
        "json",
        "html",
        "css",
        "js",
        "txt",
    )
)


def emails(text: str) -> Iterator[tuple[int, int]]:
    """Where e-mail addresses are in a text; `git@` in the address of a repository is no person."""
    if "@" not in text or "\0" in text:
        return
    for found in _DOMAIN.finditer(text):
        before = text[max(0, found.start() - 128) : found.start()]
        local = before[len(before.rstrip(_LOCAL)) :].lstrip("'.%")
        if not local:
            local = _letters(before)
        address = local and local != "git" and found[1].lower() not in _NO_DOMAIN
        if address and not _USER.search(before[: len(before) - len(local)]):
            yield found.start() - len(local), found.end()


# What follows is a password, not the name of a mailbox.
_USER = re.compile(r"://[^\s/@]*:\Z")


def _letters(text: str) -> str:
    start = len(text)
    while start and text[start - 1].isalnum():
        start -= 1
    return text[start:]
