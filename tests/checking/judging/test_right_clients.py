"""Clients that read the wire in another right way than the reference are accused of nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from examples.accumulators import REFERENCES
from examples.accumulators.chat import ChatAccumulator
from mockllm.checking import Case, Outcome, Policy, Probe, cases, examine
from mockllm.play.quirks.samples import TWO_SAME
from mockllm.play.replay.loading import load, shipped_scenarios
from mockllm.scenario.model import Api
from mockllm.wire.protocols import PROTOCOLS
from tests.checking.naive import Naive

LARGE = ("hundred-tools", "long-text", "unicode")


@cache
def _cases(api: Api, quirk: str = "") -> tuple[Case, ...]:
    """The cases of an API without its quirks, or those of one quirk."""
    scenarios = [each for each in load([shipped_scenarios()]) if each.name not in LARGE]
    found = cases(api, scenarios, variations=0, level="payloads")
    return tuple(each for each in found if each.quirk.partition(":")[0] == quirk)


def _accusations(
    client: Callable[[], Probe], found: tuple[Case, ...], policy: Policy | None = None
) -> list[str]:
    return [str(failure) for failure in examine(client, found, policy).failures]


# The role


def _first_role(value: Any, role: str) -> str | None:
    """The role of an answer, if any object of an event has it; earlier messages are no answer."""
    if isinstance(value, list):
        return next(filter(None, (_first_role(each, role) for each in value)), None)
    if not isinstance(value, dict):
        return None
    if value.get("role") == role:
        return role
    return _first_role([each for key, each in value.items() if key != "messages"], role)


def _reads_the_role(api: Api) -> Callable[[], Probe]:
    class ReadsTheRole(REFERENCES[api]):  # type: ignore[misc]  # each API has its own class
        role: str | None = None

        def feed(self, payload: Any, event: str | None = None) -> Any:
            self.role = self.role or _first_role(payload, PROTOCOLS[api].role)
            return super().feed(payload, event)

        def outcome(self) -> Outcome:
            return replace(super().outcome(), role=self.role)

    return ReadsTheRole


@pytest.mark.slow
@pytest.mark.parametrize("api", PROTOCOLS)
def test_a_role_that_is_not_sent_is_not_expected(api: Api) -> None:
    """Responses and AG-UI send no role with calls alone, and Gemini none with a blocked prompt."""
    assert _accusations(_reads_the_role(api), _cases(api)) == []


@pytest.mark.slow
@pytest.mark.parametrize("api", PROTOCOLS)
def test_a_role_that_is_not_sent_may_be_the_assistants(api: Api) -> None:
    """A client that gives every answer the role of the assistant is right; another role is not."""

    class OfTheSystem(REFERENCES[api]):  # type: ignore[misc]  # each API has its own class
        def outcome(self) -> Outcome:
            return replace(super().outcome(), role="system")

    assert _accusations(REFERENCES[api], _cases(api)) == []
    report = examine(OfTheSystem, [each for each in _cases(api) if each.expected.role is None])
    assert set(report.broken()) <= {"role-kept"}
    assert report.runs == len(report.failures)


# The finish


class OutcomeOfTheRun(REFERENCES["agui"]):  # type: ignore[misc]  # a class
    """Reports the type of a run's outcome as the finish."""

    finish: str | None = None

    def feed(self, payload: Any, event: str | None = None) -> Any:
        if payload.get("type") == "RUN_STARTED":
            self.finish = None
        if payload.get("type") == "RUN_FINISHED":
            self.finish = (payload.get("outcome") or {}).get("type") or "success"
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        outcome: Outcome = super().outcome()
        return replace(outcome, finish=self.finish if outcome.finish else None)


def test_the_outcome_of_a_run_is_its_finish() -> None:
    """`interrupt` and `cancelled` are right where they are sent, and only there."""
    assert _accusations(OutcomeOfTheRun, _cases("agui")) == []

    class AlwaysCancelled(OutcomeOfTheRun):
        def outcome(self) -> Outcome:
            outcome = super().outcome()
            return replace(outcome, finish="cancelled" if outcome.finish else None)

    assert set(examine(AlwaysCancelled, _cases("agui")).broken()) == {"finish-and-usage"}


# The text "null" for an id or a name


class NullIsText(ChatAccumulator):
    """Hands on the text "null" as the id or the name that the server sent."""

    def feed(self, payload: Any, event: str | None = None) -> Any:
        delta = super().feed(_replaced(payload, "null", "<null>"), event)
        return delta and replace(delta, tool_calls=(), tool=())

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = (
            replace(call, id=_unmarked(call.id), name=str(_unmarked(call.name)))
            for call in outcome.tool_calls
        )
        return replace(outcome, tool_calls=tuple(calls))


class NullIsAbsent(ChatAccumulator):
    """Reads the text "null" as if there was none; a call without a name is none."""

    def feed(self, payload: Any, event: str | None = None) -> Any:
        return super().feed(_replaced(payload, "null", ""), event)

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        errors = tuple(error for error in outcome.errors if "never got a name" not in str(error))
        return replace(outcome, errors=errors)


def _replaced(value: Any, old: str, new: str) -> Any:
    """The value with another text for the ids and names that have this one."""
    if isinstance(value, list):
        return [_replaced(each, old, new) for each in value]
    if isinstance(value, dict):
        return {
            key: new if key in ("id", "name") and each == old else _replaced(each, old, new)
            for key, each in value.items()
        }
    return value


def _unmarked(text: str | None) -> str | None:
    return "null" if text == "<null>" else text


@pytest.mark.parametrize("intermediate", [False, True])
@pytest.mark.parametrize("client", [NullIsText, NullIsAbsent])
def test_the_text_null_is_a_text_or_absent(client: type[Probe], intermediate: bool) -> None:
    """Either reading is right, for ids and for names alike, also of two calls of one tool."""
    found = _cases("chat", "chat-placeholder-null-string")
    assert any(each.scenario.name == TWO_SAME.name for each in found)
    policy = Policy(intermediate=intermediate)
    assert _accusations(client, found, policy) == []


def test_the_text_null_is_an_id_for_strict_clients_or_an_error() -> None:
    """A client that reports calls without ids may keep the id that was sent."""
    found = _cases("chat", "chat-placeholder-null-string")
    strict = Policy(missing_id="error")
    assert _accusations(NullIsText, found, strict) == []
    assert _accusations(lambda: NullIsAbsent(missing_id="error"), found, strict) == []

    class NullIsOneId(NullIsText):
        """Gives all calls of a name one id, against the id that was sent."""

        def outcome(self) -> Outcome:
            outcome = super().outcome()
            calls = tuple(replace(call, id="1") for call in outcome.tool_calls)
            return replace(outcome, tool_calls=calls)

    assert set(examine(NullIsOneId, found).broken()) >= {"missing-id"}


# Answers that fail where arguments do not parse


class RaisesAtTheEnd(Naive):
    """Fails the whole answer, and has the finish that was sent."""

    def close(self) -> None:
        super().close()
        if self.finish:
            broken = [error for error in super().outcome().errors if "no JSON" in error.message]
            if broken:
                raise ValueError(broken[0].message)


@pytest.mark.slow
def test_an_answer_that_fails_may_have_the_finish_that_was_sent() -> None:
    """Under `malformed="fail"` the finish on the wire is no pretence; a call would be."""
    found = tuple(each for each in _cases("chat") if each.malformed)
    policy = Policy(malformed="fail")
    assert len(found) >= 3
    assert _accusations(RaisesAtTheEnd, found, policy) == []

    class HandsOnTheCall(RaisesAtTheEnd):
        def outcome(self) -> Outcome:
            calls = [(id, name, {}) for id, name, _ in self.calls.values()]
            return replace(super().outcome(), tool_calls=Outcome.of(tool_calls=calls).tool_calls)

    assert set(examine(HandsOnTheCall, found, policy).broken()) == {"malformed-contained"}
