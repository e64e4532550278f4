"""The comparison of an SDK's types with what the encoders send."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

from mockllm.core.record import record
from tools.coverage.reasons import Reason, matching, read
from tools.unions.roots import UNIONS, items
from tools.unions.sent import sent_items

REASONS = Path(__file__).parent / "reasons"

_BOUNDARY = re.compile(r"[./\[=]")


@record
class Comparison:
    """The items of an API.

    Args:
        items: all of them.
        unsent: those that no encoder sends, in places that an encoder does send: of an item that is
            not sent, its fields are not listed.
        problems: items that are neither sent nor explained, and explanations that explain nothing.
    """

    api: str
    items: tuple[str, ...]
    unsent: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The figures in one line."""
        return (
            f"{self.api}: {len(self.items)} items of {UNIONS[self.api].source}, "
            f"{len(self.unsent)} not sent, "
            f"{len(self.problems)} problems"
        )


@cache
def comparison(api: str) -> Comparison:
    """The comparison of an API."""
    sent = sent_items(api)
    unsent = outermost(items(api), sent)
    reasons = read(REASONS / f"{api}.yaml")
    found = [*_unexplained(api, unsent, reasons), *_needless(api, unsent, reasons)]
    return Comparison(api, items(api), tuple(unsent), tuple(found))


def outermost(listed: Sequence[str], sent: Collection[str]) -> list[str]:
    """The items that are not sent, without those inside of another one that is not sent."""
    known = frozenset(listed)
    used = {item.partition("/")[0] for item in sent}

    def is_inside(item: str) -> bool:
        name, slash, _ = item.partition("/")
        if slash and name not in used:
            return True  # of a type or an event that is not sent at all
        outer = (item[: at.start()] for at in _BOUNDARY.finditer(item))
        return any(prefix not in sent for prefix in outer if prefix in known)

    return [item for item in listed if item not in sent and not is_inside(item)]


def _unexplained(api: str, unsent: list[str], reasons: list[Reason]) -> Iterator[str]:
    for item in unsent:
        if matching(item, reasons) is None:
            yield (
                f"{api}: {item} of {UNIONS[api].source} is not sent. Let the encoder send it and "
                f"the decoder read it (with a scenario in tools/unions/probes/{api}.yaml that has "
                f"it), or write into tools/unions/reasons/{api}.yaml why not."
            )


def _needless(api: str, unsent: list[str], reasons: list[Reason]) -> Iterator[str]:
    for reason in reasons:
        if not any(reason.matches(item) for item in unsent):
            yield f"{api}: the reason for {reason.pattern!r} is for no item that is not sent"
