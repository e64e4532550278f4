"""Where in a document a secret is, and whether a user keeps what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from mockllm.redaction.find.detector import kind_name
from mockllm.redaction.find.found import Found, Spans
from mockllm.redaction.find.keep import Keep
from mockllm.redaction.walk.channels import Channel
from mockllm.redaction.walk.documents import Document
from mockllm.redaction.walk.json_strings import StringValue, api_fields

_Path = tuple[str | int, ...]
_ARGUMENTS = "arguments"
# Some APIs have arguments in an `input`. At the root `input` is what a request asks.
_INPUT = "input"
_DELTA = "delta"
_DEEPEST = 3


class Places:
    """Decides for the secrets of a document which are kept.

    Args:
        keep: what the user keeps.
        read: reads a text as a document; None where it is none.
    """

    def __init__(self, keep: Keep, read: Callable[[str], Document | None]) -> None:
        self._keep = keep
        self._read = read

    def __bool__(self) -> bool:
        return bool(self._keep.places)

    def in_channel(self, channel: Channel, found: Sequence[Found]) -> list[bool]:
        """For each secret in the joined text of a channel whether it is kept."""
        if not self or not found:
            return [False] * len(found)
        text = "".join([value.text for value in channel.values])
        return self._kept(found, text, _path(channel.values[0]))

    def in_value(self, value: StringValue, found: Sequence[Found]) -> list[bool]:
        """For each secret in the text of a value whether it is kept."""
        if not self or not found:
            return [False] * len(found)
        return self._kept(found, value.text, _path(value))

    def _kept(self, found: Sequence[Found], text: str, path: _Path) -> list[bool]:
        kept = [self._is_kept(one, text, path) for one in found]
        spans = Spans(one for one, is_kept in zip(found, kept, strict=True) if is_kept)
        # A secret is known from where it is not kept too.
        return [
            is_kept or (one.kind == _KNOWN and spans.overlap(one))
            for one, is_kept in zip(found, kept, strict=True)
        ]

    def _is_kept(self, found: Found, text: str, path: _Path) -> bool:
        for secret in found.secrets():
            paths = list(self._paths(secret, text, path, 0))
            if not paths or not all(self._allows(found.kind, one) for one in paths):
                return False
        return any(found.secrets())

    def _allows(self, kind: str, path: _Path) -> bool:
        kinds = self._keep.at(_written(path))
        return "" in kinds or kind_name(kind) in kinds

    def _paths(self, secret: str, text: str, path: _Path, depth: int) -> Iterator[_Path]:
        """The paths to the innermost strings that have a secret."""
        inner = self._read(text) if depth < _DEEPEST and text[:1] in ("{", "[") else None
        if inner is None:
            yield path
            return
        for value in inner.values:
            if secret in value.text:
                yield from self._paths(secret, value.text, path + value.field.path, depth + 1)


_KNOWN = "known secret"


def _path(value: StringValue) -> _Path:
    """The path to a value; fragments of arguments that events call `delta` are in `arguments`."""
    path = value.field.path
    if value.field.name == _DELTA and path:
        kind = value.ids[0].lower()
        if "arg" in kind or "tool_call" in kind:
            return (*path[:-1], _ARGUMENTS)
    return path


def _written(path: _Path) -> Iterable[str]:
    """A path as `json_paths.compiled` reads it: with the names of the service, and with
    `arguments` for the arguments of a call."""
    plain = "".join(f"\x1f{step}" for step in path)
    names = api_fields().arguments
    steps = (
        _ARGUMENTS if step in names or (step == _INPUT and index) else step
        for index, step in enumerate(path)
    )
    return dict.fromkeys((plain, "".join(f"\x1f{step}" for step in steps)))
