"""`POST /_mockllm/sessions`: sessions with scenarios of their own, over HTTP."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from mockllm import ServerOptions
from mockllm.core.errors import RequestError
from mockllm.core.text import json_as_yaml
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.latency.schedule import LatencyPlan
from mockllm.play.replay.loading import loads
from mockllm.scenario.dump import dump
from mockllm.scenario.reading import nodes
from mockllm.scenario.reading.latency import read_latency
from mockllm.scenario.reading.values import scalar
from mockllm.serve.server.options import RecordOptions
from mockllm.serve.server.sessions.session_setup import read_session_request
from mockllm.serve.server.sources import Sources
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.environment import client_environment
from tests.scenario.strategies import scenarios

FOLDER = Path(__file__).parents[3]
SERVED = """
scenario: greeting
match: {user: hello}
turns:
  - reply: {text: Served.}
"""
OWN = {"scenario": "own", "match": {"user": "hello"}, "turns": [{"reply": {"text": "Own."}}]}
BARE = {"scenario": "bare", "turns": [{"reply": {"text": "Bare."}}]}
CHAT = "/v1/chat/completions"


def create(server, **body):
    answer = server.http.post("/_mockllm/sessions", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def refused(served, body, status=400):
    """The error of a session that is not made, and leaves none behind."""
    before = served.http.get("/_mockllm/sessions").json()
    answer = served.http.post("/_mockllm/sessions", json=body)
    assert answer.status_code == status, answer.text
    assert served.http.get("/_mockllm/sessions").json() == before
    return answer.json()["error"]


def say(served, user, session=None, **headers):
    """The text of an answer, or the status of an error."""
    prefix = "" if session is None else f"/s/{session}"
    body = {"model": "m", "messages": [{"role": "user", "content": user}]}
    answer = served.http.post(prefix + CHAT, json=body, headers=headers)
    if answer.status_code != 200:
        return answer.status_code
    return answer.json()["choices"][0]["message"]["content"]


# What is made


def test_the_answer_has_all_that_a_test_needs(serve):
    """Base URLs, variables as of `mockllm env`, the verdict and the names of the scenarios."""
    served = serve(SERVED)
    made = create(served, session="mine", scenarios=OWN)
    root = f"{served.url}/s/mine"
    assert made["session"] == "mine"
    assert made["base_urls"] == {
        name: root + one.address.base_path for name, one in PROTOCOLS.items()
    }
    environment = client_environment(made["base_urls"])
    assert made["variables"] == {**environment, "MOCKLLM_URL": root}
    assert (made["scenarios"], made["quirks"], made["url"]) == (["own"], [], root)
    assert say(served, "hello", "mine") == "Own."
    verdict = served.http.get(made["verify"]).json()
    assert (verdict["session"], verdict["good"]) == ("mine", True)
    assert len(served.http.get(made["journal"]).json()["exchanges"]) == 1


def test_every_api_of_a_session_answers(serve):
    """The base URL of each protocol leads to the scenarios of the session."""
    served = serve(SERVED)
    for name in PROTOCOLS.over_http:
        protocol = PROTOCOLS[name]
        made = create(served, scenarios={**BARE, "scenario": f"only-{name}"})
        path = protocol.client.path_of("some-model")
        body = first_body(protocol, "some-model", "anything")
        headers = protocol.client.headers
        answer = served.http.post(made["url"] + path, json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        (exchange,) = served.http.get(made["journal"]).json()["exchanges"]
        assert (exchange["api"], exchange["scenario"]) == (name, f"only-{name}")


def test_scenarios_are_text_or_objects_or_both(serve):
    """YAML text, with several scenarios, and objects may be mixed."""
    served = serve(SERVED)
    text = "scenario: a\nmatch: {user: aa}\nturns: [{reply: {text: A}}]\n---\n" + SERVED
    made = create(served, scenarios=[text, OWN | {"match": {"user": "other"}}])
    assert made["scenarios"] == ["a", "greeting", "own"]
    assert say(served, "aa", made["session"]) == "A"
    assert say(served, "other", made["session"]) == "Own."


def test_sessions_do_not_see_the_scenarios_of_others(serve):
    """Scenarios live in their session alone, and those of the server do not answer in it."""
    served = serve(SERVED)
    first = create(served, scenarios=OWN)["session"]
    second = create(served, scenarios=BARE)["session"]
    assert say(served, "hello") == "Served."
    assert say(served, "hello", first) == "Own."
    assert say(served, "hello", second) == "Bare."
    assert say(served, "hello", second, **{"x-mockllm-scenario": "greeting"}) == 404
    assert say(served, "something else") == 404
    listed = served.http.get("/_mockllm/scenarios", params={"session": first}).json()
    assert [scenario["name"] for scenario in listed["scenarios"]] == ["own"]


@pytest.mark.parametrize(
    ("match", "named"),
    [("own", "Own."), (None, 404)],
)
def test_match_names_the_scenario_that_answers(serve, match, named):
    """`match` names the scenario of every request that names none."""
    served = serve(SERVED)
    made = create(served, scenarios=[OWN, BARE], match=match)
    assert say(served, "nothing known", made["session"]) == named
    assert say(served, "x", made["session"], **{"x-mockllm-scenario": "bare"}) == "Bare."


def test_match_may_name_a_served_scenario(serve):
    """Without scenarios of its own, a session may name one of the server."""
    served = serve(SERVED)
    made = create(served, match="greeting")
    assert say(served, "whatever", made["session"]) == "Served."
    assert say(served, "whatever") == 404


def test_quirks_are_of_the_session_alone(serve):
    """Quirks change the streams of the session, also of served scenarios, and no others."""
    served = serve(SERVED)
    session = create(served, quirks=["sse-crlf"])["session"]
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
    assert b"\r\n\r\n" in served.http.post(f"/s/{session}{CHAT}", json=body).content
    assert b"\r\n\r\n" not in served.http.post(CHAT, json=body).content
    assert served.journal(session)[0]["quirks"] == ["sse-crlf"]


def test_served_scenarios_answer_beside_own_ones(serve):
    """With `served`, an own scenario replaces the served one with its name or its `match`."""
    served = serve(SERVED + "---\nscenario: bye\nmatch: {user: bye}\nturns: [{reply: {text: B}}]")
    both = create(served, scenarios=OWN, served=True)["session"]
    assert [say(served, user, both) for user in ("hello", "bye")] == ["Own.", "B"]
    renamed = {**OWN, "scenario": "bye", "match": {"user": "good night"}}
    other = create(served, scenarios=renamed, served=True)["session"]
    users = ("hello", "good night", "bye")
    assert [say(served, user, other) for user in users] == ["Served.", "Own.", 404]


def test_a_session_follows_a_reload(serve):
    """Served scenarios that are loaded again answer in sessions that have them."""
    served = serve(SERVED)
    session = create(served, scenarios=BARE, served=True)["session"]
    quirked = create(served, quirks="sse-crlf")["session"]
    served.server.reload(loads(SERVED.replace("Served.", "Again.")))
    assert say(served, "hello", session) == "Again."
    assert say(served, "hello", quirked) == "Again."


# What is refused


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"scenario": OWN}, "scenario is an unknown key; did you mean 'scenarios'?"),
        ({"zzz": 1}, "served, fault, fault_rate, fault_seed, fault_burst, latency"),
        ({"session": "a b"}, "session must be a name of 1 to 128 letters"),
        ({"session": 5}, "session must be a name"),
        ({"scenarios": 5}, "scenarios must be a scenario: YAML text, or an object"),
        ({"scenarios": []}, "scenarios is empty"),
        ({"scenarios": ""}, "scenarios:1:1: holds no scenario"),
        ({"quirks": ["sse-crl"]}, "did you mean 'sse-crlf'"),
        ({"quirks": {"sse-crlf": 1}}, "quirks must be a list"),
        ({"quirks": [None]}, "quirks[0] must be the name of a quirk"),
        ({"scenarios": OWN, "match": "won"}, "did you mean 'own'?"),
        ({"scenarios": OWN, "match": "greeting"}, "match must be the name of a scenario"),
        ({"match": []}, "match must be the name of a scenario of the session, got []"),
        ({"served": "yes"}, "served must be true or false"),
        ({"served": False}, "nothing would answer"),
        ({"fault": "cutt"}, "fault is wrong: there is no fault 'cutt'; did you mean"),
        ({"fault": {"cut": {}}}, "fault must be a text such as 'cut:after=3 events'"),
        ({"fault": "refuse", "fault_rate": 10}, "fault_rate must be a number from 0 to 1"),
        ({"fault_seed": "7"}, "fault_seed needs 'fault'"),
        ({"fault_burst": "rate=1% every=1s for=1s"}, "fault_burst needs 'fault'"),
        ({"fault": "refuse", "fault_burst": "rate=1%"}, "needs every and for, such as rate=50%"),
        ({"latency": 3}, "latency must be a text such as 'ttft=300ms itl=20ms'"),
        ({"latency": "tfft=1s"}, "latency is wrong: there is no 'tfft'; did you mean 'ttft'?"),
        ({"latency": "ttft=samples(a)"}, "latency is wrong: ttft: names the file 'a', and"),
        ({"latency_seed": "7"}, "latency_seed needs 'latency'"),
        ({"fault": "limit:number=2"}, "which only a whole server can have"),
        ({"scenarios": "scenario: a\nturns: [{recorded: {file: a.jsonl}, reply: {text: b}}]"},
         "names a file, and scenarios that are sent have no files"),
        ({"scenarios": "scenario: a\nturns: [{reply: {text: {file: secret.txt}}}]"},
         "names the file 'secret.txt'"),
        ({"scenarios": "scenario: a\ninclude: b.yaml\nturns: [{reply: {use: b}}]"},
         "names the file 'b.yaml'"),
        ({"scenarios": "replies: {b: {text: c}}"}, "needs the key 'scenario'"),
        ({"scenarios": "scenario: a\nroute: GET /x\nturns: [{answer: {file: secret.txt}}]"},
         "names a file, and scenarios that are sent have no files"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_and_nothing_is_made(serve, body, message):
    """A body with a mistake is a 400 that names it, and no session is left behind."""
    assert message in refused(serve(SERVED), body)["message"]


@pytest.mark.parametrize(("every", "status"), [("1us", 503), ("1440m", 200)])
def test_bursts_of_a_session(serve, every, status):
    """They are as those of a server, since that started."""
    served, burst = serve(SERVED), f"rate=100% every={every} for=1440m"
    create(served, session="mine", scenarios=OWN, fault="status:status=503", fault_burst=burst)
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    assert served.http.post(f"/s/mine{CHAT}", json=body).status_code == status


def test_a_body_that_is_no_object_is_refused(serve):
    """Broken JSON, and JSON that is no object, are refused."""
    served = serve(SERVED)
    for content in (b'{"session": ', b"[]", b'{"session": "\xff"}'):
        assert served.http.post("/_mockllm/sessions", content=content).status_code == 400
    assert served.http.get("/_mockllm/sessions").json()["sessions"] == []


def test_every_problem_has_its_place(serve):
    """All problems are listed at once, those of scenarios with line, column and path."""
    text = "scenario: a\nturns:\n  - reply: {txt: A}\n  - {}\n"
    wrong = {**OWN, "turns": [{"reply": {"text": 5}}]}
    error = refused(serve(SERVED), {"scenarios": [text, wrong], "quirk": 1, "quirks": ["no"]})
    placed = [
        (problem["field"], problem.get("line"), problem.get("path"))
        for problem in error["problems"]
    ]
    assert placed == [
        ("quirk", None, None),
        ("scenarios[0]", 3, "turns[0].reply"),
        ("scenarios[0]", 4, "turns[1]"),
        ("scenarios[1]", 9, "turns[0].reply.text"),
        ("quirks[0]", None, None),
    ]
    lines = json.dumps(wrong, indent=2).splitlines()
    assert lines[8][error["problems"][3]["column"] - 1 :] == "5"
    assert "scenarios[0]:3:13: turns[0].reply: unknown key 'txt'" in error["message"]
    assert "(5 problems)" in error["message"]


def test_competing_scenarios_of_one_session_are_refused(serve):
    """Two scenarios with one name or one `match` are an error, in whatever texts they are."""
    error = refused(serve(SERVED), {"scenarios": [SERVED, OWN, {**BARE, "scenario": "own"}]})
    assert "matches the same requests as scenario 'greeting'" in error["message"]
    assert "'own' is the name of another scenario, at scenarios[1]:2:15" in error["message"]


def test_a_name_that_exists_is_refused(serve):
    """No test gets the session of another; a plain request for a session that exists is none."""
    served = serve(SERVED)
    create(served, session="mine", scenarios=OWN)
    assert "Delete it" in refused(served, {"session": "mine", "scenarios": BARE}, 409)["message"]
    assert say(served, "hello", "used") == "Served."
    refused(served, {"session": "used", "quirks": ["sse-crlf"]}, 409)
    assert create(served, session="mine")["scenarios"] == ["own"]
    assert "scenarios" not in create(served, session="used")


def test_the_examples_in_the_documentation(serve):
    """docs/sessions.md: the body of the request makes a session, and the error is a real one."""
    page = (FOLDER / "docs" / "sessions.md").read_text()
    page = page.partition("## Sessions with scenarios of their own")[2]
    served = serve(SERVED)
    body = json.loads(page.partition("-d '")[2].partition("'\n```")[0])
    assert say(served, "anything", create(served, **body)["session"]) == "Hello!"
    text = "scenario: hello\nturns:\n  - reply: {txt: Hello}\n"
    error = refused(served, {"scenarios": text, "quirk": ["sse-crlf"]})
    assert {"error": error} == json.loads(page.partition("```json\n")[2].partition("```")[0])


# Resetting, deleting, bounds


def test_a_reset_session_begins_again(serve):
    """Journal and counters are empty after it; the scenarios stay."""
    served = serve(SERVED)
    retried = {**BARE, "turns": [{"attempts": [{"http": 503}], "reply": {"text": "Fine."}}]}
    session = create(served, scenarios=retried)["session"]
    assert [say(served, "x", session) for _ in range(2)] == [503, "Fine."]
    reset = served.http.post(f"/_mockllm/sessions/{session}/reset").json()
    assert (reset["requests"], reset["played"], reset["scenarios"]) == (0, {}, ["bare"])
    assert [say(served, "x", session) for _ in range(2)] == [503, "Fine."]
    assert len(served.journal(session)) == 2
    assert served.http.post("/_mockllm/sessions/none/reset").status_code == 404


def test_a_deleted_session_is_free_again(serve):
    """Deleting drops the scenarios, too; the name may be used again."""
    served = serve(SERVED)
    create(served, session="mine", scenarios=OWN)
    assert served.http.delete("/_mockllm/sessions/mine").json()["deleted"]
    assert say(served, "hello", "mine") == "Served."
    served.http.delete("/_mockllm/sessions/mine")
    create(served, session="mine", scenarios=BARE)
    assert say(served, "hello", "mine") == "Bare."


def test_an_evicted_session_is_not_answered_by_the_server(serve):
    """Of a session that was evicted nothing else answers, until it is made again."""
    served = serve(SERVED)
    served.server.sessions._max_sessions = 2
    create(served, session="old", scenarios=OWN)
    for name in ("b", "c"):
        say(served, "hello", name)
    assert say(served, "hello", "old") == 410
    assert served.http.post("/_mockllm/sessions/old/reset").status_code == 410
    answer = served.http.get("/s/old/v1/models")
    assert (answer.status_code, answer.json()["error"]["code"]) == (410, "session_evicted")
    assert answer.headers["access-control-allow-origin"] == "*"
    verdict = served.http.get("/_mockllm/verify?session=old").json()
    assert (verdict["evicted"], verdict["good"]) == (True, False)
    made = create(served, session="old", scenarios=BARE)
    assert (made["evicted"], say(served, "hello", "old")) == (False, "Bare.")


def test_the_scenarios_of_all_sessions_are_bounded(serve):
    """Sessions that are too large together are refused until one is deleted."""
    served = serve(SERVED)
    served.server._parts.sources.setups._max_bytes = 1000
    create(served, session="large", scenarios={**OWN, "description": "x" * 800})
    refused(served, {"scenarios": {**OWN, "description": "x" * 200}}, 507)
    served.http.delete("/_mockllm/sessions/large")
    create(served, scenarios={**OWN, "description": "x" * 200})


def test_a_body_beyond_the_limit_makes_nothing(serve):
    """`--max-body` bounds the scenarios of one session."""
    refused(serve(SERVED, max_body=300), {"scenarios": {**OWN, "description": "x" * 300}}, 413)


def test_own_scenarios_are_not_forwarded(serve, tmp_path):
    """On a server that records, a session with scenarios of its own asks no service."""
    record = RecordOptions(tmp_path, {"chat": "http://127.0.0.1:1"}, "add")
    served = serve(SERVED, record=record)
    session = create(served, scenarios=OWN)["session"]
    assert say(served, "hello", session) == "Own."
    assert say(served, "unknown", session) == 404
    assert say(served, "hello") == 502


# The session that a control route is about


def test_the_prefix_of_a_session_holds_for_control_routes(serve):
    """`/s/NAME/_mockllm/verify` judges that session, and not `default`."""
    served = serve(SERVED)
    session = create(served, scenarios=OWN)["session"]
    assert say(served, "hello") == "Served."
    assert say(served, "unknown", session) == 404
    judged = served.http.get(f"/s/{session}/_mockllm/verify").json()
    assert (judged["session"], judged["unmatched"]) == (session, [1])
    assert served.http.get("/_mockllm/verify").json()["good"]
    journal = served.http.get(f"/s/{session}/_mockllm/journal").json()["exchanges"]
    assert [entry["session"] for entry in journal] == [session]
    assert len(served.http.get("/_mockllm/journal").json()["exchanges"]) == 2
    header = {"x-mockllm-session": session}
    named = served.http.get("/_mockllm/scenarios", headers=header).json()["scenarios"]
    assert [one["name"] for one in named] == ["own"]


def test_a_quirk_session_shares_the_index_of_the_server():
    """A session with nothing but quirks does not index ten thousand scenarios again."""
    sources = Sources(loads(SERVED), ServerOptions(), running=lambda: 0)
    request = read_session_request(b'{"quirks": ["sse-crlf"]}', dict)
    player = sources.setups.make_player(request, sources.player)
    assert player.served is sources.player.served


# Objects and YAML


def _value(node):
    if isinstance(node, nodes.Mapping):
        return {key: _value(one) for key, one in node.entries.items()}
    if isinstance(node, nodes.Sequence):
        return [_value(one) for one in node.items]
    return scalar(node)


@pytest.mark.slow
@settings(max_examples=30)
@given(scenarios())
def test_an_object_means_what_its_yaml_means(scenario):
    """A scenario as JSON, with any characters, is the scenario that its YAML describes."""
    (parsed,) = nodes.documents(dump(scenario), "x")
    sent = json.loads(json.dumps(_value(parsed.root)))
    assert loads(json_as_yaml(sent)) == loads(dump(scenario))


def test_odd_keys_and_characters_of_objects():
    """Characters that YAML refuses, and values that look like others, keep their meaning."""
    body = {"a": "\u2028\x85\x7f\ufeff\U0001f600", "n": "null", "y": "yes", "": 1e22, "f": 1.0}
    sent = {**OWN, "match": {"body": body}}
    (scenario,) = loads(json_as_yaml(json.loads(json.dumps(sent))))
    assert scenario.match is not None
    assert scenario.match.body == body


def test_half_a_character_is_a_problem_with_its_place():
    """A lone surrogate in JSON is read as it is: it is no part of a name."""
    with pytest.raises(RequestError, match=r"scenarios:2:15: scenario: must be a name"):
        read_session_request(b'{"scenarios": {"scenario": "\\ud800"}}', dict)


def test_latency_of_a_session() -> None:
    """In place of that of the server, with a seed of its own."""
    body = json.dumps({"session": "slow", "latency": "ttft=1s", "latency_seed": 7}).encode()
    latency = read_session_request(body, dict).latency
    assert latency == LatencyPlan(read_latency("ttft=1s"), "7")
    assert read_session_request(b"{}", dict).latency is None
