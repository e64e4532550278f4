"""The files that lie next to the YAML of a scenario: tapes, bodies and long values, under names
that are not there yet. Pure: the folder writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mockllm.core.jsontext import compact
from mockllm.recording.drafting.draft import Draft, free_name
from mockllm.scenario import model as m
from mockllm.tapes.files import dump_tape

_MOST_OPAQUE = 512
"""Longer signatures and other values that only machines read get a file; in characters."""

_BASE64 = re.compile(rf"[A-Za-z0-9+/=_-]{{{_MOST_OPAQUE + 1}}}")

_MOST_TEXT = 64 * 1024
"""Longer texts get a file; in characters."""


def with_files(
    turn: m.TurnSpec, new_file: Callable[[], str]
) -> tuple[m.TurnSpec, dict[str, bytes]]:
    """The turn with its long values as `TextFile`, and the contents of their files.

    Args:
        new_file: the name of a file that is not there yet.
    """
    files: dict[str, bytes] = {}

    def stored(text: str | None, most: int) -> str | None:
        if text is None or len(text) <= most or isinstance(text, m.TextFile):
            return text
        file = m.TextFile(text, new_file())
        files[file.file] = text.encode()
        return file

    def part_of(part: Any) -> Any:
        match part:
            case m.TextPart(split=split) | m.ReasoningPart(split=split):
                most = _MOST_TEXT if not isinstance(split, tuple) else len(part.text)
                text = stored(part.text, most) or ""
                return replace(part, text=text, signature=stored(part.signature, _MOST_OPAQUE))
            case m.ToolPart():
                return replace(part, signature=stored(part.signature, _MOST_OPAQUE))
            case m.ServerToolPart():
                most = _MOST_TEXT if _is_readable(part.output or "") else _MOST_OPAQUE
                return replace(part, output=stored(part.output, most))
            case m.FramePart(data=data) if data is not None:
                text = data if isinstance(data, str) else compact(data)
                found = stored(text, _MOST_TEXT if _is_readable(text) else _MOST_OPAQUE)
                return replace(part, data=found) if isinstance(found, m.TextFile) else part
            case m.ParallelPart(calls=calls):
                return replace(part, calls=tuple(map(part_of, calls)))
            case m.InterleavedPart(parts=parts):
                return replace(part, parts=tuple(map(part_of, parts)))
        return part

    return replace(turn, reply=tuple(map(part_of, turn.reply))), files


def _is_readable(text: str) -> bool:
    return _BASE64.search(text) is None


def files_of(turn: m.TurnSpec) -> set[str]:
    """The names of the files that hold long values of a turn."""
    names = ("text", "signature", "output", "data")
    values = (getattr(part, name, None) for part in m.members(turn.reply) for name in names)
    return {value.file for value in values if isinstance(value, m.TextFile)}


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
        """The files of the tapes, by the name in the draft."""
        self._given: set[str] = set()

    def scenario(self, scenario: m.Scenario) -> m.Scenario:
        """The scenario with the names of its files; `contents` has what they hold."""
        turns = [self._turn(turn, index + 1) for index, turn in enumerate(scenario.turns)]
        return replace(scenario, turns=tuple(turns))

    def _turn(self, turn: m.TurnSpec, number: int) -> m.TurnSpec:
        new_file = partial(self._new_file, f"{self._stem}.{number}")
        if turn.answer is not None and turn.answer.kind == "file":
            turn = replace(turn, answer=self._answer(turn.answer, turn.recorded, new_file))
        turn, long = with_files(turn, partial(new_file, ".txt"))
        self.contents |= long
        turn = self._with_tape(turn, new_file)
        if turn.attempts:
            attempts = tuple(self._with_tape(attempt, new_file) for attempt in turn.attempts)
            turn = replace(turn, attempts=attempts)
        return turn

    def _answer(
        self, answer: m.RouteAnswer, recorded: m.Recorded | None, new_file: Callable[[str], str]
    ) -> m.RouteAnswer:
        file: str = answer.value
        drafted = self._draft.recorded.get(recorded.file) if recorded is not None else None
        if drafted is not None and drafted.content is not None:
            file = new_file(Path(file).suffix)
            self.contents[file] = drafted.content
        return replace(answer, value=file, path=str(self._folder / file))

    def _with_tape(self, turn: m.TurnSpec, new_file: Callable[[str], str]) -> m.TurnSpec:
        if turn.recorded is None:
            return turn
        name = turn.recorded.file
        drafted = self._draft.recorded.get(name)
        if drafted is None:  # another scenario of the folder has the tape
            file = self._known.get(name, name)
        else:
            file = self.of_drafts[name] = new_file(".jsonl")
            self.contents[file] = dump_tape(drafted.tape)
        recorded = replace(turn.recorded, file=file, path=str(self._folder / file))
        return replace(turn, recorded=recorded)

    def _new_file(self, name: str, ending: str) -> str:
        def is_taken(one: str) -> bool:
            return f"{one}{ending}" in self._given or self._is_there(f"{one}{ending}")

        file = free_name(name, is_taken) + ending
        self._given.add(file)
        return file
