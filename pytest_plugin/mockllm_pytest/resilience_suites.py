"""Every rule of resilience as a test: `ResilienceSuite` for whole clients, `CutSuite` for
accumulators, which get streams that are cut at every place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import Any, ClassVar

import pytest

from mockllm.checking import ByteProbe, Probe
from mockllm.checking.cases.case import Case, Level
from mockllm.checking.policy import ResiliencePolicy
from mockllm.checking.resilience.cases import fault_cases
from mockllm.checking.rules import CUT_RULES, RESILIENCE, Verdict, promise
from mockllm.conformance.case_names import choose
from mockllm.conformance.clients.fault_check import check_faults, fault_case_names
from mockllm.conformance.clients.http_sessions import FunctionPlayer, Returned
from mockllm.conformance.cuts import examine_cuts
from mockllm.conformance.reports.terminal import broken_rule_lines, summary_lines
from mockllm.conformance.results import Client, Results, rule_verdict
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm_pytest.suite_base import RuleSuite, each_rule_is_a_test, rerun_line


class _ResultsSuite(RuleSuite):
    """A client that is judged by rules of resilience: what was found is `Results`."""

    def _summary(self, found: Results) -> str:
        return "\n".join(summary_lines(found))

    def _is_broken(self, rule: str, found: Results) -> bool:
        return self._verdict(rule, found) == "wrong"

    def _mistake(self, rule: str, found: Results, request: pytest.FixtureRequest) -> str:
        return "\n".join([*broken_rule_lines(rule, found), rerun_line(request)])

    def _not_judged(self, rule: str, found: Results) -> str:
        verdict = self._verdict(rule, found)
        if verdict in ("right", "wrong"):
            return ""
        cases = found.rules.get(rule, ())
        reasons = Counter(case.reason for case in cases if case.verdict == verdict)
        return f"{rule}: {verdict}: {_most_common(reasons)}"

    def _verdict(self, rule: str, found: Results) -> Verdict:
        return rule_verdict(found.rules.get(rule, ()))


@each_rule_is_a_test(RESILIENCE, promise)
class ResilienceSuite(_ResultsSuite):
    """Breaks connections and answers of a whole client; every rule is a test.

    Subclass it under a name that pytest collects, set `api`, and give it `run`:

        class TestMine(ResilienceSuite):
            api = "chat"

            def run(self, base_url, case):
                client = MyClient(base_url, tries=case.tries, idle_timeout=case.idle_timeout)
                return Outcome.of(text=client.ask(case.prompt))

    The cases run side by side, each call of `run` in a thread of its own, when the first test of
    the class begins. A rule that needs what `run` does not return is skipped, with the reason.

    Args:
        api: the name of the protocol that the client speaks.
        policy: the settings of the client, where it has its own.
        only: patterns of names of cases, with * and ?; default: all cases.
        xfail: the rules that are known to be broken, each with the reason. If one of them holds,
            its test fails.
    """

    policy: ClassVar[ResiliencePolicy] = ResiliencePolicy()
    only: ClassVar[tuple[str, ...]] = ()

    def run(self, base_url: str, case: Case) -> Returned | Awaitable[Returned]:
        """Requests streamed answers to the case's prompt, and returns the client's outcome.

        A mapping in the form of the answers of runners says more than an `Outcome`: `partial`,
        `handed_on`, `earlier`, `left`, and the `type` and `kind` of errors. An exception that it
        raises counts as the error that the client reports. It may be a coroutine function.

        Args:
            base_url: the base URL for a client of the API.
            case: has `prompt`, `tools`, `model`; `tries`, `idle_timeout` and `deadline` for the
                client to be set to; `requests`, how often to send the prompt; and `cancel`, how
                to cancel once the first piece came ("" for not at all).
        """
        raise NotImplementedError(f"give {type(self).__name__} a method run(base_url, case)")

    def _run_client(self, request: pytest.FixtureRequest) -> Results:
        cases = choose(fault_cases(self.api), self.only, fault_case_names, "case", option="only")
        run = Results(Client(type(self).__name__), self.api, "http", "", "")
        with ServerThread([], ServerOptions(grace=0)) as thread:
            return check_faults(FunctionPlayer(thread, self.run).play, cases, self.policy, run)


@each_rule_is_a_test(CUT_RULES, promise)
class CutSuite(_ResultsSuite):
    """Cuts the streams of a protocol at every place; each of the two rules is a test.

    Subclass it under a name that pytest collects, set `api`, and give it `probe`:

        class TestCuts(CutSuite):
            api = "chat"

            def probe(self):
                return MyProbe()

    Args:
        api: the name of the protocol that the client speaks.
        level: whether probes take decoded events (`payloads`) or `bytes`.
        scenarios: files, folders and scenarios whose answers are cut besides the kit's samples.
        xfail: the rules that are known to be broken, each with the reason. If one of them holds,
            its test fails.
    """

    level: ClassVar[Level] = "payloads"
    scenarios: ClassVar[Any] = ()

    def probe(self) -> Probe | ByteProbe:
        """A new probe, for one stream."""
        raise NotImplementedError(f"give {type(self).__name__} a method probe()")

    def _run_client(self, request: pytest.FixtureRequest) -> Results:
        return examine_cuts(self.probe, api=self.api, level=self.level, scenarios=self.scenarios)


def _most_common(reasons: Counter[str]) -> str:
    if not reasons:
        return "no case was played for it"
    (first, count), more = reasons.most_common(1)[0], len(reasons) - 1
    cases = f" ({count} cases)" if count > 1 else ""
    return f"{first}{cases}" + (f", and {more} other reasons" if more else "")
