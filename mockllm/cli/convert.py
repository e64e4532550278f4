"""`mockllm convert-tests`: tests of VCR to recorded tests of mockllm."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from mockllm.cli.options.config import file_key
from mockllm.cli.options.parameters import EXISTING
from mockllm.cli.options.recording import redaction_rules
from mockllm.cli.scrub import files_below, rewrite
from mockllm.cli.terminal.output import echo
from mockllm.cli.terminal.progress import progress_line
from mockllm.core.errors import UsageError
from mockllm.core.text import quantity

if TYPE_CHECKING:
    from mockllm.record.importers.batch import ImportResult
    from mockllm.record.importers.reading import Entry

_SUFFIXES = ("", ".yaml", ".yml", ".json")
_NOT_SEARCHED = ("node_modules", "site-packages", "__pycache__")
_LAST_LINES = 15
_LONGEST_REASON = 300
_HIDDEN = (
    "a filter of VCR changes its requests; the recording has them as they are sent, but for what "
    "[redact] in mockllm.toml and the rules of mockllm find"
)


@dataclass(frozen=True, slots=True)
class _Test:
    """A test, as a run of it shows it.

    Args:
        test: its name in pytest, `tests/test_a.py::test_it`.
        function: its name with its classes, without parameters.
        marked: whether it is marked `vcr`.
        recorded: whether it is marked `mockllm_recorded`.
        cassettes: of its marks, names or paths.
        folder: where the plugin looks for its recording.
        outcome: of the run, `passed`, `failed` or `skipped`; "" if it did not run.
        reason: why it did not pass.
        opened: the cassettes that it opened.
        played: the answers that it got, as cassettes have them.
        refused: how many requests VCR refused, as no cassette has them.
    """

    test: str
    module: Path
    function: str
    marked: bool
    recorded: bool
    cassettes: list[str]
    folder: Path
    outcome: str
    reason: str
    opened: list[str]
    played: list[dict[str, Any]]
    refused: int

    @property
    def uses_vcr(self) -> bool:
        return self.marked or bool(self.opened)

    @property
    def hides(self) -> bool:
        """Whether VCR writes something else than is sent, in URL or body."""
        return any(played["hidden"] for played in self.played)


@click.command("convert-tests")
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="PATH...")
@click.option("--write", is_flag=True, help="Change the files; otherwise only show the changes.")
@click.option("--run", is_flag=True, help="With --write: run the converted tests at the end.")
@file_key(
    "--cassettes",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder of the cassettes of tests that are skipped, if it is not `cassettes` beside "
    "each test file.",
)
@click.pass_context
def convert_tests(
    context: click.Context, paths: tuple[Path, ...], write: bool, run: bool, cassettes: Path | None
) -> None:
    """Convert tests of vcrpy, pytest-recording and pytest-vcr.

    The command runs the tests of each PATH with VCR, which sends and records nothing then, and
    writes to `recorded` which answers each test gets for which requests. `@pytest.mark.vcr` becomes
    `@pytest.mark.mockllm_recorded`, and tests that open a cassette otherwise get this mark. Run the
    command where you run your tests. Without --write nothing changes: the command prints a diff,
    and what each test would become. The cassettes stay. A test that does not pass with VCR gets no
    recording; where none passes, nothing changes. The exit code is 1 if there is such a test; with
    --run also if a test that passed with VCR does not pass any more, otherwise if something could
    not be converted.

    \b
    Examples:
      mockllm convert-tests tests
      mockllm convert-tests tests --write --run
    """
    if run and not write:
        raise UsageError("--run runs the converted tests, so it needs --write")
    if sys.stderr.isatty():
        echo("mockllm: running the tests with VCR; that takes as long as they do", err=True)
    tests = _run(paths)
    using = [test for test in tests if test.uses_vcr]
    failed = [test for test in using if test.outcome == "failed"]
    _report_failed(failed, using)
    if failed and not any(test.outcome == "passed" for test in using):
        context.exit(1)
    problems, remarks = _convert_sources(paths, using, write=write)
    remarks += (f"{test.test}: {_HIDDEN}" for test in using if test.hides)
    with progress_line() as progress:
        for done, test in enumerate(using):
            progress("tests converted", done, len(using))
            problems += _convert_cassettes(test, cassettes, write=write)
    for title, lines in (("to know", remarks), ("not converted", problems)):
        if lines:
            echo("\n  ".join([f"\n{title}:", *lines]))
    if not write:
        echo("\nnothing was changed; with --write it is")
    lost = _compare(tests, _run(paths)) if run else problems
    if write and using and not (lost or failed):
        echo(f"\nnext: pytest {shlex.join(map(str, paths))}; the cassettes can be deleted then")
    context.exit(1 if lost or failed else 0)


# Tests


def _run(paths: tuple[Path, ...]) -> list[_Test]:
    """The tests, as they run with VCR or, when they are converted, without it."""
    if find_spec("pytest") is None:
        raise UsageError("pytest is not installed here; run this where your tests run")
    with TemporaryDirectory() as folder:
        # One argument: pytest looks for its ini file above each that is a path.
        plugin = ("-p", "mockllm_pytest.cassettes", f"--mockllm-cassettes-of={folder}")
        command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin)
        done = subprocess.run(  # noqa: S603 - pytest, on the user's tests
            (*command, *map(str, paths)),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        reports = [json.loads(file.read_text("utf-8")) for file in Path(folder).iterdir()]
        # 1: tests failed. 5: no test was collected.
        if done.returncode not in (0, 1, 5) or not reports:
            last = (done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:]
            raise UsageError("\n".join(["pytest cannot run the tests:", *last]))
    tests: dict[str, dict[str, Any]] = {}
    for test in (test for report in reports for test in report):
        if test["outcome"] or test["test"] not in tests:
            paths_of = {name: Path(os.path.relpath(test[name])) for name in ("module", "folder")}
            tests[test["test"]] = {**test, **paths_of}
    return [_Test(**test) for test in tests.values()]


def _report_failed(failed: list[_Test], using: list[_Test]) -> None:
    """Says which tests do not pass with VCR, why, and what helps."""
    from mockllm.record.importers.vcr import find_remedy

    by_reason: dict[str, list[_Test]] = {}
    for test in failed:
        by_reason.setdefault(_reason(test), []).append(test)
    if failed:
        echo(f"Not passing with VCR: {len(failed)} of {quantity(len(using), 'test')}")
    for reason, tests in by_reason.items():
        more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
        echo(f"  {tests[0].test}{more}: {reason}")
    if remedy := find_remedy(by_reason):
        echo(remedy)
    elif failed:
        echo("Make them pass with VCR, or record them anew: pytest TEST --mockllm-record=all")


def _compare(before: list[_Test], after: list[_Test]) -> list[_Test]:
    """Reports what became of the tests that used VCR; returns those that passed only with it."""
    now = {test.test: test for test in after}
    using = [test for test in before if test.uses_vcr or test.recorded]
    passed = [test for test in using if test.outcome == "passed"]
    lost = [test for test in passed if test.test not in now or now[test.test].outcome != "passed"]
    echo(f"\n{len(passed) - len(lost)} of {quantity(len(passed), 'test')} that passed pass")
    for test in lost:
        echo(f"  {test.test}: {_reason(now.get(test.test))}")
    others = [test for test in using if test.outcome not in ("passed", "skipped")]
    if others:
        echo(f"{quantity(len(others), 'test')} did not pass before:")
    for test in others:
        echo(f"  {test.test}: {_reason(test)}")
    return lost


def _reason(test: _Test | None) -> str:
    if test is None or not test.outcome:
        return "it did not run"
    lines = test.reason.strip().splitlines() or [test.outcome]
    return " ".join(map(str.strip, lines))[:_LONGEST_REASON]


# Marks


def _convert_sources(
    paths: Iterable[Path], tests: Iterable[_Test], *, write: bool
) -> tuple[list[str], list[str]]:
    """Converts the marks; returns what stays as it is, and what is to know."""
    from mockllm.record.importers.rewrite_marks import RECORDED, UNMATCHED, convert

    problems: list[str] = []
    remarks: list[str] = []
    marks: dict[Path, dict[str, list[str]]] = {}
    for test in tests:
        new = [RECORDED] if not (test.marked or test.recorded) else []
        new += [UNMATCHED] if test.outcome == "passed" and test.refused else []
        own = marks.setdefault(test.module.resolve(), {}).setdefault(test.function, [])
        own += [mark for mark in new if mark not in own]
    for file in files_below(paths, (".py",), _NOT_SEARCHED):
        if file.suffix != ".py":
            continue
        data = file.read_bytes()
        try:
            source = data.decode()
            conversion = convert(source, marks.get(file.resolve(), {}))
        except (UnicodeDecodeError, SyntaxError, ValueError) as error:
            if b"vcr" in data:
                problems.append(f"{file}: cannot be read as Python in UTF-8: {error}")
            continue
        by_text: dict[tuple[bool, str], list[str]] = {}
        for note in conversion.notes:
            by_text.setdefault((note.stays, note.text), []).append(str(note.line))
        for (stays, text), numbers in by_text.items():
            (problems if stays else remarks).append(f"{file}:{', '.join(numbers)}: {text}")
        if conversion.source == source:
            continue
        if write:
            rewrite(file, conversion.source.encode())
            echo(f"converted {file}")
        else:
            echo(_diff(file, source, conversion.source), nl=False)
    return problems, remarks


def _diff(file: Path, before: str, after: str) -> str:
    lines = unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), str(file), str(file)
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


# Cassettes


def _convert_cassettes(test: _Test, cassettes: Path | None, *, write: bool) -> Iterator[str]:
    """Writes the recording of a test; returns what was not written."""
    base = cassettes or test.module.parent / "cassettes"
    played = _played_entries(test) if test.outcome == "passed" else {}
    if test.outcome == "failed":
        yield f"{test.test}: it does not pass with VCR"
        return
    files = list(played) if test.outcome == "passed" else _cassettes(test, base)
    if not files:
        return
    if test.folder.is_dir() and any(test.folder.iterdir()):
        echo(f"{test.test}: {test.folder} is there already and stays as it is")
        return
    with TemporaryDirectory() as work:
        results = _import_files(files, played, Path(work))
        if write:
            _move(Path(work), test.folder)
    count = sum(result.line.outcome != "skipped" for result in results)
    sources = ", ".join(map(str, files))
    echo(f"{test.test}: {sources} -> {test.folder} ({count} of {len(results)} exchanges)")
    yield from (
        str(result)
        for result in results
        if result.line.outcome == "skipped" or result.line.not_found
    )


def _played_entries(test: _Test) -> dict[Path, list[Entry]]:
    """The exchanges of a test, by their cassettes. An answer that it got twice is there twice."""
    from mockllm.record.importers.vcr import exchange

    entries: dict[Path, list[Entry]] = {}
    times = Counter[tuple[Path, int]]()
    for played in test.played:
        path, number = Path(os.path.relpath(played["cassette"])), played["number"]
        times[path, number] += 1
        again = f" (time {times[path, number]})" if times[path, number] > 1 else ""
        entry = exchange(played, f"{path}{again}#{number}")
        entries.setdefault(path, []).append(entry)
    return entries


def _cassettes(test: _Test, base: Path) -> list[Path]:
    """The cassettes of a test that exist, each once."""
    found = (_cassette(name, test, base) for name in (*test.cassettes, *test.opened))
    return list(dict.fromkeys(Path(os.path.relpath(file)) for file in found if file is not None))


def _import_files(
    files: Iterable[Path], played: Mapping[Path, list[Entry]], folder: Path
) -> list[ImportResult]:
    from mockllm.record.importers.batch import import_files
    from mockllm.record.recording.store.folder import Folder
    from mockllm.record.redaction.redact import Redactor

    redactor = Redactor(redaction_rules())
    return import_files(files, Folder(folder), redactor=redactor, entries=played)


def _move(work: Path, folder: Path) -> None:
    from mockllm.record.recording.store.locks import put

    for file in sorted(work.iterdir()):
        if not file.name.startswith("."):
            folder.mkdir(parents=True, exist_ok=True)
            put(folder / file.name, file.read_bytes())


def _cassette(name: str, test: _Test, base: Path) -> Path | None:
    folders = (base / test.module.stem, base, Path())
    files = (folder / f"{name}{suffix}" for folder in folders for suffix in _SUFFIXES)
    return next(filter(Path.is_file, files), None)
