"""The parts of a request that are not compared: `match: {ignore: [...]}`.

Both sides of a comparison are normalised: a UUID becomes `<uuid>`, a time `<timestamp>`, the
working directory of a coding agent `<cwd>`, what a regular expression matches `<ignored>`, and what
stands at a path is left out. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from mockllm.core.patterns import EXAMPLES, PatternError, compile_pattern, path_pattern
from mockllm.core.request import IN_FOLDER_NAME, WORLD, Request, Words
from mockllm.core.text import did_you_mean
from mockllm.scenario.model import (
    AnyText,
    CombinedText,
    Expect,
    Ignored,
    Match,
    Scenario,
    TextCondition,
    TurnSpec,
    with_changed_entries,
)

_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sep(?:tember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_WEEKDAY = "(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?)"
_DAY = "(?:0?[1-9]|[12][0-9]|3[01])"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::(?:[0-5][0-9]|60)(?:[.,][0-9]{1,9})?)?"
_ISO_DATE = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?"

_WRITTEN: dict[str, tuple[str, ...]] = {
    "uuid": (
        r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
        # Without hyphens it looks like an MD5 digest. Versions 3 and 5 are digests themselves, the
        # same in each run; with the bits of the others a digest is taken for one in 21.
        r"[0-9a-fA-F]{12}[147][0-9a-fA-F]{3}[89abAB][0-9a-fA-F]{15}",
    ),
    "timestamp": (
        rf"{_ISO_DATE}[Tt ]{_TIME}{_ZONE}",  # ISO 8601, RFC 3339
        r"[0-9]{8}T[0-9]{6}(?:[.,][0-9]{1,9})?Z?",  # ISO 8601, basic format
        # RFC 5322, and HTTP (RFC 9110)
        rf"(?:{_WEEKDAY}, )?{_DAY} {_MONTH} [0-9]{{4}} {_TIME}(?: [A-Z]{{1,4}}| [+-][0-9]{{4}})?",
        rf"{_WEEKDAY} {_MONTH} [ 0-9][0-9] {_TIME} [0-9]{{4}}",  # `ctime` of C
    ),
    "date": (
        _ISO_DATE,
        rf"(?:{_WEEKDAY}, )?{_MONTH} {_DAY}, [0-9]{{4}}",
        rf"(?:{_WEEKDAY},? )?{_DAY} {_MONTH} [0-9]{{4}}",
    ),
}
"""By name, how a value is written. An earlier name is tried first: a time has a date in it."""

NAMES = (*_WRITTEN, *WORLD)

GENERATED: Ignored = ("uuid", "timestamp")
"""What a client makes up anew for each run."""

IGNORED = "<ignored>"
PLACEHOLDERS = (*(f"<{name}>" for name in (*NAMES, IN_FOLDER_NAME)), IGNORED)

_TIME_FIELD = re.compile(
    r"(?:(?i:time|stamp|date|epoch|created|updated|modified|started|ended|expires|now)"
    r"|^(?:iat|exp|nbf|ts))(?:_?[mM]?[sS])?$|(?:_at|[a-z]At)(?:_?[mM]?[sS])?$"
)
_UNIX = re.compile(r"[1-3][0-9]{9}(?:[0-9]{3}|\.[0-9]+)?")
"""Seconds, whole or not, or milliseconds, of the years 2001 to 2096."""


def flaw_of(part: str) -> str | None:
    """Why a text is nothing that can be ignored; None for what can."""
    if part in NAMES:
        return None
    if part.startswith("$"):
        known = path_pattern(part) is not None
        return None if known else f"is no path that is known here; such are {EXAMPLES}"
    if len(part) > 2 and part[0] == part[-1] == "/":
        try:
            compile_pattern(part[1:-1])
        except PatternError as problem:
            return str(problem)
        return None
    hint = did_you_mean(part.lower(), NAMES)
    names = f"must be {', '.join(NAMES)}, a path such as $.metadata, or a /regular expression/"
    return f"{names}, got {part!r}{f'; {hint}' if hint else ''}"


class _Normaliser:
    """Replaces what is ignored."""

    def __init__(self, ignore: Ignored) -> None:
        self._patterns = [compile_pattern(part[1:-1]) for part in ignore if part.startswith("/")]
        paths = [path_pattern(part) or "" for part in ignore if part.startswith("$")]
        self._paths = re.compile("|".join(paths)) if paths else None
        named = [name for name in _WRITTEN if name in ignore]
        self._world = frozenset(WORLD).intersection(ignore)
        self._named = _names_pattern(named) if named else None
        self._times = "timestamp" in named

    def text(self, text: str) -> str:
        if self._world and isinstance(text, Words):
            text = text.world.normal(text, self._world)
        for pattern in self._patterns:
            text = pattern.replace_matches(text, IGNORED)
        return text if self._named is None else self._named.sub(_placeholder, text)

    def body(self, request: Request, body: Any) -> Any:
        if self._world and request.world is not None:
            body = request.world.normal_value(body, self._world)
        return self.value(body)

    def value(self, value: Any, path: str = "") -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [
                None if self._leaves_out(below := f"{path}\x1f{index}") else self._item(item, below)
                for index, item in enumerate(value)
            ]
        if isinstance(value, Mapping):
            return {
                key: self._item(item, below, key)
                for key, item in value.items()
                if not self._leaves_out(below := f"{path}\x1f{key}")
            }
        return value

    def _leaves_out(self, path: str) -> bool:
        return self._paths is not None and self._paths.match(path) is not None

    def _item(self, item: Any, path: str, key: str = "") -> Any:
        return "<timestamp>" if self._times and _is_unix_time(key, item) else self.value(item, path)


def _names_pattern(names: Iterable[str]) -> re.Pattern[str]:
    ways = (f"(?P<{name}>{'|'.join(_WRITTEN[name])})" for name in names)
    return re.compile(rf"(?<![0-9A-Za-z])(?:{'|'.join(ways)})(?![0-9A-Za-z])")


def _placeholder(match: re.Match[str]) -> str:
    return f"<{match.lastgroup}>"


def _is_unix_time(key: str, value: Any) -> bool:
    """Whether a number, or a text of digits, is a time; only the name of its field tells."""
    is_number = isinstance(value, int | float | str) and not isinstance(value, bool)
    if not is_number or _TIME_FIELD.search(key) is None:
        return False
    return _UNIX.fullmatch(str(value)) is not None


_normaliser = lru_cache(maxsize=256)(_Normaliser)


def normal_text(ignore: Ignored, text: str) -> str:
    """A text with placeholders for what is ignored.

    Raises:
        PatternGaveUpError: the search for a regular expression took too long.
    """
    return _normaliser(ignore).text(text) if ignore else text


def normal_value(ignore: Ignored, value: Any) -> Any:
    """A JSON value with placeholders in its texts, and without what stands at ignored paths. An
    item of a list leaves None, so that the others keep their numbers.

    Raises:
        PatternGaveUpError: the search for a regular expression took too long.
    """
    return _normaliser(ignore).value(value) if ignore else value


def normal_body(ignore: Ignored, request: Request, body: Any = None) -> Any:
    """The body of a request as `normal_value` gives it, also without what its agent says of the
    machine that it runs on.

    Args:
        body: in place of its own.

    Raises:
        PatternGaveUpError: the search for a regular expression took too long.
    """
    body = request.body if body is None else body
    return _normaliser(ignore).body(request, body) if ignore else body


def wanted_text(condition: TextCondition) -> str:
    """The text of a condition as texts are compared with it. That of a regular expression stays: it
    is searched in the text as it was sent."""
    if condition.op in ("regex", "hidden") or not condition.ignore:
        return condition.value
    return _wanted(condition.ignore, condition.value)


_wanted = lru_cache(maxsize=8192)(normal_text)


def competing(condition: AnyText | None) -> AnyText | None:
    """A condition that is equal for all that the same texts meet."""
    return None if condition is None else _normal(condition)


def _normal(condition: AnyText) -> AnyText:
    if isinstance(condition, CombinedText):
        return replace(condition, conditions=tuple(map(_normal, condition.conditions)))
    return replace(condition, value=wanted_text(condition)) if condition.ignore else condition


def differing(one: Any, other: Any) -> Ignored | None:
    """The fewest kinds of generated values without which two JSON values are equal; None where
    they differ in anything else, or in nothing."""
    if one == other:
        return None
    ways = (*((kind,) for kind in GENERATED), GENERATED)
    return next((way for way in ways if normal_value(way, one) == normal_value(way, other)), None)


# Scenarios


def with_ignored(scenario: Scenario, ignore: Ignored = ()) -> Scenario:
    """A scenario whose conditions all ignore what its `match` says, and this.

    Args:
        ignore: further parts.
    """
    match = scenario.match
    own = match.ignore if match is not None else ()
    ignore = (*own, *(part for part in ignore if part not in own))
    if not ignore:
        return scenario
    if match is not None and match.conditions:
        match = _match(match, ignore)
    elif scenario.socket:  # whose messages are compared with it
        match = replace(match or Match(), ignore=ignore)
    turns = tuple(turn.with_each(partial(_turn, ignore)) for turn in scenario.turns)
    return replace(scenario, match=match, turns=turns)


def _match(match: Match, ignore: Ignored) -> Match:
    return replace(
        with_changed_entries(match, partial(_match, ignore=ignore)),
        user=_condition(match.user, ignore),
        system=_condition(match.system, ignore),
        headers=_named_conditions(match.headers, ignore),
        query=_named_conditions(match.query, ignore),
        ignore=ignore,
    )


def _condition(condition: AnyText | None, ignore: Ignored) -> AnyText | None:
    return None if condition is None else text_ignoring(condition, ignore)


def text_ignoring(condition: AnyText, ignore: Ignored) -> AnyText:
    """A condition that ignores this."""
    if isinstance(condition, TextCondition):
        return replace(condition, ignore=ignore)
    inner = tuple(text_ignoring(part, ignore) for part in condition.conditions)
    return replace(condition, conditions=inner)


def _named_conditions(
    conditions: tuple[tuple[str, AnyText], ...], ignore: Ignored
) -> tuple[tuple[str, AnyText], ...]:
    return tuple((name, text_ignoring(condition, ignore)) for name, condition in conditions)


def _turn(ignore: Ignored, turn: TurnSpec) -> TurnSpec:
    branches = [
        branch
        if branch.condition is None
        else replace(branch, condition=_expectation(branch.condition, ignore))
        for branch in turn.branches
    ]
    request = None if turn.request is None else _expectation(turn.request, ignore)
    return replace(turn, request=request, branches=tuple(branches))


def _expectation(expect: Expect, ignore: Ignored) -> Expect:
    results = tuple(
        (id, replace(result, text=_condition(result.text, ignore))) for id, result in expect.results
    )
    user, system = (_condition(text, ignore) for text in (expect.user, expect.system))
    expect = with_changed_entries(expect, partial(_expectation, ignore=ignore))
    return replace(expect, user=user, system=system, results=results, ignore=ignore)
