"""The forms of keys of services in a text, and credentials that a scheme announces; and which
kinds of secrets there are, with what finds those that are switched on.

The patterns of this module are more generous than those of `gitleaks.json`, which come after them:
a recording is better off without a key of a form that is new. Every pattern has linear time: each
repetition has a bound, or ends where the next match begins.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from mockllm.core.record import record
from mockllm.record.redaction.find.personal import PERSONAL, emails
from mockllm.record.redaction.find.secret_names import (
    entropy,
    field_strength,
    find_assignments,
    has_letters_and_digits,
    is_user_and_password,
    is_written_password,
    looks_random,
    made_of_words,
)
from mockllm.record.redaction.find.spans import has_run, is_inside_base64, run_shape

_ALNUM = string.ascii_letters + string.digits
_KEY_SHAPE = run_shape(f"{_ALNUM}_-")
_WORDS = bytes(ord(chr(code).lower() if chr(code) in _ALNUM else " ") for code in range(256))
_WORD = re.compile(r"([A-Za-z0-9]+)[-_.~]")


def has_long_run(text: str) -> bool:
    """Whether a text has a run of 16 letters, digits, `_` and `-`."""
    return has_run(text, _KEY_SHAPE)


class Triggers:
    """Finds the patterns whose triggers are in a text.

    Args:
        keys: for each pattern of a key with a long run its triggers. One that begins with a word
            and a separator (`ghp_`) means that word, in any case; any other one means that text.
        others: the same for all other patterns; their triggers are texts.
    """

    def __init__(
        self, keys: Iterable[tuple[int, Sequence[str]]], others: Iterable[tuple[int, Sequence[str]]]
    ) -> None:
        self._words: dict[bytes, set[int]] = {}
        self._parts: dict[str, set[int]] = {}
        self._texts: dict[str, set[int]] = {}
        for index, triggers in keys:
            for trigger in triggers:
                word = _WORD.match(trigger)
                if word is None:
                    self._parts.setdefault(trigger, set()).add(index)
                else:
                    self._words.setdefault(word[1].lower().encode(), set()).add(index)
        for index, triggers in others:
            for trigger in triggers:
                self._texts.setdefault(trigger, set()).add(index)
        self._every_word = frozenset(self._words)

    def find(self, text: str) -> list[int]:
        """The numbers of the patterns that may be in a text, in their order."""
        found: set[int] = set()
        for trigger, indexes in self._texts.items():
            if trigger in text:
                found |= indexes
        if has_long_run(text):
            self._keys(text, found)
        return sorted(found)

    def _keys(self, text: str, found: set[int]) -> None:
        words = text.encode("ascii", "replace").translate(_WORDS).split()
        for word in self._every_word.intersection(words):
            found |= self._words[word]
        for part, indexes in self._parts.items():
            if part in text:
                found |= indexes


class GitleaksRule(NamedTuple):
    """A kind of key, texts of which it has one, the least entropy in bits for each character (0:
    any), and its expression."""

    kind: str
    triggers: str
    entropy: float
    regex: str


@record
class Pattern:
    """The form of one kind of secret.

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
        regex = _compile_regex(self.regex)
        group = min(regex.groups, 1)
        for match in regex.finditer(text):
            start, end = match.span(group)
            if self.before:
                ahead = _compile_regex(self.before + r"\Z").search(
                    text, max(0, start - _NEAR), start
                )
                if ahead is None:
                    continue
                start = ahead.start()
            accepted = self.accepts is None or self.accepts(text[start:end])
            if accepted and not (self.run and is_inside_base64(text, start, end)):
                yield start, end


_NEAR = 64


@cache
def _compile_regex(regex: str) -> re.Pattern[str]:
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


_ACCEPTS: Mapping[str, Callable[[str], bool] | None] = {
    "": None,
    "random": lambda value: looks_random(value) and not made_of_words(value),
    "letters and digits": has_letters_and_digits,
    "password": is_written_password,
    "user and password": is_user_and_password,
}


def _patterns(entries: Iterable[Mapping[str, Any]]) -> Iterator[Pattern]:
    """The patterns of `service_keys.json`, which says what its fields mean."""
    for entry in entries:
        regex = _word(entry["regex"]) if entry.get("word") else entry["regex"]
        accepts = _ACCEPTS[entry.get("accepts", "")]
        before, run = entry.get("before", ""), entry.get("run", False)
        yield Pattern(entry["kind"], tuple(entry["triggers"].split()), regex, accepts, before, run)


def _table(name: str) -> Any:
    return json.loads((files(__package__ or "") / name).read_text(encoding="utf-8"))


_SEPARATED = re.compile(r"[-_.~]")


def gitleaks_rules() -> Iterator[GitleaksRule]:
    """The rules that `tools/gitleaks_rules.py` has taken from gitleaks."""
    for rule in _table("gitleaks.json")["rules"]:
        yield GitleaksRule(rule["kind"], rule["triggers"], rule["entropy"], rule["regex"])


def _gitleaks(kind: str, triggers: str, least: float, regex: str) -> Pattern:
    # Four letters alone are in every long text in base64: there such a key must stand alone.
    separated = all(_SEPARATED.search(trigger) for trigger in triggers.split())
    inside = "A-Za-z0-9" if separated else "A-Za-z0-9+/_-"
    return Pattern(
        kind,
        tuple(triggers.split()),
        f"{_word(regex, inside)}(?![{inside}])",
        (lambda value: entropy(value) >= least) if least else None,
        run=not any("~" in trigger for trigger in triggers),
    )


_SIGN = r"[ \t\w.-]{0,20}[\s\"'\\]{0,5}(?:=>?|>|:{1,3}=?|\|\||\?=|,)[\s\"'`=\\]{0,5}"
"""What stands between the name of a service and a key, as gitleaks has it."""


def _named_key(entry: Mapping[str, str]) -> Pattern:
    """The keys that show what they are only after the name of their service."""
    service = entry["service"]
    name, form = entry.get("name", service), entry["form"]
    return Pattern(
        f"{service}-key",
        tuple(entry.get("triggers", f"{service}_").split()),
        rf"(?i:(?:{name}){_SIGN}({form})(?![a-z0-9_/+=-]))",
        lambda value: has_letters_and_digits(value) and not made_of_words(value),
        run=True,
    )


_SERVICE_KEYS = _table("service_keys.json")
NAMED_KEYS: tuple[Pattern, ...] = tuple(map(_named_key, _SERVICE_KEYS["named"]))
PATTERNS: tuple[Pattern, ...] = (
    *_patterns(_SERVICE_KEYS["keys"]),
    *(_gitleaks(*rule) for rule in gitleaks_rules()),
    *NAMED_KEYS,
    *_patterns(_SERVICE_KEYS["schemes"]),
)


@lru_cache(maxsize=1024)
def _named_keys(name: str) -> tuple[Pattern, ...]:
    """The keys that the name of a field may announce."""
    words = set(name.encode("ascii", "replace").translate(_WORDS).decode("ascii").split())
    return tuple(
        pattern
        for pattern in NAMED_KEYS
        if any(trigger.rstrip("_") in words for trigger in pattern.triggers)
    )


def is_named_key(name: str, value: str) -> bool:
    """Whether a value is a key of the service that its field names."""
    text = f"{name}={value}"
    spans = (span for pattern in _named_keys(name) for span in pattern.find(text))
    return (len(name) + 1, len(text)) in spans


def may_name_secret(name: str) -> bool:
    """Whether a value could be secret because of the name of its field."""
    return bool(field_strength(name) or _named_keys(name))


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
    yield from find_assignments(text)


_BEGINNINGS = "|".join(_SERVICE_KEYS["beginnings"])
_PART = re.compile(rf"{_NOT_IN_WORD}(?:{_BEGINNINGS})\Z")
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


# Kinds of secrets, and those that are searched

EMAIL = "e-mail address"
PASSWORD = "password or key"  # noqa: S105
_KEY_PART = "part of a key"
_NAMES = {EMAIL: "email", PASSWORD: "password"}
_OTHERS = ("private key", "AWS secret key", "cookie", _KEY_PART, EMAIL, PASSWORD)


@cache
def kind_name(kind: str) -> str:
    """The name of a kind in the configuration: `GitHub token` is `github-token`."""
    if kind.startswith("field "):
        return _NAMES[PASSWORD]
    return _NAMES.get(kind) or re.sub(r"[^a-z0-9]+", "-", kind.lower())


@cache
def kinds() -> dict[str, bool]:
    """All kinds by their names in the configuration, and whether each is on by default."""
    named = sorted(
        {kind_name(kind) for kind in (*_OTHERS, *(pattern.kind for pattern in PATTERNS))}
    )
    return dict.fromkeys(named, True) | dict.fromkeys(map(kind_name, PERSONAL), False)


class Detector:
    """Finds the secrets of the kinds that are switched on.

    Args:
        on: names of kinds that are off by default.
        off: names of kinds that are not searched.
    """

    def __init__(self, on: frozenset[str] = frozenset(), off: frozenset[str] = frozenset()) -> None:
        self._off = off
        self._personal = [
            (kind, find)
            for kind, find in PERSONAL.items()
            if kind_name(kind) in on and kind_name(kind) not in off
        ]

    def is_off(self, kind: str) -> bool:
        """Whether secrets of a kind stay."""
        return bool(self._off) and kind_name(kind) in self._off

    def find(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        """The secrets in a text that is no document, each with its kind; they may overlap."""
        for kind, span in self._all(text):
            if not self.is_off(kind):
                yield kind, span

    def _all(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        yield from credentials_in(text)
        if "@" in text:
            yield from ((EMAIL, span) for span in emails(text))
        for kind, find in self._personal:
            yield from ((kind, span) for span in find(text))
        part = part_at_end(text)
        if part is not None:
            yield _KEY_PART, part
