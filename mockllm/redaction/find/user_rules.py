"""What a user calls secret, by a pattern or a path in JSON such as `$.user` or `$..email`; and
what he keeps although it looks like a secret: by its kind, its place or its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mockllm.core.patterns import PatternError, PatternGaveUpError, TimedPattern, compiled
from mockllm.errors import UsageError, WireError
from mockllm.redaction.find.detector import kind_name, known_kind
from mockllm.redaction.find.found import Found, Spans
from mockllm.redaction.walk.documents import Document
from mockllm.redaction.walk.json_strings import Path, StringValue, api_fields

_STEP = re.compile(
    r"(?:(?P<deep>\.\.)|\.|(?=\[))"
    r"(?:(?P<name>[A-Za-z_][\w-]*)|(?P<any>\*)|\[(?:(?P<index>\d+)|(?P<all>\*)"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\")\])"
)


def compiled_paths(paths: Iterable[str], where: str = "") -> re.Pattern[str] | None:
    """A pattern that finds the values below any of some paths; None without paths.

    It searches the path to a value, written as its steps, each after U+001F.

    Args:
        where: the file and key, or the option, for messages; "" for none.

    Raises:
        UsageError: a path that cannot be read.
    """
    patterns = [_pattern(path, where) for path in paths]
    return re.compile("|".join(patterns)) if patterns else None


def _pattern(path: str, where: str) -> str:
    at = 1
    steps = [r"\A"]
    while path[:1] == "$" and at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            break
        if step["deep"]:
            steps.append(r"(?:\x1f[^\x1f]*)*")
        name = step["name"] or step["index"] or step["single"] or step["double"]
        steps.append(r"\x1f[^\x1f]*" if name is None else r"\x1f" + re.escape(name))
        at = step.end()
    if at != len(path) or at == 1:
        begin = f"{where}: " if where else ""
        raise UsageError(
            f"{begin}{path!r} is no path that is known here; such are $.user, "
            "$.metadata['user id'], $.messages[*].name, $.input[0] and $..email"
        )
    return "".join(steps) + r"(?=\x1f|\Z)"


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
            pattern = compiled(text)
        except PatternError as error:
            raise UsageError(f"{begin}{text!r} {error}") from error
        if pattern.is_whole(""):
            raise UsageError(
                f"{begin}{text!r} matches the empty text too; a secret has a character"
            )
        result.append(pattern)
    return tuple(result)


def searched(search: Callable[[str], _T], text: str) -> _T:
    """What a method of a user's pattern says of a text.

    Raises:
        WireError: the search took too long, so that it is not known what is secret.
    """
    try:
        return search(text)
    except PatternGaveUpError as error:
        raise WireError(f"it is not known which secrets it has: {error}") from None


@dataclass(frozen=True, slots=True)
class Keep:
    """What is kept.

    Args:
        kinds: names of kinds that are kept everywhere.
        places: paths, as `compiled_paths` gives them, each with the name of the kind that is kept
            there, or with "" where everything is.
        patterns: secrets that one of them matches in full are kept.
    """

    kinds: frozenset[str] = frozenset()
    places: tuple[tuple[str, re.Pattern[str]], ...] = ()
    patterns: tuple[TimedPattern, ...] = ()

    def matches(self, secret: str) -> bool:
        """Whether a pattern keeps a secret."""
        return any(searched(pattern.is_whole, secret) for pattern in self.patterns)


_IN = re.compile(r"(.*?)\s+in\s+(\$.*)\Z", re.DOTALL)


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
    found = compiled_paths([path], where)
    assert found is not None
    return found


# Places

_ARGUMENTS = "arguments"
# Some APIs have arguments in an `input`. At the root `input` is what a request asks.
_INPUT = "input"
_DELTA = "delta"
_DEEPEST = 3
_KNOWN = "known secret"


class KeptPlaces:
    """Decides for the secrets of a document which are kept where they are.

    Args:
        read: reads a text as a document; None where it is none.
    """

    def __init__(self, keep: Keep, read: Callable[[str], Document | None]) -> None:
        self._places = keep.places
        self._read = read

    def __bool__(self) -> bool:
        return bool(self._places)

    def kept(self, values: Sequence[StringValue], found: Sequence[Found]) -> list[bool]:
        """For each secret in the joined text of values whether it is kept."""
        text, path = "".join([value.text for value in values]), _path_to(values[0])
        kept = [self._is_kept(secret, text, path) for secret in found]
        spans = Spans(secret for secret, is_kept in zip(found, kept, strict=True) if is_kept)
        # A secret is known from where it is not kept too.
        return [
            is_kept or (one.kind == _KNOWN and spans.overlap(one))
            for one, is_kept in zip(found, kept, strict=True)
        ]

    def _is_kept(self, found: Found, text: str, path: Path) -> bool:
        for secret in found.secrets():
            paths = list(self._paths(secret, text, path, 0))
            if not paths or not all(self._allows(found.kind, one) for one in paths):
                return False
        return any(found.secrets())

    def _allows(self, kind: str, path: Path) -> bool:
        written = _written(path)
        return any(
            name in ("", kind_name(kind)) and any(place.search(one) for one in written)
            for name, place in self._places
        )

    def _paths(self, secret: str, text: str, path: Path, depth: int) -> Iterator[Path]:
        inner = self._read(text) if depth < _DEEPEST and text[:1] in ("{", "[") else None
        if inner is None:
            yield path
            return
        for value in inner.values:
            if secret in value.text:
                yield from self._paths(secret, value.text, path + value.field.path, depth + 1)


def _path_to(value: StringValue) -> Path:
    """The path to a value; fragments of arguments that events call `delta` are in `arguments`."""
    path = value.field.path
    if value.field.name == _DELTA and path:
        kind = value.ids[0].lower()
        if "arg" in kind or "tool_call" in kind:
            return (*path[:-1], _ARGUMENTS)
    return path


def _written(path: Path) -> Iterable[str]:
    """A path as `compiled_paths` reads it: with the names of the service, and with `arguments` for
    the arguments of a call."""
    plain = "".join(f"\x1f{step}" for step in path)
    names = api_fields().arguments
    steps = (
        _ARGUMENTS if step in names or (step == _INPUT and index) else step
        for index, step in enumerate(path)
    )
    return dict.fromkeys((plain, "".join(f"\x1f{step}" for step in steps)))
