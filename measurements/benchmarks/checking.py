"""How fast the checking kit is, and what the pytest plugin costs:
`python measurements/benchmarks/checking.py`.

Cases a second for a small accumulator at the level of payloads and of bytes, on one core; what a
test with a `mockllm_session` costs beside one without; what the plugin adds to an empty pytest run.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking import Outcome, Policy, Usage, cases, examine
from mockllm.play.replay.loading import load, shipped_scenarios

ROUNDS = 5


class Trivial:
    """What most people write first: text, calls by index, finish and usage."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: dict[int, list[str]] = {}
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.error = ""

    def feed(self, chunk: Any, event: str | None = None) -> None:
        if "error" in chunk:
            self.error = chunk["error"]["message"]
            return
        if chunk.get("usage"):
            self.usage = Usage(chunk["usage"]["prompt_tokens"], chunk["usage"]["completion_tokens"])
        for choice in chunk["choices"]:
            delta = choice["delta"]
            self.text += delta.get("content") or ""
            for entry in delta.get("tool_calls") or ():
                call = self.calls.setdefault(entry["index"], ["", "", ""])
                call[0] = call[0] or entry.get("id") or ""
                call[1] = call[1] or entry["function"].get("name") or ""
                call[2] += entry["function"].get("arguments") or ""
            self.finish = self.finish or choice["finish_reason"]

    def outcome(self) -> Outcome:
        calls, errors = [], [self.error] if self.error else []
        for _, (id, name, arguments) in sorted(self.calls.items()):
            try:
                calls.append((id, name, json.loads(arguments or "{}")))
            except ValueError:
                errors.append(f"{name} has arguments that are no JSON")
        return Outcome.of(
            self.text, tool_calls=calls, finish=self.finish, usage=self.usage, errors=errors
        )


def rate(run: Callable[[], int]) -> float:
    """The median of cases a second."""
    rates = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        count = run()
        rates.append(count / (time.perf_counter() - began))
    return statistics.median(rates)


def kit() -> None:
    """Cases a second."""
    scenarios = load([shipped_scenarios()])
    began = time.perf_counter()
    payloads = list(cases("chat", scenarios, variations=25, quirks=False, level="payloads"))
    took = time.perf_counter() - began
    events = sum(len(case.payloads or ()) for case in payloads) / len(payloads)
    print(
        f"{len(payloads)} cases of {events:.0f} events each, made at {len(payloads) / took:,.0f}/s"
    )
    told = Policy(ignore=frozenset({"reasoning", "refusal"}))
    watched = Policy(intermediate=True)

    def one(client: Any, policy: Policy) -> Callable[[], int]:
        return lambda: examine(client, payloads, policy).runs

    reference = REFERENCES["chat"]
    for name, client, policy in (
        ("trivial accumulator, payloads", Trivial, told),
        ("reference accumulator, payloads", reference, Policy()),
        ("reference accumulator, after every chunk", reference, watched),
    ):
        print(f"  {name:42} {rate(one(client, policy)):8,.0f} cases/s")
    chunks = list(cases("chat", scenarios, variations=3, quirks=False))
    bytewise = rate(
        lambda: examine(lambda: ReferenceBytes("chat"), chunks, Policy(), level="bytes").runs
    )
    print(f"  {'reference accumulator, bytes':42} {bytewise:8,.0f} cases/s")


_SESSIONS = """
import pytest

@pytest.mark.parametrize("n", range({count}))
def test_session(n{fixture}):
    pass
"""


OURS = ("-p", "mockllm_pytest.plugin")


def suite(source: str, *options: str, rounds: int = ROUNDS) -> float:
    """The least time that a pytest run of a file takes, in seconds, with no plugins but those
    that the options name, and everything compiled."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_it.py").write_text(source)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, folder]
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            subprocess.run(
                command, check=True, stdout=subprocess.DEVNULL, cwd=folder, env=environment
            )
            times.append(time.perf_counter() - began)
        return min(times)


def plugin() -> None:
    """What the plugin costs."""
    few, many = 10, 310
    costs = []
    for fixture in ("", ", mockllm_session"):
        one = suite(_SESSIONS.format(count=few, fixture=fixture), *OURS)
        all_ = suite(_SESSIONS.format(count=many, fixture=fixture), *OURS)
        costs.append((all_ - one) / (many - few) * 1000)
    print(f"  a test with mockllm_session: {costs[1]:.2f} ms, without: {costs[0]:.2f} ms")
    empty = "def test_nothing():\n    pass\n"
    with_plugin, without = [], []
    for _ in range(4 * ROUNDS):  # in turn, so that both meet the machine in the same moods
        with_plugin.append(suite(empty, *OURS, rounds=1))
        without.append(suite(empty, rounds=1))
    added = (min(with_plugin) - min(without)) * 1000
    print(
        f"  an empty run: {min(without) * 1000:.0f} ms without the plugin, {added:+.1f} ms with it"
    )


if __name__ == "__main__":
    kit()
    plugin()
