"""The target of a request as it came: its session, path and query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from mockllm.protocols.routes import parse_query

__all__ = ["SESSION_HEADER", "SESSION_NAME", "session_of", "split_target"]

SESSION_NAME = r"[A-Za-z0-9._-]{1,128}"
SESSION_HEADER = "x-mockllm-session"
_NO_QUERY: Mapping[str, str] = {}
_SESSION_PREFIX = re.compile(rf"/s/({SESSION_NAME})(?=/)")


def session_of(target: str, headers: Mapping[str, str]) -> tuple[str, str]:
    """The session's name, and the target without its prefix."""
    if target.startswith("/s/"):
        match = _SESSION_PREFIX.match(target)
        if match is not None:
            return match[1], target[match.end() :]
    return headers.get(SESSION_HEADER, "default"), target


@lru_cache(maxsize=1024)
def split_target(target: str) -> tuple[str, Mapping[str, str]]:
    """Path and query of a request's target; of the path, the parts are decoded later."""
    path, mark, query = target.partition("?")
    return path, parse_query(query) if mark else _NO_QUERY
