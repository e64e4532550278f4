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
from mockllm.checking.outcome import FIELDS, Outcome
from mockllm.checking.policy import ResiliencePolicy
from mockllm.conformance.attachments.outcome_json import (
    InvalidMessageError,
    as_json,
    check_message,
    read_outcome,
)
from mockllm.conformance.case_names import name_of
from mockllm.conformance.results import Client
from mockllm.scenario.model import ToolSpec

VERSION = 1


@dataclass(frozen=True, slots=True)
class Hello:
    """What a runner says of its client.

    Args:
        unsupported: the fields of an outcome that the client has no place for, in any case.
        resilience: settings of the client that the cases do not choose.
    """

    client: Client
    unsupported: frozenset[str] = frozenset()
    resilience: ResiliencePolicy = field(default_factory=ResiliencePolicy)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a runner answers to a case.

    Args:
        outcome: of the client; fields that are absent have their default here.
        absent: the names of `FIELDS` that the answer does not have.
        raised: the innermost frame of the first exception, as `FILE:LINE in FUNCTION`.
        invalid: what is wrong with the answer itself; "" if it has the form of the protocol.
        ended: why there is no answer (the runner died, or took too long); "" if there is one.
        earlier: the outcomes of the requests before the last one, where a case has several.
        raw: the whole answer, as it came.
    """

    outcome: Outcome
    absent: frozenset[str] = frozenset()
    raised: str = ""
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
    check_message(value, "hello")
    known = [slot.name for slot in fields(Client)]
    return Hello(
        Client(**{name: text for name, text in value["client"].items() if name in known}),
        frozenset(value.get("unsupported", ())),
        ResiliencePolicy.declared(value.get("resilience", {})),
    )


def read_answer(value: Mapping[str, Any]) -> Answer:
    """The answer to a case."""
    check_message(value, "answer")
    outcome = read_outcome(value)
    return Answer(
        outcome,
        absent=frozenset(name for name in FIELDS if name not in value),
        raised=next((error.raised for error in outcome.errors if error.raised), ""),
        earlier=tuple(map(read_outcome, value.get("earlier") or ())),
        raw={name: item for name, item in value.items() if name != "id"},
    )


def sent_id(value: Mapping[str, Any]) -> int:
    """The id of an answer; 0, which mockllm never sends, if it is no whole number."""
    found = value.get("id")
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def answer_json(answer: Answer) -> dict[str, Any]:
    """An answer in the form in which it came, without `id`."""
    return as_json(answer.outcome, answer.absent)
