"""Three servers in turn behave as one, with each store."""

from __future__ import annotations

from tests.serve.server.shared_state.replicas import replicas

SCENARIOS = """
scenario: flaky
match: {user: hello}
turns:
  - attempts: [{http: 429}, {http: 503}]
    reply: [{text: hi there}]
---
scenario: weather
match: {user: weather}
tools:
  - {name: get_weather, parameters: {type: object, properties: {city: {type: string}}}}
turns:
  - reply: [{tool: get_weather, arguments: {city: Paris}}]
  - reply: [{text: It is sunny.}]
"""


def test_attempts_are_counted_once(state: str) -> None:
    """`attempts: [429, 503]` gives each status once, then the answer, which stays."""
    with replicas(SCENARIOS, state) as servers:
        assert [servers.chat("hello").status for _ in range(5)] == [429, 503, 200, 200, 200]
        journal = servers.everywhere("/_mockllm/journal?session=default")
        tried = [
            (entry["number"], entry["status"], entry["attempt"]) for entry in journal["exchanges"]
        ]
        expected = [(429, 1), (503, 2), (200, 3), (200, 4), (200, 5)]
        assert tried == [(at + 1, *one) for at, one in enumerate(expected)]
        found = servers.everywhere("/_mockllm/verify?session=default")
        assert (found["verdict"], found["gaps"]) == ("good", [])


def test_attempts_begin_again(state: str) -> None:
    """With `repeat: true` they do so after the answer, on whichever server."""
    again = SCENARIOS.replace("    reply: [{text: hi there}]", "    repeat: true\n    reply: hi")
    with replicas(again, state) as servers:
        assert [servers.chat("hello").status for _ in range(7)] == [429, 503, 200] * 2 + [429]


def test_prefixes_are_counted_over_all_servers(state: str) -> None:
    """What one server answered is in the cache of the next one."""
    text = "scenario: a\nmatch: {user: long}\nturns:\n"
    text += "  - {reply: ok, usage: {cached: prefix}, repeat: true}\n"
    with replicas(text, state) as servers:
        usages = [servers.chat("long" * 1200).body["usage"] for _ in range(3)]
        found = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
        assert found == [0, 1152, 1152]


def test_polls_are_counted_over_all_servers(state: str) -> None:
    """A job is pending for its polls, whichever server gets them; a later one begins anew."""
    job = SCENARIOS.replace(
        "reply: [{text: hi there}]", "reply: [{text: hi}]\n    job: {pending: 4 polls}"
    )
    job = job.replace("  - attempts: [{http: 429}, {http: 503}]\n    reply", "  - reply")
    body = {"model": "m", "input": "hello", "background": True}
    with replicas(job, state) as servers:
        for _ in range(2):
            id = servers.send("POST", "/v1/responses", body).body["id"]
            polls = [servers.send("GET", f"/v1/responses/{id}").body["status"] for _ in range(6)]
            assert polls == ["in_progress"] * 4 + ["completed"] * 2


def test_answers_are_found_by_their_id(state: str) -> None:
    """A stored answer is there on each server, until it is deleted on one."""
    with replicas(SCENARIOS, state) as servers:
        statuses = []
        for _ in range(3):
            made = servers.send("POST", "/v1/responses", {"model": "m", "input": "hello"})
            statuses.append(made.status)
        assert statuses == [429, 503, 200]
        path = f"/v1/responses/{made.body['id']}"
        found = servers.everywhere(path)
        assert found["output"] == made.body["output"]
        assert servers.everywhere(path + "/input_items")["data"]
        assert servers.send("DELETE", path).status == 200
        assert [servers.send("GET", path).status for _ in range(3)] == [404, 404, 404]
        assert servers.send("GET", "/v1/responses/resp_unknown").status == 404


def test_conversations_go_on(state: str) -> None:
    """A conversation by `previous_response_id`, and one by its own id, over servers in turn."""
    for by_id in (False, True):
        with replicas(SCENARIOS, state) as servers:
            body = {"model": "m", "input": "weather?", "tools": [_TOOL]}
            session = {"x_mockllm_session": f"by-id-{by_id}"}
            if by_id:
                body["conversation"] = "conv_1"
            first = servers.send("POST", "/v1/responses", body, **session)
            (call,) = first.body["output"]
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": "sun"}
            goes_on = {"model": "m", "input": [result], "tools": [_TOOL]}
            goes_on |= (
                {"conversation": "conv_1"} if by_id else {"previous_response_id": first.body["id"]}
            )
            second = servers.send("POST", "/v1/responses", goes_on, **session)
            assert second.body["output"][0]["content"][0]["text"] == "It is sunny."
            name = session["x_mockllm_session"]
            found = servers.everywhere(f"/_mockllm/verify?session={name}")
            assert found["verdict"] == "good", found


_TOOL = {
    "type": "function",
    "name": "get_weather",
    "strict": False,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def test_a_session_made_on_one_server(state: str) -> None:
    """Its scenarios answer on each; it is reset and deleted for all."""
    own = "scenario: own\nturns:\n- reply: [{text: own text}]\n"
    with replicas(SCENARIOS, state) as servers:
        asked = {"session": "mine", "scenarios": own}
        assert servers.send("POST", "/_mockllm/sessions", asked).status == 201
        again = servers.send("POST", "/_mockllm/sessions", asked)
        assert again.status == 409
        for _ in range(3):
            answer = servers.chat("anything", x_mockllm_session="mine")
            assert answer.body["choices"][0]["message"]["content"] == "own text"
        summary = servers.everywhere("/_mockllm/sessions/mine")
        assert (summary["requests"], summary["scenarios"]) == (3, ["own"])
        assert summary["played"] == {"own": [0]}
        assert servers.send("POST", "/_mockllm/sessions/mine/reset").status == 200
        assert servers.everywhere("/_mockllm/sessions/mine")["requests"] == 0
        assert servers.chat("x", x_mockllm_session="mine").status == 200
        assert servers.send("DELETE", "/_mockllm/sessions/mine").status == 200
        assert servers.send("GET", "/_mockllm/sessions/mine").status == 404
        assert servers.chat("anything", x_mockllm_session="mine").status == 404
        listed = servers.everywhere("/_mockllm/sessions")["sessions"]
        assert [one["session"] for one in listed] == ["mine"]  # of the last request


def test_the_default_session_has_no_setup(state: str) -> None:
    """It is refused, and nothing of it is left."""
    own = "scenario: own\nturns:\n- reply: [{text: own text}]\n"
    with replicas(SCENARIOS, state) as servers:
        asked = {"session": "default", "scenarios": own}
        answer = servers.send("POST", "/_mockllm/sessions", asked)
        assert answer.status == 400
        assert "Choose another name" in answer.body["error"]["message"]
        assert [servers.chat("hello").status for _ in range(3)] == [429, 503, 200]


def test_faults_are_drawn_as_by_one_server(state: str) -> None:
    """A plan draws by the number of the request in its session, whichever server has it."""
    from mockllm.play.replay.fault_plan import read_plan

    def run(count: int, where: str) -> list[int]:
        plan = read_plan(("status:status=503",), rate=0.4, seed="7")
        options = {"faults": plan}
        text = "scenario: s\nmatch: any\nturns:\n- {reply: [{text: x}], repeat: true}\n"
        with replicas(text, where, count, **options) as servers:
            return [servers.chat("hello").status for _ in range(12)]

    assert run(3, state) == run(1, "")


def test_an_unknown_session(state: str) -> None:
    """The answer lists the sessions of all servers."""
    with replicas(SCENARIOS, state) as servers:
        servers.chat("hello")
        answer = servers.send("GET", "/_mockllm/verify?session=other")
        assert answer.status == 404
        assert "there are: default" in answer.body["error"]["message"]
