"""`mockllm demo`: a scenario over every API, against a server in this process."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from mockllm.cli.params import number, read_scenarios
from mockllm.errors import MockLLMError
from mockllm.scenario.model import Scenario, TextPart, TurnSpec

if TYPE_CHECKING:
    from mockllm.cli.drawing import Screen
    from mockllm.core.turn import Turn
    from mockllm.protocols.base import Json, WireProtocol

__all__ = ["demo"]

_MODEL = "mock-model"
_NAME = "secret-numbers"
_SECRETS = {"alice": "42", "bob": "7"}
_TTFT = 120_000
_EVERY = 45_000
_TIMEOUT = 30.0


@click.command()
@click.option(
    "--speed",
    type=number,
    default=1.0,
    show_default=True,
    metavar="NUMBER",
    help="2 is twice as fast, 0 leaves all pauses out.",
)
def demo(speed: float) -> None:
    """Watch the same two tool calls arrive over every API.

    A server in this process plays the scenario secret-numbers to a small client, which decodes
    the stream, answers the calls, and gets the final answer. Nothing leaves this machine.

    \b
    Examples:
      mockllm demo
      mockllm demo --speed 0.3
    """
    from mockllm.cli.drawing import screen_for
    from mockllm.server.options import ServerOptions
    from mockllm.server.thread import ServerThread

    scenario = _scenario()
    screen = screen_for(sys.stdout)
    answers: list[Turn] = []
    with ServerThread([scenario], ServerOptions(speed=speed, grace=1.0)) as thread:
        screen.say(f"Scenario {scenario.name}, served on {thread.url}", bold=True)
        screen.say(f"  {scenario.description}")
        for name, protocol in thread.server.protocols.items():
            if scenario.plays_over(name):
                answers.append(_converse(thread.url, protocol, scenario, screen))
    if len({answer.text for answer in answers}) != 1:
        raise MockLLMError(f"the APIs gave different answers: {[a.text for a in answers]}")
    _farewell(screen, len(answers))


def _scenario() -> Scenario:
    """The shipped scenario, at a pace that eyes can follow."""
    from mockllm.scenario.shipped import shipped_scenarios

    (scenario,) = read_scenarios((shipped_scenarios() / f"{_NAME}.yaml",))
    defaults = replace(scenario.defaults, ttft=_TTFT, every=_EVERY)
    return replace(scenario, defaults=defaults, turns=tuple(map(_evenly, scenario.turns)))


def _evenly(turn: TurnSpec) -> TurnSpec:
    reply = tuple(
        replace(part, every=None) if isinstance(part, TextPart) else part for part in turn.reply
    )
    return replace(turn, reply=reply)


def _converse(url: str, protocol: WireProtocol, scenario: Scenario, screen: Screen) -> Turn:
    """Asks, answers the calls, and so on until an answer makes none; that answer."""
    from mockllm.replay.client_requests import first_body, user_text

    path = protocol.client.path_of(_MODEL)
    text = f"Tell me the {user_text(scenario)}, please."
    body = first_body(protocol, _MODEL, text, scenario.tools)
    screen.say()
    screen.say(f"{protocol.title}  POST {path}", bold=True)
    screen.say(f"  user: {text}")
    while True:
        turn, answer = _listen(url + path, body, protocol, screen)
        if not turn.tool_calls:
            return turn
        results = [_SECRETS[call.parsed()["name"]] for call in turn.tool_calls]
        told = zip(turn.tool_calls, results, strict=True)
        screen.say(f"  tools: {', '.join(f'{c.id or c.name} = {text}' for c, text in told)}")
        body = protocol.client.continuation(body, answer, turn.tool_calls, results)


def _listen(url: str, body: Json, protocol: WireProtocol, screen: Screen) -> tuple[Turn, str]:
    """One request: the turn that its stream adds up to, and the id of the answer."""
    from mockllm.cli.drawing import Board
    from mockllm.core import events as ev
    from mockllm.core.timeline import fold
    from mockllm.framing.sse import Decoder

    frames, decoder, board = Decoder(), protocol.decoder(), Board()
    heard: list[ev.Timed] = []
    began = time.perf_counter()
    for chunk in _stream(url, body, protocol.client.headers):
        for frame in frames.decode(chunk):
            at = time.perf_counter() - began
            events = decoder.decode(frame)
            heard += [ev.Timed(int(at * 1_000_000), event) for event in events]
            screen.update(board, board.frame(frame.data or "", events), at)
    screen.end(board, time.perf_counter() - began)
    heard += [ev.Timed(0, event) for event in decoder.close()]
    answer = next((e.event.id for e in heard if isinstance(e.event, ev.Start)), "")
    return fold(heard).whole(), answer


def _stream(url: str, body: Json, headers: Mapping[str, str]) -> Iterator[bytes]:
    """The bytes of an answer, as they arrive."""
    from http.client import HTTPConnection

    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=_TIMEOUT)
    try:
        target = f"{where.path}?{where.query}" if where.query else where.path
        sent = {"content-type": "application/json", **headers}
        connection.request("POST", target, json.dumps(body), sent)
        response = connection.getresponse()
        if response.status != 200:
            raise MockLLMError(f"{url} answered {response.status}: {response.read().decode()}")
        while data := response.read1():
            yield data
    finally:
        connection.close()


def _farewell(screen: Screen, count: int) -> None:
    from mockllm.cli.init import FIRST_MODEL, curl

    screen.say()
    screen.say(f"{count} APIs, {count} wire formats, the same calls and the same answer.")
    screen.say()
    screen.say("Next:", bold=True)
    screen.say("  mockllm init scenarios     write a first scenario of your own")
    screen.say("  mockllm serve scenarios    serve it, then:")
    for line in curl("http://127.0.0.1:8080", FIRST_MODEL):
        screen.say(f"    {line}")
