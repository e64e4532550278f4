"""Conversations that go on, over every API and with every kind of scenario, named or found: by the
history that the client sends, and where an API keeps answers, by the id of one."""

from __future__ import annotations

import json

import pytest

from mockllm import loads
from mockllm.core.http import Target, TimedBytes
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import Captured
from mockllm.play.tapes.recorded_turn import recorded_turn
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol
from tests.apis import OVER_HTTP

SCENARIOS = {
    "plain": "turns: [{reply: One.}, {reply: Two.}, {reply: Three.}]",
    "in order": "in_order: true\nturns: [{reply: One.}, {reply: Two.}, {reply: Three.}]",
    "template": "template: true\nturns: [{reply: One.}, {reply: Two.}, {reply: Three.}]",
    "branches": (
        "turns:\n  - {reply: One.}\n"
        "  - {reply: Other., when: [{user: go on, reply: Two.}]}\n  - {reply: Three.}"
    ),
    "jumps": (
        "turns:\n  - {reply: One., go_to: two}\n  - {reply: Never.}\n"
        "  - {name: two, reply: Two.}\n  - {reply: Three.}"
    ),
    "times": "turns: [{reply: One.}, {reply: Two., times: 2}, {reply: Three.}]",
}
_TEXTS = {"times": ["One.", "Two.", "Two.", "Three."]}


def _say(player: Player, protocol: WireProtocol, body: object, session: Session) -> tuple[str, str]:
    """The text of an answer, and its id."""
    target: Target = client_target(protocol, "m")
    call = ApiCall(protocol, target, {}, json.dumps(body).encode(), session)
    answer = player.play(call).answer
    assert answer.status == 200, answer.data
    parts = tuple(map(TimedBytes, answer.times, answer.data))
    captured = Captured("POST", "", (), b"", 200, answer.headers, parts)
    turn = recorded_turn(captured.plain(), protocol, streamed=answer.streamed).turn
    return turn.text, answer.id or ""


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", SCENARIOS)
@pytest.mark.parametrize("api", OVER_HTTP)
def test_the_next_turn_answers(api: str, kind: str, named: bool) -> None:
    protocol = PROTOCOLS[api]
    player = Player(loads(f"scenario: s\nmatch: any\n{SCENARIOS[kind]}"), strict=False)
    player = Player(player.served.scenarios, strict=False, named="s" if named else None)
    session = Session("test")
    field = protocol.client.stream_field
    body = {**first_body(protocol, "m", "hello"), **({field: False} if field else {})}
    texts = _TEXTS.get(kind, ["One.", "Two.", "Three."])
    got = []
    for _ in texts:
        text, id = _say(player, protocol, body, session)
        got.append(text)
        body = protocol.client.next_message(body, id, text, "go on")
    assert got == texts
