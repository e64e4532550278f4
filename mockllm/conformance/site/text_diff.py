"""The difference of two texts, as runs to be marked. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

_MOST_TOKENS = 3000
_LONGEST_SAME = 160


@dataclass(frozen=True, slots=True)
class Run:
    """Characters that both texts have (`same`), only the expected (`missing`), or only the actual
    one (`extra`); `fold` stands for a long part of both that is shown on request."""

    kind: str
    text: str


def text_diff(expected: str, actual: str) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """The runs of the expected and of the actual text: words where they are short, and their
    middle without the common beginning and end where they are long."""
    left, right = _tokens(expected), _tokens(actual)
    if len(left) + len(right) > _MOST_TOKENS:
        ends = _ends(expected, actual)
        return _runs(expected, ends, "missing"), _runs(actual, ends, "extra")
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    ones: list[Run] = []
    others: list[Run] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        ones += _run("same" if kind == "equal" else "missing", "".join(left[a:b]))
        others += _run("same" if kind == "equal" else "extra", "".join(right[c:d]))
    return tuple(ones), tuple(others)


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", text)


def _run(kind: str, text: str) -> Iterator[Run]:
    if kind == "same" and len(text) > _LONGEST_SAME:
        edge = _LONGEST_SAME // 4
        yield Run("same", text[:edge])
        yield Run("fold", text[edge:-edge])
        yield Run("same", text[-edge:])
    elif text:
        yield Run(kind, text)


def _ends(one: str, other: str) -> tuple[int, int]:
    """The lengths of the common beginning and of the common end."""
    most = min(len(one), len(other))
    head = next((n for n in range(most) if one[n] != other[n]), most)
    tail = next((n for n in range(most - head) if one[-1 - n] != other[-1 - n]), most - head)
    return head, tail


def _runs(text: str, ends: tuple[int, int], kind: str) -> tuple[Run, ...]:
    head, tail = ends
    end = len(text) - tail
    parts = [("same", text[:head]), (kind, text[head:end]), ("same", text[end:])]
    return tuple(run for name, part in parts for run in _run(name, part))
