"""The log of `mockllm serve` and `mockllm record`: text, JSON lines, or errors only."""

from __future__ import annotations

import json
import os
import select
import shlex
import stat
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import click

from mockllm.cli.terminal.colour import in_colour
from mockllm.cli.terminal.output import echo
from mockllm.core.errors import Problem
from mockllm.core.text import printable, quantity, shorten

if TYPE_CHECKING:
    from mockllm.play.replay.sessions.exchange import Exchange
    from mockllm.record.recording.drafting.draft import Line
    from mockllm.record.redaction.redact import Redactor
    from mockllm.scenario.model import Scenario
    from mockllm.serve.server.app import MockServer
    from mockllm.serve.server.options import RecordOptions


_SLICE = 4096  # what a pipe that is ready takes without blocking (PIPE_BUF)
_MOST_PENDING = 1024 * 1024


class LineOutput:
    """Writes lines, each at once.

    A program that starts a server often reads the first line of its output and no more. So a
    pipe that is not read makes lines wait, then drops them (a line says so when it is read
    again), and a reader that has gone ends the output, not the server.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        sys.stdout.flush()
        where = sys.stdout.fileno() if descriptor is None else descriptor
        self._descriptor: int | None = where
        self._pipe = stat.S_ISFIFO(os.fstat(where).st_mode)
        self._encoding = sys.stdout.encoding or "utf-8"
        self._pending = bytearray()
        self._lost = 0

    def line(self, text: str) -> None:
        """Writes a line, or keeps it until there is room."""
        self._push()
        if len(self._pending) > _MOST_PENDING:
            self._lost += 1
            return
        if self._lost:
            self._add(f"({self._lost} lines were lost: they were not read in time)")
            self._lost = 0
        self._add(text)
        self._push()

    def _add(self, text: str) -> None:
        self._pending += text.encode(self._encoding, "backslashreplace") + b"\n"

    def _push(self) -> None:
        while self._pending and self._descriptor is not None and self._ready(self._descriptor):
            try:
                sent = os.write(self._descriptor, self._pending[:_SLICE])
            except OSError:
                self._descriptor = None
                return
            del self._pending[:sent]
        if self._descriptor is None:
            self._pending.clear()

    def _ready(self, descriptor: int) -> bool:
        if not self._pipe:
            return True
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        return bool(poll.poll(0))


_NOTHING: Mapping[str, str] = MappingProxyType({})
_SHOWN = 20
_MOST_COLUMN = 32
_MAX_PROBLEM = 640
_ADVICE = 320
"""Of a problem that is too long, as many characters of the end stay: what to do stands there."""

_QUIET = frozenset({"address", "skipped", "broken", "notice"})
_WORKER = frozenset({"request", "skipped", "notice"})
"""What the workers after the first one say: nothing about the server, which the first one does."""

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_COLOURS = {
    "played": "green",
    "error": "yellow",
    **dict.fromkeys(("forwarded", "auxiliary"), "cyan"),
    **dict.fromkeys(("unmatched", "invalid", "unknown route", "failed"), "red"),
}


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options of a server's log.

    Args:
        form: text has aligned lines for people, in colour where `terminal.colour` says so.
            JSON has an object a line after the first line; its `event` names the kind.
        quiet: only what clients need to reach the server (addresses, that of its proxy and the
            certificate to trust), problems with files and recordings, and notices.
        quotes: whether what is wrong with a request is written, which quotes the request.
    """

    form: Literal["text", "json"] = "text"
    quiet: bool = False
    quotes: bool = True


_DEFAULT = LogOptions()
_NOT_QUOTED = "what is wrong is not written (log-quotes = false); the journal has it"


class ServerLog:
    """Hears of everything that happens to a server, beginning with `listening`.

    Args:
        first: whether this process is the only one, or the first of several workers.
    """

    def __init__(
        self,
        options: LogOptions = _DEFAULT,
        output: LineOutput | None = None,
        *,
        first: bool = True,
    ) -> None:
        quiet = options.quiet
        self._output = LineOutput() if output is None else output
        self._json = options.form == "json" and not quiet
        self._quotes = options.quotes
        self.requests = None if quiet else self.exchange
        """Hears of each request; None where it need not."""
        self._only = _QUIET if quiet else None if first else _WORKER
        if quiet and not first:
            self._only = _QUIET & _WORKER
        self._colour = in_colour(sys.stdout)
        self._api_width = self._name_width = 1
        self._next = ""
        self._has_begun = False
        self._early: list[Line] = []
        """Lines of the recorder from before the line with the address, which is the first one."""
        self._counts = Counter[str](recorded=0, not_found=0, skipped=0, lost=0)
        self._is_missing = False

    def _shows(self, event: str) -> bool:
        return self._only is None or event in self._only

    def _put(self, event: str, lines: Iterable[str], shown_as: str = "", /, **fields: Any) -> None:
        if not self._shows(shown_as or event):
            return
        if self._json:
            self._output.line(printable(_dumps({"event": event, **fields})))
            return
        for line in lines:
            self._output.line(printable(line))

    def listening(self, url: str) -> None:
        if self._shows("address"):
            self._output.line(printable(f"mockllm listening on {url}"))
        self._begin()

    def begin_beside(self, next_command: str) -> None:
        """Writes what the recorder reports: no line with an address comes.

        Args:
            next_command: that plays what was recorded.
        """
        self._next = next_command
        self._begin()

    def _begin(self) -> None:
        self._has_begun = True
        for line in self._early:
            self.write_recording(line)

    def serving(self, server: MockServer, led: Mapping[str, str] = _NOTHING) -> None:
        """Writes the scenarios of the server, and its addresses.

        Args:
            led: the variables by which programs send what is for the services to its proxy.
        """
        options, scenarios = server.options, server.player.served.scenarios
        base_urls, elsewhere = server.base_urls, server.elsewhere
        keys = options.record is not None and options.record.mode != "none"
        further = [(api, server.url + path) for api, path in options.paths]
        page = f"{server.url}/_mockllm/ui" if options.page is not None else ""
        self._measure(scenarios)
        self._api_width = max(map(len, base_urls))
        fields = {
            "elsewhere": list(elsewhere),
            "ui": page,
            "paths": [{"api": api, "url": url} for api, url in further],
            "environment": dict(led),
        }
        if not self._json:
            self._put("address", _further_addresses(elsewhere, led))
        lines = chain(
            [""],
            self._scenario_lines(scenarios),
            [f"Give to clients ({'with their own API keys' if keys else 'any API key will do'}):"],
            _settings(base_urls),
            (f"  {url}  # {api}" for api, url in further),
            ["", _LED if "HTTPS_PROXY" in led else _TRUSTING] if led else [],
            (f"  {name}={value}" for name, value in led.items()),
            ["", f"Live page: {page}", ""] if page else [""],
        )
        self._put(
            "listening",
            lines,
            url=server.url,
            scenarios=[scenario.name for scenario in scenarios],
            base_urls=base_urls,
            **{name: value for name, value in fields.items() if value},
        )

    def _scenario_lines(self, scenarios: Sequence[Scenario]) -> Iterator[str]:
        if scenarios:
            yield f"Serving {quantity(len(scenarios), 'scenario')}:"
        for scenario in scenarios[:_SHOWN]:
            yield f"  {scenario.name:<{self._name_width}}  {scenario.description}".rstrip()
        if len(scenarios) > _SHOWN:
            yield f"  ... and {len(scenarios) - _SHOWN} more (mockllm list shows all)"
        if scenarios:
            yield ""

    def _measure(self, scenarios: Sequence[Scenario]) -> None:
        longest = max((len(scenario.name) for scenario in scenarios), default=1)
        self._name_width = min(longest, _MOST_COLUMN)

    def recording(self, options: RecordOptions) -> None:
        from mockllm.record.redaction.credentials import masked_url

        upstreams = {api: masked_url(url) for api, url in options.upstreams.items()}
        folder, mode = str(options.folder), options.mode
        self._next = f"mockllm serve {shlex.quote(folder)}"
        lines = _recording(folder, upstreams) if mode != "none" else ()
        self._put("recording", lines, folder=folder, mode=mode, upstreams=upstreams)

    def exchange(self, exchange: Exchange) -> None:
        if self._json:
            facts = {**exchange.facts(), "problems": self._problems(exchange)}
            self._put("request", (), **facts)
        elif self._shows("request"):
            self._output.line(self._request(exchange))

    def _problems(self, exchange: Exchange) -> list[str]:
        """The problems of a request, without its secrets: a log is kept, sent and pasted."""
        if not self._quotes:
            return [_NOT_QUOTED] if exchange.problems else []
        return [self._redactor.text(problem) for problem in exchange.problems]

    @cached_property
    def _redactor(self) -> Redactor:
        from mockllm.record.redaction.redact import Redactor

        return Redactor()

    def _request(self, exchange: Exchange) -> str:
        turn = "-" if exchange.turn is None else f"turn {exchange.turn + 1}"
        outcome = f"{exchange.outcome:<9}"
        if self._colour:
            outcome = click.style(outcome, fg=_COLOURS[exchange.outcome])
        cells = (
            _clock(int(exchange.received.at)),
            f"{exchange.played.api or '-':<{self._api_width}}",
            f"{printable(exchange.scenario or '-'):<{self._name_width}}",
            f"{turn:<7}",
            outcome,
            f"{exchange.status:>3}",
            f"{_milliseconds(exchange.sent.duration):>10}",
            *map(printable, _notes(exchange)),
            *map(_shorten_problem, self._problems(exchange)),
        )
        return "  ".join(cells)

    def write_recording(self, line: Line) -> None:
        if not self._has_begun:
            self._early.append(line)
            return
        skipped = line.outcome == "skipped"
        self._counts["skipped" if skipped else "recorded"] += 1
        self._counts["not_found"] += bool(line.not_found)
        self._counts["lost"] += line.lost
        self._is_missing |= line.is_missing
        lost = f"; NOT FOUND AGAIN: {line.not_found}" if line.not_found else ""
        text = f"          {'not ' * skipped}recorded: {line.description}{lost}"
        shown_as = "skipped" if skipped else "recorded"
        self._put("recorded", [text], shown_as, **asdict(line))

    def waiting(self, count: int) -> None:
        text = f"          {count:,} exchange{'s wait' if count != 1 else ' waits'} to be written"
        self._put("waiting", [text], exchanges=count)

    def summary(self) -> int:
        """Says what was recorded; the exit status: 1 if anything is missing."""
        text = _summary_text(**self._counts)
        lines = [text]
        if self._counts["recorded"] and not self._is_missing:
            lines.append(f"next: {self._next}")
        self._put("summary", lines, **self._counts)
        if self._is_missing:
            echo(f"mockllm: {text}", err=True)
        return int(self._is_missing)

    def write_reload(self, scenarios: Sequence[Scenario]) -> None:
        self._measure(scenarios)
        names = [scenario.name for scenario in scenarios]
        self._put("reloaded", [f"reloaded {quantity(len(names), 'scenario')}"], scenarios=names)

    def broken(self, problems: Sequence[Problem]) -> None:
        lines = [str(problem) for problem in problems]
        count = quantity(len(lines), "problem")
        last = f"not reloaded: {count}; still serving the last good version"
        self._put("broken", [*lines, last], problems=lines)

    def stopping(self, grace: float) -> None:
        text = f"stopping; open streams have {grace:g} s (once more to cut them)"
        self._put("stopping", [text], grace=grace)

    def notice(self, text: str) -> None:
        self._put("notice", [text], text=text)


def _further_addresses(elsewhere: Sequence[str], led: Mapping[str, str]) -> Iterator[str]:
    """Lines about where else the server listens, and what its clients have to trust."""
    yield from (f"and, from other machines, on {url}" for url in elsewhere)
    if "HTTPS_PROXY" in led:
        yield f"and, as a proxy, on {led['HTTPS_PROXY']}"
    if "NODE_EXTRA_CA_CERTS" in led:
        yield f"with the certificate to trust in {led['NODE_EXTRA_CA_CERTS']}"


_LED = "Or, in the environment of programs that know no base URL:"
_TRUSTING = "And in their environment, so that they trust this server:"


def _settings(base_urls: Mapping[str, str]) -> Iterator[str]:
    # Imported here: the server listens already, and needs the protocols only now.
    from mockllm.wire.protocols.environment import client_base_urls

    for base in client_base_urls(base_urls):
        setting = f"{base.variable}={base.url}" if base.variable else base.url
        yield f"  {setting}  # {', '.join(base.apis)}"


def _recording(folder: str, upstreams: Mapping[str, str]) -> Iterator[str]:
    by_url: dict[str, list[str]] = {}
    for api, url in upstreams.items():
        by_url.setdefault(url, []).append(api)
    for url, apis in by_url.items():
        yield f"Recording {', '.join(apis)} from {url}"
    yield f"into {folder}"
    yield ""


def _summary_text(recorded: int, not_found: int, skipped: int, lost: int) -> str:
    """The summary for people."""
    text = f"{recorded:,} recorded"
    if not_found:
        text += f", of them {not_found:,} not found again by their own requests"
    text += f"; {skipped:,} not recorded" if skipped else ""
    text += f", of them {lost:,} that could not be written" if lost else ""
    return text if not (skipped or not_found) else f"{text} (see their lines above)"


@lru_cache(maxsize=16)
def _clock(second: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(second))


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def _struck(exchange: Exchange) -> str:
    if exchange.sent.struck is None:
        return ""
    after = f" after {exchange.sent.struck_after} bytes" if exchange.sent.struck_after else ""
    return f" at {_milliseconds(exchange.sent.struck)}{after}"


def _notes(exchange: Exchange) -> list[str]:
    notes = []
    if exchange.scenario is None and exchange.received.method:
        notes.append(f"{exchange.received.method} {exchange.path}")
    if exchange.played.attempt > 1:
        notes.append(f"try {exchange.played.attempt}")
    if exchange.fault:
        notes.append(f"fault {exchange.fault}{_struck(exchange)}")
    if exchange.played.recorded not in ("", "exact"):
        notes.append(f"not as recorded: {exchange.played.recorded}")
    if exchange.played.repeated:
        notes.append("the recording was played before")
    if exchange.sent.client_gone:
        notes.append(f"the client left after {exchange.sent.bytes} bytes")
    if exchange.sent.interrupted:
        notes.append(f"interrupted after {exchange.sent.bytes} bytes")
    if exchange.sent.stopped:
        notes.append(f"the server stopped after {exchange.sent.bytes} bytes")
    return notes


def _shorten_problem(problem: str) -> str:
    line = printable(" ".join(problem.split()))
    beginning = _MAX_PROBLEM - _ADVICE
    return shorten(line, _MAX_PROBLEM, keep=beginning, tail=_ADVICE, mark=" … ")
