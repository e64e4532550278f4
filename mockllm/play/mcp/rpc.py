"""JSON-RPC messages of MCP, as they come over HTTP and stdio; and the errors of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mockllm.core.errors import RequestError
from mockllm.core.jsontext import parse_object
from mockllm.core.record import record
from mockllm.scenario.mcp_model import REVISIONS

STATELESS = REVISIONS[0]
"""The revision without handshake, session and resumption."""

META = "io.modelcontextprotocol/"
"""The prefix of the fields of `_meta` that each stateless request has."""

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR = -32603
HEADERS_DISAGREE, UNSUPPORTED_VERSION = -32020, -32022  # of 2026-07-28

VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
SESSION_HEADER, RESUME_HEADER = "mcp-session-id", "last-event-id"
STDIO_HEADER = "x-mockllm-stdio"
"""Of requests of the stdio bridge, and of the answers in which it has to do something."""

PROGRESS, CHANGED = "notifications/progress", "notifications/tools/list_changed"

RECORDED, ANSWER = "recorded", "x-mockllm-answer"
"""The value of the header where the bridge runs a program and hands its exchanges to a recorder;
and the field of a client's message that has what the program said: the `answer`, the messages
`before` it, when the client asked (`at`, in seconds since 1970) and the microseconds `after` it."""

CALL_IDS = ("claudecode/toolUseId", "callId")
"""The fields of `_meta` in which Claude Code and Codex name the call of the model."""

Json = dict[str, Any]


class RpcProblem(Exception):  # noqa: N818 - an answer, not a failure
    """A message that gets an error of the protocol."""

    def __init__(self, code: int, message: str, status: int = 200, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.status, self.data = code, message, status, data


@record
class RpcMessage:
    """A message of a client.

    Args:
        id: None of a notification.
        method: "" of an answer to a request of the server.
    """

    id: str | int | None
    method: str
    params: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        """The fields about the request, which take no part in matching."""
        return mapping(self.params.get("_meta"))

    @property
    def tool(self) -> str:
        """The tool of a call."""
        name = self.params.get("name")
        return name if isinstance(name, str) else ""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of a call; none are an empty object."""
        return mapping(self.params.get("arguments"))

    @property
    def call_id(self) -> str:
        """The id of the model's call, where the client names it; else ""."""
        ids = (self.meta.get(key) for key in CALL_IDS)
        return next((id for id in ids if isinstance(id, str)), "")

    def client(self, headers: Mapping[str, str]) -> str:
        """The name of the client."""
        info = self.params.get("clientInfo") or self.meta.get(f"{META}clientInfo")
        name = mapping(info).get("name")
        return name if isinstance(name, str) else headers.get("user-agent", "").partition("/")[0]


class Operation(NamedTuple):
    """The journal's entry of a request to an MCP server.

    Args:
        scenario, entry, answer: which answer it got: of a scenario or (`mcp:NAME`) a server, by
            the numbers of the entry and of the answer in it; -1 for none.
        revision: "" where the request does not say it.
        fails: whether the answer was to fail: an HTTP error or a fault.
    """

    server: str
    method: str
    tool: str = ""
    scenario: str = ""
    entry: int = -1
    answer: int = -1
    revision: str = ""
    client: str = ""
    call_id: str = ""
    fails: bool = False


def mapping(value: object) -> Mapping[str, Any]:
    """The value, if it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def read_message(body: bytes) -> RpcMessage:
    """The message in the body of a request.

    Raises:
        RpcProblem: it is none.
    """
    try:
        value = parse_object(body)
    except RequestError as error:
        if body.lstrip()[:1] == b"[":
            message = "batches were removed in 2025-06-18; send one message a request"
            raise RpcProblem(INVALID_REQUEST, message, 400) from None
        raise RpcProblem(PARSE_ERROR, f"Parse error: {error.message}", 400) from None
    method, id = value.get("method"), value.get("id")
    is_answer = method is None and ("result" in value or "error" in value)
    if value.get("jsonrpc") != "2.0" or not (isinstance(method, str) or is_answer):
        message = "a message has 'jsonrpc': '2.0' and a method"
        raise RpcProblem(INVALID_REQUEST, message, 400)
    if "id" in value and (isinstance(id, bool) or not isinstance(id, str | int)):
        message = "the id of a request is a string or an integer"
        raise RpcProblem(INVALID_REQUEST, message, 400)
    return RpcMessage(id, method or "", mapping(value.get("params")))


def revision_of(message: RpcMessage, headers: Mapping[str, str]) -> str:
    """The revision that a request is of; "" where it does not say it."""
    stated = message.meta.get(f"{META}protocolVersion") or headers.get(VERSION_HEADER, "")
    if message.method == "initialize":
        stated = message.params.get("protocolVersion")
    elif message.method == "server/discover" and not stated:
        return STATELESS
    return stated if isinstance(stated, str) else ""


def operation_of(server: str, message: RpcMessage, headers: Mapping[str, str]) -> Operation:
    """The journal's entry of a message, before it has an answer."""
    return Operation(
        server,
        message.method,
        message.tool if message.method == "tools/call" else "",
        revision=revision_of(message, headers),
        client=message.client(headers),
        call_id=message.call_id,
    )


def check_headers(message: RpcMessage, headers: Mapping[str, str]) -> None:
    """Checks that the headers of a stateless request say what its body says.

    Raises:
        RpcProblem: they do not.
    """
    stated = {METHOD_HEADER: message.method, NAME_HEADER: message.tool}
    if message.method != "tools/call":
        del stated[NAME_HEADER]
    version = message.meta.get(f"{META}protocolVersion")
    if isinstance(version, str) and VERSION_HEADER in headers:
        stated[VERSION_HEADER] = version
    for name, value in stated.items():
        sent = headers.get(name, value)
        if sent != value and not sent.startswith("=?base64?"):
            message_ = f"Header mismatch: {name} is {sent!r}, and the body has {value!r}"
            raise RpcProblem(HEADERS_DISAGREE, message_, 400)


def result_of(id: str | int | None, result: Mapping[str, Any]) -> Json:
    """The message with a result."""
    return {"jsonrpc": "2.0", "id": id, "result": dict(result)}


def error_of(id: str | int | None, problem: RpcProblem) -> Json:
    """The message with an error."""
    error: Json = {"code": problem.code, "message": problem.message}
    if problem.data is not None:
        error["data"] = problem.data
    return {"jsonrpc": "2.0", "id": id, "error": error}


def notification(method: str, params: Mapping[str, Any] | None = None) -> Json:
    """A message that gets no answer."""
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
