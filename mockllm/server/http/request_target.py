"""The target of a request as it came: its session, path and query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from mockllm.core.text import shorten
from mockllm.errors import RequestError
from mockllm.protocols.routes import parse_query

SESSION_NAME = r"[A-Za-z0-9._-]{1,128}"
SESSION_HEADER = "x-mockllm-session"
_NO_QUERY: Mapping[str, str] = {}
_SESSION_PREFIX = re.compile(rf"/s/({SESSION_NAME})(?=/)")


_FIRST_LINE = re.compile(rb"([A-Za-z]{1,20}) (/[^\s]*)")


def first_line(data: bytes) -> tuple[str, str]:
    """Method and target of a request that is malformed; ("", "/") where they cannot be read."""
    found = _FIRST_LINE.match(data)
    if found is None:
        return "", "/"
    return found[1].decode(), found[2].decode("utf-8", "replace")


_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?([^/?#]*)")


def origin_form(target: str, headers: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """A target without its origin, as clients send it that take the server for a proxy
    (`GET http://127.0.0.1/v1/models`), and the headers that belong to it.

    Args:
        headers: of the request, their names in lower case; the host of the target replaces that of
            the header (RFC 9112, section 3.2.2).
    """
    found = None if target.startswith("/") else _ORIGIN.match(target)
    if found is None:
        return target, headers
    rest = target[found.end() :]
    return rest if rest.startswith("/") else f"/{rest}", {**headers, "host": found[1]}


def session_of(target: str, headers: Mapping[str, str]) -> tuple[str, str]:
    """The session's name, and the target without its prefix."""
    if target.startswith("/s/"):
        match = _SESSION_PREFIX.match(target)
        if match is not None:
            return match[1], target[match.end() :]
    return headers.get(SESSION_HEADER, "default"), target


def check_session(name: str) -> None:
    """Checks the name of a session that a header has; in a path, others are no sessions.

    Raises:
        RequestError: it is no name.
    """
    if name != "default" and re.fullmatch(SESSION_NAME, name) is None:
        shown = shorten(name, 80)
        raise RequestError(
            f"{SESSION_HEADER}: {shown!r} is no name of a session. A name has 1 to 128 letters "
            "(A to Z), digits, '.', '_' and '-'.",
            param=SESSION_HEADER,
        )


@lru_cache(maxsize=1024)
def split_target(target: str) -> tuple[str, Mapping[str, str]]:
    """Path and query of a request's target; of the path, the parts are decoded later."""
    path, mark, query = target.partition("?")
    return path, parse_query(query) if mark else _NO_QUERY
