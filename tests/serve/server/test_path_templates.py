"""`--path`: further paths of an API, and the ids that are made for them."""

import json

import pytest

from mockllm import ServerThread
from mockllm.cli import main
from mockllm.core.errors import UsageError
from mockllm.play.replay.client_requests import first_body
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.routing import path_routes
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

ROOMS = "/api/v1/rooms/{room}/agui/{thread}/{run}"
SCENARIOS = """
scenario: hello
match: {user: hello}
turns: [{reply: {text: Hello.}}]
---
scenario: other
turns: [{reply: {text: Other.}}]
"""
USER = [{"id": "1", "role": "user", "content": "hello"}]


def events(answer):
    lines = answer.text.splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def test_a_run_is_created_and_streamed(serve):
    """A thread with its first run, a further run, and the stream of either."""
    served = serve(SCENARIOS, paths=(("agui", ROOMS),))
    rooms = "/api/v1/rooms/main/agui"
    thread = served.http.post(rooms, json={"metadata": {"name": "n"}}).json()
    (first,) = thread["runs"]
    assert (thread["room_id"], thread["metadata"]) == ("main", {"name": "n"})
    assert thread["runs"][first]["thread_id"] == thread["thread_id"]
    further = served.http.post(f"{rooms}/{thread['thread_id']}", json={"parent_run_id": first})
    run = further.json()
    assert (run["room_id"], run["thread_id"]) == ("main", thread["thread_id"])
    assert (run["parent_run_id"], run["run_id"] != first) == (first, True)
    for id in (first, run["run_id"]):
        body = {"messages": USER}
        streamed = served.http.post(f"{rooms}/{thread['thread_id']}/{id}", json=body)
        assert streamed.status_code == 200, streamed.text
        started = events(streamed)[0]
        assert (started["threadId"], started["runId"]) == (thread["thread_id"], id)
    outcomes = [(entry["api"], entry["outcome"]) for entry in served.journal()]
    assert outcomes == [("agui", "played")] * 4
    assert served.http.get("/_mockllm/verify").json()["good"]


def test_ids_are_the_same_in_every_run_of_a_test(serve):
    """They follow from the number of earlier requests in the session, so no two are equal."""
    made = []
    for _ in range(2):
        served = serve(SCENARIOS, paths=(("agui", ROOMS),))
        posts = [served.http.post("/s/a/api/v1/rooms/r/agui").json() for _ in range(3)]
        made.append([post["thread_id"] for post in posts])
    assert made[0] == made[1]
    assert len(set(made[0])) == 3


def test_the_ids_of_the_body_win(serve):
    """A body with ids of its own keeps them."""
    served = serve(SCENARIOS, paths=(("agui", "/x/{thread_id}/{runId}"),))
    body = {"threadId": "t", "runId": "r", "messages": USER}
    started = events(served.http.post("/x/one/two", json=body))[0]
    assert (started["threadId"], started["runId"]) == ("t", "r")
    left_out = events(served.http.post("/x/one/two", json={"messages": USER}))[0]
    assert (left_out["threadId"], left_out["runId"]) == ("one", "two")


def test_a_parameter_may_name_the_scenario(serve):
    """`{scenario}` names it, as in `/agui/{scenario}`; a segment may be quoted."""
    served = serve(SCENARIOS, paths=(("agui", "/agents/{scenario}/stream"),))
    body = {"threadId": "t", "runId": "r", "messages": USER}
    answer = served.http.post("/agents/other/stream", json=body)
    assert '"Other."' in answer.text
    assert served.http.post("/agents/none/stream", json=body).status_code == 404
    assert served.http.post("/agents/a/b/stream", json=body).status_code == 404
    assert served.http.post("/prefix/agents/other/stream", json=body).status_code == 404


@pytest.mark.parametrize("api", PROTOCOLS.over_http)
def test_every_api_may_have_further_paths(serve, api):
    """A template leads to the API, in sessions too; pages may call it."""
    protocol = PROTOCOLS[api]
    body = first_body(protocol, "m", "hello")
    if protocol.client.stream_field:
        body[protocol.client.stream_field] = True
    path = "/gateway/{team}/run" + (":streamGenerateContent" if "{model}:" in _usual(api) else "")
    template = path.replace("/run", "/{model}") if ":" in path else path
    served = serve(SCENARIOS, paths=((api, template),))
    sent = template.replace("{team}", "red").replace("{model}", "m")
    answer = served.http.post("/s/a" + sent, json=body, headers=protocol.client.headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["access-control-allow-origin"] == "*"
    (exchange,) = served.journal("a")
    assert (exchange["api"], exchange["scenario"]) == (api, "hello")


def _usual(api):
    return PROTOCOLS[api].client.path


def test_a_scenario_with_the_route_goes_first(serve):
    """The answer that creates a run may be written as a scenario, and so may other requests."""
    own = "\n---\nscenario: own\nroute: POST /api/v1/rooms/main/agui\nturns: [{answer: {json: 1}}]"
    served = serve(SCENARIOS + own, paths=(("agui", ROOMS),))
    assert served.http.post("/api/v1/rooms/main/agui").json() == 1
    assert "thread_id" in served.http.post("/api/v1/rooms/other/agui").json()
    listed = served.http.get("/api/v1/rooms/other/agui")
    assert (listed.status_code, listed.headers["allow"]) == (405, "POST")


def test_a_request_to_another_path_is_advised(serve):
    """The 404 for a request of an API at an unknown path has the option that would serve it."""
    run = {"threadId": "t", "runId": "r", "messages": []}
    answer = serve(SCENARIOS).http.post("/agents/run", json=run)
    assert "--path agui=/agents/run" in answer.json()["error"]["message"]


@for_all(
    ("api", "template", "message"),
    [
        ("agui", "agents", "must begin with '/'"),
        ("agui", "/", "must begin with '/'"),
        ("agui", "/a//b", "has an empty segment"),
        ("agui", "/a/", "has an empty segment"),
        ("agui", "/a/{b}{c}", "has the segment '{b}{c}'"),
        ("agui", "/a/{b", "has the segment '{b'"),
        ("agui", "/a?b", "has the segment 'a?b'"),
        ("agui", "/{a}/{a}/x", "two parameters of one name"),
        ("agui", "/_mockllm/{a}", "one of mockllm itself"),
        ("agui", "/s/{a}/b", "one of mockllm itself"),
        ("agu", "/a", "did you mean 'agui'?"),
        ("zzz", "/a", "there are: chat, responses"),
        ("agui", "/v1/messages", "clashes with /v1/messages of anthropic"),
        ("agui", "/{version}/messages", "clashes with /v1/messages of anthropic"),
        ("chat", "/agui/{name}", "clashes with /agui/{scenario} of agui"),
        ("gemini", "/v1beta/models/{x}", "clashes with"),
        ("agui", "/agui/{thread}/{run}", "(POST /agui/{thread} makes ids) clashes with"),
    ],
)
def test_a_wrong_template_is_refused_at_the_start(api, template, message):
    """Malformed templates, and those that another route shares requests with."""
    with pytest.raises(UsageError) as caught:
        path_routes(PROTOCOLS.addresses, [(api, template)])
    assert message in str(caught.value)
    thread = ServerThread((), ServerOptions(paths=((api, template),)))
    with pytest.raises(UsageError), thread:
        pass


def test_templates_that_clash_with_each_other_are_refused():
    """One request could be for two templates."""
    with pytest.raises(UsageError, match=r"clashes with /x/\{a\}/z of --path chat=/x/\{a\}/z"):
        path_routes(PROTOCOLS.addresses, [("chat", "/x/{a}/z"), ("agui", "/x/{b}/{c}")])
    routes = path_routes(PROTOCOLS.addresses, [("chat", "/x/{a}"), ("agui", "/y/{b}")])
    assert [route.path for route in routes["chat"]] == ["/x/{a}"]


@pytest.mark.parametrize("command", ["serve", "record", "run"])
def test_the_command_line_has_further_paths(command):
    """Each is an API and a template; what is no pair is refused."""
    import click
    from click.testing import CliRunner

    found = main.get_command(click.Context(main), command)
    assert found is not None
    arguments = {"serve": ["x"], "record": ["-o", "x"], "run": ["--", "true"]}[command]
    options = ["--path", "chat=/a/{b}", "--path", "agui=/c"]
    with found.make_context(command, [*options, *arguments]) as context:
        assert context.params["api_paths"] == (("chat", "/a/{b}"), ("agui", "/c"))
    refused = CliRunner().invoke(main, [command, "--path", "agui", *arguments])
    assert (refused.exit_code, "must be KEY=VALUE, such as chat=" in refused.output) == (2, True)
