"""Where the recording of a test is, and how it gets there.

A recording is made elsewhere and takes its place when the test is over: in the folder there is
never anything but scenarios and their tapes, and a service that does not answer costs nothing.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, cast

import pytest

from mockllm.errors import UsageError
from mockllm.protocols import PROTOCOLS
from mockllm.recording.store.locks import put
from mockllm.replay.loading import load
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import is_recorded, precedence
from mockllm_pytest.marks import RecordedMark
from mockllm_pytest.options import chosen, flag, upstreams

if TYPE_CHECKING:
    from mockllm.recording.drafting.drafts import Condition, Line
    from mockllm.server.options import RecordOptions

__all__ = ["Recording", "place"]

_FOLDER = "recorded"
_LONGEST = 100
_MOST_SHOWN = 30
_ENDS = (".yaml", ".yml")
# Names that are different folders on every file system, and need no quotes in a shell.
_PLAIN = re.compile(r"\w+(?:\.\w+)*(?:\[[a-z0-9_]+(?:[.-][a-z0-9_]+)*\])?", re.ASCII)


def place(node: pytest.Item) -> Path:
    """The folder of a test's recording: `recorded/MODULE/TEST` beside its module.

    `Class.test[a-b]` is `Class.test-a-b`. Where that would not be safe, or might be another
    test's on some file system, the name is made safe and ends in a checksum.
    """
    classes = [one.name for one in node.listchain() if isinstance(one, pytest.Class)]
    name = ".".join([*classes, node.name])
    folder = re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.")
    if len(name) > _LONGEST or not _PLAIN.fullmatch(name):
        folder = f"{folder[:_LONGEST].rstrip('-.')}-{sha256(name.encode()).hexdigest()[:8]}"
    return node.path.parent / _FOLDER / node.path.stem / folder


class Recording:
    """The recording of one test.

    Args:
        mark: what the test says of it.

    Raises:
        UsageError: it is to be recorded and no service is known, or an option is wrong.
        ScenarioError: what is there cannot be loaded; with every problem.
    """

    def __init__(self, config: pytest.Config, node: pytest.Item, mark: RecordedMark) -> None:
        self.folder = place(node)
        self._nodeid = node.nodeid
        self._root = config.rootpath
        self.scenarios = _scenarios(self.folder)
        """What is there when the test begins."""
        self._services = upstreams(config, mark.upstream)
        self.options: RecordOptions | None = None
        """What is recorded; None where nothing is."""
        self._taken: set[Path] = set()
        self._lines: list[Line] = []
        mode = chosen(config, "record", mark.mode, "none")
        if mode == "none" or (mode == "once" and self.scenarios):
            return
        self._record(config, mark, mode)

    def _record(self, config: pytest.Config, mark: RecordedMark, mode: str) -> None:
        from mockllm.recording.drafting.drafts import MatchRule
        from mockllm.redaction.redact import rules_from
        from mockllm.server.options import RecordOptions

        if not self._services:
            raise UsageError(
                f"--mockllm-record={mode} needs a service to record {self._nodeid} from: "
                "--mockllm-upstream https://api.openai.com, or --mockllm-upstream "
                "anthropic=https://api.anthropic.com, or MOCKLLM_UPSTREAM_OPENAI in the environment"
            )
        rules = config.rootpath / "mockllm.toml"
        redacted = rules_from(rules if rules.is_file() else None)
        work = Path(mkdtemp(prefix="mockllm-"))
        if mode == "new_episodes" and self.scenarios:
            self._taken = set(_files(self.folder, ""))
            shutil.copytree(self.folder, work, dirs_exist_ok=True)
            self.scenarios = _scenarios(work)
        else:
            self._taken = set(_recorded_files(self.folder))
            self.scenarios = tuple(one for one in self.scenarios if not is_recorded(one))
        self.options = RecordOptions(
            folder=work,
            upstreams=self._services,
            mode="new_episodes" if mode == "new_episodes" else "add",
            match=MatchRule(cast("tuple[Condition, ...]", mark.match)) if mark.match else None,
            rules=redacted,
            trust_env=flag(config, "trust_env"),
            report=self._lines.append,
            option="--mockllm-upstream",
        )

    def finish(self, *, passed: bool, played: Collection[str]) -> str:
        """Puts what was recorded in its place; when nothing was, what is there stays.

        Args:
            passed: whether the test has passed.
            played: the names of the scenarios that were played from what was there.

        Returns:
            what came of it, in words; "" where nothing did.
        """
        assert self.options is not None
        work = self.options.folder
        count = sum(line.turn is not None for line in self._lines)
        if count:
            self._put(work)
        shutil.rmtree(work, ignore_errors=True)
        return "\n".join(self._told(count, passed, played))

    def _put(self, work: Path) -> None:
        """Tapes come before the scenarios that name them, and go after them."""
        new = set(_files(work, ""))
        for file in sorted(new, key=_is_scenario):
            target = self.folder / file
            content = (work / file).read_bytes()
            if not target.is_file() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                put(target, content)
        for file in sorted(self._taken - new, key=_is_scenario, reverse=True):
            (self.folder / file).unlink(missing_ok=True)

    def _told(self, count: int, passed: bool, played: Collection[str]) -> Iterator[str]:
        assert self.options is not None
        new = self.options.mode == "new_episodes"
        if count:
            try:
                shown = self.folder.relative_to(self._root)
            except ValueError:
                shown = self.folder
            yield f"{count} exchange{'s' * (count > 1)} recorded in {shown}"
        elif not new or self._lines:
            yield "nothing was recorded" + "; what was there stays" * bool(self._taken)
        for line in self._lines[:_MOST_SHOWN]:
            # A test plays recordings in order, so each has its turn.
            description = line.description.removesuffix("; plays only when it is named")
            yield f"  {line.source}: {description}"
        if len(self._lines) > _MOST_SHOWN:
            yield f"  ... and {len(self._lines) - _MOST_SHOWN} more"
        asked = {*played, *(line.scenario for line in self._lines)}
        left = [one.name for one in self.scenarios if is_recorded(one) and one.name not in asked]
        if left:
            yield f"  not asked for any more: {', '.join(left)}"
        if (count and not passed) or left:
            yield from () if passed else ("  the test did not pass while it was recorded",)
            yield f"  to record it all again: {self.command('all')}"

    def again(self, apis: Iterable[str | None]) -> tuple[str, ...]:
        """How to record what is missing.

        Args:
            apis: of the requests that nothing answers; none where it is turns that were not
                asked for.
        """
        asked = [api for api in apis if api is not None]
        if not self.scenarios:
            return (f"Nothing is recorded. To record it: {self.command('once', asked)}",)
        again = f"To record it all again: {self.command('all', asked)}"
        return (
            (f"To record what is new: {self.command('new_episodes', asked)}", again)
            if asked
            else (again,)
        )

    def command(self, mode: str, apis: Iterable[str] = ()) -> str:
        """The command that records the test."""
        missing = [_service(api) for api in apis if api not in self._services]
        if not missing and not self._services:
            missing = [_service(next(iter(PROTOCOLS)))]
        given = "".join(f" --mockllm-upstream {one}" for one in dict.fromkeys(missing))
        return f'pytest "{self._nodeid}" --mockllm-record={mode}{given}'


def _service(api: str) -> str:
    """The service of an API as `--mockllm-upstream` takes it."""
    client = PROTOCOLS[api].client
    return f"{client.group}={client.service}"


def _scenarios(folder: Path) -> tuple[Scenario, ...]:
    """What is in a folder, in the order in which it was recorded where that matters."""
    if not any(_files(folder)):
        return ()
    return tuple(sorted(load([folder]), key=precedence))


def _is_scenario(file: Path) -> bool:
    return file.suffix in _ENDS


def _files(folder: Path, *ends: str) -> Iterator[Path]:
    """The files below a folder that end so, and are not hidden, by their paths from there."""
    for file in folder.rglob("*"):
        path = file.relative_to(folder)
        hidden = any(part.startswith(".") for part in path.parts)
        if not hidden and file.is_file() and file.name.endswith(ends or _ENDS):
            yield path


def _recorded_files(folder: Path) -> Iterator[Path]:
    """The scenario files of a folder in which anything is recorded, and their tapes."""
    for file in _files(folder):
        recorded = [
            turn.recorded.file
            for scenario in load([folder / file])
            for turn in scenario.turns
            if turn.recorded is not None
        ]
        if recorded:
            yield file
        yield from (file.parent / name for name in recorded)
