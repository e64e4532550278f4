"""`mockllm check` through a Node runner, beside the same client of the kit in this process.

    python measurements/benchmarks/check.py [--cases 1300]

The Node runner is that of examples/runners/javascript; the probe is the reference accumulator of
Chat Completions at the level of bytes. The goal is a ratio of at most 1.5.
"""

import argparse
import shutil
import statistics
import sys
import time
from pathlib import Path

from examples.accumulators.lines import ReferenceBytes
from mockllm.checking import Policy, examine
from mockllm.checking import cases as compiled
from mockllm.conformance.clients.runner import pipe_runner

RUNNERS = Path(__file__).parents[2] / "examples" / "runners"
ROUNDS = 5


def timed(function):
    start = time.perf_counter()
    value = function()
    return value, time.perf_counter() - start


def piped(command, cases, jobs=1):
    with pipe_runner(command, "chat", jobs=jobs) as runner:
        return runner.examine(cases, Policy())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1300)
    wanted = parser.parse_args().cases
    cases, took = timed(lambda: list(compiled("chat", variations=3)))
    print(f"{len(cases)} cases: compiled in {took:.2f} s")
    cases = (cases * 2)[:wanted] if len(cases) < wanted else cases[:wanted]
    node = shutil.which("node")
    if node is None:
        sys.exit("there is no node here")
    own, node_times, two = [], [], []
    for _ in range(ROUNDS):
        report, took = timed(lambda: examine(lambda: ReferenceBytes("chat"), cases, level="bytes"))
        assert report.good, report
        own.append(took)
        command = [node, str(RUNNERS / "javascript" / "runner.mjs")]
        report, took = timed(lambda command=command: piped(command, cases))
        assert report.good, report
        node_times.append(took)
        _, took = timed(lambda command=command: piped(command, cases, jobs=2))
        two.append(took)
    print(f"{len(cases)} cases, medians of {ROUNDS} rounds")
    print(f"  probe in this process   {statistics.median(own):.2f} s")
    print(f"  Node runner             {statistics.median(node_times):.2f} s")
    print(f"  Node runner, --jobs 2   {statistics.median(two):.2f} s")
    ratios = [one / base for one, base in zip(node_times, own, strict=True)]
    print(f"  ratio                   {statistics.median(ratios):.2f} (goal 1.5)")


if __name__ == "__main__":
    main()
