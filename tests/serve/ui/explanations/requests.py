"""Requests of clients of every API, played in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hypothesis import strategies as st

from mockllm.core.request import Request
from mockllm.core.turn import ToolCall
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import Exchange, Received
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import ToolSpec
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol
from tests.sixth_protocol.echo.protocol import PROTOCOL as ECHO

APIS = (*PROTOCOLS, ECHO.name)

HOSTILE = (
    "",
    " ",
    "- a: b",
    "null",
    "yes",
    "0x1F",
    "!!python/object:os.system",
    "*alias &anchor",
    "{{7*7}} %TAG ! x",
    "--- \n...\n# no comment",
    "'\"\\\t`",
    "\x00\x07\x1b[31m\x7f\x85\u2028\u2029\ufeff",
    "\u202egnirts\u202c",
    "half \ud83c and \udf55",
    "\ud83c",
    "<script>alert(1)</script>",
    "a\r\nb\rc\n\n\n  d  ",
    "mock/greeting",
    "gpt-4*[a]?",
)

texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(codec=None), max_size=60),
    st.text("ab \n", max_size=8).map(lambda text: text * 400),
)


@contextmanager
def known(api: str) -> Iterator[WireProtocol]:
    """The protocol of a name; the echo protocol is registered for as long as this lasts."""
    if api != ECHO.name:
        yield PROTOCOLS[api]
        return
    every: Any = PROTOCOLS
    every[ECHO.name] = ECHO
    try:
        yield ECHO
    finally:
        del every[ECHO.name]


@st.composite
def bodies(draw: st.DrawFn, protocol: WireProtocol) -> tuple[str, dict[str, Any]]:
    """The model and the body of a request: the first one, with results, or with another message."""
    client = protocol.client
    model = draw(st.sampled_from(["gpt-4", "m*[x]", "vendor/model@1", "ü", "null", "1.0"]))
    text = draw(texts)
    tools = draw(st.lists(st.sampled_from(["get", "set-it", "9"]), unique=True, max_size=3))
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    offered = [ToolSpec(name, "about", schema) for name in tools]
    body = first_body(protocol, model, text, offered)
    if protocol.stored is not None:  # its continuations name an answer that was given
        return model, body
    for step in range(draw(st.integers(0, 2))):
        names = draw(st.lists(st.sampled_from(["get", "set-it"]), max_size=2))
        calls = [ToolCall(name, f"call_{step}{at}", ("{}",)) for at, name in enumerate(names)]
        if calls:
            body = client.continuation(body, "", calls, [draw(texts) for _ in calls])
        else:
            body = client.next_message(body, "", draw(texts), draw(texts))
    return model, body


def played(
    protocol: WireProtocol,
    model: str,
    body: Mapping[str, Any],
    player: Player,
    headers: Mapping[str, str] | None = None,
) -> Exchange:
    """The exchange of a request that a player answers."""
    target = client_target(protocol, model)
    data = json.dumps(body).encode()
    named = dict(headers or {})
    answered = player.play(ApiCall(protocol, target, named, data, Session("test")))
    received = Received("POST", protocol.client.path_of(model), named, data, target=target)
    return Exchange(received, answered.played)


def request_of(protocol: WireProtocol, model: str, body: Mapping[str, Any]) -> Request:
    """The neutral request."""
    data = json.loads(json.dumps(body))
    return protocol.parse(data, client_target(protocol, model), False)


def names(conditions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The paths of conditions."""
    return [condition["path"] for condition in conditions]
