"""The three verdicts over model and tools: whether a call reached its tool, whether the result came
back to the model, and whether the tools offered are the tools there are. Pure."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

from mockllm.checking.conversations.mcp.operations import (
    ModelCall,
    ToolRun,
    ToolTraffic,
    json_key,
    scenarios_played,
    traffic_of,
)
from mockllm.checking.conversations.retries import MOST_TRIES
from mockllm.checking.conversations.round_trips import Step
from mockllm.checking.conversations.session_history import (
    JudgedSession,
    Violations,
    violation,
)
from mockllm.core.jsontext import compact, parse
from mockllm.core.request import Message, OfferedTool, Parameters
from mockllm.play.mcp.rpc import mapping
from mockllm.play.replay.sessions.shortened_bodies import is_shortened
from mockllm.scenario.mcp_model import McpAnswer, McpServer, McpTool, server_and_tool
from mockllm.scenario.reading.values import excerpt

_LONG = 4096
"""A longer text, in characters, may be shortened on purpose: clients write it to files."""

_LEVELS = 3
"""The depth to which JSON texts are opened that stand in texts."""


def tools_judged(record: JudgedSession) -> Violations:
    """All verdicts over tools of MCP servers."""
    if not any(scenario.server is not None for scenario in record.history.scenarios.values()):
        return
    traffic = traffic_of(record)
    for call in traffic.calls:
        yield from _call_reached(call)
        yield from _result_returned(call, traffic)
    yield from _calls_unasked(traffic)
    yield from _tries_right(traffic)
    yield from _tools_offered(record, traffic)


# call-reached-tool


def _call_reached(call: ModelCall) -> Violations:
    shown = f"{call.tool}({compact(call.arguments)})"
    # An operation may name the call and have other arguments.
    changed = call.changed or next((run for run in call.runs if run.key != call.key), None)
    if changed is not None:
        sent = compact(changed.arguments)
        yield violation("call-changed", changed.first, call=shown, sent=sent)
    elif call.results and not call.runs:
        step, result = call.results[0]
        if result.error or call.call.refused:
            if result.error:
                yield violation("call-refused", step, call=shown)
        else:
            yield violation("call-lost-before-tool", step, call=shown, id=call.call.id)
        return
    if call.call.refused and call.runs:
        yield violation("call-of-refused", call.runs[0].first, call=shown, id=call.call.id)
    for run in call.runs[len(call.steps) :]:
        yield violation("call-made-again", run.first, call=call.tool, id=call.call.id)
    if call.runs and not call.results and all(_has_left(step, call) for step in call.steps):
        number = call.steps[-1].number
        yield violation("call-after-leaving", call.runs[0].first, call=call.tool, number=number)


def _has_left(step: Step, call: ModelCall) -> bool:
    """Whether the client had left the stream with a call before the operation began."""
    sent, received = step.exchange.sent, step.exchange.received
    gone = sent.client_gone and sent.ended is None
    return gone and received.clock + sent.duration < call.runs[0].first.received.clock


def _calls_unasked(traffic: ToolTraffic) -> Violations:
    for run in traffic.unasked:
        again = next(
            (
                call
                for call in traffic.equal.get(run.key, ())
                if call.runs and call.steps[0].exchange.received.clock <= run.first.received.clock
            ),
            None,
        )
        if again is not None and not (run.call_id and run.call_id != again.call.id):
            yield violation("call-made-again", run.first, call=run.tool, id=again.call.id)
        else:
            shown = f"{run.tool}({compact(run.arguments)})"
            yield violation("call-without-model", run.first, call=shown)


# retry-bounded, retry-same


def _tries_right(traffic: ToolTraffic) -> Violations:
    for run in traffic.runs:
        # Each answer with the call may be of another conversation, whose tries are its own.
        if run.failures < MOST_TRIES:
            continue
        asked = sum(len(call.steps) for call in traffic.equal.get(run.key, ()))
        if asked and run.failures >= MOST_TRIES * asked:
            yield violation("tool-tried-on", run.last, call=run.tool, count=run.failures + 1)
    for call in traffic.calls:
        if call.runs and call.changed is not None:
            last, again = call.runs[-1].last, call.changed
            if last.number < again.first.number:
                sent = compact(again.arguments)
                values = {"call": call.tool, "number": last.number, "sent": sent}
                yield violation("tool-retry-altered", again.first, **values)


# result-returned


def _result_returned(call: ModelCall, traffic: ToolTraffic) -> Violations:
    if not call.results or not call.runs:
        return
    step, result = call.results[0]
    if is_shortened(result.text) or any(_came_before(step, run) for run in call.runs):
        return
    answers = [(run, traffic.answer(run)) for run in call.runs]
    cancelled = {_cancellation(run, traffic) for run in call.runs}
    if "before" in cancelled:
        for _, answer in answers:
            if answer is not None and answer.error is None and _has_texts(answer, result):
                yield violation("cancelled-result", step, call=call.tool, id=call.call.id)
        return
    known = [answer for run, answer in answers if answer is not None and not run.failed]
    known = [one for one in known if one.rpc_error is None and one.raw is None and one.ask is None]
    if len(known) < len(answers) or not known:
        return
    if not any(_is_returned(answer, result) for answer in known):
        if "after" not in cancelled:
            yield from _missing_result(call, known[-1], step, result, traffic)
    elif known[-1].error is not None and not _is_marked(result) and _can_mark(step):
        yield violation("failure-without-mark", step, id=call.call.id)
    yield from _media_left_out(known[-1], step, call, result)


def _came_before(step: Step, run: ToolRun) -> bool:
    """Whether a result came before the tool's answer: the client did not wait for it any more, as
    after its timeout, of which some say nothing."""
    sent = run.last.sent
    return sent.ended is not None and step.exchange.received.clock < (
        run.last.received.clock + sent.ended
    )


def _cancellation(run: ToolRun, traffic: ToolTraffic) -> Literal["", "before", "after"]:
    """Whether the client cancelled an operation before it had the whole answer, or after.

    A client that says so after may have read the answer or not; opencode says so of each call.
    """
    if run.cancelled:
        return "before"
    server, _ = server_and_tool(run.tool) or ("", "")
    try:
        id = json.loads(run.last.body).get("id")
    except (ValueError, AttributeError):
        return ""
    begun, sent = run.last.received.clock, run.last.sent
    said = [at for at in traffic.cancelled.get((server, id), ()) if at >= begun]
    if not said:
        return ""
    return "after" if sent.complete and min(said) >= begun + sent.duration else "before"


def _is_marked(result: Message) -> bool:
    """Whether a result is one of a failure: by the API, or as the server's whole result says it."""
    if result.error:
        return True
    return any(mapping(value).get("isError") is True for value in _values(result.text))


def _can_mark(step: Step) -> bool:
    """Whether the API has a place for a mark of failure in a result."""
    plain = Message("tool", "x", call_id="1", name="t")
    written = [
        step.protocol.client.write(
            replace(step.request, messages=(message,), body={}, server_tools=()), Parameters()
        )
        for message in (plain, replace(plain, error=True))
    ]
    return bool(written[0] != written[1])


def _missing_result(
    call: ModelCall, answer: McpAnswer, step: Step, result: Message, traffic: ToolTraffic
) -> Violations:
    others = (
        other
        for other in traffic.calls
        if other is not call and other.runs and other.steps[0] in call.steps
    )
    for other in others:
        foreign = traffic.answer(other.runs[-1])
        if foreign is not None and _is_substantial(foreign) and _is_returned(foreign, result):
            ids = {"id": call.call.id, "other": other.call.id}
            yield violation("result-of-other-call", step, **ids)
            return
    text = next(iter(answer.texts), compact(answer.json))
    if len(text) > _LONG:
        yield violation("result-shortened", step, id=call.call.id, size=len(text))
    elif answer.error is not None:
        yield violation("error-not-returned", step, id=call.call.id, text=excerpt(text))
    else:
        yield violation("result-not-returned", step, id=call.call.id, text=excerpt(text))


def _is_substantial(answer: McpAnswer) -> bool:
    return any(answer.texts) or answer.json is not None


def _is_returned(answer: McpAnswer, result: Message) -> bool:
    """Whether a result has the texts of an answer, or its structured content."""
    if _has_texts(answer, result):
        return True
    if answer.json is None:
        return False
    wanted = json_key(answer.json)
    values = (value for value in _values(result.text) if isinstance(value, dict))
    return any(json_key(value) == wanted for value in values)


def _has_texts(answer: McpAnswer, result: Message) -> bool:
    if not answer.texts:
        return answer.json is None
    strings = [result.text, *_strings(result.text)]
    return all(any(_is_in(text, string) for string in strings) for text in answer.texts)


def _is_in(text: str, string: str) -> bool:
    escaped = (json.dumps(text, ensure_ascii=ascii)[1:-1] for ascii in (False, True))
    # Clients trim, and join blocks by line breaks.
    return text.strip() in string or any(one in string for one in escaped)


def _values(text: str, level: int = 0) -> Iterator[Any]:
    """The JSON values in a text, those in its strings as well. Clients put text around them."""
    starts = [0, *(at.start() for at in re.finditer(r"^\s*[\[{]", text, re.MULTILINE))][:20]
    for start in dict.fromkeys(starts):
        try:
            value = parse(text[start:])
        except ValueError:
            continue
        yield from _inner(value, level)


def _inner(value: Any, level: int) -> Iterator[Any]:
    yield value
    if isinstance(value, dict | list):
        inner: Iterable[Any] = value.values() if isinstance(value, dict) else value
        for one in inner:
            yield from _inner(one, level)
    elif isinstance(value, str) and level < _LEVELS:
        yield from _values(value, level + 1)


def _strings(text: str) -> Iterator[str]:
    return (value for value in _values(text) if isinstance(value, str))


def _media_left_out(answer: McpAnswer, step: Step, call: ModelCall, result: Message) -> Violations:
    body = step.exchange.body
    for kind, media in (("image", answer.image), ("audio", answer.audio)):
        if media is not None and b64encode(media.data)[:64] not in body:
            yield violation("media-left-out", step, kind=kind, id=call.call.id)
    resource = mapping(answer.resource).get("text")
    if isinstance(resource, str) and not any(
        _is_in(resource, text) for text in (result.text, *_strings(result.text))
    ):
        yield violation("media-left-out", step, kind="resource", id=call.call.id)
    uri = mapping(answer.link).get("uri")
    if isinstance(uri, str) and json.dumps(uri)[1:-1].encode() not in body:
        yield violation("media-left-out", step, kind="link", id=call.call.id)


# tools-offered


def _tools_offered(record: JudgedSession, traffic: ToolTraffic) -> Violations:
    played = scenarios_played(record)
    for scenario in played:
        steps = [s for s in record.history.steps if s.exchange.scenario == scenario.name]
        called = {name for full in scenario.calls_servers for name in [full.partition(".")[0]]}
        needed = {entry.server for entry in scenario.mcp} | called
        for name in sorted(needed & traffic.servers.keys()):
            listed = [one for one in traffic.lists if one[1] == name]
            if not listed:
                yield violation("server-not-listed", steps[-1], server=name)
                continue
            yield from _offered_of(name, steps, traffic, listed[0][0].received.clock)
    for step in record.history.steps:
        if step.request.tools and step.turn is not None:
            yield from _offers_right(step, traffic)


def _offered_of(name: str, steps: list[Step], traffic: ToolTraffic, since: float) -> Violations:
    """A server that was listed, and of which a model is offered no tool."""
    judged = [
        step
        for step in steps
        if step.request.tools
        and step.request.tool_choice != "none"
        and step.exchange.received.clock >= since
        and not _searches_tools(step)
    ]
    if judged and not any(_of_server(name, traffic.meanings(step)) for step in judged):
        yield violation("server-not-offered", judged[0], server=name)


def _of_server(name: str, meanings: dict[str, str]) -> dict[str, str]:
    return {n: full for n, full in meanings.items() if full.partition(".")[0] == name}


def _searches_tools(step: Step) -> bool:
    """Whether tools may be deferred: the model finds them by a search."""
    names = (tool.name for tool in step.request.tools)
    return any(re.search("tool_?search", name, re.IGNORECASE) for name in names)


def _offers_right(step: Step, traffic: ToolTraffic) -> Violations:
    at, meanings = step.exchange.received.clock, traffic.meanings(step)
    offered = {tool.name: tool for tool in step.request.tools}
    for server in traffic.servers.values():
        listed = [tools for exchange, name, tools in traffic.lists
                  if name == server.name and exchange.received.clock <= at]  # fmt: skip
        if not listed:
            continue
        newest = {f"{server.name}.{tool.name}": tool for tool in listed[-1]}
        own = _of_server(server.name, meanings)
        gone = [name for name, full in own.items() if full not in newest]
        gone += [name for name in offered if name not in meanings and _has_prefix(name, server)]
        for name in gone:
            if any(own.get(name) in _names(server, tools) for tools in listed[:-1]):
                yield violation("list-change-ignored", step, name=name, server=server.name)
            else:
                yield violation("tool-not-there", step, name=name, server=server.name)
        others = [tool for name, tool in offered.items() if name not in meanings]
        for name, full in own.items():
            if full in newest:
                yield from _schema_right(step, offered[name], newest[full], full, others)
        missing = sorted(newest.keys() - set(own.values()))
        if own and missing and not _searches_tools(step):
            yield violation("tools-filtered", step, missing=", ".join(missing))


def _names(server: McpServer, tools: Iterable[McpTool]) -> set[str]:
    return {f"{server.name}.{tool.name}" for tool in tools}


def _has_prefix(name: str, server: McpServer) -> bool:
    """Whether a name can only be that of a tool of a server."""
    return name.startswith((f"mcp__{server.name}__", f"mcp_{server.name}_"))


def _schema_right(
    step: Step, offered: OfferedTool, tool: McpTool, full: str, others: Iterable[OfferedTool]
) -> Violations:
    ours = mapping(tool.parameters)
    known = mapping(ours.get("properties"))
    sent = mapping(offered.parameters.get("properties"))
    required = offered.parameters.get("required")
    needed = {*required} if isinstance(required, list) else set()
    # Gemini CLI adds `wait_for_previous` to tools of servers and to some of its own.
    own = [mapping(other.parameters.get("properties")) for other in others]
    added = {name for name, schema in sent.items() if any(o.get(name) == schema for o in own)}
    named = {*needed, *sent} - (added - known.keys() - needed)
    invented = sorted(name for name in named - known.keys() if isinstance(name, str))
    # A list without properties takes any arguments; clients may add placeholders.
    if invented and known:
        yield violation("schema-invented", step, tool=full, names=", ".join(invented))
    elif known and (
        known.keys() - named
        or {*_required_names(ours)} - {*_required_names(offered.parameters)}
        or any(_types_differ(schema, sent.get(name)) for name, schema in known.items())
    ):
        yield violation("schema-changed", step, tool=full)


def _types_differ(ours: Any, sent: Any) -> bool:
    """Whether two schemas have different types; clients leave types out, or let null be one."""
    types = [mapping(schema).get("type") for schema in (ours, sent)]
    texts = [type_.lower() for type_ in types if isinstance(type_, str)]
    return len({*texts}) > 1


def _required_names(schema: Any) -> list[str]:
    value = mapping(schema).get("required")
    return value if isinstance(value, list) else []
