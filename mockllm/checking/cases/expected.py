"""The expected outcome of a turn: what a correct client ends up with. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mockllm.checking.outcome import (
    NOT_KEPT,
    TOKEN_COUNTS,
    Call,
    NotKept,
    Outcome,
    Trouble,
    Usage,
    is_kept,
)
from mockllm.core.turn import Reasoning, Text, TokenUsage, ToolCall, Turn
from mockllm.scenario.model import Api, TurnSpec, UsageSpec
from mockllm.scenario.model import ExpectedOutcome as Expected
from mockllm.scenario.part_model import apis_written_out
from mockllm.wire.protocols import PROTOCOLS


def outcome_of_turn(turn: Turn, spec: TurnSpec, api: Api) -> Outcome:
    """The outcome of a client that reads a turn correctly, without the answer's id and model.

    Args:
        spec: the turn in the scenario; its `expect` overrides what follows from the turn.
    """
    outcome = Outcome(
        text=turn.text,
        reasoning=turn.reasoning,
        refusal=turn.refusal,
        # The input of a custom tool is text, for which clients have different places.
        tool_calls=tuple(_call(call, api) for call in turn.tool_calls if not call.custom),
        finish=turn.finish_raw or _finish_value(turn.finish, api),
        usage=_usage(turn.usage, None),
        errors=(Trouble(turn.error.message, "stream_error"),) if turn.error else (),
        opaque=_opaque(turn, spec, api),
    )
    if spec.expect is not None:
        outcome = _overridden(outcome, spec.expect, turn, api)
    # A stream without content, such as one of an error only, need not name the role.
    content = outcome.text, outcome.reasoning, outcome.refusal, outcome.tool_calls, turn.parts
    return replace(outcome, role="assistant" if any(content) else NOT_KEPT)


def _opaque(turn: Turn, spec: TurnSpec, api: Api) -> tuple[str, ...] | NotKept:
    """The signatures of a turn. Those in frames and native parts are known only from
    `expect.opaque`."""
    if api in apis_written_out(spec.reply):
        return NOT_KEPT
    signed = (part for part in turn.parts if isinstance(part, Text | Reasoning | ToolCall))
    return tuple(part.signature for part in signed if part.signature)


def _overridden(outcome: Outcome, expect: Expected, turn: Turn, api: Api) -> Outcome:
    given: dict[str, Any] = {
        name: getattr(expect, name)
        for name in ("text", "reasoning", "refusal", "opaque")
        if getattr(expect, name) is not None
    }
    if expect.usage is not None:
        given["usage"] = _usage(turn.usage, expect.usage)
    if expect.finish is not None:
        given["finish"] = _finish_value(expect.finish, api)
    outcome = replace(outcome, **given)
    errors = expect.errors or ()
    if all(error["kind"] == "malformed_arguments" for error in errors) and errors:
        # The arguments themselves show this error. Whether it is reported depends on the policy.
        return outcome
    if expect.tool_calls is not None:
        outcome = replace(outcome, tool_calls=Outcome.of(tool_calls=expect.tool_calls).tool_calls)
    troubles = tuple(Trouble(error["kind"], error["kind"], error.get("tool")) for error in errors)
    # A frame of the scenario may be such an error itself, which is one error.
    named = {(trouble.kind, trouble.tool) for trouble in troubles}
    others = tuple(error for error in outcome.errors if (error.kind, error.tool) not in named)
    return replace(outcome, errors=others + troubles)


def _usage(usage: TokenUsage | None, expect: UsageSpec | None) -> Usage | None:
    """The counts of a turn; those of `expect` replace them."""
    if expect is not None and not expect.sent:
        return None
    counts = {name: None if usage is None else getattr(usage, name) for name in TOKEN_COUNTS}
    if expect is not None:
        counts |= {n: getattr(expect, n) for n in TOKEN_COUNTS if getattr(expect, n) is not None}
    return None if usage is None and expect is None else Usage(**counts)


def _finish_value(finish: str | None, api: Api) -> str | None:
    """The value that an API usually sends for a neutral finish."""
    if finish is None:
        return None
    return PROTOCOLS[api].finish_values.get(finish, (finish,))[0]


def accepted_finish_values(
    turn: Turn, api: Api, spec: TurnSpec, events: Sequence[Any]
) -> frozenset[str]:
    """Every value of `Outcome.finish` that is correct for a turn; empty if it has no finish.

    These are the value on the wire, the neutral one, and `other` or `unknown` for a value that
    the API does not document. A raw value may name its field (`promptFeedback.blockReason=...`).

    Args:
        events: the decoded events of its stream.
    """
    if spec.expect is not None and spec.expect.finish is not None:
        turn = replace(turn, finish=spec.expect.finish)
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
    if turn.finish == "refusal" or turn.refusal:
        # Clients without a name for refusals report them as filtered.
        values |= {"refusal", "content_filter"}
    if turn.finish == "stop" and turn.tool_calls:
        # Where the API has no finish of its own for calls, a client may have one.
        values.add("tool_calls")
    stream = PROTOCOLS[api].events
    ends = [event for event in events if isinstance(event, dict) and stream.is_end(event)]
    return frozenset((values | _values_at(ends, stream.finish_path)) - {""})


def _call(call: ToolCall, api: Api) -> Call:
    try:
        value = call.parse_arguments()
    except ValueError:
        value = call.arguments
    arguments = value if isinstance(value, dict) else call.arguments
    return Call(call.name, arguments, call.id or None, _raw_arguments(call, api))


def _raw_arguments(call: ToolCall, api: Api) -> str | NotKept:
    zero = PROTOCOLS[api].zero_arguments
    return NOT_KEPT if zero is None else "".join(call.fragments) or zero


# What the stream itself shows


def as_streamed(outcome: Outcome, events: Sequence[Any], api: Api, *, changed: bool) -> Outcome:
    """The outcome with role, model and id of the answer, as the stream has them.

    Model or id is not judged if the stream has none, or several of them (`chat-chunk-id-changes`,
    `chat-first-choices-empty`): clients may keep the first or the last one. The role is None where
    the API sends none: for calls alone in Responses and AG-UI, for a blocked prompt in Gemini. A
    quirk that removes it leaves it expected.

    Args:
        events: the decoded events of the stream.
        changed: whether a quirk changed the stream. Then raw arguments and opaque values are
            judged only where the stream has them unchanged: a quirk may send arguments as an
            object (`chat-args-object`) or leave them out (`chat-args-empty-zero`).
    """
    stream = PROTOCOLS[api].events
    if is_kept(outcome.role) and not changed and not _has_role(events, PROTOCOLS[api].role):
        outcome = replace(outcome, role=None)
    outcome = replace(
        outcome,
        response_id=_only_value(events, stream.id_path),
        model=_only_value(events, stream.model_path),
    )
    if not changed:
        return outcome
    strings = set(strings_in(events))
    calls = tuple(
        call if call.arguments != {} and _joins(call.raw_arguments, strings) else _not_raw(call)
        for call in outcome.tool_calls
    )
    opaque = outcome.opaque
    if isinstance(opaque, tuple) and not all(_joins(value, strings) for value in opaque):
        opaque = NOT_KEPT
    return replace(outcome, tool_calls=calls, opaque=opaque)


def with_plan_apart(outcome: Outcome, events: Sequence[Any], api: Api) -> Iterator[Outcome]:
    """The outcomes of clients that keep a plan apart from the text: with the reasoning, or in a
    field of its own, for which an outcome has no place. None where the stream has no plan.

    Args:
        events: the decoded events of the stream.
    """
    plan = "".join(_texts_at(events, PROTOCOLS[api].events.plan_path))
    if plan and plan in outcome.text:
        rest = replace(outcome, text=outcome.text.replace(plan, "", 1))
        yield replace(rest, reasoning=rest.reasoning + plan)
        yield rest


def _only_value(events: Sequence[Any], path: str) -> str | NotKept:
    """The only value of a field in events; `NOT_KEPT` if there is none, or several. An empty
    one behind it is none: a client that takes that one has lost the value."""
    found = list(_texts_at(events, path))
    values = set(found) - {""}
    return found[0] if len(values) == 1 and found[0] else NOT_KEPT


def _values_at(events: Sequence[Any], path: str) -> set[str]:
    """The different texts that a field has in events; none for the path ""."""
    return set(_texts_at(events, path))


def _texts_at(events: Sequence[Any], path: str) -> Iterator[str]:
    keys = path.split(".")
    return (text for event in events if path and (text := _at(event, keys)) is not None)


def _at(value: Any, keys: Sequence[str]) -> str | None:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else None


def _has_role(value: Any, role: str) -> bool:
    """Whether a stream names the role of its answer, and not only that of earlier messages."""
    if isinstance(value, Mapping):
        found = (_has_role(inner, role) for key, inner in value.items() if key != "messages")
        return value.get("role") == role or any(found)
    return (
        not isinstance(value, str)
        and isinstance(value, Sequence)
        and any(_has_role(inner, role) for inner in value)
    )


def _not_raw(call: Call) -> Call:
    return replace(call, raw_arguments=NOT_KEPT)


def _joins(value: Any, strings: set[str]) -> bool:
    """Whether strings of the stream join to raw arguments, or to an opaque value."""
    if not isinstance(value, str):
        return False
    reached = {0}
    for start in range(len(value)):
        if start in reached:
            reached |= {
                start + len(text) for text in strings if text and value.startswith(text, start)
            }
    return len(value) in reached


def strings_in(value: Any) -> Iterator[str]:
    """The texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_in(inner)
