"""The operations of MCP servers in a journal, and the calls of the model that they belong to.

An operation is a call of a tool with its tries: clients repeat a request whose answer failed. A
streamed call is known by where it stands in the conversation, as its turn may have been sent to
several requests. They are paired one to one: by the id of the model's call, where the client names
it; by equal arguments between the stream and the result; and what is left, by the tool.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from mockllm.checking.conversations.round_trips import Step, StreamedCall
from mockllm.checking.conversations.session_history import JudgedSession
from mockllm.core.errors import RequestError
from mockllm.core.jsontext import compact, parse, parse_object
from mockllm.core.request import Message
from mockllm.play.mcp.rpc import Operation, mapping
from mockllm.play.mcp.tool_names import tool_names
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.scenario.mcp_model import McpAnswer, McpServer, McpTool
from mockllm.scenario.model import Scenario


@dataclass(slots=True, eq=False)
class ToolRun:
    """An operation: a call of a tool of a server, with its tries.

    Args:
        key: equal for operations of one tool with equal arguments.
        waiting: the calls with its key in whose windows it is.
    """

    tool: str
    arguments: Mapping[str, Any]
    tries: list[Exchange]
    operations: list[Operation]
    key: str = ""
    waiting: list[ModelCall] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.key = _key(self.tool, self.arguments)

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
        key: equal for calls of one tool with equal arguments.
        until: when its window is closed for good.
    """

    call: StreamedCall
    tool: str
    arguments: Mapping[str, Any]
    steps: list[Step] = field(default_factory=list)
    results: list[tuple[Step, Message]] = field(default_factory=list)
    continued: list[float] = field(default_factory=list)
    runs: list[ToolRun] = field(default_factory=list)
    changed: ToolRun | None = None
    key: str = ""
    until: float = inf

    def __post_init__(self) -> None:
        self.key = _key(self.tool, self.arguments)

    @property
    def since(self) -> float:
        """When the first request arrived that was answered with it."""
        return self.steps[0].exchange.received.clock

    def takes(self, run: ToolRun) -> bool:
        """Whether an operation is in its window: after a request that was answered with the call,
        and before the one that brings the result. Of several equal conversations any may wait."""
        at = run.first.received.clock
        if not self.since <= at <= self.until:
            return False
        begun = [s.exchange.received.clock for s in self.steps if s.exchange.received.clock <= at]
        ended = [clock for clock in self.continued if clock <= at]
        return len(begun) > len(ended) or not any(clock > begun[-1] for clock in ended)


class ToolTraffic:
    """Calls and operations of one session.

    Args:
        unasked: the operations that belong to no call.
        equal: the calls by their keys.
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
        self.equal = _groups(self.calls, lambda call: call.key)
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
        latest: dict[tuple[str, str], ToolRun] = {}
        failed: dict[tuple[str, str], list[ToolRun]] = {}
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
                # A further try: the same call, after an answer that failed, or with the state
                # that an answer asked for.
                same = run.key, run.call_id
                waiting = failed.setdefault(same, [])
                before = latest.get(same) if "requestState" in params else None
                if before is None and waiting:
                    before = waiting.pop()
                if before is None:
                    runs.append(run)
                else:
                    before.tries.append(exchange)
                    before.operations.append(operation)
                    run = before
                latest[same] = run
                if run.failed:
                    waiting.append(run)
                answer = self.answer(run)
                if answer is not None and answer.tools is not None:
                    changed[server.name] = answer.tools
        return runs

    def _calls(self, record: JudgedSession) -> list[ModelCall]:
        calls: dict[tuple[str, int, str], ModelCall] = {}
        located: dict[tuple[str, int], list[ModelCall]] = {}
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
                    located.setdefault(key[:2], []).append(calls[key])
                calls[key].steps.append(step)
            for trip in step.round_trips:
                stored = trip.played[-1:] if trip.stored else []
                at = stored[0].location if stored else trip.location
                for made in trip.calls:
                    known = calls.get((step.request.api, at, made.id)) or next(
                        (
                            one
                            for one in located.get((step.request.api, at), ())
                            if (not made.id or one.call.any_id) and one.call.name == made.name
                        ),
                        None,
                    )
                    if known is not None and made.results:
                        known.results.append((step, made.results[0]))
                        if trip is step.last:
                            known.continued.append(step.exchange.received.clock)
        for one in calls.values():
            ended, begun = max(one.continued, default=0), one.steps[-1].exchange.received.clock
            if ended > begun and len(one.continued) >= len(one.steps):
                one.until = ended
        return list(calls.values())

    def _pair(self) -> None:
        def belongs(run: ToolRun, calls: list[ModelCall]) -> bool:
            at = run.first.received.clock

            def order(call: ModelCall) -> tuple[bool, bool, float]:
                # Of several, the call whose result comes first: others may wait for ever, where a
                # client began its conversation anew.
                end = min((clock for clock in call.continued if clock > at), default=inf)
                return len(call.runs) >= len(call.steps), call.key != run.key, end

            found = min(calls, key=order, default=None)
            if found is not None:
                found.runs.append(run)
            return found is not None

        named = _groups(self.calls, lambda call: (call.tool, call.call.id))
        left = [
            run
            for run, calls in _waiting(self.runs, named, lambda run: (run.tool, run.call_id))
            if not (run.call_id and belongs(run, calls))
        ]
        for run, calls in _waiting(self.runs, self.equal, lambda run: run.key):
            run.waiting = calls
        for run in tuple(left):
            free = [c for c in run.waiting if len(c.runs) < len(c.steps)]
            if belongs(run, [c for c in free if run.call_id in ("", c.call.id)]):
                left.remove(run)
        for run in left:
            for call in self.calls:
                if call.changed is not None or call.tool != run.tool:
                    continue
                if not all(known.failed for known in call.runs):
                    continue
                if call.results and call.takes(run):
                    call.changed = run
                    break
            else:
                self.unasked.append(run)


def traffic_of(record: JudgedSession) -> ToolTraffic:
    """The calls and operations of a session, which are paired once for all that is judged."""
    if not isinstance(record.traffic, ToolTraffic):
        record.traffic = ToolTraffic(record)
    return record.traffic


def _groups(
    calls: Iterable[ModelCall], group: Callable[[ModelCall], Hashable]
) -> dict[Hashable, list[ModelCall]]:
    """The calls by groups, each in the order of time."""
    found: dict[Hashable, list[ModelCall]] = {}
    for call in sorted(calls, key=lambda call: call.since):
        found.setdefault(group(call), []).append(call)
    return found


def _waiting(
    runs: Iterable[ToolRun],
    grouped: Mapping[Hashable, list[ModelCall]],
    group: Callable[[ToolRun], Hashable],
) -> Iterator[tuple[ToolRun, list[ModelCall]]]:
    """The operations in the order of time, with the calls of their groups in whose windows they
    are. Calls whose windows are closed are looked at no more: there may be thousands."""
    coming = {key: deque(calls) for key, calls in grouped.items()}
    open_: dict[Hashable, list[ModelCall]] = {}
    for run in sorted(runs, key=lambda run: run.first.received.clock):
        at, key = run.first.received.clock, group(run)
        calls = [call for call in open_.get(key, ()) if call.until >= at]
        begins = coming.get(key, deque())
        while begins and begins[0].since <= at:
            calls.append(begins.popleft())
        open_[key] = calls
        yield run, [call for call in calls if call.takes(run)]


def _key(tool: str, arguments: Mapping[str, Any]) -> str:
    """Equal for calls of one tool with equal arguments: JSON values, of which 1 is 1.0 but not
    true; some clients leave out members that are null."""
    given = {key: value for key, value in arguments.items() if value is not None}
    return f"{tool} {json_key(given)}"


def json_key(value: Any) -> str:
    """Equal for equal JSON values."""
    try:
        return json.dumps(_plain(value), sort_keys=True)
    except RecursionError:
        return compact(value)


def _plain(value: Any) -> Any:
    """A JSON value in which whole numbers are integers."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return list(map(_plain, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _arguments(text: str) -> Mapping[str, Any]:
    try:
        return mapping(parse(text or "{}"))
    except ValueError:
        return {}


def scenarios_played(record: JudgedSession) -> list[Scenario]:
    """The scenarios of which a turn was played in the session."""
    names = {step.exchange.scenario for step in record.history.steps if step.turn is not None}
    return [scenario for name, scenario in record.history.scenarios.items() if name in names]
