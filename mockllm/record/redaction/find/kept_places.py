"""The places of a document in which the user keeps secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from mockllm.record.redaction.find.patterns import kind_name
from mockllm.record.redaction.find.spans import Found, Spans
from mockllm.record.redaction.rules import Keep
from mockllm.record.redaction.walk.documents import Document
from mockllm.record.redaction.walk.json_strings import JsonPath, StringValue, api_fields

_ARGUMENTS = "arguments"
# Some APIs have arguments in an `input`. At the root `input` is what a request asks.
_INPUT = "input"
_DELTA = "delta"
_DEEPEST = 3
KNOWN = "known secret"
"""The kind of what is secret because of another place."""


class KeptPlaces:
    """Decides for the secrets of a document which are kept where they are.

    Args:
        read: reads a text as a document; None where it is none.
    """

    def __init__(self, keep: Keep, read: Callable[[str], Document | None]) -> None:
        self._places = keep.places
        self._read = read

    def are_kept(self, values: Sequence[StringValue], found: Sequence[Found]) -> list[bool]:
        """For each secret in the joined text of values whether it is kept."""
        text, path = "".join([value.text for value in values]), _path_to(values[0])
        kept = [self._is_kept(secret, text, path) for secret in found]
        spans = Spans(secret for secret, is_kept in zip(found, kept, strict=True) if is_kept)
        # A secret is known from where it is not kept too.
        return [
            is_kept or (secret.kind == KNOWN and spans.overlap(secret))
            for secret, is_kept in zip(found, kept, strict=True)
        ]

    def _is_kept(self, found: Found, text: str, path: JsonPath) -> bool:
        for secret in found.secrets():
            paths = list(self._paths(secret, text, path, 0))
            if not paths or not all(self._allows(found.kind, place) for place in paths):
                return False
        return any(found.secrets())

    def _allows(self, kind: str, path: JsonPath) -> bool:
        written = _path_texts(path)
        return any(
            name in ("", kind_name(kind)) and any(place.search(form) for form in written)
            for name, place in self._places
        )

    def _paths(self, secret: str, text: str, path: JsonPath, depth: int) -> Iterator[JsonPath]:
        inner = self._read(text) if depth < _DEEPEST and text[:1] in ("{", "[") else None
        if inner is None:
            yield path
            return
        for value in inner.values:
            if secret in value.text:
                yield from self._paths(secret, value.text, path + value.field.path, depth + 1)


def _path_to(value: StringValue) -> JsonPath:
    """The path to a value; fragments of arguments that events call `delta` are in `arguments`."""
    path = value.field.path
    if value.field.name == _DELTA and path:
        kind = value.ids[0].lower()
        if "arg" in kind or "tool_call" in kind:
            return (*path[:-1], _ARGUMENTS)
    return path


def _path_texts(path: JsonPath) -> Iterable[str]:
    """A path as `compiled_paths` reads it: with the names of the service, and with `arguments` for
    the arguments of a call."""
    plain = "".join(f"\x1f{step}" for step in path)
    names = api_fields().arguments
    steps = (
        _ARGUMENTS if step in names or (step == _INPUT and index) else step
        for index, step in enumerate(path)
    )
    return dict.fromkeys((plain, "".join(f"\x1f{step}" for step in steps)))
