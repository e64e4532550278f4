"""Measures clients: `python -m measurements.measure [--faults] [NAME...]`.

Each client gets the plain samples and each form of each quirk on the sample that shows it best,
over HTTP. `measurements/results/SLUG.json` gets what came of it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from measurements.entries import ROOT, Entry, chosen
from measurements.measure_faults import measure_faults
from mockllm.checking import Case, Policy
from mockllm.checking.cases.compile import cases, plain_cases
from mockllm.checking.cases.scenarios import PLAIN
from mockllm.checking.judging.compare import judge
from mockllm.cli.check.plan import results_of_today
from mockllm.conformance.case_names import Setting
from mockllm.conformance.clients.client_results import client_results
from mockllm.conformance.clients.http_clients import http_runner
from mockllm.conformance.clients.runner import Runner
from mockllm.conformance.results import CaseResult, Client, Results, rule_verdict
from mockllm.conformance.results.file import write_results
from mockllm.core.errors import MockLLMError, ProbeError
from mockllm.play.quirks import find
from mockllm.play.quirks.samples import CALL_AT_LIMIT, INTERLEAVED, SAMPLES

__all__ = ["main", "measure", "played"]

_LONG = 20_000
"""Bytes of a stream that are kept in a file; a longer one is shown by `mockllm show`."""

_ARGUMENTS = {
    "cases": "the plain samples, and each form of each quirk on its own sample",
    "streams": f"of mistakes, up to {_LONG} bytes; `mockllm show CASE` prints the others",
}


POLICY = Policy(malformed="keep")
"""That of all clients. A call whose arguments do not parse is kept as text, or reported as an error
(`_is_reported`): what is lost without one is lost, whoever chose that."""


@cache
def played(api: str) -> list[Case]:
    """The plain samples, then each form of each quirk on the sample that shows it best."""
    plain = [sample for sample in SAMPLES.values() if sample not in _LIKE_QUIRKS]
    samples = list(plain_cases(plain, api))
    return samples + [case_ for case_ in cases(api, variations=0) if _is_shown_best(case_)]


_LIKE_QUIRKS = (CALL_AT_LIMIT, INTERLEAVED)
"""Samples that services do not send: they are of use with quirks, and quirks cover them."""


def _is_shown_best(case: Case) -> bool:
    if not case.quirk or case.variation != PLAIN:
        return False
    quirk, variant = find(case.quirk)
    return case.scenario.name == quirk.sample_of(variant).name


def measure(entry: Entry, cases: Sequence[Case] | None = None) -> Results:
    """What a client does with cases.

    Args:
        cases: all that are played over its API by default.

    Raises:
        ProbeError: its adapter cannot be run, or does not send the one request that is answered.
    """
    cases = played(entry.api) if cases is None else cases
    judged = [case_ for case_ in cases if not _about(case_, entry.left_out)]
    with http_runner(entry.argv, entry.api, cwd=ROOT) as runner:
        report = runner.examine(judged, POLICY)
        for name, answer in runner.answers.items():
            if answer.invalid:
                raise ProbeError(f"{entry.name}: {name}: {answer.invalid}")
        hello = runner.hello
        run = results_of_today(hello.client, entry.api, "http", _ARGUMENTS, hello.unsupported)
        setting = Setting(tuple(entry.argv), ("--api", entry.api, "--http"))
        results = client_results(report, runner, run, POLICY, setting)
        reported = {
            one.case.name
            for one in (*report.results, *report.plain_forms)
            if _is_reported(one.case, runner)
        }
    left_out = [
        _left_out(case_, reason) for case_ in cases if (reason := _about(case_, entry.left_out))
    ]
    helped = {case_.name: _about(case_, entry.by_adapter) for case_ in judged}
    results = replace(results, cases=tuple(_helped(one, helped) for one in results.cases))
    return replace(
        results,
        client=_client(entry, results.client),
        cases=(*(_smaller(_accepted(one, reported)) for one in results.cases), *left_out),
    )


def _is_reported(case: Case, runner: Runner) -> bool:
    """Whether a call whose arguments do not parse is reported as an error."""
    answer = runner.answers[case.name]
    absent = answer.absent | runner.hello.unsupported
    policy = Policy(malformed="error", ignore=frozenset(absent))
    return case.malformed and judge(case, answer.outcome, policy).verdict in ("right", "tolerated")


def _accepted(one: CaseResult, reported: AbstractSet[str]) -> CaseResult:
    if one.cost is None or one.case not in reported:
        return one
    reason = "accepted: the call whose arguments do not parse is reported as an error"
    kept = CaseResult(one.case, one.group, "tolerated", one.quirk, reason=reason)
    return replace(kept, reaction=one.reaction, expected=one.expected, actual=one.actual)


def _client(entry: Entry, told: Client) -> Client:
    adapter = next((word for word in entry.command if word.startswith("measurements/")), "")
    return replace(
        told,
        name=entry.name,
        language=entry.language,
        entry_point=entry.entry_point,
        adapter=told.adapter or adapter,
        notes=entry.notes,
    )


def _about(case: Case, sentences: Mapping[str, str]) -> str:
    """The sentence whose pattern is that of a case; "" if there is none."""
    for pattern, reason in sentences.items():
        if fnmatchcase(case.quirk, pattern) or fnmatchcase(case.name, pattern):
            return reason
    return ""


def _helped(one: CaseResult, sentences: Mapping[str, str]) -> CaseResult:
    """The case with what the adapter did, where it is right by that."""
    sentence = sentences.get(one.case, "")
    if one.verdict != "right" or not sentence:
        return one
    return replace(one, reason=f"by the adapter: {sentence}")


def _left_out(case: Case, reason: str) -> CaseResult:
    group = find(case.quirk)[0].prose.topic if case.quirk else "plain"
    return CaseResult(case.name, group, "not judged", quirk=case.quirk, reason=reason)


def _smaller(one: CaseResult) -> CaseResult:
    """The case without what a reader does not need: a file has 60 to 150 of them."""
    if not one.failed:
        one = replace(one, stream=None)
    if one.verdict == "right":
        one = replace(one, expected={}, actual={}, reproduce=())
    if one.stream is not None and sum(map(len, one.stream.writes)) > _LONG:
        one = replace(one, stream=None)
    return replace(
        one,
        differences=tuple(map(_short, one.differences)),
        exception=_short(one.exception),
        expected=_short(dict(one.expected)),
        actual=_short(dict(one.actual)),
    )


def _short(value: Any) -> Any:
    """A value whose texts have no port of the server, and no more than is read."""
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(_short, value))
    if not isinstance(value, str):
        return value
    text = _PORT.sub("127.0.0.1", value)
    return (
        text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({len(text)} characters)"
    )


_LONGEST_TEXT = 2000


_PORT = re.compile(r"127\.0\.0\.1:\d+")
"""It is another one in each measurement."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures the clients that are named, or all that are installed."""
    parser = argparse.ArgumentParser(prog="python -m measurements.measure", description=__doc__)
    parser.add_argument("name", nargs="*", help="a name, a package or the name of a results file")
    parser.add_argument("--faults", action="store_true", help="break connections and answers")
    parsed = parser.parse_args(arguments)
    names = parsed.name
    try:
        found = chosen(names)
        missing = [one.missing for one in found if one.missing]
        for entry in found:
            if entry.missing or (parsed.faults and not entry.faults):
                continue
            path = entry.fault_results if parsed.faults else entry.results
            results = measure_faults(entry) if parsed.faults else measure(entry)
            write_results(results, path)
            _say(f"{path.relative_to(ROOT)}: {_counts(results)}")
    except MockLLMError as error:
        sys.exit(str(error))
    for line in dict.fromkeys(missing):
        _say(line, sys.stderr)
    sys.exit(2 if missing else 0)


def _counts(results: Results) -> str:
    verdicts = Counter(map(rule_verdict, results.rules.values())) or results.verdicts
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())


def _say(line: str, stream: Any = None) -> None:
    print(line, file=stream or sys.stdout, flush=True)


if __name__ == "__main__":
    main()
