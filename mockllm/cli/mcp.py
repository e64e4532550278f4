"""`mockllm mcp`: an MCP server of mockllm for agents, as a program or in their configuration."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from typing import Any

import click

from mockllm.cli.options.parameters import AGENT_NAMES
from mockllm.cli.terminal.output import echo, write_bytes
from mockllm.core.errors import UsageError

_STDIO = "-stdio"
"""The end of the name of an agent that starts the program, in place of having a URL."""


@click.command()
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
@click.option("--url", help="Where the server listens; default: MOCKLLM_URL.  [default: "
              "http://127.0.0.1:8080]")  # fmt: skip
@click.option("--session", metavar="NAME", help="The session that the calls belong to.")
@click.option(
    "--config",
    type=click.Choice(
        [f"{agent}{end}" for agent in AGENT_NAMES.split("|") for end in ("", _STDIO)]
    ),
    help="Print what an agent's configuration has for the server: its URL, or this program.",
)
def mcp(
    name: str, command: tuple[str, ...], url: str | None, session: str | None, config: str | None
) -> None:
    """Be the MCP server NAME over standard input and output.

    For agents that start their servers as programs. Messages go to a running mockllm, which plays
    the document `mcp: NAME`. Agents often start programs without their environment, so give the
    address as an option.

    With CMD it is a real server: CMD answers, and a running 'mockllm record --upstream
    mcp:NAME=stdio' gets what passed. The exit code is that of CMD.

    \b
    Examples:
      mockllm mcp weather --url http://127.0.0.1:8080
      mockllm mcp weather -- npx -y weather-server
      mockllm mcp weather --config claude > mcp.json
      mockllm mcp weather --config codex-stdio >> ~/.codex/config.toml
    """
    from mockllm.serve.mcp.bridge import Bridge

    root = (url or os.environ.get("MOCKLLM_URL") or "http://127.0.0.1:8080").rstrip("/")
    if session is not None:
        root = f"{root}/s/{session}"
    if config is not None:
        program = [sys.executable, "-m", "mockllm", "mcp", name, "--url", root]
        program += ["--", *command] if command else []
        started = program if config.endswith(_STDIO) else []
        agent = config.removesuffix(_STDIO)
        echo(_configuration(agent, name, f"{root}/mcp/{name}", started))
        return
    bridge = Bridge(f"{root}/mcp/{name}", write_bytes, partial(echo, err=True))
    try:
        bridge.check()
    except OSError as error:
        echo(f"mockllm mcp: nothing listens at {root}: {error}", err=True)
        sys.exit(1)
    if not command:
        bridge.run(sys.stdin.buffer)
        return
    try:
        code = bridge.record(command, sys.stdin.buffer)
    except OSError as error:
        raise UsageError(f"cannot start {command[0]!r}: {error.strerror or error}") from None
    os._exit(code if code >= 0 else 128 - code)  # a thread may still wait for the agent's lines


def _configuration(agent: str, name: str, url: str, program: list[str]) -> str:
    """The part of the configuration of an agent that has the server.

    Args:
        program: that the agent starts; [] for a URL.
    """
    started = {"command": program[0], "args": program[1:]} if program else {}
    if agent == "codex":
        keys = started or {"url": url}
        lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        return "\n".join([f"[mcp_servers.{name}]", *lines])
    servers: dict[str, Any] = {
        "claude": {"mcpServers": {name: started or {"type": "http", "url": url}}},
        "gemini": {"mcpServers": {name: started or {"httpUrl": url}}},
        "opencode": {
            "mcp": {
                name: {"type": "local", "command": program}
                if program
                else {"type": "remote", "url": url}
            }
        },
    }
    return json.dumps(servers[agent], indent=2)
