"""The loop that plays cases to a program."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from mockllm.conformance.driver import Driver, interruption

Submit = Callable[[str], Future[str]]


def program(*, slow: str = "", until: str = "", submitted: list[str] | None = None) -> Submit:
    """Answers at once; the slow case not before another one is submitted."""
    held: Future[str] = Future()

    def submit(case: str) -> Future[str]:
        if submitted is not None:
            submitted.append(case)
        if case == until:
            held.set_result(slow.upper())
        future: Future[str] = held if case == slow else Future()
        if case != slow:
            future.set_result(case.upper())
        return future

    return submit


def test_cases_come_in_their_order_however_they_end() -> None:
    """A case that ends early waits for those before it."""
    shown: list[tuple[str, int, int]] = []
    driver = Driver(progress=lambda *line: shown.append(line))
    played = list(driver.each("abc", program(slow="a", until="b"), 2, "letters"))
    assert played == [("a", "A"), ("b", "B"), ("c", "C")]
    assert shown == [("letters", 1, 3), ("letters", 2, 3), ("letters", 3, 3)]


def test_cases_come_as_they_end() -> None:
    """One that takes long delays no other: the next one is played beside it."""
    played = list(Driver().each("abcd", program(slow="a", until="d"), 2, in_order=False))
    assert played[:2] == [("b", "B"), ("c", "C")]
    assert sorted(played[2:]) == [("a", "A"), ("d", "D")]


@pytest.mark.parametrize("side_by_side", [1, 2, 3])
def test_so_many_are_played_at_once(side_by_side: int) -> None:
    """None is submitted before it has a place."""
    submitted: list[str] = []
    cases = Driver().each("abcd", program(submitted=submitted), side_by_side)
    next(cases)
    assert submitted == list("abcd")[:side_by_side]


def test_an_interruption_ends_the_list_of_cases() -> None:
    """What is played at that time is waited for, and has its result."""
    submitted: list[str] = []
    driver = Driver(goes_on=lambda: len(submitted) < 2)
    played = list(driver.each("abcd", program(slow="a", until="b", submitted=submitted), 3))
    assert played == [("a", "A"), ("b", "B")]
    assert submitted == ["a", "b"]
    assert interruption(len(played), 4) == "interrupted after 2 of 4 cases"
    assert interruption(4, 4) == ""


def test_an_error_of_a_case_ends_the_run() -> None:
    """It is raised where the results are read, and no further case is played."""
    submitted: list[str] = []

    def submit(case: str) -> Future[str]:
        submitted.append(case)
        future: Future[str] = Future()
        future.set_exception(OSError(case))
        return future

    with pytest.raises(OSError, match="a"):
        list(Driver().each("abc", submit, 1))
    assert submitted == ["a"]
