"""What secrets look like: keys of well-known services, and places where only secrets are.

A shape is looked for where one of its triggers is in the text, for that is found fast. The
secret is its first group, or all of it where it has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

__all__ = [
    "SHAPES",
    "Shape",
    "emails",
    "field_is_secret",
    "header_is_secret",
    "hinted",
    "part_at_end",
    "secret_tokens",
    "telling",
]


@dataclass(frozen=True, slots=True)
class Shape:
    """What one kind of secret looks like; `holds` refuses what only looks like one."""

    what: str
    triggers: tuple[str, ...]
    pattern: re.Pattern[str]
    holds: Callable[[str], bool] | None = None

    @property
    def group(self) -> int:
        """Which group of a match is the secret."""
        return min(self.pattern.groups, 1)


def _mixed(value: str) -> bool:
    """Whether a value looks drawn at random: words in lower case with hyphens do not."""
    return bool(re.search(r"[0-9A-Z]|[a-z]{20}", value.partition("-")[2] or value))


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _random(value: str) -> bool:
    """Whether a value has letters and digits."""
    return re.search(r"[0-9]", value) is not None and re.search(r"[A-Za-z]", value) is not None


def _drawn(value: str) -> bool:
    """Whether a value has so many letters and digits that nobody made it up as a name."""
    digits, letters = len(re.findall("[0-9]", value)), len(re.findall("[A-Za-z]", value))
    return digits >= 3 and letters >= 3 and _UUID.fullmatch(value) is None


def _chosen(value: str) -> bool:
    """Whether a value could be a password, not the name of a type or of a variable."""
    return not value.startswith(("$", "<", "{")) and (not value.isalpha() or len(value) >= 10)


def _shape(
    what: str, triggers: str, pattern: str, holds: Callable[[str], bool] | None = None
) -> Shape:
    return Shape(what, tuple(triggers.split()), re.compile(pattern, re.DOTALL), holds)


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

SHAPES: tuple[Shape, ...] = (
    _shape(
        "private key",
        "PRIVATE",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----\s*"
        r"([\w+/=\s:,.-]+?)\s*(?:-----END|\Z|(?=[^\w+/=\s:,.-]))",
    ),
    _shape("API key", "sk-", _NOT_IN_WORD + r"sk-[A-Za-z0-9_-]{16,}", _mixed),
    _shape("Google API key", "AIza", _NOT_IN_WORD + r"AIza[A-Za-z0-9_-]{30,}"),
    _shape("Google API key", "AQ.", _NOT_IN_WORD + r"AQ\.[A-Za-z0-9_-]{30,}"),
    _shape("Google token", "ya29.", _NOT_IN_WORD + r"ya29\.[A-Za-z0-9_.-]{19,}[A-Za-z0-9_-]"),
    _shape("Google token", "1//0", _NOT_IN_WORD + r"1//0[A-Za-z0-9_-]{30,}"),
    _shape("Google client secret", "GOCSPX-", _NOT_IN_WORD + r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    _shape(
        "GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", _NOT_IN_WORD + r"gh[pousr]_[A-Za-z0-9]{30,}"
    ),
    _shape("GitHub token", "github_pat_", _NOT_IN_WORD + r"github_pat_[A-Za-z0-9_]{20,}"),
    _shape("GitLab token", "glpat-", _NOT_IN_WORD + r"glpat-[A-Za-z0-9_-]{16,}"),
    _shape("Slack token", "xox", _NOT_IN_WORD + r"xox[abeoprs]-[A-Za-z0-9-]{10,}", _mixed),
    _shape("Slack token", "xapp-", _NOT_IN_WORD + r"xapp-[A-Za-z0-9-]{20,}", _mixed),
    _shape("Slack webhook", "hooks.slack", r"hooks\.slack\.com/services/([A-Za-z0-9/]{20,})"),
    _shape(
        "AWS secret key",
        "AKIA ASIA",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}(?=[^A-Z0-9]).{0,120}?"
        r"(?<![A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    _shape(
        "AWS access key", "AKIA ASIA", _NOT_IN_WORD + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    ),
    _shape("Stripe key", "_live_ _test_", _NOT_IN_WORD + r"[rsp]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    _shape("Stripe key", "whsec_", _NOT_IN_WORD + r"whsec_[A-Za-z0-9+/=]{16,}"),
    _shape("Hugging Face token", "hf_", _NOT_IN_WORD + r"hf_[A-Za-z0-9]{20,}"),
    _shape("Groq key", "gsk_", _NOT_IN_WORD + r"gsk_[A-Za-z0-9]{20,}"),
    _shape("xAI key", "xai-", _NOT_IN_WORD + r"xai-[A-Za-z0-9]{20,}"),
    _shape(
        "API key",
        "pplx- r8_ nvapi- csk- tvly- npm_ lsv2_ pcsk_ dop_v1_ pypi- dapi SG.",
        _NOT_IN_WORD
        + r"(?:(?:pplx-|r8_|nvapi-|csk-|tvly-(?:dev-)?|npm_|lsv2_[a-z]{2}_|pcsk_|dop_v1_|pypi-)"
        r"[A-Za-z0-9_-]{20,}|dapi[0-9a-f]{32}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})",
        _mixed,
    ),
    _shape("organization", "org-", _NOT_IN_WORD + r"org-[A-Za-z0-9]{20,}", _random),
    _shape("project", "proj_", _NOT_IN_WORD + r"proj_[A-Za-z0-9]{20,}", _random),
    _shape(
        "token",
        "eyJ",
        _NOT_IN_WORD + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?",
    ),
    _shape(
        "token",
        "earer EARER",
        r"(?i:\bbearer)\s+([A-Za-z0-9._~+/=-]{11,}[A-Za-z0-9_=-])",
        _random,
    ),
    _shape(
        "password", "asic ASIC", r"(?i:\bbasic)\s+([A-Za-z0-9+/]{11,}[A-Za-z0-9+/=]{1,3})", _random
    ),
    _shape(
        "password",
        "://",
        r"://[^\s:/@?#\"'<>\\]{0,256}:([^\s/@\"'<>\\]{1,256})@",
    ),
    _shape(
        "query parameter",
        "? &",
        r"[?&](?i:(?:x-goog-|x-amz-)?(?:credential|signature|security-token)|"
        rf"{_STRONG}|token|auth|key|sig)=([^&\s\"'#<>\\]{{5,}}[^&\s\"'#<>\\.,)])",
    ),
)

_TRIGGERED: dict[str, list[int]] = {}
for _index, _one in enumerate(SHAPES):
    for _trigger in _one.triggers:
        _TRIGGERED.setdefault(_trigger, []).append(_index)


def hinted(text: str) -> list[Shape]:
    """The shapes that may be in a text."""
    near: set[int] = set()
    for trigger, shapes in _TRIGGERED.items():
        if trigger in text:
            near.update(shapes)
    return [SHAPES[index] for index in sorted(near)]


_ASSIGNED = re.compile(
    r"(?i:key|secret|token|passw(?:or)?d|passphrase|pwd|credentials?|authorization)"
    r"[\"']?\s{0,4}[:=]\s{0,4}(?:[\"']([^\"'\s]{6,})[\"']"
    r"|([A-Za-z0-9+/_=.~!@#%^&*-]{7,}[A-Za-z0-9+/_=~!-]))"
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9_-]*\Z")


def assigned(text: str) -> Iterator[tuple[int, int]]:
    """Where a text gives a value to a name of which it is a secret: `api_key = "..."`."""
    if ":" not in text and "=" not in text:
        return
    for found in _ASSIGNED.finditer(text):
        group = 1 if found[1] is not None else 2
        before = _IDENTIFIER.search(text, max(0, found.start() - 24), found.start())
        name = (before[0] if before is not None else "") + re.split(
            r"[^\w-]", found[0], maxsplit=1
        )[0]
        if field_is_secret(name, found[group]) and (group == 1 or _random(found[group])):
            yield found.span(group)


_PART = re.compile(rf"{_NOT_IN_WORD}(?:{_CLEAR})\Z")


def part_at_end(text: str) -> tuple[int, int] | None:
    """Where a text ends within a key, because the stream was cut, or the model was."""
    rest = max(0, len(text) - 256)
    found = _PART.search(text, rest)
    return found.span() if found is not None and _mixed(found[0]) else None


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
    """Where e-mail addresses are in a text. `git@`, of addresses of repositories, is no person."""
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


_NAMES_STRONG = re.compile(
    r"(?:api|subscription|access|secret|account|private|auth|master|encryption)key\Z"
    r"|(?:client|app|consumer|shared)secret\Z|(?:access|refresh|auth|session|id|bearer)token\Z"
    r"|passw(?:or)?d\Z|passphrase\Z|pwd\Z|\A(?:x?api|pass)code\Z"
)
_NAMES_WEAK = re.compile(
    r"(?:secret|token|credentials?|authorization|cookie|connectionstring|key|auth)\Z"
)
_SEPARATORS = str.maketrans("", "", "_-. ")


@lru_cache(maxsize=1024)
def telling(name: str) -> str:
    """How much the name of a field tells: that it is `strong`, that it may be (`weak`), or ""."""
    plain = name.translate(_SEPARATORS).lower()
    if _NAMES_STRONG.search(plain):
        return "strong"
    return "weak" if _NAMES_WEAK.search(plain) else ""


def field_is_secret(name: str, value: str) -> bool:
    """Whether a value is a secret because of the name of its field.

    A field that is called a token is not enough: log probabilities have such, with a word in.
    """
    told = telling(name)
    if not told or len(value) < 6 or any(map(str.isspace, value)):
        return False
    return _chosen(value) if told == "strong" else len(value) >= 16 and _drawn(value)


_HEADERS = re.compile(
    r"auth|key|token|secret|cookie|credential|session|passw|signature"
    r"|org|project|account|tenant|workspace|customer|email|\buser\b"
)
_BETWEEN = re.compile(r"[\s;,=:\"]+")


def header_is_secret(name: str) -> bool:
    """Whether what a header says is a credential, or names who pays."""
    return _HEADERS.search(name) is not None


def secret_tokens(value: str, *, first: bool = False) -> Iterator[str]:
    """The words of a header's value that are worth hiding elsewhere too.

    Args:
        first: only those before the first semicolon (what follows in `set-cookie` is no secret).
    """
    value = value.partition(";")[0] if first else value
    for word in {value, *_BETWEEN.split(value)}:
        if len(word) >= 8 and " " not in word and (_random(word) or len(word) >= 20):
            yield word
