"""MCP servers and what they answer, as they are written. Only data may live here."""

from __future__ import annotations

from typing import Any, Literal

from mockllm.core.record import record
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.part_model import MediaSource

Revision = Literal["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]
"""A revision of MCP; the first has neither handshake nor session."""

REVISIONS: tuple[Revision, ...] = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26")

McpPlace = Literal["call", "list", "connect"]
"""The kind of request that an entry answers: `tools/call`, `tools/list`, or the first one."""

McpFault = Literal["unknown-id", "session-lost", "schema", "exit", "noise"]
"""A fault that only MCP has; others are those of any answer."""

MCP_FAULTS: tuple[McpFault, ...] = ("unknown-id", "session-lost", "schema", "exit", "noise")


@record
class McpTool:
    """A tool of a server; `parameters` and `output` are JSON Schemas, `fields` whatever else a list
    has of it."""

    name: str
    description: str = ""
    parameters: Any = None
    title: str = ""
    output: Any = None
    annotations: Any = None
    fields: Any = None


@record
class RpcError:
    """A JSON-RPC error in place of a result."""

    code: int
    message: str
    data: Any = None


@record
class McpAsk:
    """A result that asks for the same call again, with this state (2026-07-28)."""

    state: str


@record
class McpAnswer:
    """The answer to a call.

    Args:
        text: one block each.
        json: `structuredContent`; alone, its JSON is the text, too.
        error: a text; the result is marked as a failure.
        progress: before the result, a message each, or the fields of a notification.
        resumed: whether the stream ends before the result, which a resuming GET gets.
        raw: the whole result.
        tools: the list from then on, which the server announces.
    """

    text: tuple[str, ...] = ()
    json: Any = None
    image: MediaSource | None = None
    audio: MediaSource | None = None
    resource: Any = None
    link: Any = None
    error: str | None = None
    rpc_error: RpcError | None = None
    ask: McpAsk | None = None
    progress: tuple[Any, ...] = ()
    resumed: bool = False
    raw: Any = None
    tools: tuple[McpTool, ...] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that a client hands on to its model, but for that of `json` alone."""
        return self.text if self.error is None else (self.error,)


@record
class McpTry:
    """An earlier try of a request: an HTTP error, faults, or another answer."""

    http: int | None = None
    fault: tuple[Fault, ...] = ()
    answer: McpAnswer | None = None


@record
class McpMatch:
    """Conditions on a call: a part of its arguments, as it must be found there.

    Args:
        exact: whether the call has no other arguments.
        ignore: what of the arguments is not compared.
    """

    arguments: Any = None
    exact: bool = False
    ignore: tuple[str, ...] = ()


@record
class McpEntry:
    """An answer of a server, and the calls that get it.

    Args:
        tool: "" for an entry that answers no call.
        answers: in order; the last one repeats.
        ttft: the pause before the answer, in microseconds.
    """

    tool: str = ""
    server: str = ""
    at: McpPlace = "call"
    match: McpMatch = McpMatch()
    attempts: tuple[McpTry, ...] = ()
    answers: tuple[McpAnswer, ...] = ()
    http: int | None = None
    fault: tuple[Fault, ...] = ()
    ttft: int = 0

    @property
    def every_answer(self) -> tuple[McpAnswer, ...]:
        """Its answers, and then those of earlier tries."""
        tries = (one.answer for one in self.attempts)
        return (*self.answers, *(answer for answer in tries if answer is not None))

    @property
    def conditions(self) -> int:
        """The number of conditions; the entry with the most answers."""
        return _count_values(self.match.arguments or {}) - 1 + self.match.exact


def _count_values(value: Any) -> int:
    """The number of values in a JSON value, with itself: a part of another one has fewer."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_count_values, inner))


@record
class McpServer:
    """A document `mcp: NAME`.

    Args:
        calls: what answers whoever asks.
    """

    name: str
    tools: tuple[McpTool, ...] = ()
    instructions: str = ""
    revisions: tuple[Revision, ...] = REVISIONS
    calls: tuple[McpEntry, ...] = ()


def server_and_tool(name: str) -> tuple[str, str] | None:
    """The two names in `weather.get_forecast`; None for the name of any other tool."""
    server, dot, tool = name.partition(".")
    return (server, tool) if dot and server and tool else None
