"""Writes typed netstrings as mitmproxy does, for tests of the reader."""

from __future__ import annotations

from typing import Any


def dumps(value: Any) -> bytes:
    """A value as a typed netstring."""
    data, letter = _typed(value)
    return b"%d:%b%b" % (len(data), data, letter)


def _typed(value: Any) -> tuple[bytes, bytes]:
    match value:
        case None:
            return b"", b"~"
        case bool():
            return str(value).lower().encode(), b"!"
        case int():
            return str(value).encode(), b"#"
        case float():
            return repr(value).encode(), b"^"
        case bytes():
            return value, b","
        case str():
            return value.encode(), b";"
        case list() | tuple():
            return b"".join(map(dumps, value)), b"]"
    return b"".join(dumps(key) + dumps(one) for key, one in value.items()), b"}"
