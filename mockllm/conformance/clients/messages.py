"""The protocol of runners: JSON values to outcomes and back. Pure.

A runner is a program around a client. It reads one JSON object a line and writes one a line;
`runner.schema.json` describes all of them, docs/runner-protocol.md explains them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.difference import calls_of
from mockllm.checking.outcome import (
    FIELDS,
    LABELS,
    NOT_KEPT,
    TEXTS,
    TOKEN_COUNTS,
    Call,
    Outcome,
    Trouble,
    Usage,
    is_kept,
)
from mockllm.checking.policy import ResiliencePolicy
from mockllm.conformance.forms import form_problem
from mockllm.conformance.results import Client
from mockllm.scenario.model import ToolSpec


class InvalidMessageError(ValueError):
    """A line that is no message of the protocol; the text begins with the name of the field."""


def _check_form(value: Mapping[str, Any], kind: str) -> None:
    """Checks the form of a message by `runner.schema.json`; `kind` is its name in `$defs` there."""
    if problem := form_problem(value, "runner", kind):
        raise InvalidMessageError(problem)


def read_outcome(value: Mapping[str, Any]) -> Outcome:
    """The outcome of an answer of the right form. Fields that are absent have their default."""
    texts: dict[str, Any] = {name: value.get(name) or "" for name in TEXTS}
    labels: dict[str, Any] = {name: value.get(name, NOT_KEPT) for name in LABELS}
    if is_kept(labels["opaque"]):
        labels["opaque"] = tuple(labels["opaque"] or ())
    usage = value.get("usage")
    return Outcome(
        tool_calls=Outcome.of(tool_calls=map(_call, value.get("tool_calls") or ())).tool_calls,
        finish=value.get("finish"),
        usage=None if usage is None else Usage(**usage),
        errors=tuple(_errors(value)),
        partial=value.get("partial"),
        handed_on=(value["handed_on"] or "") if "handed_on" in value else None,
        open_at_end=value.get("left"),
        **texts,
        **labels,
    )


def _call(value: Mapping[str, Any]) -> dict[str, Any]:
    """A call with its arguments as text, too, where the client has them so."""
    arguments = value.get("arguments")
    raw = arguments if isinstance(arguments, str) else NOT_KEPT
    return {"raw_arguments": raw, **value}


def _errors(value: Mapping[str, Any]) -> list[Trouble]:
    """The errors of an answer, a crash first."""
    crash = value.get("crash")
    return [
        *([] if crash is None else [_trouble(crash, crash=True)]),
        *map(_trouble, value.get("errors") or ()),
    ]


def _trouble(value: str | Mapping[str, Any], *, crash: bool = False) -> Trouble:
    if isinstance(value, str):
        return Trouble(value, crash=crash)
    return Trouble(
        value["message"],
        crash=crash,
        raised=value.get("raised", ""),
        type=value.get("type") or "",
        cause=value.get("kind", NOT_KEPT),
    )


# To JSON


def as_json(outcome: Outcome, absent: frozenset[str] = frozenset()) -> dict[str, Any]:
    """An outcome in the form of an answer, without `id`; the inverse of `read_outcome`."""
    value: dict[str, Any] = {
        "text": outcome.text,
        "reasoning": outcome.reasoning,
        "refusal": outcome.refusal,
        "finish": outcome.finish,
        "tool_calls": [_call_json(call) for call in calls_of(outcome)],
        "usage": _usage_json(outcome.usage),
        "errors": [_error_json(error) for error in outcome.errors if not error.crash],
    }
    for name in LABELS:
        kept = getattr(outcome, name)
        if is_kept(kept):
            value[name] = list(kept or ()) if name == "opaque" else kept
    crashes = [_error_json(error) for error in outcome.errors if error.crash]
    if crashes:
        value["crash"], *more = crashes
        value["errors"] = [*more, *value["errors"]]
    said = {
        "partial": outcome.partial,
        "handed_on": outcome.handed_on,
        "left": outcome.open_at_end,
    }
    value |= {name: item for name, item in said.items() if item is not None}
    return {name: item for name, item in value.items() if name not in absent and is_kept(item)}


def _error_json(error: Trouble) -> str | dict[str, Any]:
    """An error in the form of an answer."""
    more: dict[str, Any] = {"raised": error.raised, "type": error.type}
    said = {name: text for name, text in more.items() if text}
    if is_kept(error.cause):
        said["kind"] = error.cause
    return {"message": error.message, **said} if said else error.message


def _call_json(call: Call) -> dict[str, Any]:
    value: dict[str, Any] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    if isinstance(call.raw_arguments, str) and not isinstance(call.arguments, str):
        # As it was accumulated, which is what the reader of an answer parses.
        value["arguments"] = call.raw_arguments
    elif is_kept(call.raw_arguments) and call.raw_arguments != call.arguments:
        value["raw_arguments"] = call.raw_arguments
    return value


def _usage_json(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None or not is_kept(usage):
        return None
    counts = {name: getattr(usage, name) for name in TOKEN_COUNTS}
    return {name: count for name, count in counts.items() if count is not None}


VERSION = 1


@dataclass(frozen=True, slots=True)
class Hello:
    """The hello of a runner, about its client.

    Args:
        unsupported: the fields of an outcome that the client has no place for, in any case.
        resilience: settings of the client that the cases do not choose.
    """

    client: Client
    unsupported: frozenset[str] = frozenset()
    resilience: ResiliencePolicy = field(default_factory=ResiliencePolicy)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a runner to a case.

    Args:
        outcome: of the client; fields that are absent have their default here.
        absent: the names of `FIELDS` that the answer does not have.
        invalid: what is wrong with the answer itself; "" if it has the form of the protocol.
        ended: why there is no answer (the runner died, or took too long); "" if there is one.
        earlier: the outcomes of the requests before the last one, where a case has several.
        raw: the whole answer, as it came.
    """

    outcome: Outcome
    absent: frozenset[str] = frozenset()
    invalid: str = ""
    ended: str = ""
    earlier: tuple[Outcome, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict)

    def outcomes(self, *, late: bool = False) -> tuple[Outcome, ...]:
        """The outcome of each request of a case, in their order.

        Args:
            late: whether the client answered only after its connections were broken off. Its
                outcome is none then: what it reports was caused by that, and not by the fault.
        """
        if late:
            return (Outcome(answered=False),)
        return (*self.earlier, replace(self.outcome, answered=not self.ended))


# What mockllm sends


def question(api: str, level: str) -> dict[str, Any]:
    """The first message of mockllm."""
    return {"mockllm": VERSION, "api": api, "level": level}


def case_json(case: Case, level: str) -> dict[str, Any]:
    """The message of a case, without its id, at level `bytes` or `payloads`."""
    return {
        "case": case.name,
        "tools": tools_json(case.tools),
        "feed": case_feed(case, level),
    }


def case_feed(case: Case, level: str) -> list[Any]:
    """The feed of a client, read by read: base64 texts, or pairs of event and payload."""
    if level == "bytes":
        return [b64encode(chunk).decode("ascii") for chunk in case.chunks]
    if case.events is None:
        raise ValueError(f"{case.name} shows at the level of bytes only")
    return [[event, value] for value, event in case.events.decoded]


def tools_json(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """The tools that a request offers."""
    listed = []
    for tool in tools:
        fields: dict[str, Any] = {"name": tool.name}
        if tool.description:
            fields["description"] = tool.description
        if tool.parameters is not None:
            fields["parameters"] = tool.parameters
        listed.append(fields)
    return listed


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as a line, in ASCII, so that no runner has to know an encoding."""
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


# What a runner sends


def parse(line: bytes) -> dict[str, Any]:
    """The object of a line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidMessageError(f"a line is no JSON: {line[:200]!r} ({error})") from None
    if not isinstance(value, dict):
        raise InvalidMessageError(f"a line is no JSON object: {line[:200]!r}")
    return value


def read_hello(value: Mapping[str, Any]) -> Hello:
    """The hello of a runner."""
    if value.get("mockllm") != VERSION:
        raise InvalidMessageError(
            f"mockllm: this mockllm speaks version {VERSION} of the protocol, and the runner "
            f"answered {value.get('mockllm')!r}"
        )
    _check_form(value, "hello")
    known = [slot.name for slot in fields(Client)]
    return Hello(
        Client(**{name: text for name, text in value["client"].items() if name in known}),
        frozenset(value.get("unsupported", ())),
        ResiliencePolicy.from_settings(value.get("resilience", {})),
    )


def read_answer(value: Mapping[str, Any]) -> Answer:
    """The answer to a case."""
    _check_form(value, "answer")
    return Answer(
        read_outcome(value),
        absent=frozenset(name for name in FIELDS if name not in value),
        earlier=tuple(map(read_outcome, value.get("earlier") or ())),
        raw={name: item for name, item in value.items() if name != "id"},
    )


def no_answer(reason: str) -> Answer:
    """The answer to a case that crashed its runner."""
    return Answer(Outcome(errors=(Trouble(reason, crash=True),)), ended=reason)


def valid_answer(value: Mapping[str, Any]) -> Answer:
    """The answer to a case; one that has not the form of the protocol says so in `invalid`."""
    try:
        return read_answer(value)
    except InvalidMessageError as error:
        broken = f"the answer of the runner is not valid: {error}"
        return replace(no_answer(broken), ended="", invalid=str(error))


def sent_id(value: Mapping[str, Any]) -> int:
    """The id of an answer; 0, which mockllm never sends, if it is no whole number."""
    id = value.get("id")
    return id if isinstance(id, int) and not isinstance(id, bool) else 0
