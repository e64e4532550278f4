"""Runs a client through many cases, and reports the invariants that it breaks.

`attribution` decides which invariant a difference breaks, so that one bug is reported once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from mockllm.checking.cases.build import case as compile_case
from mockllm.checking.cases.case import Case, Level
from mockllm.checking.cases.compile import plain_forms, simple_form
from mockllm.checking.cases.scenarios import PLAIN, Variation, uncut
from mockllm.checking.judging.attribution import Forms, attribute, new_differences
from mockllm.checking.judging.compare import Judgement, judge
from mockllm.checking.judging.difference import Difference
from mockllm.checking.judging.examination import (
    Failure,
    Report,
    Result,
    allowed_name,
    check_allowed,
)
from mockllm.checking.judging.running import (
    Factory,
    checked_outcome,
    exception_outcome,
    run_case,
    run_together,
)
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.checking.probes import Run
from mockllm.scenario.model import Wire

Reply = Callable[[Case], tuple[Outcome, frozenset[str]]]
"""The outcome of a case, and the fields that the client has no place for."""


@dataclass(slots=True)
class _Examination:
    """The results of the cases so far, plain forms by name."""

    judge: Callable[[Case], Judgement]
    policy: Policy
    decoded: bool = False
    forms: dict[str, Judgement] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)

    def add(self, case: Case) -> bool:
        """Judges a case; returns whether it failed."""
        judgement = self._form(case) if case.plain is None else self.judge(case)
        name = allowed_name(case, self.policy.allow) or ""
        self.results.append(Result(case, judgement, name, self.policy.allow.get(name, "")))
        return bool(judgement.differences)

    def _form(self, case: Case) -> Judgement:
        """The judgement of a form of a case, which runs once."""
        if case.name not in self.forms:
            self.forms[case.name] = self.judge(case)
        return self.forms[case.name]

    def report(self, skipped: Iterable[str] = ()) -> Report:
        """The report on all cases."""
        check_allowed(self.policy.allow, (result.case.name for result in self.results))
        counts = {name for result in self.results for name in result.judgement.counts}
        self.results = [_with_lost_counts(result, counts) for result in self.results]
        excused = {result.case.name: result for result in self.results if result.excuse}
        self.results = [self._excused_as_plain(result, excused) for result in self.results]
        judged = [result for result in self.results if not result.excuse]
        forms = self._unlisted_plain_forms(judged)
        wrong = [result for result in (*judged, *forms) if result.judgement.differences]
        shown = {*excused, *(result.case.name for result in wrong)}
        failed = [
            (
                result,
                self._explain_lost_calls(result),
                self._differences_of_plain(result.case, shown),
            )
            for result in wrong
        ]
        failures = attribute(
            failed,
            Forms(self._payload_form, self._unvaried_form, self._uncut_form, self.decoded),
        )
        return Report(tuple(self.results), tuple(failures), tuple(skipped), tuple(forms))

    def stop_report(self, shared: Failure, skipped: Iterable[str]) -> Report:
        """The report where one stream affects the next: no other result means anything."""
        reason = "streams share state (stage-empties), so that no other case can be judged"
        return Report(tuple(self.results), (shared,), tuple(skipped), stopped=reason)

    def _unlisted_plain_forms(self, judged: Iterable[Result]) -> list[Result]:
        """The plain forms that fail and are no cases themselves: those of scenarios with `wire`."""
        listed = {result.case.name for result in self.results}
        failed = [result.case for result in judged if result.judgement.differences]
        return [
            Result(form, self._form(form))
            for form in plain_forms(failed)
            if form.name not in listed and self._form(form).differences
        ]

    def _explain_lost_calls(self, result: Result) -> tuple[Difference, ...]:
        """The differences of a case, those of lost calls with their cause.

        A client that leaves out malformed calls loses a call, too, where it joins the arguments
        wrongly. It does not lose it if the calls come one after the other, in one fragment each.
        """
        found = result.judgement.differences
        if self.policy.malformed != "skip" or not any(map(_is_lost_call, found)):
            return found
        simple = simple_form(result.case)
        if simple is None or any(
            difference.subject == "tool_calls" for difference in self._form(simple).differences
        ):
            return found
        return tuple(
            _joined_wrongly(difference) if _is_lost_call(difference) else difference
            for difference in found
        )

    def _differences_of_plain(self, case: Case, shown: Collection[str]) -> tuple[Difference, ...]:
        """The differences of the plain form of a case, if the report shows the plain form: what is
        wrong and shown nowhere would be lost."""
        plain = case.plain
        return () if plain is None or plain.name not in shown else self._form(plain).differences

    def _excused_as_plain(self, result: Result, excused: Mapping[str, Result]) -> Result:
        """The result, with the excuse of its plain form if nothing else is wrong."""
        found, plain = result.judgement.differences, result.case.plain
        if result.excuse or not found or plain is None or plain.name not in excused:
            return result
        if new_differences(found, self._form(plain).differences):
            return result
        first = excused[plain.name]
        return replace(result, excuse=first.excuse, reason=first.reason)

    def _payload_form(self, case: Case) -> tuple[Difference, ...] | None:
        wire = case.scenario.turns[0].for_api(case.api).wire or Wire()
        if case.plain is None or replace(wire, group=None, quirks=()) == Wire():
            return None
        variation = Variation(split=case.variation.split, group=case.variation.group)
        return self._differences_of_form(case.plain.plain or case.plain, variation, case.quirk)

    def _unvaried_form(self, case: Case) -> tuple[Difference, ...]:
        assert case.plain is not None
        return self._differences_of_form(case.plain, PLAIN, case.quirk)

    def _uncut_form(self, case: Case) -> tuple[Difference, ...]:
        assert case.plain is not None
        # A scenario with `wire` may cut its bytes, too.
        varied = case.variation != PLAIN or case.quirk
        whole = uncut((case.plain if varied else case).scenario)
        variation = replace(case.variation, cut=())
        form = compile_case(whole, case.api, variation, case.quirk)
        return self._form(form).differences

    def _differences_of_form(
        self, plain: Case, variation: Variation, quirk: str
    ) -> tuple[Difference, ...]:
        if variation == PLAIN and not quirk:
            return self._form(plain).differences
        form = compile_case(plain.scenario, plain.api, variation, quirk, plain=plain)
        return self._form(form).differences


def _with_lost_counts(result: Result, reported: Collection[str]) -> Result:
    """The result, with a difference for the counts that the client reports elsewhere."""
    lost = [name for name in result.judgement.lost_counts if name in reported]
    if not lost:
        return result
    names = ", ".join(lost)
    description = f"usage: {names} is lost, although it is reported for other answers"
    found = Difference("usage", description, "finish-and-usage")
    differences = (*result.judgement.differences, found)
    return replace(
        result, judgement=replace(result.judgement, verdict="wrong", differences=differences)
    )


def _is_lost_call(difference: Difference) -> bool:
    return difference.invariant == "surface-once" and difference.subject == "tool_calls"


def _joined_wrongly(difference: Difference) -> Difference:
    return replace(difference, invariant="arguments-concatenate", alternatives=("surface-once",))


def examine(
    factory: Factory,
    cases: Iterable[Case],
    policy: Policy | None = None,
    *,
    level: Level = "payloads",
) -> Report:
    """Runs an accumulator through cases.

    Args:
        policy: how the client intends to behave; default: `Policy()`.

    Raises:
        ProbeError: the client cannot be run: the factory fails, or an import is missing.
        UsageError: a name in `Policy.allow` is neither a quirk nor a case.
    """
    policy = policy or Policy()
    check_allowed(policy.allow)
    decoded = level == "payloads"
    examination = _Examination(lambda case: run_case(factory, case, policy, level), policy, decoded)
    skipped: list[str] = []
    passed: list[Case] = []
    for case in cases:
        if level == "payloads" and case.events is None:
            skipped.append(case.name)
            continue
        failed = examination.add(case)
        # The same stream again: a client that is right now keeps state between streams, and its
        # mistake is not what the case tests.
        if failed and not run_case(factory, case, policy, level).differences:
            return examination.stop_report(_failure_before_others(examination.results[-1]), skipped)
        if case.plain is not None:
            continue
        shared = _shared_state(factory, passed, case, policy, level, failed=failed)
        if shared is not None:
            return examination.stop_report(shared, skipped)
        if not failed:
            passed.append(case)
    return examination.report(skipped)


def _shared_state(
    factory: Factory, passed: list[Case], case: Case, policy: Policy, level: Level, *, failed: bool
) -> Failure | None:
    """The failure of a client whose streams share state; None if no case shows it.

    Either a case that has passed fails when it runs again, or two streams at once interfere.

    Args:
        passed: the cases that have passed so far.
    """
    if not passed:
        return None
    if not failed:
        for difference in run_together(factory, passed[-1], case, policy, level)[:1]:
            return Failure("stage-empties", case, (difference.description,))
        return None
    with_calls = [other for other in passed if other.expected.tool_calls]
    for before in (*with_calls[-1:], passed[-1]):
        found = run_case(factory, before, policy, level).differences
        if found:
            return _failure_after_others(before, found[0])
    return None


def examine_bodies(
    read: Callable[[object], Outcome], cases: Iterable[Case], policy: Policy | None = None
) -> Report:
    """Checks that a client reads answers that are not streamed as it should read the streams."""
    policy = policy or Policy()
    results: list[Result] = []
    failures: list[Failure] = []
    for case in cases:
        if case.plain is not None or case.body is None:
            continue
        judgement = judge(case, _outcome(partial(read, case.body), "body()"), policy)
        results.append(Result(case, judgement))
        if judgement.differences:
            descriptions = tuple(difference.description for difference in judgement.differences)
            failures.append(Failure("stream-equals-body", case, descriptions))
    return Report(tuple(results), tuple(failures))


def examine_client(
    client: Run,
    at: Callable[[Case], str],
    cases: Iterable[Case],
    policy: Policy | None = None,
    *,
    usage_requested: Callable[[Case], bool] = lambda _: True,
) -> Report:
    """Runs a whole client through cases over HTTP.

    Args:
        at: starts to serve a case, and returns the base URL.
        usage_requested: whether the client's last request was for usage, too; called after the
            client has run, and only where the policy leaves it open.

    Raises:
        ProbeError: the client cannot be run.
        UsageError: a name in `Policy.allow` is neither a quirk nor a case.
    """

    def reply(case: Case) -> tuple[Outcome, frozenset[str]]:
        return _outcome(partial(client, at(case), case), "run()"), frozenset()

    return examine_outcomes(reply, cases, policy, usage_requested=usage_requested)


def examine_outcomes(
    reply: Reply,
    cases: Iterable[Case],
    policy: Policy | None = None,
    *,
    usage_requested: Callable[[Case], bool] | None = None,
    needs_events: bool = False,
) -> Report:
    """Judges a client whose outcomes are made elsewhere: in another process, or in a file.

    Args:
        usage_requested: see `examine_client`; None: usage is judged as the policy says.
        needs_events: skip the cases that show in bytes only.

    Raises:
        ProbeError: the client cannot be run.
        UsageError: a name in `Policy.allow` is neither a quirk nor a case.
    """
    policy = policy or Policy()
    check_allowed(policy.allow)

    def judge_reply(case: Case) -> Judgement:
        outcome, absent = reply(case)
        requested = policy.usage_requested
        if requested is None and usage_requested is not None and case.expected.usage is not None:
            requested = usage_requested(case)
        own = replace(policy, ignore=policy.ignore | absent, usage_requested=requested)
        return judge(case, outcome, own)

    examination = _Examination(judge_reply, policy, decoded=needs_events)
    skipped: list[str] = []
    right: list[Case] = []
    for case in cases:
        if needs_events and case.events is None:
            skipped.append(case.name)
            continue
        failed = examination.add(case)
        if case.plain is None and not failed:
            right.append(case)
    # Once more, after all others: a client whose streams share state may fail now.
    again = judge_reply(right[0]).differences if right and len(examination.results) > 1 else ()
    if not again:
        return examination.report(skipped)
    return examination.stop_report(_failure_after_others(right[0], again[0]), skipped)


def _failure_after_others(case: Case, difference: Difference) -> Failure:
    text = f"{case.name} was right, and is wrong after other streams: {difference.description}"
    return Failure("stage-empties", case, (text,))


def _failure_before_others(result: Result) -> Failure:
    difference = result.judgement.differences[0].description
    text = f"{result.case.name} was wrong, and is right when it is played again: {difference}"
    return Failure("stage-empties", result.case, (text,))


def _outcome(returned: Callable[[], object], method: str) -> Outcome:
    """The outcome that a method of a client returns; an exception counts as an error that it
    reports."""
    try:
        return checked_outcome(returned(), method)
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
        return exception_outcome(error)
