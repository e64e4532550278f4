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
    choice,
    filled_entries,
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
        resource=_object,
        link=_object,
        rpc_error=record(RpcError, table("rpc_error", code=json_value, data=json_value)),
        ask=record(McpAsk, table("mcp_ask")),
        progress=_progress,
        raw=_object,
        tools=_tools,
    ),
)


def _filled_answer(node: Node, findings: Findings) -> McpAnswer:
    if isinstance(node, Mapping) and not node.entries:
        findings.add(node, "must have an answer, such as {text: Rain}")
    return _answer(node, findings) or McpAnswer()


_attempt = record(McpTry, table("mcp_try", fault=_faults, answer=_filled_answer))
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
    at = values.get("at", "call")
    if at == "call" and "tool" not in keys:
        findings.add(node, "needs the key 'tool', or 'at: list' or 'at: connect'")
    elif at == "call" and not keys & {"answer", "answers", "http", "fault"}:
        findings.add(node, "needs an 'answer', such as {text: Rain}")
    elif at != "call" and keys & {"tool", "match", "answer", "answers"}:
        findings.add(node, f"with 'at: {at}' has only attempts, http, fault and timing")
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
        seen: set[str] = set()
        for index, tool in enumerate(own.tools):
            path: KeyPath = ("tools", index)
            if tool.name in seen and tool.name:
                yield (*path, "name"), f"tool {tool.name!r} is there twice"
            seen.add(tool.name)
            for key in ("parameters", "output"):
                if (schema := getattr(tool, key)) is not None:
                    for inner, flaw in schema_flaws(schema):
                        yield (*path, key, *inner), flaw
        yield from _check_entries(("calls",), own.calls, own)
    places: dict[str, int] = {}
    known: dict[Any, int] = {}
    for entry in scenario.mcp:
        number = places[entry.server] = places.get(entry.server, -1) + 1
        same = (entry.server, entry.tool, entry.at, repr(entry.match))
        if same in known:
            message = f"answers the same calls as entry {known[same] + 1}"
            yield ("mcp", entry.server, number), message
        known.setdefault(same, number)


def _check_entries(
    path: KeyPath, entries: Sequence[McpEntry], server: McpServer
) -> Iterator[tuple[KeyPath, str]]:
    for index, entry in enumerate(entries):
        place = (*path, index)
        tool = server.tool(entry.tool)
        if entry.at != "call":
            continue
        if tool is None:
            names = ", ".join(tool.name for tool in server.tools) or "none"
            yield (*place, "tool"), f"{server.name} has no tool {entry.tool!r}; it has: {names}"
            continue
        for number, answer in enumerate(entry.answers):
            if tool.output is None or _breaks_schema(entry):
                continue
            key: KeyPath = ("answers", number) if len(entry.answers) > 1 else ("answer",)
            others = (answer.error, answer.rpc_error, answer.ask, answer.raw)
            if answer.json is None and others == (None,) * 4:
                message = "needs 'json': the tool has an 'output', and clients refuse an answer"
                yield (*place, *key), f"{message} without it; to send it, add 'fault: schema'"
            if answer.json is None:
                continue
            for inner, flaw in violations(tool.output, answer.json):
                yield (*place, *key, "json", *inner), f"does not fit the output of the tool: {flaw}"


def _breaks_schema(entry: McpEntry) -> bool:
    return any(fault.name == "schema" for fault in entry.fault)


def check_servers(
    scenario: m.Scenario, servers: dict[str, McpServer]
) -> Iterator[tuple[KeyPath, str]]:
    """The mistakes of a scenario that concern the servers it names."""
    names = ", ".join(servers) or "none"
    by_server: dict[str, list[McpEntry]] = {}
    for entry in scenario.mcp:
        by_server.setdefault(entry.server, []).append(entry)
    for name, entries in by_server.items():
        if name in servers:
            yield from _check_entries(("mcp", name), entries, servers[name])
        else:
            yield ("mcp", name), f"there is no document 'mcp: {name}'; there are: {names}"
    for index, turn in enumerate(scenario.turns):
        for number, part in enumerate(turn.reply):
            for call in members([part]):
                if isinstance(call, ToolPart) and (called := server_and_tool(call.name)):
                    for key, flaw in _check_call(call, *called, servers):
                        yield ("turns", index, "reply", number, *key), flaw


def _check_call(
    call: ToolPart, server: str, tool: str, servers: dict[str, McpServer]
) -> Iterable[tuple[KeyPath, str]]:
    if call.malformed:
        return
    if server not in servers:
        names = ", ".join(servers) or "none"
        yield ("tool",), f"there is no document 'mcp: {server}'; there are: {names}"
        return
    known = servers[server].tool(tool)
    if known is None:
        names = ", ".join(one.name for one in servers[server].tools) or "none"
        yield ("tool",), f"{server} has no tool {tool!r}; it has: {names}"
    elif known.parameters is not None and "{{" not in (call.arguments or ""):
        try:
            value = parse(call.arguments or "{}")
        except ValueError:
            return
        for inner, flaw in violations(known.parameters, value):
            yield ("arguments", *inner), f"does not fit the parameters of {call.name}: {flaw}"
