"""The order and the places of clients, of each API. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mockllm.conformance.results import Results
from mockllm.conformance.site.columns import Column, column_of
from mockllm.conformance.site.rendering import addresses
from mockllm.wire.protocols import PROTOCOLS


def sections_of(results: Sequence[Results]) -> tuple[list[Column], list[Column]]:
    """The columns of clients that were sent streams, and of those that were judged by the rules of
    resilience alone."""
    pairs = list(zip(results, _keys(results), strict=True))
    rules = [pair for pair in pairs if pair[0].cases and len(pair[0].rules) == len(pair[0].groups)]
    return _columns([pair for pair in pairs if pair not in rules]), _columns(rules)


def _columns(pairs: Iterable[tuple[Results, str]]) -> list[Column]:
    """The columns of each API, the fewest severe mistakes first, those without a place last."""
    columns = [column_of(results, key) for results, key in pairs]
    apis = [*PROTOCOLS, *sorted({column.results.api for column in columns} - set(PROTOCOLS))]
    of_apis = ([column for column in columns if column.results.api == api] for api in apis)
    return [column for of_api in of_apis for column in _with_places(of_api)]


def _with_places(columns: Iterable[Column]) -> list[Column]:
    found = sorted(
        columns, key=lambda column: (_order(column), column.results.client.name.lower(), column.key)
    )
    orders = [_order(column) for column in found]
    return [
        replace(column, place=0 if order[0] else orders.index(order) + 1)
        for column, order in zip(found, orders, strict=True)
    ]


_ENOUGH = 0.8
"""The part of its cases of which a client has to be judged, so that it has a place."""


def _is_judged_enough(results: Results) -> bool:
    cases = [case for case in results.cases if case.verdict != "not applicable"]
    judged = sum(case.verdict not in ("not judged", "adapter") for case in cases)
    return bool(cases) and judged >= _ENOUGH * len(cases)


def _keys(results: Sequence[Results]) -> list[str]:
    """An address for each; the version is in it only where it is needed."""
    short = [f"{result.client.name} {result.api}" for result in results]
    names = [
        name if short.count(name) == 1 else f"{name} {one.client.version} {one.date}"
        for name, one in zip(short, results, strict=True)
    ]
    names = [
        name if names.count(name) == 1 else f"{name} {names[:n].count(name) + 1}"
        for n, name in enumerate(names)
    ]
    found = addresses(names)
    return [found[name] for name in names]


def _order(column: Column) -> tuple[int, ...]:
    return (not _is_judged_enough(column.results), *column.counts)
