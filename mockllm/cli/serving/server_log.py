"""The log of `mockllm serve`: text, JSON lines, or errors only."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import click

from mockllm.cli.terminal.line_output import LineOutput
from mockllm.core.text import shorten
from mockllm.errors import Problem
from mockllm.protocols.environment import client_base_urls

if TYPE_CHECKING:
    from mockllm.recording.drafting.drafts import Line
    from mockllm.replay.sessions.session import Exchange
    from mockllm.scenario.model import Scenario
    from mockllm.server.options import RecordOptions

__all__ = ["JsonReport", "QuietReport", "Report", "TextReport", "summary_text"]

_SHOWN = 20
_MOST_COLUMN = 32
_MAX_PROBLEM = 640
_ADVICE = 320
"""Of a problem that is too long, as many characters of the end stay: what to do stands there."""
# The fields of a journal entry, without the long ones.
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_COLOURS = {
    "played": "green",
    "unmatched": "red",
    "invalid": "red",
    "error": "yellow",
    "forwarded": "cyan",
    "unknown route": "red",
    "failed": "red",
}


class Report(Protocol):
    """Hears of everything that happens to a server, beginning with `listening`."""

    def listening(self, url: str) -> None: ...

    def serving(
        self,
        scenarios: Sequence[Scenario],
        base_urls: Mapping[str, str],
        *,
        keys: bool,
        further: Sequence[tuple[str, str]] = (),
        elsewhere: Sequence[str] = (),
        page: str = "",
    ) -> None: ...

    def recording(self, options: RecordOptions) -> None: ...

    def exchange(self, exchange: Exchange) -> None: ...

    def recorded(self, line: Line) -> None: ...

    def waiting(self, count: int) -> None: ...

    def summary(self, recorded: int, not_found: int, skipped: int, lost: int) -> None: ...

    def reloaded(self, scenarios: Sequence[Scenario]) -> None: ...

    def broken(self, problems: Sequence[Problem]) -> None: ...

    def stopping(self, grace: float) -> None: ...

    def notice(self, text: str) -> None: ...


class QuietReport:
    """The line with the address that the server listens on, and after that only errors: with files
    that were reloaded, and with recordings."""

    def __init__(self, output: LineOutput) -> None:
        self._output = output

    def listening(self, url: str) -> None:
        self._output.line(_where(url))

    def serving(
        self,
        scenarios: Sequence[Scenario],
        base_urls: Mapping[str, str],
        *,
        keys: bool,
        further: Sequence[tuple[str, str]] = (),
        elsewhere: Sequence[str] = (),
        page: str = "",
    ) -> None:
        return

    def recording(self, options: RecordOptions) -> None:
        return

    def exchange(self, exchange: Exchange) -> None:
        return

    def recorded(self, line: Line) -> None:
        if line.outcome == "skipped":
            self._output.line(_became(line))

    def waiting(self, count: int) -> None:
        return

    def summary(self, recorded: int, not_found: int, skipped: int, lost: int) -> None:
        return

    def reloaded(self, scenarios: Sequence[Scenario]) -> None:
        return

    def broken(self, problems: Sequence[Problem]) -> None:
        for problem in problems:
            self._output.line(str(problem))

    def stopping(self, grace: float) -> None:
        return

    def notice(self, text: str) -> None:
        self._output.line(text)


class JsonReport:
    """JSON lines, after the first line; `event` names the kind of each."""

    def __init__(self, output: LineOutput) -> None:
        self._output = output
        self._url = ""

    def _line(self, event: str, **fields: Any) -> None:
        self._output.line(_dumps({"event": event, **fields}))

    def listening(self, url: str) -> None:
        self._output.line(_where(url))
        self._url = url

    def serving(
        self,
        scenarios: Sequence[Scenario],
        base_urls: Mapping[str, str],
        *,
        keys: bool,
        further: Sequence[tuple[str, str]] = (),
        elsewhere: Sequence[str] = (),
        page: str = "",
    ) -> None:
        names = [scenario.name for scenario in scenarios]
        fields: dict[str, Any] = {"scenarios": names, "base_urls": dict(base_urls)}
        if elsewhere:
            fields["elsewhere"] = list(elsewhere)
        if page:
            fields["ui"] = page
        if further:
            fields["paths"] = [{"api": api, "url": url} for api, url in further]
        self._line("listening", url=self._url, **fields)

    def exchange(self, exchange: Exchange) -> None:
        entry = exchange.as_json()
        for name in ("headers", "body", "body_base64"):
            entry.pop(name, None)
        self._line("request", **entry)

    def recording(self, options: RecordOptions) -> None:
        from mockllm.redaction.masks import masked_url

        folder = str(options.folder)
        upstreams = {api: masked_url(url) for api, url in options.upstreams.items()}
        self._line("recording", folder=folder, mode=options.mode, upstreams=upstreams)

    def recorded(self, line: Line) -> None:
        self._line("recorded", **asdict(line))

    def waiting(self, count: int) -> None:
        self._line("waiting", exchanges=count)

    def summary(self, recorded: int, not_found: int, skipped: int, lost: int) -> None:
        counts = {"recorded": recorded, "not_found": not_found, "skipped": skipped, "lost": lost}
        self._line("summary", **counts)

    def reloaded(self, scenarios: Sequence[Scenario]) -> None:
        self._line("reloaded", scenarios=[scenario.name for scenario in scenarios])

    def broken(self, problems: Sequence[Problem]) -> None:
        self._line("broken", problems=[str(problem) for problem in problems])

    def stopping(self, grace: float) -> None:
        self._line("stopping", grace=grace)

    def notice(self, text: str) -> None:
        self._line("notice", text=text)


class TextReport:
    """Aligned lines for people; in colour on a terminal, unless NO_COLOR is set."""

    def __init__(self, output: LineOutput) -> None:
        self._output = output
        self._colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._api_width = self._name_width = 1

    def listening(self, url: str) -> None:
        self._output.line(_where(url))

    def serving(
        self,
        scenarios: Sequence[Scenario],
        base_urls: Mapping[str, str],
        *,
        keys: bool,
        further: Sequence[tuple[str, str]] = (),
        elsewhere: Sequence[str] = (),
        page: str = "",
    ) -> None:
        line = self._output.line
        self._measure(scenarios)
        self._api_width = max(map(len, base_urls), default=1)
        for url in elsewhere:
            line(f"and, from other machines, on {url}")
        line("")
        if scenarios:
            line(f"Serving {_count(len(scenarios))}:")
        for scenario in scenarios[:_SHOWN]:
            line(f"  {scenario.name:<{self._name_width}}  {scenario.description}".rstrip())
        if len(scenarios) > _SHOWN:
            line(f"  ... and {len(scenarios) - _SHOWN} more (mockllm list shows all)")
        if scenarios:
            line("")
        line(f"Give to clients ({'with their own API keys' if keys else 'any API key will do'}):")
        for base in client_base_urls(base_urls):
            setting = f"{base.variable}={base.url}" if base.variable else base.url
            line(f"  {setting}  # {', '.join(base.apis)}")
        for api, url in further:
            line(f"  {url}  # {api}")
        line("")
        if page:
            line(f"Live page: {page}")
            line("")

    def recording(self, options: RecordOptions) -> None:
        from mockllm.redaction.masks import masked_url

        if options.mode == "none":
            return
        by_url: dict[str, list[str]] = {}
        for api, url in options.upstreams.items():
            by_url.setdefault(masked_url(url), []).append(api)
        for url, apis in by_url.items():
            self._output.line(f"Recording {', '.join(apis)} from {url}")
        self._output.line(f"into {options.folder}")
        self._output.line("")

    def recorded(self, line: Line) -> None:
        self._output.line(f"          {_became(line)}")

    def waiting(self, count: int) -> None:
        self._output.line(f"          {count:,} exchanges wait to be written")

    def summary(self, recorded: int, not_found: int, skipped: int, lost: int) -> None:
        self._output.line(summary_text(recorded, not_found, skipped, lost))

    def _measure(self, scenarios: Sequence[Scenario]) -> None:
        longest = max((len(scenario.name) for scenario in scenarios), default=1)
        self._name_width = min(longest, _MOST_COLUMN)

    def exchange(self, exchange: Exchange) -> None:
        turn = "-" if exchange.turn is None else f"turn {exchange.turn + 1}"
        outcome = f"{exchange.outcome:<9}"
        if self._colour:
            outcome = click.style(outcome, fg=_COLOURS[exchange.outcome])
        cells = (
            _clock(int(exchange.at)),
            f"{exchange.api or '-':<{self._api_width}}",
            f"{exchange.scenario or '-':<{self._name_width}}",
            f"{turn:<7}",
            outcome,
            f"{exchange.status:>3}",
            f"{_milliseconds(exchange.duration):>10}",
            *_notes(exchange),
        )
        self._output.line("  ".join(cells))

    def reloaded(self, scenarios: Sequence[Scenario]) -> None:
        self._measure(scenarios)
        self._output.line(f"reloaded {_count(len(scenarios))}")

    def broken(self, problems: Sequence[Problem]) -> None:
        for problem in problems:
            self._output.line(str(problem))
        count = len(problems)
        self._output.line(
            f"not reloaded: {count} problem{'s' * (count > 1)}; still serving the last good version"
        )

    def stopping(self, grace: float) -> None:
        self._output.line(f"stopping; open streams have {grace:g} s (once more to cut them)")

    def notice(self, text: str) -> None:
        self._output.line(text)


def summary_text(recorded: int, not_found: int, skipped: int, lost: int) -> str:
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


def _where(url: str) -> str:
    return f"mockllm listening on {url}"


def _became(line: Line) -> str:
    what = "not recorded" if line.outcome == "skipped" else "recorded"
    lost = f"; NOT FOUND AGAIN: {line.not_found}" if line.not_found else ""
    return f"{what}: {line.description}{lost}"


def _count(number: int) -> str:
    return f"{number} scenario{'s' * (number != 1)}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def _struck(exchange: Exchange) -> str:
    if exchange.struck is None:
        return ""
    after = f" after {exchange.struck_after} bytes" if exchange.struck_after else ""
    return f" at {_milliseconds(exchange.struck)}{after}"


def _notes(exchange: Exchange) -> list[str]:
    """The notes on one request, in one line."""
    notes = []
    if exchange.scenario is None and exchange.method:
        notes.append(f"{exchange.method} {exchange.path}")
    if exchange.attempt > 1:
        notes.append(f"try {exchange.attempt}")
    if exchange.fault:
        notes.append(f"fault {exchange.fault}{_struck(exchange)}")
    if exchange.recorded not in ("", "exact"):
        notes.append(f"not as recorded: {exchange.recorded}")
    if exchange.repeated:
        notes.append("the recording was played before")
    if exchange.client_gone:
        notes.append(f"the client left after {exchange.bytes_sent} bytes")
    if exchange.stopped:
        notes.append(f"the server stopped after {exchange.bytes_sent} bytes")
    for problem in exchange.problems:
        line = " ".join(problem.split())
        kept = _MAX_PROBLEM - _ADVICE
        notes.append(shorten(line, _MAX_PROBLEM, keep=kept, tail=_ADVICE, mark=" … "))
    return notes
