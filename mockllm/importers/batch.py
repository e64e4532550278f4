"""Files into a folder of scenarios, with a line for each exchange: what `mockllm import` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import UsageError, WireError
from mockllm.importers import READERS, aimock
from mockllm.importers.file_formats import detect
from mockllm.importers.reading import Unread
from mockllm.recording.drafting.drafts import Draft, Line, MatchRule, drafts
from mockllm.recording.store.folder import Folder
from mockllm.redaction.redact import Redactor
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import match_key
from mockllm.tapes.captured import Captured

__all__ = ["Told", "import_files"]

_NO_KIND = "it is no VCR cassette, HTTP archive, event stream or fixture file of aimock"


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one exchange, or of a file that has none.

    Args:
        asked: method and path; "" where they are not known.
    """

    line: Line
    asked: str = ""

    def __str__(self) -> str:
        asked = f"  {self.asked}" if self.asked else ""
        return f"{self.line.source}{asked} -> {self._became()}"

    @property
    def words(self) -> str:
        """What there is to say besides scenario and turn; why, where it was skipped."""
        if self.line.outcome == "skipped":
            return self.line.description
        return self.line.description.partition("; ")[2]

    def _became(self) -> str:
        line = self.line
        if line.outcome == "skipped":
            return f"skipped: {self.words}"
        told = [self.words] if self.words else []
        if line.outcome == "neutral":
            # A fixture has no bytes that anything could be equal to.
            told.insert(0, "neutral and equal" if self.asked else "neutral")
        return f"scenario {line.scenario} turn {(line.turn or 0) + 1}: {'; '.join(told)}"


def import_files(
    paths: Iterable[Path],
    folder: Folder,
    *,
    redactor: Redactor | None = None,
    match: MatchRule | None = None,
) -> list[Told]:
    """Writes the scenarios that files make; what became of each exchange, in their order.

    Args:
        paths: files of any kind that `detect` knows.
        redactor: takes out secrets before anything is written.
        match: which conditions decide when a scenario answers.
    """
    redactor = redactor or Redactor()
    batch = _Batch(folder, redactor)
    for path in paths:
        batch.read(path)
    made = drafts(
        batch.exchanges,
        match=match or MatchRule(),
        known=folder.scenarios(),
        tape=folder.tape,
        pattern=redactor.pattern,
    )
    for draft in made:
        batch.write(draft)
    for path in batch.fixtures:
        batch.write_fixtures(path)
    return batch.told()


class _Batch:
    """What was read of some files, and what has been told of it."""

    def __init__(self, folder: Folder, redactor: Redactor) -> None:
        self._folder = folder
        self._redactor = redactor
        self._asked: dict[str, str] = {}
        self._lines: list[Line] = []
        self._there = set(_kept(folder))
        self.exchanges: list[Captured] = []
        self.fixtures: list[Path] = []

    def read(self, path: Path) -> None:
        """Takes in a file; one that cannot be read is told of."""
        try:
            kind = detect(path)
            if kind == "aimock":
                self.fixtures.append(path)
                self._asked[str(path)] = ""
            elif kind is None:
                self._skip(str(path), _NO_KIND)
            else:
                for found in READERS[kind](path):
                    self._found(found)
        except UsageError as error:
            self._skip(str(path), str(error))

    def _found(self, found: Captured | Unread) -> None:
        if isinstance(found, Unread):
            self._skip(found.source, found.words, found.asked)
            return
        asked = f"{found.method} {found.path}"
        try:
            clean = self._redactor.captured(found)
            key = _key(clean.request_body, clean.plain().chunks)
        except WireError as error:
            self._skip(found.source, str(error), asked)
            return
        if key in self._there:
            self._skip(found.source, "it is in the folder already", asked)
            return
        self._asked[clean.source] = asked
        self.exchanges.append(clean)

    def _skip(self, source: str, words: str, asked: str = "") -> None:
        self._asked[source] = asked
        self._lines.append(Line(source, "skipped", words))

    def write(self, draft: Draft) -> None:
        """Writes what there is to write, and takes in what is told of it."""
        written = self._folder.write(draft)
        self._lines += [
            replace(line, scenario=written.scenario.name) if written.scenario else line
            for line in written.report
        ]

    def write_fixtures(self, path: Path) -> None:
        """The scenarios of a file of aimock, but for those that something there answers."""
        there = self._folder.scenarios()
        try:
            made = aimock.read(path, {scenario.name for scenario in there})
        except UsageError as error:
            self._lines.append(Line(str(path), "skipped", str(error)))
            return
        for draft in made:
            other = _same_match(draft.scenario, there)
            self.write(draft if other is None else _given_up(draft, other))

    def told(self) -> list[Told]:
        """A line for each exchange, in the order of the files."""
        order = {source: number for number, source in enumerate(self._asked)}

        def place(line: Line) -> tuple[int, int]:
            file, _, number = line.source.rpartition("#")
            known = order.get(line.source, order.get(file, len(order)))
            return known, int(number) if number.isdigit() else 0

        return [
            Told(line, self._asked.get(line.source, "")) for line in sorted(self._lines, key=place)
        ]


def _kept(folder: Folder) -> Iterator[bytes]:
    """The keys of the exchanges that a folder has."""
    for scenario in folder.scenarios():
        for turn in scenario.turns:
            tape = folder.tape(turn.recorded) if turn.recorded is not None else None
            if tape is not None and tape.request is not None:
                yield _key(tape.request.body, tape.chunks)


def _key(sent: bytes, chunks: Iterable[TimedBytes]) -> bytes:
    """What only exchanges have in common that are the same."""
    sums = (sha256(part).digest() for part in (sent, b"".join(one.data for one in chunks)))
    return b"".join(sums)


def _same_match(scenario: Scenario | None, there: Iterable[Scenario]) -> Scenario | None:
    if scenario is None or scenario.match is None:
        return None
    key = match_key(scenario.match)
    return next(
        (
            other
            for other in there
            if other.match is not None
            and match_key(other.match) == key
            and other.shares_api(scenario)
        ),
        None,
    )


def _given_up(draft: Draft, other: Scenario) -> Draft:
    words = f"the scenario {other.name} in the folder answers the same requests"
    report = (replace(line, outcome="skipped", description=words, scenario="") for line in draft.report)
    return Draft(None, report=tuple(report))
