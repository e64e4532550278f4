"""The reply to a message to an MCP server: an answer of a scenario as JSON-RPC, and what breaks it.

Which answer it is, `operations` has found. Pure.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from mockllm.core.jsontext import compact
from mockllm.core.record import record
from mockllm.play.mcp.rpc import (
    CHANGED,
    INVALID_REQUEST,
    PROGRESS,
    STATELESS,
    STDIO_HEADER,
    Json,
    Operation,
    RpcMessage,
    RpcProblem,
    error_of,
    notification,
    result_of,
)
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.mcp_model import MCP_FAULTS, McpAnswer, McpEntry, McpTool


@record
class McpReply:
    """The answer to a message, before it is bytes.

    Args:
        messages: sent before the last one, as events of a stream.
        last: the result or the error; None: there is no body.
        event_id: of the event before the end of a stream that the client resumes; "" for none.
        after: the pause before it, in microseconds.
        outcome: as of a journal's entry.
    """

    operation: Operation
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    messages: tuple[Json, ...] = ()
    last: Json | None = None
    event_id: str = ""
    after: int = 0
    faults: tuple[Fault, ...] = ()
    outcome: str = "played"
    problem: str = ""
    cause: Literal["", "scenario"] = ""

    @property
    def streamed(self) -> bool:
        """Whether it is sent as events."""
        return bool(self.messages or self.event_id)


def make_reply(
    message: RpcMessage, operation: Operation, answer: McpAnswer, entry: McpEntry
) -> McpReply:
    """The reply to a call with an answer of an entry."""
    revision, id = operation.revision, message.id
    if answer.rpc_error is not None:
        own = answer.rpc_error
        last = error_of(id, RpcProblem(own.code, own.message, data=own.data))
    elif any(fault.name == "schema" for fault in entry.fault) and answer.json:
        broken = replace(answer, json=dict.fromkeys(answer.json))
        last = result_message(message, result(broken), revision)
    elif answer.ask is not None and revision == STATELESS:
        asked = {"resultType": "input_required", "requestState": answer.ask.state}
        last = result_of(id, asked)
    else:
        last = result_message(message, result(answer), revision)
    messages: list[Json] = []
    token = message.meta.get("progressToken")
    if token is not None:
        total = len(answer.progress)
        for number, said in enumerate(answer.progress, 1):
            if not isinstance(said, dict):
                said = {"progress": number, "total": total, "message": said}
            messages.append(notification(PROGRESS, {"progressToken": token, **said}))
    if answer.tools is not None and revision != STATELESS:
        messages.append(notification(CHANGED))
    event_id = ""
    if answer.resumed and revision != STATELESS:
        place = [operation.scenario, operation.entry, operation.answer, id]
        event_id = base64.urlsafe_b64encode(json.dumps(place).encode()).decode()
    return McpReply(operation, messages=tuple(messages), last=last, event_id=event_id)


def place_in(event_id: str) -> tuple[str, int, int, Any] | None:
    """The scenario, the numbers of entry and answer, and the id of the request, as `make_reply`
    writes them into the id of an event; None of any other id."""
    try:
        scenario, entry, answer, id = json.loads(base64.urlsafe_b64decode(event_id))
    except (ValueError, TypeError):
        return None
    known = isinstance(answer, int) and answer >= 0
    return (scenario, entry, answer, id) if known else None


def with_failure(reply: McpReply, entry: McpEntry, number: int) -> McpReply:
    """The reply with the HTTP error or the faults of an entry."""
    named = {fault.name for fault in entry.fault}
    if entry.http is not None:
        last = {"error": {"message": f"HTTP {entry.http}, as the scenario has it."}}
        operation = reply.operation._replace(fails=True)
        return McpReply(
            operation, entry.http, last=last, after=reply.after, outcome="error", cause="scenario"
        )
    if "session-lost" in named:
        last = error_of("server-error", RpcProblem(INVALID_REQUEST, "Session not found"))
        return McpReply(
            reply.operation, 404, last=last, after=reply.after, outcome="error", cause="scenario"
        )
    if "unknown-id" in named and reply.last is not None:
        reply = replace(reply, last={**reply.last, "id": f"unknown-{number}"})
    stdio = tuple((STDIO_HEADER, name) for name in ("exit", "noise") if name in named)
    faults = tuple(fault for fault in entry.fault if fault.name not in MCP_FAULTS)
    return replace(reply, headers=(*reply.headers, *stdio), faults=faults)


def result_message(message: RpcMessage, result: Mapping[str, Any], revision: str) -> Json:
    """The message with a result, as a revision has it."""
    if revision == STATELESS:
        result = {"resultType": "complete", **result}
    return result_of(message.id, result)


def result(answer: McpAnswer) -> Json:
    """The result of a tool (`CallToolResult`)."""
    if answer.raw is not None:
        return dict(answer.raw)
    content = [text_block(text) for text in answer.texts]
    if answer.json is not None and not content:
        content.append(text_block(compact(answer.json)))
    for kind, media in (("image", answer.image), ("audio", answer.audio)):
        if media is not None:
            data = base64.b64encode(media.data).decode()
            content.append({"type": kind, "data": data, "mimeType": media.type})
    if answer.resource is not None:
        content.append({"type": "resource", "resource": answer.resource})
    if answer.link is not None:
        content.append({"type": "resource_link", **answer.link})
    made: Json = {"content": content}
    if answer.json is not None:
        made["structuredContent"] = answer.json
    if answer.error is not None:
        made["isError"] = True
    return made


def text_block(text: str) -> Json:
    """A text as results have it."""
    return {"type": "text", "text": text}


def listed_tool(tool: McpTool) -> Json:
    """A tool as a list has it."""
    shown: Json = {"name": tool.name}
    if tool.title:
        shown["title"] = tool.title
    if tool.description:
        shown["description"] = tool.description
    # Without it, clients refuse the whole list.
    shown["inputSchema"] = {"type": "object", **(tool.parameters or {})}
    if tool.output is not None:
        shown["outputSchema"] = {"type": "object", **tool.output}
    if tool.annotations is not None:
        shown["annotations"] = tool.annotations
    return shown | (tool.fields or {})
