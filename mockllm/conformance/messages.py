"""The protocol of runners: JSON values to outcomes and back. Pure.

A runner is a program around a client. It reads one JSON object a line and writes one a line;
`runner.schema.json` describes all of them, docs/runner-protocol.md explains them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import NOT_KEPT, Call, Outcome, Usage, is_kept
from mockllm.conformance.case_names import name_of
from mockllm.conformance.fault_fields import (
    ANSWER_FIELDS,
    NOTHING,
    FaultFields,
    read_declared,
    read_earlier,
    read_fault_fields,
)
from mockllm.conformance.message_errors import (
    InvalidMessageError,
    error_json,
    read_crash,
    read_errors,
)
from mockllm.conformance.results import Client
from mockllm.scenario.model import ToolSpec

__all__ = [
    "FIELDS",
    "VERSION",
    "Answer",
    "Hello",
    "InvalidMessageError",
    "answer_json",
    "as_json",
    "case_feed",
    "case_json",
    "encode",
    "parse",
    "question",
    "read_answer",
    "read_hello",
    "sent_id",
    "tools_json",
]

VERSION = 1

FIELDS = ("text", "reasoning", "refusal", "tool_calls", "finish", "usage")
"""The fields of an outcome that cannot be NOT_KEPT; where an answer has none, it is `absent`."""

_TEXTS = ("text", "reasoning", "refusal")
_OPTIONAL_TEXTS = ("finish", "role", "model", "response_id")
_KEPT = ("role", "model", "response_id", "opaque")
_COUNTS = ("input", "output", "reasoning", "cached")
_CAN_LACK = {*FIELDS, *_KEPT}
_KNOWN = {"id", *_CAN_LACK, "errors", "crash", *ANSWER_FIELDS}


@dataclass(frozen=True, slots=True)
class Hello:
    """What a runner says of its client.

    Args:
        unsupported: the fields of an outcome that the client has no place for, in any case.
        intermediate: reserved; version 1 judges no state before the end of a stream.
        resilience: settings of the client that the cases do not choose, as `read_declared`.
    """

    client: Client
    unsupported: frozenset[str] = frozenset()
    intermediate: bool = False
    resilience: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a runner answers to a case.

    Args:
        outcome: of the client; fields that are absent have their default here.
        absent: the names of `FIELDS` that the answer does not have.
        raised: the innermost frame of the first exception, as `FILE:LINE in FUNCTION`.
        invalid: what is wrong with the answer itself; "" if it has the form of the protocol.
        ended: why there is no answer (the runner died, or took too long); "" if there is one.
        fault: what it says about a fault.
        earlier: the answers to the requests before the last one, where a case has several.
    """

    outcome: Outcome
    absent: frozenset[str] = frozenset()
    raised: str = ""
    invalid: str = ""
    ended: str = ""
    fault: FaultFields = NOTHING
    earlier: tuple[Answer, ...] = ()


# What mockllm sends


def question(api: str, level: str) -> dict[str, Any]:
    """The first message of mockllm."""
    return {"mockllm": VERSION, "api": api, "level": level}


def case_json(case: Case, level: str) -> dict[str, Any]:
    """The message of a case, without its id, at level `bytes` or `payloads`.

    Raises:
        ValueError: the case shows in bytes only.
    """
    return {
        "case": name_of(case),
        "tools": tools_json(case.tools),
        "feed": case_feed(case, level),
    }


def case_feed(case: Case, level: str) -> list[Any]:
    """What a client gets, read by read: base64 texts, or pairs of event and payload."""
    if level == "bytes":
        return [b64encode(chunk).decode("ascii") for chunk in case.chunks]
    if case.events is None:
        raise ValueError(f"{case.name} shows at the level of bytes only")
    return [[event, value] for value, event in case.events.decoded]


def tools_json(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """The tools that a request offers."""
    found = []
    for tool in tools:
        one: dict[str, Any] = {"name": tool.name}
        if tool.description:
            one["description"] = tool.description
        if tool.parameters is not None:
            one["parameters"] = tool.parameters
        found.append(one)
    return found


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as a line, in ASCII, so that no runner has to know an encoding."""
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


# What a runner sends


def parse(line: bytes) -> dict[str, Any]:
    """The object of a line.

    Raises:
        InvalidMessageError: the line is no JSON object.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidMessageError(f"a line is no JSON: {line[:200]!r} ({error})") from None
    if not isinstance(value, dict):
        raise InvalidMessageError(f"a line is no JSON object: {line[:200]!r}")
    return value


def read_hello(value: Mapping[str, Any]) -> Hello:
    """The hello of a runner.

    Raises:
        InvalidMessageError: a field is missing, or has another type.
    """
    if value.get("mockllm") != VERSION:
        raise InvalidMessageError(
            f"mockllm: this mockllm speaks version {VERSION} of the protocol, and the runner "
            f"answered {value.get('mockllm')!r}"
        )
    client = value.get("client")
    if not isinstance(client, dict) or not isinstance(client.get("name"), str):
        raise InvalidMessageError('client: must be an object with a "name"')
    names = ("name", "version", "language", "entry_point", "adapter", "notes")
    for name in names:
        if not isinstance(client.get(name, ""), str):
            raise InvalidMessageError(f"client.{name}: must be a text, not {client[name]!r:.80}")
    unsupported = value.get("unsupported", [])
    if not isinstance(unsupported, list) or not set(map(str, unsupported)) <= _CAN_LACK:
        known = ", ".join(sorted(_CAN_LACK))
        raise InvalidMessageError(f"unsupported: must be a list of these names: {known}")
    intermediate = value.get("intermediate", False)
    if not isinstance(intermediate, bool):
        raise InvalidMessageError("intermediate: must be true or false")
    found = Client(**{name: client[name] for name in names if name in client})
    declared = read_declared(value.get("resilience"))
    return Hello(found, frozenset(unsupported), intermediate, declared)


def read_answer(value: Mapping[str, Any]) -> Answer:
    """The answer to a case.

    Raises:
        InvalidMessageError: a field is unknown, or has another type.
    """
    unknown = sorted(value.keys() - _KNOWN)
    if unknown:
        raise InvalidMessageError(f"{unknown[0]}: there is no such field in an answer")
    fields: dict[str, Any] = {name: _text(value, name) for name in _TEXTS}
    fields |= {name: _optional(value, name) for name in _OPTIONAL_TEXTS}
    if "finish" not in value:
        fields["finish"] = None
    errors = [*read_crash(value.get("crash")), *read_errors(value.get("errors"))]
    outcome = Outcome(
        tool_calls=_calls(value.get("tool_calls")),
        usage=_usage(value.get("usage")),
        errors=tuple(errors),
        opaque=_opaque(value),
        **fields,
    )
    raised = next((one.raised for one in errors if one.raised), "")
    absent = frozenset(name for name in FIELDS if name not in value)
    earlier = read_earlier(value, read_answer)
    return Answer(outcome, absent, raised, fault=read_fault_fields(value), earlier=earlier)


def sent_id(value: Mapping[str, Any]) -> int:
    """The id of an answer; 0, which mockllm never sends, if it is no whole number."""
    found = value.get("id")
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    if found is not None and not isinstance(found, str):
        raise InvalidMessageError(f"{name}: must be a text or null, not {found!r:.80}")
    return found or ""


def _optional(value: Mapping[str, Any], name: str) -> Any:
    found = value.get(name, NOT_KEPT)
    if found is not None and found is not NOT_KEPT and not isinstance(found, str):
        raise InvalidMessageError(f"{name}: must be a text or null, not {found!r:.80}")
    return found


def _calls(value: Any) -> tuple[Call, ...]:
    if not isinstance(value, list | None):
        raise InvalidMessageError(f"tool_calls: must be a list, not {value!r:.80}")
    return tuple(_call(one, f"tool_calls[{index}]") for index, one in enumerate(value or ()))


def _call(value: Any, where: str) -> Call:
    if not isinstance(value, dict):
        raise InvalidMessageError(f"{where}: must be an object, not {value!r:.80}")
    unknown = sorted(value.keys() - {"id", "name", "arguments", "raw_arguments"})
    if unknown:
        raise InvalidMessageError(f"{where}.{unknown[0]}: there is no such field in a call")
    for name in ("id", "name"):
        if not isinstance(value.get(name), str | None):
            raise InvalidMessageError(f"{where}.{name}: must be a text, not {value[name]!r:.80}")
    arguments = value.get("arguments")
    raw = value.get("raw_arguments", arguments if isinstance(arguments, str) else NOT_KEPT)
    names = {"id": value.get("id"), "name": value.get("name")}
    return Outcome.of(
        tool_calls=[{**names, "arguments": arguments, "raw_arguments": raw}]
    ).tool_calls[0]


def _usage(value: Any) -> Usage | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not value.keys() <= set(_COUNTS):
        raise InvalidMessageError(f"usage: must be null or an object with {', '.join(_COUNTS)}")
    for name, count in value.items():
        if not isinstance(count, int | None) or isinstance(count, bool):
            raise InvalidMessageError(f"usage.{name}: must be a whole number, not {count!r:.80}")
    return Usage(**value)


def _opaque(value: Mapping[str, Any]) -> Any:
    found = value.get("opaque", NOT_KEPT)
    if found is NOT_KEPT:
        return NOT_KEPT
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InvalidMessageError(f"opaque: must be a list of texts, not {found!r:.80}")
    return tuple(found)


# Outcomes as JSON


def as_json(outcome: Outcome, absent: frozenset[str] = frozenset()) -> dict[str, Any]:
    """An outcome in the form of an answer, without `id`; the inverse of `read_answer`."""
    found: dict[str, Any] = {
        "text": outcome.text,
        "reasoning": outcome.reasoning,
        "refusal": outcome.refusal,
        "finish": outcome.finish,
        "tool_calls": [_call_json(call) for call in outcome.tool_calls],
        "usage": _usage_json(outcome.usage),
        "errors": [error_json(one) for one in outcome.errors if not one.crash],
    }
    for name in _KEPT:
        value = getattr(outcome, name)
        if is_kept(value):
            found[name] = list(value or ()) if name == "opaque" else value
    crashes = [error_json(one) for one in outcome.errors if one.crash]
    if crashes:
        found["crash"], *more = crashes
        found["errors"] = [*more, *found["errors"]]
    return {name: value for name, value in found.items() if name not in absent}


def answer_json(answer: Answer) -> dict[str, Any]:
    """An answer in the form in which it came, without `id`."""
    return as_json(answer.outcome, answer.absent)


def _call_json(call: Call) -> dict[str, Any]:
    found: dict[str, Any] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    if isinstance(call.raw_arguments, str) and not isinstance(call.arguments, str):
        # As it was accumulated, which is what the reader of an answer parses.
        found["arguments"] = call.raw_arguments
    elif is_kept(call.raw_arguments) and call.raw_arguments != call.arguments:
        found["raw_arguments"] = call.raw_arguments
    return found


def _usage_json(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    counts = {name: getattr(usage, name) for name in _COUNTS}
    return {name: count for name, count in counts.items() if count is not None}
