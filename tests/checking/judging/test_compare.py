"""How one outcome is compared with the expected one: each field, each policy, each verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from examples.accumulators.chat import ChatAccumulator
from mockllm.checking import (
    NOT_KEPT,
    Call,
    Case,
    Delta,
    Outcome,
    Policy,
    Trouble,
    Usage,
    differences,
    examine,
)
from mockllm.checking.cases.build import case
from mockllm.checking.judging.compare import judge
from mockllm.checking.reports.check import report_text
from mockllm.play.quirks.samples import CALL, REASONING, TEXT, TEXT_AND_TWO_CALLS, ZERO
from mockllm.play.replay.loading import loads
from tests.cases import for_all
from tests.checking.naive import Naive

TEXT_CASE = case(TEXT, "chat")
CALL_CASE = case(CALL, "chat")
ZERO_CASE = case(ZERO, "chat")
SIGNED = case(REASONING, "anthropic")
(BROKEN_CALL,) = loads(
    """
    scenario: broken-arguments
    turns:
      - reply:
          - text: One moment.
          - {tool: alpha, id: call_1, arguments: '{"city": Paris}', malformed: true}
          - {tool: beta, id: call_2, arguments: {city: Rome}}
    """
)
MALFORMED = case(BROKEN_CALL, "chat")
ERROR = case(TEXT, "chat", quirk="err-in-stream")


def _invariants(found: Case, got: Outcome, policy: Policy | None = None) -> list[str]:
    return [
        difference.invariant for difference in judge(found, got, policy or Policy()).differences
    ]


def _with_call(found: Case, **changes: Any) -> Outcome:
    (call,) = found.expected.tool_calls
    return replace(found.expected, tool_calls=(replace(call, **changes),))


# Differences one by one


def test_every_difference_is_reported() -> None:
    """A wrong text, id, finish and usage in one outcome are four differences."""
    got = replace(
        _with_call(CALL_CASE, id="call_other"),
        text="nothing of this was sent",
        finish="length",
        usage=Usage(1, 1),
    )
    assert {difference.subject for difference in differences(CALL_CASE, got, Policy())} == {
        "text",
        "tool_calls",
        "finish",
        "usage",
    }


def test_names_and_ids_of_several_calls_are_reported() -> None:
    """A wrong name of one call does not hide the wrong id of another one."""
    found = case(TEXT_AND_TWO_CALLS, "chat")
    first, second = found.expected.tool_calls
    calls = (replace(first, name="get_wetter"), replace(second, id="call_other"))
    got = replace(found.expected, tool_calls=calls)
    assert sorted(_invariants(found, got)) == ["id-kept", "name-kept"]


class ChangesItsInput(ChatAccumulator):
    """Writes into every chunk."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        payload["seen"] = True
        return delta


class ChangesItsInputAndIds(ChangesItsInput):
    """Writes into every chunk, and returns other ids."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = (replace(call, id=f"other_{call.id}") for call in outcome.tool_calls)
        return replace(outcome, tool_calls=tuple(calls))


def test_a_modified_input_hides_no_other_difference() -> None:
    """A client that modifies its input and changes ids breaks two invariants."""
    assert set(examine(ChangesItsInput, [CALL_CASE]).broken()) == {"input-untouched"}
    broken = examine(ChangesItsInputAndIds, [CALL_CASE]).broken()
    assert set(broken) == {"input-untouched", "id-kept"}
    assert all(len(failures) == 1 for failures in broken.values())


# Fields that a client may not keep

FIELDS = [
    (CALL_CASE, "role", "user", "role-kept"),
    (CALL_CASE, "role", "assistantassistant", "role-kept"),
    (CALL_CASE, "role", None, "role-kept"),
    (CALL_CASE, "model", "another-model", "answer-id-kept"),
    (CALL_CASE, "response_id", "chatcmpl-other", "answer-id-kept"),
    (SIGNED, "opaque", (), "opaque-kept"),
    (SIGNED, "opaque", ("c2lnbmF0", "dXJl"), "opaque-kept"),
    (SIGNED, "opaque", ("c2lnbmF0dXJl", "c2lnbmF0dXJl"), "opaque-kept"),
    (SIGNED, "opaque", None, "opaque-kept"),
]


@pytest.mark.parametrize(("found", "field", "wrong", "invariant"), FIELDS)
def test_a_field_is_judged_if_the_client_keeps_it(
    found: Case, field: str, wrong: Any, invariant: str
) -> None:
    """The right value is right. Another one, also None, breaks the invariant of the field."""
    expected = getattr(found.expected, field)
    assert expected is not NOT_KEPT
    assert judge(found, found.expected, Policy()).verdict == "right"
    assert _invariants(found, replace(found.expected, **{field: wrong})) == [invariant]


@pytest.mark.parametrize(("found", "field"), sorted({(f[0].name, f[1]) for f in FIELDS}))
def test_a_field_that_the_client_does_not_keep_is_not_judged(found: str, field: str) -> None:
    """`NOT_KEPT` is no difference, and is listed as not judged, never as right."""
    one = {case.name: case for case, *_ in FIELDS}[found]
    judgement = judge(one, replace(one.expected, **{field: NOT_KEPT}), Policy())
    assert judgement.differences == ()
    assert judgement.not_judged == (field,)


def test_raw_arguments_that_are_not_kept_are_not_judged() -> None:
    """A call without raw arguments is right, and they are listed as not judged."""
    judgement = judge(CALL_CASE, _with_call(CALL_CASE, raw_arguments=NOT_KEPT), Policy())
    assert (judgement.differences, judgement.not_judged) == ((), ("raw_arguments",))


def test_ids_of_calls_are_not_judged_where_the_client_has_no_place_for_them() -> None:
    """Such a call is right, and its id is listed as not judged; another argument is still wrong."""
    policy = Policy(ignore=frozenset({"call_id"}))
    judgement = judge(CALL_CASE, _with_call(CALL_CASE, id=None), policy)
    assert (judgement.verdict, judgement.not_judged) == ("right", ("call_id",))
    other = _with_call(CALL_CASE, id=None, arguments={})
    assert judge(CALL_CASE, other, policy).verdict == "wrong"
    assert judge(CALL_CASE, _with_call(CALL_CASE, id=None), Policy()).verdict == "wrong"


def test_opaque_values_may_come_in_any_order() -> None:
    """The order of signatures is that of their parts, which are judged by themselves."""
    expected = replace(SIGNED.expected, opaque=("one", "two"))
    found = replace(SIGNED, expected=expected)
    assert not _invariants(found, replace(expected, opaque=("two", "one")))
    assert _invariants(found, replace(expected, opaque=("two",))) == ["opaque-kept"]


def test_a_report_counts_what_was_not_judged() -> None:
    """The report lists each field with the number of cases, and judges its invariant nowhere."""
    report = examine(Naive, [TEXT_CASE, CALL_CASE, ZERO_CASE])
    assert report.good
    assert report.not_judged == {"role": 3, "model": 3, "response_id": 3, "raw_arguments": 2}
    for invariant in ("role-kept", "answer-id-kept", "raw-arguments-kept"):
        assert not report.judges(invariant)
    assert report.judges("id-kept")
    line = "not judged, with the number of cases: model (3), raw_arguments (2), response_id (3)"
    assert line in report_text(report)


def test_a_field_is_judged_if_one_outcome_has_it() -> None:
    """The reference keeps all fields, so all are judged."""
    report = examine(ChatAccumulator, [TEXT_CASE, CALL_CASE])
    assert report.good
    assert all(
        report.judges(name) for name in ("role-kept", "answer-id-kept", "raw-arguments-kept")
    )


# Arguments, parsed and raw


@pytest.mark.parametrize("arguments", [None, "", {}, "{}"])
def test_no_arguments_are_one_value_after_parsing(arguments: Any) -> None:
    """None, an empty text and an empty object all mean a call without arguments."""
    assert not _invariants(ZERO_CASE, _with_call(ZERO_CASE, arguments=arguments))


RAW = [None, "", "{}"]


@pytest.mark.parametrize("sent", RAW)
@pytest.mark.parametrize("kept", RAW)
def test_no_arguments_are_three_values_as_text(sent: str | None, kept: str | None) -> None:
    """As raw arguments, None, an empty text and `{}` are different."""
    found = replace(ZERO_CASE, expected=_with_call(ZERO_CASE, raw_arguments=sent))
    got = _with_call(ZERO_CASE, raw_arguments=kept)
    assert _invariants(found, got) == ([] if sent == kept else ["raw-arguments-kept"])


def test_raw_arguments_are_the_joined_fragments() -> None:
    """Arguments that were parsed and written again are other text, if they mean the same."""
    (call,) = CALL_CASE.expected.tool_calls
    spaced = json.dumps(call.arguments)
    assert spaced != call.raw_arguments
    got = _with_call(CALL_CASE, raw_arguments=spaced)
    assert _invariants(CALL_CASE, got) == ["raw-arguments-kept"]


# The wording of errors


def test_an_error_has_the_message_of_the_service() -> None:
    """An error whose message has the service's one is right, whatever stands around it."""
    (trouble,) = ERROR.expected.errors
    messages = [trouble.message, f"APIError: {trouble.message} (request req_1)"]
    for message in messages:
        got = Outcome.of("Hel", errors=[message])
        assert judge(ERROR, got, Policy()).verdict == "right"


def test_an_error_without_the_message_of_the_service_is_wrong() -> None:
    """An error with wording of its own only breaks `error-ends`; `ignore` can leave this out."""
    got = Outcome.of("Hel", errors=["the stream failed"])
    (difference,) = judge(ERROR, got, Policy()).differences
    assert (difference.field, difference.invariant) == ("error_message", "error-ends")
    assert ERROR.expected.errors[0].message in difference.description
    assert not _invariants(ERROR, got, Policy(ignore=frozenset({"error_message"})))


# Policies


class Small:
    """An accumulator of its own for the calls of a stream whose arguments may be broken.

    Args:
        malformed: what it does with such a call.
    """

    def __init__(self, malformed: str) -> None:
        self.malformed = malformed
        self.inner = Naive()

    def feed(self, payload: Any, event: str | None = None) -> None:
        self.inner.feed(payload)

    def close(self) -> None:
        self.inner.close()

    def outcome(self) -> Outcome:
        outcome = self.inner.outcome()
        calls, errors = [], []
        for id, name, arguments in self.inner.calls.values():
            try:
                calls.append((id, name, json.loads(arguments or "{}")))
            except ValueError:
                if self.malformed == "keep":
                    calls.append((id, name, arguments))
                if self.malformed == "error":
                    errors.append(f"{name}: arguments are no JSON")
                if self.malformed == "fail":
                    return Outcome.of(errors=["the model sent arguments that are no JSON"])
        return replace(
            outcome,
            tool_calls=Outcome.of(tool_calls=calls).tool_calls,
            errors=Outcome.of(errors=errors).errors,
        )


MALFORMED_POLICIES = ["error", "skip", "keep", "fail"]


@for_all("policy", MALFORMED_POLICIES)
@for_all("behaviour", MALFORMED_POLICIES)
def test_a_client_deals_with_malformed_arguments_as_its_policy_says(
    policy: str, behaviour: str
) -> None:
    """Each behaviour is right under its own policy, and wrong under the three others."""
    declared = Policy(malformed=policy)  # type: ignore[arg-type]  # parametrised
    report = examine(lambda: Small(behaviour), [CALL_CASE, MALFORMED], declared)
    if policy == behaviour:
        assert report.good
    else:
        assert set(report.broken()) == {"malformed-contained"}
        assert [failure.case.name for failure in report.failures] == [MALFORMED.name]


def test_a_failed_answer_is_only_right_where_arguments_are_broken() -> None:
    """Under `fail`, an error in a right stream is as wrong as ever."""
    got = Outcome.of(errors=["the model sent arguments that are no JSON"])
    judgement = judge(CALL_CASE, got, Policy(malformed="fail"))
    assert judgement.verdict == "rejected"


def test_a_failed_answer_hands_on_no_call() -> None:
    """Under `fail`, the other calls of the answer are not handed on as if it was complete."""
    got = Outcome.of("One moment.", tool_calls=[("call_2", "beta", {})], errors=["failed"])
    found = _invariants(MALFORMED, got, Policy(malformed="fail"))
    assert found == ["malformed-contained"]


# Usage


def test_usage_that_was_requested_is_not_lost() -> None:
    """A client that requests usage has it; by default it is expected to request it."""
    lost = replace(TEXT_CASE.expected, usage=None)
    for requested in (None, True):
        found = _invariants(TEXT_CASE, lost, Policy(usage_requested=requested))
        assert found == ["finish-and-usage"]


def test_usage_that_was_not_requested_is_not_judged() -> None:
    """Usage that the service sends on request only is not missed, and counts as not judged."""
    lost = replace(TEXT_CASE.expected, usage=None)
    judgement = judge(TEXT_CASE, lost, Policy(usage_requested=False))
    assert (judgement.verdict, judgement.not_judged) == ("right", ("usage",))


def test_wrong_usage_is_wrong_also_if_it_was_not_requested() -> None:
    """Numbers that a client reports are judged, whatever it requested."""
    wrong = replace(TEXT_CASE.expected, usage=Usage(1, 1))
    found = _invariants(TEXT_CASE, wrong, Policy(usage_requested=False))
    assert set(found) == {"finish-and-usage"}


# Verdicts


VERDICTS = [
    (TEXT_CASE, TEXT_CASE.expected, "right"),
    (TEXT_CASE, replace(TEXT_CASE.expected, text="Hell"), "wrong"),
    (TEXT_CASE, Outcome.of(errors=["an unknown field"]), "rejected"),
    (TEXT_CASE, Outcome.of(errors=[KeyError("x")]), "crash"),
    (ERROR, Outcome.of("Hel", finish="stop"), "silent"),
    (ERROR, Outcome.of("Hel", errors=[ERROR.expected.errors[0]]), "right"),
    (ERROR, Outcome.of("Hel", errors=[AttributeError("x")]), "crash"),
]


@pytest.mark.parametrize(("found", "got", "verdict"), VERDICTS)
def test_verdicts(found: Case, got: Outcome, verdict: str) -> None:
    """Each verdict: a wrong value, an error too many, an error too few, an exception of a bug."""
    assert judge(found, got, Policy()).verdict == verdict


def test_a_clear_error_is_tolerated_where_a_stream_may_be_refused() -> None:
    """Where two reactions are right, the second one is tolerated, and the judgement names it."""
    found = case(CALL, "chat", quirk="chat-args-repeated-at-end")
    (call,) = found.expected.tool_calls
    error = Trouble(f"the arguments of {call.name} are no JSON", "malformed_arguments", 0)
    judgement = judge(found, Outcome.of(errors=[error]), Policy())
    assert (judgement.verdict, judgement.tolerated) == ("tolerated", "a clear error")


def test_the_report_counts_the_verdicts() -> None:
    """The summary has the number of cases of each verdict."""

    class Stops(Naive):
        def outcome(self) -> Outcome:
            return replace(super().outcome(), errors=())

    report = examine(Stops, [TEXT_CASE, CALL_CASE, ERROR])
    assert report.verdicts == {"right": 2, "silent": 1}
    assert "  verdicts: 2 right, 1 silent" in report_text(report)


def test_a_call_may_be_a_call_a_mapping_or_a_tuple() -> None:
    """`Outcome.of` reads all three forms, with raw arguments where the client keeps them."""
    call = Call("a", {"b": 1}, "c", '{"b":1}')
    mapping = {"name": "a", "arguments": '{"b":1}', "id": "c", "raw_arguments": '{"b":1}'}
    assert Outcome.of(tool_calls=[mapping, call]).tool_calls == (call, call)
    assert Outcome.of(tool_calls=[("c", "a", {"b": 1})]).tool_calls == (Call("a", {"b": 1}, "c"),)


def test_calls_without_names_are_a_difference():
    """Several calls that never got a name are compared, although None has no order."""
    found = case(TEXT_AND_TWO_CALLS, "chat")
    nameless = tuple(replace(call, name=None) for call in found.expected.tool_calls)
    assert _invariants(found, replace(found.expected, tool_calls=nameless))
