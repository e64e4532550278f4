"""A folder of recorded scenarios: files are written whole or not at all, and never over another
recorder's. The only place in `recording` that writes.

A scenario is `NAME.yaml`; the exact bytes of its turns lie beside it, `NAME.1.jsonl` and so on.
Each file is written under a hidden name, brought to the disk and then renamed, the tapes before
the YAML that names them: whoever reads the folder, at any moment, finds scenarios that are whole.
Recorders take turns by a lock that the system frees when its holder dies.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from mockllm.errors import Problem, ScenarioError
from mockllm.recording.drafting.drafts import Draft
from mockllm.recording.drafting.naming import free_name
from mockllm.recording.store.locks import alone, is_unfinished, put
from mockllm.replay.loading import load, loads
from mockllm.scenario.dump import dump
from mockllm.scenario.files import MAX_FILE
from mockllm.scenario.model import Recorded, Scenario, TurnSpec
from mockllm.scenario.precedence import differ_later, match_key
from mockllm.tapes.dump import dump_tape
from mockllm.tapes.load import load_tape
from mockllm.tapes.model import Tape

__all__ = ["Folder"]

_TURNS = "\nturns:\n"
_Version = tuple[int, int, int]


class Folder:
    """Recorded scenarios and their tapes.

    Args:
        path: made where it is missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._read: dict[str, tuple[_Version, tuple[Scenario, ...]]] = {}
        self._texts: dict[str, str] = {}

    def scenarios(self) -> tuple[Scenario, ...]:
        """What is there now; nothing where nothing was recorded yet.

        Raises:
            ScenarioError: with every problem of every file.
        """
        with alone(self.path):  # no tape is removed between reading its scenario and finding it
            found = (file for end in ("yaml", "yml") for file in self.path.rglob(f"*.{end}"))
            shown = (file.relative_to(self.path).parts for file in found)
            if all(any(part.startswith(".") for part in parts) for parts in shown):
                return ()
            return load([self.path])

    def tape(self, recorded: Recorded) -> Tape | None:
        """A tape of the folder; None where it is not there, or cannot be read."""
        file = self.path / recorded.file
        try:
            return load_tape(file.read_bytes(), str(file))
        except (OSError, ScenarioError):
            return None

    def write(self, draft: Draft) -> Draft:
        """Writes a draft; it is on the disk when this returns.

        Returns:
            what was written. It has another name where its own is taken, or where another
            recorder has changed the scenario that it takes the place of; and no `match` where
            another recorder's scenario answers the same requests.
        """
        if draft.scenario is None:
            return draft
        with alone(self.path):
            there = self._there()
            scenario = self._named(draft, there)
            scenario = self._filed(scenario, draft)
            others = [other for other in there.values() if other.name != scenario.name]
            if _clashes(scenario, others):
                scenario = replace(scenario, match=None)
            text = self._text(scenario, draft.base)
            if len(text.encode()) > MAX_FILE:
                problem = "the conversation is too long for one file"
                raise ScenarioError([Problem(f"{scenario.name}.yaml", 1, 1, "", problem)])
            for turn, tape in zip(scenario.turns, draft.tapes, strict=True):
                if tape is not None and turn.recorded is not None:
                    put(self.path / turn.recorded.file, dump_tape(tape))
            put(self._file(scenario.name), text.encode())
            self._remember(scenario, text)
            self._forget(draft.base, scenario)
        return replace(draft, scenario=scenario)

    # Who else is there

    def _there(self) -> dict[str, Scenario]:
        """The scenarios in the folder by name; only files that have changed are read again. What
        a writer that was killed has left goes, for who asks is alone to write."""
        found: dict[str, tuple[_Version, tuple[Scenario, ...]]] = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.startswith(".") or not entry.name.endswith((".yaml", ".yml")):
                    if is_unfinished(entry.name):
                        (self.path / entry.name).unlink(missing_ok=True)
                    continue
                status = entry.stat()
                version = _version(status)
                known = self._read.get(entry.name)
                if known is None or known[0] != version:
                    known = version, _loaded(self.path / entry.name)
                found[entry.name] = known
        self._read = found
        return {one.name: one for _, scenarios in found.values() for one in scenarios}

    def _named(self, draft: Draft, there: dict[str, Scenario]) -> Scenario:
        """The scenario under a name of its own."""
        scenario, base = draft.scenario, draft.base
        assert scenario is not None
        if base is not None:
            _, found = self._read.get(f"{base.name}.yaml", (None, ()))
            if found == (base,):
                return replace(scenario, name=base.name)
        taken = {*there, *(name.rpartition(".")[0] for name in self._read)}
        return replace(scenario, name=free_name(scenario.name, taken.__contains__))

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.yaml"

    def _filed(self, scenario: Scenario, draft: Draft) -> Scenario:
        """The scenario with its tapes in files that are not there yet."""
        turns: list[TurnSpec] = []
        for index, (turn, tape) in enumerate(zip(scenario.turns, draft.tapes, strict=True)):
            own = turn
            if tape is not None:
                name = free_name(f"{scenario.name}.{index + 1}", self._has_tape)
                file = f"{name}.jsonl"
                own = replace(turn, recorded=Recorded(file, str(self.path / file)))
            turns.append(own)
        return replace(scenario, turns=tuple(turns))

    def _has_tape(self, name: str) -> bool:
        return (self.path / f"{name}.jsonl").exists()

    # Files

    def _text(self, scenario: Scenario, base: Scenario | None) -> str:
        """The YAML. Where there only are more turns than before, those are added to what is
        there: so it does not take longer each time, and a person's comments stay."""
        if base is None or base.name != scenario.name or not _extends(scenario, base):
            return dump(scenario)
        written = self._file(base.name).read_text(encoding="utf-8")
        added = dump(replace(scenario, turns=scenario.turns[len(base.turns) :]))
        longer = written.rstrip("\n") + "\n" + added[added.index(_TURNS) + len(_TURNS) :]
        if self._texts.get(base.name) == written:
            return longer
        try:
            return longer if loads(longer) == (scenario,) else dump(scenario)
        except ScenarioError:
            return dump(scenario)

    def _remember(self, scenario: Scenario, text: str) -> None:
        """What was written need not be read again."""
        file = self._file(scenario.name)
        self._texts[scenario.name] = text
        self._read[file.name] = _version(file.stat()), (scenario,)

    def _forget(self, base: Scenario | None, scenario: Scenario) -> None:
        """Removes the tapes that only the scenario in its old form had."""
        if base is None or base.name != scenario.name:
            return
        gone = _tapes(base) - _tapes(scenario)
        if gone:
            for other in self._there().values():
                gone -= _tapes(other)
        for name in gone:
            (self.path / name).unlink(missing_ok=True)


def _tapes(scenario: Scenario) -> set[str]:
    return {turn.recorded.file for turn in scenario.turns if turn.recorded is not None}


def _loaded(file: Path) -> tuple[Scenario, ...]:
    """The scenarios of a file; none where it cannot be loaded, which others will tell."""
    try:
        return load([file])
    except ScenarioError:
        return ()


def _clashes(scenario: Scenario, others: Iterable[Scenario]) -> bool:
    """Whether another scenario competes with this one, so that no rule chooses between them."""
    match = scenario.match
    if match is None:
        return False
    key = match_key(match)
    return any(
        other.match is not None
        and other.match.user == match.user  # or it takes long where there are many
        and match_key(other.match) == key
        and scenario.shares_api(other)
        and not differ_later(scenario, other)
        for other in others
    )


def _extends(scenario: Scenario, base: Scenario) -> bool:
    """Whether a scenario is another one with more turns, and nothing else."""
    return not base.restart and base == replace(scenario, turns=scenario.turns[: len(base.turns)])


def _version(status: os.stat_result) -> _Version:
    return status.st_mtime_ns, status.st_ino, status.st_size
