"""`cached: prefix`: the tokens of a prompt with which earlier requests of the session began."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mockllm.core.jsontext import json_bytes
from mockllm.core.request import Message
from mockllm.core.turn import TokenUsage
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.client_requests import client_target
from mockllm.play.replay.loading import loads
from mockllm.play.replay.losses import find_losses
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.dump import dump
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import dumps
from tests.apis import OVER_HTTP
from tests.play.replay.talking import Talk

SCENARIO = """
scenario: answers
match: {user: manual}
defaults: {usage: {cached: prefix, output: 7}}
turns:
  - reply: One.
  - reply: Two.
  - reply: Three.
    repeat: true
"""
MANUAL = "manual " + "x" * 4793  # 1,200 tokens
CACHING = tuple(api for api in OVER_HTTP if PROTOCOLS[api].client.marked_parts is None)
MARKING = tuple(api for api in OVER_HTTP if api not in CACHING)


def usage(talk: Talk, text: str) -> TokenUsage | None:
    """The usage of the answer to a message, as a client reads it."""
    talk.fields = talk.protocol.client.usage
    return talk.says(text).usage


@pytest.mark.parametrize("api", CACHING)
def test_the_common_prefix_is_cached(api: str) -> None:
    """Not by the first request; then as far as the messages are the same, in steps of 128."""
    if api == "completions":
        pytest.skip("a prompt is one message")
    talk = Talk(SCENARIO, api)
    found = [usage(talk, text) for text in (MANUAL, "b" * 400, "c" * 400)]
    counts = [(one.input, one.output, one.cached, one.cache_written) for one in found if one]
    # Two tokens of the answer stand between: 1,200 + 2 + 100.
    assert counts == [(1200, 7, 0, 0), (1301, 7, 1152, 0), (1402, 7, 1280, 0)]
    other = Talk(SCENARIO, api, session=talk.session, model="another")
    if api != "agui":  # whose requests name no model
        assert getattr(usage(other, MANUAL), "cached", None) == 0


@pytest.mark.parametrize("api", CACHING)
def test_the_same_request_is_cached_as_a_whole(api: str) -> None:
    """Of at least 1,024 tokens; in each session anew."""
    for text, expected in ((MANUAL, [0, 1152]), ("manual " + "x" * 4000, [0, 0])):
        session = Session("s")
        talks = [Talk(SCENARIO, api, session=session) for _ in range(2)]
        assert [getattr(usage(talk, text), "cached", None) for talk in talks] == expected


@pytest.mark.parametrize("api", MARKING)
def test_nothing_is_cached_without_a_mark(api: str) -> None:
    """Anthropic and Bedrock cache what the client marks."""
    talk = Talk(SCENARIO, api)
    found = [usage(talk, text) for text in (MANUAL, "b")]
    assert [(one.cached, one.cache_written) for one in found if one] == [(0, 0), (0, 0)]


def block(api: str, text: str, *, marked: bool = False) -> list[dict[str, Any]]:
    if api == "anthropic":
        mark = {"cache_control": {"type": "ephemeral"}} if marked else {}
        return [{"type": "text", "text": text, **mark}]
    return [{"text": text}, *([{"cachePoint": {"type": "default"}}] if marked else [])]


def ask(api: str, session: Session, system: list[Any], *contents: list[Any]) -> tuple[int, ...]:
    """Input, read and written tokens of the answer to a conversation."""
    roles = ("user", "assistant") * 2
    history = [
        {"role": role, "content": content} for role, content in zip(roles, contents, strict=False)
    ]
    protocol = PROTOCOLS[api]
    head = {"model": "m", "max_tokens": 9} if api == "anthropic" else {}
    body = json_bytes(dumps({**head, "system": system, "messages": history}))
    call = ApiCall(protocol, client_target(protocol, "m", stream=False), {}, body, session)
    answer = Player(loads(SCENARIO)).play(call).answer
    assert answer.status == 200, answer.data
    found = protocol.decode_body(json.loads(b"".join(answer.data)))
    assert found.usage is not None
    return found.usage.input, found.usage.cached, found.usage.cache_written


@pytest.mark.parametrize("api", MARKING)
def test_marked_prompts_are_written_and_read(api: str) -> None:
    """Written by the first request that marks them, read by the next one, which writes what its own
    mark adds; what follows the last mark is neither."""
    session, system = Session("s"), block(api, "s" * 4800, marked=True)
    unmarked = block(api, "s" * 4800)
    first, answer, second = (block(api, text) for text in ("manual " + "x" * 393, "One.", "b"))
    assert ask(api, session, system, first) == (1300, 0, 1200)
    assert ask(api, session, system, block(api, "another manual")) == (1204, 1200, 0)
    later = block(api, "manual " + "x" * 393, marked=True)
    assert ask(api, session, unmarked, later, answer, second) == (1302, 1200, 100)
    assert ask(api, session, unmarked, later, answer, second) == (1302, 1300, 0)
    assert ask(api, session, unmarked, first) == (1300, 0, 0)
    short = block(api, "s", marked=True)
    assert ask(api, Session("t"), short, first) == (101, 0, 0)


def test_a_mark_of_the_whole_request() -> None:
    """Anthropic marks the last block of a body with `cache_control`."""
    parts = PROTOCOLS["anthropic"].client.marked_parts
    assert parts is not None
    body = {"messages": [{"role": "user", "content": "a"}], "cache_control": {"type": "ephemeral"}}
    assert [part.marked for part in parts(body)] == [True]
    result = {"type": "tool_result", "tool_use_id": "t", "content": block("anthropic", "a")}
    marked = {**result, "content": block("anthropic", "a", marked=True)}
    bodies = [{"messages": [{"role": "user", "content": [one]}]} for one in (result, marked)]
    plain, other = map(parts, bodies)
    assert [replace(part, marked=True) for part in plain] == other


def test_counts_that_are_written_stay() -> None:
    """`input` and `cache_written` as they are; a try before the answer caches nothing."""
    text = """
scenario: a
match: {user: manual}
turns:
  - attempts: [{http: 429}]
    reply: One.
    usage: {input: 5000, cached: prefix, cache_written: 3}
"""
    session = Session("s")
    found = []
    for _ in range(3):
        talk = Talk(text, "chat", session=session)
        talk.fields = talk.protocol.client.usage
        talk.messages = [Message("user", MANUAL)]
        answered = talk.ask()
        if answered.answer.status == 200:
            talk.messages = []
            found.append(answered.answer.data)
    assert [b'"cached_tokens":0' in b"".join(data) for data in found] == [True, False]
    assert all(b'"prompt_tokens":5000' in b"".join(data) for data in found)


def test_a_place_for_cached_tokens() -> None:
    """Every API has one; for one without, the usage is listed."""
    (scenario,) = loads(SCENARIO)
    assert loads(dump(scenario)) == (scenario,)
    assert [loss for loss in find_losses(scenario, PROTOCOLS) if "usage" in str(loss.what)] == []
    chat = PROTOCOLS["chat"]
    forgetful = replace(
        chat, project=lambda turn: replace(chat.project(turn), usage=TokenUsage(2, 7))
    )
    losses = find_losses(scenario, {"chat": forgetful})
    assert [loss.what for loss in losses] == [("usage differs",)] * 3
