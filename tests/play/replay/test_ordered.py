"""Several recordings of the same beginning are played one after the other in a session."""

from __future__ import annotations

import json
from typing import Any

from mockllm.core.http import NO_TARGET
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.loading import loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols import PROTOCOLS

RECORDED = """
scenario: {name}
match: {{user: {{equals: hello}}}}
turns:
  - reply: {{text: {name} one}}
    recorded: {name}.1.jsonl
  - reply: {{text: {name} two}}
    recorded: {name}.2.jsonl
"""


def recorded(*names: str) -> tuple[Scenario, ...]:
    """Recordings with an equal `match`, which were not loaded from files."""
    return tuple(load for name in names for load in loads(RECORDED.format(name=name)))


class Client:
    """A client of a player, in a session."""

    def __init__(self, *scenarios: Scenario, **options: Any) -> None:
        self.player = Player(scenarios, **options)
        self.session = Session("s")

    def __call__(self, *texts: str, **headers: str) -> str:
        """The text that answers a conversation of these messages, or the code of the refusal."""
        roles = ("user", "assistant")
        messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
        body = json.dumps({"model": "m", "messages": messages}).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        call = ApiCall(PROTOCOLS["chat"], NO_TARGET, named, body, self.session)
        answer = json.loads(self.player.play(call).answer.data[0])
        if "error" in answer:
            return str(answer["error"]["code"])
        return str(answer["choices"][0]["message"]["content"])


def test_each_recording_is_played_in_turn() -> None:
    """The first turn that was not played yet; then the last one again."""
    client = Client(*recorded("hello-2", "hello", "hello-10"))
    answers = [client("hello") for _ in range(5)]
    assert answers == ["hello one", "hello-2 one", "hello-10 one", "hello-10 one", "hello-10 one"]


def test_later_turns_are_played_in_turn_too() -> None:
    """Each turn of each recording once."""
    client = Client(*recorded("hello", "hello-2"))
    assert [client("hello", "x", "more") for _ in range(3)] == [
        "hello two",
        "hello-2 two",
        "hello-2 two",
    ]
    assert [client("hello") for _ in range(3)] == ["hello one", "hello-2 one", "hello-2 one"]


def test_each_session_has_an_order_of_its_own() -> None:
    """What one session has played another has not."""
    client = Client(*recorded("hello", "hello-2"))
    assert [client("hello"), client("hello")] == ["hello one", "hello-2 one"]
    client.session = Session("other")
    assert client("hello") == "hello one"


def test_what_competes_with_nothing_is_played_as_always() -> None:
    """A single recording, and an authored scenario; their decisions are kept."""
    (other,) = loads("scenario: other\nmatch: {user: else}\nturns: [{reply: {text: Other}}]")
    client = Client(*recorded("hello"), other)
    assert [client("hello"), client("hello"), client("else")] == ["hello one"] * 2 + ["Other"]
    assert len(client.player._cache.decisions) == 2


def test_decisions_that_depend_on_the_session_are_not_kept() -> None:
    """Neither those of the order nor what comes after it."""
    client = Client(*recorded("hello", "hello-2"))
    for _ in range(4):
        client("hello")
    assert client.player._cache.decisions == {}


def test_a_named_recording_answers_each_time() -> None:
    """What is named has no rival."""
    client = Client(*recorded("hello", "hello-2"))
    answers = [client("hello", x_mockllm_scenario="hello-2") for _ in range(2)]
    assert answers == ["hello-2 one", "hello-2 one"]
    assert client("hello") == "hello one"


def test_an_authored_scenario_has_no_turn_in_the_order() -> None:
    """It answers each time, before recordings with the same conditions."""
    (authored,) = loads(
        "scenario: authored\nmatch: {user: {equals: hello}}\nturns: [{reply: {text: Mine}}]"
    )
    client = Client(authored, *recorded("hello"))
    assert [client("hello"), client("hello")] == ["Mine", "Mine"]


def test_a_shorter_recording_is_passed_over() -> None:
    """Past its end the next one of the group answers."""
    (short,) = loads(RECORDED.format(name="a").rpartition("  - reply")[0])
    client = Client(short, *recorded("bb"))
    assert client("hello", "x", "more") == "bb two"
    assert [client("hello"), client("hello")] == ["a one", "bb one"]


def test_options_hold_for_each_recording() -> None:
    """A strict player is strict with all of them."""
    for strict, status in ((False, 200), (True, 400)):
        client = Client(*recorded("hello", "hello-2"), strict=strict)
        odd = {"model": "m", "temperature": 9, "messages": [{"role": "user", "content": "hello"}]}
        body = json.dumps(odd).encode()
        for name in ("hello", "hello-2"):
            call = ApiCall(PROTOCOLS["chat"], NO_TARGET, {}, body, client.session)
            answered = client.player.play(call)
            assert answered.answer.status == status
            assert answered.played.scenario == (None if strict else name)
