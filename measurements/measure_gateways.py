"""Measures the gateways of `mockllm/conformance/gateways/presets.yaml` over all their pairs of
APIs.

python -m measurements.measure_gateways [GATEWAY[:PAIR]...]; `make gateways-ready` installs them.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from measurements.entries import ROOT
from measurements.gateway_page import GATEWAY_RESULTS
from mockllm.cli.check.plan import results_of_today
from mockllm.conformance.case_names import Setting
from mockllm.conformance.gateways.cases import Pair, gateway_cases
from mockllm.conformance.gateways.gateway_run import judge_gateway
from mockllm.conformance.gateways.presets import (
    preset_client,
    preset_gateway,
    preset_pairs,
    presets,
)
from mockllm.conformance.results import GATEWAY_LEVEL, Results
from mockllm.conformance.results.file import write_results
from mockllm.core.errors import MockLLMError, UsageError

_FOLDERS = (".venv-gw-{name}/bin", "measurements/gateways/{name}/node_modules/.bin")


def program(name: str) -> Path:
    """The program of a gateway, where `make gateways-ready` puts it.

    Raises:
        UsageError: it is not there.
    """
    word = shlex.split(presets()[name]["command"])[0]
    places = [ROOT / folder.format(name=name) / word for folder in _FOLDERS]
    for place in places:
        if place.exists():
            return place
    raise UsageError(f"{name} is not installed: there is no {places[0]}; run `make gateways-ready`")


def measure(name: str, pair: Pair) -> Results:
    """The results of a gateway over a pair of APIs."""
    words = ("--down", pair.down, "--up", pair.up, "--preset", name)
    setting = Setting((), words, name="check-gateway")
    gateway = replace(preset_gateway(name, pair, (str(program(name)),)), setting=setting)
    arguments = {"rounds": gateway.rounds}
    empty = results_of_today(preset_client(name), str(pair), GATEWAY_LEVEL, arguments)
    return without_path(judge_gateway(gateway, gateway_cases(pair), empty).results, str(ROOT))


def without_path(results: Results, path: str) -> Results:
    """The results without a path of this machine: some gateways answer with a trace of theirs."""
    cases = tuple(
        replace(
            case,
            differences=tuple(text.replace(path, ".") for text in case.differences),
            reason=case.reason.replace(path, "."),
            unconfirmed=case.unconfirmed.replace(path, "."),
            stream=case.stream
            and replace(
                case.stream,
                writes=tuple(data.replace(path.encode(), b".") for data in case.stream.writes),
            ),
        )
        for case in results.cases
    )
    return replace(results, cases=cases)


def _chosen(names: Sequence[str]) -> Iterator[tuple[str, Pair]]:
    for given in names or presets():
        name, _, only = given.partition(":")
        if name not in presets():
            raise UsageError(f"there is no gateway {name!r}; there are: {', '.join(presets())}")
        yield from ((name, pair) for pair in preset_pairs(name) if only in ("", str(pair)))


def main(names: Sequence[str]) -> int:
    """Measures, and writes a file for each gateway and pair; the exit code."""
    failed = 0
    try:
        for name, pair in _chosen(names):
            try:
                results = measure(name, pair)
            except MockLLMError as error:
                failed += 1
                print(f"{name} over {pair}: {error}", file=sys.stderr, flush=True)
                continue
            write_results(results, GATEWAY_RESULTS / f"{name}-{pair}.json")
            wrong = sum(case.failed for case in results.cases)
            print(f"{name} over {pair}: {wrong} of {len(results.cases)} wrong", flush=True)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
