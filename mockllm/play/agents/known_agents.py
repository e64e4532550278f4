"""The agents of `agents.yaml`: recognised by a request, and read out of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.jsontext import parse_object
from mockllm.core.record import record
from mockllm.core.request import CallEcho, Message, OfferedTool, Request
from mockllm.play.tables import read_table

_MOST_SEARCHED = 4096
"""Characters of a text in which an agent is recognised."""

_OF_USER = re.compile(r"[/\\](?:home|Users)[/\\]([^/\\]+)\Z")
"""A home directory that has the name of its user."""


@record
class Agent:
    """A coding agent; the expressions have one group each.

    Args:
        name: as options and recordings have it.
        version: the newest in which any of this was seen.
        user_agent: what its header begins with.
        conversation: the headers that name the conversation of a request.
        refused: the status at which it stops and shows the reason; 0: any.
        deferred: a list of tools that it loads when they are asked for.
        replaced: its own tool in whose call it puts one that it cannot run, and the argument that
            names that; None: it has none.
        body: a text in the beginning of its system prompt, or of its first message of a user.
        around: the beginning and the end of what it puts around the words of its user.
        quotes: the words of its user in quotes; None: it does not quote them.
        world: where the values of its machine stand, by their names.
        differs: what differs from run to run though nothing changed.
        failed: how the text of a failed tool's result reads.
    """

    name: str
    version: str
    user_agent: str
    conversation: tuple[str, ...]
    refused: int
    deferred: re.Pattern[str] | None
    replaced: tuple[str, str] | None
    body: str
    around: tuple[tuple[str, str], ...]
    quotes: re.Pattern[str] | None
    world: tuple[tuple[str, re.Pattern[str]], ...]
    differs: tuple[re.Pattern[str], ...]
    failed: tuple[re.Pattern[str], ...]

    def own_words(self, text: str) -> str:
        """The words of the user in a text, without what the agent puts around them; "" for a text
        that is all the agent's."""
        own = text
        for begin, end in self.around:
            own = _without(own, begin, end)
        own = own if own == text else own.strip()
        quoted = None if self.quotes is None else self.quotes.search(own.strip())
        return own if quoted is None else quoted[1].replace('\\"', '"')

    def surroundings(self, request: Request) -> dict[str, str]:
        """The values of the machine that the agent states, by their names: `cwd`, `home`, `tmp`,
        `user`, `date`, `git`."""
        texts = [request.system, *(m.text for m in request.messages if m.role in _STATING)]
        values = {}
        for name, pattern in self.world:
            found = (pattern.search(text) for text in texts)
            value = next((place[1].strip() for place in found if place is not None), "")
            if value:
                values[name] = value
        user = _OF_USER.search(values.get("home", ""))
        return values if user is None else {**values, "user": user[1]}

    def conversation_of(self, headers: Mapping[str, str]) -> str:
        """A name for the conversation of a request, the same for each of its requests; "" where
        the agent names none. Its headers have ids of people's sessions, so this is a digest."""
        ids = [headers[name] for name in self.conversation if name in headers]
        return sha256("\n".join(ids).encode("utf-8", "replace")).hexdigest()[:12] if ids else ""

    def deferred_tools(self, request: Request) -> tuple[OfferedTool, ...]:
        """The tools that a request only names: the agent loads them when they are asked for."""
        if self.deferred is None:
            return ()
        texts = (message.text for message in request.messages if message.role in _STATING)
        found = [list_ for text in texts for list_ in self.deferred.findall(text)]
        names = dict.fromkeys(name for list_ in found for name in list_.split())
        known = {tool.name for tool in request.tools}
        return tuple(OfferedTool(name) for name in names if name not in known)

    def model_call(self, call: CallEcho) -> CallEcho:
        """A call of the history as the model made it, where the agent put its own in its place."""
        if self.replaced is None or call.name != self.replaced[0]:
            return call
        try:
            values = parse_object(call.arguments.encode())
        except RequestError:
            return call
        name = values.get(self.replaced[1])
        return replace(call, name=name, replaced=True) if isinstance(name, str) else call


_STATING = ("system", "user")
"""The roles of messages in which an agent says where it runs."""


def agent_of(headers: Mapping[str, str], request: Request | None = None) -> Agent | None:
    """The agent that sent a request, by its user agent, or else by what it says.

    Args:
        headers: with lower-case names.
    """
    header = headers.get("user-agent", "")
    agents = known_agents().values()
    found = (agent for agent in agents if header.startswith(agent.user_agent))
    agent = next(found, None)
    if agent is not None or request is None or not request.system:  # each of them has one
        return agent
    first = next((m.text for m in request.messages if m.role == "user"), "")
    texts = (request.system[:_MOST_SEARCHED], first[:_MOST_SEARCHED])
    return next((agent for agent in agents if any(agent.body in text for text in texts)), None)


def conversation_of(headers: Mapping[str, str]) -> str:
    """A name for the conversation of a request, as `Agent.conversation_of` has it; "" where its
    client is no agent, or names none."""
    agent = agent_of(headers)
    return "" if agent is None else agent.conversation_of(headers)


def has_failed(result: Message, agent: str) -> bool:
    """Whether the result of a tool says that the tool failed.

    Args:
        agent: the name of the agent that sent it; "" for any other client.
    """
    patterns = known_agents()[agent].failed if agent else ()
    return result.error or any(pattern.search(result.text) for pattern in patterns)


@cache
def known_agents() -> Mapping[str, Agent]:
    """The agents by their names."""
    table = read_table("agents.yaml", __package__)
    return {name: _agent(name, fields) for name, fields in table.items()}


def _agent(name: str, fields: Mapping[str, Any]) -> Agent:
    quotes = fields.get("quotes")
    return Agent(
        name,
        fields["user_agent"]["seen"],
        fields["user_agent"]["begins"],
        tuple(fields.get("conversation", {}).get("headers", ())),
        fields.get("refused", {}).get("status", 0),
        re.compile(fields["deferred"]["at"]) if "deferred" in fields else None,
        (fields["replaced"]["tool"], fields["replaced"]["name"]) if "replaced" in fields else None,
        fields["body"]["has"],
        tuple((each["begin"], each["end"]) for each in fields.get("around", ())),
        None if quotes is None else re.compile(quotes["at"], re.DOTALL),
        tuple((each, re.compile(place["at"])) for each, place in fields["world"].items()),
        tuple(re.compile(each["at"]) for each in fields.get("differs", ())),
        tuple(re.compile(each["at"]) for each in fields.get("failed", ())),
    )


def _without(text: str, begin: str, end: str) -> str:
    """A text without the parts between two marks; one that does not end stays."""
    parts, last = [], 0
    while (start := text.find(begin, last)) >= 0:
        stop = text.find(end, start)
        if stop < 0:
            break
        parts.append(text[last:start])
        last = stop + len(end)
    return "".join([*parts, text[last:]])
