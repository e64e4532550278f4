"""What a user calls secret, and what may be kept: `[redact]` of `mockllm.toml`, and options."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mockllm.core.text import did_you_mean
from mockllm.errors import UsageError
from mockllm.redaction.find.detector import Detector, known_kind
from mockllm.redaction.find.user_rules import Keep, compiled_paths, compiled_patterns, keep_from


@dataclass(frozen=True, slots=True)
class Rules:
    """What a user calls secret, and what may be kept.

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

    def kept(self) -> Keep:
        """What is kept, compiled.

        Raises:
            UsageError: an entry cannot be read.
        """
        return keep_from(self.keep, "keep")

    def detector(self) -> Detector:
        """What finds the kinds that are on.

        Raises:
            UsageError: there is no such kind.
        """
        on = frozenset(known_kind(name, "kinds") for name in self.kinds)
        return Detector(on, self.kept().kinds)


_OPTIONS = ("headers", "json_paths", "keep", "kinds", "patterns")


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
    table = _table(file) if file is not None else {}
    _check_keys(file, table)
    patterns, paths, kinds, keep = map(tuple, (patterns, paths, kinds, keep))
    in_file = f"{file}: [redact]"
    on, off = _switched(file, table)
    rules = Rules(
        (*_strings(file, table, "patterns"), *patterns),
        (*_strings(file, table, "json_paths"), *paths),
        tuple(name.lower() for name in _strings(file, table, "headers")),
        (*on, *(known_kind(name, f"{prefix}redact-kind") for name in kinds)),
        (*off, *_strings(file, table, "keep"), *keep),
    )
    compiled_patterns(_strings(file, table, "patterns"), f"{in_file} patterns")
    compiled_patterns(patterns, f"{prefix}redact")
    keep_from(_strings(file, table, "keep"), f"{in_file} keep")
    keep_from(keep, f"{prefix}keep")
    compiled_paths(_strings(file, table, "json_paths"), f"{in_file} json_paths")
    compiled_paths(paths, f"{prefix}redact-path")
    return rules


def _table(file: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("redact", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} must be a TOML file: {error}") from error
    if not isinstance(table, dict):
        raise UsageError(f"{file}: `redact` must be a table, [redact]")
    return table


def _check_keys(file: Path | None, table: Mapping[str, Any]) -> None:
    for key in sorted(table.keys() - set(_OPTIONS)):
        known = f"what it may have is {', '.join(_OPTIONS)}"
        hint = did_you_mean(key, _OPTIONS)
        raise UsageError(f"{file}: [redact] has {key!r}; {'; '.join(filter(None, (known, hint)))}")


def _strings(file: Path | None, table: Mapping[str, Any], key: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{file}: [redact] {key} must be a list of strings, got {value!r}")
    return value


def _switched(file: Path | None, table: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The kinds that the table `kinds` switches on, and off."""
    value = table.get("kinds", {})
    if not isinstance(value, dict) or not all(isinstance(item, bool) for item in value.values()):
        raise UsageError(
            f"{file}: [redact] kinds must be a table such as {{phone = true, email = false}}, "
            f"got {value!r}"
        )
    for name in value:
        known_kind(name, f"{file}: [redact] kinds")
    return [name for name, on in value.items() if on], [
        name for name, on in value.items() if not on
    ]
