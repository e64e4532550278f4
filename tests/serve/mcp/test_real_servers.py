"""A real MCP server that keeps what it is told: recorded over each transport and in each era, it
plays over both transports and in both eras."""

import asyncio
import os
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from mockllm import ServerOptions, ServerThread
from mockllm.serve.server.options import RecordOptions

NOTES = """
import sqlite3, sys
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

database = sqlite3.connect(sys.argv[1], check_same_thread=False, isolation_level=None)
database.execute("create table notes (text)")
server = MCPServer("notes", instructions="Keep notes short.")

@server.tool(title="All notes")
def read() -> list[str]:
    return [text for text, in database.execute("select text from notes")]

@server.tool()
def add(text: str) -> str:
    if not text:
        raise ValueError("a note has a text")
    database.execute("insert into notes values (?)", [text])
    return "added"

@server.tool()
async def add_all(texts: list[str], context: Context) -> str:
    for number, text in enumerate(texts, 1):
        add(text)
        await context.report_progress(number, len(texts), text)
    return f"added {len(texts)}"

if len(sys.argv) > 2:
    server.run(transport="streamable-http", port=0)
else:
    server.run()
"""
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}


async def use(server: str | StdioServerParameters, mode: str) -> list[object]:
    """What a client gets that reads, writes and reads again, and tells what it sees on the way."""
    seen: list[object] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with Client(server, mode=mode) as client:
        seen += [tool.model_dump() for tool in (await client.list_tools()).tools]

        async def call(tool: str, **arguments: object) -> object:
            got = await client.call_tool(tool, arguments, progress_callback=note)
            texts = [block.text for block in got.content]
            return tool, texts, got.structured_content, got.is_error

        seen.append(await call("read"))
        seen.append(await call("add", text="milk"))
        seen.append(await call("read"))
        seen.append(await call("add", text=""))
        seen.append(await call("add_all", texts=["bread", "salt"]))
        seen += await asyncio.gather(call("read"), call("add", text="milk"))
        seen.append(await call("add", text="milk"))
        seen.append(await call("read"))
    return seen


@contextmanager
def running(database):
    """The address of the server as one over HTTP."""
    command = [sys.executable, "-c", NOTES, str(database), "http"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as program:
        try:
            lines = (re.search(r"running on (http://\S+)", line) for line in program.stderr)
            yield f"{next(found[1] for found in lines if found)}/mcp"
        finally:
            program.kill()


def bridge(url: str, *program: str) -> StdioServerParameters:
    """The server as a program: a real one that is recorded, or one that is played."""
    words = ["-m", "mockllm", "mcp", "notes", "--url", url, *(["--", *program] if program else [])]
    return StdioServerParameters(command=sys.executable, args=words, env=ENVIRONMENT)


def record(options: RecordOptions, use_server, *program: str) -> None:
    with ServerThread((), ServerOptions(record=options)) as thread:
        address = f"{thread.url}/mcp/notes"
        use_server(bridge(thread.url, *program) if program else address)


@pytest.mark.slow
@pytest.mark.parametrize("mode", REVISIONS)
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_a_server_with_a_memory_plays_everywhere(tmp_path, serve, transport, mode):
    """Each read has the answer of its time, with tools, progress and failures; nothing is lost."""
    folder, lines, seen = tmp_path / "recorded", [], []
    options = RecordOptions(folder=folder, servers={"notes": "stdio"}, report=lines.append)
    database = tmp_path / "notes.sqlite"

    def use_server(server: str | StdioServerParameters) -> None:
        seen.append(asyncio.run(use(server, mode)))

    if transport == "stdio":
        record(options, use_server, sys.executable, "-c", NOTES, str(database))
    else:
        with running(database) as url:
            record(RecordOptions(folder, servers={"notes": url}, report=lines.append), use_server)
    (line,) = lines
    assert not line.is_missing
    assert line.description == "mcp-notes.yaml: 3 tools, 9 calls, 9 found again"
    text = (folder / "mcp-notes.yaml").read_text()
    for era, revision in REVISIONS.items():
        for over in ("http", "stdio"):
            served = serve(text)
            address = f"{served.url}/mcp/notes" if over == "http" else bridge(served.url)
            assert asyncio.run(use(address, era)) == seen[0], (era, over)
            stated = {entry["mcp"]["revision"] for entry in served.journal()}
            assert stated - {""} == {revision}, (era, over)  # handshakes over stdio say it once
