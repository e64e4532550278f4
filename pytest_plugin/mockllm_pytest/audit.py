"""`--mockllm-audit`: whether the cassettes of a suite still answer the requests that they were
recorded from. vcrpy replays them as always; this only watches, and writes nothing of the suite."""

from __future__ import annotations

import json
import os
import pickle
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import starmap
from pathlib import Path
from typing import Any

import pytest

from mockllm.record.audit import (
    Audit,
    AuditedTest,
    Replay,
    StoredRecording,
    audit_json,
    audit_lines,
    replay,
    stored_recording,
)
from mockllm.record.importers.reading import Entry, Unread
from mockllm.record.importers.vcr import exchange, find_remedy
from mockllm.record.redaction.credentials import masked_url
from mockllm.record.redaction.redact import Redactor
from mockllm_pytest import options
from mockllm_pytest.cassettes import cassette_name, reason_of
from mockllm_pytest.printing import printable
from mockllm_pytest.vcr_watch import (
    Watcher,
    body_bytes,
    path_of,
    request_as_stored,
    request_as_written,
    response_as_stored,
    watch_vcr,
)

_OUTPUT = "mockllm_audit"
"""The key of what a worker of pytest-xdist sends to the controller."""

_NO_ANSWER = {"status": {"code": 200}, "body": ""}


def audit_files(target: str) -> tuple[Path, ...]:
    """The files that the option names: a page, JSON, or both in a folder."""
    path = Path(target)
    if not target:
        return ()
    if path.suffix in (".html", ".json"):
        return (path,)
    return (path / "audit.html", path / "audit.json")


@dataclass
class _Seen:
    """What a process saw.

    Args:
        names: of the cassettes that tests may open, without a suffix.
        reasons: why tests failed, those without a cassette, too.
        is_partial: whether only some tests of a module run.
        is_whole: whether all modules of the folders run.
    """

    is_partial: bool
    is_whole: bool
    tests: list[AuditedTest] = field(default_factory=list)
    cassettes: dict[str, tuple[StoredRecording, ...]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)

    def add(self, other: _Seen) -> None:
        """Adds what another process saw."""
        self.is_partial |= other.is_partial
        self.is_whole &= other.is_whole
        self.tests += other.tests
        self.cassettes |= other.cassettes
        self.names |= other.names
        self.reasons |= other.reasons


class AuditPlugin:
    """The hooks of an audit.

    Raises:
        UsageError: vcrpy is not installed, or a rule for secrets cannot be read.
    """

    def __init__(self, config: pytest.Config) -> None:
        if find_spec("vcr") is None:
            raise pytest.UsageError("--mockllm-audit watches vcrpy, which is not installed here")
        self._config = config
        self._files = audit_files(config.getoption("mockllm_audit"))
        if any(file.suffix == ".html" for file in self._files):
            from mockllm.conformance.site.rendering import environment

            environment()  # says now, and not after the tests, that Jinja2 is missing
        self._redactor = Redactor(options.secret_rules(config))
        self._ignore = options.ignored_parts(config)
        self._opened: dict[str, list[tuple[Any, Any]]] = {}
        """The cassettes of the test that runs, by their paths."""
        self._played: list[tuple[Any, int, Any]] = []
        self._refused: list[str] = []
        self._outcome, self._reason = "", ""
        self._seen = _Seen(
            is_partial=any("::" in arg for arg in config.args),
            is_whole=all(Path(arg).is_dir() for arg in config.args),
        )
        watch_vcr(Watcher(self._note_cassette, self._note_answer, self._note_refusal))

    # What vcrpy does

    def _note_cassette(self, cassette: Any) -> None:
        if cassette.data:  # else there is no file
            self._opened[path_of(cassette)] = list(cassette.data)

    def _note_answer(self, cassette: Any, index: int, request: Any, _: Any) -> None:
        self._played.append((cassette, index, cassette.filter_request(request)))

    def _note_refusal(self, _: Any, request: Any) -> None:
        self._refused.append(_line(request))

    # What pytest does

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Notes the cassettes that the test may open."""
        self._seen.names.add(cassette_name(item))
        for mark in item.iter_markers("vcr"):
            self._seen.names.update(Path(str(name)).stem for name in mark.args)

    def pytest_deselected(self) -> None:
        """Notes that not all tests run."""
        self._seen.is_partial = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Notes that not all modules could be collected."""
        if not report.passed:
            self._seen.is_whole = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Watches a test, and compares its requests when it is over."""
        self._opened, self._played, self._refused = {}, [], []
        self._outcome, self._reason = "", ""
        try:
            return (yield)
        finally:
            if self._opened or self._refused:
                self._seen.tests.append(self._audit_test(item.nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes what became of the test: the worst of setup, call and teardown."""
        if self._outcome in ("", "passed") and (report.when == "call" or not report.passed):
            self._outcome, self._reason = report.outcome, reason_of(report)
            self._seen.reasons.add(self._reason)

    def _audit_test(self, nodeid: str) -> AuditedTest:
        for path, data in self._opened.items():
            shown = self._shown(path)
            if shown not in self._seen.cassettes:
                entries = (_entry(*pair, f"{shown}#{n}") for n, pair in enumerate(data, 1))
                self._seen.cassettes[shown] = tuple(map(stored_recording, entries))
        return AuditedTest(
            nodeid,
            self._outcome,
            self._reason,
            tuple(map(self._shown, self._opened)),
            tuple(dict.fromkeys(starmap(self._compare, self._played))),
            tuple(dict.fromkeys(self._refused)),
        )

    def _compare(self, cassette: Any, index: int, request: Any) -> Replay:
        path = self._shown(path_of(cassette))
        recorded, _ = cassette.data[index]
        return replay(
            path,
            index + 1,
            # Both: the serialiser may change more than it did when the cassette was written.
            *(
                _entry(request_as_written(cassette, each), _NO_ANSWER, path)
                for each in (recorded, request)
            ),
            redactor=self._redactor,
            ignore=self._ignore,
        )

    def _shown(self, path: str) -> str:
        folder = self._config.invocation_params.dir
        return os.path.relpath(folder / path, folder)

    # The report

    @pytest.hookimpl(trylast=True)  # of pytest-xdist, the workers have ended
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fails the run where the rule is required. A worker of pytest-xdist sends what it saw."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = pickle.dumps(self._seen)
        elif (
            "request-unchanged" in options.required_rules(self._config)
            and session.exitstatus == pytest.ExitCode.OK
            and any(test.changed for test in self._seen.tests)
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Receives what a worker of pytest-xdist saw."""
        output = getattr(node, "workeroutput", {})
        if _OUTPUT in output:
            self._seen.add(pickle.loads(output[_OUTPUT]))  # noqa: S301 - of our own worker

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints the summary, and writes the report."""
        unopened, remarks = self._find_unopened()
        if remedy := find_remedy(self._seen.reasons):
            remarks.append(remedy)
        tests = tuple(sorted(self._seen.tests, key=lambda test: test.test))
        audit = Audit(time.time(), tests, self._seen.cassettes, tuple(unopened), tuple(remarks))
        terminalreporter.section("mockllm audit")
        for line in (*audit_lines(audit), *map(self._write(audit), self._files)):
            terminalreporter.write_line(printable(line))

    def _write(self, audit: Audit) -> Any:
        def write(file: Path) -> str:
            if file.suffix == ".html":
                from mockllm.conformance.site.audit import audit_page

                text = audit_page(audit)
            else:
                text = json.dumps(audit_json(audit), indent=1, ensure_ascii=False) + "\n"
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode("utf-8", "backslashreplace"))
            except OSError as error:
                return f"{file} cannot be written: {error.strerror}"
            return f"written: {file}"

        return write

    def _find_unopened(self) -> tuple[list[str], list[str]]:
        """The cassettes that no test opens, beside those that some did, and what was not looked
        at. Those of tests that ended before are none."""
        if self._seen.is_partial:
            return [], ["Only some tests ran, so cassettes that no test opens were not looked for."]
        folders = {Path(path).parent for path in self._seen.cassettes if Path(path).is_file()}
        own = {
            Path(path).parent
            for test in self._seen.tests
            for path in test.cassettes
            if Path(path).parent.name == Path(test.test.partition("::")[0]).stem
        }
        judged = folders if self._seen.is_whole else folders & own
        suffixes = {Path(path).suffix for path in self._seen.cassettes}
        files = (file for folder in sorted(judged) for file in sorted(folder.iterdir()))
        unopened = [
            str(file)
            for file in files
            if file.suffix in suffixes
            and str(file) not in self._seen.cassettes
            and file.stem not in self._seen.names
        ]
        remarks = [
            f"{folder}: not all of its tests ran, so its other cassettes were not looked for"
            for folder in sorted(folders - judged)
        ]
        return unopened, remarks


def _entry(request: Any, response: Any, source: str) -> Entry:
    body = body_bytes(request.body)
    if body is None:
        return Unread(source, "only its HTTP library can write its body", _line(request))
    stored = request_as_stored(request, body)
    return exchange({"request": stored, "response": response_as_stored(response)}, source)


def _line(request: Any) -> str:
    return f"{request.method} {masked_url(request.uri)}"
