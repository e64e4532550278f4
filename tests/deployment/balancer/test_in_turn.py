"""The official SDKs through nginx: three replicas in turn are one server."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from tests.deployment.balancer.cluster import Cluster
from tests.deployment.balancer.sdks import ASK, BROKEN, MODEL, Answers, ask, openai_client

pytestmark = pytest.mark.slow

BUSY = """
scenario: busy
turns:
  - attempts: [{http: 429, retry_after: 1ms}, {http: 503, retry_after: 1ms}]
    reply: {text: Made it., split: words}
"""
CITIES = """
scenario: cities
turns:
  - reply: {tool: weather, id: call_1, arguments: {city: Oslo}}
  - reply: {tool: weather, id: call_2, arguments: {city: Rome}}
  - reply: {text: Oslo has snow and Rome has rain.}
"""
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}}


def seen_by_all(cluster: Cluster, session: str) -> tuple[dict, dict]:
    """The journal and the verdict of a session, after checking that every replica has the same."""
    base = f"/_mockllm/{{}}?session={session}"
    journals = [cluster.read(index, base.format("journal")) for index in range(3)]
    verdicts = [cluster.read(index, base.format("verify")) for index in range(3)]
    assert journals[0] == journals[1] == journals[2]
    assert verdicts[0] == verdicts[1] == verdicts[2]
    return journals[0], verdicts[0]


@pytest.mark.parametrize("api", sorted(ASK))
def test_attempts_are_counted_once(cluster, api):
    """A session that one replica made answers on all: 429, then 503, then success, each from
    another replica, and success from then on. Every replica has the whole journal."""
    made = cluster.make_session(BUSY)
    with Answers() as http:
        seen = [ask(api, made["url"], http) for _ in range(6)]
    assert seen == [429, 503, *["Made it."] * 4]
    answered_by = [cluster.index_of(answer) for answer in http.answers]
    assert [set(answered_by[:3]), set(answered_by[3:])] == [{0, 1, 2}] * 2
    journal, verdict = seen_by_all(cluster, made["session"])
    entries = journal["exchanges"]
    assert [entry["status"] for entry in entries] == [429, 503, *[200] * 4]
    assert [entry["attempt"] for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert [entry["number"] for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert {entry["api"] for entry in entries} == {api}
    assert (verdict["verdict"], verdict["gaps"]) == ("good", [])


def test_the_retries_of_an_sdk_meet_other_replicas(cluster):
    """A client with retries sees only the success."""
    made = cluster.make_session(BUSY)
    with Answers() as http, openai_client(made["url"], http, retries=2) as client:
        done = client.responses.create(model=MODEL, input="hi")
    assert done.output_text == "Made it."
    assert [answer.status_code for answer in http.answers] == [429, 503, 200]
    assert {cluster.index_of(answer) for answer in http.answers} == {0, 1, 2}


@pytest.mark.parametrize("way", ["previous_response_id", "conversation"])
def test_a_conversation_goes_on_elsewhere(cluster, way):
    """Each turn of a stored conversation is answered by another replica."""
    made = cluster.make_session(CITIES)
    tools = [{"type": "function", "name": "weather", "parameters": TOOL, "strict": False}]
    entries: list = [{"role": "user", "content": "Oslo, then Rome"}]
    further = {"conversation": "conv_1"} if way == "conversation" else {}
    with Answers() as http, openai_client(made["url"], http) as client:
        for call in ("call_1", "call_2", None):
            answer = client.responses.create(model=MODEL, input=entries, tools=tools, **further)
            if call is None:
                break
            assert [item.call_id for item in answer.output] == [call]
            entries = [{"type": "function_call_output", "call_id": call, "output": "snow"}]
            if way == "previous_response_id":
                further = {way: answer.id}
    assert answer.output_text == "Oslo has snow and Rome has rain."
    assert {cluster.index_of(one) for one in http.answers} == {0, 1, 2}
    journal, verdict = seen_by_all(cluster, made["session"])
    assert [entry["turn"] for entry in journal["exchanges"]] == [0, 1, 2]
    assert verdict["verdict"] == "good"


def test_the_verdict_sees_what_others_answered(cluster):
    """A mistake of a client in the history of an answer that another replica gave is found, by
    every replica."""
    made = cluster.make_session(CITIES)
    messages: list = [{"role": "user", "content": "Oslo, then Rome"}]
    with Answers() as http, openai_client(made["url"], http) as client:
        first = client.chat.completions.create(model=MODEL, messages=messages)
        call = first.choices[0].message.tool_calls[0].model_dump()
        call["function"]["arguments"] = json.dumps({"city": "Bergen"})
        messages += [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "snow"},
        ]
        client.chat.completions.create(model=MODEL, messages=messages)
    _, verdict = seen_by_all(cluster, made["session"])
    assert [violation["invariant"] for violation in verdict["violations"]] == ["history-faithful"]
    assert verdict["unplayed"] == [{"scenario": "cities", "turn": 2}]


def test_stored_answers_are_found_and_deleted_everywhere(cluster):
    """`GET /v1/responses/{id}` and its items are the same from every replica; after a DELETE none
    has it."""
    made = cluster.make_session("scenario: one\nturns: [{reply: {text: Kept.}}]")
    with Answers() as http, openai_client(made["url"], http) as client:
        answer = client.responses.create(model=MODEL, input="Keep this")
        found = [client.responses.retrieve(answer.id) for _ in range(3)]
        assert [one.output_text for one in found] == ["Kept."] * 3
        items = [client.responses.input_items.list(answer.id).data for _ in range(3)]
        assert [one[0].content[0].text for one in items] == ["Keep this"] * 3
        assert {cluster.index_of(one) for one in http.answers[1:4]} == {0, 1, 2}
        client.responses.delete(answer.id)
        for _ in range(3):
            with pytest.raises(openai.NotFoundError):
                client.responses.retrieve(answer.id)


def test_nothing_is_lost_under_load(cluster):
    """Requests of all SDKs at the same time stand in the journal, each once, with its outcome."""
    made = cluster.make_session("scenario: one\nturns: [{reply: {text: Hello!}, repeat: true}]")

    def work(api: str) -> list[str | int]:
        with Answers() as http:
            return [ask(api, made["url"], http) for _ in range(8)]

    with ThreadPoolExecutor(len(ASK)) as pool:
        seen = list(pool.map(work, ASK))
    assert seen == [["Hello!"] * 8] * len(ASK)
    journal, verdict = seen_by_all(cluster, made["session"])
    entries = journal["exchanges"]
    assert sorted(entry["number"] for entry in entries) == list(range(1, 8 * len(ASK) + 1))
    assert {entry["outcome"] for entry in entries} == {"played"}
    assert verdict["verdict"] == "good"


def test_a_session_is_reset_and_deleted_everywhere(cluster):
    """A replica that answered for a session knows when another one changed it."""
    made = cluster.make_session(BUSY)
    route = f"{cluster.url}/_mockllm/sessions/{made['session']}"
    with Answers() as http:
        assert [ask("chat", made["url"], http) for _ in range(2)] == [429, 503]
        assert cluster.http.post(f"{route}/reset").status_code == 200
        assert [ask("chat", made["url"], http) for _ in range(3)] == [429, 503, "Made it."]
        assert cluster.http.delete(route).status_code == 200
        assert [ask("chat", made["url"], http, "plain") for _ in range(3)] == [
            "Nothing is counted here."
        ] * 3


def test_nginx_never_sends_a_request_twice(cluster):
    """A connection that breaks before the answer is a 502 for the client, though another replica
    would answer; one that breaks in the stream breaks for the client, too."""
    made = cluster.make_session(
        "scenario: broken\n"
        "turns:\n"
        "  - attempts: [{fault: refuse}, {fault: {cut: {after: 2 events, end: reset}}}]\n"
        "    reply: {text: It works now., split: words}\n"
    )
    with Answers() as http:
        assert ask("chat", made["url"], http) == 502
        with pytest.raises(BROKEN):
            ask("chat", made["url"], http)
        assert ask("chat", made["url"], http) == "It works now."
    journal, _ = seen_by_all(cluster, made["session"])
    assert [entry["attempt"] for entry in journal["exchanges"]] == [1, 2, 3]
