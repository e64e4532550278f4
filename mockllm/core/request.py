"""A request in neutral terms: what matching, checking and the automatic answer look at.

Every protocol's parser makes one of these from its own body. Only data may live here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["CallEcho", "Message", "OfferedTool", "Request"]

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class CallEcho:
    """A tool call as the client sends it back in the history; `id` is "" where the protocol
    or the client has none. `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the history.

    A tool message has `call_id` (or, where the protocol has no ids, `name`), the result as
    `text`, and `error` where the protocol can say that the tool failed. `ref` is an item that
    the service keeps and the client only points at (Responses `item_reference`).
    """

    role: Role
    text: str = ""
    calls: tuple[CallEcho, ...] = ()
    call_id: str = ""
    name: str = ""
    error: bool = False
    ref: str = ""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that the client offers; `parameters` is its JSON Schema."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """One request for an answer.

    Args:
        api: the protocol's name (`chat`, `responses`, ...).
        model: as the client wrote it, with a scenario's name in it or not.
        body: the parsed JSON body, not to be changed.
        stream: whether the answer is to be streamed.
        messages: the history in order, system messages included.
        system: the system prompt, from wherever the protocol has it.
        tool_choice: `auto`, `none`, `required`, or the name of the tool that must be called.
        previous: the token of an earlier answer of ours that this request continues.
        conversation: the service-side conversation that the client names, if any.
        scenario: the scenario named in the path, if any (`/agui/<scenario>`).
        output_schema: the JSON Schema that the answer's text must satisfy, if asked for;
            an empty mapping asks for any JSON object.
        wants_reasoning: whether the request asks for reasoning.
        traits: what path and query say besides, in the protocol's own words, where the answer's
            bytes depend on it.
    """

    api: str
    model: str
    body: Mapping[str, Any]
    stream: bool = False
    messages: tuple[Message, ...] = ()
    system: str = ""
    tools: tuple[OfferedTool, ...] = ()
    tool_choice: str = "auto"
    previous: str | None = None
    conversation: str | None = None
    scenario: str | None = None
    output_schema: Mapping[str, Any] | None = None
    wants_reasoning: bool = False
    traits: frozenset[str] = frozenset()
