"""The operations of MCP servers in a journal, and the calls of the model that they belong to.

An operation is a call of a tool with its tries: clients repeat a request whose answer failed. A
streamed call is known by where it stands in the conversation, as its turn may have been sent to
several requests. They are paired one to one: by the id of the model's call, where the client names
it; by equal arguments between the stream and the result; and what is left, by the tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mockllm.checking.conversations.round_trips import Step, StreamedCall
from mockllm.checking.conversations.session_history import JudgedSession
from mockllm.core.errors import RequestError
from mockllm.core.jsontext import parse, parse_object
from mockllm.core.request import Message
from mockllm.play.mcp.rpc import Operation, mapping
from mockllm.play.mcp.tool_names import tool_names
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.scenario.mcp_model import McpAnswer, McpServer, McpTool
from mockllm.scenario.model import Scenario


@dataclass(slots=True, eq=False)
class ToolRun:
    """An operation: a call of a tool of a server, with its tries."""

    tool: str
    arguments: Mapping[str, Any]
    tries: list[Exchange]
    operations: list[Operation]

    @property
    def first(self) -> Exchange:
        return self.tries[0]

    @property
    def last(self) -> Exchange:
        return self.tries[-1]

    @property
    def call_id(self) -> str:
        return self.operations[0].call_id

    @property
    def failed(self) -> bool:
        """Whether its last answer was an HTTP error, or broke, or was to."""
        return _has_failed(self.last, self.operations[-1])

    @property
    def failures(self) -> int:
        """The number of its tries that failed and were followed by another one."""
        return sum(map(_has_failed, self.tries[:-1], self.operations[:-1]))

    @property
    def cancelled(self) -> bool:
        """Whether the client left before the answer."""
        return self.last.broken_off


def _has_failed(exchange: Exchange, operation: Operation) -> bool:
    sent = exchange.sent
    whole = sent.complete and not sent.fault and exchange.status < 400
    return operation.fails or not whole or exchange.broken_off


@dataclass(slots=True, eq=False)
class ModelCall:
    """A call of a tool of a server that the model made, wherever its turn was sent.

    Args:
        tool: `SERVER.TOOL`.
        steps: the requests that were answered with it.
        results: the requests that have its result, and the result.
        continued: when the requests arrived that bring it.
        runs: the operations that belong to it.
        changed: an operation of the same tool with other arguments.
    """

    call: StreamedCall
    tool: str
    arguments: Mapping[str, Any]
    steps: list[Step] = field(default_factory=list)
    results: list[tuple[Step, Message]] = field(default_factory=list)
    continued: list[float] = field(default_factory=list)
    runs: list[ToolRun] = field(default_factory=list)
    changed: ToolRun | None = None

    def takes(self, run: ToolRun) -> bool:
        """Whether an operation is in its window: after a request that was answered with the call,
        and before the one that brings the result. Of several equal conversations any may wait."""
        at = run.first.received.clock
        begun = [s.exchange.received.clock for s in self.steps if s.exchange.received.clock <= at]
        ended = [clock for clock in self.continued if clock <= at]
        if not begun:
            return False
        return len(begun) > len(ended) or not any(clock > begun[-1] for clock in ended)


class ToolTraffic:
    """Calls and operations of one session.

    Args:
        unasked: the operations that belong to no call.
        lists: the successful lists of tools, each with what it had.
    """

    def __init__(self, record: JudgedSession) -> None:
        scenarios = record.history.scenarios
        self.scenarios = scenarios
        self.servers: dict[str, McpServer] = {
            scenario.server.name: scenario.server
            for scenario in scenarios.values()
            if scenario.server is not None
        }
        self.names = tool_names(scenarios.values())
        self.lists: list[tuple[Exchange, str, tuple[McpTool, ...]]] = []
        self.cancelled: dict[tuple[str, object], list[float]] = {}
        self.runs = self._read(record) if self.servers else []
        self.calls = self._calls(record) if self.servers else []
        self.unasked: list[ToolRun] = []
        self._pair()

    def meanings(self, step: Step) -> dict[str, str]:
        """By the names in a request, `SERVER.TOOL`."""
        own = {full: name for full, name in step.request.server_tools if name}
        # All names of a client have one prefix, so they are read as the client wrote them.
        offered = [replace(tool, name=own.get(tool.name, tool.name)) for tool in step.request.tools]
        ours = {name: full for full, name in own.items()}
        return {ours.get(name, name): full for name, full in self.names.meanings(offered).items()}

    def answer(self, run: ToolRun) -> McpAnswer | None:
        """The answer of the last try; None where it is not of an entry."""
        operation = run.operations[-1]
        scenario = self.scenarios.get(operation.scenario)
        if scenario is None or operation.answer < 0:
            return None
        entries = scenario.mcp if scenario.server is None else scenario.server.calls
        if operation.entry >= len(entries):
            return None  # the scenario has been changed since
        answers = entries[operation.entry].every_answer
        return answers[operation.answer] if operation.answer < len(answers) else None

    def _read(self, record: JudgedSession) -> list[ToolRun]:
        runs: list[ToolRun] = []
        changed: dict[str, tuple[McpTool, ...]] = {}
        for exchange in record.journal:
            if exchange.played.mcp is None:
                continue
            operation = Operation(*exchange.played.mcp)
            server = self.servers.get(operation.server)
            if server is None:
                continue
            try:
                body = parse_object(exchange.body)
            except RequestError:
                body = {}
            params = mapping(body.get("params"))
            if operation.method == "notifications/cancelled":
                key = operation.server, params.get("requestId")
                self.cancelled.setdefault(key, []).append(exchange.received.clock)
            elif operation.method == "tools/list" and exchange.arrived:
                tools = changed.get(server.name, server.tools)
                self.lists.append((exchange, server.name, tools))
            elif operation.method == "tools/call":
                tool = f"{operation.server}.{operation.tool}"
                run = ToolRun(tool, mapping(params.get("arguments")), [exchange], [operation])
                before = next((r for r in reversed(runs) if _is_next_try(r, run, params)), None)
                if before is None:
                    runs.append(run)
                else:
                    before.tries.append(exchange)
                    before.operations.append(operation)
                answer = self.answer(before or run)
                if answer is not None and answer.tools is not None:
                    changed[server.name] = answer.tools
        return runs

    def _calls(self, record: JudgedSession) -> list[ModelCall]:
        calls: dict[tuple[str, int, str], ModelCall] = {}
        for step in record.history.steps:
            if not step.calls and not step.round_trips:
                continue
            meanings = self.meanings(step) if step.calls else {}
            for call in step.calls:
                tool = meanings.get(call.name)
                if tool is None or call.malformed:
                    continue
                key = step.request.api, step.location, call.id
                if key not in calls:
                    calls[key] = ModelCall(call, tool, _arguments(call.arguments))
                calls[key].steps.append(step)
            for trip in step.round_trips:
                for made in trip.calls:
                    known = calls.get((step.request.api, trip.location, made.id)) or next(
                        (
                            one
                            for (api, location, _), one in calls.items()
                            if (api, location) == (step.request.api, trip.location)
                            and (not made.id or one.call.any_id)
                            and one.call.name == made.name
                        ),
                        None,
                    )
                    if known is not None and made.results:
                        known.results.append((step, made.results[0]))
                        if trip is step.last:
                            known.continued.append(step.exchange.received.clock)
        return list(calls.values())

    def _pair(self) -> None:
        left = list(self.runs)

        def take(fits: Any, *, once: bool) -> None:
            for run in tuple(left):
                for call in self.calls:
                    full = len(call.runs) >= len(call.steps) if once else False
                    if call.tool == run.tool and not full and fits(call, run):
                        call.runs.append(run)
                        left.remove(run)
                        break

        def is_named(call: ModelCall, run: ToolRun) -> bool:
            return bool(run.call_id) and run.call_id == call.call.id and call.takes(run)

        def is_equal(call: ModelCall, run: ToolRun) -> bool:
            other = bool(run.call_id) and run.call_id != call.call.id
            return not other and same(call.arguments, run.arguments) and call.takes(run)

        take(is_named, once=False)
        take(is_equal, once=True)
        for run in tuple(left):
            for call in self.calls:
                if call.changed is not None or call.tool != run.tool:
                    continue
                if not all(known.failed for known in call.runs):
                    continue
                if call.results and call.takes(run):
                    call.changed = run
                    left.remove(run)
                    break
        self.unasked = left


def _is_next_try(before: ToolRun, run: ToolRun, params: Mapping[str, Any]) -> bool:
    """Whether a request is a further try of an operation: the same call, after an answer that
    failed, or with the state that an answer asked for."""
    if before.tool != run.tool or before.call_id != run.call_id:
        return False
    if not same(before.arguments, run.arguments):
        return False
    return before.failed or "requestState" in params


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether arguments are equal; some clients leave out those that are null."""

    def without_null(value: Mapping[str, Any]) -> dict[str, Any]:
        return {key: inner for key, inner in value.items() if inner is not None}

    return without_null(one) == without_null(other)


def _arguments(text: str) -> Mapping[str, Any]:
    try:
        return mapping(parse(text or "{}"))
    except ValueError:
        return {}


def scenarios_played(record: JudgedSession) -> list[Scenario]:
    """The scenarios of which a turn was played in the session."""
    names = {step.exchange.scenario for step in record.history.steps if step.turn is not None}
    return [scenario for name, scenario in record.history.scenarios.items() if name in names]
