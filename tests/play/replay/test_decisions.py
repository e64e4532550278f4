"""What a player decides for a request, what it keeps, and what the journal has of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mockllm.core.errors import RequestError
from mockllm.core.http import NO_TARGET, Target
from mockllm.core.jsontext import parse_object
from mockllm.play.matching.index import mint_token
from mockllm.play.replay.call import Answered, ApiCall, refuse
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.loading import loads
from mockllm.play.replay.player import FALLBACK, Player
from mockllm.play.replay.sessions.exchange import Played
from mockllm.play.replay.sessions.session import Session
from mockllm.wire.protocols import PROTOCOLS
from tests.entries import amend, played_entry

SCENARIOS = """
scenario: hello
match: {user: hello}
turns:
  - reply: {text: Hi there.}
  - reply: {text: Again.}
---
scenario: flaky
match: {user: flaky}
turns:
  - attempts: [{http: 429, retry_after: 2s}, {http: 503}]
    reply: {text: Fine.}
---
scenario: down
match: {user: down}
turns:
  - attempts: [{http: 429}]
    http: 401
---
scenario: picky
match: {user: picky}
turns:
  - request: {offers: [f]}
    reply: {text: Thanks.}
---
scenario: named
turns:
  - reply: {text: By name.}
    wire: {quirks: [sse-comments]}
"""


class Client:
    """A client of a player: what is answered, and the exchange of the last request."""

    def __init__(self, text: str = SCENARIOS, **options: Any) -> None:
        self.player = Player(loads(text), **options)
        self.session = Session("s")
        self.exchange = played_entry(Played())

    def call(self, body: bytes, api: str, target: Target, **headers: str) -> ApiCall:
        return ApiCall(PROTOCOLS[api], target, headers, body, self.session)

    def send(
        self,
        user: str,
        *,
        api: str = "chat",
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> HttpAnswer:
        sent = {"input": user} if api == "responses" else {
            "messages": [{"role": "user", "content": user}]
        }  # fmt: skip
        body = json.dumps({"model": "gpt-4o", **sent, **fields}).encode()
        return self.play(self.call(body, api, NO_TARGET, **(headers or {})))

    def play(self, call: ApiCall) -> HttpAnswer:
        return self.note(self.player.play(call), call.body)

    def note(self, answered: Answered, body: bytes) -> HttpAnswer:
        self.exchange = played_entry(answered.played, body)
        self.session.record(self.exchange)
        return answered.answer

    def text(self, user: str, **fields: Any) -> str:
        return text_of(self.send(user, **fields))

    def facts(self, *names: str) -> tuple[Any, ...]:
        facts = self.exchange.facts()
        return tuple(facts[name] for name in names)


def text_of(answer: HttpAnswer) -> str:
    found = json.loads(answer.data[0])
    if "choices" in found:
        return str(found["choices"][0]["message"]["content"])
    if found.get("output"):
        return str(found["output"][0]["content"][0]["text"])
    return str(found["error"]["message"])


def test_the_journal_of_an_answer() -> None:
    """Model, scenario, turn and position, status; the session has the turn as played."""
    client = Client()
    assert client.text("hello") == "Hi there."
    names = ("model", "stream", "scenario", "turn", "position", "outcome", "status", "attempt")
    assert client.facts(*names) == ("gpt-4o", False, "hello", 0, 0, "played", 200, 1)
    assert client.facts("problems", "recorded", "quirks") == ((), "", ())
    assert client.session.played == {"hello": {0}}
    client.send("hello", stream=True)
    assert client.facts("stream") == (True,)


def test_the_journal_of_a_refusal() -> None:
    """What no scenario answers is `unmatched`, other refusals are `invalid`."""
    client = Client()
    answer = client.send("unknown")
    assert (answer.status, *client.facts("outcome", "status", "scenario")) == (
        404,
        "unmatched",
        404,
        None,
    )
    assert client.exchange.problems == (text_of(answer),)
    answer = client.send("picky")
    assert client.facts("outcome", "status", "scenario") == ("invalid", 400, "picky")
    assert client.exchange.problems == (text_of(answer),)
    assert client.session.played == {}
    answer = client.play(client.call(b"{", "chat", NO_TARGET))
    assert client.facts("outcome", "status", "model") == ("invalid", 400, None)


def test_refusals_have_an_id_of_their_message() -> None:
    """The same refusal has the same headers, another one has others."""
    client = Client()
    ids = [dict(client.send(user).headers)["x-request-id"] for user in ("a", "a", "b")]
    assert ids[0] == ids[1] != ids[2]
    error = RequestError("x", status=405)
    answered = refuse(PROTOCOLS["chat"], error, headers=[("allow", "GET")])
    played = answered.played
    assert dict(answered.answer.headers)["allow"] == "GET"
    assert (played.outcome, played.status, played.problems) == ("invalid", 405, ("x",))


def test_attempts_fail_in_their_order() -> None:
    """Each failure is an error of the scenario; then the turn is played, and stays."""
    client = Client()
    seen = []
    for _ in range(4):
        answer = client.send("flaky")
        seen.append((answer.status, *client.facts("attempt", "outcome", "status")))
        assert client.session.played == ({"flaky": {0}} if len(seen) > 2 else {})
    assert seen == [
        (429, 1, "error", 429),
        (503, 2, "error", 503),
        (200, 3, "played", 200),
        (200, 4, "played", 200),
    ]


def test_a_turn_that_is_an_error() -> None:
    """It counts as played when its own error is sent, after those of its attempts."""
    client = Client()
    assert (client.send("down").status, client.session.played) == (429, {})
    assert (client.send("down").status, client.session.played) == (401, {"down": {0}})
    assert client.facts("outcome", "status", "attempt") == ("error", 401, 2)
    ids = [dict(client.send("down").headers)["x-request-id"] for _ in range(4)]
    assert len(set(ids)) == 1


def test_an_equal_request_is_decided_once() -> None:
    """The same answer object comes from the cache, in any session of the player."""
    client = Client()
    first = client.send("hello")
    client.session = Session("other")
    assert client.send("hello") is first
    assert client.facts("model", "scenario", "turn", "outcome") == (
        "gpt-4o",
        "hello",
        0,
        "played",
    )
    assert client.send("hello", stream=True) is not first
    assert client.send("hello", temperature=1) is first  # the answer does not depend on it
    assert len(client.player._cache.decisions) == 3


def test_a_large_answer_is_kept_by_the_replayer_alone() -> None:
    """The decision is kept without an answer of more than 128 KiB."""
    for length, kept in ((100 * 1024, True), (128 * 1024, False)):
        text = "x" * length
        client = Client(f"scenario: long\nmatch: any\nturns: [{{reply: {{text: {text}}}}}]")
        answer = client.send("hello")
        (decision,) = client.player._cache.decisions.values()
        assert (decision.answered is not None) == kept
        assert client.send("hello") == answer


def test_strictness() -> None:
    """What the API refuses is refused, or let pass."""
    fields = {"temperature": 9}
    assert Client().send("hello", **fields).status == 400
    assert Client(strict=False).send("hello", **fields).status == 200


def test_the_fallback() -> None:
    """It is added where no scenario has `match: any`, and it never ends."""
    client = Client(fallback=True)
    assert client.text("what else") == "what else"
    assert client.exchange.scenario == "fallback-auto"
    assert (FALLBACK.description, FALLBACK.turns[0].repeat) == (
        "Answers anything that no scenario answers.",
        True,
    )
    assert client.text("hello") == "Hi there."
    own = Client("scenario: own\nmatch: any\nturns: [{reply: {text: Mine.}}]", fallback=True)
    assert own.text("what else") == "Mine."
    assert [scenario.name for scenario in own.player.served.scenarios] == ["own"]
    assert [scenario.name for scenario in Client().player.served.scenarios][-1] == "named"


BROKEN = {
    "chat": {"messages": [{"role": "user", "content": "a"}]},
    "responses": {"input": "a"},
    "anthropic": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 9},
    "gemini": {},
    "agui": {},
}


@pytest.mark.parametrize("api", BROKEN)
def test_the_fallback_refuses_what_no_service_accepts(api: str) -> None:
    """A request without a model or without messages is refused as the API refuses it, also where
    requests are not validated strictly; a scenario that matches answers it."""
    client = Client(fallback=True, strict=False)
    target = Target({"model": "gemini-2.5-flash", "method": "generateContent"})
    call = client.call(
        json.dumps(BROKEN[api]).encode(), api, target if api == "gemini" else NO_TARGET
    )
    assert client.play(call).status in (400, 422)
    own = Client("scenario: own\nmatch: any\nturns: [{reply: {text: Mine.}}]", strict=False)
    call = own.call(call.body, api, call.target)
    assert own.play(call).status == 200


def test_the_fallback_answers_odd_requests_without_validation() -> None:
    """What a service refuses for another reason is answered, if it is not validated strictly."""
    assert Client(fallback=True, strict=False).text("what else", temperature=9) == "what else"


def test_a_scenario_that_answers_all_requests() -> None:
    """Those that name none; one that a request names wins."""
    client = Client(named="named")
    assert client.text("hello") == "By name."
    assert client.text("hello", headers={"x-mockllm-scenario": "hello"}) == "Hi there."
    body = {"threadId": "t", "runId": "r", "messages": [], "tools": [], "state": {}}
    sent = json.dumps({**body, "context": [], "forwardedProps": {}}).encode()
    target = Target({"scenario": "hello"})
    client.play(client.call(sent, "agui", target))
    assert client.exchange.scenario == "hello"


def test_a_scenario_in_the_name_of_the_model() -> None:
    """`MODEL@SCENARIO` is the model without the scenario, where the scenario is served."""
    client = Client()
    answer = client.send("x", model="gpt-4o@named")
    assert (text_of(answer), json.loads(answer.data[0])["model"]) == ("By name.", "gpt-4o")
    assert client.facts("model", "scenario") == ("gpt-4o", "named")
    answer = client.send("hello", model="gpt-4o@nothing")
    assert json.loads(answer.data[0])["model"] == "gpt-4o@nothing"
    answer = client.send("x", model="mock/named")
    assert json.loads(answer.data[0])["model"] == "mock/named"


def test_quirks_of_a_request() -> None:
    """Those of the player and those in the header, for streams; blanks do not matter."""
    client = Client(quirks=["sse-comments"])
    plain = Client().send("hello", stream=True)
    answer = client.send("hello", stream=True)
    assert answer.data != plain.data
    assert client.exchange.played.quirks == ("sse-comments",)
    header = {"x-mockllm-quirk": " sse-crlf ,, chat-index-missing"}
    client.send("hello", stream=True, headers=header)
    assert client.exchange.played.quirks == ("sse-comments", "sse-crlf", "chat-index-missing")
    client.send("hello", headers=header)
    assert client.exchange.played.quirks == ()
    other = Client()
    other.send("x", stream=True, model="mock/named", headers={"x-mockllm-quirk": ""})
    assert other.exchange.played.quirks == ()


def test_an_unknown_quirk_is_refused() -> None:
    """With the header that has it."""
    client = Client()
    answer = client.send("hello", headers={"x-mockllm-quirk": "sse-comments,nonsense"})
    assert answer.status == 400
    assert text_of(answer).startswith("x-mockllm-quirk: there is no quirk 'nonsense'")
    assert json.loads(answer.data[0])["error"]["code"] == "unknown_quirk"


# Answers that the service keeps


def test_an_answer_is_continued_by_its_id() -> None:
    """The id says which turn it was, in any session; the token alone is what is compared."""
    client = Client()
    first = client.send("hello", api="responses")
    assert first.id == "resp_" + mint_token(client.player.served.by_name["hello"], 0)
    client.session = Session("other")
    assert client.text("more", api="responses", previous_response_id=first.id) == "Again."
    assert client.facts("position", "turn") == (1, 1)
    answer = client.send("more", api="responses", previous_response_id="resp_nothing")
    assert (answer.status, client.exchange.outcome) == (400, "invalid")


def test_which_answers_are_kept() -> None:
    """All but those with `store: false`; a conversation remembers its latest in any case."""
    client = Client()
    first = client.send("hello", api="responses")
    assert first.id is not None
    assert client.session.answer(first.id) is client.exchange
    assert client.exchange.played.answer_id == first.id
    client = Client()
    second = client.send("hello", api="responses", store=False, conversation="conv_1")
    assert second.id is not None
    assert client.session.answer(second.id) is None
    assert client.session.conversations == {"conv_1": second.id.removeprefix("resp_")}
    assert client.text("more", api="responses", conversation="conv_1") == "Again."
    assert client.player._cache.decisions == {}
    assert Client().session.conversations == {}


def test_answers_of_apis_that_keep_none_are_known_by_their_ids() -> None:
    """A recorder finds the exchange of such an answer."""
    client = Client()
    answer = client.send("hello")
    assert answer.id is not None
    assert client.session.answer(answer.id) is client.exchange


def look_up(
    client: Client, operation: str, id: str, *, body: bytes = b"", api: str = "responses"
) -> HttpAnswer:
    target = Target({"response_id": id} if id else {})
    call = client.call(body, api, target)
    return client.note(client.player.look_up(call, operation), body)  # type: ignore[arg-type]


def test_looking_up_an_answer() -> None:
    """The object that was sent, under the id that was asked for, until it is deleted."""
    client = Client()
    first = client.send("hello", api="responses")
    assert first.id is not None
    found = look_up(client, "response", first.id)
    assert (found.status, found.data) == (200, first.data)
    assert client.facts("outcome", "status") == ("played", 200)
    streamed = client.send("hello", api="responses", stream=True)
    assert streamed.id == first.id
    assert look_up(client, "response", first.id).data == first.data
    assert look_up(client, "delete_response", first.id).status == 200
    gone = look_up(client, "response", first.id)
    assert (gone.status, client.facts("outcome", "status")) == (404, ("invalid", 404))
    assert first.id in text_of(gone)
    assert look_up(client, "delete_response", first.id).status == 404


def test_an_answer_of_a_scenario_that_is_gone() -> None:
    """After a reload without it there is nothing to look up."""
    client = Client()
    first = client.send("hello", api="responses")
    assert first.id is not None
    call = client.call(b"", "responses", NO_TARGET)
    assert client.player.lookups.recall(call, first.id) is not None
    assert client.player.lookups.recall(call, "resp_other") is None
    client.player = Player(loads("scenario: else\nturns: [{reply: {text: x}}]"))
    assert client.player.lookups.recall(call, first.id) is None
    shorter = "scenario: hello\nturns: [{reply: {text: x}}]"
    client.player = Player(loads(shorter))
    amend(client.session._answers[first.id], position=1)
    assert client.player.lookups.recall(call, first.id) is None
    amend(client.session._answers[first.id], position=None)
    assert client.player.lookups.recall(call, first.id) is None


def test_the_list_of_models() -> None:
    """Scenarios are models; a body is read for `count_tokens` alone."""
    client = Client()
    listed = json.loads(look_up(client, "models", "", api="chat").data[0])
    names = [f"mock/{scenario.name}" for scenario in client.player.served.scenarios]
    assert sorted(one["id"] for one in listed["data"]) == sorted(names)
    counted = {"model": "m", "messages": [{"role": "user", "content": "12345678"}]}
    answer = look_up(client, "count_tokens", "", body=json.dumps(counted).encode(), api="anthropic")
    assert json.loads(answer.data[0])["input_tokens"] >= 2
    assert look_up(client, "count_tokens", "", body=b"{", api="anthropic").status == 400


# Bodies


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"a": }', "line 1 column 7: Expecting value"),
        (b'{"a":\n1,}', "line 2 column 3: Expecting property name enclosed in double quotes"),
        (b"[]", "it is 'list', not an object"),
        (b"1", "it is 'int', not an object"),
        (b"null", "it is 'NoneType', not an object"),
        (b"", "line 1 column 1: Expecting value"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        (b'{"a":' * 100_000, "it is nested too deeply"),
    ],
)
def test_a_body_that_is_no_object(body: bytes, reason: str) -> None:
    """The message says where it is wrong."""
    with pytest.raises(RequestError) as caught:
        parse_object(body)
    assert caught.value.message == (
        f"We could not parse the JSON body of your request ({reason}). The API expects a JSON "
        "object, sent as application/json."
    )
    assert (caught.value.code, caught.value.status) == ("invalid_json", 400)


def test_a_body_that_is_an_object() -> None:
    """In any of the encodings that JSON may have, as Python reads them."""
    assert parse_object('{"a": "é"}'.encode()) == {"a": "é"}
    assert parse_object('{"a": "é"}'.encode("utf-16")) == {"a": "é"}


def test_an_error_in_the_stream_of_a_plain_answer() -> None:
    """The answer is the error of the API, with all fields of the scenario."""
    error = "{error: {message: m, type: t, code: c}}"
    client = Client(f"scenario: s\nmatch: any\nturns: [{{reply: [{{text: x}}, {error}]}}]")
    answer = client.send("x")
    assert answer.status == 500
    found = json.loads(answer.data[0])["error"]
    assert (found["message"], found["type"], found["code"]) == ("m", "t", "c")
