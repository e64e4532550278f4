"""The readers of documents `mcp: NAME`, and of `mcp` in a scenario, and the rules for both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mockllm.core.jsontext import parse
from mockllm.scenario import model as m
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.mcp_model import (
    MCP_FAULTS,
    REVISIONS,
    McpAnswer,
    McpAsk,
    McpEntry,
    McpMatch,
    McpServer,
    McpTool,
    McpTry,
    RpcError,
    server_and_tool,
)
from mockllm.scenario.part_model import ToolPart, members
from mockllm.scenario.reading.conditions import ignored
from mockllm.scenario.reading.faults import faults
from mockllm.scenario.reading.media import audio, image
from mockllm.scenario.reading.nodes import KeyPath, Mapping, Node, Scalar
from mockllm.scenario.reading.nodes import Sequence as Items
from mockllm.scenario.reading.tables import table
from mockllm.scenario.reading.values import (
    Findings,
    Reader,
    choice,
    filled_entries,
    integer,
    is_null,
    json_value,
    line,
    listing,
    readable_fields,
    record,
    text,
)
from mockllm.scenario.schema_validation import schema_flaws, violations

_TOOL_NAME = "a tool name: 1 to 128 characters without spaces"
_tool = record(McpTool, table("mcp_tool", name=_TOOL_NAME))
_tools = listing(lambda node, findings: _tool(node, findings) or McpTool(""), "tools")
_progress = listing(
    lambda node, findings: (_object if isinstance(node, Mapping) else line)(node, findings),
    "texts, or mappings of a notification",
)
_text_list = listing(text, "texts")


def _texts(node: Node, findings: Findings) -> tuple[str, ...] | None:
    if isinstance(node, Items):
        texts: tuple[str, ...] | None = _text_list(node, findings)
        return texts
    value = text(node, findings)
    return None if value is None else (value,)


def _object(node: Node, findings: Findings) -> Any:
    if isinstance(node, Mapping):
        return json_value(node, findings)
    findings.must_be(node, "a mapping")
    return None


def _object_with(*needed: str) -> Reader:
    def read(node: Node, findings: Findings) -> Any:
        if isinstance(node, Mapping):
            for key in needed:
                if key not in node.entries:
                    findings.add(node, f"needs the key {key!r}")
        return _object(node, findings)

    return read


def _faults(node: Node, findings: Findings) -> tuple[Fault, ...] | None:
    if isinstance(node, Scalar) and node.value in MCP_FAULTS:
        return (Fault(node.value),)
    if isinstance(node, Scalar) and is_null(node):
        findings.must_be(node, "the name of a fault")
        return None
    return faults(node, findings)


_answer = record(
    McpAnswer,
    table(
        "mcp_answer",
        text=_texts,
        json=_object,
        image=image,
        audio=audio,
        resource=_object_with("uri"),
        link=_object_with("uri", "name"),
        rpc_error=record(
            RpcError, table("rpc_error", code=integer(-(2**53), 2**53), data=json_value)
        ),
        ask=record(McpAsk, table("mcp_ask")),
        progress=_progress,
        raw=_object,
        tools=_tools,
    ),
)


def _filled_answer(node: Node, findings: Findings) -> McpAnswer:
    if isinstance(node, Mapping) and not node.entries:
        findings.add(node, "must have an answer, such as {text: Rain}")
    answer = _answer(node, findings) or McpAnswer()
    for key in ("raw", "rpc_error", "ask", "error"):
        beside = _BESIDE_ERROR if key == "error" else _BESIDE_ALL
        if getattr(answer, key) is not None and isinstance(node, Mapping):
            for other in sorted(node.entries.keys() - beside - {key}):
                findings.add(node, f"is {key!r} or {other!r}, got both", node.keys[other])
            break
    return answer


_BESIDE_ALL = frozenset({"progress", "tools", "resumed"})
_BESIDE_ERROR = _BESIDE_ALL | {"json", "image", "audio", "resource", "link"}
_attempt_record = record(McpTry, table("mcp_try", fault=_faults, answer=_filled_answer))


def _attempt(node: Node, findings: Findings) -> McpTry | None:
    if isinstance(node, Mapping):
        if not node.entries:
            findings.add(node, "must have 'http', 'fault' or 'answer'")
        _check_http(node, findings)
    return _attempt_record(node, findings)


def _check_http(node: Mapping, findings: Findings) -> None:
    """Adds what stands beside an HTTP error, and would never be sent."""
    for key in ("fault", "answer", "answers"):
        if {"http", key} <= node.entries.keys():
            findings.add(node, f"has either 'http' or {key!r}, got both", node.keys[key])


_match = record(McpMatch, table("mcp_match", arguments=_object, ignore=ignored))
_timing = table("mcp_timing")


def _pause(node: Node, findings: Findings) -> int | None:
    values = readable_fields(node, findings, _timing)
    return None if values is None else values.get("ttft", 0)


_ENTRY = table(
    "mcp_entry",
    tool=_TOOL_NAME,
    match=_match,
    attempts=listing(_attempt, "earlier tries"),
    answer=_filled_answer,
    answers=listing(_filled_answer, "answers"),
    fault=_faults,
    timing=_pause,
)


def _entry(server: str, node: Node, findings: Findings) -> McpEntry | None:
    before = len(findings.found)
    values = readable_fields(node, findings, _ENTRY)
    if values is None or not isinstance(node, Mapping):
        return None
    keys = node.entries.keys()
    if {"answer", "answers"} <= keys:
        findings.add(node, "must have either 'answer' or 'answers', got both", node.keys["answers"])
    _check_http(node, findings)
    at = values.get("at", "call")
    if at == "call" and "tool" not in keys:
        findings.add(node, "needs the key 'tool', or 'at: list' or 'at: connect'")
    elif at == "call" and not keys & {"answer", "answers", "http", "fault"}:
        findings.add(node, "needs an 'answer', such as {text: Rain}")
    elif at != "call" and keys & {"tool", "match", "answer", "answers"}:
        findings.add(node, f"with 'at: {at}' has only attempts, http, fault and timing")
    elif at != "call" and not keys - {"at"}:
        findings.add(node, f"with 'at: {at}' needs attempts, http, fault or timing")
    if len(findings.found) > before:
        return None
    answer, answers = values.pop("answer", None), values.pop("answers", ())
    values["ttft"] = values.pop("timing", 0)
    return McpEntry(
        server=server, answers=answers or (() if answer is None else (answer,)), **values
    )


def _entries(server: str, node: Node, findings: Findings) -> tuple[McpEntry, ...] | None:
    read = listing(partial(_entry, server), "entries, each with 'tool' and 'answer'")
    entries: tuple[McpEntry, ...] | None = read(node, findings)
    return entries


def of_scenario(node: Node, findings: Findings) -> tuple[McpEntry, ...] | None:
    """`mcp` of a scenario: entries by server."""
    servers = filled_entries(node, "a mapping of servers to entries", findings)
    found = [_entries(server, inner, findings) or () for server, inner in (servers or {}).items()]
    return tuple(entry for entries in found for entry in entries)


_REVISIONS = listing(choice(*REVISIONS), "revisions")


def _calls(node: Node, findings: Findings) -> tuple[McpEntry, ...] | None:
    return _entries("", node, findings)


_SERVER = table(
    "mcp_server",
    mcp="the name of a server: letters, digits, '-' and '_', such as weather",
    tools=_tools,
    revisions=_REVISIONS,
    calls=_calls,
)


def is_server(node: Node) -> bool:
    """Whether a document describes an MCP server."""
    return isinstance(node, Mapping) and "mcp" in node.entries and "scenario" not in node.entries


def server(node: Node, findings: Findings) -> m.Scenario:
    """The server of a document, as a scenario without turns."""
    values = readable_fields(node, findings, _SERVER) or {}
    name, description = values.pop("mcp", ""), values.pop("description", "")
    calls = tuple(replace(entry, server=name) for entry in values.pop("calls", ()))
    made = McpServer(name, calls=calls, **values)
    return m.Scenario(f"mcp:{name}", (), description=description, server=made)


# Rules between values


def check_mcp(scenario: m.Scenario) -> Iterator[tuple[KeyPath, str]]:
    """The mistakes of one document, whatever others there are."""
    own = scenario.server
    if own is not None:
        yield from _check_tools(("tools",), own.tools)
        yield from _check_entries(("calls",), own.calls, own)
    for path, entries in _entries_by_server(scenario).items():
        known: list[tuple[Any, ...]] = []
        for index, entry in enumerate(entries):
            same = (entry.tool, entry.at, entry.match)
            if same in known:
                yield (*path, index), f"answers the same calls as entry {known.index(same) + 1}"
            known.append(same)
            for key, answer in _answers(entry):
                yield from _check_tools((*path, index, *key, "tools"), answer.tools or ())


def _entries_by_server(scenario: m.Scenario) -> dict[KeyPath, list[McpEntry]]:
    """The entries of a document, by the paths to their lists."""
    if scenario.server is not None:
        return {("calls",): list(scenario.server.calls)}
    found: dict[KeyPath, list[McpEntry]] = {}
    for entry in scenario.mcp:
        found.setdefault(("mcp", entry.server), []).append(entry)
    return found


def _answers(entry: McpEntry) -> Iterator[tuple[KeyPath, McpAnswer]]:
    """The answers of an entry, with the paths to them."""
    for index, tried in enumerate(entry.attempts):
        if tried.answer is not None:
            yield ("attempts", index, "answer"), tried.answer
    for number, answer in enumerate(entry.answers):
        yield ("answers", number) if len(entry.answers) > 1 else ("answer",), answer


def _check_tools(path: KeyPath, tools: Sequence[McpTool]) -> Iterator[tuple[KeyPath, str]]:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        if tool.name in seen and tool.name:
            yield (*path, index, "name"), f"tool {tool.name!r} is there twice"
        seen.add(tool.name)
        for key in ("parameters", "output"):
            schema = getattr(tool, key)
            if schema is None:
                continue
            for inner, flaw in schema_flaws(schema):
                yield (*path, index, key, *inner), flaw
            if schema.get("type", "object") != "object":
                message = "must be 'object': clients refuse a list with another type"
                yield (*path, index, key, "type"), message


def _tools_of(server: McpServer, entries: Iterable[McpEntry]) -> dict[str, McpTool]:
    """The tools of a server by their names, with those that it has after an answer."""
    answers = (answer for entry in (*server.calls, *entries) for answer in entry.every_answer)
    tools = [*server.tools, *(tool for answer in answers for tool in answer.tools or ())]
    return {tool.name: tool for tool in reversed(tools)}


def _check_entries(
    path: KeyPath, entries: Sequence[McpEntry], server: McpServer
) -> Iterator[tuple[KeyPath, str]]:
    tools = _tools_of(server, entries)
    for index, entry in enumerate(entries):
        place = (*path, index)
        tool = tools.get(entry.tool)
        if entry.at != "call":
            if "schema" in _fault_names(entry):
                yield place, "'fault: schema' strikes answers to calls"
        elif tool is None:
            yield (*place, "tool"), _unknown_tool(server, entry.tool, tools)
        else:
            for key, flaw in _check_answers(entry, tool):
                yield (*place, *key), flaw


def _unknown_tool(server: McpServer, tool: str, tools: Iterable[str]) -> str:
    names = ", ".join(sorted(tools)) or "none"
    return f"{server.name} has no tool {tool!r}; it has: {names}"


def _fault_names(entry: McpEntry) -> set[str]:
    tries = [fault.name for one in entry.attempts for fault in one.fault]
    return {*tries, *(fault.name for fault in entry.fault)}


def _check_answers(entry: McpEntry, tool: McpTool) -> Iterator[tuple[KeyPath, str]]:
    """The mistakes of the answers of an entry; paths are from the entry."""
    if "schema" in _fault_names(entry) and not any(
        answer.json is None or any(violations(tool.output, dict.fromkeys(answer.json)))
        for answer in (entry.every_answer if tool.output is not None else ())
    ):
        yield (
            (),
            "'fault: schema' breaks nothing: no 'output' of the tool refuses 'json' with nulls",
        )
    breaks = any(fault.name == "schema" for fault in entry.fault)
    for key, answer in _answers(entry):
        if answer.resumed and (answer.ask or answer.rpc_error):
            yield (*key, "resumed"), "is for results alone"
        if answer is entry.every_answer[len(entry.answers) - 1] and answer.ask:
            yield (*key, "ask"), "needs a further answer: clients give up after some tries"
        if tool.output is None or breaks:
            continue
        others = (answer.error, answer.rpc_error, answer.ask, answer.raw)
        if answer.json is None and others == (None,) * 4:
            message = "needs 'json': the tool has an 'output', and clients refuse an answer"
            yield key, f"{message} without it; to send it, add 'fault: schema'"
        if answer.json is not None:
            for inner, flaw in violations(tool.output, answer.json):
                yield (*key, "json", *inner), f"does not fit the output of the tool: {flaw}"


def check_servers(
    scenario: m.Scenario, servers: dict[str, McpServer]
) -> Iterator[tuple[KeyPath, str]]:
    """The mistakes of a scenario that concern the servers it names."""
    names = ", ".join(servers) or "none"
    tools = {
        name: _tools_of(server, (entry for entry in scenario.mcp if entry.server == name))
        for name, server in servers.items()
    }
    for path, entries in _entries_by_server(scenario).items() if scenario.mcp else ():
        name = entries[0].server
        if name in servers:
            yield from _check_entries(path, entries, servers[name])
        else:
            yield path, f"there is no document 'mcp: {name}'; there are: {names}"
    for index, turn in enumerate(scenario.turns):
        for form in turn.every():
            for number, part in enumerate(form.reply):
                path = ("turns", index, *(("reply", number) if form is turn else ()))
                for call in members([part]):
                    if isinstance(call, ToolPart) and not call.malformed:
                        for key, flaw in _check_call(call, servers, tools):
                            yield (*path, *(key if form is turn else ())), flaw


def _check_call(
    call: ToolPart, servers: dict[str, McpServer], tools: dict[str, dict[str, McpTool]]
) -> Iterable[tuple[KeyPath, str]]:
    server, tool = server_and_tool(call.name) or ("", "")
    if server not in servers:
        # A name may have a dot; it is a mistyped server where another one has the tool.
        known = [name for name, own in tools.items() if tool in own]
        if known:
            message = f"there is no document 'mcp: {server}'; {known[0]} has a tool {tool!r}"
            yield ("tool",), message
        return
    described = tools[server].get(tool)
    if described is None:
        yield ("tool",), _unknown_tool(servers[server], tool, tools[server])
    elif described.parameters is not None and "{{" not in (call.arguments or ""):
        try:
            value = parse(call.arguments or "{}")
        except ValueError:
            return
        for inner, flaw in violations(described.parameters, value):
            yield ("arguments", *inner), f"does not fit the parameters of {call.name}: {flaw}"
