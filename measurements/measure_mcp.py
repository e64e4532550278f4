"""Clients of MCP: what becomes of a call, its result and the tools, where all is right and where a
server fails.

python -m measurements.measure_mcp [CLIENT[:CASE[:TRANSPORT]]...]  # an hour for all
python -m measurements.measure_mcp CLIENT:plain # what was not done without mockllm yet
python -m measurements.measure_mcp page         # writes the tables of docs/mcp-clients.md

The clients are the programs of `mcp_clients`, each with the newest packages in an environment of
its own below $XDG_CACHE_HOME, and the coding agents in the versions of tests/coding_agents. What is
bad under a fault is done again with `mcp_clients/plain_server.py`, which has nothing of mockllm.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from measurements.entries import ROOT
from measurements.fault_page import with_table
from measurements.mcp_cases import CASES, DONE, FAULTS, PROMPT, RIGHT, scenarios
from measurements.mcp_clients.plain_server import PlainServer
from mockllm import ServerOptions, ServerThread, loads
from mockllm.checking.rules import table
from mockllm.conformance.agents.launch import TIMED_OUT, AgentCommand, prepare, run_agent
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.serve.server.control.control_routes import base_urls
from mockllm.wire.protocols.environment import client_environment

RESULTS = ROOT / "measurements" / "mcp.json"
PAGE = ROOT / "docs" / "mcp-clients.md"
PROGRAMS = ROOT / "measurements" / "mcp_clients"
ENVIRONMENTS = Path(
    os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "mockllm-measurements"
)
SIDE_BY_SIDE = 2
LIMIT, AGENT_LIMIT = 30.0, 60.0
"""Seconds after which a program or a coding agent that waits is ended."""

SECONDS = 5
"""The timeout of a call, where a client has one."""


@dataclass(frozen=True)
class Client:
    """A client of `clients.toml`, which says what the fields mean."""

    title: str
    api: str
    program: str = ""
    packages: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    agent: str = ""
    several: bool = False


@cache
def clients() -> dict[str, Client]:
    """The clients, by their names."""
    found = tomllib.loads((PROGRAMS / "clients.toml").read_text("utf-8"))
    return {name: Client(**fields) for name, fields in found.items()}


# Environments


def _environment(name: str) -> Path:
    """The folder with a client's packages, which are installed where they are not there."""
    client = clients()[name]
    if client.agent:
        agents = (ROOT / "tests" / "coding_agents" / "package.json").read_text("utf-8")
        return _node_folder("agents", agents, [])
    if client.program.endswith(".mjs"):
        all_ = [
            p for one in clients().values() if one.program.endswith(".mjs") for p in one.packages
        ]
        return _node_folder("node", '{"private": true}', ["node@22", *all_])
    folder = ENVIRONMENTS / name
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "pip", "install", "--quiet", "--no-compile"]
        subprocess.run([*pip, *client.packages], check=True)
    return folder


def _node_folder(name: str, package: str, packages: Sequence[str]) -> Path:
    folder = ENVIRONMENTS / name
    if not (folder / "node_modules").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(package, "utf-8")
        subprocess.run(["npm", "install", "--no-audit", *packages], cwd=folder, check=True)
    return folder


def _versions(name: str) -> list[str]:
    client, folder = clients()[name], _environment(name)
    if client.agent:
        program = table("agents.yaml", "mockllm.conformance.agents")[client.agent]["words"][0]
        path = f"{folder / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
        shown = subprocess.run(
            [folder / "node_modules" / ".bin" / program, "--version"],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        return re.findall(r"\d+\.\d+\.\d+", shown)[:1]
    if client.program.endswith(".mjs"):
        files = [folder / "node_modules" / one / "package.json" for one in client.versions]
        found = [json.loads(file.read_text("utf-8"))["version"] for file in files]
    else:
        code = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
        command = [folder / "bin" / "python", "-c", code, *client.versions]
        found = subprocess.check_output(command, text=True).split()
    return [f"{package} {version}" for package, version in zip(client.versions, found, strict=True)]


# A run

Servers = Mapping[str, str | Sequence[str]]
"""By its name each server: a URL, or the command of a program."""


def command(
    name: str, url: str, servers: Servers, home: Path, environment: Path | None = None
) -> AgentCommand:
    """The command of a client, with what it reads in its HOME.

    Args:
        url: the root of the model's.
        environment: with its packages; None: one of its own.
    """
    client, folder = clients()[name], environment or _environment(name)
    binaries = folder / "node_modules" / ".bin"
    # A library may not find this checkout, nor a proxy.
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    own |= {"NO_PROXY": "127.0.0.1,localhost", "PATH": f"{binaries}{os.pathsep}{own['PATH']}"}
    if not client.agent:
        python = folder / "bin" / "python"
        interpreter = binaries / "node" if client.program.endswith(".mjs") else python
        program = PROGRAMS / client.program
        if interpreter != python:  # Node looks for packages beside the file
            program = folder / client.program
            program.write_text((PROGRAMS / client.program).read_text("utf-8"), "utf-8")
        words = (str(interpreter), str(program), url, PROMPT, json.dumps(servers))
        return AgentCommand(words, {**own, "HOME": str(home)})
    led = {**client_environment(base_urls(url)), "MOCKLLM_URL": url}
    own |= {"MCP_TOOL_TIMEOUT": str(SECONDS * 1000), "ENABLE_TOOL_SEARCH": "false"}
    arguments = [PROMPT]
    if client.agent == "claude":
        config = home / "mcp.json"
        arguments += ["--strict-mcp-config", "--mcp-config", str(config)]
    made = prepare(client.agent, arguments, home, led, own)
    _configure(client.agent, servers, home)
    return made


def _configure(agent: str, servers: Servers, home: Path) -> None:
    """Writes a coding agent's configuration of its servers."""
    entries = {name: _entry(agent, server) for name, server in servers.items()}
    if agent == "codex":
        lines = [""]
        for name, entry in entries.items():
            lines += [f"[mcp_servers.{name}]"]
            lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
        with (home / ".codex" / "config.toml").open("a", encoding="utf-8") as config:
            config.write("\n".join([*lines, ""]))
        return
    file, key = {
        "claude": (home / "mcp.json", "mcpServers"),
        "gemini": (home / ".gemini" / "settings.json", "mcpServers"),
        "opencode": (home / ".config" / "opencode" / "opencode.json", "mcp"),
    }[agent]
    settings = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps({**settings, key: entries}), "utf-8")


def _entry(agent: str, server: str | Sequence[str]) -> dict[str, Any]:
    """A server in the configuration of a coding agent."""
    wait = {"timeout": SECONDS * 1000}  # Claude Code has a variable for it
    if isinstance(server, str):
        return {
            "claude": {"type": "http", "url": server},
            "codex": {"url": server, "tool_timeout_sec": SECONDS},
            "gemini": {"httpUrl": server, **wait},
            "opencode": {"type": "remote", "url": server, **wait},
        }[agent]
    program = {"command": server[0], "args": [*server[1:]]}
    return {
        "claude": program,
        "codex": {**program, "tool_timeout_sec": SECONDS},
        "gemini": {**program, **wait},
        "opencode": {"type": "local", "command": [*server], **wait},
    }[agent]


def run(name: str, url: str, servers: Servers, environment: Path | None = None) -> dict[str, Any]:
    """The end of a client that ran in a folder and a HOME of its own."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work,
    ):
        words = command(name, url, servers, Path(home), environment)
        begun = time.monotonic()
        limit = AGENT_LIMIT if clients()[name].agent else LIMIT
        ended = run_agent(words, Path(work), limit)
        seconds = time.monotonic() - begun
    return {
        "exit": None if ended.exit_code == TIMED_OUT else ended.exit_code,
        "done": DONE in ended.output,
        "seconds": round(seconds, 1),
        "output": _end_of(ended.output),
        "errors": _end_of(ended.errors),
    }


def _end_of(text: str) -> list[str]:
    """The last lines that say something, without colours and folders."""
    lines = [
        re.sub(r"\x1b\[[0-9;]*m|(?:file://)?/(?:[\w.@+-]+/)+", "", line).strip()
        for line in text.split("\n")
    ]
    return [line[:160] for line in lines if line][-3:]


def measure(name: str, case: str, over: str, environment: Path | None = None) -> dict[str, Any]:
    """One cell: a client in a case, over a transport."""
    client, shown = clients()[name], CASES[case]
    with ServerThread(
        loads(scenarios(shown, client.api)), ServerOptions(log=None, grace=0.1)
    ) as server:
        names = ["weather", *(["music"] if shown.servers else [])]
        # Clients start programs without their environment, so the code of this checkout is named.
        bridge = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "mockllm", "mcp"]
        servers: dict[str, str | Sequence[str]] = {
            one: f"{server.url}/mcp/{one}"
            if over == "http"
            else [*bridge, one, "--url", server.url]
            for one in names
        }
        outcome = run(name, server.url, servers, environment)
        exchanges = server.settled_exchanges("default", 1.0)
        url = f"{server.url}/_mockllm/verify"
        found: dict[str, Any] = {}
        if exchanges:
            with urllib.request.urlopen(url) as answer:
                found = json.load(answer)
    return outcome | _traffic(exchanges, shown.returned) | _verdict(found)


def measure_plain(
    name: str, case: str, over: str, environment: Path | None = None
) -> dict[str, Any]:
    """The same client and fault without mockllm."""
    with PlainServer(case) as server:
        program = ["env", sys.executable, str(PROGRAMS / "plain_server.py"), case, "--log"]
        url = f"{server.url}/mcp/weather"
        servers = {"weather": url if over == "http" else [*program, server.url]}
        outcome = run(name, server.url, servers, environment)
    return outcome | server.state.judgement()


def _traffic(exchanges: Sequence[Exchange], returned: str) -> dict[str, Any]:
    """What the journal shows: how often each thing was asked, and whether the result came back."""
    methods = [one.played.mcp[1] for one in exchanges if one.played.mcp is not None]
    asked = [one for one in exchanges if one.scenario in ("main", "alone")]
    last = asked[-1].body.decode("utf-8", "replace") if asked else ""
    return {
        "requests": len(asked),
        "offered": any(one.scenario == "main" for one in asked),
        "lists": methods.count("tools/list"),
        "tries": methods.count("tools/call"),
        "returned": bool(re.search(returned, last)) if returned else None,
    }


def _verdict(found: Mapping[str, Any]) -> dict[str, Any]:
    def said(name: str) -> dict[str, str]:
        return {one["invariant"]: one["message"] for one in found[name]}

    if not found:
        return {"verdict": "no requests"}
    return {
        "verdict": found["verdict"],
        "operations": len(found.get("calls", ())),
        "violations": said("violations"),
        "remarks": said("remarks"),
        "unplayed": len(found["unplayed"]),
        "refused": len(found["unmatched"]) + len(found["invalid"]),
        "unknown": [*found["gaps"], *found.get("doubtful", ())],
    }


# Results and the page

Outcome = Mapping[str, Any]


def measured() -> dict[str, Any]:
    """The results, by clients: date, versions and cells."""
    found: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    return found


def cells_of(client: Client) -> list[tuple[str, str]]:
    """The cases of a client, each with a transport."""
    return [
        (name, over)
        for name, case in CASES.items()
        if client.several or not case.servers
        for over in case.over
    ]


_MAY_HAVE_RUN = ("reset", "cut", "empty", "html", "unknown-id", "stall", "exit")
"""Faults after which a tool may have done its work."""

_HARMLESS = ("resumed", "progress", "tools", "noise")
"""What a right client gets the result under."""


def behaviour(case: str, outcome: Outcome) -> str:
    """The behaviour of a client under a fault; bold is what a test has to look out for."""
    if outcome["exit"] is None:
        words = "**waits**"
    elif not outcome["offered"]:
        ended = "ends with an error" if outcome["exit"] else "**goes on without tools, exit 0**"
        words = ended
    elif not outcome["done"]:
        later = "error to the model, " if outcome["requests"] > 1 else ""
        ended = "ends with an error" if outcome["exit"] else "**exit 0 without an answer**"
        words = f"{later}{ended}"
    elif outcome["returned"]:
        words = "**taken for the result**" if case == "unknown-id" else "result"
    else:
        words = "**result lost**" if case in _HARMLESS else "error to the model"
    if outcome["tries"] > 1:
        times = {2: "twice"}.get(outcome["tries"], f"{outcome['tries']} times")
        again = f"called {times}"
        words = f"{words}, {f'**{again}**' if case in _MAY_HAVE_RUN else again}"
    if case == "tools" and outcome["lists"] > 1:
        kept = "list-change-ignored" in outcome.get("remarks", ())
        words += f", lists again, {'old' if kept else 'new'} tools in the next request"
    return words


def is_accusation(words: str) -> bool:
    """Whether words say something that a client could do better."""
    return "**" in words or "ends" in words


def _fault_cell(case: str, results: Mapping[str, Any]) -> str:
    """The text of a cell; `?` is what was not seen without mockllm."""
    shown = {}
    for over in FAULTS[case].over:
        key = f"{case}:{over}"
        words = behaviour(case, results["cells"][key])
        if is_accusation(words):
            again = results["plain"].get(key)
            words += "" if again and behaviour(case, again) == words else " ?"
        shown[over] = words
    if len({*shown.values()}) == 1:
        return next(iter(shown.values()))
    names = {"http": "HTTP", "stdio": "stdio"}
    return "; ".join(f"{names[over]}: {words}" for over, words in shown.items())


LEFT_OUT = "media-left-out"
"""The remark about what did not come back, which is done again without mockllm."""


def _right_words(outcome: Outcome, again: Outcome) -> str:
    """What a client does where nothing fails.

    Args:
        again: the same without mockllm, where it says something bad.
    """
    if not outcome["done"]:
        return f"ends with an error{' ?' if again['done'] else ''}"
    broken = [f"**{name}**" for name in outcome["violations"]]
    kept = again["returned"]
    remarks = [f"{one} ?" if one == LEFT_OUT and kept else one for one in outcome["remarks"]]
    return ", ".join(["good", *broken, *remarks])


def _right_cell(case: str, results: Mapping[str, Any]) -> str:
    keys = [f"{case}:{over}" for over in RIGHT[case].over]
    fine = {"done": True, "returned": True}
    shown = [
        _right_words(results["cells"][key], results["plain"].get(key, fine))
        for key in keys
        if key in results["cells"]
    ]
    return " / ".join(dict.fromkeys(shown)) or "–"


GROUPS = {"libraries for Python": "py", "libraries for JavaScript": "mjs", "coding agents": ""}


def tables(results: Mapping[str, Any]) -> Iterator[str]:
    """The tables of the page."""
    yield "| client | versions, date | " + " | ".join(case.shown for case in RIGHT.values()) + " |"
    yield "|---" * (len(RIGHT) + 2) + "|"
    for name, one in results.items():
        cells = [_right_cell(case, one) for case in RIGHT]
        versions = ", ".join([*one["versions"], one["date"]])
        yield f"| {clients()[name].title} | {versions} | {' | '.join(cells)} |"
    for group, end in GROUPS.items():
        names = [name for name in results if clients()[name].program.rpartition(".")[2] == end]
        yield f"\n## Where the server fails: {group}\n"
        yield f"| the server | {' | '.join(clients()[name].title for name in names)} |"
        yield "|---" * (len(names) + 1) + "|"
        for case, fault in FAULTS.items():
            cells = [_fault_cell(case, results[name]) for name in names]
            yield f"| {fault.shown} | {' | '.join(cells)} |"


def _measure_all(name: str, chosen: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The new cells of a client, and without mockllm those that say something bad of it."""

    def one(cell: tuple[str, str]) -> Outcome:
        outcome = measure(name, *cell)
        print(name, *cell, json.dumps(outcome), flush=True)
        return outcome

    versions = _versions(name)  # which installs the client first
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        found = [*pool.map(one, chosen)]
    return {
        "versions": versions,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "cells": {":".join(cell): outcome for cell, outcome in zip(chosen, found, strict=True)},
    }


def accused(results: Mapping[str, Any]) -> list[str]:
    """The cells of a client that say something bad of it."""

    def is_bad(case: str, outcome: Outcome) -> bool:
        if case in FAULTS:
            return is_accusation(behaviour(case, outcome))
        return not outcome["done"] or LEFT_OUT in outcome["remarks"]

    cells = results["cells"].items()
    return [key for key, outcome in cells if is_bad(key.partition(":")[0], outcome)]


def _reproduce(name: str, keys: Sequence[str]) -> dict[str, Any]:
    """Cells of a client, measured without mockllm."""

    def one(key: str) -> Outcome:
        outcome = measure_plain(name, *key.split(":"))
        print(name, *key.split(":"), "plain", json.dumps(outcome), flush=True)
        return outcome

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return dict(zip(keys, pool.map(one, keys), strict=True))


def _write(name: str, new: Mapping[str, Any]) -> None:
    results = measured()
    results[name] = {**results.get(name, {}), **new}
    ordered = {one: results[one] for one in clients() if one in results}
    RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", "utf-8")


def main(words: Sequence[str]) -> None:
    """Measures clients, or writes the page."""
    if words == ["page"]:
        text = PAGE.read_text("utf-8")
        PAGE.write_text(with_table(text, "\n".join(tables(measured()))), "utf-8")
        return
    for word in words or clients():
        name, case, over = [*word.split(":"), "", ""][:3]
        chosen = [
            cell
            for cell in cells_of(clients()[name])
            if case in ("", cell[0]) and over in ("", cell[1])
        ]
        known = measured().get(name, {})
        if case != "plain":
            new = _measure_all(name, chosen)
            new["cells"] = {**known.get("cells", {}), **new["cells"]}
            again = {":".join(cell) for cell in chosen}
            plain = {k: v for k, v in known.get("plain", {}).items() if k not in again}
            known = {**new, "plain": plain}
            _write(name, known)
        plain, bad = known.get("plain", {}), accused(known)
        new = _reproduce(name, [key for key in bad if key not in plain])
        _write(name, {"plain": {key: (plain | new)[key] for key in bad}})


if __name__ == "__main__":
    main(sys.argv[1:])
