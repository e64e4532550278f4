"""What MCP servers answered, in files of their recorders and among exchanges over HTTP.

mcp-recorder (https://github.com/devhelmhq/mcp-recorder) writes JSON with a request and its answer
in each interaction; mcp-vcr (https://github.com/MCP-VCR/mcp-vcr) YAML with the messages of both
sides. Cassettes and archives have the exchanges as any others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mockllm.core.errors import UsageError, WireError
from mockllm.play.mcp.rpc import mapping
from mockllm.play.tapes.captured import Captured
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.recording.drafting.mcp_drafts import (
    RecordedCall,
    is_http_error,
    messages_in,
    recorded_call,
)
from mockllm.wire.protocols.values import json_object

TRANSCRIPT = re.compile(rb"^meta:\s[\s\S]*?^[ ]+server_command:", re.MULTILINE)
"""What a file of mcp-vcr has."""

_METHODS = ("initialize", "server/discover", "tools/list", "tools/call", "ping")
"""Requests that a document answers."""


@dataclass(frozen=True, slots=True)
class McpExchange:
    """A request to a server with its answer; without one for what needs none.

    Args:
        asked: what people read of it.
    """

    source: str
    asked: str
    call: RecordedCall | None = None


def read(file: ForeignFile) -> list[McpExchange]:
    """The exchanges in a file of mcp-recorder or mcp-vcr.

    Raises:
        UsageError: it has no list of them.
    """
    value = mapping(file.value)
    entries = value.get("interactions", value.get("messages"))
    if not isinstance(entries, list):
        raise UsageError(f"{file.path} has no list of 'interactions' or 'messages'")
    pairs = _of_interactions if "interactions" in value else _of_messages
    return [
        _exchange(f"{file.path}#{number}", call)
        for number, call in pairs(list(map(mapping, entries)))
    ]


_Json = Mapping[str, Any]


def _of_interactions(entries: list[_Json]) -> Iterator[tuple[int, RecordedCall]]:
    for number, entry in enumerate(entries, 1):
        request = mapping(entry.get("request")) or {"method": entry.get("http_method") or ""}
        status = entry.get("response_status")
        call = RecordedCall(request, mapping(entry.get("response")))
        yield number, call._replace(status=status) if isinstance(status, int) else call


def _of_messages(entries: list[_Json]) -> Iterator[tuple[int, RecordedCall]]:
    sent = [(entry.get("dir"), mapping(entry.get("payload"))) for entry in entries]
    for number, (side, request) in enumerate(sent, 1):
        if side == "c2s" and "method" in request:
            later = [answer for other, answer in sent[number:] if other == "s2c"]
            yield number, recorded_call(request, later)


def _exchange(source: str, call: RecordedCall) -> McpExchange:
    is_answered = call.answer or is_http_error(call)
    kept = call if call.method in _METHODS and is_answered else None
    return McpExchange(source, call.asked, kept)


def find(exchange: Captured) -> McpExchange | None:
    """An exchange over HTTP as one with an MCP server; None for any other."""
    if exchange.method.upper() != "POST":
        return None
    try:
        exchange = exchange.plain_request()
        request = json_object(exchange.request_body) or {}
        method = request.get("method")
        is_request = method in _METHODS or str(method).startswith("notifications/")
        if request.get("jsonrpc") != "2.0" or not is_request:
            return None
        call = recorded_call(request, messages_in(exchange.plain().body))
        return _exchange(exchange.source, call._replace(status=exchange.status))
    except WireError:
        return None


def server_name(calls: Iterable[RecordedCall], default: str) -> str:
    """The name by which a server introduced itself, as names of servers are written."""
    named = default
    for call in calls:
        info = mapping(call.result.get("serverInfo"))
        named = str(info.get("name") or named)
    return re.sub(r"[^a-z0-9_]+", "-", named.lower()).strip("-")[:64] or "server"
