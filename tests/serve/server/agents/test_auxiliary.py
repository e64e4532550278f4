"""What agents ask beside the conversation is answered beside the scenario, and the conversation
goes on at its turn after a summary."""

from __future__ import annotations

import json

import pytest

from mockllm.core.http import TimedBytes
from mockllm.play.agents.auxiliary import auxiliary_route
from mockllm.play.tapes.captured import Captured
from mockllm.record.recording.drafting.drafts import Drafting
from mockllm.record.recording.drafting.matches import match_rule
from tests.serve.server.agents.agent_requests import (
    CLAUDE,
    CODEX,
    COMPACT,
    GEMINI,
    GEMINI_PATH,
    OPENCODE,
    SNAPSHOT,
    SUMMARIES,
    SUMMARIZE,
    TITLES,
    of_claude,
    of_codex,
    of_gemini,
    of_opencode,
    said,
    user,
    user_item,
)

LOOKS = """
scenario: looks
match: {user: look around}
turns:
  - reply: {tool: %s, id: toolu_1, arguments: {x: one}}
  - reply: {tool: %s, id: toolu_2, arguments: {x: two}}
  - reply: {text: All is quiet.}
  - reply: {text: Still quiet.}
"""


def journal(served):
    entries = served.http.get("/_mockllm/journal").json()["exchanges"]
    return [(entry.get("auxiliary") or entry["turn"]) for entry in entries]


def verdict(served):
    return served.http.get("/_mockllm/verify").json()


def claude(served, *messages, **more):
    given = of_claude(*messages, **more)
    answer = served.http.post("/v1/messages?beta=true", json=given, headers=CLAUDE)
    assert answer.status_code == 200, answer.text
    return answer.json()["content"]


def codex(served, *items, **more):
    answer = served.http.post("/v1/responses", json=of_codex(*items, **more), headers=CODEX)
    assert answer.status_code == 200, answer.text
    return answer.json()["output"]


def opencode(served, system, *messages, **more):
    given = of_opencode(system, *messages, **more)
    answer = served.http.post("/v1/chat/completions", json=given, headers=OPENCODE)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]


def gemini(served, *contents, **more):
    answer = served.http.post(GEMINI_PATH, json=of_gemini(*contents, **more), headers=GEMINI)
    assert answer.status_code == 200, answer.text
    return answer.json()["candidates"][0]["content"]


def ran(block, result="ok"):
    """What Claude Code sends after a call."""
    done = {"type": "tool_result", "tool_use_id": block["id"], "content": result}
    return {"role": "assistant", "content": [block]}, {"role": "user", "content": [done]}


def test_a_summary_of_claude_code(serve):
    """The summary is about the messages before those that are kept."""
    served = serve(LOOKS % ("Bash", "Bash"))
    asked = user("<system-reminder>git</system-reminder>", "look around")
    (first,) = claude(served, asked)
    called, result = ran(first)
    result["content"].append({"type": "text", "text": SUMMARIZE})
    (summary,) = claude(served, asked, called, result)
    assert "<summary>" in summary["text"]
    begun = user(f"This session is being continued. {summary['text']}")
    (second,) = claude(served, begun)
    assert second["id"] == "toolu_2"
    kept = ran(second)
    (third,) = claude(served, begun, {"role": "system", "content": [], "output_config": {}}, *kept)
    assert third["text"] == "All is quiet."
    # A second summary, and what the user says after it.
    told = {"role": "assistant", "content": [third]}
    (again,) = claude(served, begun, *kept, told, user(SUMMARIZE))
    (last,) = claude(served, user(again["text"]), user("go on"))
    assert last["text"] == "Still quiet."
    assert journal(served) == [0, "claude summary", 1, 2, "claude summary", 3]
    found = verdict(served)
    assert (found["verdict"], found["remarks"]) == ("good", [])


def test_a_summary_of_codex(serve):
    served = serve(LOOKS % ("exec_command", "exec_command"))
    (call,) = codex(served, "look around")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
    (message,) = codex(served, "look around", call, output, COMPACT, tools=())
    summary = message["content"][0]["text"]
    begun = ("look around", f"Another language model produced a summary:\n{summary}")
    (second,) = codex(served, *begun)
    assert second["call_id"] == "toolu_2"
    output = {"type": "function_call_output", "call_id": "toolu_2", "output": "ok"}
    (third,) = codex(served, *begun, second, output)
    assert third["content"][0]["text"] == "All is quiet."
    assert journal(served) == [0, "codex summary", 1, 2]


def test_a_compaction_of_codex_by_the_service(serve):
    """The default model of Codex asks for an item in place of a text."""
    served = serve(LOOKS % ("exec_command", "exec_command"))
    (call,) = codex(served, "look around")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
    trigger = {"type": "compaction_trigger"}
    (item,) = codex(served, "look around", call, output, trigger)
    assert item["type"] == "compaction"
    (second,) = codex(served, "look around", {**item})
    assert second["call_id"] == "toolu_2"
    assert journal(served) == [0, "codex summary", 1]


def test_title_and_summary_of_opencode(serve):
    """Its summary has the conversation as a text, so the turn is that of the session."""
    served = serve(LOOKS % ("bash", "bash"))
    asked = '"look around"'
    title = opencode(served, TITLES, "Generate a title for this conversation:\n", asked, tools=())
    assert title["content"] == "A conversation with mockllm"
    (call,) = opencode(served, "You are opencode,", asked)["tool_calls"]
    assert call["id"] == "toolu_1"
    shown = "<conversation>[User]: look around</conversation>"
    summary = opencode(served, SUMMARIES, shown, tools=())
    begun = ("What did we do so far?", {"role": "assistant", "content": summary["content"]})
    (call,) = opencode(served, "You are opencode,", *begun, "Continue")["tool_calls"]
    assert call["id"] == "toolu_2"
    assert journal(served) == ["opencode title", 0, "opencode summary", 1]


def test_summaries_of_gemini_cli(serve):
    """It lets the summary be checked, and says a word in the model's name after it."""
    served = serve(LOOKS % ("run_shell_command", "run_shell_command"))
    asked = said("user", "look around")
    first = gemini(served, asked)
    done = {"functionResponse": {"name": "run_shell_command", "response": {"output": "ok"}}}
    history = (asked, {**first, "role": "model"}, {"role": "user", "parts": [done]})
    how = said("user", "First, reason in your scratchpad.")
    summary = gemini(served, *history, how, system=SNAPSHOT, tools=False)["parts"][0]["text"]
    check = (said("model", summary), said("user", "Critically evaluate the <state_snapshot>"))
    again = gemini(served, *history, *check, system=SNAPSHOT, tools=False)["parts"][0]["text"]
    assert again == summary
    thanks = said("model", "Got it. Thanks for the additional context!")
    second = gemini(served, said("user", again), thanks, said("user", "go on"))
    assert second["parts"][0]["functionCall"]["args"] == {"x": "two"}
    assert journal(served) == [0, "gemini summary", "gemini summary", 1]


@pytest.mark.parametrize(
    "more",
    [{"messages": [user("quota")], "max_tokens": 1}, {"messages": [user("hi")], "max_tokens": 1}],
    ids=["quota", "warm-up"],
)
def test_small_requests_of_claude_code(serve, more):
    served = serve(LOOKS % ("Bash", "Bash"))
    (block,) = claude(served, tools=(), **more)
    assert block["text"] == "1"
    assert verdict(served)["no_requests"] is True


def test_a_summary_before_any_turn_begins_anew(serve):
    served = serve(LOOKS % ("exec_command", "exec_command"))
    (message,) = codex(served, "look around", COMPACT, tools=())
    summary = message["content"][0]["text"]
    assert "none yet" in summary
    (first,) = codex(served, "look around", summary)
    assert first["call_id"] == "toolu_1"


def test_another_scenario_begins_after_a_summary(serve):
    other = "---\nscenario: other\nmatch: {user: something else}\nturns: [{reply: Other.}]"
    served = serve(LOOKS % ("exec_command", "exec_command") + other)
    (call,) = codex(served, "look around")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
    (message,) = codex(served, "look around", call, output, COMPACT)
    summary = user_item(message["content"][0]["text"])
    (answer,) = codex(served, "look around", summary, "something else")
    assert answer["content"][0]["text"] == "Other."


@pytest.mark.parametrize(
    ("match", "text"),
    [
        ("{user: CONTEXT CHECKPOINT}", "Named."),
        ("{user: {contains: look around}, tools: [exec_command]}", "wrote this summary"),
        ("any", "wrote this summary"),
        ("{user: {regex: CHECKPOINT|around}}", "wrote this summary"),
    ],
)
def test_a_scenario_that_names_the_words_of_the_agent_goes_first(serve, match, text):
    served = serve(
        LOOKS % ("exec_command", "exec_command")
        + f"---\nscenario: named\nmatch: {match}\nturns: [{{reply: Named., repeat: true}}]"
    )
    (message,) = codex(served, "please look around", COMPACT)
    assert text in message["content"][0]["text"]


@pytest.mark.parametrize("match", ["system: title generator", "not: {tools: [bash]}"])
def test_a_scenario_that_names_titles_goes_first(serve, match):
    served = serve(
        f"scenario: title\nmatch: {{user: look around, {match}}}\nturns: [{{reply: My title}}]"
    )
    title = opencode(served, TITLES, "Generate a title:\n", '"look around"', tools=())
    assert title["content"] == "My title"
    assert verdict(served)["verdict"] == "good"


def test_who_is_no_agent_gets_its_own_answer(serve):
    served = serve(LOOKS % ("bash", "bash"))
    given = of_opencode(TITLES, "look around")
    answer = served.http.post("/v1/chat/completions", json=given)
    assert answer.json()["choices"][0]["message"]["tool_calls"][0]["id"] == "toolu_1"


def test_routes_beside_the_conversation(serve):
    """They have statuses that the agent takes for no trouble, and no verdict."""
    served = serve(LOOKS % ("Bash", "Bash"))
    paths = {
        "HEAD /api/hello": 200,
        "GET /api/claude_code/settings": 404,
        "GET /api/claude_code/policy_limits": 404,
        "GET /api/claude_cli/bootstrap?entrypoint=sdk-cli": 404,
        "POST /api/event_logging/v2/batch": 204,
        "POST /api/eval/sdk-zAZezfDKGoZuXXKe": 404,
    }
    for route, status in paths.items():
        method, path = route.split()
        assert served.http.request(method, path).status_code == status, route
    claude(served, user("look around"))
    found = served.http.get("/_mockllm/verify", params={"allow_unplayed": "true"}).json()
    assert found["verdict"] == "good"
    assert journal(served) == ["claude route"] * len(paths) + [0]
    assert auxiliary_route("POST", "/log", "play.googleapis.com") is not None
    assert auxiliary_route("POST", "/log", "127.0.0.1") is None


def test_a_scenario_with_the_route_goes_first(serve):
    served = serve(
        "scenario: settings\nroute: GET /api/claude_code/settings\n"
        "turns: [{answer: {json: {a: 1}}}]"
    )
    assert served.http.get("/api/claude_code/settings").json() == {"a": 1}


def test_a_recorder_leaves_them_out(tmp_path):
    """Each has a line; with `auxiliary` they are recorded like all others."""
    bodies = (
        of_opencode(TITLES, "Generate a title:\n", '"look around"', tools=()),
        of_opencode("You are opencode,", '"look around"'),
    )
    for auxiliary, count in ((False, 1), (True, 2)):
        drafting = Drafting(match=match_rule(auxiliary=auxiliary))
        drafts = [
            draft
            for number, body in enumerate(bodies)
            for draft in drafting.add(
                Captured(
                    "POST",
                    "http://127.0.0.1/v1/chat/completions",
                    tuple(OPENCODE.items()),
                    json.dumps(body).encode(),
                    200,
                    (("content-type", "application/json"),),
                    (TimedBytes(0, _ANSWER),),
                    source=f"request {number}",
                )
            )
        ]
        assert len({draft.scenario.name for draft in drafts if draft.scenario}) == count
        skipped = [line for draft in drafts for line in draft.report if line.outcome == "skipped"]
        assert len(skipped) == 2 - count
        for line in skipped:
            assert "opencode title, which mockllm answers by itself" in line.description
            assert not line.is_missing


_ANSWER = (
    b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,'
    b'"finish_reason":"stop","message":{"role":"assistant","content":"Hello"}}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
)
