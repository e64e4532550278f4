"""Several recordings of the same beginning are played one after the other in a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mockllm.core.target import NO_TARGET
from mockllm.core.timed_bytes import TimedBytes
from mockllm.protocols import PROTOCOLS
from mockllm.replay.call import ApiCall
from mockllm.replay.loading import load, loads
from mockllm.replay.player import Player
from mockllm.replay.sessions.session import Session
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Scenario
from mockllm.tapes.dump import dump_tape
from mockllm.tapes.model import RecordedRequest, Tape

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
    return tuple(one for name in names for one in loads(RECORDED.format(name=name)))


class Client:
    """A client of a player, in a session."""

    def __init__(self, *scenarios: Scenario, **options: Any) -> None:
        self.player = Player(scenarios, in_order=True, **options)
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
    """The first turn that was not played yet; then, as without an order, the first one."""
    client = Client(*recorded("hello-2", "hello", "hello-10"))
    answers = [client("hello") for _ in range(5)]
    assert answers == ["hello one", "hello-2 one", "hello-10 one", "hello one", "hello one"]


def test_later_turns_are_played_in_turn_too() -> None:
    """Each turn of each recording once."""
    client = Client(*recorded("hello", "hello-2"))
    assert [client("hello", "x", "more") for _ in range(3)] == [
        "hello two",
        "hello-2 two",
        "hello two",
    ]
    assert [client("hello") for _ in range(3)] == ["hello one", "hello-2 one", "hello one"]


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
    assert len(client.player._cache._decisions) == 2


def test_decisions_that_depend_on_the_session_are_not_kept() -> None:
    """Neither those of the order nor what comes after it."""
    client = Client(*recorded("hello", "hello-2"))
    for _ in range(4):
        client("hello")
    assert client.player._cache._decisions == {}


def test_a_named_recording_is_in_the_order_too() -> None:
    """What is named is one of its group."""
    client = Client(*recorded("hello", "hello-2"))
    assert client("hello", x_mockllm_scenario="hello-2") == "hello-2 one"
    assert client("hello") == "hello one"


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


# Recordings without a match


def folder_with(
    path: Path, url: str, body: dict[str, Any], match: str = ""
) -> tuple[Scenario, ...]:
    """A recording whose scenario has no `match` of its own, and one that answers its request."""
    (scenario,) = loads(
        f"scenario: beside\n{match}turns: [{{reply: {{text: Beside}}, recorded: b.1.jsonl}}]"
    )
    request = RecordedRequest("POST", url, (), json.dumps(body).encode())
    answer = {"choices": [{"message": {"content": "Beside"}}]}
    chunks = (TimedBytes(1, json.dumps(answer).encode()),)
    tape = Tape("chat", False, 200, (), chunks, request=request)
    (path / "b.1.jsonl").write_bytes(dump_tape(tape))
    (path / "b.yaml").write_text(dump(scenario))
    return (*load([path]), *recorded("hello"))


URL = "https://odd.test/v1/chat/completions"
HELLO = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def test_a_recording_without_a_match_gets_that_of_its_rival(tmp_path: Path) -> None:
    """The scenario that answers its first request was there before it."""
    client = Client(*folder_with(tmp_path, URL, HELLO))
    (beside,) = (one for one in client.player.served.scenarios if one.name == "beside")
    assert beside.match == recorded("hello")[0].match
    assert [client("hello"), client("hello")] == ["hello one", "Beside"] or [client("hello")] == [
        "hello one"
    ]


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (URL, {"model": "m", "messages": [{"role": "user", "content": "unknown"}]}),
        ("https://odd.test/v1/other", {"what": "is this"}),
        (URL, {"model": "m"}),
    ],
)
def test_a_recording_that_nothing_else_answers_stays_as_it_is(
    tmp_path: Path, url: str, body: dict[str, Any]
) -> None:
    """Without a match it is played by name alone."""
    client = Client(*folder_with(tmp_path, url, body))
    (beside,) = (one for one in client.player.served.scenarios if one.name == "beside")
    assert beside.match is None
    assert client("x", x_mockllm_scenario="beside") == "Beside"


def test_a_recording_with_a_match_keeps_it(tmp_path: Path) -> None:
    """Also where another scenario would answer its request."""
    client = Client(*folder_with(tmp_path, URL, HELLO, "match: {user: mine}\n"))
    (beside,) = (one for one in client.player.served.scenarios if one.name == "beside")
    assert beside.match is not None
    assert beside.match.user is not None
    assert beside.match.user.value == "mine"


def test_a_recording_whose_tape_is_gone_stays_as_it_is(tmp_path: Path) -> None:
    """And so does an authored scenario without a match."""
    scenarios = folder_with(tmp_path, URL, HELLO)
    (tmp_path / "b.1.jsonl").unlink()
    (authored,) = loads("scenario: authored\nturns: [{reply: {text: x}}]")
    client = Client(*scenarios, authored)
    found = {one.name: one.match for one in client.player.served.scenarios}
    assert (found["beside"], found["authored"]) == (None, None)
