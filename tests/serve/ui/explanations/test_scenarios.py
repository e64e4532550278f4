"""The scenarios in the page: their entries and texts, and texts to copy that work."""

from __future__ import annotations

import shutil
import subprocess
import sys

import httpx
import pytest

from mockllm import ServerOptions, ServerThread
from mockllm.play.replay.loading import load, loads, shipped_scenarios
from mockllm.serve.ui import live_page
from mockllm.serve.ui.scenario_json import curl_texts, scenario_entry, scenario_json
from mockllm.serve.ui.scenario_json import test_text as copied_test
from mockllm.wire.protocols import PROTOCOLS
from tests.inner_pytest import ADDOPTS
from tests.timeouts import GIVE_UP

TWO = """\
# A comment before.
scenario: first
description: One.
turns:
  - reply: {text: "it's <b>5 $HOME `x` \\\\\\" \\u00e9 \\U0001f600"}
--- # the second
# its comment
scenario: second
match: {user: {regex: "^x"}}
tools: [{name: get, parameters: {type: object}}]
turns:
  - attempts: [{http: 429}]
    reply: [{text: Look.}, {parallel: [{tool: get, id: a}, {tool: get, id: b}]}]
  - request: {results: {a: "it's 4'2"}}
    reply: {text: Done.}
  - http: 503
---
scenario: files
route: POST /v1/files/{id}/parts
match: {query: {kind: {equals: "a b"}}, body: {n: 1}}
turns:
  - answer: {status: 201, json: {}}
---
scenario: broken
turns:
  - fault: {cut: {after: 1 events}}
    reply: {text: Some text.}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "it's two.yaml"
    path.write_text(TWO, encoding="utf-8")
    return path


def shown(scenario, problems=()):
    return scenario_json(scenario, scenario_entry(scenario, {0: 2}), problems, "http://x:1")


def test_entries_say_what_scenarios_do(file):
    first, second, files, broken = (scenario_entry(scenario, {0: 2}) for scenario in load(file))
    assert (first["name"], first["description"], first["line"]) == ("first", "One.", 2)
    assert first["apis"] == list(PROTOCOLS)
    assert first["played"] == {"0": 2}
    assert second["turns"] == [
        {"index": 0, "title": "Look. · get() + get()", "attempts": 2},
        {"index": 1, "title": "Done.", "attempts": 1},
        {"index": 2, "title": "HTTP 503", "attempts": 1},
    ]
    assert (second["tools"], second["tags"]) == (["get"], ["error", "retry"])
    assert (files["route"], files["apis"]) == ("POST /v1/files/{id}/parts", [])
    assert broken["tags"] == ["fault", "only by name"]
    assert broken["turns"][0]["title"] == "Some text. · fault cut"


def test_the_text_is_that_of_its_document_with_its_lines(file):
    lines = TWO.split("\n")
    for scenario in load(file):
        found = shown(scenario)
        assert found["text_why"] == ""
        text = found["text"].rstrip("\n").split("\n")
        assert text == lines[found["first_line"] - 1 :][: len(text)]
        assert loads(found["text"]) == (scenario,)
    assert shown(load(file)[1])["text"].startswith("# its comment\n")


def test_a_server_is_shown_as_it_is_written(tmp_path):
    """It has no turns, so there is nothing to play and no command."""
    text = "mcp: w  # it\ntools: [{name: get}]\n---\nscenario: w\nturns: [{reply: {text: x}}]\n"
    (tmp_path / "w.yaml").write_text(text, encoding="utf-8")
    server, scenario = (shown(one) for one in load(tmp_path / "w.yaml"))
    assert (server["text"], server["first_line"]) == (text.partition("---")[0], 1)
    assert (server["tags"], server["turns"]) == (["MCP server"], [])
    assert scenario["text"].startswith("scenario: w")


def test_a_text_that_is_not_in_its_file_is_written_anew(file):
    first, second, *_ = load(file)
    file.write_text("scenario: other\nturns: [{reply: {text: x}}]\n")
    found = shown(first)
    assert loads(found["text"]) == (first,)
    assert "not have it any more" in found["text_why"]
    file.write_text("scenario: [\n")
    assert "is broken now" in shown(second)["text_why"]
    file.unlink()
    assert "cannot be read" in shown(second)["text_why"]
    (sent,) = loads("scenario: sent\nturns: [{reply: {text: x}}]\n")
    assert "not loaded from a file" in shown(sent)["text_why"]


def test_problems_of_the_same_file_stand_at_a_scenario(file):
    first = load(file)[0]
    problems = [{"file": str(file), "line": 1}, {"file": "other.yaml", "line": 2}]
    assert shown(first, problems)["problems"] == problems[:1]


def run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command + " -w '\\n%{http_code}'"],
        capture_output=True,
        text=True,
        errors="replace",  # Bedrock streams frames
        timeout=GIVE_UP,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="needs curl, bash")
def test_the_curl_commands_get_the_turns(file):
    served = [*load(file), *load(shipped_scenarios())]
    with ServerThread(served, ServerOptions(speed=0)) as server:
        chosen = [one for one in served if one.name in ("first", "second", "secret-numbers")]
        for scenario in chosen:
            commands = curl_texts(scenario, server.url)
            assert set(commands) == {
                name for name in PROTOCOLS.over_http if scenario.plays_over(name)
            }
            for turns in commands.values():
                assert list(turns) == [str(at) for at in range(len(scenario.turns))]
                for index, command in turns.items():
                    for _ in range(len(scenario.turns[int(index)].attempts) + 1):
                        done = run(command)
                    entry = server.ask(lambda: server.server.sessions.get("default").journal[-1])
                    http = scenario.turns[int(index)].http
                    expected = "200" if http is None else str(http.status)
                    assert done.stdout.rpartition("\n")[2] == expected, done
                    assert (entry.scenario, entry.turn) == (scenario.name, int(index))
        command = curl_texts(served[2], server.url)["chat"]["0"]
        assert run(command).stdout.rpartition("\n")[2] == "201"


@pytest.mark.slow
def test_the_tests_to_copy_pass(file, tmp_path):
    served = [*load(file), *load(shipped_scenarios())]
    served.append(loads("scenario: sent\nturns: [{reply: {text: \"'''\\u2028\\\\\"}}]\n")[0])
    folder = tmp_path / "tests"
    folder.mkdir()
    for one in served:
        (folder / f"test_{one.name.replace('-', '_')}.py").write_text(copied_test(one))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *ADDOPTS.split(), str(folder)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=GIVE_UP,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert f"{len(served)} passed" in done.stdout


def test_the_page_serves_scenarios_and_explanations(file):
    with ServerThread(load(file), ServerOptions(page=live_page)) as server:
        ui = f"{server.url}/_mockllm/ui"
        with httpx.Client(timeout=GIVE_UP) as client:
            sent = {"model": "m", "messages": [{"role": "user", "content": "<b>hi"}]}
            url = f"{server.url}/v1/chat/completions"
            assert client.post(url, json=sent).status_code == 404
            assert client.post(url, json=sent | {"model": "mock/first"}).status_code == 200
            listed = client.get(f"{ui}/scenarios").json()
            assert [one["name"] for one in listed["scenarios"]] == [
                "first",
                "second",
                "files",
                "broken",
            ]
            assert listed["scenarios"][0]["played"] == {"0": 1}
            one = client.get(f"{ui}/scenario/second").json()
            assert one["text"].startswith("# its comment")
            assert server.url in one["curl"]["chat"]["0"]
            assert client.get(f"{ui}/scenario/none").status_code == 404
            detail = client.get(f"{ui}/request/default/1").json()
            assert detail["conversation"]["messages"][0]["parts"][0]["text"] == "<b>hi"
            (scenario,) = loads(detail["explanation"]["skeleton"])
            client.get(f"{ui}/request/default/2").raise_for_status()
            served = [*load(file), scenario]
            server.ask(lambda: server.server.reload(served))
            again = client.post(url, json=sent)
            assert again.status_code == 200
            assert "Write the answer here." in again.text
            detail = client.get(f"{ui}/request/default/1").json()
            assert detail["explanation"]["skeleton"] is None
            assert f"scenario {scenario.name} answers" in detail["explanation"]["skeleton_why"]


def test_scenarios_of_sessions_are_found():
    with ServerThread([], ServerOptions(page=live_page)) as server:
        own = "scenario: own\nturns: [{reply: {text: x}}]\n"
        sessions = f"{server.url}/_mockllm/sessions"
        made = {"session": "s", "scenarios": [own]}
        assert httpx.post(sessions, json=made, timeout=GIVE_UP).status_code == 201
        found = httpx.get(f"{server.url}/_mockllm/ui/scenario/own", timeout=GIVE_UP).json()
        assert loads(found["text"]) == loads(own)
