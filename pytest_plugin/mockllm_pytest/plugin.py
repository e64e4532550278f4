"""The pytest plugin: hooks and fixtures that translate pytest into calls of the other modules.

pytest imports it in every run where it is installed, so it imports nothing that costs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mockllm_pytest import options

if TYPE_CHECKING:
    from mockllm_pytest.cases import MockCase
    from mockllm_pytest.serving import Library, MockService
    from mockllm_pytest.sessions import MockSession

_SESSION = pytest.StashKey["MockSession"]()
_LIBRARY = pytest.StashKey["Library"]()
_PLAYED = pytest.StashKey[set[str]]()
_SECTION = "mockllm"
_RECORDING = "mockllm recording"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    options.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Makes the markers known."""
    for line in options.MARKERS:
        config.addinivalue_line("markers", line)
    config.stash[_PLAYED] = set()


def _library(config: pytest.Config) -> Library:
    """The scenarios of the run."""
    if _LIBRARY not in config.stash:
        from mockllm_pytest.serving import Library

        config.stash[_LIBRARY] = Library(options.paths(config))
    return config.stash[_LIBRARY]


@contextmanager
def _told() -> Iterator[None]:
    """Tells what a user got wrong by its message alone."""
    from mockllm.errors import MockLLMError

    try:
        yield
    except (MockLLMError, pytest.UsageError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


# Fixtures


@pytest.fixture(scope="session")
def mockllm_server(request: pytest.FixtureRequest) -> Iterator[MockService]:
    """The mock server of this run: `url`, `base_urls`."""
    from mockllm_pytest.serving import MockService

    config = request.config
    with _told():
        speed = options.chosen(config, "speed", None, 1.0)
    service = MockService(_library(config), speed, config.stash[_PLAYED])
    yield service
    service.close()


@pytest.fixture
def mockllm_session(
    request: pytest.FixtureRequest,
    mockllm_server: MockService,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MockSession]:
    """A session of the mock server for this test, with the SDKs' variables leading to it."""
    node = request.node
    with _told():
        session = _session(request, mockllm_server)
    for name, value in session.environment.items():
        monkeypatch.setenv(name, value)
    node.stash[_SESSION] = session
    yield session
    session.close()
    if session.told:
        node.add_report_section("teardown", _RECORDING, session.told)


def _session(request: pytest.FixtureRequest, server: MockService) -> MockSession:
    from mockllm_pytest.marks import recorded_mark, session_mark
    from mockllm_pytest.sessions import MockSession

    node, config = request.node, request.config
    mark, recorded = session_mark(node), recorded_mark(node)
    if recorded is None:
        speed = options.chosen(config, "speed", mark.speed, server.speed)
        return MockSession(server, node.nodeid, node.path.parent, mark, speed)
    from mockllm_pytest.recorded import RecordedSession
    from mockllm_pytest.recording import Recording

    speed = options.chosen(config, "speed", mark.speed, 0.0)
    return RecordedSession(server, node, mark, speed, Recording(config, node, recorded))


@pytest.fixture(autouse=True)
def _mockllm_marked(request: pytest.FixtureRequest) -> None:
    """Gives a session to tests that have a marker and do not name the fixture."""
    if any(request.node.get_closest_marker(name) for name in ("mockllm", "mockllm_recorded")):
        request.getfixturevalue("mockllm_session")


@pytest.fixture
def mockllm_case(request: pytest.FixtureRequest) -> Iterator[MockCase]:
    """One case of those that `@pytest.mark.mockllm_cases` asks for."""
    from mockllm_pytest.cases import CasePlayer, MockCase, origin
    from mockllm_pytest.marks import cases_mark

    config, mark = request.config, cases_mark(request.node)
    played = config.stash[_PLAYED]
    played.add(origin(_library(config), request.param))
    seed = options.chosen(config, "seed", mark.seed, "0")
    again = f'pytest "{request.node.nodeid}" --mockllm-seed {seed}'
    player = CasePlayer(request)
    yield MockCase(request.param.case(), mark.level, player.at, again)
    player.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes a test of each case."""
    if "mockllm_case" not in metafunc.fixturenames:
        return
    from mockllm_pytest.cases import planned
    from mockllm_pytest.marks import cases_mark

    mark = cases_mark(metafunc.definition)
    folder = metafunc.definition.path.parent
    plans = planned(metafunc.config, _library(metafunc.config), folder, mark)
    ids = [plan.name for plan in plans]
    metafunc.parametrize("mockllm_case", plans, indirect=True, ids=ids)


# Verdicts


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Judges the session of a test that passed, and shows that of one that did not."""
    passed = False
    try:
        result = yield
        passed = True
    finally:
        session = item.stash.get(_SESSION, None)
        if session is not None and not passed:
            item.add_report_section("call", _SECTION, session.drawn())
    if session is not None:
        with _told():
            verdict = session.verdict()
        if not verdict.good:
            pytest.fail(str(verdict), pytrace=False)
        if options.flag(item.config, "show"):
            item.add_report_section("call", _SECTION, session.drawn())
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Tells a session whether its test has passed; shows it where nothing else does, as after
    failures of unittest, which keeps them to itself until now."""
    report = yield
    session = item.stash.get(_SESSION, None)
    if session is not None and report.when == "call":
        session.passed = report.passed
        told = (report.longreprtext, *(text for _, text in report.sections))
        if report.failed and not any(session.session in text for text in told):
            report.sections.append((f"Captured {_SECTION} call", session.drawn()))
    return report


# Reports


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hands what was played on to the process that reports, where that is another one."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        played = session.config.stash[_PLAYED]
        output["mockllm_played"] = sorted(played)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes what a worker of pytest-xdist played."""
    played: set[str] = node.config.stash[_PLAYED]
    played.update(getattr(node, "workeroutput", {}).get("mockllm_played", ()))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Prints the exchanges of tests that passed, what was recorded, and the scenarios that
    nothing played."""
    if options.flag(config, "show"):
        _write_exchanges(terminalreporter)
    _write_recordings(terminalreporter)
    if options.flag(config, "unused"):
        _write_unused(terminalreporter, config)


def _write_exchanges(reporter: pytest.TerminalReporter) -> None:
    # Those of tests that did not pass are shown with their failures.
    shown = [
        (report.nodeid, text)
        for report in reporter.getreports("passed")
        for title, text in report.sections
        if title == f"Captured {_SECTION} call" and report.when == "call"
    ]
    if shown:
        reporter.section("mockllm exchanges")
    for nodeid, text in shown:
        reporter.write_line(nodeid)
        reporter.write_line(f"{text}\n")


def _write_recordings(reporter: pytest.TerminalReporter) -> None:
    told = [
        (report.nodeid, text)
        for reports in reporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "teardown"
        for title, text in report.sections
        if title == f"Captured {_RECORDING} teardown"
    ]
    if told:
        reporter.section("mockllm recordings")
    for nodeid, text in sorted(told):
        reporter.write_line(nodeid)
        reporter.write_line(f"{text}\n")


def _write_unused(reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    from mockllm.errors import ScenarioError

    reporter.section("mockllm scenarios that nothing played")
    try:
        known = [scenario.name for scenario in _library(config).own]
    except ScenarioError as error:
        reporter.write_line(str(error))
        return
    if not known:
        reporter.write_line("--mockllm-scenarios names none")
    unused = [name for name in known if name not in config.stash[_PLAYED]]
    for name in unused:
        reporter.write_line(name)
    if known and not unused:
        reporter.write_line("none: every scenario was played")
