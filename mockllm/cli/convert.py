"""`mockllm convert-tests`: tests of pytest-recording to recorded tests of mockllm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from mockllm.cli.options.parameters import EXISTING
from mockllm.cli.options.recording import redaction_rules
from mockllm.cli.scrub import files_below, rewrite
from mockllm.errors import UsageError

if TYPE_CHECKING:
    from mockllm.importers.batch import ImportResult

_SUFFIXES = ("", ".yaml", ".yml", ".json")
_NOT_SEARCHED = ("node_modules", "site-packages", "__pycache__")
_LAST_LINES = 15


@dataclass(frozen=True, slots=True)
class _Test:
    """A test that has a cassette.

    Args:
        test: its name in pytest, `tests/test_a.py::test_it`.
        cassettes: names or paths: the cassette of the test, and further ones of its marks.
        folder: where the plugin looks for its recording.
    """

    test: str
    module: Path
    cassettes: list[str]
    folder: Path


@click.command("convert-tests")
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="PATH...")
@click.option("--write", is_flag=True, help="Change the files; otherwise only show the changes.")
@click.option(
    "--cassettes",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder of the cassettes, if it is not `cassettes` beside each test file.",
)
@click.pass_context
def convert_tests(
    context: click.Context, paths: tuple[Path, ...], write: bool, cassettes: Path | None
) -> None:
    """Convert tests of pytest-recording, vcrpy's plugin for pytest.

    `@pytest.mark.vcr` becomes `@pytest.mark.mockllm_recorded`, and the cassettes are imported to
    `recorded`, where the plugin looks for them. pytest collects the tests of each PATH, so run the
    command where you run your tests. Without --write nothing changes: the command prints a diff,
    and what each cassette would become. What cannot be converted is listed with its line, and makes
    the exit code 1. The cassettes stay.

    \b
    Examples:
      mockllm convert-tests tests
      mockllm convert-tests tests --write
      mockllm convert-tests tests --write --cassettes tests/fixtures/vcr
    """
    tests = _collected(paths)
    problems = [*_convert_sources(paths, write=write)]
    for test in tests:
        problems += _convert_cassettes(test, cassettes, write=write)
    if problems:
        click.echo("\nnot converted:")
    for line in problems:
        click.echo(f"  {line}")
    if not write:
        click.echo("\nnothing was changed; with --write it is")
    context.exit(1 if problems else 0)


# Tests


def _collected(paths: tuple[Path, ...]) -> list[_Test]:
    """The tests with a cassette, as pytest collects them."""
    if find_spec("pytest") is None:
        raise UsageError("pytest is not installed here; run this where your tests run")
    with TemporaryDirectory() as folder:
        report = Path(folder, "tests.json")
        plugin = ("-p", "mockllm_pytest.cassettes", "--mockllm-cassettes-of", str(report))
        command = (sys.executable, "-m", "pytest", "--collect-only", "-q", *plugin)
        done = subprocess.run(  # noqa: S603 - pytest, on the user's tests
            (*command, *map(str, paths)), capture_output=True, text=True, check=False
        )
        # 5: no test was collected.
        if done.returncode not in (0, 5) or not report.is_file():
            last = (done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:]
            raise UsageError("\n".join(["pytest cannot collect the tests:", *last]))
        tests = json.loads(report.read_text(encoding="utf-8"))
    for test in tests:
        test |= {name: Path(os.path.relpath(test[name])) for name in ("module", "folder")}
    return [_Test(**test) for test in tests]


# Marks


def _convert_sources(paths: Iterable[Path], *, write: bool) -> Iterator[str]:
    from mockllm.importers.vcr_marks import convert

    for file in files_below(paths, (".py",), _NOT_SEARCHED):
        if file.suffix != ".py":
            continue
        data = file.read_bytes()
        try:
            source = data.decode()
            conversion = convert(source)
        except (UnicodeDecodeError, SyntaxError, ValueError) as error:
            if b"vcr" in data:
                yield f"{file}: cannot be read as Python in UTF-8: {error}"
            continue
        yield from (f"{file}:{note.line}: {note.text}" for note in conversion.notes)
        if conversion.source == source:
            continue
        if write:
            rewrite(file, conversion.source.encode())
            click.echo(f"converted {file}")
        else:
            click.echo(_diff(file, source, conversion.source), nl=False)


def _diff(file: Path, before: str, after: str) -> str:
    lines = unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), str(file), str(file)
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


# Cassettes


def _convert_cassettes(test: _Test, cassettes: Path | None, *, write: bool) -> Iterator[str]:
    """Imports the cassettes of a test; returns what was not imported."""
    base = cassettes or test.module.parent / "cassettes"
    by_name = {name: _cassette(name, test, base) for name in test.cassettes}
    for name in (name for name, file in by_name.items() if file is None):
        yield f"{test.test}: there is no cassette {name!r} in {base}; record the test anew"
    files = [file for file in by_name.values() if file is not None]
    if not files:
        return
    if test.folder.is_dir() and any(test.folder.iterdir()):
        click.echo(f"{test.test}: {test.folder} is there already and stays as it is")
        return
    with TemporaryDirectory() as work:
        results = _imported(files, Path(work))
        if write:
            _move(Path(work), test.folder)
    count = sum(result.line.outcome != "skipped" for result in results)
    sources = ", ".join(map(str, files))
    click.echo(f"{test.test}: {sources} -> {test.folder} ({count} of {len(results)} exchanges)")
    yield from (
        str(result)
        for result in results
        if result.line.outcome == "skipped" or result.line.not_found
    )


def _imported(files: Iterable[Path], folder: Path) -> list[ImportResult]:
    from mockllm.importers.batch import import_files
    from mockllm.recording.store.folder import Folder
    from mockllm.redaction.redact import Redactor

    return import_files(files, Folder(folder), redactor=Redactor(redaction_rules()))


def _move(work: Path, folder: Path) -> None:
    from mockllm.recording.store.locks import put

    for file in sorted(work.iterdir()):
        if not file.name.startswith("."):
            folder.mkdir(parents=True, exist_ok=True)
            put(folder / file.name, file.read_bytes())


def _cassette(name: str, test: _Test, base: Path) -> Path | None:
    folders = (base / test.module.stem, base)
    files = (folder / f"{name}{suffix}" for folder in folders for suffix in _SUFFIXES)
    return next(filter(Path.is_file, files), None)
