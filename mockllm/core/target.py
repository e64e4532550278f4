"""What the path and the query of a request say, beside its body. Only data may live here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["NO_TARGET", "Target"]

_EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a request (RFC 9112, section 3.2), read by the route that matched it.

    Args:
        segments: the named segments of the path (`model`, `deployment`, ...), unquoted.
        method: what follows the last colon of the path, as Google's APIs name the method that is
            called (`streamGenerateContent`); "" where there is no colon.
        query: the parameters of the query, the last value of each name.
    """

    segments: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    method: str = ""
    query: Mapping[str, str] = field(default_factory=lambda: _EMPTY)

    @property
    def key(self) -> tuple[str, ...]:
        """What two targets share when they say the same, in the same order."""
        return (
            self.method,
            *(text for pair in self.segments.items() for text in pair),
            "?",
            *(text for pair in self.query.items() for text in pair),
        )


NO_TARGET = Target()
"""The target of a request whose path has no named segments and that has no query."""
