"""The target of a request: its path and query. Only data may live here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from mockllm.core.record import record

_EMPTY: Mapping[str, str] = MappingProxyType({})


@record
class Target:
    """The target of a request (RFC 9112, section 3.2), read by the route that matched it.

    Args:
        segments: the named segments of the path (`model`, `deployment`, ...), unquoted.
        method: the text after the last colon of the path, where Google's APIs have the method
            (`streamGenerateContent`); "" without a colon.
        query: the parameters of the query, the last value of each name.
    """

    segments: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    method: str = ""
    query: Mapping[str, str] = field(default_factory=lambda: _EMPTY)

    @property
    def key(self) -> tuple[str, ...]:
        """A hashable value that is equal for equal targets, with their names in the same order."""
        if not self.segments and not self.query:
            return self.method, "?"
        return (
            self.method,
            *(text for pair in self.segments.items() for text in pair),
            "?",
            *(text for pair in self.query.items() for text in pair),
        )


NO_TARGET = Target()
"""The target of a request whose path has no named segments and that has no query."""
