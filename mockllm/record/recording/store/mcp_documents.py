"""Documents of recorded MCP servers, in a folder of scenarios."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mockllm.core.errors import ScenarioError
from mockllm.play.replay.loading import loads
from mockllm.record.recording.drafting.mcp_drafts import RecordedCall, draft_server
from mockllm.record.recording.store.locks import put
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.scrub import scrub
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Scenario


def document_file(name: str) -> str:
    """The name of the file of a server."""
    return f"mcp-{name}.yaml"


def write_server(folder: Path, name: str, calls: Iterable[RecordedCall], redactor: Redactor) -> str:
    """Writes the document of a server without secrets; returns what is in it, for people.

    Raises:
        ScenarioError: it could not be loaded again, and is not written.
    """
    server = draft_server(name, calls)
    file = document_file(name)
    data = dump(Scenario(f"mcp:{name}", (), server=server)).encode()
    found = scrub({file: data}, redactor)
    secrets = sum(len(one.findings) for one in found)
    content = found[0].content if found else data
    if content is None:
        raise ScenarioError([])
    loads(content.decode())
    folder.mkdir(parents=True, exist_ok=True)
    put(folder / file, content)
    hidden = f", {secrets} secrets hidden" if secrets else ""
    return f"{len(server.tools)} tools, {len(server.calls)} calls{hidden}"
