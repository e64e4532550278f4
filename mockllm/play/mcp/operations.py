"""Finds the answer of an MCP server to a message, from the servers and scenarios that are served.

Which answer a call gets is decided by the server, the tool and the arguments, and by a counter of
each entry in the session; never by the order of calls of several tools. Pure: counters are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.jsontext import compact
from mockllm.core.record import record
from mockllm.core.seeded import derive
from mockllm.core.text import did_you_mean
from mockllm.play.matching.conditions import (
    JudgedCondition,
    check_no_more,
    first_problem,
    judged_body,
)
from mockllm.play.mcp.replies import (
    McpReply,
    listed_tool,
    make_reply,
    place_in,
    result,
    result_message,
    text_block,
    with_failure,
)
from mockllm.play.mcp.rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    META,
    NO_METHOD,
    RESUME_HEADER,
    SESSION_HEADER,
    STATELESS,
    STDIO_HEADER,
    UNSUPPORTED_VERSION,
    Json,
    Operation,
    RpcMessage,
    RpcProblem,
    check_headers,
    error_of,
    operation_of,
    read_message,
    result_of,
)
from mockllm.play.mcp.tool_names import named_tools, tool_names
from mockllm.scenario.ignoring import normal_value
from mockllm.scenario.mcp_model import (
    McpAnswer,
    McpEntry,
    McpPlace,
    McpServer,
    McpTool,
    McpTry,
)
from mockllm.scenario.model import Scenario

Count = Callable[[str, int], int]
"""Adds to the counter of some name; what it was before."""

FindOpen = Callable[[Sequence[str], str, Mapping[str, Any]], Sequence[str]]
"""Of scenarios, by their names, those of which a streamed call of a tool with some arguments waits
for its result."""


@record
class _Found:
    """An entry that may answer a call.

    Args:
        scenario: its name, or `mcp:NAME` of the server's own.
        number: of the entry there.
    """

    scenario: str
    number: int
    entry: McpEntry


class McpPlayer:
    """Answers messages to MCP servers."""

    def __init__(self, scenarios: Iterable[Scenario]) -> None:
        scenarios = tuple(scenarios)
        self.servers = {one.server.name: one.server for one in scenarios if one.server is not None}
        self.names = tool_names(scenarios)
        self.used = named_tools(scenarios)
        self._entries: dict[tuple[str, str, McpPlace], list[_Found]] = {}
        self._changes: list[tuple[McpTool, ...]] = []
        self._changing: set[str] = set()
        self._losing: set[str] = set()
        for scenario in scenarios:
            own = scenario.mcp if scenario.server is None else scenario.server.calls
            for number, entry in enumerate(own):
                found = _Found(scenario.name, number, entry)
                key = entry.server, entry.tool, entry.at
                self._entries.setdefault(key, []).append(found)
                for tools in (answer.tools for answer in entry.every_answer):
                    if tools is not None:
                        self._changes.append(tools)
                        self._changing.add(entry.server)
                faults = [*entry.fault, *(f for one in entry.attempts for f in one.fault)]
                if any(fault.name == "session-lost" for fault in faults):
                    self._losing.add(entry.server)

    def answer(
        self, name: str, body: bytes, headers: Mapping[str, str], count: Count, find_open: FindOpen
    ) -> McpReply:
        """The answer to a POST to the server of a name."""
        server = self.servers.get(name)
        if server is None:
            hint = did_you_mean(name, self.servers, f"there are: {', '.join(self.servers)}")
            problem = f"there is no MCP server {name!r}; {hint}"
            last = error_of(None, RpcProblem(INVALID_REQUEST, problem))
            operation = Operation(name, "")
            return McpReply(operation, 404, last=last, outcome="unmatched", problem=problem)
        operation, id = Operation(name, ""), None
        try:
            message = read_message(body)
            id = message.id
            operation = operation_of(name, message, headers)
            return self._answer(server, message, operation, headers, count, find_open)
        except RpcProblem as problem:
            outcome = "played" if problem.code in _EXPECTED else "invalid"
            last = error_of(id, problem)
            return McpReply(
                operation, problem.status, last=last, outcome=outcome, problem=problem.message
            )

    def _answer(
        self,
        server: McpServer,
        message: RpcMessage,
        operation: Operation,
        headers: Mapping[str, str],
        count: Count,
        find_open: FindOpen,
    ) -> McpReply:
        if message.id is None or not message.method:
            return McpReply(operation, 202)
        revision = operation.revision
        if revision and message.method != "initialize" and revision not in server.revisions:
            if message.method == "server/discover" and revision == STATELESS:
                raise RpcProblem(NO_METHOD, "Method not found")
            raise _version_error(server, revision)
        if revision == STATELESS:
            check_headers(message, headers)
        match message.method:
            case "initialize":
                reply = self._initialize(server, message, operation, count)
            case "server/discover":
                reply = McpReply(operation, last=result_of(message.id, self._discovery(server)))
            case "tools/list":
                listed = {"tools": list(map(listed_tool, self.tools(server, count)))}
                if revision == STATELESS:
                    listed |= _UNCACHED
                reply = McpReply(operation, last=result_message(message, listed, revision))
            case "tools/call":
                reply = self._call(server, message, operation, count, find_open)
                # A program has no stream that ends, and nothing asks for the rest.
                return replace(reply, event_id="") if STDIO_HEADER in headers else reply
            case "ping":
                return McpReply(operation, last=result_message(message, {}, revision))
            case _:
                raise RpcProblem(NO_METHOD, f"Method not found: {message.method}")
        return self._strike(server, message, reply, count)

    def _initialize(
        self, server: McpServer, message: RpcMessage, operation: Operation, count: Count
    ) -> McpReply:
        spoken = [one for one in server.revisions if one != STATELESS]
        if not spoken:
            raise _version_error(server, operation.revision)
        revision = operation.revision if operation.revision in spoken else spoken[0]
        tools = {"listChanged": True} if server.name in self._changing else {}
        result = {
            "protocolVersion": revision,
            "capabilities": {"tools": tools},
            "serverInfo": _info(server),
            **_instructions(server),
        }
        headers: tuple[tuple[str, str], ...] = ()
        if server.name in self._losing:
            number = count(f"mcp sessions {server.name}", 1)
            headers = ((SESSION_HEADER, derive("mcp session", server.name, number)),)
        operation = operation._replace(revision=revision)
        return McpReply(operation, headers=headers, last=result_of(message.id, result))

    def _discovery(self, server: McpServer) -> Json:
        return {
            "resultType": "complete",
            "supportedVersions": list(server.revisions),
            "capabilities": {"tools": {}},
            **_instructions(server),
            **_UNCACHED,
            "_meta": {f"{META}serverInfo": _info(server)},
        }

    def tools(self, server: McpServer, count: Count) -> tuple[McpTool, ...]:
        """The tools of a server now: those of the last answer that changed them."""
        if server.name not in self._changing:
            return server.tools
        number = count(f"mcp tools {server.name}", 0)
        return self._changes[number - 1] if number else server.tools

    # Faults of lists and connections

    def _strike(
        self, server: McpServer, message: RpcMessage, reply: McpReply, count: Count
    ) -> McpReply:
        place: McpPlace = "list" if message.method == "tools/list" else "connect"
        entries = self._entries.get((server.name, "", place), [])
        if not entries:
            return reply
        found = max(entries, key=_rank)
        number, entry, _ = _try(found, count)
        noted = reply.operation._replace(
            scenario=found.scenario, entry=found.number, fails=bool(entry.http or entry.fault)
        )
        return with_failure(replace(reply, operation=noted, after=entry.ttft), entry, number)

    # Calls

    def _call(
        self,
        server: McpServer,
        message: RpcMessage,
        operation: Operation,
        count: Count,
        find_open: FindOpen,
    ) -> McpReply:
        if not message.tool:
            raise RpcProblem(INVALID_PARAMS, "params.name must be the name of a tool")
        sent = message.params.get("arguments")
        if sent is not None and not isinstance(sent, dict):
            raise RpcProblem(INVALID_PARAMS, "params.arguments must be an object")
        found = self._find(server, message, find_open)
        if isinstance(found, str):
            result = {"content": [text_block(found)], "isError": True}
            last = result_message(message, result, operation.revision)
            return McpReply(operation, last=last, outcome="unmatched", problem=found)
        number, entry, other = _try(found, count)
        answers = entry.answers
        numbers = _answer_numbers(answers, operation.revision)
        index = numbers[min(number, len(numbers) - 1)] if numbers else -1
        answer = answers[index] if numbers else McpAnswer()
        if other is not None:
            index, answer = entry.every_answer.index(other), other
        operation = operation._replace(
            scenario=found.scenario,
            entry=found.number,
            answer=index,
            fails=bool(entry.http or entry.fault),
        )
        if answer.tools is not None:
            key, changed = f"mcp tools {server.name}", self._changes.index(answer.tools) + 1
            count(key, changed - count(key, 0))
        reply = make_reply(message, operation, answer, entry)
        return with_failure(replace(reply, after=entry.ttft), entry, number)

    def resume(self, name: str, headers: Mapping[str, str]) -> McpReply | None:
        """The rest of a stream that a GET asks for; None where it asks for none of ours."""
        place = place_in(headers.get(RESUME_HEADER, ""))
        if place is None:
            return None
        scenario, number, index, id = place
        entries = (found for all_ in self._entries.values() for found in all_)
        for found in entries:
            known = (found.scenario, found.number) == (scenario, number)
            answers = found.entry.every_answer
            if known and found.entry.server == name and index < len(answers):
                operation = Operation(name, "GET", found.entry.tool, scenario, number, index)
                last = result_of(id, result(answers[index]))
                return McpReply(operation, messages=(), last=last, event_id="resumed")
        return None

    def _find(self, server: McpServer, message: RpcMessage, find_open: FindOpen) -> _Found | str:
        """The entry that answers a call, or why none does."""
        known = self._entries.get((server.name, message.tool, "call"), [])
        arguments = message.arguments
        fitting = [found for found in known if _mismatch(found, arguments) is None]
        if not fitting:
            return self._explain(server, message, known)
        best = max(map(_rank, fitting))
        equal = [found for found in fitting if _rank(found) == best]
        if len(equal) > 1:
            open_in = find_open(
                [found.scenario for found in equal], f"{server.name}.{message.tool}", arguments
            )
            equal = [found for found in equal if found.scenario in open_in] or equal
        if len(equal) > 1:
            names = ", ".join(found.scenario for found in equal)
            return (
                f"Entries of several scenarios answer {_display(server, message)} equally well: "
                f"{names}. Give one of them a further condition."
            )
        return equal[0]

    def _explain(self, server: McpServer, message: RpcMessage, known: Sequence[_Found]) -> str:
        is_listed = any(tool.name == message.tool for tool in server.tools) or any(
            tool.name == message.tool for tools in self._changes for tool in tools
        )
        if not is_listed:
            return f"Unknown tool: {message.tool}"
        if not known:
            return (
                f"Nothing answers {_display(server, message)}: {message.tool} has no entry in "
                f"`calls` of {server.name}, and none in `mcp` of a scenario."
            )

        def nearness(found: _Found) -> tuple[int, int]:
            judged = _conditions(found, message.arguments)
            met = sum(condition.met for condition in judged)
            return met - len(judged), met

        nearest = max(known, key=nearness)
        problem = _mismatch(nearest, message.arguments)
        where = f"entry {nearest.number + 1} of {nearest.scenario}"
        return f"Nothing answers {_display(server, message)}. Nearest: {where}: {problem}."


_UNCACHED: Json = {"ttlMs": 0, "cacheScope": "private"}
"""Fields of the stateless revision: what is asked for again is answered again."""

_EXPECTED = (NO_METHOD, UNSUPPORTED_VERSION)
"""The errors by which clients find out what a server can do: no mistakes."""


def _version_error(server: McpServer, revision: str) -> RpcProblem:
    data = {"supported": list(server.revisions), "requested": revision}
    return RpcProblem(UNSUPPORTED_VERSION, "Unsupported protocol version", 400, data)


def _rank(found: _Found) -> tuple[bool, int]:
    return not found.scenario.startswith("mcp:"), found.entry.conditions


def _conditions(found: _Found, arguments: Mapping[str, Any]) -> list[JudgedCondition]:
    match = found.entry.match
    return [*judged_body("match.arguments", match.arguments, arguments, match.ignore)]


def _mismatch(found: _Found, arguments: Mapping[str, Any]) -> str | None:
    match, problem = found.entry.match, first_problem(_conditions(found, arguments))
    if problem is not None:
        return problem.replace("match.arguments: body.", "arguments.")
    if not match.exact:
        return None
    expected, sent = (normal_value(match.ignore, one) for one in (match.arguments or {}, arguments))
    return check_no_more("arguments", expected, sent)


def _display(server: McpServer, message: RpcMessage) -> str:
    return f"{server.name}.{message.tool}({compact(message.arguments)})"


def _try(found: _Found, count: Count) -> tuple[int, McpEntry, McpAnswer | None]:
    """The number of the answer that a request gets, from 0, and the entry as it is for this try;
    and another answer, where an earlier try has one."""
    entry, tries = found.entry, found.entry.attempts
    if any(fault.name == "session-lost" for fault in entry.fault):  # it is lost once
        tries = (McpTry(fault=entry.fault), *tries)
        entry = replace(entry, fault=())
    before = count(f"mcp {found.scenario} {found.number}", 1)
    if before >= len(tries):
        return before - len(tries), entry, None
    tried = tries[before]
    return 0, replace(entry, http=tried.http, fault=tried.fault), tried.answer


def _answer_numbers(answers: Sequence[McpAnswer], revision: str) -> list[int]:
    """The numbers of the answers that a revision can express: only one can ask for another try."""
    asking = revision == STATELESS
    numbers = [n for n, answer in enumerate(answers) if asking or answer.ask is None]
    return numbers or list(range(len(answers)))


def _info(server: McpServer) -> Json:
    return {"name": server.name, "version": "1.0.0"}


def _instructions(server: McpServer) -> Json:
    return {"instructions": server.instructions} if server.instructions else {}
