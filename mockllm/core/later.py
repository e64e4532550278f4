"""Work that may take long: done now, or handed to the caller, who does it in a thread.

A pure core does not know of threads. Who calls it from an event loop wraps the call in `deferring`;
work that is not done yet then raises `NotDoneError`, and the caller does it and calls again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

_Result = TypeVar("_Result")

Outcomes = Mapping[Hashable, Callable[[], Any]]
"""By the key of each piece of work: a function that returns its result, or raises its error."""

_outcomes: ContextVar[Outcomes | None] = ContextVar("outcomes", default=None)


class NotDoneError(Exception):
    """Something must be read or computed before a request can be answered.

    It is raised before anything is counted or recorded. The caller runs `read` in a thread that may
    block, notes the outcome under `key`, and calls again.

    Args:
        key: of the outcome; unique among all work.
        read: does the work, and raises what is wrong with it; it may run in any thread.
    """

    def __init__(self, key: Hashable, read: Callable[[], object]) -> None:
        super().__init__(key)
        self.key = key
        self.read = read


class deferring:  # noqa: N801 - a context manager, read as a verb
    """Within it, `later` raises `NotDoneError` for all work without an outcome; with None, it does
    the work. A class, since every request enters it: a generator takes four times as long."""

    __slots__ = ("_new", "_token")

    def __init__(self, outcomes: Outcomes | None) -> None:
        self._new = outcomes

    def __enter__(self) -> None:
        self._token = _outcomes.set(self._new)

    def __exit__(self, *_: object) -> None:
        _outcomes.reset(self._token)


def later(key: Hashable, work: Callable[[], _Result]) -> _Result:
    """The result of `work`, done now or, within `deferring`, before.

    Raises:
        NotDoneError: within `deferring`, where the outcome is not known.
    """
    outcomes = _outcomes.get()
    if outcomes is None:
        return work()
    outcome = outcomes.get(key)
    if outcome is None:
        raise NotDoneError(key, work)
    result: _Result = outcome()
    return result
