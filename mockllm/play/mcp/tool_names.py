"""Which tool of which MCP server a name means that a client offers to a model. Pure.

Clients rename tools: `mcp__weather__get_forecast`, `weather_get_forecast`, `get_forecast`. A
scenario and the judge name them `weather.get_forecast`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from mockllm.core.request import Message, OfferedTool, Request
from mockllm.play.mcp.rpc import mapping
from mockllm.scenario.mcp_model import McpServer, McpTool, server_and_tool
from mockllm.scenario.model import Match, Scenario, with_entries

_PREFIXES = ("", "mcp_", "mcp__")
_BETWEEN = ("_", "__")
_HASHED = re.compile(r"(.+)_[0-9a-f]{8}")
_MOST = 64
"""The length to which some clients cut names."""


def _forms(name: str) -> set[str]:
    """A name as clients write it, who put `_` in place of what services refuse."""
    clean = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return {name, clean, clean.replace("-", "_")}


def _properties(schema: object) -> frozenset[str]:
    return frozenset(mapping(mapping(schema).get("properties")))


class ToolNames:
    """Finds what the names mean that a client offers."""

    def __init__(self, servers: Iterable[McpServer]) -> None:
        self._tools: dict[str, McpTool] = {}
        self._bare: dict[str, set[str]] = {}
        self._named: dict[str, set[str]] = {}
        self._of_server: dict[str, set[str]] = {}
        for server in servers:
            self._add(server.name, server.tools)
            for entry in server.calls:
                for answer in entry.every_answer:
                    self._add(server.name, answer.tools or ())

    def _add(self, server: str, tools: Iterable[McpTool]) -> None:
        for tool in tools:
            full = f"{server}.{tool.name}"
            self._tools.setdefault(full, tool)
            self._of_server.setdefault(server, set()).add(full)
            for form in _forms(tool.name):
                self._bare.setdefault(form, set()).add(full)
                for own in _forms(server):
                    for start in _PREFIXES:
                        for between in _BETWEEN:
                            name = f"{start}{own}{between}{form}"
                            self._named.setdefault(name, set()).add(full)

    def meanings(self, offered: Sequence[OfferedTool]) -> dict[str, str]:
        """By offered name, `SERVER.TOOL`; names that mean none, or several, are left out."""
        found: dict[str, str] = {}
        for tool in offered:
            meant = self._named.get(tool.name) or self._cut(tool.name)
            self._note(found, tool, meant)
        others = [tool for tool in offered if tool.name not in found]
        taken = set(found.values())
        for tool in others:
            meant = self._bare.get(tool.name, set()) - taken
            self._note(found, tool, {full for full in meant if self._is_alike(tool, full)})
        for prefix, full in self._by_prefix([tool for tool in others if tool.name not in found]):
            found.setdefault(prefix, full)
        return found

    def _note(self, found: dict[str, str], tool: OfferedTool, meant: Collection[str]) -> None:
        if len(meant) > 1:
            sent = _properties(tool.parameters)
            same = [full for full in meant if _properties(self._tools[full].parameters) == sent]
            meant = same or meant
        if len(meant) == 1:
            found[tool.name] = next(iter(meant))

    def _is_alike(self, tool: OfferedTool, full: str) -> bool:
        """Whether a tool of the bare name may be that of a server: an agent has tools of its own,
        whose arguments are other ones."""
        own, sent = _properties(self._tools[full].parameters), _properties(tool.parameters)
        return not own or not sent or bool(own & sent)

    def _cut(self, name: str) -> set[str]:
        """The tools whose names are too long: with `...` inside, or a digest at the end."""
        if "..." in name and len(name) <= _MOST:
            start, _, end = name.partition("...")
            named = [n for n in self._named if n.startswith(start) and n.endswith(end)]
        elif (hashed := _HASHED.fullmatch(name)) is not None:
            named = [n for n in self._named if n.startswith(hashed[1])]
        else:
            return set()
        return set().union(*(self._named[name] for name in named))

    def _by_prefix(self, offered: Sequence[OfferedTool]) -> Iterable[tuple[str, str]]:
        """The tools of servers that the client calls by another name: all its names begin so."""
        ends = [
            (tool.name[: -len(form)], tool, full)
            for tool in offered
            for form, meant in self._bare.items()
            if tool.name.endswith(f"_{form}") and len(meant) == 1
            for full in meant
            if self._is_alike(tool, full)
        ]
        counts = Counter((prefix, full.partition(".")[0]) for prefix, _, full in ends)
        for prefix, tool, full in ends:
            server = full.partition(".")[0]
            if counts[prefix, server] == len(self._of_server[server]):
                yield tool.name, full


def tool_names(scenarios: Iterable[Scenario]) -> ToolNames:
    """The names of the tools of all servers, those that an answer of a scenario adds among them."""
    scenarios = tuple(scenarios)
    entries = [entry for scenario in scenarios for entry in scenario.mcp]
    servers = (scenario.server for scenario in scenarios if scenario.server is not None)
    return ToolNames(
        replace(server, calls=(*server.calls, *(e for e in entries if e.server == server.name)))
        for server in servers
    )


def named_tools(scenarios: Iterable[Scenario]) -> frozenset[str]:
    """The names `SERVER.TOOL` that scenarios have; with another prefix a dot is part of a name."""
    scenarios = tuple(scenarios)
    servers = {scenario.server.name for scenario in scenarios if scenario.server is not None}
    if not servers:
        return frozenset()
    names: set[str] = set()
    for scenario in scenarios:
        names |= scenario.calls_servers
        matches = with_entries(scenario.match or Match())
        names.update(name for _, match in matches for name in match.tools)
        for turn in scenario.turns:
            for _, condition in with_entries(turn.request) if turn.request is not None else ():
                names.update(condition.offers)
    return frozenset(n for n in names if (of := server_and_tool(n)) and of[0] in servers)


def with_server_tools(request: Request, names: ToolNames, used: Collection[str]) -> Request:
    """The request with `SERVER.TOOL` in place of the names that its client gives to the tools that
    scenarios name so; `Request.server_tools` has the client's names."""
    if not used:
        return request
    meanings = {n: full for n, full in names.meanings(request.tools).items() if full in used}
    own = {full: n for n, full in reversed(meanings.items())}
    # A last request may offer no tools any more. A tool that is offered has one name.
    before = {call.name for message in request.messages for call in message.calls}
    earlier = names.meanings([OfferedTool(name) for name in sorted(before - meanings.keys())])
    meanings |= {n: full for n, full in earlier.items() if full in used and full not in own}
    return replace(
        request,
        messages=tuple(_renamed_message(message, meanings) for message in request.messages),
        tools=tuple(replace(t, name=meanings.get(t.name, t.name)) for t in request.tools),
        tool_choice=meanings.get(request.tool_choice, request.tool_choice),
        server_tools=tuple((full, own.get(full, "")) for full in sorted(used)),
    )


def _renamed_message(message: Message, meanings: Mapping[str, str]) -> Message:
    if not message.calls and not message.name:
        return message
    calls = tuple(replace(c, name=meanings.get(c.name, c.name)) for c in message.calls)
    return replace(message, calls=calls, name=meanings.get(message.name, message.name))


def missing_tool(request: Request, calls: Iterable[str]) -> str:
    """Why a turn cannot call a tool of a server; "" where it can."""
    own = dict(request.server_tools)
    offered = ", ".join(own.get(tool.name) or tool.name for tool in request.tools) or "no tools"
    for name in calls:
        if own.get(name) == "":
            return (
                f"The turn calls {name}, and the request offers no tool that means it; it offers: "
                f"{offered}. Is the MCP server configured in the client, and did it list its tools?"
            )
    return ""
