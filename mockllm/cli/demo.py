"""`mockllm demo`: a scenario over every API, against a server in this process.

`Board` knows what has arrived of an answer: a lane for each part, growing with its fragments.
`Screen` draws it again in place on a terminal, and prints each lane when it is complete everywhere
else.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import urlsplit

import click

from mockllm.cli.options.parameters import number, read_scenarios
from mockllm.cli.terminal.colour import in_colour
from mockllm.core import events as ev
from mockllm.core.errors import MockLLMError
from mockllm.core.text import shorten
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.part_model import TextPart

if TYPE_CHECKING:
    from mockllm.core.turn import Turn
    from mockllm.wire.protocols.base import WireProtocol
    from mockllm.wire.protocols.records import Json


_LABELS = {ev.TextDelta: "text", ev.ReasoningDelta: "reasoning", ev.RefusalDelta: "refusal"}
_MOST_TICKS = 40


@dataclass(slots=True)
class Lane:
    """One part: `fresh` is how many characters of `text` the last fragment brought, and `at` when
    that was, in seconds since the request."""

    label: str
    name: str = ""
    text: str = ""
    fresh: int = 0
    at: float = 0.0
    done: bool = False


@dataclass(slots=True)
class Board:
    """All that has arrived of one answer; `latest` is the data of its last frame."""

    lanes: dict[int, Lane] = field(default_factory=dict)
    chunks: int = 0
    size: int = 0
    latest: str = ""

    def frame(self, data: str, events: list[ev.Event]) -> list[Lane]:
        """Adds the events of one frame; returns the lanes that it changed."""
        self.chunks += 1
        self.size += len(data.encode())
        self.latest = data
        return self.events(events)

    def events(self, events: list[ev.Event]) -> list[Lane]:
        """Adds events; returns the lanes that they changed."""
        for lane in self.lanes.values():
            lane.fresh = 0
        changed = map(self._event, events)
        return list({id(lane): lane for lane in changed if lane is not None}.values())

    def _event(self, event: ev.Event) -> Lane | None:
        match event:
            case ev.ToolStart(part=part, id=id, name=name):
                lane = self.lanes[part] = Lane(id, name)
                return lane
            case ev.TextDelta() | ev.ReasoningDelta() | ev.RefusalDelta() | ev.ToolArgs():
                lane = self.lanes.setdefault(event.part, Lane(_LABELS.get(type(event), "")))
                lane.text += event.text
                lane.fresh += len(event.text)
                return lane if event.text else None
            case ev.Replacement(part=part, text=text) if part in self.lanes:
                self.lanes[part].text = text
                return self.lanes[part]
            case ev.PartEnd(part=part) if part in self.lanes:
                self.lanes[part].done = True
                return self.lanes[part]
        return None


def _can_draw(stream: TextIO) -> bool:
    try:
        "▪✓▏".encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _cells(board: Board, lane: Lane) -> tuple[str, str]:
    label = max(len(other.label) for other in board.lanes.values())
    name = max(len(other.name) for other in board.lanes.values())
    return f"{lane.label:<{label}}", f"{lane.name:<{name}}"


def _tally(board: Board, at: float) -> str:
    return f"{board.chunks} events, {board.size:,} bytes, {at:.2f} s"


class Screen:
    """Where a demonstration is drawn; times are in seconds since the request.

    Args:
        redraws: whether lanes grow in place, which needs a terminal; by default where the output
            is one. Otherwise a lane is a line once it is complete.
    """

    def __init__(self, stream: TextIO, *, redraws: bool | None = None) -> None:
        self._stream = stream
        self._can_draw = _can_draw(stream)
        self._redraws = stream.isatty() and self._can_draw if redraws is None else redraws
        self._colour = in_colour(stream) if redraws is None else redraws
        self._drawn = 0

    def line(self, line: str = "", *, bold: bool = False) -> None:
        self._drawn = 0
        styled = self._style(line, bold=True) if bold else line
        encoding = self._stream.encoding or "utf-8"
        self._write(styled.encode(encoding, "backslashreplace").decode(encoding) + "\n")

    def update(self, board: Board, changed: list[Lane], at: float) -> None:
        if self._redraws:
            width = _columns()
            frame = shorten(f"  {_telling(board.latest)}", width - 1, keep=max(0, width - 2))
            self._draw([*self._block(board, at), self._style(frame, dim=True)])
            return
        for lane in changed:
            # Some APIs end all parts at once, long after the last fragment of the first ones.
            lane.at = at if lane.fresh else lane.at or at
            if lane.done:
                label, name = _cells(board, lane)
                cells = [cell for cell in (label, name, lane.text) if cell.strip()]
                tick = "✓" if self._can_draw else "ok"
                self.line(f"  {lane.at:6.2f} s  {'  '.join(cells)} {tick}")

    def end(self, board: Board, at: float) -> None:
        if not self._redraws:
            self.line(f"            {_tally(board, at)}")
            return
        for lane in board.lanes.values():
            lane.fresh = 0
        self._draw([*self._block(board, at), ""])
        self._write("\x1b[1F")

    def _block(self, board: Board, at: float) -> list[str]:
        ticks = self._style("▪" * min(board.chunks, _MOST_TICKS), fg="blue")
        lanes = [self._lane(board, lane) for lane in board.lanes.values()]
        return [f"  {ticks} {self._style(_tally(board, at), dim=True)}", *lanes]

    def _lane(self, board: Board, lane: Lane) -> str:
        label, name = _cells(board, lane)
        head = f"  {label}  " + (f"{name}  " if name.strip() else "")
        room = max(10, _columns() - len(head) - 3)
        text = lane.text if len(lane.text) <= room else "…" + lane.text[1 - room :]
        old, new = (text[: -lane.fresh], text[-lane.fresh :]) if lane.fresh else (text, "")
        end = self._style(" ✓", fg="green", bold=True) if lane.done else self._style("▏", dim=True)
        bar = self._style("  ▏ ", fg="cyan")
        fresh = self._style(new, fg="yellow", bold=True) if new else ""
        return f"{bar}{self._style(head[2:], fg='cyan')}{old}{fresh}{end}"

    def _draw(self, lines: list[str]) -> None:
        up = f"\x1b[{self._drawn}F" if self._drawn else ""
        self._write(up + "".join(f"{line}\x1b[K\n" for line in lines))
        self._drawn = len(lines)

    def _style(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if self._colour else text

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _telling(data: str) -> str:
    """A frame's data from where it differs from the others."""
    at = data.find('"delta"')
    return f"…{data[at:]}" if at > 0 else data


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
    from mockllm.serve.server.options import ServerOptions
    from mockllm.serve.server.thread import ServerThread
    from mockllm.wire.protocols import PROTOCOLS

    scenario = demo_scenario()
    screen = Screen(sys.stdout)
    if speed:  # what is imported for a first answer would make it late
        with ServerThread([scenario], ServerOptions(speed=0.0, grace=1.0)) as thread:
            play(scenario, PROTOCOLS, thread.url, partial(_post, thread.url), Screen(StringIO()))
    with ServerThread([scenario], ServerOptions(speed=speed, grace=1.0)) as thread:
        post = partial(_post, thread.url)
        play(scenario, PROTOCOLS, thread.url, post, screen)


def play(
    scenario: Scenario,
    protocols: Mapping[str, WireProtocol],
    url: str,
    post: Post,
    screen: Screen,
) -> None:
    """Draws the whole demonstration."""
    from mockllm.play.replay.client_requests import user_text

    screen.line(f"Scenario {scenario.name}, served on {url}", bold=True)
    screen.line(f"  {scenario.description}")
    text = f"Tell me the {user_text(scenario)}, please."
    screen.line(f"  user: {text}")
    over_http = [one for one in protocols.values() if not one.address.is_socket]
    played = [protocol for protocol in over_http if scenario.plays_over(protocol.name)]
    calling = [protocol for protocol in played if protocol.client.tool_fields]
    answers = [_converse(post, protocol, scenario, text, screen) for protocol in calling]
    if len({answer.text for answer in answers}) != 1:
        raise MockLLMError(f"the APIs gave different answers: {[a.text for a in answers]}")
    others = [protocol.address.title for protocol in played if protocol not in calling]
    _farewell(screen, len(answers), others)


def demo_scenario() -> Scenario:
    """The shipped scenario, at a pace that eyes can follow."""
    from mockllm.play.replay.loading import shipped_scenarios

    (scenario,) = read_scenarios((shipped_scenarios() / f"{_NAME}.yaml",))
    defaults = replace(scenario.defaults, ttft=_TTFT, every=_EVERY)
    return replace(scenario, defaults=defaults, turns=tuple(map(_evenly, scenario.turns)))


def _evenly(turn: TurnSpec) -> TurnSpec:
    reply = tuple(
        replace(part, every=None) if isinstance(part, TextPart) else part for part in turn.reply
    )
    return replace(turn, reply=reply)


def _converse(
    post: Post, protocol: WireProtocol, scenario: Scenario, text: str, screen: Screen
) -> Turn:
    """Leads the conversation until an answer calls no tool; returns that answer."""
    from mockllm.play.replay.client_requests import first_body

    path = protocol.client.path_of(_MODEL)
    body = first_body(protocol, _MODEL, text, scenario.tools)
    screen.line()
    screen.line(f"{protocol.address.title}  POST {path}", bold=True)
    while True:
        turn, answer = _receive(post(protocol, path, body), protocol, screen)
        if not turn.tool_calls:
            return turn
        results = [_SECRETS[call.parse_arguments()["name"]] for call in turn.tool_calls]
        pairs = zip(turn.tool_calls, results, strict=True)
        screen.line(f"  tools: {', '.join(f'{c.id or c.name} = {text}' for c, text in pairs)}")
        body = protocol.client.continuation(body, answer, turn.tool_calls, results)


def _receive(
    stream: Iterable[tuple[float, bytes]], protocol: WireProtocol, screen: Screen
) -> tuple[Turn, str]:
    """One request: the turn that its stream adds up to, and the id of the answer."""
    from mockllm.core.timeline import fold

    frames, decoder, board = protocol.usual.decoder(), protocol.decoder(), Board()
    received: list[ev.Timed] = []
    at = 0.0
    for at, data in stream:
        for frame in frames.decode(data):
            events = decoder.decode(frame)
            received += [ev.Timed(int(at * 1_000_000), event) for event in events]
            screen.update(board, board.frame(frame.data or "", events), at)
    last = decoder.close()
    screen.update(board, board.events(last), at)
    screen.end(board, at)
    received += [ev.Timed(0, event) for event in last]
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


def _farewell(screen: Screen, count: int, others: list[str]) -> None:
    from mockllm.cli.init import FIRST_MODEL, curl

    screen.line()
    screen.line(f"{count} APIs, {count} wire formats, the same calls and the same answer.")
    for title in others:
        screen.line(f"{title} has no tool calls: it plays the scenario's texts only.")
    screen.line()
    screen.line("Next:", bold=True)
    screen.line("  mockllm init scenarios     write a first scenario of your own")
    screen.line("  mockllm serve scenarios    serve it, then:")
    for line in curl("http://127.0.0.1:8080", FIRST_MODEL):
        screen.line(f"    {line}")
