"""MCP servers over HTTP, in both eras: the handshake, lists, calls, streams, faults."""

import asyncio
import base64
import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client

from mockllm.core.errors import ScenarioError, UsageError
from mockllm.core.request import OfferedTool, Request
from mockllm.play.mcp.tool_names import missing_tool, named_tools, tool_names, with_server_tools
from mockllm.play.replay.loading import load, loads
from mockllm.record.importers.export import exchanges
from mockllm.scenario.dump import dump
from tests.serve.mcp.servers import (
    BOTH,
    META,
    STATELESS,
    WEATHER,
    call,
    message,
    result,
    send,
    texts,
)

LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26"]


def of_server(calls: str) -> str:
    """The server of the tests with other entries."""
    return WEATHER[: WEATHER.index("calls:")] + "calls:\n" + calls


def test_documents_are_written_as_they_are_read():
    """`dump` is the inverse of `load` for servers and for entries of scenarios."""
    full = of_server("""
  - tool: get_forecast
    match: {arguments: {city: Oslo}, ignore: [uuid]}
    attempts: [{http: 503}, {fault: {stall: {for: 2s}}}, {answer: {text: a}}]
    answers:
      - {text: [a, b], json: {temp: 4}, progress: [half]}
      - image: {base64: aGk=, type: image/png}
        audio: {base64: aGk=, type: audio/wav}
        resource: {uri: "docs://a", text: a}
        link: {uri: "docs://a", name: a}
      - {rpc_error: {code: -32000, message: Gone, data: {why: x}}}
      - {ask: {state: s}}
      - {raw: {content: []}}
      - {text: a, resumed: true, tools: [{name: other}]}
    timing: {ttft: 200ms}
  - {at: list, http: 500}
  - {at: connect, fault: unknown-id}
""")
    for text in (BOTH, full, WEATHER + "revisions: [2026-07-28, 2025-06-18]\n"):
        scenarios = loads(text)
        assert loads("---\n".join(map(dump, scenarios))) == scenarios


@pytest.mark.parametrize("revision", LEGACY)
def test_a_client_with_a_handshake_gets_its_revision(serve, revision):
    """And a client of an unknown one the newest that has a handshake."""
    served = serve(BOTH)
    sent = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t"}}
    answer = result(served, "initialize", sent, id=0)
    assert answer == {
        "protocolVersion": revision,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "weather", "version": "1.0.0"},
        "instructions": "Ask for one city.",
    }
    newest = result(served, "initialize", {**sent, "protocolVersion": "2099-01-01"})
    assert newest["protocolVersion"] == LEGACY[0]
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert served.http.post("/mcp/weather", json=note).status_code == 202
    assert served.http.get("/mcp/weather").status_code == 405
    assert served.http.delete("/mcp/weather").status_code == 200
    assert result(served, "ping") == {}


def test_a_stateless_client_finds_out_what_the_server_can(serve):
    """Each result says that it is complete, and how long it may be kept."""
    found = result(serve(BOTH), "server/discover", id="probe", stateless=True)
    assert found["resultType"] == "complete"
    assert found["supportedVersions"] == [STATELESS, *LEGACY]
    assert (found["ttlMs"], found["cacheScope"]) == (0, "private")
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "weather"


@pytest.mark.parametrize("stateless", [True, False])
def test_the_list_has_what_clients_require(serve, stateless):
    """A tool without `parameters` has a schema: clients refuse a list with one that has none."""
    listed = result(serve(BOTH), "tools/list", stateless=stateless)
    tools = {tool.pop("name"): tool for tool in listed["tools"]}
    assert tools["show"] == {"inputSchema": {"type": "object"}}
    assert tools["get_forecast"]["title"] == "Forecast"
    assert tools["get_numbers"]["outputSchema"]["required"] == ["temp"]
    assert tools["get_numbers"]["annotations"] == {"readOnlyHint": True}
    assert ("ttlMs" in listed) == stateless


def test_arguments_choose_the_answer_and_order_does_not(serve):
    """The entry of a scenario goes before that of the server; each counts by itself."""
    served = serve(BOTH)
    got = [texts(call(served, "get_forecast", {"city": city}))
           for city in ("Rome", "Oslo", "Rome", "Oslo", "Rome", "Paris")]  # fmt: skip
    rain = ["Rain in Oslo"]
    assert got == [["Sun"], rain, ["Rain", "Wind"], rain, ["Rain", "Wind"], ["Unknown city."]]
    assert call(served, "get_forecast", {"city": "Paris"})["isError"]


def test_json_alone_is_its_own_text(serve):
    """`structuredContent`, and the same as text for clients that do not read it."""
    answer = call(serve(BOTH), "get_numbers", {"city": "Oslo"})
    assert answer == {
        "content": [{"type": "text", "text": '{"temp":4}'}],
        "structuredContent": {"temp": 4},
    }


def test_answers_have_every_kind_of_block(serve):
    """Images, sounds, resources, links; a whole result as it is written; an error of the
    protocol."""
    served = serve(
        of_server("""
  - tool: show
    answers:
      - image: {base64: aGk=, type: image/png}
        audio: {base64: aGk=, type: audio/wav}
        resource: {uri: "docs://a", text: a}
        link: {uri: "docs://a", name: a}
      - {raw: {content: [], surprise: 1}}
      - {rpc_error: {code: -32000, message: Gone, data: {why: x}}}
""")
    )
    blocks = call(served, "show")["content"]
    assert [block["type"] for block in blocks] == ["image", "audio", "resource", "resource_link"]
    assert base64.b64decode(blocks[0]["data"]) == b"hi"
    assert call(served, "show") == {"content": [], "surprise": 1}
    error = send(served, "tools/call", {"name": "show"}).json()["error"]
    assert error == {"code": -32000, "message": "Gone", "data": {"why": "x"}}


def test_the_nearest_entry_misses_least(serve):
    """Of its conditions; not the first one that is written."""
    served = serve(
        of_server("""
  - {tool: show, match: {arguments: {city: Oslo, unit: C}}, answer: {text: a}}
  - {tool: show, match: {arguments: {city: Lima, unit: C, day: 1}}, answer: {text: b}}
  - {tool: show, match: {arguments: {city: Lima, unit: C}, exact: true}, answer: {text: c}}
""")
    )

    def said(**arguments):
        return texts(call(served, "show", arguments))[0].partition("Nearest: ")[2]

    assert said(city="Lima", unit="C", x=1).startswith("entry 3 of mcp:weather: arguments.x")
    assert said(city="Lima", unit="F", day=1).startswith("entry 2 of mcp:weather: arguments.unit")


def test_exact_arguments_are_all_that_a_call_may_have(serve):
    """At any depth; an entry without arguments answers a call without any, and a wider entry what
    is left."""
    served = serve(
        of_server("""
  - {tool: show, match: {exact: true}, answer: {text: none}}
  - {tool: show, match: {arguments: {at: [{x: 1}]}, exact: true}, answer: {text: exact}}
  - {tool: show, match: {arguments: {at: [{x: 1}]}}, answer: {text: wider}}
""")
    )

    def shown(**arguments):
        return texts(call(served, "show", arguments))[0]

    assert (shown(), shown(at=[{"x": 1}])) == ("none", "exact")
    assert shown(at=[{"x": 1}], y=2) == shown(at=[{"x": 1, "y": 2}]) == "wider"
    assert "entry 1 of mcp:weather: arguments.y must not be there, got 2." in shown(y=2)


def test_a_call_that_nothing_answers_says_which_entry_is_nearest(serve):
    """In a result, which reaches the model; the journal and the verdict say it, too."""
    served = serve(BOTH.replace("  - {tool: get_forecast, answer: {error: Unknown city.}}\n", ""))
    answer = call(served, "get_forecast", {"city": "Paris"})
    assert answer["isError"]
    assert "Nearest: entry 1 of umbrella: arguments.city must be" in texts(answer)[0]
    assert texts(call(served, "nope")) == ["Unknown tool: nope"]
    assert "show has no entry" in texts(call(served, "show"))[0]
    assert [entry["outcome"] for entry in served.journal()] == ["unmatched"] * 3
    assert served.http.get("/_mockllm/verify").json()["unmatched"] == [1, 2, 3]


def test_entries_of_several_scenarios_are_told_apart_by_the_streamed_call(serve):
    """The scenario answers whose call waits for its result."""
    other = """
scenario: other
match: {user: hat}
mcp: {weather: [{tool: get_forecast, match: {arguments: {city: Oslo}}, answer: {text: Snow}}]}
turns:
  - reply: {tool: weather.get_forecast, id: call_1, arguments: {city: Oslo}}
  - reply: {text: Take a hat.}
"""
    served = serve(f"{BOTH}---{other}")
    assert "equally well" in texts(call(served, "get_forecast", {"city": "Oslo"}))[0]
    tools = [{"type": "function", "function": {"name": "get_forecast"}}]
    said = {"model": "m", "messages": [{"role": "user", "content": "hat?"}], "tools": tools}
    served.http.post("/v1/chat/completions", json=said)
    assert texts(call(served, "get_forecast", {"city": "Oslo"})) == ["Snow"]


def test_a_journal_has_the_operations(serve):
    """Server, method, tool, revision, client, and the id of the model's call where it is named."""
    served = serve(BOTH)
    meta = {"claudecode/toolUseId": "toolu_1"}
    params = {"name": "get_forecast", "arguments": {"city": "Oslo"}, "_meta": meta}
    result(served, "tools/call", params, stateless=True)
    (entry,) = served.journal()
    assert (entry["api"], entry["outcome"]) == ("mcp", "played")
    assert entry["mcp"] == {
        "server": "weather", "method": "tools/call", "tool": "get_forecast",
        "scenario": "umbrella", "entry": 0, "answer": 0, "revision": STATELESS,
        "client": "test", "call_id": "toolu_1", "fails": False,
    }  # fmt: skip


def test_sessions_have_servers_of_their_own(serve):
    """The counters of entries are those of a session, and a session may bring a server."""
    served = serve(BOTH)
    rome = {"city": "Rome"}
    assert texts(call(served, "get_forecast", rome)) == ["Sun"]
    assert texts(call(served, "get_forecast", rome, path="/s/a/mcp/weather")) == ["Sun"]
    own = WEATHER.replace("Unknown city.", "Only here.")
    made = served.http.post("/_mockllm/sessions", json={"scenarios": [own]})
    assert made.status_code == 201, made.text
    path = f"/s/{made.json()['session']}/mcp/weather"
    assert texts(call(served, "get_forecast", {"city": "X"}, path=path)) == ["Only here."]


# What is refused


def test_messages_that_are_none_get_errors_of_the_protocol(serve):
    """With the codes of JSON-RPC, and of MCP where a version or a header is wrong."""
    served = serve(BOTH)

    def refused(body, **headers):
        answer = served.http.post("/mcp/weather", content=body, headers=headers)
        return answer.status_code, answer.json()["error"]["code"]

    assert refused(b"{") == (400, -32700)
    assert refused(b"[]") == (400, -32600)
    assert refused(b'{"id": 1}') == (400, -32600)
    assert refused(json.dumps(message("x", id=None))) == (400, -32600)
    assert refused(json.dumps(message("prompts/list"))) == (200, -32601)
    old = {"mcp-protocol-version": "2020-01-01"}
    assert refused(json.dumps(message("tools/list")), **old) == (400, -32022)
    stated = {"mcp-method": "tools/call"}
    listing = json.dumps(message("tools/list", stateless=True))
    assert refused(listing, **stated) == (400, -32020)
    assert served.http.post("/mcp/nope", json={}).status_code == 404
    for arguments in ('{"city": "Oslo"}', ["Oslo"], 1):
        params = {"name": "show", "arguments": arguments}
        assert refused(json.dumps(message("tools/call", params))) == (200, -32602)
    assert served.http.get("/.well-known/oauth-protected-resource").status_code == 404
    assert served.journal()[-1]["outcome"] == "auxiliary"  # it is no use of a server


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["show", "get_forecast", "nope"]) | JSON
KEYS = st.sampled_from(
    ["progressToken", "callId", "claudecode/toolUseId", *META]
)  # fmt: skip
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON, "id": st.integers() | st.text() | JSON},
    optional={
        "method": st.sampled_from(["initialize", "server/discover", "tools/list", "ping"]) | JSON,
        "params": JSON,
        "result": JSON,
    },
) | st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.integers(), "method": st.just("tools/call")},
    optional={
        "params": st.fixed_dictionaries(
            {"name": NAMES},
            optional={
                "arguments": JSON | st.dictionaries(st.just("city"), JSON),
                "_meta": JSON | st.dictionaries(KEYS, JSON),
                "requestState": JSON,
            },
        )
    },
)
BODIES = MESSAGES.map(lambda one: json.dumps(one).encode()) | st.binary(max_size=40)
HEADERS = st.dictionaries(
    st.sampled_from(
        ["mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id", "content-type"]
    ),
    st.sampled_from(["", STATELESS, "tools/call", "=?base64?x?=", "W10=", "2025-06-18"]),
)


def test_hostile_messages_get_errors_of_the_protocol(serve):
    """Whatever comes, no request fails in mockllm, and the verdict can be given."""
    served = serve(BOTH)

    @given(BODIES, HEADERS, st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "PUT"]))
    def send_it(body: bytes, headers: dict[str, str], method: str) -> None:
        content = body if method in ("POST", "PUT") else None
        answer = served.http.request(method, "/mcp/weather", content=content, headers=headers)
        assert answer.status_code in (200, 202, 400, 405), answer.text
        if answer.content:
            assert answer.json()["jsonrpc"] == "2.0"

    send_it()
    assert served.http.get("/_mockllm/verify").status_code == 200


def test_a_server_may_speak_one_era_alone(serve):
    """A client of the other one finds that out as from real servers."""
    old = serve(WEATHER + "revisions: [2025-06-18]\n")
    assert send(old, "server/discover", stateless=True).json()["error"]["code"] == -32601
    new = serve(WEATHER + "revisions: [2026-07-28]\n")
    answer = send(new, "initialize", {"protocolVersion": "2025-06-18"})
    assert answer.status_code == 400
    assert answer.json()["error"]["data"]["supported"] == [STATELESS]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mcp: a b\n", "1:6: mcp: must be the name of a server"),
        ("mcp: a\nturns: []\n", "2:1: unknown key 'turns'"),
        ("mcp: a\ntools: [{name: t}, {name: t}]\n", "tool 't' is there twice"),
        ("mcp: a\ntools: [{name: t, output: {type: x}}]\n", "tools[0].output.type: "),
        ("mcp: a\ncalls: [{tool: t, answer: {text: x}}]\n", "a has no tool 't'; it has: none"),
        ("mcp: a\ntools: [{name: t}]\ncalls: [{tool: t}]\n", "needs an 'answer'"),
        ("mcp: a\ntools: [{name: t}]\ncalls: [{answer: {text: x}}]\n", "needs the key 'tool'"),
        ("mcp: a\ncalls: [{at: list, answer: {text: x}}]\n", "with 'at: list' has only"),
        ("mcp: a\ncalls: [{at: list, fault: sleep}]\n", "there is no fault 'sleep'"),
        (
            "mcp: a\ntools: [{name: t, output: {type: object}}]\n"
            "calls: [{tool: t, answer: {text: x}}]\n",
            "needs 'json': the tool has an 'output'",
        ),
        (
            "mcp: a\ntools: [{name: t, output: {properties: {n: {type: integer}}}}]\n"
            "calls: [{tool: t, answer: {json: {n: x}}}]\n",
            "calls[0].answer.json.n: does not fit the output of the tool",
        ),
        (f"{WEATHER}---\nmcp: weather\n", "'weather' is the name of another mcp"),
        (
            f"{WEATHER}---\nscenario: s\nmcp: {{wether: [{{tool: a, answer: {{text: x}}}}]}}\n"
            "turns: [{reply: {text: x}}]\n",
            "there is no document 'mcp: wether'; there are: weather",
        ),
        (
            f"{WEATHER}---\nscenario: s\nturns: [{{reply: {{tool: weather.get}}}}]\n",
            "turns[0].reply.tool: weather has no tool 'get'",
        ),
        (
            f"{WEATHER}---\nscenario: s\n"
            "turns: [{reply: {tool: weather.get_forecast, arguments: {city: 1}}}]\n",
            "does not fit the parameters of weather.get_forecast",
        ),
        (
            f"{WEATHER}---\nscenario: s\nmcp:\n  weather:\n"
            "    - {tool: show, answer: {text: x}}\n    - {tool: show, answer: {text: y}}\n"
            "turns: [{reply: {text: x}}]\n",
            "mcp.weather[1]: answers the same calls as entry 1",
        ),
        ("scenario: s\ncalls: []\nturns: [{reply: {text: x}}]\n", "unknown key 'calls'"),
        (
            of_server("  - {tool: show, match: {arguments: {a: 1, b: 2}}, answer: {text: x}}\n"
                      "  - {tool: show, match: {arguments: {b: 2, a: 1}}, answer: {text: y}}\n"),
            "calls[1]: answers the same calls as entry 1",
        ),
        (of_server("  - {at: list, http: 500}\n  - {at: list, http: 503}\n"), "as entry 1"),
        (of_server("  - {at: list}\n"), "needs attempts, http, fault or timing"),
        (of_server("  - {tool: show, answer: {text: x, error: y}}\n"), "is 'error' or 'text'"),
        (of_server("  - {tool: show, answer: {raw: {}, json: {}}}\n"), "is 'raw' or 'json'"),
        (of_server("  - {tool: show, answer: {ask: {state: s}}}\n"), "needs a further answer"),
        (of_server("  - {tool: show, answer: {link: {uri: x}}}\n"), "needs the key 'name'"),
        (of_server("  - {tool: show, answer: {resource: {text: x}}}\n"), "needs the key 'uri'"),
        (
            of_server("  - {tool: show, answer: {rpc_error: {code: x, message: y}}}\n"),
            "rpc_error.code: must be a whole number",
        ),
        (of_server("  - {tool: show, http: 500, answer: {text: x}}\n"), "'http' or 'answer'"),
        (
            of_server("  - {tool: show, attempts: [{}], answer: {text: x}}\n"),
            "attempts[0]: must have 'http', 'fault' or 'answer'",
        ),
        (
            of_server("  - {tool: show, attempts: [{http: 500, fault: refuse}], http: 500}\n"),
            "'http' or 'fault'",
        ),
        (of_server("  - {tool: show, fault: schema, answer: {text: x}}\n"), "breaks nothing"),
        (of_server("  - {at: list, fault: schema}\n"), "strikes answers to calls"),
        (
            of_server("  - {tool: get_numbers, attempts: [{answer: {json: {}}}], "
                      "answer: {json: {temp: 1}}}\n"),
            "calls[0].attempts[0].answer.json: does not fit the output",
        ),
        (
            of_server("  - {tool: show, answer: {tools: [{name: a}, {name: a}]}}\n"),
            "calls[0].answer.tools[1].name: tool 'a' is there twice",
        ),
        ("mcp: a\ntools: [{name: t, parameters: {type: string}}]\n", "must be 'object'"),
        (
            f"{WEATHER}---\nscenario: s\nturns: [{{reply: {{tool: wether.show}}}}]\n",
            "there is no document 'mcp: wether'; weather has a tool 'show'",
        ),
        (
            f"{WEATHER}---\nscenario: s\nturns: [{{reply: {{text: x}}, "
            "when: [{user: a, reply: {tool: weather.get}}]}]\n",
            "turns[0]: weather has no tool 'get'",
        ),
    ],
)  # fmt: skip
def test_mistakes_have_a_place(text, problem):
    """Each with file, line, column and path, as of scenarios."""
    with pytest.raises(ScenarioError) as error:
        loads(text)
    assert problem in "\n".join(map(str, error.value.problems))


def test_a_dot_may_be_part_of_a_name(tmp_path):
    """Where no server has the name before it, as in recordings of tools with such names."""
    text = "scenario: s\nturns: [{reply: {tool: with.dot}}]\n"
    file = tmp_path / "s.yaml"
    file.write_text(text)
    (scenario,) = load(file)
    tools = [OfferedTool("with.dot")]
    for scenarios in ((scenario,), loads(f"{WEATHER}---\n{text}")):
        request = with_server_tools(
            Request("chat", "m", {}, tools=tuple(tools)),
            tool_names(scenarios), named_tools(scenarios),
        )  # fmt: skip
        assert not missing_tool(request, ["with.dot"])


def test_a_server_is_no_conversation(serve):
    """Nobody can name it as a scenario, show a turn of it, or export it."""
    served = serve(BOTH)
    body = {"model": "mock/mcp:weather", "messages": [{"role": "user", "content": "hi"}]}
    answer = served.http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 404
    assert "is an MCP server" in answer.json()["error"]["message"]
    listed = served.http.get("/_mockllm/scenarios").json()["scenarios"]
    assert [one["apis"] == [] for one in listed] == [True, False]
    with pytest.raises(UsageError, match="is an MCP server"):
        exchanges(loads(WEATHER)[0])


# Streams


def events(answer: httpx.Response) -> list[dict]:
    """The messages of a stream."""
    assert answer.headers["content-type"] == "text/event-stream"
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines]


def test_progress_and_changed_lists_come_before_the_result(serve):
    """As events; the list has the new tools from then on."""
    served = serve(
        of_server("""
  - {tool: show, answer: {text: done, progress: [half, all], tools: [{name: fresh}]}}
  - {tool: fresh, answer: {text: new}}
""")
    )
    assert result(served, "initialize", {})["capabilities"] == {"tools": {"listChanged": True}}
    params = {"name": "show", "_meta": {"progressToken": 7}}
    sent = events(send(served, "tools/call", params))
    assert [one.get("method", "result") for one in sent] == [
        "notifications/progress", "notifications/progress", "notifications/tools/list_changed",
        "result",
    ]  # fmt: skip
    assert sent[0]["params"] == {"progressToken": 7, "progress": 1, "total": 2, "message": "half"}
    assert [tool["name"] for tool in result(served, "tools/list")["tools"]] == ["fresh"]
    assert texts(call(served, "fresh")) == ["new"]


def test_a_stream_is_resumed_by_its_event_id(serve):
    """It ends after the id; a GET gets the result, for the same request."""
    late = "answer: {text: late, resumed: true}"
    served = serve(of_server(f"  - {{tool: show, attempts: [{{{late}}}], {late}}}\n"))
    answer = send(served, "tools/call", {"name": "show"}, id="r-1")
    lines = dict(line.split(": ", 1) for line in answer.text.splitlines() if ": " in line)
    assert lines["retry"] == "200"
    (rest,) = events(served.http.get("/mcp/weather", headers={"last-event-id": lines["id"]}))
    assert rest["id"] == "r-1"
    assert texts(rest["result"]) == ["late"]
    wrong = [["mcp:weather", 0, place, 1] for place in ("a", None, -1, 2)]
    for id in ("x", *(base64.urlsafe_b64encode(json.dumps(one).encode()) for one in wrong)):
        assert served.http.get("/mcp/weather", headers={"last-event-id": id}).status_code == 405
    assert texts(call(served, "show", stateless=True)) == ["late"]


def test_a_call_may_be_asked_for_again(serve):
    """By a result with a state, which only the stateless revision has."""
    entry = "  - {tool: show, answers: [{ask: {state: s1}}, {text: done}]}\n"
    served = serve(of_server(entry))
    assert call(served, "show", stateless=True) == {
        "resultType": "input_required", "requestState": "s1",
    }  # fmt: skip
    assert texts(call(served, "show", stateless=True)) == ["done"]
    assert texts(call(serve(of_server(entry)), "show")) == ["done"]


# Faults


def test_earlier_tries_fail(serve):
    """An HTTP error, another answer, then the answer; other entries do not count."""
    served = serve(
        of_server("""
  - {tool: show, attempts: [{http: 503}, {answer: {error: Busy}}], answer: {text: done}}
  - {at: list, attempts: [{http: 500}]}
""")
    )
    assert send(served, "tools/call", {"name": "show"}).status_code == 503
    assert send(served, "tools/list").status_code == 500
    assert texts(call(served, "show")) == ["Busy"]
    assert texts(call(served, "show")) == ["done"]
    assert result(served, "tools/list")["tools"]
    assert [entry["mcp"]["fails"] for entry in served.journal()] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_answers_break_as_those_of_models_do(serve):
    """A connection that is refused, one that is cut, and an answer that is none."""
    served = serve(
        of_server("""
  - tool: show
    attempts: [{fault: refuse}, {fault: {cut: {after: 20 bytes}}}, {fault: garble}]
    answer: {text: done}
""")
    )
    for _ in range(2):
        with pytest.raises(httpx.RemoteProtocolError):
            send(served, "tools/call", {"name": "show"})
    with pytest.raises(ValueError, match="Expecting"):
        send(served, "tools/call", {"name": "show"}).json()
    assert texts(call(served, "show")) == ["done"]
    assert served.journal()[0]["fault"] == "refuse"


def test_answers_break_the_rules_of_the_protocol(serve):
    """Another id; a session that is gone; content that breaks its schema."""
    served = serve(
        of_server("""
  - {tool: show, fault: unknown-id, answer: {text: x}}
  - {tool: get_forecast, fault: session-lost, answer: {text: back}}
  - {tool: get_numbers, fault: schema, answer: {json: {temp: 4}}}
""")
    )
    assert send(served, "tools/call", {"name": "show"}, id=5).json()["id"] != 5
    first = send(served, "initialize", {}).headers["mcp-session-id"]
    assert first != send(served, "initialize", {}).headers["mcp-session-id"]
    assert send(served, "tools/call", {"name": "get_forecast"}).status_code == 404
    assert texts(call(served, "get_forecast")) == ["back"]
    assert call(served, "get_numbers")["structuredContent"] == {"temp": None}


def test_faults_of_programs_do_not_strike_over_http(serve):
    """The journal says so, and the verdict is not good."""
    served = serve(of_server("  - {tool: show, fault: exit, answer: {text: x}}\n"))
    assert texts(call(served, "show")) == ["x"]
    assert "strikes over stdio alone" in served.journal()[0]["problems"][0]


# Clients


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_takes_every_answer(serve, mode):
    """Of both eras: it validates lists, results and structured content."""
    served = serve(BOTH)

    async def use() -> None:
        async with Client(f"{served.url}/mcp/weather", mode=mode) as client:
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == ["get_forecast", "get_numbers", "show"]
            got = await client.call_tool("get_forecast", {"city": "Oslo"})
            assert got.content[0].text == "Rain in Oslo"
            numbers = await client.call_tool("get_numbers", {"city": "Oslo"})
            assert numbers.structured_content == {"temp": 4}
            failed = await client.call_tool("get_forecast", {"city": "Paris"})
            assert failed.is_error

    asyncio.run(use())
    assert {entry["outcome"] for entry in served.journal()} == {"played"}
