"""What finds the secrets of all kinds in a text, and which kinds are switched on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from mockllm.core.text import did_you_mean
from mockllm.errors import UsageError
from mockllm.redaction.find.addresses import emails
from mockllm.redaction.find.patterns import PATTERNS, credentials_in, part_at_end
from mockllm.redaction.find.personal import PERSONAL

EMAIL = "e-mail address"
PASSWORD = "password or key"  # noqa: S105
_PART = "part of a key"
_NAMES = {EMAIL: "email", PASSWORD: "password"}
_OTHERS = ("private key", "AWS secret key", "cookie", _PART, EMAIL, PASSWORD)


@cache
def kind_name(kind: str) -> str:
    """The name of a kind in the configuration: `GitHub token` is `github-token`."""
    if kind.startswith("field "):
        return _NAMES[PASSWORD]
    return _NAMES.get(kind) or re.sub(r"[^a-z0-9]+", "-", kind.lower())


@cache
def kinds() -> dict[str, bool]:
    """All kinds by their names in the configuration, and whether each is on by default."""
    named = sorted(
        {kind_name(kind) for kind in (*_OTHERS, *(pattern.kind for pattern in PATTERNS))}
    )
    return dict.fromkeys(named, True) | dict.fromkeys(map(kind_name, PERSONAL), False)


def known_kind(name: str, where: str) -> str:
    """The name, if there is such a kind.

    Args:
        where: the file and key, or the option, for the message.

    Raises:
        UsageError: there is none.
    """
    if name in kinds():
        return name
    hint = did_you_mean(name, kinds(), "docs/recording.md lists them")
    raise UsageError(f"{where}: {name!r} is no kind of secret; {hint}")


class Detector:
    """Finds the secrets of the kinds that are switched on.

    Args:
        on: names of kinds that are off by default.
        off: names of kinds that are not searched.
    """

    def __init__(self, on: frozenset[str] = frozenset(), off: frozenset[str] = frozenset()) -> None:
        self._off = off
        self._personal = [
            (kind, find)
            for kind, find in PERSONAL.items()
            if kind_name(kind) in on and kind_name(kind) not in off
        ]

    def is_off(self, kind: str) -> bool:
        """Whether secrets of a kind stay."""
        return bool(self._off) and kind_name(kind) in self._off

    def find(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        """The secrets in a text that is no document, each with its kind; they may overlap."""
        for kind, span in self._all(text):
            if not self.is_off(kind):
                yield kind, span

    def _all(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        yield from credentials_in(text)
        yield from ((EMAIL, span) for span in emails(text))
        for kind, find in self._personal:
            yield from ((kind, span) for span in find(text))
        part = part_at_end(text)
        if part is not None:
            yield _PART, part
