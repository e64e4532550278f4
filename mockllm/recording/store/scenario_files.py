"""The files that lie next to the YAML of a scenario: tapes, bodies and long values, under names
that are not there yet. Pure: the folder writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from mockllm.recording.drafting.drafts import Draft
from mockllm.recording.drafting.naming import free_name
from mockllm.recording.store.long_values import with_files
from mockllm.scenario.model import Http, Recorded, RouteAnswer, Scenario, TurnSpec
from mockllm.tapes.dump import dump_tape
from mockllm.tapes.model import Tape


class ScenarioFiles:
    """The files of one draft.

    Args:
        folder: that they go to.
        stem: what their names begin with.
        known: the files of tapes that were written before, by the name in a draft.
        is_there: whether the folder has a file of that name.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        draft: Draft,
        known: Mapping[str, str],
        is_there: Callable[[str], bool],
    ) -> None:
        self._folder = folder
        self._stem = stem
        self._draft = draft
        self._known = known
        self._is_there = is_there
        self.contents: dict[str, bytes] = {}
        """By file name."""
        self.of_drafts: dict[str, str] = {}
        """The files of the tapes and of the answers of routes, by the name in the draft."""
        self._given: set[str] = set()

    def scenario(self, scenario: Scenario) -> Scenario:
        """The scenario with the names of its files; `contents` has what they hold."""
        turns = [self._turn(turn, index + 1) for index, turn in enumerate(scenario.turns)]
        return replace(scenario, turns=tuple(turns))

    def _turn(self, turn: TurnSpec, number: int) -> TurnSpec:
        new_file = partial(self._new_file, f"{self._stem}.{number}")
        if turn.answer is not None and turn.answer.kind == "file":
            turn = replace(turn, answer=self._answer(turn.answer, new_file))
        turn, long = with_files(turn, partial(new_file, ".txt"))
        self.contents |= long
        if turn.recorded is not None:
            tape = self._draft.tapes.get(turn.recorded.file)
            turn = replace(turn, recorded=self._taped(turn.recorded, tape, new_file))
        if turn.attempts:
            attempts = tuple(self._attempt(attempt, new_file) for attempt in turn.attempts)
            turn = replace(turn, attempts=attempts)
        return turn

    def _answer(self, answer: RouteAnswer, new_file: Callable[[str], str]) -> RouteAnswer:
        file: str = answer.value
        content = self._draft.files.get(file)
        if content is not None:
            file = new_file(Path(file).suffix)
            self.contents[file] = content
            self.of_drafts[answer.value] = file
        return replace(answer, value=file, path=str(self._folder / file))

    def _attempt(self, attempt: Http, new_file: Callable[[str], str]) -> Http:
        if attempt.recorded is None:
            return attempt
        tape = self._draft.tapes.get(attempt.recorded.file)
        return replace(attempt, recorded=self._taped(attempt.recorded, tape, new_file))

    def _taped(
        self, recorded: Recorded, tape: Tape | None, new_file: Callable[[str], str]
    ) -> Recorded:
        """The recording with the file of its tape.

        Args:
            tape: None where another scenario of the folder has it.
        """
        name = recorded.file
        file = self.of_drafts.get(name) or self._known.get(name, name)
        if tape is not None:
            file = new_file(".jsonl")
            self.contents[file] = dump_tape(tape)
            self.of_drafts[name] = file
        return replace(recorded, file=file, path=str(self._folder / file))

    def _new_file(self, name: str, ending: str) -> str:
        def is_taken(one: str) -> bool:
            return f"{one}{ending}" in self._given or self._is_there(f"{one}{ending}")

        file = free_name(name, is_taken) + ending
        self._given.add(file)
        return file
