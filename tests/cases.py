"""One test of a law over all its cases: `for_all`.

As parameters of pytest, hundreds of cases are hundreds of tests, which cost more time than what
they check. Here they are one test. It tries every case and names all that fail.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from mockllm.checking.cases.build import _compile_once as compiled_cases

_MOST_CASES = 1500
"""Compiled cases of the kit that may stay: some 60 MB."""

_SHOWN = 5
"""So many failures are shown with their messages; the others by name."""

_chosen: list[str] = []


def choose_cases(text: str | None) -> None:
    """From now on only the cases with this text in their names are tried (`--case`)."""
    _chosen[:] = [text] if text else []


def forget_cases() -> None:
    """Empties the cache of the kit's compiled cases where there are many."""
    if compiled_cases.cache_info().currsize > _MOST_CASES:
        compiled_cases.cache_clear()


def for_all(
    names: str | Sequence[str], cases: Iterable[Any], *, ids: Any = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a test that runs for each case, with the arguments of `pytest.mark.parametrize`.

    Fixtures are made once for all cases. A case that skips is left out; where all skip, so does
    the test. The test's `check` tries a single case.
    """
    words = names.split(",") if isinstance(names, str) else names
    arguments = [word.strip() for word in words]
    table = _named(cases, len(arguments), ids)

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(check)

        def test(*given: Any, **made: Any) -> None:
            assert table, "a law over no cases proves nothing"
            failed: dict[str, BaseException] = {}
            skipped: list[str] = []
            tried = [case for case in table if all(text in case[0] for text in _chosen)]
            for name, values in tried:
                try:
                    check(*given, **made, **dict(zip(arguments, values, strict=True)))
                except pytest.skip.Exception as reason:
                    skipped.append(str(reason))
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - named below
                    failed[name] = failure
                forget_cases()
            if failed:
                raise AssertionError(_summary(failed, len(tried))) from next(iter(failed.values()))
            if len(skipped) == len(tried):
                pytest.skip("; ".join(sorted(set(skipped))) or "there is no such case")

        fixtures = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.name not in arguments
        ]
        test.__signature__ = signature.replace(parameters=fixtures)
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(check, name):
                setattr(test, name, getattr(check, name))
        test.pytestmark = list(getattr(check, "pytestmark", []))
        test.check = check
        return test

    return decorate


def _named(cases: Iterable[Any], count: int, ids: Any) -> list[tuple[str, tuple[Any, ...]]]:
    """Each case's name and values; pytest's own rules for ids, so far as they are used."""
    table = []
    listed = None if ids is None or callable(ids) else list(ids)
    for index, case in enumerate(cases):
        name = None
        if isinstance(case, type(pytest.param())):
            if case.marks:
                raise ValueError("a case of `for_all` has no marks of its own")
            values, name = tuple(case.values), case.id
        else:
            values = (case,) if count == 1 else tuple(case)
        if len(values) != count:
            raise ValueError(f"case {index} has {len(values)} values, not {count}: {values!r}")
        if name is None and listed is not None:
            name = str(listed[index])
        elif name is None and ids is not None:
            name = "-".join(str(ids(value) or _short(value)) for value in values)
        table.append((name or "-".join(map(_short, values)), values))
    return table


def _short(value: object) -> str:
    text = getattr(value, "__name__", None) or getattr(value, "name", None)
    try:
        return (text if isinstance(text, str) else str(value))[:80]
    except Exception:  # noqa: BLE001 - some cases are values that cannot be printed
        return type(value).__name__


def _summary(failed: dict[str, BaseException], tried: int) -> str:
    lines = [f"{len(failed)} of {tried} cases fail (`--case NAME` tries one of them):"]
    for index, (name, failure) in enumerate(failed.items()):
        message = f": {type(failure).__name__}: {failure}" if index < _SHOWN else ""
        lines.append(f"- {name}{message}")
    return "\n".join(lines)
