"""Whose request is it? The test, or the fixture, to which the code belongs that makes a request.

A test is an `Owner` from its setup to its teardown. What it runs carries it: contexts by a
variable, threads by a mark that they get when they are started, work for a pool by what is called
for it. So a request is known by who caused it, and not by what runs when it arrives. Imported in
every run of pytest: it needs little.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockllm.serve.interception.redirect import Redirect


class Owner:
    """A test, or something else to which requests belong.

    Args:
        name: the id of the test.
        redirect: where its requests go; None: nowhere else.

    Attributes:
        refuse: returns where requests go that are of another owner, or of none that is known, and
            that belong to no session: while this owner runs, they are refused there. None: they go
            their way.
        thread: the one in which it was made.
    """

    def __init__(self, name: str, redirect: Redirect | None = None) -> None:
        self.name = name
        self.redirect = redirect
        self.refuse: Refuse | None = None
        self.thread = threading.get_ident()

    def lead(self, redirect: Redirect, refuse: Refuse | None) -> None:
        """Its requests go elsewhere from now on, also when it is over.

        Args:
            refuse: as of the attribute.
        """
        self.redirect, self.refuse = redirect, refuse


Refuse = Callable[[Owner | None], "Redirect"]

WHOEVER_RUNS = Owner("whoever runs")
"""The owner of what a fixture with a wider scope makes: it works for each test that uses it."""

NEVER_LED = Owner("mockllm")
"""The owner of mockllm's own threads, whose requests go to the services."""

BETWEEN = Owner("what began before or between the tests")

_owner: ContextVar[Owner | None] = ContextVar("mockllm_owner", default=None)
_running: list[Owner] = []
_MARK = "_mockllm_owner"

_Function = Callable[..., Any]


def begin_between() -> None:
    """Assigns the current context to no test, with all that it starts, unless it belongs to one."""
    if owner_of_caller() is None:
        _owner.set(BETWEEN)


def begin(owner: Owner) -> None:
    """From now on an owner runs, inside those that run already; the current context is its own."""
    _running.append(owner)
    _owner.set(owner)


def end(owner: Owner) -> None:
    """An owner runs no more, nor what began inside it."""
    if owner in _running:
        del _running[_running.index(owner) :]
    _owner.set(_running[-1] if _running else BETWEEN)


def running() -> Owner | None:
    """The innermost owner that runs."""
    return _running[-1] if _running else None


def adopt(context: Context, owner: Owner) -> None:
    """Assigns a context, with all that runs in it from now on, to an owner."""
    context.run(_owner.set, owner)


@contextmanager
def as_owner(owner: Owner | None) -> Iterator[None]:
    """While it lasts, the current context belongs to an owner."""
    before = _owner.get()
    _owner.set(owner)
    try:
        yield
    finally:
        _owner.set(before)


def exempt_thread() -> None:
    """Never redirects what the current thread asks, nor what threads ask that it starts."""
    threading.current_thread().__dict__[_MARK] = NEVER_LED


def owner_of_caller() -> Owner | None:
    """The owner of the code that calls; None where nothing says it."""
    own: Owner | None = threading.current_thread().__dict__.get(_MARK)
    if own is NEVER_LED:
        return NEVER_LED
    return _owner.get() or own


def find_redirect() -> Redirect | None:
    """Where a request of the code that calls goes; None where it goes its way.

    A request belongs to its owner, also when that is over. What has no owner, or one without a
    session, is refused while another test runs that has one.
    """
    owner = owner_of_caller()
    if owner is NEVER_LED:
        return None
    if owner is None and _running and threading.get_ident() == _running[-1].thread:
        owner = _running[-1]  # an empty context, in the thread of the test
    if owner is None or (owner is not WHOEVER_RUNS and owner not in _running):
        outward = [] if owner is None else [owner]
    else:  # what has no session has that of the owner around it
        outward = _running[_running.index(owner) :: -1] if owner in _running else _running[::-1]
    redirect = next(filter(None, (each.redirect for each in outward)), None)
    if redirect is not None or not _running or owner in (WHOEVER_RUNS, _running[-1]):
        return redirect
    refuse = next(filter(None, (each.refuse for each in reversed(_running))), None)
    return None if refuse is None else refuse(owner)


# What carries an owner


def call_for(owner: Owner, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    """Calls a function for an owner."""
    with as_owner(owner):
        return function(*args, **options)


def start_thread(start: Callable[..., None], thread: threading.Thread) -> None:
    """Starts a thread, which belongs to what starts it."""
    thread.__dict__.setdefault(_MARK, owner_of_caller())
    start(thread)


def submit(original: _Function, pool: Any, function: Any, /, *args: Any, **more: Any) -> Any:
    """Hands work to a pool of threads, for the owner of the caller: a pool outlives tests."""
    owner = owner_of_caller()
    if owner is None:
        return original(pool, function, *args, **more)
    return original(pool, call_for, owner, function, *args, **more)


def submit_many(original: _Function, pool: Any, function: Any, /, *args: Any, **more: Any) -> Any:
    """Hands work to a `ThreadPool` of multiprocessing, for the owner of the caller. Other pools,
    which have processes, get what they were given."""
    from multiprocessing.pool import ThreadPool

    owner = owner_of_caller()
    if owner is not None and isinstance(pool, ThreadPool):
        function = partial(call_for, owner, function)
    return original(pool, function, *args, **more)
