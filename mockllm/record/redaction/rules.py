"""The rules of a user about secrets: the kinds that are searched, what he adds, by a pattern or a
path in JSON such as `$.user` or `$..email`, and what he keeps. `[redact]` of `mockllm.toml`, and
options.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mockllm.core import documentation
from mockllm.core.errors import UsageError, WireError
from mockllm.core.patterns import (
    EXAMPLES,
    PatternError,
    PatternGaveUpError,
    TimedPattern,
    compile_pattern,
    path_pattern,
)
from mockllm.core.text import did_you_mean
from mockllm.record.redaction.find.patterns import kinds


def known_kind(name: str, where: str) -> str:
    """The name, if there is such a kind.

    Args:
        where: the file and key, or the option, for the message.

    Raises:
        UsageError: there is none.
    """
    if name in kinds():
        return name
    hint = did_you_mean(name, kinds(), f"{documentation.page('secrets')} lists them")
    raise UsageError(f"{where}: {name!r} is no kind of secret; {hint}")


def compiled_paths(paths: Iterable[str], where: str = "") -> re.Pattern[str] | None:
    """A pattern that finds the values below any of some paths; None without paths.

    It searches the path to a value as `mockllm.core.patterns` writes it.

    Args:
        where: the file and key, or the option, for messages; "" for none.

    Raises:
        UsageError: a path that cannot be read.
    """
    patterns = [_pattern(path, where) for path in paths]
    return re.compile("|".join(patterns)) if patterns else None


def _pattern(path: str, where: str) -> str:
    pattern = path_pattern(path)
    if pattern is None:
        begin = f"{where}: " if where else ""
        raise UsageError(f"{begin}{path!r} is no path that is known here; such are {EXAMPLES}")
    return pattern


_T = TypeVar("_T")


def compiled_patterns(patterns: Iterable[str], where: str = "") -> tuple[TimedPattern, ...]:
    """The regular expressions that a user gives, compiled.

    Args:
        where: the file and key, or the option, for messages; "" for none.

    Raises:
        UsageError: one is no expression, or finds nothing, or compiles to too much.
    """
    begin = f"{where}: " if where else ""
    result = []
    for text in patterns:
        try:
            pattern = compile_pattern(text)
        except PatternError as error:
            raise UsageError(f"{begin}{text!r} {error}") from error
        if pattern.is_whole(""):
            raise UsageError(
                f"{begin}{text!r} matches the empty text too; a secret has a character"
            )
        result.append(pattern)
    return tuple(result)


def run_search(search: Callable[[str], _T], text: str) -> _T:
    """The result of a method of a user's pattern for a text.

    Raises:
        WireError: the search took too long, so that it is not known what is secret.
    """
    try:
        return search(text)
    except PatternGaveUpError as error:
        raise WireError(f"it is not known which secrets it has: {error}") from None


@dataclass(frozen=True, slots=True)
class Keep:
    """The secrets that stay.

    Args:
        kinds: names of kinds that are kept everywhere.
        places: paths, as `compiled_paths` gives them, each with the name of the kind that is kept
            there, or with "" where everything is.
        patterns: secrets that one of them matches in full are kept.
    """

    kinds: frozenset[str] = frozenset()
    places: tuple[tuple[str, re.Pattern[str]], ...] = ()
    patterns: tuple[TimedPattern, ...] = ()


_IN = re.compile(r"(.*?)\s+in\s+(\$.*)\Z", re.DOTALL)


def keep_from(entries: Iterable[str], where: str) -> Keep:
    """The meaning of the entries of `keep`: `email`, `$..arguments.to`, `email in $..arguments` or
    `/[a-z]+@example[.]com/`.

    Args:
        where: the file and key, or the option, for messages.

    Raises:
        UsageError: one has none of these forms, or its kind, path or pattern cannot be read.
    """
    kinds, places, patterns = [], [], []
    for entry in entries:
        in_place = _IN.match(entry)
        if len(entry) > 2 and entry[0] == entry[-1] == "/":
            patterns.append(entry[1:-1])
        elif entry.startswith("$"):
            places.append(("", _path(entry, where)))
        elif in_place is not None:
            kind = known_kind(in_place[1].strip(), where)
            places.append((kind, _path(in_place[2].strip(), where)))
        else:
            kinds.append(known_kind(entry, where))
    return Keep(frozenset(kinds), tuple(places), compiled_patterns(patterns, where))


def _path(path: str, where: str) -> re.Pattern[str]:
    found = compiled_paths([path], where)
    assert found is not None
    return found


def known_kinds(names: Iterable[str], where: str) -> frozenset[str]:
    """The names, if there are such kinds of secrets.

    Raises:
        UsageError: there is no such kind.
    """
    return frozenset(known_kind(name, where) for name in names)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a user: which texts are secret, and which of them may stay.

    Args:
        patterns: regular expressions; where one has a group, only its first group is secret.
        json_paths: paths in JSON bodies, such as `$.user` or `$..customer.name`.
        headers: names, in lower case, of further headers that may be kept.
        kinds: names of kinds of secrets that are off by default, such as `phone`.
        keep: what stays: a kind (`email`), a path (`$..arguments.to`), a kind at a path (`email in
            $..arguments`), or a pattern between slashes for a whole secret.
    """

    patterns: tuple[str, ...] = ()
    json_paths: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()


_CHECKS: Mapping[str, tuple[str, Callable[[Iterable[str], str], object]]] = {
    "patterns": ("redact", compiled_patterns),
    "json_paths": ("redact-path", compiled_paths),
    "kinds": ("redact-kind", known_kinds),
    "keep": ("keep", keep_from),
}
"""By the names of lists in the file: the name of the option, and what finds its mistakes."""
_OPTIONS = tuple(sorted((*_CHECKS, "headers")))


def rules_from(
    file: Path | None = None,
    patterns: Iterable[str] = (),
    paths: Iterable[str] = (),
    kinds: Iterable[str] = (),
    keep: Iterable[str] = (),
    *,
    prefix: str = "--",
) -> Rules:
    """The rules of `[redact]` in a `mockllm.toml`, if given, with those of options added.

    Args:
        prefix: what the names of the options begin with, for messages.

    Raises:
        UsageError: the file, a pattern, a path or a kind cannot be read.
    """
    in_file = f"{file}: [redact]"
    table = _table(file) if file is not None else {}
    on, off = _read_kinds(in_file, table.pop("kinds", {}))
    own = {key: _strings(in_file, key, table.get(key, [])) for key in _OPTIONS} | {"kinds": on}
    given = dict(zip(_CHECKS, map(tuple, (patterns, paths, kinds, keep)), strict=True))
    for name, (option, check) in _CHECKS.items():
        check(own[name], f"{in_file} {name}")
        check(given[name], f"{prefix}{option}")
    return Rules(
        (*own["patterns"], *given["patterns"]),
        (*own["json_paths"], *given["json_paths"]),
        tuple(name.lower() for name in own["headers"]),
        (*own["kinds"], *given["kinds"]),
        (*off, *own["keep"], *given["keep"]),
    )


def _table(file: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("redact", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} must be a TOML file: {error}") from error
    if not isinstance(table, dict):
        raise UsageError(f"{file}: `redact` must be a table, [redact]")
    for key in sorted(table.keys() - set(_OPTIONS)):
        hint = did_you_mean(key, _OPTIONS)
        known = f"what it may have is {', '.join(_OPTIONS)}"
        raise UsageError(f"{file}: [redact] has {key!r}; {'; '.join(filter(None, (known, hint)))}")
    return table


def _strings(where: str, key: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{where} {key} must be a list of strings, got {value!r}")
    return value


def _read_kinds(where: str, kinds: Any) -> tuple[list[str], list[str]]:
    """The kinds that the table `kinds` switches on, and off."""
    if not isinstance(kinds, dict) or not all(isinstance(item, bool) for item in kinds.values()):
        raise UsageError(
            f"{where} kinds must be a table such as {{phone = true, email = false}}, got {kinds!r}"
        )
    known_kinds(kinds, f"{where} kinds")
    return [name for name, on in kinds.items() if on], [n for n, on in kinds.items() if not on]
