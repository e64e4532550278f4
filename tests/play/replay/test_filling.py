"""Templates as they are played: values of the request in all places of an answer, over all APIs."""

from __future__ import annotations

import json

from mockllm.core.request import Message
from mockllm.core.turn import Reasoning
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.loading import loads
from mockllm.play.replay.route_player import RoutePlayer
from mockllm.play.replay.sessions.session import Session
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.play.replay.talking import WITH_TOOLS, Talk

ECHO = """
scenario: echo
match: {user: weather}
template: true
turns:
  - reply:
      - reasoning: 'They say "{{ request.user }}".'
      - {text: "Looking for {{ request.user }}.", split: words}
      - tool: get_weather
        arguments:
          query: "{{ request.user }}"
          n: "{{ turn }}"
          deep: [{"a": "{{ request.user }}!"}]
  - reply:
      text: "{{ call.name }}({{ call.arguments.query }}) = {{ result.text }} / {{ result.json.t }}"
  - template: false
    reply: {text: "{{ request.user }}"}
"""


@for_all("api", WITH_TOOLS)
def test_values_of_the_request(api: str) -> None:
    """Texts, reasoning and arguments have what the client sent, quotes and all."""
    said = 'the "weather" {{ turn }}'
    talk = Talk(ECHO, api)
    turn = talk.says(said)
    assert turn.text == f"Looking for {said}."
    for part in turn.parts:
        if isinstance(part, Reasoning):
            assert part.text == f'They say "{said}".'
    (call,) = turn.tool_calls
    assert json.loads(call.arguments) == {"query": said, "n": 1, "deep": [{"a": f"{said}!"}]}
    assert talk.returns('{"t": 7}').text == f'get_weather({said}) = {{"t": 7}} / 7'
    assert talk.says("thanks").text == "{{ request.user }}"


GROUPS = """
scenario: groups
match:
  user:
    any:
      - {regex: "weather in (?P<city>\\\\w+)"}
      - {regex: "in (?P<city>\\\\w+), (?P<land>\\\\w+)"}
template: true
turns:
  - reply: {text: 'Sunny in {{ match.city }}, {{ match.land | default("?") }}.'}
  - request: {user: {regex: "^(?P<thanks>thank|good)"}}
    reply: {text: "{{ match.thanks }} from {{ match.city }}"}
"""


@for_all("api", WITH_TOOLS)
def test_groups_of_conditions(api: str) -> None:
    """A template has what the named groups of conditions have, also turns later; a group that took
    no part in the match has no value."""
    talk = Talk(GROUPS, api)
    assert talk.says("What is the weather in Oslo?").text == "Sunny in Oslo, ?."
    assert talk.says("thank you").text == "thank from Oslo"
    assert Talk(GROUPS, api).says("and in Bonn, Germany").text == "Sunny in Bonn, Germany."


def test_the_same_request_gets_the_same_bytes() -> None:
    """Other requests for the same turn get other texts; the same one gets the same bytes."""
    first, second, third = (
        b"".join(Talk(ECHO, "chat").ask_with(said).answer.data)
        for said in ("weather a", "weather b", "weather a")
    )
    assert first == third != second


def test_a_value_that_is_not_there() -> None:
    """The request is refused with what is missing, in the form of the API; the journal has it."""
    yaml = "scenario: a\ntemplate: true\nturns: [{reply: {text: '{{ result.text }}'}}]\n"
    talk = Talk(yaml, "anthropic", model="mock/a")
    answered = talk.ask_with("hello")
    error = json.loads(answered.answer.data[0])["error"]
    assert answered.answer.status == 400
    assert error["message"] == (
        "Turn 1 of scenario 'a', reply.0.text: {{ result.text }}: this request has no 'result'; "
        "write | default(...) behind it if that may be."
    )
    assert talk.facts["outcome"] == "invalid"


ERRORS = """
scenario: errors
template: true
turns:
  - http:
      status: 404
      headers: {x-asked: "{{ request.user }}"}
      error: {message: "No {{ request.user }}."}
    attempts: [{reply: {text: "First {{ request.user }}."}}]
    headers: {x-turn: "{{ turn }}"}
"""


def test_errors_tries_and_headers() -> None:
    """Messages and headers of errors have values, and so do the replies of earlier tries."""
    talk = Talk(ERRORS, "chat", model="mock/errors")
    assert b'"First tea."' in b"".join(talk.ask_with("tea").answer.data)
    answer = talk.ask().answer
    assert (answer.status, dict(answer.headers)["x-asked"]) == (404, "tea")
    assert json.loads(answer.data[0])["error"]["message"] == "No tea."


@for_all("api", list(PROTOCOLS))
def test_headers_of_an_answer(api: str) -> None:
    """`headers` are on the answer, once, in place of those of the API."""
    yaml = (
        "scenario: a\nmatch: {user: hi}\nturns:\n  - reply: {text: x}\n"
        "    headers: {X-Request-Id: r1, x-mine: 'a: b', content-type: text/odd}\n"
    )
    talk = Talk(yaml, api)
    headers = talk.ask_with("hi").answer.headers
    assert [value for name, value in headers if name == "x-request-id"] == ["r1"]
    assert dict(headers)["x-mine"] == "a: b"
    assert [value for name, value in headers if name == "content-type"] == ["text/odd"]


def test_several_calls() -> None:
    """`call` is the one that the last result answers; all stand in `calls` and `results`."""
    yaml = """
scenario: two
match: {user: two}
template: true
turns:
  - reply: [{tool: f, id: a, arguments: {x: 1}}, {tool: g, id: b, arguments: {x: 2}}]
  - reply:
      text: "{{ call.name }} {{ result.id }} {{ calls[0].arguments.x }} {{ results | length }}
        {{ results[1].text }}"
"""
    talk = Talk(yaml, "chat")
    talk.says("two")
    first, second = talk.messages[-1].calls
    for call, text in ((second, "late"), (first, "early")):
        talk.messages.append(Message("tool", text, call_id=call.id, name=call.name))
    assert talk.turn().text == "f a 1 2 early"


def test_an_answer_is_looked_up_with_its_values() -> None:
    """A stored answer is made again from its request, values included."""
    talk = Talk(ECHO, "responses")
    talk.fields = {"stream": False}
    answered = talk.ask_with("weather here")
    from mockllm.core.http import Target
    from mockllm.play.replay.call import ApiCall
    from mockllm.play.replay.player import Player

    target = Target({"response_id": answered.answer.id or ""})
    call = ApiCall(talk.protocol, target, {}, b"", talk.session)
    found = Player(talk.scenarios).look_up(call, "response")
    assert b"Looking for weather here." in b"".join(found.answer.data)


ROUTE = """
scenario: file
route: GET /v1/files/{id}/parts/{part}
template: true
turns:
  - answer:
      headers: {x-part: "{{ request.path.part }}"}
      json: {id: "{{ request.path.id }}", after: "{{ request.query.after | default(null) }}"}
---
scenario: greeting
route: POST /greet
template: true
turns:
  - answer: {text: "Hello {{ request.body.name }}, {{ request.model }}!"}
"""


def test_routes() -> None:
    """The answer of a route has values of path, query and body."""
    player = RoutePlayer(loads(ROUTE))
    request = RouteRequest("GET", "/base/v1/files/f%201/parts/2", "after=x", {})
    answered = player.play(request, Session("s"))
    assert answered is not None
    assert json.loads(answered.answer.data[0]) == {"id": "f 1", "after": "x"}
    assert dict(answered.answer.headers)["x-part"] == "2"
    body = b'{"name": "Ada", "model": "m"}'
    answered = player.play(RouteRequest("POST", "/greet", "", {}, body), Session("s"))
    assert answered is not None
    assert answered.answer.data == (b"Hello Ada, m!",)


def test_the_call_of_an_answer_that_is_named_by_its_id() -> None:
    """Where the request has results and no history, the call is that of the scenario's turn."""
    yaml = """
scenario: named
match: {user: go}
template: true
turns:
  - reply: [{tool: f, id: a, arguments: {x: 1}}, {tool: g, id: b, arguments: {y: "{{ turn }}"}}]
  - reply:
      text: "{{ calls[0].arguments.x }} {{ call.name }} {{ call.arguments.y | default('?') }}"
"""
    talk = Talk(yaml, "responses")
    answered = talk.ask_with("go")
    talk.messages = [Message("tool", text, call_id=id) for id, text in (("a", "1"), ("b", "2"))]
    talk.fields = {"previous_response_id": answered.answer.id}
    assert talk.turn().text == "1 g ?"
