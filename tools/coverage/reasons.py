"""The written reasons for items that no case plays: `reasons/<api>.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

FOLDER = Path(__file__).parent / "reasons"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why no case plays some items.

    Args:
        pattern: an item; `*` stands for any characters.
        text: the reason.
    """

    pattern: str
    text: str

    def matches(self, item: str) -> bool:
        """Whether the reason is for an item."""
        return _expression(self.pattern).fullmatch(item) is not None


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))))


def read(path: Path) -> list[Reason]:
    """The reasons in a file, which maps patterns to texts.

    Raises:
        TypeError: the file is not such a mapping.
        ValueError: a reason is not text.
    """
    values = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    values = {} if values is None else values
    if not isinstance(values, Mapping):
        raise TypeError(f"{path} must map items to reasons, got {type(values).__name__}")
    for pattern, text in values.items():
        if not isinstance(pattern, str) or not isinstance(text, str) or not text.strip():
            raise ValueError(f"{path}: {pattern!r} needs a reason as text, got {text!r}")
    return [Reason(pattern, text.strip()) for pattern, text in values.items()]


def matching(item: str, reasons: Iterable[Reason]) -> Reason | None:
    """The first reason for an item."""
    return next((reason for reason in reasons if reason.matches(item)), None)


def problems(
    items: Iterable[str], played: Mapping[str, str], reasons: Iterable[Reason]
) -> list[str]:
    """What is wrong: items without case and reason, and reasons that are not needed."""
    reasons, items = list(reasons), list(items)
    found = [
        f"{item} is played by no case and has no reason"
        for item in items
        if item not in played and matching(item, reasons) is None
    ]
    for reason in reasons:
        covered = [item for item in items if reason.matches(item)]
        if not covered:
            found.append(f"the reason for {reason.pattern!r} is for no item")
        found += [
            f"the reason for {reason.pattern!r} is for {item}, which {played[item]} plays"
            for item in covered
            if item in played
        ]
    return found
