"""One run: recordings read, requests sent again, answers compared, drifted ones recorded anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from mockllm.conformance.drift.answers import answer_shape
from mockllm.conformance.drift.compare import Comparison
from mockllm.conformance.drift.live import LiveAnswer, error_message
from mockllm.conformance.drift.selection import LiveRequests, RecordingNote, TapeOfTurn
from mockllm.core.errors import MockLLMError, UsageError
from mockllm.play.tapes.captured import Captured, detect_api, load_tape, request_of
from mockllm.record.recording.drafting.draft import Draft, DraftedTurn
from mockllm.record.recording.drafting.route_drafts import route_turn
from mockllm.record.recording.drafting.turns import draft_turn, with_turn
from mockllm.record.recording.store.folder import Folder
from mockllm.record.redaction.redact import Redactor
from mockllm.scenario.model import Recorded, Scenario


def recordings(
    scenarios: Iterable[Scenario],
) -> tuple[tuple[TapeOfTurn, ...], tuple[RecordingNote, ...]]:
    """The recordings of scenarios, and those whose tape cannot be read."""
    found: list[TapeOfTurn] = []
    unread: list[RecordingNote] = []
    for scenario in scenarios:
        for turn, spec in enumerate(scenario.turns):
            tries = [(number, attempt.recorded) for number, attempt in enumerate(spec.attempts)]
            for number, recorded in (*tries, (None, spec.recorded)):
                if recorded is None or recorded.path is None:
                    continue
                try:
                    tape = load_tape(Path(recorded.path).read_bytes(), recorded.path)
                    found.append(TapeOfTurn(scenario.name, turn, number, tape))
                except (OSError, MockLLMError) as error:
                    unread.append(RecordingNote(f"{scenario.name} turn {turn + 1}", str(error)))
    return tuple(found), tuple(unread)


class DriftRun:
    """The comparison of a run, and which answers have drifted."""

    def __init__(self, chosen: LiveRequests) -> None:
        self.comparison = Comparison(chosen.all)
        self.drifted: list[LiveAnswer] = []

    def add(self, answer: LiveAnswer) -> str:
        """Compares an answer; why it could not be, "" where it was."""
        exchange, request = answer.exchange, answer.request
        if exchange is None:
            return answer.failure
        group = request.group
        try:
            after = answer_shape(exchange, group.protocol, streamed=group.streamed)
        except MockLLMError as error:
            return f"its answer cannot be read: {error}"
        message = ""
        if exchange.status >= 400 and exchange.status != request.before.status:
            message = error_message(exchange, group.protocol)
        if self.comparison.add(request.recording.name, group, request.before, after, message):
            self.drifted.append(answer)
        return ""


def record_anew(
    answers: Iterable[LiveAnswer], scenarios: Iterable[Scenario], redactor: Redactor
) -> Iterator[RecordingNote]:
    """Writes answers in place of their recordings: the tape, and the turn in the YAML. Each with
    what became of it.

    Raises:
        OSError: a folder cannot be written to.
    """
    known = {scenario.name: scenario for scenario in scenarios}
    in_file = Counter(scenario.file for scenario in known.values())
    folders: dict[Path, Folder] = {}
    for answer in answers:
        recording, exchange = answer.request.recording, answer.exchange
        scenario = known[recording.scenario]
        path = Path(scenario.file).parent
        folder = folders.setdefault(path, Folder(path))
        assert exchange is not None
        if why := _why_kept(recording, exchange, in_file[scenario.file]):
            yield RecordingNote(recording.name, f"is left as it was: {why}")
            continue
        try:
            draft = _draft(scenario, recording.turn, redactor.exchange(exchange))
            written = folder.write(draft).scenario
        except MockLLMError as error:
            yield RecordingNote(recording.name, f"is left as it was: {error}")
            continue
        assert written is not None
        known[scenario.name] = replace(written, file=scenario.file, line=scenario.line)
        rest = len(scenario.turns) - recording.turn - 1
        note = "; later turns are of the earlier conversation" if rest else ""
        yield RecordingNote(recording.name, f"written{note}")


def _why_kept(recording: TapeOfTurn, exchange: Captured, scenarios: int) -> str:
    """Why an answer is not written in place of its recording; "" if it is.

    Args:
        scenarios: how many the file of the recording has.
    """
    if recording.attempt is not None or exchange.status >= 400:
        return "an error is not recorded anew"
    return "its file has other scenarios, too" if scenarios > 1 else ""


def _draft(scenario: Scenario, index: int, clean: Captured) -> Draft:
    """The scenario with another answer of one turn, found by the same request as before."""
    old = scenario.turns[index]
    assert old.recorded is not None
    recorded = replace(old.recorded, file=f"{scenario.name}.{index + 1}.drift", partial=False)
    answer = _answer(scenario, clean, recorded)
    new = replace(
        answer.spec,
        recorded=recorded,
        request=old.request,
        attempts=old.attempts,
        expect=old.expect,
    )
    alone, left_out = with_turn(replace(scenario, turns=()), new, recorded.file)
    if left_out:
        raise UsageError(f"the YAML cannot hold its answer: {left_out[0]}")
    turns = (*scenario.turns[:index], *alone.turns, *scenario.turns[index + 1 :])
    changed = replace(scenario, turns=turns)
    return Draft(changed, {recorded.file: answer}, base=scenario)


def _answer(scenario: Scenario, clean: Captured, recorded: Recorded) -> DraftedTurn:
    found = detect_api(clean)
    if found.protocol is None:
        return route_turn(replace(scenario, turns=()), clean.plain(), recorded)
    return draft_turn(clean, found, request_of(clean, found))
