"""A request as it is matched, recorded and judged: one of a coding agent with the words of its
user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mockllm.core.http import Target
from mockllm.core.request import Message, Request, Words, World
from mockllm.play.agents.known_agents import Agent, agent_of
from mockllm.wire.protocols.base import WireProtocol


def read_request(
    protocol: WireProtocol,
    body: dict[str, Any],
    target: Target,
    headers: Mapping[str, str],
    *,
    strict: bool = False,
) -> Request:
    """The request in a body, as its agent sent it.

    Args:
        headers: with lower-case names.

    Raises:
        RequestError: the API refuses it.
    """
    return as_agent_sent(protocol.parse(body, target, strict), headers)


def as_agent_sent(request: Request, headers: Mapping[str, str]) -> Request:
    """A request with what its agent adds to the words of the user as messages of the system, and
    with the machine that the agent runs on; that of any other client as it is.

    Args:
        headers: with lower-case names.
    """
    agent = agent_of(headers, request)
    if agent is None:
        return request
    world = world_of(agent, request)
    messages = (each for m in request.messages for each in _messages(m, agent, world))
    system = Words.of(request.system, world)
    return replace(
        request,
        messages=tuple(messages),
        system=system,
        tools=(*request.tools, *agent.deferred_tools(request)),
        agent=agent.name,
        world=world,
    )


def world_of(agent: Agent, request: Request) -> World:
    """The machine that an agent runs on. A recorded request has placeholders for it already, and
    then none of its values is looked for."""
    found = agent.surroundings(request)
    is_recorded = any(value.startswith("<") and value.endswith(">") for value in found.values())
    dates = tuple(pattern for name, pattern in agent.world if name == "date")
    values = () if is_recorded else tuple((k, v) for k, v in found.items() if k != "date")
    return World(values, (*dates, *agent.differs), is_recorded)


def _messages(message: Message, agent: Agent, world: World) -> Iterator[Message]:
    if message.calls and agent.replaced is not None:
        message = replace(message, calls=tuple(map(agent.model_call, message.calls)))
    if message.role != "user":
        yield replace(message, text=Words.of(message.text, world)) if message.text else message
        return
    own = agent.own_words(message.text)
    if own != message.text and agent.around:
        yield Message("system", Words.of(message.text.replace(own, "", 1).strip(), world))
    if own or message.files or not message.text:
        yield replace(message, text=Words.of(own, world))
