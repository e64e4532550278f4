"""MCP servers in cassettes and in files of their recorders: documents that answer the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from mockllm.cli import main
from mockllm.record.importers.batch import import_files, totals
from mockllm.record.recording.drafting.matches import match_rule
from mockllm.record.recording.store.folder import Folder
from tests.serve.mcp.servers import call, result, send, texts

KEY = "sk-proj-" + "a1B2c3D4e5" * 5


def request(id, method, **params):
    """A message of a client."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


INFO = {"protocolVersion": "2025-11-25", "capabilities": {}, "instructions": "Ask.",
        "serverInfo": {"name": "Test Weather", "version": "1"}}  # fmt: skip
TOOL = {"name": "forecast", "inputSchema": {"type": "object"}}


def answered(text):
    """The result of a call."""
    return {"content": [{"type": "text", "text": text}], "isError": False}


PAIRS = [
    (request(0, "initialize", protocolVersion="2025-11-25"), INFO),
    (request(1, "tools/list"), {"tools": [TOOL]}),
    (request(2, "tools/call", name="forecast", arguments={"city": "Rome"}), answered("Rain")),
    (request("3", "tools/call", name="forecast", arguments={"city": "Oslo"}), answered(KEY)),
    (request(4, "prompts/list"), {"prompts": []}),
]
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def message(asked, given):
    """A message of a server."""
    return {"jsonrpc": "2.0", "id": asked["id"], "result": given}


def mcp_recorder():
    """A file of mcp-recorder."""
    entries = [
        {"type": "jsonrpc_request", "request": asked, "response": message(asked, given),
         "response_is_sse": True, "response_status": 200, "latency_ms": 7, "http_method": None}
        for asked, given in PAIRS
    ]  # fmt: skip
    told = {"type": "notification", "request": INITIALIZED, "response": None,
            "response_status": 202}  # fmt: skip
    ended = {"type": "lifecycle", "request": None, "response": None, "response_status": 200,
             "http_method": "DELETE", "http_path": "/mcp"}  # fmt: skip
    return json.dumps({"version": "1.0", "metadata": {}, "interactions": [*entries, told, ended]})


def mcp_vcr():
    """A file of mcp-vcr: the answers of the calls come in another order."""
    meta = {"version": 1, "session_id": "0a1b2c3d", "server_command": ["python", "server.py"],
            "schema_version": "1.0"}  # fmt: skip
    sent = [("c2s", asked) for asked, _ in PAIRS]
    sent.insert(1, ("c2s", INITIALIZED))
    sent += [("s2c", message(asked, given)) for asked, given in reversed(PAIRS)]
    messages = [{"t": at, "dir": side, "payload": one} for at, (side, one) in enumerate(sent)]
    return yaml.safe_dump({"meta": meta, "messages": messages}, sort_keys=False)


def vcr():
    """A cassette of vcrpy: JSON and events, and the rest of the session."""

    def entry(method, body, status, answer, kind):
        return {
            "request": {"method": method, "uri": "https://mcp.example.com/mcp", "body": body,
                        "headers": {"content-type": ["application/json"]}},
            "response": {"status": {"code": status, "message": "x"}, "body": {"string": answer},
                         "headers": {"content-type": [kind]}},
        }  # fmt: skip

    entries = []
    for asked, given in PAIRS:
        answer = json.dumps(message(asked, given))
        is_call = asked["method"] == "tools/call"
        kind = "text/event-stream" if is_call else "application/json"
        shown = f"event: message\ndata: {answer}\n\n" if is_call else answer
        entries.append(entry("POST", json.dumps(asked), 200, shown, kind))
    entries.insert(1, entry("POST", json.dumps(INITIALIZED), 202, "", "text/plain"))
    entries.append(entry("DELETE", None, 200, "", "text/plain"))
    return yaml.safe_dump({"version": 1, "interactions": entries})


@pytest.mark.parametrize(
    ("file", "content"),
    [("a.json", mcp_recorder()), ("b.yaml", mcp_vcr()), ("c.yaml", vcr())],
    ids=["mcp-recorder", "mcp-vcr", "vcr"],
)
def test_a_server_of_a_file_answers_the_same(serve, tmp_path, file, content):
    """Its document has tools, instructions and calls, without secrets; the rest has a reason."""
    source, out = tmp_path / file, tmp_path / "out"
    source.write_text(content)
    results = import_files([source], Folder(out))
    skipped = [one.request for one in results if one.line.outcome == "skipped"]
    assert {"notifications/initialized"} <= set(skipped)
    assert any("prompts/list" in one or "POST" in one for one in skipped)
    assert totals(results)["neutral"] == 4
    assert any(str(one).endswith("tools/call forecast -> MCP server test-weather")
               for one in results)  # fmt: skip
    assert [path.name for path in out.glob("*.yaml")] == ["mcp-test-weather.yaml"]
    text = (out / "mcp-test-weather.yaml").read_text()
    assert KEY not in text
    assert "instructions: Ask." in text
    served = serve(text)
    place = "/mcp/test-weather"
    assert result(served, "tools/list", path=place)["tools"] == [TOOL]
    assert texts(call(served, "forecast", {"city": "Rome"}, path=place)) == ["Rain"]


def recorded(*entries, **fields):
    """A file of mcp-recorder with some requests and their answers."""
    made = [
        {"type": "jsonrpc_request", "request": asked, "response": answer, **fields, **more}
        for asked, answer, more in entries
    ]
    return json.dumps({"version": "1.0", "interactions": made})


def called(text, status=200, **arguments):
    """A call with its answer, or an HTTP error."""
    asked = request(1, "tools/call", name="forecast", arguments=arguments)
    answer = message(asked, answered(text)) if status == 200 else None
    return asked, answer, {"response_status": status}


def test_http_errors_are_tries_and_answers_come_in_their_order(serve, tmp_path):
    """As when the file was made; what is to be ignored is."""
    out, run = tmp_path / "out", "6f1c0c0e-2f4b-4a7e-9d0a-3f0f6f1c0c0{}"
    (tmp_path / "a.json").write_text(
        recorded(
            called("", 503, city="Rome"), called("Rain", city="Rome"), called("Sun", city="Rome"),
            called("x", run=run.format(1)), called("y", run=run.format(2)),
        )
    )  # fmt: skip
    results = import_files([tmp_path / "a.json"], Folder(out), match=match_rule(None, ("uuid",)))
    assert (totals(results)["neutral"], totals(results)["not_found"]) == (5, 0)
    served = serve((out / "mcp-a.yaml").read_text())
    params = {"name": "forecast", "arguments": {"city": "Rome"}}
    place = "/mcp/a"
    assert send(served, "tools/call", params, path=place).status_code == 503
    assert [texts(call(served, "forecast", {"city": "Rome"}, path=place)) for _ in range(2)] == [
        ["Rain"], ["Sun"],
    ]  # fmt: skip
    assert texts(call(served, "forecast", {"run": run.format(3)}, path=place)) == ["x"]


def test_a_request_that_is_not_found_again_is_said(tmp_path):
    """With its reason, and in the exit code; the others are imported."""
    first, second = (
        (request(1, "tools/list"), message(request(1, ""), {"tools": [{**TOOL, "name": name}]}), {})
        for name in ("a", "b")
    )
    (tmp_path / "a.json").write_text(recorded(first, second, response_status=200))
    done = CliRunner().invoke(
        main, ["import", str(tmp_path / "a.json"), "-o", str(tmp_path / "out")]
    )
    assert done.exit_code == 2
    why = "NOT FOUND AGAIN: tools/list: what it gets.tools[0].name must be 'a', got 'b'"
    assert f"a.json#1  tools/list -> MCP server a: {why}\n" in done.output
    assert "1 NOT FOUND AGAIN" in done.output


def test_files_of_one_server_are_one_document_that_stays(tmp_path: Path):
    """A second import changes nothing of it, and says so."""
    out = tmp_path / "out"
    for name, content in (("a.json", mcp_recorder()), ("b.yaml", mcp_vcr())):
        (tmp_path / name).write_text(content)
    import_files([tmp_path / "a.json", tmp_path / "b.yaml"], Folder(out))
    (written,) = out.glob("*.yaml")
    before = written.read_bytes()
    again = import_files([tmp_path / "a.json"], Folder(out))
    assert totals(again)["skipped"] == len(again)
    assert sum("is in the folder already" in one.details for one in again) == 4
    assert written.read_bytes() == before
