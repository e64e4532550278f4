"""Imports files into a folder of scenarios, with a result for each exchange: `mockllm import`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import TypeVar

from mockllm.core.errors import ScenarioError, UsageError, WireError
from mockllm.core.text import quantity
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import Captured
from mockllm.play.tapes.socket_session import Recording, SocketSession
from mockllm.record.importers import aimock, mcp
from mockllm.record.importers.file_formats import (
    READERS,
    detect,
    files,
    may_be_read,
    path_without_gz,
)
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.importers.reading import Entry, Unread
from mockllm.record.recording.drafting.draft import Draft, Line, Origin
from mockllm.record.recording.drafting.drafts import Drafting
from mockllm.record.recording.drafting.matches import MatchRule
from mockllm.record.recording.drafting.mcp_drafts import RecordedCall
from mockllm.record.recording.drafting.socket_drafts import exchanges_of
from mockllm.record.recording.finding import not_found, player_of, recorded_before, sent_again
from mockllm.record.recording.store.folder import Folder
from mockllm.record.recording.store.mcp_documents import document_file, write_server
from mockllm.record.redaction.credentials import masked_url
from mockllm.record.redaction.placeholders import placeholder_kinds
from mockllm.record.redaction.redact import Redactor
from mockllm.scenario.model import Ignored, Scenario
from mockllm.scenario.precedence import match_key

Progress = Callable[[str, int, int], None]
"""Called with what is done (`files read`), how many of it are done, and of how many."""

_Item = TypeVar("_Item")


def no_progress(what: str, done: int, total: int) -> None:
    """Shows nothing."""


def pass_over(file: Path) -> None:
    """Reports nothing."""


def with_progress(items: Sequence[_Item], what: str, progress: Progress) -> Iterator[_Item]:
    """The items; reports each as done when the next one is requested."""
    total = len(items)
    for done, item in enumerate(items):
        progress(what, done, total)
        yield item
    progress(what, total, total)


_NO_KIND = (
    "it is no VCR cassette, HTTP archive, recording of nock, httprr, mcp-recorder or mcp-vcr, "
    "event stream or fixture file of aimock"
)

_SERVER = "mcp:"

_MOST_TOGETHER = 100
"""Exchanges that are written together: the disk is waited for once for all of them."""

_GENERIC = ("answer", "body", "output", "recording", "recording.har", "response", "stream")
"""Names of files that say nothing, as all of Polly.js do: the name of the folder is used."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result for one exchange, or for a file without exchanges.

    Args:
        hidden: what is hidden in the body of the answer; "" for nothing.
    """

    line: Line
    request: str = ""
    hidden: str = ""

    def __str__(self) -> str:
        request = f"  {self.request}" if self.request else ""
        return f"{self.line.source}{request} -> {self._outcome()}"

    @property
    def details(self) -> str:
        """Why it was skipped; else what is notable besides scenario and turn, "" if nothing is."""
        if self.line.outcome == "skipped":
            return self.line.description
        hidden = f"hidden in its answer: {self.hidden}" if self.hidden else ""
        return "; ".join(filter(None, (self.line.description.partition("; ")[2], hidden)))

    def _outcome(self) -> str:
        line = self.line
        if line.outcome == "skipped":
            return f"skipped: {self.details}"
        if line.turn is None and line.scenario.startswith(_SERVER):
            lost = f": NOT FOUND AGAIN: {line.not_found}" if line.not_found else ""
            return f"MCP server {line.scenario.removeprefix(_SERVER)}{lost}"
        parts = [self.details] if self.details else []
        if line.not_found:
            parts.append(f"NOT FOUND AGAIN: {line.not_found}")
        if line.outcome == "neutral":
            parts.insert(0, "neutral")
        return f"scenario {line.scenario} turn {(line.turn or 0) + 1}: {'; '.join(parts)}"


def import_files(
    paths: Iterable[Path],
    folder: Folder,
    *,
    redactor: Redactor | None = None,
    match: MatchRule | None = None,
    join: bool = False,
    progress: Progress = no_progress,
    other: Callable[[Path], None] = pass_over,
    entries: Mapping[Path, Iterable[Entry]] = MappingProxyType({}),
) -> list[ImportResult]:
    """Writes the scenarios of files; returns a result for each exchange, in the order of the files.

    Args:
        paths: of files, and of folders that have them.
        other: called with each file in a folder that is no recording.
        join: whether exchanges of different files, and of the folder, may be one conversation.
        entries: those of files that need not be read, by their paths.
    """
    redactor = redactor or Redactor()
    batch = _Batch(folder, redactor, join=join, entries=entries)
    named = dict.fromkeys(paths)
    several = [*entries, *files(path for path in named if path not in entries)]
    batch.root = _common_folder(several)
    for path in with_progress(several, "files read", progress):
        if not batch.read(path, in_folder=path not in named):
            other(path)
    drafting = Drafting(
        match=match or MatchRule(), known=batch.existing, tape=folder.tape, pattern=redactor.pattern
    )
    for name, group in batch.read_again.items():
        drafting.adopt(name, group)
    exchanges = with_progress(batch.exchanges, "exchanges written", progress)
    while together := tuple(islice(exchanges, _MOST_TOGETHER)):
        with folder.group():
            for exchange, origin in together:
                for draft in drafting.add(exchange, origin):
                    drafting.adopt_changes(draft, batch.write(draft))
    batch.look_for(progress)
    for file in batch.fixtures:
        batch.write_fixtures(file)
    batch.write_servers((match or MatchRule()).ignore)
    return batch.results()


class _Batch:
    def __init__(
        self,
        folder: Folder,
        redactor: Redactor,
        *,
        join: bool,
        entries: Mapping[Path, Iterable[Entry]],
    ) -> None:
        self._entries = entries
        self._folder = folder
        self._redactor = redactor
        self._join = join
        self._requests: dict[str, str] = {}
        self._hidden: dict[str, str] = {}
        self._lines: list[Line] = []
        self.existing = folder.scenarios()
        self._keys = dict(_existing_keys(folder, self.existing))
        self.read_again: dict[str, str] = {}
        self.exchanges: list[tuple[Recording, Origin]] = []
        self._sent: dict[str, Recording] = {}
        """The exchanges as they were recorded, with their secrets, by their sources."""
        self.root = Path()
        self.fixtures: list[ForeignFile] = []
        self._servers: dict[tuple[str, str], dict[str, RecordedCall]] = {}
        """Exchanges with MCP servers, by file and URL, and by their sources."""
        self._written: list[Draft] = []

    def read(self, path: Path, *, in_folder: bool) -> bool:
        """Adds the exchanges of a file; a file that cannot be read is reported as skipped.

        Args:
            in_folder: whether the file was found in a folder.

        Returns:
            whether it is a recording; one that is named is one, or is reported.
        """
        if path in self._entries:
            self._add_all(path, self._entries[path])
            return True
        if in_folder and not may_be_read(path):
            return False
        file = ForeignFile(path)
        try:
            kind = detect(file)
            if kind == "aimock":
                self.fixtures.append(file)
                self._requests[str(path)] = ""
            elif kind == "mcp":
                for exchange in mcp.read(file):
                    self._add_to_server((str(path), ""), exchange)
            elif kind == "flows":
                archive = quote(str(path.with_suffix(".har")))
                command = f"mitmdump -nr {quote(str(path))} --set hardump={archive}"
                self._skip(
                    str(path), f"it has flows of mitmproxy; import an archive of them: {command}"
                )
            elif kind is not None:
                self._add_all(path, READERS[kind](file))
            elif in_folder:
                return False
            else:
                self._skip(str(path), _NO_KIND)
        except UsageError as error:
            self._skip(str(path), str(error))
        return True

    def _add_all(self, path: Path, entries: Iterable[Entry]) -> None:
        stem = path_without_gz(path).stem
        stem = path.parent.name if stem in _GENERIC else stem
        shown = _display_path(path, self.root)
        origin = Origin(self._group(path), self._redactor.text(stem), self._redactor.text(shown))
        for entry in entries:
            if isinstance(entry, Captured):
                key = str(path), entry.url
                exchange = mcp.find(entry)
                if exchange is None and key in self._servers:  # GET and DELETE of its session
                    exchange = mcp.McpExchange(entry.source, entry.method)
                if exchange is not None:
                    self._add_to_server(key, exchange)
                    continue
            self._add(entry, origin)

    def _add_to_server(self, key: tuple[str, str], exchange: mcp.McpExchange) -> None:
        kept = self._servers.setdefault(key, {})
        if exchange.call is None:
            reason = "it has no answer, or none that a document of an MCP server has"
            unwanted = exchange.asked in ("GET", "DELETE") or "notifications/" in exchange.asked
            self._skip(exchange.source, reason, exchange.asked, unwanted=unwanted)
        else:
            self._requests[exchange.source] = exchange.asked
            kept[exchange.source] = exchange.call

    def _add(self, entry: Entry, origin: Origin) -> None:
        if isinstance(entry, Unread):
            self._skip(entry.source, entry.reason, entry.request)
            return
        split = exchanges_of(entry) if isinstance(entry, SocketSession) else None
        if split is not None:
            exchanges, not_kept = split
            for exchange in exchanges:
                self._add(exchange, origin)
            if not_kept:
                request = _shown_request(entry)
                self._skip(entry.source, not_kept, request, unwanted=True)
            return
        request = _shown_request(entry)
        try:
            clean = self._redactor.recording(entry)
            request = _shown_request(clean)
            key = _key(clean)
        except WireError as error:
            self._skip(entry.source, str(error), request)
            return
        if key in self._keys:
            self.read_again.setdefault(self._keys[key], origin.group)
            self._skip(entry.source, "it is in the folder already", request)
            return
        self._requests[clean.source] = request
        self._hidden[clean.source] = _hidden_in_answer(entry, clean)
        self._sent[clean.source] = entry
        if isinstance(entry, SocketSession) and isinstance(clean, SocketSession):
            self._sent[clean.source] = sent_again(entry, clean)
        number = clean.source.rpartition("#")[2]
        if number.isdigit():
            origin = replace(origin, description=f"{origin.description}, exchange {number}")
        self.exchanges.append((clean, origin))

    def _group(self, path: Path) -> str:
        return "" if self._join else str(path)

    def _skip(self, source: str, reason: str, request: str = "", *, unwanted: bool = False) -> None:
        self._requests[source] = request
        self._lines.append(Line(source, "skipped", reason, unwanted=unwanted))

    def write(self, draft: Draft) -> Draft:
        """Writes a draft, and adds its lines to the report; returns what was written."""
        written = self._folder.write(draft)
        self._written.append(written)
        self._lines += written.report
        return written

    def look_for(self, progress: Progress) -> None:
        """Sends the request of each exchange to the folder, as it was recorded, in their order; the
        lines of those whose recording does not answer say why."""
        lines = {line.source: line for line in self._lines if line.outcome != "skipped"}
        written = {(line.scenario, line.turn) for line in lines.values()}
        if not written:
            return
        # Those of the files, not of the drafts: what is asked is what a replay will do.
        scenarios = {scenario.name: scenario for scenario in self._folder.scenarios()}
        player, session = player_of(scenarios, self._written), Session("import")
        reasons: dict[str, str] = {}
        for exchange, _ in with_progress(self.exchanges, "recordings found again", progress):
            line = lines.get(exchange.source)
            if line is None or line.turn is None:
                continue
            sent = self._sent[exchange.source]
            if self.existing and isinstance(sent, Captured):
                for scenario, index in recorded_before(player, sent, line.scenario, line.turn):
                    if (scenario.name, index) not in written:  # of an earlier import
                        session.note_played(scenario.name, index)
            reason = not_found(player, sent, line.scenario, line.turn, session)
            if reason:
                reasons[line.source] = reason
        self._lines = [
            replace(line, not_found=reasons.get(line.source, "")) for line in self._lines
        ]

    def write_fixtures(self, file: ForeignFile) -> None:
        """Writes the scenarios of a file of aimock, but those whose requests the folder answers."""
        existing = self._folder.scenarios()
        try:
            drafted = aimock.read(file, {scenario.name for scenario in existing})
        except UsageError as error:
            self._lines.append(Line(str(file.path), "skipped", str(error)))
            return
        for draft in drafted:
            other = _same_match(draft.scenario, existing)
            self.write(draft if other is None else _skip_duplicate(draft, other))

    def write_servers(self, ignore: Ignored) -> None:
        """Writes a document for each MCP server, of whose exchanges several files may have some."""
        servers: dict[str, dict[str, RecordedCall]] = {}
        for (path, _), calls in self._servers.items():
            name = mcp.server_name(calls.values(), path_without_gz(Path(path)).stem)
            servers.setdefault(self._redactor.text(name), {}).update(calls)
        for name, calls in servers.items():
            file, scenario = document_file(name), f"{_SERVER}{name}"
            reason, found = "", dict.fromkeys(calls, "")
            is_there = any(one.name == scenario for one in self.existing)
            if is_there or (self._folder.path / file).exists():
                reason = f"{file} is in the folder already"
            elif calls:
                place, redactor, sent = self._folder.path, self._redactor, list(calls.values())
                try:
                    written = write_server(place, name, sent, redactor, ignore)
                    found = dict(zip(calls, (why or "" for why in written.found), strict=True))
                except ScenarioError as error:
                    reason = f"{file} could not be loaded: {error}"
            for source, why in found.items():
                line = Line(source, "neutral", "", scenario=scenario, not_found=why)
                self._lines.append(Line(source, "skipped", reason) if reason else line)

    def results(self) -> list[ImportResult]:
        """A result for each exchange, in the order of the files."""
        order = {source: number for number, source in enumerate(self._requests)}

        def position(line: Line) -> tuple[int, int]:
            file, _, number = line.source.rpartition("#")
            known = order.get(line.source, order.get(file, len(order)))
            return known, int(number) if number.isdigit() else 0

        return [
            ImportResult(
                line, self._requests.get(line.source, ""), self._hidden.get(line.source, "")
            )
            for line in sorted(self._lines, key=position)
        ]


def totals(results: Sequence[ImportResult]) -> dict[str, int]:
    """The numbers of exchanges by outcome, and of the scenarios that they became."""
    lines = [result.line for result in results]
    counts = Counter(line.outcome for line in lines)
    return {
        "exchanges": len(lines),
        "neutral": counts["neutral"],
        "partial": counts["partial"],
        "skipped": counts["skipped"],
        "not_found": sum(bool(line.not_found) for line in lines),
        "hidden": sum(bool(result.hidden) for result in results),
        "scenarios": len({line.scenario for line in lines if line.scenario}),
    }


def summary(results: Sequence[ImportResult]) -> str:
    """The totals, as a line."""
    sums = totals(results)
    lost = f", {sums['not_found']} NOT FOUND AGAIN" if sums["not_found"] else ""
    hidden = quantity(sums["hidden"], "answer")
    return (
        f"{quantity(sums['exchanges'], 'exchange')}: {sums['neutral']} neutral, "
        f"{sums['partial']} in part, {sums['skipped']} skipped{lost}; "
        f"{quantity(sums['scenarios'], 'scenario')}"
        f"{f'; {hidden} with hidden values' if sums['hidden'] else ''}"
    )


def _existing_keys(folder: Folder, scenarios: Iterable[Scenario]) -> Iterator[tuple[bytes, str]]:
    """The keys of the exchanges in a folder, each with the name of its scenario."""
    for scenario in scenarios:
        for turn in scenario.turns:
            for recorded in turn.recordings():
                tape = folder.tape(recorded)
                exchange = tape.exchange if tape is not None else folder.session(recorded)
                if exchange is not None and _opening(exchange).method:
                    yield _key(exchange), scenario.name


def _opening(exchange: Recording) -> Captured:
    return exchange.opening if isinstance(exchange, SocketSession) else exchange


def _answer(exchange: Recording) -> bytes:
    """The body of an answer, or all that a service said on a WebSocket."""
    if isinstance(exchange, SocketSession):
        said = [message.data for message in exchange.messages if message.side == "service"]
        return b"\n".join(said) or exchange.body
    return exchange.plain().body


def _key(exchange: Recording) -> bytes:
    """A key that is equal for exchanges with the same request and the same body."""
    opening = _opening(exchange)
    parts = f"{opening.method} {opening.url}".encode(), opening.request_body, _answer(exchange)
    return b"".join(sha256(part).digest() for part in parts)


def _shown_request(exchange: Recording) -> str:
    opening = _opening(exchange)
    return f"{opening.method} {masked_url(opening.path) or '/'}"


def _hidden_in_answer(before: Recording, after: Recording) -> str:
    """The kinds of what redaction has hidden in the body of an answer, counted; "" for none."""
    if _answer(before) == _answer(after):
        return ""
    # A placeholder that is cut in fragments is in no text.
    kinds = placeholder_kinds([_answer(after).decode("latin-1")]) or {"secret": 1}
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def _common_folder(paths: Sequence[Path]) -> Path:
    folders = [str(path.absolute().parent) for path in paths]
    return Path(os.path.commonpath(folders)) if folders else Path()


def _display_path(path: Path, root: Path) -> str:
    """A path as it is written into files: nothing of it above the current folder or, outside of
    that, above the folder of the import."""
    for folder in (Path.cwd(), root):
        with suppress(ValueError):
            return str(path.absolute().relative_to(folder))
    return path.name


def _same_match(scenario: Scenario | None, existing: Iterable[Scenario]) -> Scenario | None:
    """The scenario that competes with another one; None where none does."""
    if scenario is None or scenario.match is None:
        return None
    key = match_key(scenario.match)
    return next(
        (
            other
            for other in existing
            if other.match is not None
            and match_key(other.match) == key
            and other.shares_api(scenario)
        ),
        None,
    )


def _skip_duplicate(draft: Draft, other: Scenario) -> Draft:
    reason = f"the scenario {other.name} in the folder answers the same requests"
    report = (
        replace(line, outcome="skipped", description=reason, scenario="") for line in draft.report
    )
    return Draft(None, report=tuple(report))
