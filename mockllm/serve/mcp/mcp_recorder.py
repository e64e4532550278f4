"""Records MCP servers: requests pass to the real ones, and each gets a document in the end.

What passes over HTTP is passed on as that of services is (`serve/server/recording`), event by
event; here is what becomes of the copies. A program is run by the bridge, which hands over what
passed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import NamedTuple

from mockllm.core.errors import RequestError, ScenarioError, UsageError, WireError
from mockllm.core.jsontext import parse_object
from mockllm.play.mcp.rpc import (
    ANSWER,
    INTERNAL_ERROR,
    RECORDED,
    SESSION_HEADER,
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
from mockllm.play.replay.compilation.http_answer import CORS, HttpAnswer, bytes_answer, json_answer
from mockllm.play.replay.sessions.exchange import Played
from mockllm.play.tapes.captured import Captured
from mockllm.play.tapes.socket_session import Recording
from mockllm.record.recording.drafting.draft import Line
from mockllm.record.recording.drafting.mcp_drafts import (
    RecordedCall,
    is_http_error,
    messages_in,
    recorded_call,
)
from mockllm.record.recording.store.folder import Folder
from mockllm.record.recording.store.mcp_documents import document_file, write_server
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules
from mockllm.scenario.model import Ignored
from mockllm.serve.mcp.http_answers import MCP

PROGRAM = "stdio"
"""The URL of a server that is a program: the bridge runs it and hands over what passed."""


class McpOutput(NamedTuple):
    """Where documents go, what is secret and ignored in them, and who is told of each."""

    folder: Path
    rules: Rules
    ignore: Ignored
    report: Callable[[Line], None]


class ServerCopy:
    """The exchanges of one server, which it takes as a `Recorder` does.

    Args:
        url: of the server; `PROGRAM` for a program.
    """

    def __init__(self, name: str, url: str, output: McpOutput) -> None:
        self.name, self.url, self._output = name, url, output
        self._calls: list[tuple[float, int, RecordedCall]] = []
        self._open: dict[tuple[str, str], tuple[float, RecordedCall]] = {}
        """Requests without an answer so far, by session and id."""
        self._numbers = count()

    def add(self, captured: Recording) -> None:
        """Keeps an exchange that has ended."""
        assert isinstance(captured, Captured)
        session = dict(captured.request_headers).get(SESSION_HEADER, "")
        try:
            messages = list(messages_in(captured.plain().body))
            if captured.method == "GET":
                self._add_stream(session, captured.at, messages)
            elif captured.method == "POST":
                self._add_request(captured, session, messages)
        except (RequestError, WireError) as error:
            self.skip(captured.source, f"{captured.source}: {error}")

    def _add_request(
        self, captured: Captured, session: str, messages: Iterable[Mapping[str, object]]
    ) -> None:
        request = parse_object(captured.request_body)
        if "id" not in request or "method" not in request:
            return
        after = captured.chunks[-1].at if captured.chunks else 0
        call = recorded_call(request, messages)._replace(status=captured.status, after=after)
        if call.answer or is_http_error(call):
            self.keep(captured.at, call)
        else:
            self._open[session, repr(request["id"])] = captured.at, call

    def _add_stream(self, session: str, at: float, messages: list[dict[str, object]]) -> None:
        """Gives requests whose streams ended early the answers in a resumed one; what else a stream
        has belongs to no request."""
        resumed = False
        for message in messages:
            key = session, repr(message.get("id"))
            if "method" not in message and key in self._open:
                asked_at, call = self._open.pop(key)
                again = recorded_call(call.request, messages)
                before = (*call.before, *again.before)
                self.keep(asked_at, again._replace(before=before, after=call.after, resumed=True))
                resumed = True
        aside = tuple(message for message in messages if "method" in message)
        if aside and not resumed:
            self.keep(at, RecordedCall({}, {}, aside))

    def keep(self, at: float, call: RecordedCall) -> None:
        """Keeps a request of some time, in seconds since 1970."""
        self._calls.append((at, next(self._numbers), call))

    async def room(self) -> None:
        """Never waits: what is kept of an answer has its limit."""

    def skip(self, source: str, reason: str, *, unwanted: bool = False) -> None:
        """Reports an exchange that is not recorded."""
        self._output.report(Line(source, "skipped", reason, unwanted=unwanted))

    def skip_unanswered(self, call: RecordedCall) -> None:
        """Reports a request without an answer; those of streams that stay open never have one."""
        why = f"{self.name}: {call.asked} has no answer"
        self.skip(self.name, why, unwanted=call.method != "tools/call")

    async def close(self) -> None:
        """Writes the document, and reports what is in it."""
        for _, call in self._open.values():
            self.skip_unanswered(call)
        if not self._calls:
            return
        calls = [call for _, _, call in sorted(self._calls, key=lambda kept: kept[:2])]
        folder, rules, ignore, report = self._output
        file, redactor = document_file(self.name), Redactor(rules)
        try:
            written = await asyncio.to_thread(
                write_server, folder, self.name, calls, redactor, ignore
            )
        except (ScenarioError, OSError) as error:
            report(Line(file, "skipped", f"{file} is not written: {error}", lost=True))
            return
        said, scenario = f"{file}: {written.summary}", f"mcp:{self.name}"
        report(Line(file, "neutral", said, scenario, not_found=written.not_found))


class McpRecorder:
    """The MCP servers that are recorded.

    Args:
        urls: by name.
        mode: of the recorder; a server that has a document is played, replaced (`all`), or refused
            (`add`).

    Raises:
        UsageError: a document would be overwritten, or stand in two files.
    """

    def __init__(self, urls: Mapping[str, str], output: McpOutput, mode: str) -> None:
        folder = output.folder
        known = {scenario.name for scenario in Folder(folder).scenarios()}
        files = {name for name in urls if (folder / document_file(name)).exists()}
        there = {name for name in urls if f"mcp:{name}" in known} | files
        refused = {"add": there, "all": there - files}.get(mode)
        if refused:
            name = min(refused)
            raise UsageError(
                f"{str(folder)!r} has the MCP server {name!r} already, which may have been "
                "changed by hand: move its document away, or record into another folder"
            )
        self.copies = {
            name: ServerCopy(name, url, output)
            for name, url in urls.items()
            if mode == "all" or name not in there
        }

    def answer(
        self, name: str, method: str, headers: Mapping[str, str], body: bytes
    ) -> Answered | Played:
        """The answer to what the bridge hands over; what a journal has of any other request, which
        the real server answers."""
        message = _message(body)
        operation = Operation(name, method)
        if message is not None:
            operation = operation_of(name, message, headers)
        if self.copies[name].url != PROGRAM:
            return Played("forwarded", api=MCP, mcp=operation)
        if headers.get(STDIO_HEADER) != RECORDED:
            why = f"The MCP server {name!r} is a program: start 'mockllm mcp {name} -- CMD'"
            return _no_answer(body, operation, why)
        played = Played("forwarded", 200, api=MCP, mcp=operation)
        taken = {**CORS, STDIO_HEADER: RECORDED}
        if operation.method == "GET":
            return Answered(bytes_answer(200, taken.items(), [], streamed=False), played)
        request = parse_object(body) if message is not None else {}
        passed = mapping(request.pop(ANSWER, None))
        copy, call = self.copies[name], RecordedCall(request, passed.get("answer") or {})
        if not call.answer:
            copy.skip_unanswered(call)
            return _no_answer(body, operation, f"The MCP server {name!r} gave no answer")
        call = call._replace(before=passed["before"], after=passed["after"])
        copy.keep(passed["at"], call)
        return Answered(json_answer(200, dict(call.answer), taken), played)

    async def close(self) -> None:
        """Writes the documents."""
        for copy in self.copies.values():
            await copy.close()


def refusal(body: bytes, why: str, status: int = 502) -> HttpAnswer:
    """The answer to a request that no server answers."""
    message = _message(body)
    refused = error_of(message.id if message else None, RpcProblem(INTERNAL_ERROR, why))
    return json_answer(status, refused, dict(CORS))


def _no_answer(body: bytes, operation: Operation, why: str) -> Answered:
    failed = Played("error", 502, cause="service", problems=(why,), api=MCP, mcp=operation)
    return Answered(refusal(body, why), failed)


def _message(body: bytes) -> RpcMessage | None:
    try:
        return read_message(body)
    except RpcProblem:
        return None
