"""What state costs, and what a second worker brings.

    python benchmarks/workers.py [--rounds 5] [--seconds 2]

The same 200-chunk answer is requested from three servers in turn, round by round: one process that
keeps its state itself; one that shares it through SQLite; and `--workers 2`. One process has a core
for itself, and the client the other one. Two workers have both cores; the client runs beside them
with the lowest priority, so that the rate is a lower bound. What a machine with more cores would
give is shown by the requests for each second of the servers' CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import _load
from instant import BODIES, SCENARIO

_TICKS = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> Iterator[int]:
    """A process and all that it started."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from tree(int(child))


def cpu(pid: int) -> float:
    """CPU seconds that a process and its children took so far."""
    total = 0
    for one in tree(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def main() -> None:
    """Prints medians of the rounds, with the least and the most."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    if len(_load.CORES) < 2:
        raise SystemExit("needs two cores")
    path, body = BODIES["chat"]
    request = _load.request_bytes(path, json.dumps(body).encode())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "scenarios"
        folder.mkdir()
        (folder / "bench.yaml").write_text(SCENARIO)
        serve = ["-m", "mockllm", "serve", str(folder), "--port", "0", "--quiet"]
        serve += ["--loop", "asyncio"]
        kinds = {
            "one process": (serve, True),
            "one, state in SQLite": ([*serve, "--state", f"sqlite:{name}/state.db"], True),
            "two workers": ([*serve, "--workers", "2"], False),
        }
        rates: dict[str, list[float]] = {kind: [] for kind in kinds}
        costs: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(options.rounds):
            for kind, (command, pinned) in kinds.items():
                rate, cost = measure(command, pinned, request, options)
                rates[kind].append(rate)
                costs[kind].append(cost)
    print(f"{'':24}{'requests/s':>28}{'requests/CPU s':>28}{'to one process':>18}")
    base = statistics.median(costs["one process"])
    for kind in kinds:
        ratio = statistics.median(costs[kind]) / base
        print(
            f"{kind:24}{_load.spread(rates[kind]):>28}{_load.spread(costs[kind]):>28}{ratio:>18.2f}"
        )


def measure(
    command: list[str], pinned: bool, request: bytes, options: argparse.Namespace
) -> tuple[float, float]:
    """Requests a second, and requests for a second of the servers' CPU time."""
    with _load.server(command, pinned=pinned) as (port, pid):
        size = _load.answer_size(port, request)
        how = {"connections": options.connections}
        _load.drive(port, [(request, size)], seconds=1.0, **how)
        before = cpu(pid)
        if pinned:
            rate = _load.drive(port, [(request, size)], seconds=options.seconds, **how)
        else:
            rate = driven_beside(port, request, size, options)
        return rate, rate * options.seconds / (cpu(pid) - before)


def driven_beside(port: int, request: bytes, size: int, options: argparse.Namespace) -> float:
    """As `_load.drive`, from a process of the lowest priority."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.nice(19)
        _load.CLIENT_CORE = _load.CORES[-1]
        rate = _load.drive(
            port, [(request, size)], connections=options.connections, seconds=options.seconds
        )
        os.write(writing, str(rate).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        rate = float(pipe.read())
    os.waitpid(child, 0)
    return rate


if __name__ == "__main__":
    main()
