"""`mockllm demo`: a scenario over every API, against a server in this process."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from mockllm.cli.options.parameters import number, read_scenarios
from mockllm.errors import MockLLMError
from mockllm.scenario.model import Scenario, TextPart, TurnSpec

if TYPE_CHECKING:
    from mockllm.cli.terminal.answer_screen import Screen
    from mockllm.core.turn import Turn
    from mockllm.protocols.base import WireProtocol
    from mockllm.protocols.records import Json

Post = Callable[["WireProtocol", str, "Json"], Iterable[tuple[float, bytes]]]
"""Sends a body to a path of an API: the bytes of the answer's stream in the order of arrival,
each with the seconds since the request."""

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
    from mockllm.cli.terminal.answer_screen import Screen
    from mockllm.server.options import ServerOptions
    from mockllm.server.thread import ServerThread

    scenario = demo_scenario()
    screen = Screen(sys.stdout)
    with ServerThread([scenario], ServerOptions(speed=speed, grace=1.0)) as thread:
        post = partial(_post, thread.url)
        play(scenario, thread.server.protocols, thread.url, post, screen)


def play(
    scenario: Scenario,
    protocols: Mapping[str, WireProtocol],
    url: str,
    post: Post,
    screen: Screen,
) -> None:
    """Draws the whole demonstration."""
    screen.line(f"Scenario {scenario.name}, served on {url}", bold=True)
    screen.line(f"  {scenario.description}")
    played = [protocol for name, protocol in protocols.items() if scenario.plays_over(name)]
    answers = [_converse(post, protocol, scenario, screen) for protocol in played]
    if len({answer.text for answer in answers}) != 1:
        raise MockLLMError(f"the APIs gave different answers: {[a.text for a in answers]}")
    _farewell(screen, len(answers))


def demo_scenario() -> Scenario:
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


def _converse(post: Post, protocol: WireProtocol, scenario: Scenario, screen: Screen) -> Turn:
    """Leads the conversation until an answer calls no tool; returns that answer."""
    from mockllm.replay.client_requests import first_body, user_text

    path = protocol.client.path_of(_MODEL)
    text = f"Tell me the {user_text(scenario)}, please."
    body = first_body(protocol, _MODEL, text, scenario.tools)
    screen.line()
    screen.line(f"{protocol.address.title}  POST {path}", bold=True)
    screen.line(f"  user: {text}")
    while True:
        turn, answer = _receive(post(protocol, path, body), protocol, screen)
        if not turn.tool_calls:
            return turn
        results = [_SECRETS[call.parsed()["name"]] for call in turn.tool_calls]
        pairs = zip(turn.tool_calls, results, strict=True)
        screen.line(f"  tools: {', '.join(f'{c.id or c.name} = {text}' for c, text in pairs)}")
        body = protocol.client.continuation(body, answer, turn.tool_calls, results)


def _receive(
    stream: Iterable[tuple[float, bytes]], protocol: WireProtocol, screen: Screen
) -> tuple[Turn, str]:
    """One request: the turn that its stream adds up to, and the id of the answer."""
    from mockllm.cli.terminal.answer_screen import Board
    from mockllm.core import events as ev
    from mockllm.core.timeline import fold
    from mockllm.framing.sse import SSEDecoder

    frames, decoder, board = SSEDecoder(), protocol.decoder(), Board()
    received: list[ev.Timed] = []
    at = 0.0
    for at, data in stream:
        for frame in frames.decode(data):
            events = decoder.decode(frame)
            received += [ev.Timed(int(at * 1_000_000), event) for event in events]
            screen.update(board, board.frame(frame.data or "", events), at)
    screen.end(board, at)
    received += [ev.Timed(0, event) for event in decoder.close()]
    answer = next((e.event.id for e in received if isinstance(e.event, ev.Start)), "")
    return fold(received).whole(), answer


def _post(url: str, protocol: WireProtocol, path: str, body: Json) -> Iterator[tuple[float, bytes]]:
    from http.client import HTTPConnection

    server = urlsplit(url)
    connection = HTTPConnection(server.hostname or "", server.port, timeout=_TIMEOUT)
    began = time.perf_counter()
    try:
        headers = {"content-type": "application/json", **protocol.client.headers}
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        if response.status != 200:
            message = response.read().decode()
            raise MockLLMError(f"{url}{path} answered {response.status}: {message}")
        while data := response.read1():
            yield time.perf_counter() - began, data
    finally:
        connection.close()


def _farewell(screen: Screen, count: int) -> None:
    from mockllm.cli.init import FIRST_MODEL, curl

    screen.line()
    screen.line(f"{count} APIs, {count} wire formats, the same calls and the same answer.")
    screen.line()
    screen.line("Next:", bold=True)
    screen.line("  mockllm init scenarios     write a first scenario of your own")
    screen.line("  mockllm serve scenarios    serve it, then:")
    for line in curl("http://127.0.0.1:8080", FIRST_MODEL):
        screen.line(f"    {line}")
