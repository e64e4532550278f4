"""The recording of a test: its folder, how to record it, and the session that it answers
(`@pytest.mark.mockllm_recorded`).

A recording is written to a temporary folder and moved when the test is over. So the folder of the
recording has only complete scenarios and their tapes, and it does not change if a service fails.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import urlsplit

import pytest

from mockllm.core.errors import UsageError
from mockllm.core.text import quantity
from mockllm.play.replay.loading import load
from mockllm.play.tapes.captured import load_head
from mockllm.record.recording.store.ages import Ages, MaxAge, ages, read_max_age
from mockllm.record.recording.store.locks import put
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import is_recorded, precedence
from mockllm.serve.interception.hosts import Hosts
from mockllm.wire.protocols import PROTOCOLS
from mockllm_pytest.answering import Answering
from mockllm_pytest.marks import Allowed, MockllmMark, RecordedMark
from mockllm_pytest.options import CHANGED, flag, ignored_parts, secret_rules, setting, upstreams
from mockllm_pytest.sessions import MockSession

if TYPE_CHECKING:
    from mockllm.core.request import Request
    from mockllm.play.replay.sessions.exchange import Exchange
    from mockllm.record.recording.drafting.draft import Line
    from mockllm.record.recording.drafting.matches import Condition
    from mockllm.serve.interception.ownership import Owner
    from mockllm.serve.server.options import RecordOptions
    from mockllm_pytest.serving import MockService
    from mockllm_pytest.session_report import SessionReport

_FOLDER = "recorded"
_LONGEST = 100
_MOST_LINES = 30
_SUFFIXES = (".yaml", ".yml")
# Names that are different folders on every file system, also on one that ignores case, and that
# need no quotes in a shell.
_PLAIN = re.compile(r"\w+(?:\.\w+)*(?:\[[a-z0-9_]+(?:[.-][a-z0-9_]+)*\])?", re.ASCII)


def recording_folder(node: pytest.Item) -> Path:
    """The folder of a test's recording: `recorded/MODULE/TEST` next to its module.

    For `Class.test[a-b]` it is `Class.test-a-b`. If such a name is not safe, or may collide with
    another test's on some file system, it is made safe and ends in a checksum.
    """
    classes = [parent.name for parent in node.listchain() if isinstance(parent, pytest.Class)]
    return _folder(node.path, ".".join([*classes, node.name]))


def fixture_folder(file: Path, name: str) -> Path:
    """The folder of the recording of a fixture: `recorded/MODULE/fixture-NAME` next to its file."""
    return _folder(file, f"fixture[{name}]")


def _folder(file: Path, name: str) -> Path:
    folder = re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.")
    if len(name) > _LONGEST or not _PLAIN.fullmatch(name):
        folder = f"{folder[:_LONGEST].rstrip('-.')}-{sha256(name.encode()).hexdigest()[:8]}"
    return file.parent / _FOLDER / file.stem / folder


class Recording:
    """The recording of one test.

    Args:
        nodeid: of the test.
        folder: as `recording_folder` has it.
        mark: the marker of the test.

    Raises:
        UsageError: the test is to be recorded and no service is known, or an option is invalid.
        ScenarioError: the recording cannot be loaded; with every problem.
    """

    def __init__(
        self, config: pytest.Config, nodeid: str, folder: Path, mark: RecordedMark
    ) -> None:
        self.folder = folder
        self._nodeid = nodeid
        self._root = config.rootpath
        self.scenarios = _scenarios(self.folder)
        """The scenarios of the recording when the test begins."""
        self._services = upstreams(config, mark.upstream)
        self.options: RecordOptions | None = None
        """How to record; None if the test is not recorded."""
        self._replaced: set[Path] = set()
        self._lines: list[Line] = []
        mode = setting(config, "record", mark.mode, "none")
        if mode in ("changed", "stale"):
            due = self._is_changed(config) if mode == "changed" else self._is_stale(config)
            mode = "all" if due else "none"
        if mode == "none" or (mode == "once" and self.scenarios):
            return
        self._record(config, mark, mode)

    def _is_changed(self, config: pytest.Config) -> bool:
        """Whether the test sent other requests than were recorded when it ran last."""
        cache: pytest.Cache | None = getattr(config, "cache", None)
        if cache is None:
            raise UsageError(
                "--mockllm-record=changed needs pytest's cache, which knows the tests that sent "
                "other requests: leave -p no:cacheprovider out"
            )
        return self._nodeid in cache.get(CHANGED, [])

    def _is_stale(self, config: pytest.Config) -> bool:
        """Whether some of the recording is older than it may be, or of no known date."""
        known = self.find_old(config)
        if known is None:
            raise UsageError(
                "--mockllm-record=stale needs --mockllm-max-age, such as 30d: how old a recording "
                "may be"
            )
        _, found = known
        return bool(found.too_old or found.undated)

    def find_old(self, config: pytest.Config) -> tuple[MaxAge, Ages] | None:
        """The age that tapes may have, with those that are older or have no date; None where they
        may have any."""
        text = setting(config, "max_age", None, "")
        if not text:
            return None
        most = read_max_age(text)
        return most, ages(self.scenarios, most, time.time())

    def _record(self, config: pytest.Config, mark: RecordedMark, mode: str) -> None:
        from mockllm.record.recording.drafting.matches import match_rule
        from mockllm.serve.server.options import RecordOptions

        redacted = secret_rules(config)
        work = Path(mkdtemp(prefix="mockllm-"))
        if mode == "new_episodes" and self.scenarios:
            self._replaced = set(_files(self.folder, ""))
            shutil.copytree(self.folder, work, dirs_exist_ok=True)
            self.scenarios = _scenarios(work)
        else:
            self._replaced = set(_recorded_files(self.folder))
            self.scenarios = tuple(
                scenario for scenario in self.scenarios if not is_recorded(scenario)
            )
        self.options = RecordOptions(
            folder=work,
            upstreams=self._services,
            mode="new_episodes" if mode == "new_episodes" else "add",
            match=match_rule(
                cast("tuple[Condition, ...]", mark.match) or None, ignored_parts(config)
            ),
            rules=redacted,
            trust_env=flag(config, "trust_env"),
            report=self._lines.append,
            option="--mockllm-upstream",
        )

    def local_hosts(self) -> tuple[str, ...]:
        """The services on this machine that the recording is of, or that are named to record it, as
        `localhost:11434`."""
        tapes = (self.folder / file for file in _files(self.folder, ".jsonl"))
        urls = {*map(_url, tapes), *self._services.values()}
        places = {urlsplit(url).netloc.rpartition("@")[2].lower() for url in urls}
        return tuple(sorted(filter(Hosts.names_this_machine, places)))

    def finish(self, *, passed: bool, played: Collection[str]) -> str:
        """Moves the new recording to its folder. If nothing was recorded, the old one stays.

        Args:
            passed: whether the test has passed.
            played: the names of the scenarios of the old recording that were played.

        Returns:
            A summary for the report; "" if there is nothing to report.
        """
        assert self.options is not None
        work = self.options.folder
        count = sum(line.turn is not None for line in self._lines)
        if count:
            self._move(work)
        shutil.rmtree(work, ignore_errors=True)
        return "\n".join(self._summary(count, passed, played))

    def _move(self, work: Path) -> None:
        """Moves files to the folder of the recording.

        Tapes are written before the scenarios that name them, and removed after them, so that a
        test run at the same time never finds a scenario without its tape.
        """
        new = set(_files(work, ""))
        for file in sorted(new, key=_is_scenario):
            target = self.folder / file
            content = (work / file).read_bytes()
            if not target.is_file() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                put(target, content)
        for file in sorted(self._replaced - new, key=_is_scenario, reverse=True):
            (self.folder / file).unlink(missing_ok=True)

    def _summary(self, count: int, passed: bool, played: Collection[str]) -> Iterator[str]:
        assert self.options is not None
        new = self.options.mode == "new_episodes"
        if count:
            try:
                folder = self.folder.relative_to(self._root)
            except ValueError:
                folder = self.folder
            yield f"{quantity(count, 'exchange')} recorded in {folder}"
        elif not new or self._lines:
            yield "nothing was recorded" + "; what was there stays" * bool(self._replaced)
        for line in self._lines[:_MOST_LINES]:
            # A test plays its recordings in order, so this restriction does not apply to it.
            description = line.description.removesuffix("; plays only when it is named")
            yield f"  {line.source}: {description}"
        if len(self._lines) > _MOST_LINES:
            yield f"  ... and {len(self._lines) - _MOST_LINES} more"
        used = {*played, *(line.scenario for line in self._lines)}
        unused = [
            scenario.name
            for scenario in self.scenarios
            if is_recorded(scenario) and scenario.name not in used
        ]
        if unused:
            yield f"  no longer requested: {', '.join(unused)}"
        if (count and not passed) or unused:
            yield from () if passed else ("  the test did not pass while it was recorded",)
            yield f"  to record it all again: {self.command('all')}"

    def failure(self) -> str:
        """Why a replay of what was recorded would fail; "" if every exchange is found again by its
        own request."""
        problems = [
            f"  {line.source}: {line.not_found or line.description}"
            for line in self._lines
            if line.is_missing
        ]
        if not problems:
            return ""
        count = quantity(len(problems), "exchange")
        return "\n".join([f"A replay of this test will not answer {count}:", *problems])

    def hints(self, apis: Iterable[str | None]) -> tuple[str, ...]:
        """The commands that record what is missing.

        Args:
            apis: the APIs of the requests that nothing answered, None for a request that asks no
                model; empty if only turns were not requested.
        """
        unanswered = list(apis)
        known = [api for api in unanswered if api is not None]
        if not self.scenarios:
            return (f"Nothing is recorded. To record it: {self.command('once', known)}",)
        record_all = f"To record it all again: {self.command('all', known)}"
        if not unanswered:
            return (record_all,)
        record_new = f"To record what is new: {self.command('new_episodes', known)}"
        return record_new, record_all

    def command(self, mode: str, apis: Iterable[str] = ()) -> str:
        """The command that records the test.

        Args:
            apis: those that need a service; the command names the public one of each that has none.
                Other requests go to the host that they are for.
        """
        missing = [_upstream(api) for api in apis if api not in self._services]
        options = "".join(f" --mockllm-upstream {api}" for api in dict.fromkeys(missing))
        return f'pytest "{self._nodeid}" --mockllm-record={mode}{options}'


def _url(tape: Path) -> str:
    with tape.open("rb") as file:
        return load_head(file.readline(), str(tape))[0].exchange.url


def _upstream(api: str) -> str:
    """The public service of an API, as a value of `--mockllm-upstream`."""
    client = PROTOCOLS[api].client
    return f"{client.group}={client.service}"


def _scenarios(folder: Path) -> tuple[Scenario, ...]:
    """The scenarios in a folder, in their order of precedence: recorded ones as recorded."""
    if not any(_files(folder)):
        return ()
    return tuple(sorted(load([folder]), key=precedence))


def _is_scenario(file: Path) -> bool:
    return file.suffix in _SUFFIXES


def _files(folder: Path, *suffixes: str) -> Iterator[Path]:
    """The relative paths of the files below a folder that are not hidden.

    Args:
        suffixes: the ends of their names; default: those of scenario files.
    """
    for file in folder.rglob("*"):
        path = file.relative_to(folder)
        hidden = any(part.startswith(".") for part in path.parts)
        if not hidden and file.is_file() and file.name.endswith(suffixes or _SUFFIXES):
            yield path


def _recorded_files(folder: Path) -> Iterator[Path]:
    """The scenario files of a folder that have a recorded turn, and their tapes."""
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


# The session


class RecordedSession(MockSession):
    """A session that only a recording answers, or that records.

    While it records, the client keeps the credentials of its environment, and requests that were
    forwarded are not judged.
    """

    def __init__(
        self,
        service: MockService,
        nodeid: str,
        folder: Path,
        mark: MockllmMark,
        speed: float,
        recording: Recording,
    ) -> None:
        self._recording = recording
        self._options = recording.options
        self.intercepts, self.has_proxy = ("*", *recording.local_hosts()), True
        if mark.names or mark.scenarios:
            self._refuse()
        super().__init__(service, nodeid, folder, mark, speed)
        self._serve(Answering(self.scenarios), record=self._options)

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios of the recording when the test began."""
        return self._recording.scenarios

    @contextmanager
    def redirect(self, owner: Owner) -> Iterator[None]:
        """As of every session; and what opens a cassette of VCR gets its answers here, too."""
        with super().redirect(owner), without_vcr():
            yield

    @property
    def _credentials(self) -> Mapping[str, str]:
        return {} if self._options is None else os.environ

    def _assign(self) -> None:
        self._serve(Answering(self.scenarios))

    def _advice(self, used: str | None, request: Request, headers: Mapping[str, str]) -> list[str]:
        return list(self._recording.hints([request.api]))

    def _add(self, scenarios: Iterable[Scenario], match: bool = True) -> NoReturn:
        self._refuse()

    def reply(self, *parts: Any, **keys: Any) -> NoReturn:
        """Refused: the recording answers."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(
            "a test that is marked mockllm_recorded is answered by its recording alone; take the "
            "marker away, or the scenarios and replies"
        )

    def verdict(self, what: Allowed | None = None) -> SessionReport:
        """The verdict on the requests so far. While recording, unplayed turns and violations are
        allowed, since only a replay can show them; and where nothing is recorded, no request need
        come: a test without one records nothing.

        Args:
            what: the mistakes that are allowed; default: those that the marker allows.
        """
        what = what or self._mark.allowed
        if self._options is not None:
            what = replace(what, unplayed=True, violations=True, no_requests=True)
            return super().verdict(what)
        what = replace(what, no_requests=what.no_requests or not self.scenarios)
        verdict = super().verdict(what)
        return verdict if verdict.good else replace(verdict, hints=self._record_hints(self.journal))

    def format_exchanges(self) -> str:
        """The exchanges so far as text, and how to record those that nothing answered."""
        journal = self.journal
        hints: tuple[str, ...] = ()
        if self._options is None and _unanswered_entries(journal):
            hints = self._record_hints(journal)
        return "\n".join([super().format_exchanges(), *hints])

    def _record_hints(self, journal: Iterable[Exchange]) -> tuple[str, ...]:
        return self._recording.hints(
            exchange.played.api for exchange in _unanswered_entries(journal)
        )

    def close(self) -> None:
        """Waits until the recording is complete, and removes the session from the server."""
        server = self._thread.server
        session = server.sessions.find(self.session)
        played = tuple(session.played) if session is not None else ()
        if self._options is not None:
            self._thread.wait(server.end_recording, self.session)
            self.recording_summary = self._recording.finish(passed=self.passed, played=played)
            self.recording_failure = self._recording.failure()
        self._end()


@contextmanager
def without_vcr() -> Iterator[None]:
    """While it lasts, vcrpy opens cassettes but answers nothing, so that `use_cassette` may stay in
    the code of a converted test."""
    if find_spec("vcr") is None:
        yield
        return
    from vcr.patch import CassettePatcherBuilder  # type: ignore[import-untyped]

    build = CassettePatcherBuilder.build
    CassettePatcherBuilder.build = lambda self: ()
    try:
        yield
    finally:
        CassettePatcherBuilder.build = build


def _unanswered_entries(journal: Iterable[Exchange]) -> list[Exchange]:
    return [
        entry for entry in journal if entry.outcome in ("unmatched", "invalid", "unknown route")
    ]
