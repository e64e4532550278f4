"""MCP servers in pytest: their URLs, their program, and the verdict on an agent with tools."""

AGENT = """
import json
import httpx

def rpc(url, method, **params):
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return httpx.post(url, json=message).json()["result"]

def ask(url, messages, tools):
    body = {"model": "m", "messages": messages, "tools": tools}
    answer = httpx.post(url + "/chat/completions", json=body)
    return answer.json()["choices"][0]["message"]

def run(model, server, skip=False):
    tool = rpc(server, "tools/list")["tools"][0]
    function = {"name": "mcp__weather__" + tool["name"], "parameters": tool["inputSchema"]}
    tools, messages = [{"type": "function", "function": function}], []
    messages.append({"role": "user", "content": "umbrella?"})
    call = ask(model, messages, tools)
    arguments = json.loads(call["tool_calls"][0]["function"]["arguments"])
    text = "Rain"
    if not skip:
        done = rpc(server, "tools/call", name=tool["name"], arguments=arguments)
        text = done["content"][0]["text"]
    messages += [call, {"role": "tool", "tool_call_id": "call_1", "content": text}]
    return ask(model, messages, tools)["content"]
"""
TEST = """
import sys
from agent import run
from mockllm_pytest import tool

def test_umbrella(mockllm_session):
    mockllm_session.add({
        "mcp": "weather",
        "tools": [{"name": "get_forecast"}],
        "calls": [{"tool": "get_forecast", "answer": {"text": "Rain"}}],
    })
    mockllm_session.reply(tool("weather.get_forecast", {"city": "Oslo"}, id="call_1"))
    mockllm_session.reply("Take an umbrella.")
    url = mockllm_session.mcp_url("weather")
    assert run(mockllm_session.openai_url, url, skip=SKIP) == "Take an umbrella."
    operations = [one.played.mcp for one in mockllm_session.journal if one.played.mcp]
    assert [one.method for one in operations] == ["tools/list", "tools/call"][:2 - SKIP]
    command = mockllm_session.mcp_command("weather")
    assert command[0] == sys.executable
    assert command[1:] == ["-m", "mockllm", "mcp", "weather", "--url", mockllm_session.url]
"""


def test_a_server_of_a_test_answers_and_is_judged(project):
    """The server is a mapping, the replies call its tool, and the verdict covers both sides."""
    project.makepyfile(agent=AGENT)
    project.makepyfile(test_right=TEST.replace("SKIP", "False"))
    project.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_call_that_does_not_reach_its_tool_fails_the_test(project):
    """Although the agent's answer is right."""
    project.makepyfile(agent=AGENT)
    project.makepyfile(test_wrong=TEST.replace("SKIP", "True"))
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*call-reached-tool*never reached the server*"])


def test_the_only_scenario_beside_a_server_answers_any_request(project):
    """A server is no second conversation of the test."""
    project.makepyfile(agent=AGENT)
    replies = TEST.replace("SKIP", "False").replace(
        """    mockllm_session.reply(tool("weather.get_forecast", {"city": "Oslo"}, id="call_1"))
    mockllm_session.reply("Take an umbrella.")
""",
        """    mockllm_session.add({"scenario": "talk", "turns": [
        {"reply": {"tool": "weather.get_forecast", "id": "call_1"}},
        {"reply": {"text": "Take an umbrella."}},
    ]})
""",
    )
    project.makepyfile(test_alone=replies)
    project.runpytest_inprocess().assert_outcomes(passed=1)
