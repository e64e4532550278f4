"""What passed between a client and an MCP server, as a document of the server. Pure.

One document a server: the tools of the last list, and an entry for each call, by its tool and its
arguments, with its answers in their order. What the language cannot say is kept whole (`raw`).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mockllm.core.jsontext import compact, parse
from mockllm.play.mcp.operations import result
from mockllm.play.mcp.rpc import mapping
from mockllm.scenario.mcp_model import (
    McpAnswer,
    McpAsk,
    McpEntry,
    McpMatch,
    McpServer,
    McpTool,
    RpcError,
)
from mockllm.scenario.part_model import MediaSource
from mockllm.scenario.schema_validation import violations
from mockllm.wire.framing import sse

RecordedCall = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A request and its answer, as messages of JSON-RPC."""


def messages_in(data: bytes) -> Iterator[dict[str, Any]]:
    """The messages in the body of an answer: JSON, or events."""
    events = [frame.data for frame in sse.decode(data + b"\n\n") if frame.data]
    for text in events or (data,):
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


_OF_REVISIONS = ("resultType", "ttlMs", "cacheScope", "_meta")
"""Fields of results that a revision has, or that differ from run to run."""


def draft_server(name: str, calls: Iterable[RecordedCall]) -> McpServer:
    """The document of a server."""
    tools: dict[str, McpTool] = {}
    instructions = ""
    answered: dict[tuple[str, str], tuple[Mapping[str, Any], list[Mapping[str, Any]]]] = {}
    for request, answer in calls:
        params, given = mapping(request.get("params")), mapping(answer.get("result"))
        match request.get("method"):
            case "initialize" | "server/discover":
                stated = given.get("instructions")
                instructions = stated if isinstance(stated, str) else instructions
            case "tools/list" if "tools" in given:
                if not params.get("cursor"):  # a further page goes on
                    tools = {}
                tools |= {tool.name: tool for tool in map(_tool, given["tools"])}
            case "tools/call":
                arguments = mapping(params.get("arguments"))
                key = str(params.get("name")), compact(arguments)
                answered.setdefault(key, (arguments, []))[1].append(answer)
    entries = []
    for (tool, _), (arguments, answers) in answered.items():
        known = tools.setdefault(tool, McpTool(tool))
        entries.append(
            McpEntry(
                tool=tool,
                server=name,
                match=McpMatch(dict(arguments)) if arguments else McpMatch(),
                answers=_without_repeats([_fitting(draft_answer(one), known) for one in answers]),
            )
        )
    return McpServer(name, tuple(tools.values()), instructions, calls=tuple(entries))


def _without_repeats(answers: list[McpAnswer]) -> tuple[McpAnswer, ...]:
    """Answers without those at the end that are equal: the last one repeats."""
    while len(answers) > 1 and answers[-1] == answers[-2]:
        answers.pop()
    return tuple(answers)


def _tool(written: Any) -> McpTool:
    tool = mapping(written)
    schema = dict(mapping(tool.get("inputSchema")))
    return McpTool(
        name=str(tool.get("name")),
        description=_text(tool.get("description")),
        parameters=None if schema == {"type": "object"} else schema,
        title=_text(tool.get("title")),
        output=tool.get("outputSchema"),
        annotations=tool.get("annotations"),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def draft_answer(message: Mapping[str, Any]) -> McpAnswer:
    """The answer in a message; whole, where its parts would not make the same result."""
    error = mapping(message.get("error"))
    if error:
        code = error.get("code")
        number = code if isinstance(code, int) else -32603
        return McpAnswer(rpc_error=RpcError(number, _text(error.get("message")), error.get("data")))
    stated = mapping(message.get("result"))
    if stated.get("resultType") == "input_required" and "inputRequests" not in stated:
        return McpAnswer(ask=McpAsk(_text(stated.get("requestState"))))
    plain = {key: value for key, value in stated.items() if key not in _OF_REVISIONS}
    if plain.get("isError") is False:  # as if it were not there
        del plain["isError"]
    answer = _of_parts(plain)
    return answer if answer is not None and result(answer) == plain else McpAnswer(raw=plain)


def _of_parts(stated: Mapping[str, Any]) -> McpAnswer | None:
    """The answer with the parts of a result; None where it has others."""
    texts: list[str] = []
    others: dict[str, Any] = {}
    for block in map(mapping, stated.get("content") or ()):
        match block.get("type"):
            case "text":
                texts.append(_text(block.get("text")))
            case "image" | "audio" as kind:
                try:
                    data = base64.b64decode(_text(block.get("data")), validate=True)
                except binascii.Error:
                    return None
                others[kind] = MediaSource(data, _text(block.get("mimeType")))
            case "resource":
                others["resource"] = block.get("resource")
            case "resource_link":
                others["link"] = {key: value for key, value in block.items() if key != "type"}
            case _:
                return None
    json = stated.get("structuredContent")
    if stated.get("isError") is True:
        return None if others or json or len(texts) != 1 else McpAnswer(error=texts[0])
    if json is not None and len(texts) == 1 and _is_json(texts[0], json):
        texts = [] if texts[0] == compact(json) else texts
    return McpAnswer(text=tuple(texts), json=json, **others)


def _is_json(text: str, value: object) -> bool:
    try:
        return bool(parse(text) == value)
    except ValueError:
        return False


def _fitting(answer: McpAnswer, tool: McpTool) -> McpAnswer:
    """The answer as a scenario may have it: one that breaks the schema of its tool stands whole."""
    if tool.output is None or any((answer.error, answer.rpc_error, answer.ask, answer.raw)):
        return answer
    if answer.json is None or any(True for _ in violations(tool.output, answer.json)):
        return McpAnswer(raw=result(answer))
    return answer
