"""The expected outcome of a turn: what a correct client ends up with. Pure."""

from __future__ import annotations

from dataclasses import replace

from mockllm.checking.outcome import Call, Outcome, Trouble, Usage
from mockllm.core.turn import ToolCall, Turn
from mockllm.protocols import PROTOCOLS
from mockllm.scenario.model import Api, TurnSpec

__all__ = ["accepted_finish_values", "outcome_of_turn"]


def outcome_of_turn(turn: Turn, spec: TurnSpec, api: Api) -> Outcome:
    """The outcome of a client that reads a turn correctly.

    Args:
        spec: the turn in the scenario; its `expect` overrides what follows from the turn.
        api: the protocol, for its finish value.
    """
    usage = turn.usage
    outcome = Outcome(
        text=turn.text,
        reasoning=turn.reasoning,
        refusal=turn.refusal,
        tool_calls=tuple(map(_call, turn.tool_calls)),
        finish=turn.finish_raw or _finish_value(turn.finish, api),
        usage=None
        if usage is None
        else Usage(usage.input, usage.output, usage.reasoning, usage.cached),
        errors=(Trouble(turn.error.message, "stream_error"),) if turn.error else (),
    )
    expect = spec.expect
    if expect is None:
        return outcome
    if expect.text is not None:
        outcome = replace(outcome, text=expect.text)
    if expect.finish is not None:
        outcome = replace(outcome, finish=_finish_value(expect.finish, api))
    errors = expect.errors or ()
    if all(error["kind"] == "malformed_arguments" for error in errors) and errors:
        # The arguments themselves show this error. Whether it is reported depends on the policy.
        return outcome
    if expect.tool_calls is not None:
        outcome = replace(outcome, tool_calls=Outcome.of(tool_calls=expect.tool_calls).tool_calls)
    troubles = tuple(Trouble(error["kind"], error["kind"], error.get("tool")) for error in errors)
    return replace(outcome, errors=outcome.errors + troubles)


def _finish_value(finish: str | None, api: Api) -> str | None:
    """The value that an API usually sends for a neutral finish."""
    if finish is None:
        return None
    return PROTOCOLS[api].finish_values.get(finish, (finish,))[0]


def accepted_finish_values(turn: Turn, api: Api) -> frozenset[str]:
    """Every value of `Outcome.finish` that is correct for a turn; empty if it has no finish.

    These are the value on the wire, the neutral one, and `other` or `unknown` for a value that
    the API does not document. A raw value may name its field (`promptFeedback.blockReason=...`).
    """
    if turn.finish is None and turn.finish_raw is None:
        return frozenset()
    raw = turn.finish_raw or ""
    values = {
        turn.finish or "",
        raw,
        raw.rpartition("=")[2],
        *PROTOCOLS[api].finish_values.get(turn.finish or "", ()),
    }
    if turn.finish_raw:
        values |= {"other", "unknown"}
    if turn.finish in ("tool_calls", "refusal"):
        values.add("stop")
    return frozenset(values - {""})


def _call(call: ToolCall) -> Call:
    try:
        value = call.parsed()
    except ValueError:
        value = call.arguments
    return Call(call.name, value if isinstance(value, dict) else call.arguments, call.id or None)
