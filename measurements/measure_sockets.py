"""What clients of Responses over a WebSocket do when it breaks.

python -m measurements.measure_sockets       # measures, with mockllm and with a raw server
python -m measurements.measure_sockets page  # writes the table of docs/websockets.md

The clients and the raw server are those of docs/findings/sockets. MODULES is the folder whose
node_modules has openai and ws.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from measurements.entries import ROOT
from measurements.fault_page import with_table
from mockllm import ServerOptions, ServerThread, loads

RESULTS = ROOT / "measurements" / "sockets.json"
PAGE = ROOT / "docs" / "websockets.md"
FINDINGS = ROOT / "docs" / "findings" / "sockets"
MODULES = Path(os.environ.get("MODULES", ROOT / "tests" / "clients" / "sdks"))

CLIENTS = {
    "openai": ("openai `responses.connect()`", ("openai", "websockets")),
    "openai-reconnecting": ("the same with `on_reconnecting`", ("openai",)),
    "agents": ("openai-agents `OpenAIResponsesWSModel`", ("openai-agents",)),
    "pydantic-ai": ('pydantic-ai `openai_transport="websocket"`', ("pydantic-ai-slim",)),
    "openai-node": ("openai-node `ResponsesWS`", ()),
}

_SCENARIO = """
scenario: broken
match: any
turns:
  - {reply: TURN, fault: FAULT}
  - {reply: {text: Half an, split: words}}
"""
_WORDS = "{text: Half an answer, split: words}"
_CALL = "{tool: get_weather, id: t1, arguments: {city: Paris}}"
_AFTER = "after: 6 events"
FAULTS = {
    **{
        f"close-{code}": f"{{cut: {{{_AFTER}, code: {code}, reason: the server says so}}}}"
        for code in (1000, 1001, 1008, 1011, 1012, 4000)
    },
    "no-frame": f"{{cut: {{{_AFTER}, code: 1006}}}}",
    "reset": f"{{cut: {{{_AFTER}, end: reset}}}}",
    "stall": f"{{stall: {{{_AFTER}}}}}",
    "no-json": "{garble: {event: 5}}",
    "binary": "{garble: {what: opcode}}",
    "expired": f"{{cut: {{{_AFTER}, end: expired}}}}",
    "call-1000": "{cut: {before: finish, code: 1000}}",
    "call-1011": "{cut: {before: finish, code: 1011}}",
    **{f"refused-{status}": f"handshake:status={status}" for status in (401, 403, 426, 429, 503)},
}
"""As mockllm has the faults of the raw server: of a turn, or of the opening."""

SHOWN = {
    **{f"close-{code}": f"closed with {code} after two words" for code in (1000, 1001, 1008)},
    **{f"close-{code}": f"closed with {code} after two words" for code in (1011, 1012, 4000)},
    "no-frame": "ended without a close frame",
    "reset": "reset",
    "stall": "no message more",
    "no-json": "a message that is no JSON",
    "binary": "binary messages",
    "expired": "60 minutes: error, then 1008",
    "call-1000": "1000 after a whole call",
    "call-1011": "1011 after a whole call",
    **{f"refused-{status}": f"opening refused: {status}" for status in (401, 403, 426, 429, 503)},
}


def main() -> None:
    """Measures, or writes the page."""
    if sys.argv[1:] == ["page"]:
        text = with_table(PAGE.read_text("utf-8"), "\n".join(table(measured())))
        PAGE.write_text(text, "utf-8")
        return
    results = asyncio.run(measure(sys.argv[1:] or list(CLIENTS)))
    known = measured() if RESULTS.is_file() else {}
    RESULTS.write_text(json.dumps({**known, **results}, indent=1) + "\n", "utf-8")


def measured() -> dict[str, Any]:
    """The results, by the client."""
    results: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
    return results


async def measure(clients: list[str]) -> dict[str, Any]:
    """What each client does under each fault, with mockllm and with the raw server."""
    sys.path.insert(0, str(FINDINGS))
    raw: ModuleType = __import__("raw_server")
    results: dict[str, Any] = {}
    for client in clients:
        raw.REQUESTS.clear()
        served = [await raw.serve(fault) for fault in FAULTS]
        plain = await outcomes(client, [url for _, url in served])
        with ExitStack() as stack:
            threads = [stack.enter_context(_server(fault)) for fault in FAULTS]
            own = await outcomes(client, [f"{thread.url}/v1" for thread in threads])
            counts = [len(thread.exchanges("default")) for thread in threads]
        for server, _ in served:
            server.close()
        results[client] = {
            "versions": _versions(client),
            "faults": {
                fault: {
                    "mockllm": {**own[at], "requests": counts[at]},
                    "raw": {**plain[at], "requests": raw.REQUESTS[fault]},
                }
                for at, fault in enumerate(FAULTS)
            },
        }
    return results


def _server(fault: str) -> ServerThread:
    written = FAULTS[fault]
    turn = _CALL if fault.startswith("call") else _WORDS
    scenario = _SCENARIO.replace("TURN", turn)
    if written.startswith("{"):
        return ServerThread(loads(scenario.replace("FAULT", written)), ServerOptions(grace=0))
    from mockllm.play.replay.fault_plan import read_plan

    options = ServerOptions(grace=0, faults=read_plan([written]))
    return ServerThread(loads(scenario.replace(", fault: FAULT", "")), options)


async def outcomes(client: str, urls: list[str]) -> list[dict[str, Any]]:
    """What the user of a client gets from each URL."""
    command = [sys.executable, str(FINDINGS / "with_python.py"), client]
    if client == "openai-node":
        command = ["node", str(FINDINGS / "with_node.mjs")]
    env = {**os.environ, "NO_PROXY": "127.0.0.1", "MODULES": str(MODULES)}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
    )
    out, _ = await process.communicate("\n".join(urls).encode())
    read = [
        json.loads(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", line))
        for line in out.decode().splitlines()
    ]
    if len(read) != len(urls):
        raise SystemExit(f"{client}: {len(read)} outcomes for {len(urls)} faults")
    return read


def _versions(client: str) -> dict[str, str]:
    if client == "openai-node":
        names = ("openai", "ws")
        files = [MODULES / "node_modules" / name / "package.json" for name in names]
        found = [json.loads(file.read_text("utf-8"))["version"] for file in files]
        return dict(zip(names, found, strict=True))
    return {name: version(name) for name in CLIENTS[client][1]}


def mark(fault: str, outcome: Mapping[str, Any]) -> str:
    """What the user of a client gets, in a few words."""
    error = re.split(r"[:( ]", str(outcome["error"]), maxsplit=1)[0]
    if error == "close":
        error = "`close` event"
    elif error:
        error = f"`{error}`"
    words = ["**waits**"] if outcome["waits"] else [error] if error else []
    if not words:
        words.append("whole answer" if fault == "binary" else "**no error**")
    if outcome["executed"]:
        words.append("**call executed**")
    if outcome["requests"] > 1:
        words.append(f"{outcome['requests']} requests")
    return ", ".join(words)


def table(results: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the page: a row for each fault, a column for each client."""
    names = [name for name in CLIENTS if name in results]
    yield f"| the connection is | {' | '.join(CLIENTS[name][0] for name in names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for fault, shown in SHOWN.items():
        cells = []
        for name in names:
            both = results[name]["faults"][fault]
            own, raw = (mark(fault, both[side]) for side in ("mockllm", "raw"))
            cells.append(own if own == raw else f"{own} ?")
        yield f"| {shown} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
