"""Coding agents on the command line, when the service fails them.

python -m measurements.measure_agents [AGENT...]  # claude, codex, gemini, opencode; half an hour
python -m measurements.measure_agents page        # writes the table of docs/test-coding-agents.md

The agents are those that `make agents` installs. Each gets a call that writes a line to a file, so
that a half call shows if it was executed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from measurements.entries import ROOT
from measurements.fault_page import with_table
from mockllm import ServerOptions, ServerThread, loads
from mockllm.checking.rules import table
from mockllm.conformance.agents.launch import TIMED_OUT, prepare, run_agent
from mockllm.serve.server.control.control_routes import base_urls
from mockllm.wire.protocols.environment import client_environment

RESULTS = ROOT / "measurements" / "agents.json"
PAGE = ROOT / "docs" / "test-coding-agents.md"
INSTALLED = ROOT / "tests" / "coding_agents" / "node_modules" / ".bin"
LIMIT = 40.0
"""Seconds after which an agent that goes on is ended."""

PROMPT = "XBREAK: append a line to ran.txt"
_REASON = "XREASON"
_COMMAND = "echo ran >> ran.txt"


@dataclass(frozen=True)
class Agent:
    """An agent: the API it speaks, its tool for commands, and the name of the command in it.

    Args:
        opening: what comes before the call. Claude Code and Codex keep a text that was whole when
            the stream was cut, and send it as the beginning of the answer.
        place: of a cut. Arguments of Gemini are one event.
    """

    api: str
    tool: str
    argument: str = "command"
    more: Mapping[str, str] | None = None
    opening: str = ""
    place: str = "inside: call_1 arguments"


AGENTS = {
    "claude": Agent("anthropic", "Bash", more={"description": "d"}),
    "codex": Agent("responses", "exec_command", "cmd"),
    "gemini": Agent(
        "gemini", "run_shell_command", opening="{text: Let me see.}, ", place="after: 1 events"
    ),
    "opencode": Agent("chat", "bash", more={"description": "d"}),
}


@dataclass(frozen=True)
class Fault:
    """A row of the table.

    Args:
        turn: of the scenario; CALL stands for a call, BROKEN for one whose arguments end early,
            PLACE for that of a cut.
        reason: a pattern that the output has where the user gets to know why; "" where there is
            nothing to say.
        word: of the prompt, by which the scenario is found.
    """

    shown: str
    turn: str
    reason: str = ""
    word: str = "XBREAK"


def _status(status: int, retry_after: str = "") -> str:
    wait = f", retry_after: {retry_after}" if retry_after else ""
    return f"{{status: {status}, error: {{message: {_REASON} comes here}}{wait}}}"


_ENDED = (
    r"(?i)connection|terminated|closed|premature|incomplete|disconnect|ended|reset|abort|truncat"
)
FAULTS = {
    "429-once": Fault(
        "429 with `retry-after: 6`, once",
        f"{{attempts: [{{http: {_status(429, '6s')}}}], reply: [CALL]}}",
    ),
    "429": Fault(
        "429 with `retry-after: 1`, each time",
        f"{{http: {_status(429, '1s')}}}",
        rf"\b429\b|{_REASON}",
    ),
    "529": Fault("529, each time", f"{{http: {_status(529)}}}", rf"\b529\b|{_REASON}"),
    "503": Fault("503, each time", f"{{http: {_status(503)}}}", rf"\b503\b|{_REASON}"),
    "cut-once": Fault(
        "cut inside the arguments of a call, once",
        "{attempts: [{fault: {cut: {PLACE}}}], reply: [CALL]}",
    ),
    "cut": Fault("the same, each time", "{fault: {cut: {PLACE}}, reply: [CALL]}", _ENDED),
    "orderly": Fault(
        "the same, and the HTTP body ends as it should",
        "{fault: {cut: {PLACE, end: orderly}}, reply: [CALL]}",
        _ENDED,
    ),
    "overloaded": Fault(
        "overloaded, after status 200",
        "{fault: {error: {after: 1 events, kind: overloaded}}, reply: [CALL]}",
        r"(?i)overload|capacity|unavailable|exhausted",
    ),
    "stall": Fault(
        "nothing more after some events",
        "{fault: {stall: {after: 1 events}}, reply: [CALL]}",
        r"(?i)time",
    ),
    "no-json": Fault("arguments that are no JSON", "{reply: [BROKEN]}"),
    "unknown-tool": Fault(
        "a call of a tool that is not offered",
        "{reply: [{tool: no_such_tool, id: call_1, arguments: {a: b}, malformed: true}]}",
    ),
    "empty": Fault("an empty answer", "{reply: [{text: ''}], repeat: true}", r"(?i)empty|no resp"),
    "length": Fault(
        "the token limit in a text",
        "{reply: [{text: Half an answer}], finish: length, repeat: true}",
        r"(?i)token|limit|length|trunc|incomplete",
    ),
    "length-call": Fault(
        "the token limit in a call",
        "{reply: [BROKEN], finish: length}",
        r"(?i)token|limit|length|trunc|incomplete",
    ),
    "404": Fault(
        "mockllm has no scenario", "{reply: [CALL]}", "No scenario answers", word="XOTHER"
    ),
    "400": Fault(
        "mockllm refuses the request",
        "{request: {user: XNEVER}, reply: [CALL]}",
        "XNEVER",
    ),
}


def scenarios(agent: Agent, fault: Fault) -> str:
    """The scenarios of a cell, as YAML; the title is what opencode asks for first."""
    arguments = {agent.argument: _COMMAND, **(agent.more or {})}
    text = json.dumps(arguments)
    call = {"tool": agent.tool, "id": "call_1", "arguments": arguments, "split": 4}
    broken = {**call, "arguments": text[: text.index(" >>") + 6], "malformed": True}
    turn = fault.turn.replace("PLACE", agent.place)
    turn = turn.replace("CALL", f"{agent.opening}{json.dumps(call)}")
    turn = turn.replace("BROKEN", json.dumps(broken))
    last = "" if "repeat" in turn else "\n  - {reply: {text: All done.}, repeat: true}"
    offered = f"\nmatch: {{user: {fault.word}, tools: [{agent.tool}]}}"
    return (
        f"scenario: main\napis: [{agent.api}]{offered}\nturns:\n  - {turn}{last}\n---\n"
        "scenario: title\nmatch: {user: XBREAK, system: title generator}\n"
        "turns: [{reply: {text: A title}, repeat: true}]\n"
    )


def measure(name: str, fault: str) -> dict[str, Any]:
    """One cell: an agent under a fault, in a folder and a HOME of its own."""
    options = ServerOptions(log=None)
    with (
        ServerThread(loads(scenarios(AGENTS[name], FAULTS[fault])), options) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work,
    ):
        led = {**client_environment(base_urls(server.url)), "MOCKLLM_URL": server.url}
        command = prepare(name, [PROMPT], Path(home), led, _environment())
        begun = time.monotonic()
        ended = run_agent(command, Path(work), LIMIT)
        seconds = time.monotonic() - begun
        exchanges = server.settled_exchanges("default", 5.0)
        ran = Path(work, "ran.txt")
        lines = len(ran.read_text().splitlines()) if ran.exists() else 0
    asked = [exchange for exchange in exchanges if exchange.scenario != "title"]
    said = f"{ended.output}\n{ended.errors.partition('mockllm: ')[0]}"
    return {
        "requests": len(asked),
        "statuses": [exchange.status for exchange in asked],
        "pauses": [round(b.received.at - a.received.at, 1) for a, b in pairwise(asked)],
        "seconds": round(seconds, 1),
        "exit": None if ended.exit_code == TIMED_OUT else ended.exit_code,
        "ran": lines,
        "done": "All done." in ended.output,
        "visible": bool(re.search(FAULTS[fault].reason, said)) if FAULTS[fault].reason else None,
        "output": _end_of(ended.output),
        "errors": _end_of(ended.errors),
    }


def _environment() -> dict[str, str]:
    """The variables of this process, with the installed agents on PATH."""
    return {**os.environ, "PATH": f"{INSTALLED}{os.pathsep}{os.environ['PATH']}"}


def _end_of(text: str) -> list[str]:
    """The last lines that say something, without what is of one run."""
    lines = [re.sub(r"\x1b\[[0-9;]*m|/tmp/[\w./-]+", "", line).strip() for line in text.split("\n")]
    return [line[:160] for line in lines if line][-4:]


def measured() -> dict[str, Any]:
    """The results, by agents: date, version and faults."""
    found: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    return found


def _measure_all(name: str, faults: Sequence[str]) -> dict[str, Any]:
    words = [INSTALLED / table("agents.yaml", "mockllm.conformance.agents")[name]["words"][0]]
    shown = subprocess.run(
        [*words, "--version"], env=_environment(), capture_output=True, text=True, check=True
    ).stdout
    version = re.search(r"\d+\.\d+\.\d+", shown)
    assert version is not None, shown
    cells = {}
    for fault in faults:
        cells[fault] = measure(name, fault)
        print(name, fault, json.dumps(cells[fault]), flush=True)
    return {"version": version[0], "date": f"{datetime.now(UTC):%Y-%m-%d}", "faults": cells}


def cell(outcome: Mapping[str, Any]) -> str:
    """The text of a cell: the behaviour of an agent; bold is what a test has to look out for."""
    count = outcome["requests"]
    # Before the last request of an agent that got through, its tool ran.
    pauses = outcome["pauses"][:-1] if outcome["done"] else outcome["pauses"]
    words = [f"{count} request{'s' * (count != 1)}"]
    if pauses and max(pauses) >= 0.5:
        low, high = min(pauses), max(pauses)
        words.append(f"pauses {low:g} to {high:g} s" if low != high else f"pause {low:g} s")
    if outcome["exit"] is None:
        words.append(f"**goes on after {LIMIT:g} s**")
    elif outcome["exit"] == 0 and not outcome["done"]:
        words.append("**exit 0**")
    else:
        words.append(f"exit {outcome['exit']}")
    if outcome["ran"] and not outcome["done"]:
        words.append("**call executed**")
    if outcome["visible"] is not None and not outcome["done"]:
        words.append("reason shown" if outcome["visible"] else "**reason hidden**")
    return ", ".join(words)


def tables(results: Mapping[str, Any]) -> Iterator[str]:
    """The table of the page: a row a fault, a column an agent."""
    titles = {name: table("agents.yaml", "mockllm.conformance.agents")[name] for name in results}
    versions = [
        f"{titles[name]['title']} {one['version']}, {one['date']}" for name, one in results.items()
    ]
    yield f"| the service sends | {' | '.join(versions)} |"
    yield "|---" * (len(versions) + 1) + "|"
    for name, fault in FAULTS.items():
        cells = [cell(one["faults"][name]) for one in results.values()]
        yield f"| {fault.shown} | {' | '.join(cells)} |"


def main(words: Sequence[str]) -> None:
    """Measures agents, `AGENT` or `AGENT:FAULT`, or writes the page."""
    if words == ["page"]:
        text = PAGE.read_text("utf-8")
        PAGE.write_text(with_table(text, "\n".join(tables(measured()))), "utf-8")
        return
    for word in words or AGENTS:
        name, _, fault = word.partition(":")
        new = _measure_all(name, [fault] if fault else list(FAULTS))
        results = measured()
        if fault and name in results:
            new["faults"] = {**results[name]["faults"], **new["faults"]}
        results[name] = new
        ordered = {agent: results[agent] for agent in AGENTS if agent in results}
        RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
