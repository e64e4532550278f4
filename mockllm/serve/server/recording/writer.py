"""The writer of a recorder: redacts exchanges that have ended, writes their tapes and scenarios,
and asks the folder for them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from mockllm.core.errors import MockLLMError, ScenarioError, WireError
from mockllm.play.tapes.captured import detect_api
from mockllm.play.tapes.recorded_turn import recorded_turn
from mockllm.play.tapes.socket_session import Recording, SocketSession
from mockllm.record.recording.drafting.draft import Draft, Line
from mockllm.record.recording.drafting.drafts import Drafting
from mockllm.record.recording.drafting.matches import MatchRule
from mockllm.record.recording.drafting.socket_drafts import exchanges_of
from mockllm.record.recording.finding import Competing, not_found_after_write, player_of
from mockllm.record.recording.store.ended import WrittenExchanges
from mockllm.record.recording.store.folder import Folder
from mockllm.record.redaction.placeholders import placeholder_kinds
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules
from mockllm.scenario.model import Scenario

Group = Sequence[tuple[int, Recording]]
"""Exchanges and sessions in the order in which they ended, each with its number."""


@dataclass(frozen=True, slots=True)
class WriterSetup:
    """The settings of a writer.

    Args:
        folder: of the scenarios.
        ended: the folder of the recorder's `EndedExchanges`.
        rules: what is secret.
        match: the conditions of the scenarios.
        overwrite: new conversations replace earlier ones with the same opening.
        reserved: names of scenarios that are elsewhere.
        sends_scenarios: whether `GroupResult.scenarios` is of use.
    """

    folder: Path
    ended: Path
    rules: Rules
    match: MatchRule
    overwrite: bool
    reserved: frozenset[str]
    sends_scenarios: bool = True


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The result of writing a group.

    Args:
        handled: how many of its exchanges, from the first on, are written or reported.
        lines: about these.
        scenarios: that changed, by name.
        obstacle: why the next one cannot be written at the moment; "" if all are handled.
    """

    handled: int
    lines: tuple[Line, ...] = ()
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)
    obstacle: str = ""


class Writer:
    """Writes exchanges as scenarios.

    Raises:
        ScenarioError: the folder has scenarios that cannot be loaded.
        OSError: it cannot be written to.
    """

    def __init__(self, setup: WriterSetup, redactor: Redactor | None = None) -> None:
        self._setup = setup
        self._redactor = redactor or Redactor(setup.rules)
        self._folder = Folder(setup.folder)
        self._competing = Competing()
        self._drafting: Drafting | None = self._begin()
        self._written = WrittenExchanges(setup.ended)

    def write(self, group: Group) -> GroupResult:
        """Writes exchanges; it takes less time for each if they are many."""
        result = self._attempt(group)
        if result.handled < len(group) and len(group) > 1:
            # As many as there is room for, and all but the one that is at fault.
            result = one_by_one(self._attempt, group)
        # On a full disk there is no note, and the next recorder may name too many.
        with suppress(OSError):
            self._written.add(number for number, _ in group[: result.handled])
        return result if self._setup.sends_scenarios else replace(result, scenarios={})

    def close(self) -> None:
        """Ends the writer."""
        self._written.close()

    def _attempt(self, group: Group) -> GroupResult:
        """Writes exchanges together: all of them or none."""
        scenarios: dict[str, Scenario] = {}
        try:
            lines = self._lines([captured for _, captured in group], scenarios)
        except (OSError, ScenarioError) as error:
            self._drafting = None  # what it drafted is not in the folder
            return GroupResult(0, obstacle=obstacle(error))
        except Exception as error:  # noqa: BLE001  no fault may cost the exchanges beside it
            self._drafting = None
            if len(group) > 1:
                return GroupResult(0)
            fault = f"a fault of mockllm: {type(error).__name__}: {error}"
            return GroupResult(1, (lost_line(group[0][1].source, fault),))
        return GroupResult(len(group), tuple(lines), scenarios)

    def _lines(self, group: Sequence[Recording], changed: dict[str, Scenario]) -> list[Line]:
        """Writes exchanges, and gives the line of each.

        Args:
            changed: the scenarios that are written are added to it.

        Raises:
            OSError: none is written, or not all of them are.
        """
        found: list[tuple[Line, Recording, Draft | None]] = []
        drafting = self._drafting = self._drafting or self._begin()
        with self._folder.group():
            for captured in group:
                found += self._draft(drafting, captured, changed)
        for scenario in changed.values():
            self._competing.keep(scenario)
        return [
            line if written is None else self._looked_for(line, captured, written)
            for line, captured, written in found
        ]

    def _begin(self) -> Drafting:
        known = self._folder.scenarios()
        self._competing = Competing(known)
        return Drafting(
            match=self._setup.match,
            known=known,
            tape=self._folder.tape,
            pattern=self._redactor.pattern,
            overwrite=self._setup.overwrite,
            reserved=self._setup.reserved,
        )

    def _draft(
        self, drafting: Drafting, captured: Recording, changed: dict[str, Scenario]
    ) -> Iterator[tuple[Line, Recording, Draft | None]]:
        """Drafts and writes an exchange, or a session; its lines, each with what was written."""
        if isinstance(captured, SocketSession) and (split := exchanges_of(captured)) is not None:
            exchanges, not_kept = split
            for exchange in exchanges:
                numberless = replace(exchange, source=captured.source)
                yield from self._draft(drafting, numberless, changed)
            if not_kept:
                yield Line(captured.source, "skipped", not_kept, unwanted=True), captured, None
            return
        try:
            clean = self._redactor.recording(_without_late_cut(captured))
            for draft in drafting.add(clean):
                written = self._folder.write(draft)
                drafting.adopt_changes(draft, written)
                if written.scenario is not None:
                    changed[written.scenario.name] = written.scenario
                yield from ((line, clean, written) for line in written.report)
        except MockLLMError as error:
            yield Line(captured.source, "skipped", str(error)), captured, None

    def _looked_for(self, line: Line, captured: Recording, draft: Draft) -> Line:
        """The line with the reason why the recorded request does not find its recording, and with
        what was redacted."""
        line = replace(line, redacted=_secret_counts(captured))
        written = self._competing.by_name.get(line.scenario)
        if written is None or line.turn is None or line.turn >= len(written.turns):
            return line
        scenarios = {other.name: other for other in (*self._competing.of(written), written)}
        player = player_of(scenarios, (draft,))
        not_found = not_found_after_write(player, captured, written, line.turn)
        return replace(line, not_found=not_found) if not_found else line


def one_by_one(write: Callable[[Group], GroupResult], group: Group) -> GroupResult:
    """Writes the exchanges of a group one after the other, up to an obstacle."""
    whole = GroupResult(0)
    for exchange in group:
        result = write((exchange,))
        whole = GroupResult(
            whole.handled + result.handled,
            whole.lines + result.lines,
            {**whole.scenarios, **result.scenarios},
            result.obstacle,
        )
        if whole.obstacle:
            break
    return whole


def _without_late_cut(captured: Recording) -> Recording:
    """The exchange; not cut where the client left after the end marker of the stream."""
    if isinstance(captured, SocketSession) or captured.cut not in ("client", "stalled"):
        return captured
    protocol = detect_api(captured).protocol
    with suppress(WireError):
        if protocol and recorded_turn(captured.plain(), protocol, streamed=True).complete:
            return replace(captured, cut="")
    return captured


def _secret_counts(captured: Recording) -> tuple[tuple[str, int], ...]:
    """The number of secrets that were replaced in an exchange or a session, by kind."""
    messages: list[str] = []
    if isinstance(captured, SocketSession):
        messages = [one.data.decode("latin-1") + one.reason for one in captured.messages]
        captured = captured.opening
    with suppress(WireError):  # what cannot be decompressed is counted as it stands
        captured = captured.plain()
    heads = (value for _, value in (*captured.request_headers, *captured.headers))
    bodies = (captured.request_body.decode("latin-1"), captured.body.decode("latin-1"))
    texts = (captured.url, *heads, *bodies, *messages)
    return tuple(sorted(placeholder_kinds(texts).items()))


def obstacle(error: OSError | ScenarioError) -> str:
    """Why nothing can be written at the moment: the disk, or scenarios that cannot be loaded."""
    why = error.strerror or error if isinstance(error, OSError) else error
    return f"it cannot be written: {why}"


def lost_line(source: str, why: str) -> Line:
    """The line of an exchange that could not be written."""
    return Line(source, "skipped", f"{source}: {why}", lost=True)
