"""How long suites of the checking kit take: `python measurements/benchmarks/kit.py [API ...]`.

For each API and level: one suite with all cases (the shipped scenarios in 25 variations, the kit's
own, and the quirks), and three such suites in one process, examined with the reference accumulator.
Seconds of CPU time, so that other processes on the machine count less.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from typing import Any

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking import cases, examine
from mockllm.play.replay.loading import load, shipped_scenarios

LEVELS = ("payloads", "bytes")
SUITES = 3
GOAL = {"payloads": 2.0, "bytes": 8.0}
"""Seconds for one suite."""


def accumulator(api: str, level: str) -> Callable[[], Any]:
    """Makes the reference accumulator of an API."""
    return REFERENCES[api] if level == "payloads" else partial(ReferenceBytes, api)


def suite(api: Any, level: Any) -> int:
    """Runs one suite; returns how many cases it has."""
    # A suite loads its scenarios itself, as a test file does.
    found = cases(api, load([shipped_scenarios()]), level=level)
    report = examine(accumulator(api, level), found, level=level)
    if not report.good:
        raise SystemExit(f"the reference accumulator of {api} fails:\n{report.failures[0]}")
    return report.runs


def measured(task: tuple[str, str]) -> tuple[int, list[float]]:
    """The number of cases, and the seconds after each suite. In a process of its own: compiled
    cases are kept."""
    began = time.process_time()
    seconds, runs = [], 0
    for _ in range(SUITES):
        runs = suite(*task)
        seconds.append(time.process_time() - began)
    return runs, seconds


def main(apis: list[str]) -> None:
    """Prints a table."""
    print(f"{'':22}{'cases':>8}{'one suite':>12}{'goal':>8}{f'{SUITES} suites':>12}")
    for level in LEVELS:
        for api in apis:
            with get_context("spawn").Pool(1) as pool:
                runs, seconds = pool.apply(measured, ((api, level),))
            row = f"{seconds[0]:>10.2f} s{GOAL[level]:>6.1f} s{seconds[-1]:>10.2f} s"
            print(f"{api:12}{level:10}{runs:>8,}{row}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(REFERENCES))
