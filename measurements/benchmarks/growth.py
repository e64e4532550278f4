"""What ten thousand scenarios cost: loading, memory, and the request rate against ten.

python measurements/benchmarks/growth.py [--scenarios 10000] [--rounds 5] [--seconds 2]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import _load
from instant import fetch

MEASURE = """
import resource, sys, time
from mockllm.play.replay.loading import load
from mockllm.play.matching.index import ScenarioIndex
def rss():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1])
before = rss()
began = time.perf_counter()
scenarios = load([sys.argv[1]])
loaded = time.perf_counter() - began
began = time.perf_counter()
served = ScenarioIndex(scenarios)
indexed = time.perf_counter() - began
print(len(scenarios), loaded, indexed, rss() - before)
"""


def write(folder: Path, count: int) -> None:
    """Scenarios as people write them: a match, a tool, two turns; one file each."""
    folder.mkdir()
    for n in range(count):
        (folder / f"case-{n:05}.yaml").write_text(
            f"""\
scenario: case-{n:05}
description: Question number {n}, answered with the help of a tool.
match: {{user: "question number {n:05} please"}}
tools:
  - name: look_up
    parameters: {{type: object, properties: {{key: {{type: string}}}}, required: [key]}}
turns:
  - reply: {{tool: look_up, id: call_{n}, arguments: {{key: "k{n}"}}, split: 5}}
  - request: {{results: {{call_{n}: {n}}}}}
    reply: {{text: "The answer to question number {n} is {n}.", split: words}}
"""
        )


def requests(port: int, count: int, wanted: int = 5_000) -> list[tuple[bytes, int]]:
    """Requests that differ from each other, so that each has to be understood and matched anew;
    each with the size of its answer."""
    sizes: dict[int, int] = {}
    out = []
    for n in range(wanted):
        case = n * 7919 % count
        said = f"Here is question number {case:05} please, asked for the {n}th time."
        body = {
            "model": "gpt-4o",
            "stream": True,
            "messages": [{"role": "user", "content": said}],
        }
        request = _load.request_bytes("/v1/chat/completions", json.dumps(body).encode())
        if case not in sizes:
            sizes[case] = len(fetch(port, request))
        out.append((request, sizes[case]))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        few, many = Path(name) / "few", Path(name) / "many"
        write(few, 10)
        write(many, options.scenarios)
        output = subprocess.run(
            [sys.executable, "-c", MEASURE, str(many)], check=True, capture_output=True, text=True
        ).stdout.split()
        count, loaded, indexed, memory = int(output[0]), *map(float, output[1:])
        print(
            f"{count:,} scenarios in as many files: loaded in {loaded:.2f} s "
            f"({count / loaded:,.0f} a second), indexed in {indexed:.2f} s, "
            f"{memory / count:.1f} KiB each"
        )
        serve = [*_load.ASYNCIO, "serve", "--port", "0", "--quiet"]
        with (
            _load.server([*serve, str(few)]) as (a, _),
            _load.server([*serve, str(many)]) as (b, _),
        ):
            asked = {
                "few": (a, requests(a, 10)),
                "many": (b, requests(b, 10)),
                "any": (b, requests(b, count)),
            }
            rates: dict[str, list[float]] = {key: [] for key in asked}
            for _ in range(options.rounds):
                for key, (port, sent) in asked.items():
                    rate = _load.drive(port, sent, connections=32, seconds=options.seconds)
                    rates[key].append(rate)
        print(f"requests/s with 10 scenarios: {_load.spread(rates['few'])}")
        for key, what in (("many", "the same ten asked for"), ("any", "any of them asked for")):
            ratios = [x / y for x, y in zip(rates[key], rates["few"], strict=True)]
            print(
                f"requests/s with {count:,}, {what}: {_load.spread(rates[key])}; ratio "
                f"{statistics.median(ratios):.2f}"
            )


if __name__ == "__main__":
    main()
