"""Which owner runs, and to whom the code belongs that calls."""

from __future__ import annotations

import threading
from contextvars import Context

from mockllm.serve.interception.ownership import (
    BETWEEN,
    NEVER_LED,
    Owner,
    as_owner,
    begin,
    end,
    exempt_thread,
    owner_of_caller,
    running,
)


def _in_a_context(function) -> None:
    """Runs a test where nobody owns anything, as no other test does."""
    Context().run(function)


def test_the_innermost_owner_runs() -> None:
    """Until it ends; what began inside an owner ends with it."""

    def nested() -> None:
        before = running()
        outer, middle, inner = Owner("outer"), Owner("middle"), Owner("inner")
        for owner in (outer, middle, inner):
            begin(owner)
            assert running() is owner_of_caller() is owner
        end(inner)
        assert running() is owner_of_caller() is middle
        begin(inner)
        end(outer)
        assert running() is before
        end(outer)  # it is over: nothing happens
        assert running() is before
        assert owner_of_caller() is (before or BETWEEN)

    _in_a_context(nested)


def test_a_block_has_an_owner() -> None:
    """Also when it fails, the owner before it is back behind it."""

    def block() -> None:
        owner = Owner("a fixture")
        try:
            with as_owner(owner):
                assert owner_of_caller() is owner
                raise ValueError
        except ValueError:
            assert owner_of_caller() is None

    _in_a_context(block)


def test_a_thread_of_mockllm_is_led_nowhere() -> None:
    """Whatever owner its context has."""
    found = []

    def work() -> None:
        exempt_thread()
        with as_owner(Owner("a test")):
            found.append(owner_of_caller())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [NEVER_LED]
