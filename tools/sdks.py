"""Compares the official client libraries with the decoders, on recorded bytes served over HTTP.

`accumulators` runs the clients. Their outcomes are compared with the neutral turn, field by field.
`FAULTS` lists the known bugs of the clients, which are excused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from warnings import catch_warnings, simplefilter

from mockllm.core.errors import UsageError
from mockllm.core.text import shorten
from mockllm.core.turn import TokenUsage, ToolCall, Turn
from mockllm.wire.framing.sse import decode
from tools.accumulators import BREAKS, CLIENT_CALLS, ClientCall, ClientOutcome


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of comparing a client's outcome with the turn.

    Args:
        outcome: `equal`, `differs`, `excused` (a bug of the client) or `n.a.`.
        via: the way to call the client that was compared.
        note: the first difference, the bug, or why there was nothing to compare.
    """

    outcome: str
    via: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """A known bug of an official client.

    Args:
        field: what it gets wrong: `text`, `calls`, `finish` or `usage`.
        applies: whether the events of a stream trigger the bug.
        reason: what the client does, for the report.
        helper: whether only the client's helper has the bug; the chunks that it parses are then
            correct.
    """

    api: str
    field: str
    applies: Callable[[list[dict[str, Any]]], bool]
    reason: str
    helper: bool = True


def _contents_in_lists(chunks: list[dict[str, Any]]) -> bool:
    choices = [choice for chunk in chunks for choice in chunk.get("choices") or []]
    return any(isinstance((c.get("delta") or {}).get("content"), list) for c in choices)


def _usage_not_last(chunks: list[dict[str, Any]]) -> bool:
    has_usage = [bool(chunk.get("usage")) for chunk in chunks]
    return any(has_usage) and not has_usage[-1]


def _usage_of_groq_only(chunks: list[dict[str, Any]]) -> bool:
    groq = any((chunk.get("x_groq") or {}).get("usage") for chunk in chunks)
    return groq and not any(chunk.get("usage") for chunk in chunks)


FAULTS = (
    Fault(
        "chat",
        "text",
        _contents_in_lists,
        "openai expects every content to be a string: its helper loses the text of lists of parts",
    ),
    Fault(
        "chat",
        "usage",
        _usage_not_last,
        "openai's helper keeps only the usage of the last chunk: a chunk after it erases it",
    ),
    Fault(
        "chat",
        "usage",
        _usage_of_groq_only,
        "openai does not know `x_groq`, the only field in which this stream reports usage",
        helper=False,
    ),
)
"""Every known bug of an official client on recorded streams."""


# Serving


@contextmanager
def playing(stream: bytes) -> Iterator[str]:
    """The base URL of a loopback server that answers every POST with these bytes."""

    class Handler(BaseHTTPRequestHandler):
        """Answers every request with the stream."""

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(stream)))
            self.end_headers()
            self.wfile.write(stream)

        def log_message(self, format: str, *args: object) -> None:
            """Does nothing: the report is the only output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# Comparing


def compare(api: str, stream: bytes, turn: Turn) -> Verdict:
    """Whether the official client's outcome of a stream equals the turn.

    The client's own helper is called first. If it crashes on a JSON shape that it does not know,
    the chunks that the client parses are accumulated instead, and `note` has the crash.
    """
    if api not in CLIENT_CALLS:
        return Verdict("n.a.", note=f"no official client that accumulates {api}")
    broken = ""
    excused: Verdict | None = None
    with playing(stream) as url, catch_warnings():
        # pydantic warns about every event with a shape that the client does not know.
        simplefilter("ignore")
        for client_call in CLIENT_CALLS[api]:
            try:
                outcome = client_call.run(url)
            except UsageError as error:
                return Verdict("n.a.", note=str(error))
            except BREAKS as error:
                broken = broken or f"{client_call.name} breaks: {type(error).__name__}: {error}"
                continue
            verdict = _verdict(api, stream, turn, client_call, outcome, broken)
            if excused is not None:
                # The chunks bypass the bug of the helper, so they may still contradict the turn.
                return verdict if verdict.outcome == "differs" else excused
            if verdict.outcome != "excused":
                return verdict
            excused = verdict
    return excused or Verdict("n.a.", note=broken)


def _verdict(
    api: str, stream: bytes, turn: Turn, client_call: ClientCall, outcome: ClientOutcome, note: str
) -> Verdict:
    found = differences(api, turn, outcome)
    if not found:
        return Verdict("equal", client_call.name, note)
    chunks = _objects(stream)
    faults = [
        f for f in FAULTS if f.api == api and (client_call is CLIENT_CALLS[api][0] or not f.helper)
    ]
    reasons: dict[str, None] = {}
    for field, difference in found.items():
        fault = next((f for f in faults if f.field == field and f.applies(chunks)), None)
        if fault is None:
            return Verdict("differs", client_call.name, difference)
        reasons[fault.reason] = None
    return Verdict("excused", client_call.name, "; ".join(reasons))


def _objects(stream: bytes) -> list[dict[str, Any]]:
    """The events that are JSON objects."""
    values = []
    for frame in decode(stream):
        try:
            value = json.loads(frame.data or "")
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            values.append(value)
    return values


_FINISH_VALUES: dict[str, dict[str, tuple[str, ...]]] = {
    "chat": {"refusal": ("stop",)},
    "responses": {
        "stop": ("completed",),
        "tool_calls": ("completed",),
        "refusal": ("completed",),
        "length": ("max_output_tokens",),
    },
    "anthropic": {"stop": ("end_turn",), "tool_calls": ("tool_use",), "length": ("max_tokens",)},
    "gemini": {"stop": ("STOP",), "tool_calls": ("STOP",), "length": ("MAX_TOKENS",)},
}
"""The finish values that the official clients have for the neutral ones, where they differ."""


def differences(api: str, turn: Turn, outcome: ClientOutcome) -> dict[str, str]:
    """How a client's outcome differs from a turn: by field, in order of importance."""
    found = {}
    if (turn.error is None) != (outcome.error is None):
        found["error"] = f"error: the SDK raises {outcome.error!r}, decoded {turn.error}"
    if turn.text != outcome.text:
        found["text"] = f"text: the SDK has {_short(outcome.text)}, decoded {_short(turn.text)}"
    calls = _calls(turn.tool_calls, outcome)
    if calls is not None:
        found["calls"] = calls
    if found.get("error") or turn.error is not None:
        return found
    usual = _FINISH_VALUES[api].get(turn.finish or "", (turn.finish,))
    expected = (turn.finish_raw,) if turn.finish_raw else usual
    if outcome.finish not in expected:
        found["finish"] = f"finish: the SDK has {outcome.finish!r}, decoded {expected[0]!r}"
    usage = _counts(turn.usage)
    if (usage is None) != (outcome.usage is None) or not _same_usage(usage, outcome.usage):
        found["usage"] = f"usage: the SDK has {outcome.usage}, decoded {usage}"
    return found


def _counts(usage: TokenUsage | None) -> tuple[int, ...] | None:
    if usage is None:
        return None
    return usage.input, usage.output, usage.reasoning, usage.cached


def _same_usage(usage: tuple[int, ...] | None, outcome: tuple[int | None, ...] | None) -> bool:
    pairs = zip(usage or (), outcome or (), strict=False)
    return all(theirs is None or ours == theirs for ours, theirs in pairs)


def _calls(calls: tuple[ToolCall, ...], outcome: ClientOutcome) -> str | None:
    if len(calls) != len(outcome.calls):
        return f"calls: the SDK has {len(outcome.calls)}, decoded {len(calls)}"
    for call, (id, name, arguments) in zip(calls, outcome.calls, strict=True):
        if name != call.name or (id and id != call.id):
            return f"calls: the SDK has {name} ({id}), decoded {call.name} ({call.id})"
        if not _same_arguments(call, arguments):
            return (
                f"calls: the SDK has {name} with {_short(arguments)}, "
                f"decoded {_short(call.arguments)}"
            )
    return None


def _same_arguments(call: ToolCall, outcome: object) -> bool:
    """Whether arguments are equal: JSON text verbatim, values by value."""
    if isinstance(outcome, str):
        return call.arguments == (outcome or "{}")
    try:
        return bool(call.parse_arguments() == outcome)
    except ValueError:
        return False


def _short(value: object) -> str:
    return shorten(repr(value), 80, keep=60, tail=15, mark="...")
