"""Clients on a WebSocket that breaks: Responses, OpenAI Realtime, Gemini Live.

python -m measurements.measure_sockets [CLIENT...]  # with mockllm and with a raw server
python -m measurements.measure_sockets page         # writes the tables of docs/socket-clients.md

The clients and the raw server are those of docs/findings/sockets. MODULES is the folder whose
node_modules has openai, ws and @google/genai.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import count, pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from measurements.entries import ROOT
from measurements.fault_page import with_table
from mockllm import ServerOptions, ServerThread, loads
from mockllm.play.replay.fault_plan import FaultPlan, read_plan
from mockllm.serve.interception.authority import Authority

RESULTS = ROOT / "measurements" / "sockets.json"
PAGE = ROOT / "docs" / "socket-clients.md"
FINDINGS = ROOT / "docs" / "findings" / "sockets"
MODULES = Path(os.environ.get("MODULES", ROOT / "tests" / "clients" / "sdks"))

APIS = {
    "responses": "OpenAI Responses",
    "realtime": "OpenAI Realtime",
    "live": "Gemini Live",
}


@dataclass(frozen=True)
class Client:
    """A client of docs/findings/sockets.

    Args:
        packages: whose versions are reported; of a client for Node those in MODULES.
        runs_tools: whether it executes calls itself.
        cancels: how its user can cancel: by ending a `task`, or by a `call` of the client.
        dials_tls: whether it dials nothing else.
    """

    shown: str
    api: str
    packages: tuple[str, ...]
    runs_tools: bool = False
    cancels: tuple[str, ...] = ("task", "call")
    dials_tls: bool = False
    node: bool = False


CLIENTS = {
    "openai": Client("openai `responses.connect()`", "responses", ("openai", "websockets")),
    "openai-reconnecting": Client("the same with `on_reconnecting`", "responses", ("openai",)),
    "agents": Client(
        "openai-agents `OpenAIResponsesWSModel`", "responses", ("openai-agents",), runs_tools=True
    ),
    "pydantic-ai": Client(
        'pydantic-ai `openai_transport="websocket"`',
        "responses",
        ("pydantic-ai-slim",),
        runs_tools=True,
        cancels=("task",),
    ),
    "openai-node": Client(
        "openai-node `ResponsesWS`", "responses", ("openai", "ws"), cancels=("call",), node=True
    ),
    "openai-node-reconnecting": Client(
        "the same with `reconnect`", "responses", ("openai", "ws"), cancels=("call",), node=True
    ),
    "openai-realtime": Client("openai `realtime.connect()`", "realtime", ("openai", "websockets")),
    "openai-realtime-reconnecting": Client(
        "the same with `on_reconnecting`", "realtime", ("openai",)
    ),
    "agents-realtime": Client(
        "openai-agents `RealtimeRunner`", "realtime", ("openai-agents",), runs_tools=True
    ),
    "pydantic-ai-realtime": Client(
        "pydantic-ai `OpenAIRealtimeModel`", "realtime", ("pydantic-ai-slim",), runs_tools=True
    ),
    "pydantic-ai-realtime-reconnecting": Client(
        "the same with `reconnect`", "realtime", ("pydantic-ai-slim",), runs_tools=True
    ),
    "openai-node-realtime": Client(
        "openai-node `OpenAIRealtimeWS`",
        "realtime",
        ("openai", "ws"),
        cancels=("call",),
        dials_tls=True,
        node=True,
    ),
    "google-genai": Client(
        "google-genai `live.connect()`", "live", ("google-genai",), dials_tls=True
    ),
    "pydantic-ai-live": Client(
        "pydantic-ai `GoogleRealtimeModel`",
        "live",
        ("pydantic-ai-slim", "google-genai"),
        runs_tools=True,
        cancels=("task",),
        dials_tls=True,
    ),
    "google-genai-node": Client(
        "@google/genai `live.connect()`", "live", ("@google/genai",), cancels=("call",), node=True
    ),
}

_WORDS = "{text: Half an answer, split: words}"
_MANY = " ".join(f"word{number}" for number in range(100))
_CALL = "{tool: get_weather, id: t1, arguments: {city: Paris}, split: 4}"
_REPLIES = {
    "args": _CALL,
    # The connection ends after a pause, so that the client has read the call.
    "call": f"[{_CALL}, {{text: Later., every: 2s}}]",
    "cancel": f"{{text: {_MANY}, split: words, every: 100ms}}",
}
_SCENARIO = """
scenario: broken
match: any
turns:
  - {reply: REPLY, speech: noneFAULT}
  - {reply: {text: Half an, split: words}, speech: none}
"""
_CODES = (1000, 1001, 1008, 1011, 1012, 4000)
_STATUSES = (401, 403, 426, 429, 503)
FAULTS = {
    **{f"close-{code}": f"closed with {code} after two words" for code in _CODES},
    "no-frame": "ended without a close frame",
    "reset": "reset",
    "stall": "no message more",
    "no-json": "a message that is no JSON",
    "binary": "binary messages",
    "expired": "60 minutes: error, then the end",
    "args-1000": "1000 in the arguments of a call",
    "args-1011": "1011 in the arguments of a call",
    "call-1000": "1000 after a whole call",
    "call-1011": "1011 after a whole call",
    "again-503": "closed with 1012, then not opened again: 503",
    "cancel-task": "cancelled: the task that reads",
    "cancel-call": "cancelled: with what the client has",
    **{f"refused-{status}": f"opening refused: {status}" for status in _STATUSES},
}
_NOT_LIVE = ("binary", "expired", "args-1000", "args-1011")
"""Its messages are binary, its end has no error, and its calls come in one message."""
_IN_TIME = 3.0
"""Seconds after a request in which an answer ends that is cancelled after two words."""


def main() -> None:
    """Measures, or writes the page."""
    if sys.argv[1:] == ["page"]:
        text = with_table(PAGE.read_text("utf-8"), "\n".join(tables(measured())))
        PAGE.write_text(text, "utf-8")
        return
    for name in sys.argv[1:] or CLIENTS:
        results = measure(name)
        known = {**(measured() if RESULTS.is_file() else {}), name: results}
        ordered = {one: known[one] for one in CLIENTS if one in known}
        RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", "utf-8")


def measured() -> dict[str, Any]:
    """The results, by the client."""
    results: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
    return results


def faults_of(client: Client) -> list[str]:
    """The faults that a client can meet."""
    left_out = {f"cancel-{way}" for way in ("task", "call") if way not in client.cancels}
    return [
        fault
        for fault in FAULTS
        if fault not in left_out and not (client.api == "live" and fault in _NOT_LIVE)
    ]


def measure(name: str) -> dict[str, Any]:
    """The outcomes of a client under each fault, with mockllm and with the raw server."""
    sys.path.insert(0, str(FINDINGS))
    raw: ModuleType = __import__("raw_server")
    raw.CAME.clear()
    raw.ENDED.clear()
    client, authority = CLIENTS[name], Authority()
    faults = faults_of(client)
    with ExitStack() as stack:
        threads = [stack.enter_context(_server(client, fault)) for fault in faults]
        authorities = [authority, *filter(None, (one.server.authority for one in threads))]
        trusted = Path(stack.enter_context(tempfile.TemporaryDirectory()), "trusted.pem")
        trusted.write_bytes(b"\n".join(one.certificate for one in authorities))

        async def play() -> list[list[dict[str, Any]]]:
            context = authority.by_name() if client.dials_tls else None
            served = [await raw.serve(fault, context) for fault in faults]
            outcomes = await asyncio.gather(
                _outcomes(name, faults, [thread.url for thread in threads], trusted),
                _outcomes(name, faults, [url for _, url in served], trusted),
            )
            for server, _ in served:
                server.close()
            return outcomes

        own, plain = asyncio.run(play())
        seen = [_seen_by(thread) for thread in threads]
    return {
        "versions": _versions(client),
        "faults": {
            fault: {
                "mockllm": _outcome(fault, own[at], *seen[at]),
                "raw": _outcome(fault, plain[at], raw.CAME[fault], raw.ENDED.get(fault)),
            }
            for at, fault in enumerate(faults)
        },
    }


def _server(client: Client, fault: str) -> ServerThread:
    options = ServerOptions(grace=0, tls=client.dials_tls)
    kind, _, rest = fault.partition("-")
    live = client.api == "live"
    after = "after: 2 events" if live else "after: 6 events"
    if kind == "close":
        written = f"{{cut: {{{after}, code: {rest}, reason: the server says so}}}}"
    elif kind == "args":
        written = f"{{cut: {{after: 5 events, code: {rest}}}}}"
    elif kind == "call":
        written = f"{{cut: {{after: 300ms, code: {rest}}}}}"
    else:
        written = {
            "no-frame": f"{{cut: {{{after}, code: 1006}}}}",
            "reset": f"{{cut: {{{after}, end: reset}}}}",
            "stall": f"{{stall: {{{after}}}}}",
            "no-json": f"{{garble: {{event: {1 if live else 5}}}}}",
            "binary": "{garble: {what: opcode}}",
            "expired": f"{{cut: {{{after}, end: expired}}}}",
            "again-503": f"{{cut: {{{after}, code: 1012}}}}",
        }.get(fault, "")
    if kind in ("refused", "again"):
        plan = read_plan([f"handshake:status={rest}"])
        options = replace(options, faults=plan if kind == "refused" else _after_first(plan))
    scenario = _SCENARIO.replace("REPLY", _REPLIES.get(kind, _WORDS))
    return ServerThread(
        loads(scenario.replace("FAULT", written and f", fault: {written}")), options
    )


def _after_first(plan: FaultPlan) -> FaultPlan:
    """A plan that spares the first opening, and none of the nine after it."""
    for seed in count():
        tried = replace(plan, rate=0.8, seed=str(seed))
        drawn = [tried.draw_opening("default", number, 0) for number in range(1, 11)]
        if drawn[0] is None and all(drawn[1:]):
            return tried
    raise AssertionError("count() has no end")


def _seen_by(thread: ServerThread) -> tuple[list[float], tuple[str, float] | None]:
    """When requests came, and how the client ended the first answer."""
    exchanges = thread.exchanges("default")
    sent = exchanges[0].sent if exchanges else None
    ended = None
    if sent is not None and (sent.client_gone or sent.interrupted):
        ended = ("stop" if sent.interrupted else "left", sent.duration)
    return [exchange.received.clock for exchange in exchanges], ended


def _outcome(
    fault: str,
    outcome: Mapping[str, Any],
    came: Sequence[float],
    ended: tuple[str, float] | None,
) -> dict[str, Any]:
    """The outcome for the user, and what the server saw, without what is empty."""
    result = {**outcome, "text": outcome["text"][:40], "requests": len(came)}
    if fault.startswith("again"):
        result["pauses"] = [round(after - before, 1) for before, after in pairwise(came)]
    if fault.startswith("cancel"):
        result["ended"] = ended[0] if ended is not None and ended[1] < _IN_TIME else ""
    return {key: value for key, value in result.items() if value or key == "requests"}


async def _outcomes(
    name: str, faults: Sequence[str], urls: Sequence[str], trusted: Path
) -> list[dict[str, Any]]:
    """What the user of a client gets from each URL."""
    cases = [
        {
            "url": url,
            "limit": 30 if fault.startswith("again") else 8,
            "cancel": fault.partition("-")[2] if fault.startswith("cancel") else "",
        }
        for fault, url in zip(faults, urls, strict=True)
    ]
    command = [sys.executable, str(FINDINGS / "with_python.py"), name]
    if CLIENTS[name].node:
        command = ["node", str(FINDINGS / "with_node.mjs"), name]
    trust = {"SSL_CERT_FILE": str(trusted), "NODE_EXTRA_CA_CERTS": str(trusted)}
    env = {**os.environ, **trust, "NO_PROXY": "127.0.0.1", "MODULES": str(MODULES)}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
    )
    out, _ = await process.communicate("\n".join(map(json.dumps, cases)).encode())
    read = [
        json.loads(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", line))
        for line in out.decode().splitlines()
    ]
    if len(read) != len(urls):
        raise SystemExit(f"{name}: {len(read)} outcomes for {len(urls)} faults")
    return read


def _versions(client: Client) -> dict[str, str]:
    if not client.node:
        return {name: version(name) for name in client.packages}
    files = [MODULES / "node_modules" / name / "package.json" for name in client.packages]
    found = [json.loads(file.read_text("utf-8"))["version"] for file in files]
    return dict(zip(client.packages, found, strict=True))


def mark(fault: str, outcome: Mapping[str, Any]) -> str:
    """What the user of a client gets, in a few words."""
    if fault.startswith("cancel"):
        ends = {"left": "closes", "stop": "stops the answer", "": "**goes on**"}
        return ends[outcome.get("ended", "")]
    error = re.split(r"[:( ]", outcome.get("error", ""), maxsplit=1)[0]
    if error:
        shown = {"close": "`close` event", "unhandled": "**process ends**"}
        error = shown.get(error, f"`{error}`")
    words = ["**waits**"] if outcome.get("waits") else [error] if error else []
    if not words:
        words.append("whole answer" if fault == "binary" else "**no error**")
    if outcome.get("executed"):
        words.append("**call executed**" if fault.startswith("args") else "call executed")
    pauses = outcome.get("pauses", [])
    if pauses:
        grow = all(after >= 1.2 * before for before, after in pairwise(pauses))
        words.append(f"{len(pauses)} tries, pauses {'grow' if grow else '**do not grow**'}")
    elif outcome["requests"] > 1:
        words.append(f"{outcome['requests']} requests")
    return ", ".join(words)


def cell(fault: str, results: Mapping[str, Any]) -> str:
    """The cell of a client: what both servers showed, or with a `?` what mockllm showed."""
    both = results["faults"].get(fault)
    if both is None:
        return "—"
    own, raw = (mark(fault, both[side]) for side in ("mockllm", "raw"))
    return own if own == raw else f"{own} ?"


def tables(results: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the page: for each API a row for each fault, a column for each client; then a
    row for each client, a column for each rule."""
    for api, shown in APIS.items():
        names = [name for name, client in CLIENTS.items() if client.api == api]
        faults = [one for one in FAULTS if any(one in results[name]["faults"] for name in names)]
        yield f"## {shown}\n"
        yield f"| the connection is | {' | '.join(CLIENTS[name].shown for name in names)} |"
        yield "|---" * (len(names) + 1) + "|"
        for fault in faults:
            cells = (cell(fault, results[name]) for name in names)
            yield f"| {FAULTS[fault]} | {' | '.join(cells)} |"
        yield ""
    yield "## Rules\n"
    yield "| client | reports a part | keeps a cut call back | is cancelled | opens again |"
    yield "|---|---|---|---|---|"
    for api, shown in APIS.items():
        before = ""
        for name, client in CLIENTS.items():
            if client.api == api:
                own = client.shown.replace("the same", before)
                before = client.shown if own == client.shown else before
                rules = " | ".join(rules_of(client, results[name]))
                yield f"| {shown}: {own} | {rules} |"
    yield "\n" + _versions_line(results)


def rules_of(client: Client, results: Mapping[str, Any]) -> Iterator[str]:
    """Whether a client keeps each rule."""
    cuts = {one: cell(one, results) for one in FAULTS if one.startswith(("close", "no-f", "reset"))}
    broken = [
        f"{word} after {', '.join(one.removeprefix('close-') for one in cuts if word in cuts[one])}"
        for word in ("**no error**", "**waits**")
        if any(word in shown for shown in cuts.values())
    ]
    says = "`close` event" if any("`close`" in shown for shown in cuts.values()) else "yes"
    yield "; ".join(broken) or says
    if not client.runs_tools or "args-1000" not in results["faults"]:
        yield "—"
    else:
        args = [cell(f"args-{code}", results) for code in (1000, 1011)]
        yield "**no**" if any("executed" in one for one in args) else "yes"
    ends = [cell(f"cancel-{way}", results) for way in client.cancels]
    ways = [f"{way}: {end}" for way, end in zip(client.cancels, ends, strict=True)]
    yield ends[0] if len({*ends}) == 1 else "; ".join(ways)
    again = cell("again-503", results)
    yield again.partition(", ")[2] if "tries" in again else "does not"


def _versions_line(results: Mapping[str, Any]) -> str:
    versions = {
        f"{package} {number}{' (Node)' if CLIENTS[name].node else ''}"
        for name, one in results.items()
        for package, number in one["versions"].items()
    }
    return f"Versions: {', '.join(sorted(versions))}."


if __name__ == "__main__":
    main()
