"""`mockllm import` of recordings of other tools, and `mockllm export`."""

import json

import pytest
import yaml

from mockllm.play.replay.loading import load
from mockllm.record.importers import vcr
from mockllm.record.importers.foreign_files import ForeignFile

URL = "https://api.openai.com/v1/chat/completions"


def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
    return f"data: {json.dumps({**head, 'choices': [choice]}, separators=(',', ':'))}\n\n"


STREAM = (
    chunk({"role": "assistant", "content": ""})
    + chunk({"content": "Hel"})
    + chunk({"content": "lo"})
    + chunk({}, "stop")
    + "data: [DONE]\n\n"
)


SSE = "text/event-stream"


def interaction(user, body=STREAM, url=URL, key=f"sk-proj-{'0123456789abcdef' * 2}", content=SSE):
    messages = [{"role": "user", "content": user}]
    sent = {"model": "gpt-4o", "stream": True, "messages": messages}
    headers = {"Content-Type": ["application/json"], "Authorization": [f"Bearer {key}"]}
    request = {"method": "POST", "uri": url, "body": json.dumps(sent), "headers": headers}
    answered = {"headers": {"Content-Type": [content]}, "body": {"string": body}}
    return {"request": request, "response": {**answered, "status": {"code": 200, "message": "OK"}}}


@pytest.fixture
def recorded(tmp_path):
    """A cassette with two conversations, a route that asks no model, and no exchange."""
    entries = [
        interaction("Say hello"),
        interaction("Say it oddly", '{"choices": [{"message": null}]}', content="application/json"),
        interaction("x", url="https://api.openai.com/v1/moderations"),
        {"request": {}},
    ]
    path = tmp_path / "cassette.yaml"
    path.write_text(yaml.dump({"interactions": entries, "version": 1}))
    return path


def test_a_line_for_each_exchange(mockllm, recorded, tmp_path):
    """Each exchange has a line with its outcome, and with what only the tape has."""
    result = mockllm("import", recorded, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    first, second, third, fourth, total, last = result.output.splitlines()
    request = "POST /v1/chat/completions"
    assert first == f"{recorded}#1  {request} -> scenario cassette turn 1: neutral"
    began = f"{recorded}#2  {request} -> scenario cassette-2 turn 1: only the tape has all of it ("
    assert second.startswith(began)
    assert third.startswith(f"{recorded}#3  POST /v1/moderations -> scenario cassette-3 turn 1: ")
    assert fourth == f"{recorded}#4 -> skipped: it has no request with its response"
    assert total == ("4 exchanges: 2 neutral, 1 in part, 1 skipped; 3 scenarios")
    assert last == f"next: mockllm serve {tmp_path / 'out'}"
    names = {scenario.name for scenario in load([tmp_path / "out"])}
    assert names == {"cassette", "cassette-2", "cassette-3"}


def test_the_report_as_json(mockllm, recorded, tmp_path):
    """`--json` prints an entry for each exchange, and the totals."""
    result = mockllm("import", recorded, "-o", tmp_path / "out", "--json")
    report = json.loads(result.output)
    first = report["exchanges"][0]
    assert first == {
        "source": f"{recorded}#1",
        "asked": "POST /v1/chat/completions",
        "outcome": "neutral",
        "scenario": "cassette",
        "turn": 0,
        "words": "",
        "not_found": "",
    }
    outcomes = [exchange["outcome"] for exchange in report["exchanges"]]
    assert outcomes == ["neutral", "partial", "neutral", "skipped"]
    assert report["exchanges"][3]["scenario"] is None
    assert report["totals"]["scenarios"] == 3


def test_nothing_imported(mockllm, tmp_path):
    """If nothing was imported the exit code is 1, and each file that is named has a reason."""
    folder = tmp_path / "cassettes"
    folder.mkdir()
    (folder / "a.yaml").write_text("scenario: a\nturns: []\n")
    (folder / "b.yaml").write_text("interactions: [!!python/object:os.x {}]\n")
    (folder / "c.py").write_text("x = 1\n")
    result = mockllm("import", folder / "a.yaml", folder, "-o", tmp_path / "out")
    assert result.exit_code == 1
    first, second, others, total = result.output.splitlines()
    assert first == (
        f"{folder}/a.yaml -> skipped: it is no VCR cassette, HTTP archive, recording of nock, "
        "httprr, mcp-recorder or mcp-vcr, event stream or fixture file of aimock"
    )
    assert "!!python/object:os.x, which names a Python object" in second
    assert others == "1 file of another kind was not read: 1 *.py (c.py)"
    assert total.startswith("2 exchanges: 0 neutral")


def test_files_of_other_kinds(mockllm, recorded, tmp_path):
    """Files in a folder that are no recordings are counted in a line, and listed in JSON."""
    for name in ("package.json", "LICENSE", "test_it.py"):
        (tmp_path / name).write_text("{}")
    result = mockllm("import", tmp_path, "-o", tmp_path / "out")
    assert result.exit_code == 0
    line = (
        "3 files of other kinds were not read: 1 without an ending (LICENSE), 1 *.json "
        "(package.json), 1 *.py (test_it.py)"
    )
    assert result.output.splitlines()[-3] == line
    result = mockllm("import", tmp_path / "LICENSE", tmp_path, "-o", tmp_path / "2", "--json")
    report = json.loads(result.output)
    assert f"{tmp_path}/package.json" in report["not_read"]
    assert report["exchanges"][0]["source"] == f"{tmp_path}/LICENSE"


def test_a_file_that_is_not_there(mockllm, tmp_path):
    """A missing file is an error with exit code 2."""
    result = mockllm("import", tmp_path / "no.yaml", "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "no.yaml' does not exist" in result.stderr
    assert not (tmp_path / "out").exists()


def test_importing_again_changes_nothing(mockllm, recorded, tmp_path):
    """Exchanges that the folder already has are skipped, with exit code 1."""
    mockllm("import", recorded, "-o", tmp_path / "out")
    before = sorted(path.name for path in (tmp_path / "out").iterdir())
    result = mockllm("import", recorded, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert result.output.count("skipped: it is in the folder already") == 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == before


def test_secrets_are_removed(mockllm, tmp_path):
    """Neither credentials nor matches of `--redact` are written."""
    path = tmp_path / "a.yaml"
    cassette = {"interactions": [interaction("My account is acct_4711")], "version": 1}
    path.write_text(yaml.dump(cassette))
    mockllm("import", path, "-o", tmp_path / "out", "--redact", "acct_[0-9]+")
    written = "".join(one.read_text() for one in (tmp_path / "out").glob("*.*"))
    assert "My account is" in written
    assert "4711" not in written
    assert "sk-proj" not in written


def test_configured_secrets(mockllm, tmp_path, monkeypatch):
    """`[redact]` of mockllm.toml and `--redact` are applied."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mockllm.toml").write_text('[redact]\njson_paths = ["$.user"]\n')
    path = tmp_path / "a.yaml"
    entry = interaction("Tell blue-monday")
    body = json.loads(entry["request"]["body"]) | {"user": "jane"}
    entry["request"]["body"] = json.dumps(body)
    path.write_text(yaml.dump({"interactions": [entry], "version": 1}))
    mockllm("import", path, "-o", "out", "--redact", "blue-[a-z]+")
    written = "".join(one.read_text() for one in (tmp_path / "out").glob("*.*"))
    assert "monday" not in written
    assert "jane" not in written


def test_match(mockllm, recorded, tmp_path):
    """`--match` names the conditions of the imported scenarios."""
    mockllm("import", recorded, "-o", tmp_path / "out", "--match", "user,model")
    found = {scenario.name: scenario.match for scenario in load([tmp_path / "out"])}["cassette"]
    assert (found.model, found.user.value) == ("gpt-4o", "Say hello")
    result = mockllm("import", recorded, "-o", tmp_path / "out", "--match", "colour")
    assert result.exit_code == 2
    assert "'colour' is none of user, system, model, tools, or none" in result.stderr


def test_join(mockllm, tmp_path):
    """The exchanges of different files are one conversation with `--join` only."""
    first, second = interaction("Say hello"), interaction("Say hello")
    sent = json.loads(second["request"]["body"])
    sent["messages"] += [
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Again"},
    ]
    second["request"]["body"] = json.dumps(sent)
    for name, entry in (("a", first), ("b", second)):
        (tmp_path / f"{name}.yaml").write_text(yaml.dump({"interactions": [entry], "version": 1}))
    files = (tmp_path / "a.yaml", tmp_path / "b.yaml")
    mockllm("import", *files, "-o", tmp_path / "apart")
    assert [len(scenario.turns) for scenario in load([tmp_path / "apart"])] == [1, 1]
    mockllm("import", *files, "-o", tmp_path / "joined", "--join")
    assert [len(scenario.turns) for scenario in load([tmp_path / "joined"])] == [2]


def test_flows_of_mitmproxy(mockllm, tmp_path):
    """A flow file is skipped; its line has the command that writes an archive of it."""
    path = tmp_path / "my traffic.flows"
    path.write_bytes(b"20:7:version;2:21#4:type;4:http;}")
    result = mockllm("import", tmp_path, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == (
        f"{path} -> skipped: it has flows of mitmproxy; import an archive of them: "
        f"mitmdump -nr '{path}' --set hardump='{path.with_suffix('.har')}'"
    )


def test_fixtures_of_aimock(mockllm, tmp_path):
    """Fixtures become scenarios; one that the folder answers equally is skipped."""
    entry = {"match": {"userMessage": "hello"}, "response": {"content": "Hi!"}}
    path = tmp_path / "fixtures.json"
    path.write_text(json.dumps({"fixtures": [entry, {"match": {}, "response": {}}]}))
    result = mockllm("import", path, "-o", tmp_path / "out")
    first, second, *_ = result.output.splitlines()
    assert first == f"{path}#1 -> scenario hello turn 1: neutral"
    assert second.startswith(f"{path}#2 -> skipped: its response has no")
    again = mockllm("import", path, "-o", tmp_path / "out")
    assert "#1 -> skipped: the scenario hello in the folder answers the same" in again.output
    assert again.exit_code == 1


def test_export_and_import_are_inverse(mockllm, recorded, tmp_path):
    """An imported cassette is exported with equal exchanges, and imports to an equal scenario."""
    mockllm("import", recorded, "-o", tmp_path / "out")
    back = tmp_path / "back.yaml"
    arguments = ("cassette-2", "--scenarios", tmp_path / "out", "--to", "vcr")
    assert mockllm("export", *arguments, "-o", back).exit_code == 0
    (one,) = vcr.read(ForeignFile(back))
    original = vcr.read(ForeignFile(recorded))[1]
    assert (one.body, one.request_body) == (original.body, original.request_body)
    assert (one.url, one.status) == (original.url, original.status)
    assert mockllm("export", *arguments).output == back.read_text()
    mockllm("import", back, "-o", tmp_path / "again")
    (first,) = [s for s in load([tmp_path / "out"]) if s.name == "cassette-2"]
    (second,) = load([tmp_path / "again"])
    # Name and description name the file.
    assert first.turns[0].reply == second.turns[0].reply
    assert first.match == second.match


def test_export_of_a_handwritten_scenario(mockllm, tmp_path):
    """A hand-written scenario is exported with the requests of a client."""
    result = mockllm("export", "secret-numbers", "--to", "vcr", "--api", "anthropic")
    (tmp_path / "a.yaml").write_text(result.output)
    found = vcr.read(ForeignFile(tmp_path / "a.yaml"))
    assert [one.path for one in found] == ["/v1/messages"] * len(found)
    assert len(found) > 1
    assert "tool_result" in found[1].request_body.decode()


def test_export_of_an_unknown_name_or_format(mockllm):
    """An unknown name or format is an error with exit code 2."""
    assert mockllm("export", "secret-number", "--to", "vcr").exit_code == 2
    assert mockllm("export", "secret-numbers", "--to", "zip").exit_code == 2
