"""What keys of services look like in a text, and credentials that a scheme announces.

The patterns of this module are more generous than those of `gitleaks.json`, which come after them:
a recording is better off without a key of a form that is new. Every pattern has linear time: each
repetition has a bound, or ends where the next match begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import NamedTuple

from mockllm.redaction.find.assignments import assigned
from mockllm.redaction.find.randomness import entropy, has_letters_and_digits, looks_random
from mockllm.redaction.find.triggers import Triggers
from mockllm.redaction.walk.encodings import is_inside_base64


class GitleaksRule(NamedTuple):
    """A kind of key, texts of which it has one, the least entropy in bits for each character (0:
    any), and its expression."""

    kind: str
    triggers: str
    entropy: float
    regex: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one kind of secret looks like.

    Args:
        kind: for reports and for the configuration.
        triggers: texts of which one is in every secret of this kind.
        regex: finds it; the secret is the first group, or all of a match if it has none. It is
            compiled at its first use, for most are never needed.
        accepts: refuses what only looks like one.
        before: an expression for the part of the secret before the match.
        run: whether each such secret has a run of 16 letters, digits, `_` and `-`.
    """

    kind: str
    triggers: tuple[str, ...]
    regex: str
    accepts: Callable[[str], bool] | None = None
    before: str = ""
    run: bool = False

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Where such secrets are in a text."""
        regex = _compiled(self.regex)
        group = min(regex.groups, 1)
        for match in regex.finditer(text):
            start, end = match.span(group)
            if self.before:
                ahead = _compiled(self.before + r"\Z").search(text, max(0, start - _NEAR), start)
                if ahead is None:
                    continue
                start = ahead.start()
            accepted = self.accepts is None or self.accepts(text[start:end])
            if accepted and not (self.run and is_inside_base64(text, start, end)):
                yield start, end


_NEAR = 64


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.DOTALL)


_NOT_IN_WORD = r"(?<![A-Za-z0-9])"
_LITERAL = re.compile(r"[A-Za-z0-9_-]+(?![*+?{|A-Za-z0-9_-])")


def _word(regex: str, inside: str = "A-Za-z0-9") -> str:
    """An expression that begins where a word begins.

    That is examined after the letters that every match begins with: for these alone `re` searches
    much faster.

    Args:
        inside: the characters of words.
    """
    literal = _LITERAL.match(regex)
    if literal is None:
        return f"(?<![{inside}]){regex}"
    return f"{literal[0]}(?<![{inside}]{literal[0]}){regex[literal.end() :]}"


def _pattern(
    kind: str, triggers: str, regex: str, accepts: Callable[[str], bool] | None = None
) -> Pattern:
    return Pattern(kind, tuple(triggers.split()), regex, accepts)


def _key(
    kind: str, triggers: str, regex: str, accepts: Callable[[str], bool] | None = None
) -> Pattern:
    return Pattern(kind, tuple(triggers.split()), _word(regex), accepts, run=True)


def _at_least(least: float, value: str) -> bool:
    return entropy(value) >= least


_SEPARATED = re.compile(r"[-_.~]")


def gitleaks_rules() -> Iterator[GitleaksRule]:
    """The rules that `tools/gitleaks_rules.py` has taken from gitleaks."""
    file = files(__package__ or "") / "gitleaks.json"
    for rule in json.loads(file.read_text(encoding="utf-8"))["rules"]:
        yield GitleaksRule(rule["kind"], rule["triggers"], rule["entropy"], rule["regex"])


def _gitleaks(kind: str, triggers: str, least: float, regex: str) -> Pattern:
    # Four letters alone are in every long text in base64: there such a key must stand alone.
    separated = all(_SEPARATED.search(trigger) for trigger in triggers.split())
    inside = "A-Za-z0-9" if separated else "A-Za-z0-9+/_-"
    return Pattern(
        kind,
        tuple(triggers.split()),
        f"{_word(regex, inside)}(?![{inside}])",
        partial(_at_least, least) if least else None,
        run=not any("~" in trigger for trigger in triggers),
    )


_STRONG = (
    r"(?:api[_-]?key|subscription[_-]?key|access[_-]?key|secret[_-]?key|account[_-]?key"
    r"|private[_-]?key|client[_-]?secret|access[_-]?token|refresh[_-]?token|auth[_-]?token"
    r"|session[_-]?token|id[_-]?token|passw(?:or)?d|passphrase|pwd)"
)

# The forms of keys that gitleaks does not have, or only after the name of the service:
# detect-secrets (Telegram, Discord, Twilio, Mailgun), and the documents of the services.
PATTERNS: tuple[Pattern, ...] = (
    _key("API key", "sk-", r"sk-[A-Za-z0-9_-]{16,}", looks_random),
    _key("Google API key", "AIza", r"AIza[A-Za-z0-9_-]{30,}"),
    _key("Google API key", "AQ.", r"AQ\.[A-Za-z0-9_-]{30,}"),
    _key("Google token", "ya29.", r"ya29\.[A-Za-z0-9_.-]{19,}[A-Za-z0-9_-]"),
    _key("Google token", "1//0", r"1//0[A-Za-z0-9_-]{30,}"),
    _key("Google client secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    _key("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    _key("GitHub token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    _key("GitLab token", "glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
    _key(
        "Slack token",
        "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-",
        r"xox[abeoprs]-[A-Za-z0-9-]{11,}",
        looks_random,
    ),
    _key("Slack token", "xapp-", r"xapp-[A-Za-z0-9-]{20,}", looks_random),
    _pattern("Slack webhook", "hooks.slack", r"hooks\.slack\.com/services/([A-Za-z0-9/]{20,})"),
    _key("AWS access key", "AKIA ASIA", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Pattern(
        "Stripe key",
        ("_live_", "_test_"),
        r"_(?:live|test)_[A-Za-z0-9]{10,}",
        before=r"(?<![A-Za-z0-9])[rsp]k",
        run=True,
    ),
    _key("Stripe key", "whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
    _key("Hugging Face token", "hf_", r"hf_[A-Za-z0-9]{20,}"),
    _key("Groq key", "gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    _key("xAI key", "xai-", r"xai-[A-Za-z0-9]{20,}"),
    _key(
        "API key",
        "pplx- r8_ nvapi- csk- tvly- npm_ lsv2_ pcsk_ dop_v1_ pypi-",
        r"(?:pplx-|r8_|nvapi-|csk-|tvly-(?:dev-)?|npm_|lsv2_[a-z]{2}_|pcsk_|dop_v1_|pypi-)"
        r"[A-Za-z0-9_-]{20,}",
        looks_random,
    ),
    _key("API key", "dapi", r"dapi[0-9a-f]{32}"),
    _key("SendGrid key", "SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", looks_random),
    Pattern(
        "Telegram token",
        (":AA",),
        r":AA[A-Za-z0-9_-]{32,35}(?![A-Za-z0-9_-])",
        before=r"(?<![A-Za-z0-9])[0-9]{6,16}",
        run=True,
    ),
    Pattern(
        "Discord token",
        (".",),
        r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}(?![A-Za-z0-9_-])",
        before=r"(?<![A-Za-z0-9_.-])[MNO][A-Za-z0-9_-]{22,27}",
        run=True,
    ),
    _pattern(
        "Discord webhook",
        "/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/[0-9]{10,24}/([A-Za-z0-9_-]{40,100})",
    ),
    _key("Docker token", "dckr_pat_ dckr_oat_", r"dckr_[po]at_[A-Za-z0-9_-]{20,}"),
    _key("Atlassian token", "ATATT3 ATCTT3 ATBB", r"AT(?:ATT3|CTT3|BB)[A-Za-z0-9_=-]{24,}"),
    _key("Shopify token", "shp", r"shp[a-z]{2}_[A-Za-z0-9]{24,}"),
    _key("Linear key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{24,}"),
    _key("Grafana token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}"),
    _key("Sentry token", "sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9+/=_]{32,}"),
    _pattern("Sentry DSN", ".ingest.", r"://([0-9a-f]{32})@[a-z0-9.-]{1,100}\.ingest\."),
    _key("Notion token", "ntn_ secret_", r"(?:ntn_|secret_)[A-Za-z0-9]{40,}", looks_random),
    _key("Figma token", "figd_ figo_ figu_", r"fig[dou]h?_[A-Za-z0-9_-]{20,}", looks_random),
    _key("Supabase key", "sbp_", r"sbp_(?:v0_|oauth_)?[0-9a-f]{40,}"),
    _key("Supabase key", "sb_secret_", r"sb_secret_[A-Za-z0-9_-]{20,}", looks_random),
    _key("Twilio key", "SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    _key("Twilio account", "AC", r"AC[0-9a-f]{32}(?![A-Za-z0-9])"),
    _key("Mailgun key", "key-", r"key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    _key("Mailgun key", "pubkey-", r"pubkey-[0-9a-f]{32}(?![A-Za-z0-9])"),
    _key("Vault token", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    _key("Fireworks key", "fw_", r"fw_[A-Za-z0-9]{22,}", has_letters_and_digits),
    _key("Voyage key", "pa-", r"pa-[A-Za-z0-9_-]{40,48}(?![A-Za-z0-9_-])", looks_random),
    _key("ElevenLabs key", "sk_", r"sk_[0-9a-f]{48}(?![A-Za-z0-9])"),
    _key("organization", "org-", r"org-[A-Za-z0-9]{20,}", has_letters_and_digits),
    _key("project", "proj_", r"proj_[A-Za-z0-9]{20,}", has_letters_and_digits),
    # Of a JSON Web Token. Without `-` before it, or `-eyJ-eyJ-eyJ...` would take quadratic time.
    Pattern(
        "token",
        ("eyJ",),
        r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{13,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?",
        run=True,
    ),
    *(_gitleaks(*rule) for rule in gitleaks_rules()),
    _pattern(
        "token",
        "earer EARER",
        r"(?i:bearer(?<![a-z0-9]bearer))\s{1,8}([A-Za-z0-9._~+/=-]{11,}[A-Za-z0-9_=-])",
        has_letters_and_digits,
    ),
    _pattern(
        "password",
        "asic ASIC",
        r"(?i:basic(?<![a-z0-9]basic))\s{1,8}([A-Za-z0-9+/]{11,}[A-Za-z0-9+/=]{1,3})",
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

_TRIGGERS = Triggers(
    ((index, one.triggers) for index, one in enumerate(PATTERNS) if one.run),
    ((index, one.triggers) for index, one in enumerate(PATTERNS) if not one.run),
)


def candidates(text: str) -> list[Pattern]:
    """The patterns that may be in a text, in the order of `PATTERNS`."""
    return [PATTERNS[index] for index in _TRIGGERS.find(text)]


_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"[\w+/=\s:,.-]*")
_PEM_END = "-----"


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Where the keys of PEM files are, without their first and last line; one may be cut."""
    for begin in _PEM.finditer(text):
        start = begin.end()
        end = text.find(_PEM_END, start)
        body = _PEM_BODY.match(text, start, len(text) if end < 0 else end)
        inner = body[0] if body is not None else ""
        start += len(inner) - len(inner.lstrip())
        if inner.strip():
            yield start, start + len(inner.strip())


_AWS_KEY = "AWS access key"
_AWS_ID = re.compile(r"A(?:KI|SI)A[A-Z0-9]{16}(?![A-Z0-9])")
_AWS_RUN = re.compile(r"[A-Za-z0-9/+]{40}(?<![A-Za-z0-9/+].{40})(?![A-Za-z0-9/+=])", re.DOTALL)
_AWS_FAR = 160


def _aws_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Where the secret that belongs to the id of an AWS key is: 40 characters near it."""
    for id in _AWS_ID.finditer(text):
        run = _AWS_RUN.search(text, id.end(), id.end() + _AWS_FAR)
        if run is not None and not text[run.end() : run.end() + 1].isalnum():
            yield run.span()


def credentials_in(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The credentials in a text, each with its kind and where it is; they may overlap."""
    if "PRIVATE" in text:
        yield from (("private key", span) for span in _private_keys(text))
    for pattern in candidates(text):
        yield from ((pattern.kind, span) for span in pattern.find(text))
        if pattern.kind == _AWS_KEY:
            yield from (("AWS secret key", span) for span in _aws_secrets(text))
    yield from assigned(text)


_CLEAR = (
    r"sk-[A-Za-z0-9_-]{8,}|AIza[A-Za-z0-9_-]{8,}|ya29\.[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{8,}"
    r"|github_pat_[A-Za-z0-9_]{4,}|xox[abeoprs]-[A-Za-z0-9-]{8,}|(?:AKIA|ASIA)[A-Z0-9]{8,}"
    r"|hf_[A-Za-z0-9]{9,}|gsk_[A-Za-z0-9]{8,}|xai-[A-Za-z0-9]{8,}|[rs]k_(?:live|test)_[A-Za-z0-9]{4,}"
    r"|shp(?:at|ca|pa|ss)_[A-Za-z0-9]{8,}|dckr_[po]at_[A-Za-z0-9_-]{4,}|AT[AC]TT3[A-Za-z0-9_=-]{8,}"
    r"|glsa_[A-Za-z0-9_]{8,}|sntry[su]_[A-Za-z0-9+/=_]{8,}|lin_(?:api|oauth)_[A-Za-z0-9]{4,}"
    r"|ntn_[A-Za-z0-9]{8,}|figd_[A-Za-z0-9_-]{8,}|sb_secret_[A-Za-z0-9_-]{4,}|sbp_[0-9a-f]{8,}"
    r"|hv[sb]\.[A-Za-z0-9_-]{8,}|npm_[A-Za-z0-9]{8,}|pplx-[A-Za-z0-9]{8,}"
)
_PART = re.compile(rf"{_NOT_IN_WORD}(?:{_CLEAR})\Z")
_SHORTEST_PART = 11
_FARTHEST_PART = 256


def part_at_end(text: str) -> tuple[int, int] | None:
    """Where a text ends within a key, because the stream or the model's answer was cut there."""
    last = text[-_SHORTEST_PART:]
    if len(last) < _SHORTEST_PART or not last.isascii() or " " in last or "\n" in last:
        return None
    found = _PART.search(text, max(0, len(text) - _FARTHEST_PART))
    if found is None or not looks_random(found[0]) or is_inside_base64(text, *found.span()):
        return None
    return found.span()
