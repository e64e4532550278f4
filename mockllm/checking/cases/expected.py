"""What a turn adds up to for a client: the outcome that a case expects."""

from __future__ import annotations

from dataclasses import replace

from mockllm.checking.outcome import Call, Outcome, Trouble, Usage
from mockllm.core.turn import ToolCall, Turn
from mockllm.protocols import PROTOCOLS
from mockllm.scenario.model import Api, TurnSpec

__all__ = ["finish_words", "outcome_of_turn"]


def outcome_of_turn(turn: Turn, spec: TurnSpec, api: Api) -> Outcome:
    """What a client comes to that reads a turn rightly; `expect` of the turn may say otherwise."""
    usage = turn.usage
    outcome = Outcome(
        text=turn.text,
        reasoning=turn.reasoning,
        refusal=turn.refusal,
        tool_calls=tuple(map(_call, turn.tool_calls)),
        finish=turn.finish_raw or _usual(turn.finish, api),
        usage=None
        if usage is None
        else Usage(usage.input, usage.output, usage.reasoning, usage.cached),
        errors=(Trouble(turn.error.message, "stream_error"),) if turn.error else (),
    )
    told = spec.expect
    if told is None:
        return outcome
    if told.text is not None:
        outcome = replace(outcome, text=told.text)
    if told.finish is not None:
        outcome = replace(outcome, finish=_usual(told.finish, api))
    mistakes = told.errors or ()
    if all(mistake["kind"] == "malformed_arguments" for mistake in mistakes) and mistakes:
        return outcome  # read off the arguments themselves, as the policy of a client says
    if told.tool_calls is not None:
        outcome = replace(outcome, tool_calls=Outcome.of(tool_calls=told.tool_calls).tool_calls)
    errors = tuple(Trouble(each["kind"], each["kind"], each.get("tool")) for each in mistakes)
    return replace(outcome, errors=outcome.errors + errors)


def _usual(finish: str | None, api: Api) -> str | None:
    if finish is None:
        return None
    return PROTOCOLS[api].finish_values.get(finish, (finish,))[0]


def finish_words(turn: Turn, api: Api) -> frozenset[str]:
    """All words that are right: the wire's, the neutral one, and "other" for a foreign one. A
    raw word may name the field that it stood in (`promptFeedback.blockReason=...`)."""
    if turn.finish is None and turn.finish_raw is None:
        return frozenset()
    raw = turn.finish_raw or ""
    words = {
        turn.finish or "",
        raw,
        raw.rpartition("=")[2],
        *PROTOCOLS[api].finish_values.get(turn.finish or "", ()),
    }
    if turn.finish_raw:
        words |= {"other", "unknown"}
    if turn.finish in ("tool_calls", "refusal"):
        words.add("stop")
    return frozenset(words - {""})


def _call(call: ToolCall) -> Call:
    try:
        value = call.parsed()
    except ValueError:
        value = call.arguments
    return Call(call.name, value if isinstance(value, dict) else call.arguments, call.id or None)
