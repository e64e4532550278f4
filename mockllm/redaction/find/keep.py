"""What a user keeps although it looks like a secret: by its kind, its place or its text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mockllm.redaction.find.detector import known_kind
from mockllm.redaction.find.user_patterns import UserPattern, compiled_patterns
from mockllm.redaction.walk.json_paths import compiled

_IN = re.compile(r"(.*?)\s+in\s+(\$.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Keep:
    """What is kept.

    Args:
        kinds: names of kinds that are kept everywhere.
        places: paths, as `json_paths.compiled` gives them, each with the name of the kind that is
            kept there, or with "" where everything is.
        patterns: secrets that one of them matches in full are kept.
    """

    kinds: frozenset[str] = frozenset()
    places: tuple[tuple[str, re.Pattern[str]], ...] = ()
    patterns: tuple[UserPattern, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.places or self.patterns)

    def at(self, paths: Iterable[str]) -> frozenset[str]:
        """The names of the kinds that are kept at a place; "" is among them for everything.

        Args:
            paths: the path to the place, in each form in which a user may write it.
        """
        if not self.places:
            return frozenset()
        paths = tuple(paths)
        return frozenset(
            kind for kind, place in self.places if any(place.search(path) for path in paths)
        )

    def matches(self, secret: str) -> bool:
        """Whether a pattern keeps a secret."""
        return any(pattern.is_whole(secret) for pattern in self.patterns)


def keep_from(entries: Iterable[str], where: str) -> Keep:
    """What the entries of `keep` mean: `email`, `$..arguments.to`, `email in $..arguments` or
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
    found = compiled([path], where)
    assert found is not None
    return found
