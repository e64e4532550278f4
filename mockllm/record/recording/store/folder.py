"""A folder of recorded scenarios: files are written whole or not at all, and never over another
recorder's. The only place in `recording` that writes.

A scenario is `NAME.yaml`; the exact bytes of its turns lie beside it, `NAME.1.jsonl` and so on, and
so do bodies and long values, as `NAME.1.png`. Each file is written under a hidden name, brought to
the disk and then renamed, the YAML after the files that it names: whoever reads the folder, at any
moment, finds scenarios that are whole.
Recorders take turns by a lock that the system frees when its holder dies.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from mockllm.core.errors import Problem, ScenarioError
from mockllm.play.replay.loading import load, loads
from mockllm.play.tapes.captured import Tape, load_tape
from mockllm.play.tapes.socket_session import SocketSession
from mockllm.play.tapes.socket_tape import load_session
from mockllm.record.recording.drafting.draft import (
    Draft,
    Line,
    ScenarioFiles,
    file_stem,
    files_of,
    free_name,
)
from mockllm.record.recording.store.locks import alone, is_unfinished, put_all
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Recorded, Scenario
from mockllm.scenario.reading.files import MAX_FILE

_TURNS = "\nturns:\n"
_MOST_TRUSTED = 1.0
"""Seconds after which the folder is looked at again, even if it seems unchanged: to look at ten
thousand files takes 50 ms, for each group."""

_Version = tuple[int, int, int]


@dataclass(slots=True)
class _Group:
    """The files that are to be written together.

    Args:
        beside: tapes, bodies and long values by file name.
        texts: the YAML by file name.
        gone: files that no scenario needs any more, unless another one shares them.
    """

    beside: dict[str, bytes] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)


class Folder:
    """Recorded scenarios and their tapes.

    Args:
        path: made where it is missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._holder = os.urandom(16).hex().encode()
        self._group: _Group | None = None
        self._looked_at = -_MOST_TRUSTED
        self._changed = 0
        self._read: dict[str, tuple[_Version | None, tuple[Scenario, ...]]] = {}
        """The scenarios of each file; no version for one that is still to be written."""
        self._stems: set[str] = set()
        self._texts: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._of_drafts: dict[str, str] = {}

    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios that are there now; nothing where nothing was recorded yet.

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
        try:
            return load_tape(self._content(recorded.file), str(self.path / recorded.file))
        except (OSError, ScenarioError):
            return None

    def session(self, recorded: Recorded) -> SocketSession | None:
        """A session of the folder; None where its tape is not there, or is none of a WebSocket."""
        try:
            return load_session(self._content(recorded.file), str(self.path / recorded.file))
        except (OSError, ScenarioError):
            return None

    @contextmanager
    def group(self) -> Iterator[None]:
        """Writes together what is written in the block, which costs less: all is on the disk after
        it. No other recorder can write in between.

        Raises:
            OSError: some of it cannot be written, or no scenario is, or all are.
        """
        if self._group is not None:
            yield
            return
        with alone(self.path, self._holder) as was_last:
            self._look(unless_changed=was_last)
            self._group = _Group()
            done = False
            try:
                yield
                self._put(self._group)
                done = True
            finally:
                self._group = None
                if not done:  # what was to be written is not there
                    self._looked_at = -_MOST_TRUSTED
                    self._texts = {}

    def write(self, draft: Draft) -> Draft:
        """Writes a draft; it is on the disk when this returns, or at the end of the `group`.

        Returns:
            what was written, with the names of its files. It has another name where its own is
            taken, or where another recorder has changed the scenario that it takes the place of;
            its report has that name. One that could not be loaded again is not written, and its
            report says why: a file that no one can load would keep all beside it from being loaded.
        """
        if draft.scenario is None:
            return draft
        with self.group():
            try:
                return self._write(draft)
            except ScenarioError as error:
                if not draft.report:
                    raise
                return _unwritten(draft, error)

    def _write(self, draft: Draft) -> Draft:
        assert self._group is not None
        assert draft.scenario is not None
        base = draft.base if self._has(draft.base) else None
        scenario, stem = self._with_free_name(draft, base)
        beside = ScenarioFiles(self._path_of, stem, draft, self._of_drafts, self._is_there)
        scenario = beside.scenario(scenario)
        text = self._text(scenario, base, beside.contents)
        file = f"{stem}.yaml" if base is None else self._files[base.name]
        content = text.encode()
        if len(content) > MAX_FILE:
            problem = "the conversation is too long for one file"
            raise ScenarioError([Problem(file, 1, 1, "", problem)])
        self._of_drafts |= beside.of_drafts
        self._group.beside |= beside.contents
        self._group.texts[file] = content
        if base is not None:  # tapes that only the scenario in its old form had
            self._group.gone |= _tapes(base) - _tapes(scenario)
        self._remember(file, (scenario,), None)
        self._texts[scenario.name] = text
        names = beside.of_drafts
        recorded = {names[name]: turn for name, turn in draft.recorded.items() if name in names}
        report = tuple(
            _rename_line(line, draft.scenario.name, scenario.name) for line in draft.report
        )
        return replace(draft, scenario=scenario, recorded=recorded, report=report)

    def _put(self, group: _Group) -> None:
        gone = group.gone
        for _, scenarios in self._read.values() if gone else ():
            for scenario in scenarios:
                gone = gone - _tapes(scenario)
        beside = {name: data for name, data in group.beside.items() if name not in gone}
        put_all(self.path, beside, group.texts)
        for name in gone - group.beside.keys():
            (self.path / name).unlink(missing_ok=True)
        for name in group.texts:
            self._read[name] = _version((self.path / name).stat()), self._read[name][1]
        self._changed = self._last_change()

    # Who else is there

    def _last_change(self) -> int:
        return self.path.stat().st_mtime_ns

    def _look(self, *, unless_changed: bool) -> None:
        """Finds the scenarios in the folder; only files that have changed are read again. What
        a writer that was killed has left goes, for who looks is alone to write.

        Args:
            unless_changed: not if nothing seems to have changed since the last time. The time of a
                folder is too coarse to notice another recorder.
        """
        now, changed = time.monotonic(), self._last_change()
        if unless_changed and changed == self._changed and now - self._looked_at < _MOST_TRUSTED:
            return
        before, self._read, self._files, self._stems = self._read, {}, {}, set()
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.startswith(".") or not entry.name.endswith((".yaml", ".yml")):
                    if is_unfinished(entry.name):
                        (self.path / entry.name).unlink(missing_ok=True)
                    continue
                version = _version(entry.stat())
                known, scenarios = before.get(entry.name, (None, ()))
                if known != version:
                    for scenario in scenarios:  # a person may have added a comment
                        self._texts.pop(scenario.name, None)
                    scenarios = _load_scenarios(self.path / entry.name)
                self._remember(entry.name, scenarios, version)
        self._looked_at, self._changed = now, changed

    def _remember(
        self, file: str, scenarios: tuple[Scenario, ...], version: _Version | None
    ) -> None:
        self._read[file] = version, scenarios
        self._stems.add(file.rpartition(".")[0].lower())
        self._files |= {scenario.name: file for scenario in scenarios}

    def _content(self, name: str) -> bytes:
        if self._group is not None:
            for files in (self._group.beside, self._group.texts):
                if name in files:
                    return files[name]
        return (self.path / name).read_bytes()

    def _with_free_name(self, draft: Draft, base: Scenario | None) -> tuple[Scenario, str]:
        """The scenario under a name of its own, or under that of the one which it replaces, and
        what the names of its files begin with."""
        scenario = draft.scenario
        assert scenario is not None
        if base is not None:
            stem = self._files[base.name].rpartition(".")[0]
            return replace(scenario, name=base.name), stem

        def is_taken(name: str) -> bool:
            # The file gets the name of the scenario, unless the draft has another for it.
            return name in self._files or (not draft.stem and name.lower() in self._stems)

        name = free_name(scenario.name, is_taken)
        stem = free_name(file_stem(draft.stem or name), self._is_stem)
        return replace(scenario, name=name), stem

    def _is_stem(self, stem: str) -> bool:
        """Whether the files of a scenario begin with it, on a system that ignores case, too."""
        return stem.lower() in self._stems or (self.path / f"{stem}.yaml").exists()

    def _has(self, scenario: Scenario | None) -> bool:
        """Whether a scenario is in a file of its own, as it was read."""
        if scenario is None:
            return False
        file = self._files.get(scenario.name, "")
        version, found = self._read.get(file, (None, ()))
        if version is not None and version != (now := self._version_of(file)):
            # A person changed it since the folder was looked at: its text may have a comment now.
            self._texts.pop(scenario.name, None)
            found = () if now is None else _load_scenarios(self.path / file)
            self._remember(file, found, now or (0, 0, 0))
        return found == (scenario,)

    def _version_of(self, file: str) -> _Version | None:
        try:
            return _version((self.path / file).stat())
        except FileNotFoundError:
            return None

    # Files

    def _text(self, scenario: Scenario, base: Scenario | None, files: Mapping[str, bytes]) -> str:
        """The YAML. Where there only are more turns than before, those are added to what is
        there: so it does not take longer each time, and a person's comments stay.

        Args:
            files: that will be written before.

        Raises:
            ScenarioError: it cannot be loaded.
        """

        def beside(name: str) -> bytes:
            return files[name] if name in files else self._content(name)

        if base is None or not _extends(scenario, base):
            text = dump(scenario)
            loads(text, read_file=beside)
            return text
        known = self._texts.get(base.name)
        written = known or self._content(self._files[base.name]).decode()
        added = dump(replace(scenario, turns=scenario.turns[len(base.turns) :]))
        longer = written.rstrip("\n") + "\n" + added[added.index(_TURNS) + len(_TURNS) :]
        if known is not None:
            loads(added, read_file=beside)
            return longer
        try:
            loaded = loads(longer, read_file=beside)
            return longer if loaded == (scenario,) else dump(scenario)
        except ScenarioError:
            return dump(scenario)

    def _path_of(self, name: str) -> str:
        return str(self.path / name)

    def _is_there(self, name: str) -> bool:
        if self._group is not None and name in self._group.beside:
            return True
        return (self.path / name).exists()


def _unwritten(draft: Draft, error: ScenarioError) -> Draft:
    why = f"it cannot be written: {error.problems[0].message}"
    report = tuple(Line(line.source, "skipped", why, lost=True) for line in draft.report)
    return Draft(None, report=report)


def _rename_line(line: Line, old: str, name: str) -> Line:
    description = line.description.replace(f" of {old}", f" of {name}", 1)
    return replace(line, scenario=name, description=description)


def _tapes(scenario: Scenario) -> set[str]:
    """The files that only a scenario needs: its tapes, bodies and long values."""
    tapes = {recording.file for turn in scenario.turns for recording in turn.recordings()}
    answers = (turn.answer for turn in scenario.turns if turn.answer is not None)
    long = {file for turn in scenario.turns for file in files_of(turn)}
    return tapes | long | {answer.value for answer in answers if answer.kind == "file"}


def _load_scenarios(file: Path) -> tuple[Scenario, ...]:
    """The scenarios of a file; none where it cannot be loaded, which others will tell."""
    try:
        return load([file])
    except ScenarioError:
        return ()


def _extends(scenario: Scenario, base: Scenario) -> bool:
    """Whether a scenario is another one with more turns, and nothing else, and its text ends with
    its turns."""
    if base.restart or base.any_ids:  # `then` and `ids` stand behind the turns
        return False
    return base == replace(scenario, turns=scenario.turns[: len(base.turns)])


def _version(status: os.stat_result) -> _Version:
    return status.st_mtime_ns, status.st_ino, status.st_size
