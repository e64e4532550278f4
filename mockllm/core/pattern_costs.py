"""How long a search with a regular expression of Python may take, from its text alone.

`re` tries alternatives one after the other. The steps of a search are bounded here by a polynomial
of the length of the searched text, or not at all: a repeat in a repeat may need exponential time.
The bound is never too low, and often too high.
"""

from __future__ import annotations

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Cost", "cost_of"]

_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_SINGLE = 2
_MOST = 10**12
"""Larger factors are as good as none."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a pattern may cost.

    Args:
        factor, degree: a search in n characters tries at most factor * (n + 1) ** degree ways to
            match; a degree of None stands for no bound.
        weight: the nodes of the pattern, each as often as its counted repeats demand it. A repeat
            of one character counts as one node.
        folded: the characters of its ranges that a compiler looks at to ignore upper and lower
            case.
    """

    factor: int
    degree: int | None
    weight: int
    folded: int

    def steps(self, size: int) -> float:
        """The most steps that a search in `size` characters takes."""
        return float("inf") if self.degree is None else self.factor * (size + 1.0) ** self.degree


_ONE = Cost(1, 0, 1, 0)


def cost_of(pattern: str) -> Cost:
    """The cost of a search for a pattern anywhere in a text.

    Raises:
        re.error, OverflowError, RecursionError: it is no regular expression of Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = parser.parse(pattern)
    items = list(parsed)
    cost = _sequence(items)
    # `^` fails at once wherever the text does not begin.
    starts = 0 if _anchored(items, parsed.state.flags) else 1
    folded = cost.folded if parsed.state.flags & re.IGNORECASE or "(?" in pattern else 0
    degree = None if cost.degree is None else max(1, cost.degree + starts)
    return Cost(cost.factor, degree, cost.weight, folded)


def _anchored(items: list[Any], flags: int) -> bool:
    return bool(
        items
        and items[0][0] is op.AT
        and (
            items[0][1] is op.AT_BEGINNING_STRING
            or (items[0][1] is op.AT_BEGINNING and not flags & re.MULTILINE)
        )
    )


def _sequence(items: Iterable[Any]) -> Cost:
    """The cost of nodes one after the other: each way through one may go on in each way of the
    next."""
    factor, degree, weight, folded = 1, 0, 1, 0
    bounded = True
    for node in items:
        cost = _node(*node)
        factor = min(_MOST, factor * cost.factor)
        weight += cost.weight
        folded += cost.folded
        if cost.degree is None:
            bounded = False
        else:
            degree += cost.degree
    return Cost(factor, degree if bounded else None, weight, folded)


def _node(kind: Any, value: Any) -> Cost:
    if kind in _REPEATS:
        return _repeat(*value)
    if kind is op.BRANCH:
        return _branch(value[1])
    if kind is op.SUBPATTERN:
        return _sequence(value[3])
    if kind is op.ATOMIC_GROUP:
        return _sequence(value)
    if kind in (op.ASSERT, op.ASSERT_NOT):
        return _sequence(value[1])
    if kind is op.GROUPREF_EXISTS:
        return _branch([value[1], value[2] or []])
    if kind is op.GROUPREF:
        return Cost(1, 1, 1, 0)  # it compares as many characters as the group has
    if kind is op.IN:
        return Cost(1, 0, len(value), sum(_width(*one) for one in value))
    return _ONE


def _width(kind: Any, value: Any) -> int:
    return int(value[1]) - int(value[0]) + 1 if kind is op.RANGE else 1


def _branch(options: list[Any]) -> Cost:
    costs = [_sequence(one) for one in options]
    weight, folded = sum(one.weight for one in costs), sum(one.folded for one in costs)
    degrees = [one.degree for one in costs if one.degree is not None]
    factors = [one.factor for one in costs]
    # Where the first characters differ, at most one alternative goes beyond its first.
    factor = max(factors) if _exclusive(options) else min(_MOST, sum(factors))
    return Cost(factor, max(degrees) if len(degrees) == len(costs) else None, weight, folded)


def _exclusive(options: list[Any]) -> bool:
    firsts = []
    for one in options:
        if not len(one) or one[0][0] is not op.LITERAL:
            return False
        firsts.append(chr(one[0][1]).casefold())
    return len(set(firsts)) == len(firsts)


def _repeat(least: Any, most: Any, body: Any) -> Cost:
    inner = _sequence(body)
    endless = most is op.MAXREPEAT
    single = inner.weight <= _SINGLE and inner.degree == 0 and inner.factor == 1
    weight = inner.weight * (1 if single else max(int(least), 1 if endless else int(most), 1))
    if most == 1:
        return Cost(min(_MOST, inner.factor + 1), inner.degree, weight, inner.folded)
    if int(body.getwidth()[0]) == 0:  # it may be repeated without end at one place
        return Cost(1, None, weight, inner.folded)
    if inner.degree == 0 and inner.factor == 1:
        # One way through the body: the ways differ in how often it is repeated.
        if endless or most > 1000:
            return Cost(1, 1, weight, inner.folded)
        return Cost(int(most) - int(least) + 1, 0, weight, inner.folded)
    if endless or most > 64:
        return Cost(1, None, weight, inner.folded)
    factor = min(_MOST, inner.factor ** int(most) * (int(most) - int(least) + 1))
    degree = None if inner.degree is None else inner.degree * int(most)
    return Cost(factor, degree, weight, inner.folded)
