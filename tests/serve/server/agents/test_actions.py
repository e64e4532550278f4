"""One scenario for all agents: what it does with a shell or a file becomes the call of the tool
that each of them offers."""

from __future__ import annotations

import json
import subprocess

import pytest

from mockllm import loads
from mockllm.play.agents.tools import tool_use
from mockllm.play.replay.turn_answer import turn_answer, usual_request
from mockllm.scenario.dump import dump
from mockllm.wire.protocols import PROTOCOLS
from tests.serve.server.agents.agent_requests import (
    CLAUDE,
    CODEX,
    GEMINI,
    GEMINI_PATH,
    OPENCODE,
    of_claude,
    of_codex,
    of_gemini,
    of_opencode,
    said,
    user,
)

SCENARIO = """
scenario: for-all
match: {user: look around}
turns:
  - reply: {shell: 'echo "it''s on"', id: call_1}
  - request: {results: {call_1: {contains: on}}}
    reply: {write: {path: a/b.txt, content: "x y"}, id: call_2}
  - reply: {read: a/b.txt, id: call_3}
  - reply: {edit: {path: a/b.txt, old: x, new: z}, id: call_4}
  - reply: Done.
"""
CLAUDE_TOOLS = ("Bash", "Write", "Read", "Edit")
OPENCODE_TOOLS = ("bash", "write", "read", "edit")


def calls_of_claude(served, history=()):
    given = of_claude(user("look around"), *history, tools=CLAUDE_TOOLS)
    answer = served.http.post("/v1/messages", json=given, headers=CLAUDE)
    assert answer.status_code == 200, answer.text
    return answer.json()["content"]


def test_the_calls_of_claude_code(serve):
    served, history, calls = serve(SCENARIO), [], []
    for _ in range(4):
        (block,) = calls_of_claude(served, history)
        calls.append((block["name"], block["input"]))
        done = {"type": "tool_result", "tool_use_id": block["id"], "content": "on"}
        history += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [done]}]
    (last,) = calls_of_claude(served, history)
    assert last["text"] == "Done."
    assert calls == [
        ("Bash", {"command": 'echo "it\'s on"', "description": "by mockllm"}),
        ("Write", {"file_path": "a/b.txt", "content": "x y"}),
        ("Read", {"file_path": "a/b.txt"}),
        ("Edit", {"file_path": "a/b.txt", "old_string": "x", "new_string": "z"}),
    ]
    assert served.http.get("/_mockllm/verify").json()["verdict"] == "good"


def test_the_calls_of_opencode(serve):
    served, history, calls = serve(SCENARIO), [], []
    for _ in range(4):
        given = of_opencode("You are opencode,", "look around", *history, tools=OPENCODE_TOOLS)
        answer = served.http.post("/v1/chat/completions", json=given, headers=OPENCODE).json()
        message = answer["choices"][0]["message"]
        (call,) = message["tool_calls"]
        calls.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
        history += [message, {"role": "tool", "tool_call_id": call["id"], "content": "on"}]
    assert calls == [
        ("bash", {"command": 'echo "it\'s on"', "description": "by mockllm"}),
        ("write", {"filePath": "a/b.txt", "content": "x y"}),
        ("read", {"filePath": "a/b.txt"}),
        ("edit", {"filePath": "a/b.txt", "oldString": "x", "newString": "z"}),
    ]


def test_the_calls_of_gemini_cli(serve):
    """It sends no ids back, so its results are found by the names of its tools."""
    served, history, names = serve(SCENARIO), [], []
    tools = [{"name": n} for n in ("run_shell_command", "write_file", "read_file", "replace")]
    for _ in range(4):
        given = of_gemini(said("user", "look around"), *history)
        given["tools"] = [{"functionDeclarations": tools}]
        answer = served.http.post(GEMINI_PATH, json=given, headers=GEMINI)
        assert answer.status_code == 200, answer.text
        content = answer.json()["candidates"][0]["content"]
        call = {**content["parts"][0]["functionCall"]}
        call.pop("id", None)
        names.append(call["name"])
        done = {"functionResponse": {"name": call["name"], "response": {"output": "on"}}}
        history += [
            {"role": "model", "parts": [{"functionCall": call}]},
            {"role": "user", "parts": [done]},
        ]
    assert names == ["run_shell_command", "write_file", "read_file", "replace"]


@pytest.mark.parametrize("tool", ["exec_command", "exec"])
def test_the_calls_of_codex_work_in_a_shell(serve, tool, tmp_path):
    """It has no tools for files: commands do it. Its default model takes JavaScript."""
    served, history, texts = serve(SCENARIO), [], []
    for _ in range(4):
        given = of_codex("look around", *history, tools=(tool,))
        if tool == "exec":
            given["tools"] = [{"type": "custom", "name": "exec"}]
        answer = served.http.post("/v1/responses", json=given, headers=CODEX)
        assert answer.status_code == 200, answer.text
        (call,) = answer.json()["output"]
        if tool == "exec":
            command = json.loads(call["input"].partition("{cmd: ")[2].partition("}); text")[0])
        else:
            command = json.loads(call["arguments"])["cmd"]
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        texts.append(done.stdout)
        output = {"type": call["type"] + "_output", "call_id": call["call_id"], "output": "on"}
        history += [call, output]
    assert texts == ["it's on\n", "", "x y", ""]
    assert (tmp_path / "a/b.txt").read_text() == "z y"


def test_an_edit_that_finds_nothing_fails_and_changes_nothing(tmp_path):
    (tmp_path / "f").write_text("abc")
    use = tool_use("edit", {"path": "f", "old": "$x", "new": "y"}, ["exec_command"])
    done = subprocess.run(["sh", "-c", json.loads(use.text)["cmd"]], cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert (tmp_path / "f").read_text() == "abc"


def test_a_request_without_such_a_tool_is_refused(serve):
    served = serve(SCENARIO)
    given = of_claude(user("look around"), tools=("Read",))
    answer = served.http.post("/v1/messages", json=given, headers=CLAUDE)
    assert answer.status_code == 410
    message = answer.json()["error"]["message"]
    assert message == (
        "Turn 1 of scenario 'for-all' has 'shell', and the request offers no tool for it; "
        "it offers: Read."
    )


def test_templates_fill_actions_first(serve):
    text = (
        "scenario: t\ntemplate: true\nmatch: {user: look}\n"
        "turns: [{reply: {shell: 'echo {{ request.user }}'}}]"
    )
    served = serve(text)
    given = of_claude(user("look around"), tools=CLAUDE_TOOLS)
    answer = served.http.post("/v1/messages", json=given, headers=CLAUDE).json()
    assert answer["content"][0]["input"]["command"] == "echo look around"


@pytest.mark.parametrize("api", ["anthropic", "chat", "gemini"])
def test_an_action_is_shown_as_the_call_of_some_agent(api):
    (scenario,) = loads(SCENARIO)
    protocol = PROTOCOLS[api]
    request = usual_request(scenario, protocol, stream=True, fields={})
    answer = turn_answer(scenario, 0, protocol, request)
    assert b"Bash" in b"".join(answer.data)


def test_actions_are_read_and_written():
    (scenario,) = loads(SCENARIO)
    text = dump(scenario)
    assert loads(text) == (scenario,)
    for part in ('shell: echo "it\'s on"', "read: a/b.txt", "content: x y"):
        assert part in text


@pytest.mark.parametrize(
    "part",
    [
        "{shell: ls, tool: x}",
        "{read: ''}",
        "{write: {path: a}}",
        "{edit: {path: a, old: b}}",
    ],
)
def test_actions_with_mistakes(part):
    with pytest.raises(Exception, match="turns"):
        loads(f"scenario: s\nmatch: any\nturns: [{{reply: {part}}}]")
