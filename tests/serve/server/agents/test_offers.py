"""What agents offer without saying so, what their hooks add, and calls that come back renamed."""

from __future__ import annotations

import json

import pytest

from mockllm.core.request import Message, Request
from tests.serve.server.agents.agent_requests import (
    CLAUDE,
    CODEX,
    OPENCODE,
    of_claude,
    of_codex,
    of_opencode,
    user,
)

DEFERRED = (
    "The following deferred tools are now available via ToolSearch. Their schemas are NOT loaded — "
    'calling them directly will fail. Use ToolSearch with query "select:<name>":\n'
    "CronCreate\nmcp__stock__lookup\nWebFetch\n\nAvailable agent types:\n- claude"
)


def verified(served):
    return served.http.get("/_mockllm/verify").json()


def claude(served, *messages, agent=None):
    headers = {**CLAUDE, **({} if agent is None else {"x-claude-code-agent-id": agent})}
    return served.http.post("/v1/messages", json=of_claude(*messages), headers=headers)


def test_deferred_tools_count_as_offered(serve):
    served = serve("""
scenario: stock
match: {user: how many bolts, tools: [mcp__stock__lookup]}
turns:
  - request: {offers: [mcp__stock__lookup, Bash]}
    reply: {tool: mcp__stock__lookup, id: toolu_1, arguments: {item: bolt}}
""")
    system = {"role": "system", "content": DEFERRED}
    answer = claude(served, user("how many bolts"), system)
    assert answer.json()["content"][0]["name"] == "mcp__stock__lookup"
    found = verified(served)
    assert (found["verdict"], found["remarks"]) == ("good", [])
    assert claude(served, user("how many bolts")).status_code == 410


def test_tools_in_a_namespace_of_codex_count_as_offered(serve):
    served = serve("""
scenario: stock
match: {user: how many bolts}
turns: [{request: {offers: [lookup]}, reply: {tool: lookup, arguments: {item: bolt}}}]
""")
    given = of_codex("how many bolts")
    inner = [{"type": "function", "name": "lookup", "parameters": {"type": "object"}}]
    given["tools"].append({"type": "namespace", "name": "stock", "description": "", "tools": inner})
    answer = served.http.post("/v1/responses", json=given, headers=CODEX)
    assert answer.status_code == 200, answer.text
    assert verified(served)["remarks"] == []


HOOK = """
scenario: hook
match: {user: look around}
turns:
  - request: {system: "UserPromptSubmit: be brief"}
    reply: {shell: ls, id: toolu_1}
  - request: {system: {all: [{contains: formatted}, {not: {contains: be brief}}]}}
    reply: Good.
"""


def test_hooks_can_be_checked(serve):
    """In messages of the system and in reminders beside results; earlier ones do not count."""
    served = serve(HOOK)
    added = {"role": "system", "content": [{"type": "text", "text": "UserPromptSubmit: be brief"}]}
    assert claude(served, user("look around")).status_code == 410
    answer = claude(served, user("look around"), added)
    (block,) = answer.json()["content"]
    done = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "README"}
    history = (user("look around"), added, {"role": "assistant", "content": [block]})
    refused = claude(served, *history, {"role": "user", "content": [done]})
    assert "request.system" in refused.text
    note = {"role": "system", "content": "PostToolUse: formatted"}
    answer = claude(served, *history, {"role": "user", "content": [done]}, note)
    assert answer.json()["content"][0]["text"] == "Good."
    reminder = {"type": "text", "text": "<system-reminder>formatted</system-reminder>"}
    answer = claude(served, *history, {"role": "user", "content": [done, reminder]})
    assert answer.json()["content"][0]["text"] == "Good."


def test_the_system_prompt_stays_new():
    """The prompt counts at each answer, and what was added before an answer no longer does."""
    messages = [
        Message("system", "prompt"),
        Message("user", "hi"),
        Message("system", "first"),
        Message("assistant", "hello"),
        Message("tool", "result"),
        Message("system", "second"),
    ]
    for count, text in ((2, "prompt"), (3, "prompt\nfirst"), (5, "prompt"), (6, "prompt\nsecond")):
        assert Request("chat", "m", {}, messages=tuple(messages[:count])).new_system == text


@pytest.mark.parametrize("tool", ["nosuch", "bash"])
def test_a_call_that_comes_back_renamed_is_the_call_of_the_scenario(serve, tool):
    """opencode puts a call of `invalid` in the place of one that it cannot run."""
    served = serve(f"""
scenario: wrong
match: {{user: look around}}
turns:
  - reply: {{tool: {tool}, id: call_1, arguments: {{a: 1}}}}
  - request: {{results: {{call_1: {{contains: invalid}}}}}}
    reply: I see.
""")
    asked = of_opencode("You are opencode,", "look around")
    answer = served.http.post("/v1/chat/completions", json=asked, headers=OPENCODE).json()
    message = answer["choices"][0]["message"]
    why = json.dumps({"tool": tool, "error": "Model tried to call unavailable tool"})
    message["tool_calls"][0]["function"] = {"name": "invalid", "arguments": why}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "The arguments are invalid"}
    asked = of_opencode("You are opencode,", "look around", message, result)
    answer = served.http.post("/v1/chat/completions", json=asked, headers=OPENCODE).json()
    assert answer["choices"][0]["message"]["content"] == "I see."
    assert verified(served)["violations"] == []


def test_a_subagent_is_a_conversation_of_its_own(serve):
    served = serve("scenario: s\nmatch: any\nturns: [{reply: Hello., repeat: true}]")
    for agent in (None, "a1", "a2", "a1", None):
        claude(served, user("look around"), agent=agent)
    names = [entry["conversation"] for entry in served.journal()]
    assert len(set(names)) == 3
    assert names[0] == names[4]
    assert names[1] == names[3]


def test_tools_that_codex_sends_once_in_a_conversation(serve):
    """Over a WebSocket its requests go on by the id of an answer, and offer nothing."""
    served = serve("""
scenario: shell
match: {user: look around}
turns: [{reply: {shell: ls, id: call_1}}, {reply: {shell: pwd}}]
""")
    first = {**of_codex("look around"), "store": True}
    answer = served.http.post("/v1/responses", json=first, headers=CODEX).json()
    output = {"type": "function_call_output", "call_id": "call_1", "output": "README"}
    following = {**of_codex(output, tools=()), "previous_response_id": answer["id"]}
    answer = served.http.post("/v1/responses", json=following, headers=CODEX).json()
    assert json.loads(answer["output"][0]["arguments"]) == {"cmd": "pwd"}
    found = verified(served)
    assert (found["verdict"], found["remarks"]) == ("good", [])
