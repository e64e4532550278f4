"""Runs all tests in parts, each in a process of its own: `python -m tests.in_parts JOBS OPTIONS`.

Each worker of pytest-xdist collects all tests, and imports every SDK: four of them needed a hundred
seconds of CPU for that alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed

PARTS = (
    "tests/deployment",
    "tests/docs",
    "tests/measurements",
    "tests/plugin",
    "tests/clients",
    "tests/checking",
    "tests/conformance",
    "tests/cli",
    "tests/serve/server",
    "tests/play",
    "tests/wire",
    "tests/record",
)
"""The folders whose tests take longest; all others are one more part, which begins first."""

_NOTHING_CHOSEN = 5
"""What pytest exits with where a part has no test of those that are wanted."""


def main(jobs: int, options: list[str]) -> int:
    """Prints the output of each part at its end, and the sums of all; 1 where one has failed."""
    others = ["tests", *(f"--ignore={part}" for part in PARTS)]
    parts = [others, *([part] for part in PARTS)]
    sums: Counter[str] = Counter()
    failed = []
    with ThreadPoolExecutor(jobs) as pool:
        runs = {pool.submit(_run, [*options, *part]): part[0] for part in parts}
        for run in as_completed(runs):
            status, output = run.result()
            print(output, flush=True)
            for count, outcome in re.findall(r"(\d+) ([a-z]+)", output.rpartition("\n")[2]):
                sums[outcome] += int(count)
            if status not in (0, _NOTHING_CHOSEN):
                failed.append(runs[run])
    print("All parts:", ", ".join(f"{count:,} {outcome}" for outcome, count in sums.items()))
    if failed:
        print("Failed:", *failed)
    return int(bool(failed))


def _run(arguments: list[str]) -> tuple[int, str]:
    """The exit code of a pytest, and what it printed, whose last line has the counts."""
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "900", *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
