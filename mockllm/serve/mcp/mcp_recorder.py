"""Records MCP servers: requests pass to the real ones, and each gets a document in the end.

An answer passes when it is whole. So a server cannot ask its client in the middle of a call, and
streams that stay open are refused as by servers without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import aiohttp

from mockllm.core.errors import ScenarioError
from mockllm.core.http import TimedBytes
from mockllm.core.jsontext import parse_object
from mockllm.play.mcp.rpc import (
    ANSWER,
    NO_METHOD,
    RECORDED,
    STDIO_HEADER,
    Operation,
    RpcMessage,
    RpcProblem,
    error_of,
    mapping,
    operation_of,
    read_message,
)
from mockllm.play.replay.call import Answered
from mockllm.play.replay.compilation.http_answer import CORS, bytes_answer, json_answer
from mockllm.play.replay.sessions.exchange import Played
from mockllm.record.recording.drafting.mcp_drafts import RecordedCall, messages_in
from mockllm.record.recording.store.mcp_documents import document_file, write_server
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules
from mockllm.serve.mcp.http_answers import MCP

_PATIENCE = 600
_NOT_PASSED = frozenset(
    ("host", "content-length", "connection", "accept-encoding", "transfer-encoding", "keep-alive")
)
_PASSED_BACK = ("content-type", "mcp-session-id", "www-authenticate")
_STAYS_OPEN = "subscriptions/listen"

PROGRAM = "stdio"
"""The URL of a server that is a program: the bridge runs it and hands over what passed."""


class McpRecorder:
    """Passes requests on to real MCP servers, and writes what they answered.

    Args:
        urls: of the servers, by their names; `PROGRAM` for programs.
        report: called with a sentence about each document.
    """

    def __init__(
        self,
        urls: Mapping[str, str],
        folder: Path,
        rules: Rules | None,
        report: Callable[[str], None] = lambda _: None,
        *,
        trust_env: bool = False,
    ) -> None:
        self.urls, self._folder, self._report = urls, folder, report
        self._redactor, self._trust_env = Redactor(rules or Rules()), trust_env
        self._calls: dict[str, list[RecordedCall]] = {name: [] for name in urls}
        self._client: aiohttp.ClientSession | None = None

    async def forward(
        self, name: str, method: str, headers: Mapping[str, str], body: bytes
    ) -> Answered:
        """The answer of a real server to a request."""
        message = _message(body)
        operation = Operation(name, method)
        if message is not None:
            operation = operation_of(name, message, headers)
        if self.urls[name] == PROGRAM:
            return self._take(name, headers, body, message, operation)
        played = Played("forwarded", 405, api=MCP, mcp=operation)
        if method == "GET":
            return Answered(bytes_answer(405, CORS.items(), [], streamed=False), played)
        if message is not None and message.method == _STAYS_OPEN:
            refused = error_of(message.id, RpcProblem(NO_METHOD, "Method not found"))
            return Answered(json_answer(200, refused, dict(CORS)), replace(played, status=200))
        passed = {key: value for key, value in headers.items() if key not in _NOT_PASSED}
        if self._client is None:
            timeout = aiohttp.ClientTimeout(total=_PATIENCE)
            self._client = aiohttp.ClientSession(timeout=timeout, trust_env=self._trust_env)
        try:
            async with self._client.request(
                method, self.urls[name], data=body or None, headers=passed, allow_redirects=False
            ) as response:
                data, status = await response.read(), response.status
                back = {key: response.headers[key] for key in _PASSED_BACK
                        if key in response.headers}  # fmt: skip
        except (aiohttp.ClientError, TimeoutError) as error:
            why = f"The MCP server {name!r} gave no answer: {type(error).__name__}: {error}"
            return _no_answer(message, operation, why)
        if message is not None and status == 200:
            self._keep(name, body, message, data)
        parts = [TimedBytes(0, data)] if data else []
        made = bytes_answer(status, {**back, **CORS}.items(), parts, streamed=False)
        return Answered(made, Played("forwarded", status, api=MCP, mcp=operation))

    def _take(
        self,
        name: str,
        headers: Mapping[str, str],
        body: bytes,
        message: RpcMessage | None,
        operation: Operation,
    ) -> Answered:
        """Keeps an exchange with a program; a GET asks whether it may."""
        if headers.get(STDIO_HEADER) != RECORDED:
            why = f"The MCP server {name!r} is a program: start 'mockllm mcp {name} -- CMD'"
            return _no_answer(message, operation, why)
        played = Played("forwarded", 200, api=MCP, mcp=operation)
        taken = {**CORS, STDIO_HEADER: RECORDED}
        if operation.method == "GET":
            return Answered(bytes_answer(200, taken.items(), [], streamed=False), played)
        request = parse_object(body) if message is not None else {}
        answer = mapping(request.get(ANSWER))
        if not answer:
            return _no_answer(message, operation, f"The MCP server {name!r} gave no answer")
        self._calls[name].append((request, answer))
        return Answered(json_answer(200, dict(answer), taken), played)

    def _keep(self, name: str, body: bytes, message: RpcMessage, data: bytes) -> None:
        for answer in messages_in(data):
            if answer.get("id") == message.id and ("result" in answer or "error" in answer):
                self._calls[name].append((parse_object(body), answer))

    async def close(self) -> None:
        """Ends the connections, and writes the documents."""
        if self._client is not None:
            await self._client.close()
        for name, calls in self._calls.items():
            if calls:
                self._write(name, calls)

    def _write(self, name: str, calls: list[RecordedCall]) -> None:
        file = document_file(name)
        try:
            written = write_server(self._folder, name, calls, self._redactor)
        except ScenarioError as error:
            self._report(f"{file} is not written, since it could not be loaded: {error}")
            return
        self._report(f"{file}: {written}")


def _no_answer(message: RpcMessage | None, operation: Operation, why: str) -> Answered:
    refused = error_of(message.id if message else None, RpcProblem(-32603, why))
    failed = Played("error", 502, cause="service", problems=(why,), api=MCP, mcp=operation)
    return Answered(json_answer(502, refused, dict(CORS)), failed)


def _message(body: bytes) -> RpcMessage | None:
    try:
        return read_message(body)
    except RpcProblem:
        return None
