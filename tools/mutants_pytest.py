"""The pytest plugin with which `tools.mutants` runs the tests.

mutmut tests each mutant in a fork of a process that has run all tests. A value in a cache there
comes from the code without the change, and a test that finds it there does not reach the code.

First come two runs without any mutant, for which test reaches which function. Tests that fail then
are left out: they look at the names of a class, which has mutants of its functions as well, or they
cannot be repeated in one process.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from types import FrameType
from typing import Any

import pytest

_CACHED = ("mockllm", "mockllm_pytest", "tests")
"""The packages whose caches are emptied before each test."""
_STUCK = 60.0
"""After how many seconds a test will not end any more; the longest of the fast ones takes five."""
_TIMEOUT = 24
"""The exit code that mutmut reports as `timeout`."""


_LEFT_OUT = "left-out.txt"
"""The tests that failed without a mutant, in the folder in which mutmut runs pytest."""


def _is_without_mutant() -> bool:
    return os.environ.get("MUTANT_UNDER_TEST") in ("stats", "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes a test that fails without a mutant, which would end mutmut."""
    report = yield
    if report.failed and _is_without_mutant():
        with (item.config.rootpath / _LEFT_OUT).open("a") as file:
            file.write(f"{item.nodeid}\n")
        report.outcome = "skipped"
        report.longrepr = ("", 0, "fails without a mutant")
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves those tests out of later runs."""
    file = config.rootpath / _LEFT_OUT
    if file.exists():
        left_out = set(file.read_text().splitlines())
        items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_runtest_setup() -> None:
    """Empties the caches of functions."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _CACHED:
            for value in list(vars(module).values()):
                clear: Any = getattr(value, "cache_clear", None)
                if clear is not None:
                    clear()


def pytest_runtest_logstart() -> None:
    """Begins to count the time of a test."""
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, _STUCK)


def pytest_runtest_logfinish() -> None:
    """A test ended in time."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def _stop(number: int, frame: FrameType | None) -> None:
    os._exit(_TIMEOUT)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Forgets the ids that an earlier run in this process made for `parametrize(ids=...)`.

    pytest keeps them, and escapes their backslashes again each time; then mutmut does not find the
    tests by their ids.
    """
    for mark in metafunc.definition.iter_markers("parametrize"):
        kept = getattr(mark, "_param_ids_from", None)
        if kept is not None:
            object.__setattr__(kept, "_param_ids_generated", None)
