"""`for_all`: one test that tries all cases of a law."""

from __future__ import annotations

import inspect

import pytest

from tests.cases import for_all


def test_every_case_is_tried_and_all_that_fail_are_named() -> None:
    """A failure ends no loop, and a case that skips is none."""
    tried = []

    @for_all(("left", "right"), [pytest.param(1, 1, id="one"), (2, 3), ("a", "b"), (0, 0)])
    def law(left: object, right: object) -> None:
        tried.append(left)
        if left == 0:
            pytest.skip("nothing is here")
        assert left == right

    with pytest.raises(AssertionError, match=r"2 of 4 cases fail .*\n- 2-3: .*\n") as failure:
        law()
    assert tried == [1, 2, "a", 0]
    assert "\n- a-b: " in str(failure.value)
    assert "\n- one" not in str(failure.value)


def test_fixtures_stay_arguments() -> None:
    """pytest sees the arguments that no case has; a single case can be tried by itself."""

    @for_all("number", [1, 2])
    def law(number: int, server: str) -> None:
        assert server * number == server

    assert list(inspect.signature(law).parameters) == ["server"]
    law(server="")
    law.check(number=1, server="x")
    with pytest.raises(AssertionError, match="1 of 2 cases fail"):
        law(server="x")


def test_without_a_case_to_try_the_test_skips() -> None:
    """Also where every case skips."""

    @for_all("number", [1])
    def law(number: int) -> None:
        pytest.skip("no corpus")

    with pytest.raises(pytest.skip.Exception, match="no corpus"):
        law()


def test_a_law_over_no_cases_fails() -> None:
    """A list of files that is empty by mistake proves nothing. The reason to skip is a mark."""

    @for_all("number", [])
    def law(number: int) -> None:
        raise AssertionError(number)

    with pytest.raises(AssertionError, match="over no cases"):
        law()


def test_a_wrong_table_is_an_error() -> None:
    """A case has a value for each name, and no marks."""
    with pytest.raises(ValueError, match=r"case 0 has 1 values, not 2: \(1,\)"):
        for_all("left, right", [(1,)])
    with pytest.raises(ValueError, match="has no marks of its own"):
        for_all("left", [pytest.param(1, marks=pytest.mark.slow)])
