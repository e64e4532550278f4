"""What the official client libraries make of recorded bytes, played to them over HTTP.

The clients themselves are in `accumulators`. What they add up to is compared with the neutral
turn, field by field; where a client itself is at fault, `FAULTS` says why.
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

from mockllm.core.turn import TokenUsage, ToolCall, Turn
from mockllm.errors import UsageError
from mockllm.framing.sse import decode
from tools.accumulators import BREAKS, WAYS, Said, Way

__all__ = ["FAULTS", "Fault", "Verdict", "compare", "differences", "playing"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a client's sum compares with the turn.

    Args:
        outcome: `equal`, `differs`, `excused` (its own fault) or `n.a.`.
        via: which of the client's ways was compared.
        note: the first difference, the fault, or why there was nothing to compare.
    """

    outcome: str
    via: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of an official client.

    Args:
        field: what it gets wrong: `text`, `calls`, `finish` or `usage`.
        meets: whether the events of a stream are such that it does.
        reason: what the client does, in words for the report.
        helper: whether only its helper is at fault; the chunks that it parses are then right.
    """

    api: str
    field: str
    meets: Callable[[list[dict[str, Any]]], bool]
    reason: str
    helper: bool = True


def _contents_in_lists(chunks: list[dict[str, Any]]) -> bool:
    choices = [choice for chunk in chunks for choice in chunk.get("choices") or []]
    return any(isinstance((c.get("delta") or {}).get("content"), list) for c in choices)


def _usage_not_last(chunks: list[dict[str, Any]]) -> bool:
    told = [bool(chunk.get("usage")) for chunk in chunks]
    return any(told) and not told[-1]


def _usage_of_groq_only(chunks: list[dict[str, Any]]) -> bool:
    groq = any((chunk.get("x_groq") or {}).get("usage") for chunk in chunks)
    return groq and not any(chunk.get("usage") for chunk in chunks)


FAULTS = (
    Fault(
        "chat",
        "text",
        _contents_in_lists,
        "openai takes every content for a string: its helper loses the text of lists of parts",
    ),
    Fault(
        "chat",
        "usage",
        _usage_not_last,
        "openai's helper keeps the usage of the last chunk alone: a chunk behind it wipes it",
    ),
    Fault(
        "chat",
        "usage",
        _usage_of_groq_only,
        "openai does not know `x_groq`, the only place where this stream tells its usage",
        helper=False,
    ),
)
"""Every known way in which an official client falls short of the bytes it was played."""


# Playing


@contextmanager
def playing(stream: bytes) -> Iterator[str]:
    """A loopback server that answers every POST with these bytes; gives its base URL."""

    class Handler(BaseHTTPRequestHandler):
        """Answers with the stream, whatever is asked."""

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(stream)))
            self.end_headers()
            self.wfile.write(stream)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: the report is the only output."""

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
    """Whether the official client makes of a stream what the turn says.

    The client's own helper is asked first. Where it breaks on a shape that it does not know,
    the chunks that the client parsed are added up instead; `note` then says so.
    """
    if api not in WAYS:
        return Verdict("n.a.", note=f"no official client that accumulates {api}")
    broken = ""
    excused: Verdict | None = None
    with playing(stream) as url, catch_warnings():
        # Shapes that a client does not know make pydantic warn, once for each event.
        simplefilter("ignore")
        for way in WAYS[api]:
            try:
                said = way.run(url)
            except UsageError as error:
                return Verdict("n.a.", note=str(error))
            except BREAKS as error:
                broken = broken or f"{way.name} breaks: {type(error).__name__}: {error}"
                continue
            verdict = _verdict(api, stream, turn, way, said, broken)
            if excused is not None:
                # The chunks bypass a helper's fault, so they may still speak against the turn.
                return verdict if verdict.outcome == "differs" else excused
            if verdict.outcome != "excused":
                return verdict
            excused = verdict
    return excused or Verdict("n.a.", note=broken)


def _verdict(api: str, stream: bytes, turn: Turn, way: Way, said: Said, note: str) -> Verdict:
    found = differences(api, turn, said)
    if not found:
        return Verdict("equal", way.name, note)
    chunks = _objects(stream)
    faults = [f for f in FAULTS if f.api == api and (way is WAYS[api][0] or not f.helper)]
    reasons: dict[str, None] = {}
    for field, words in found.items():
        fault = next((f for f in faults if f.field == field and f.meets(chunks)), None)
        if fault is None:
            return Verdict("differs", way.name, words)
        reasons[fault.reason] = None
    return Verdict("excused", way.name, "; ".join(reasons))


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


_WORDS: dict[str, dict[str, tuple[str, ...]]] = {
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
"""The usual words of each protocol for a finish, where they are not the neutral ones."""


def differences(api: str, turn: Turn, said: Said) -> dict[str, str]:
    """Where a client's sum differs from a turn: field to words, in order of importance."""
    found = {}
    if (turn.error is None) != (said.error is None):
        found["error"] = f"error: the SDK raises {said.error!r}, decoded {turn.error}"
    if turn.text != said.text:
        found["text"] = f"text: the SDK has {_short(said.text)}, decoded {_short(turn.text)}"
    calls = _calls(turn.tool_calls, said)
    if calls is not None:
        found["calls"] = calls
    if found.get("error") or turn.error is not None:
        return found
    words = _WORDS[api].get(turn.finish or "", (turn.finish,))
    expected = (turn.finish_raw,) if turn.finish_raw else words
    if said.finish not in expected:
        found["finish"] = f"finish: the SDK has {said.finish!r}, decoded {expected[0]!r}"
    usage = _counts(turn.usage)
    if (usage is None) != (said.usage is None) or not _same_usage(usage, said.usage):
        found["usage"] = f"usage: the SDK has {said.usage}, decoded {usage}"
    return found


def _counts(usage: TokenUsage | None) -> tuple[int, ...] | None:
    if usage is None:
        return None
    return usage.input, usage.output, usage.reasoning, usage.cached


def _same_usage(usage: tuple[int, ...] | None, said: tuple[int | None, ...] | None) -> bool:
    pairs = zip(usage or (), said or (), strict=False)
    return all(theirs is None or ours == theirs for ours, theirs in pairs)


def _calls(calls: tuple[ToolCall, ...], said: Said) -> str | None:
    if len(calls) != len(said.calls):
        return f"calls: the SDK has {len(said.calls)}, decoded {len(calls)}"
    for call, (id, name, arguments) in zip(calls, said.calls, strict=True):
        if name != call.name or (id and id != call.id):
            return f"calls: the SDK has {name} ({id}), decoded {call.name} ({call.id})"
        if not _same_arguments(call, arguments):
            return (
                f"calls: the SDK has {name} with {_short(arguments)}, "
                f"decoded {_short(call.arguments)}"
            )
    return None


def _same_arguments(call: ToolCall, said: object) -> bool:
    """Raw text is compared as it is, and with that what it parses to; values by value."""
    if isinstance(said, str):
        return call.arguments == (said or "{}")
    try:
        return bool(call.parsed() == said)
    except ValueError:
        return False


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:60] + "..." + text[-15:]
