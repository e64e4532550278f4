"""What state costs, and what a second worker brings.

    python measurements/benchmarks/workers.py [--rounds 5] [--seconds 2]

The same 200-chunk answer is requested in turn, round by round: from one process that keeps its
state itself; from one that shares it through SQLite; from `--workers 2`; and from two servers of
one process each that share nothing, which is what two cores of the machine give at best. One
process has a core for itself, and the client the other one. Two processes have both cores; the
client runs beside them with the lowest priority, so that the rate is a lower bound. What a machine
with more cores would give is shown by the requests for each second of the servers' CPU time: two
workers against two servers that share nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import _load
from instant import SCENARIO, fetch, request_of


def tree(pid: int) -> Iterator[int]:
    """A process and all that it started."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from tree(int(child))


def cpu(pid: int) -> float:
    """CPU seconds that a process and its children took so far."""
    return sum(map(_load.cpu, tree(pid)))


def main() -> None:
    """Prints medians of the rounds, with the least and the most."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    if len(_load.CORES) < 2:
        raise SystemExit("needs two cores")
    request = request_of("chat")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "scenarios"
        folder.mkdir()
        (folder / "bench.yaml").write_text(SCENARIO)
        serve = [*_load.ASYNCIO, "serve", str(folder), "--port", "0", "--quiet"]
        shared = [*serve, "--state", f"sqlite:{name}/state.db"]
        kinds = {
            "one process": [serve],
            "one, state in SQLite": [shared],
            "two workers": [[*serve, "--workers", "2"]],
            "two servers apart": [serve, serve],
        }
        rates: dict[str, list[float]] = {kind: [] for kind in kinds}
        costs: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(options.rounds):
            for kind, commands in kinds.items():
                rate, cost = measure(commands, "one" in kind, request, options)
                rates[kind].append(rate)
                costs[kind].append(cost)
    print(f"{'':22}{'requests/s':>26}{'requests/CPU s':>26}{'of':>22}")
    for kind in kinds:
        base = "one process" if "one" in kind else "two servers apart"
        ratio = statistics.median(costs[kind]) / statistics.median(costs[base])
        print(
            f"{kind:22}{_load.spread(rates[kind]):>26}{_load.spread(costs[kind]):>26}"
            f"{f'{ratio:.2f} of {base}':>26}"
        )


def measure(
    commands: list[list[str]], pinned: bool, request: bytes, options: argparse.Namespace
) -> tuple[float, float]:
    """Requests a second of some servers, and requests for a second of their CPU time."""
    with contextlib.ExitStack() as stack:
        served = [stack.enter_context(_load.server(command, pinned=pinned)) for command in commands]
        sizes = [len(fetch(port, request)) for port, _ in served]
        for (port, _), size in zip(served, sizes, strict=True):
            _load.drive(port, [(request, size)], seconds=1.0, connections=options.connections)
        before = sum(cpu(pid) for _, pid in served)
        if pinned:
            rate = _load.drive(
                served[0][0],
                [(request, sizes[0])],
                seconds=options.seconds,
                connections=options.connections,
            )
        else:
            ports = [port for port, _ in served]
            drivers = [driver(port, request, sizes[0], len(ports), options) for port in ports]
            rate = sum(map(finished, drivers))
        return rate, rate * options.seconds / (sum(cpu(pid) for _, pid in served) - before)


def driver(
    port: int, request: bytes, size: int, share: int, options: argparse.Namespace
) -> tuple[int, int]:
    """A process of the lowest priority that does what `_load.drive` does, with its part of the
    connections; its id, and a pipe with the rate."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.nice(19)
        rate = _load.drive(
            port,
            [(request, size)],
            connections=options.connections // share,
            seconds=options.seconds,
            core=None,
        )
        os.write(writing, str(rate).encode())
        os._exit(0)
    os.close(writing)
    return child, reading


def finished(driver: tuple[int, int]) -> float:
    """The rate of a driver, when it has ended."""
    child, reading = driver
    with os.fdopen(reading) as pipe:
        rate = float(pipe.read())
    os.waitpid(child, 0)
    return rate


if __name__ == "__main__":
    main()
