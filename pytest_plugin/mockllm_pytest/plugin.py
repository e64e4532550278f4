"""The pytest plugin: hooks and fixtures that translate pytest into calls of the other modules.

pytest imports this module in every run of an environment that has it. So it must import quickly:
the other modules and `mockllm` are imported when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import Context
from copy import copy
from dataclasses import replace
from functools import partial, wraps
from importlib.util import find_spec
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import TYPE_CHECKING, Any

import pytest

from mockllm_pytest import options
from mockllm_pytest.printing import add_section, fail, failure, printable

if TYPE_CHECKING:
    from mockllm.conformance.results import Results
    from mockllm.serve.interception.ownership import Owner
    from mockllm_pytest.cases import MockCase
    from mockllm_pytest.fixtures import FixtureSession, UnansweredFixture
    from mockllm_pytest.marks import MockllmMark, RecordedMark
    from mockllm_pytest.recording import Recording
    from mockllm_pytest.serving import Library, MockService
    from mockllm_pytest.sessions import MockSession

_SESSION = pytest.StashKey["MockSession"]()
_RECORDED: pytest.StashKey[RecordedMark | None] = pytest.StashKey()
"""The marker of a recorded test when its session began."""
_OWNER = pytest.StashKey["Owner"]()
"""To which a test's requests belong, while it runs."""
_LIBRARY = pytest.StashKey["Library"]()
_PLAYED = pytest.StashKey[set[str]]()
_LATE = pytest.StashKey[list[str]]()
"""The requests that came after their test was over, as lines."""
_FIXTURES = pytest.StashKey[list[tuple[str, str]]]()
"""What was recorded of fixtures: the name of each, and a summary."""
_SECTION = "mockllm"
SUITE_SECTION = "mockllm suite"
"""The title of the section of a report with what a suite counted."""
_RECORDING = "mockllm recording"
_REMARKS = "mockllm remarks"
_CHANGED = "mockllm changed"
_MOST_CHANGED = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    options.add_options(parser)


class _RecordingHooks:
    """The hook of pytest-recording. A conftest of tests that were converted may have it still."""

    @staticmethod
    @pytest.hookspec
    def pytest_recording_configure(config: Any, vcr: Any) -> None: ...


def _has_recording(pluginmanager: pytest.PytestPluginManager) -> bool:
    is_there = find_spec("pytest_recording") is not None
    return is_there and not pluginmanager.is_blocked("recording")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Lets pytest know that hook where pytest-recording does not: it ends otherwise."""
    if not _has_recording(pluginmanager):
        pluginmanager.add_hookspecs(_RecordingHooks)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Changes the HTTP libraries before a conftest imports them, and keeps one of their methods."""
    _install()
    if options.AUDIT in args:  # argparse takes the folder of tests after it for its value
        args[:] = [f"{arg}=" if arg == options.AUDIT else arg for arg in args]
        namespace = copy(early_config.option)
        early_config.known_args_namespace = parser.parse_known_args(args, namespace=namespace)


def _install() -> None:
    from mockllm.serve.interception import patches

    patches.install()


def pytest_configure(config: pytest.Config) -> None:
    """Registers the markers."""
    _install()  # here, too: the plugin may be one that a conftest names
    for line in options.MARKERS:
        config.addinivalue_line("markers", line)
    if not (_has_recording(config.pluginmanager) or config.pluginmanager.has_plugin("vcr")):
        config.pluginmanager.import_plugin("mockllm_pytest.recording_fixtures")
    config.stash[_PLAYED] = set()
    config.stash[_LATE] = []
    config.stash[_FIXTURES] = []
    _check_package(config)
    if config.getoption("mockllm_audit") is not None:
        from mockllm_pytest.audit import AuditPlugin

        with _without_traceback():
            config.pluginmanager.register(AuditPlugin(config))


def _check_package(config: pytest.Config) -> None:
    """Warns where `import mockllm` finds another project, or what its installation left of ours:
    then no code of `mockllm/__init__.py` can do it."""
    import mockllm

    if "__distribution__" not in vars(mockllm):
        found = mockllm.__file__ or "a folder without __init__.py"
        message = (
            f"`import mockllm` does not find mockllm-harness but {found}; the distribution "
            "'mockllm' is another project, which overwrites and removes files of this one. To "
            "repair it: pip uninstall -y mockllm mockllm-harness && pip install mockllm-harness"
        )
        config.issue_config_time_warning(pytest.PytestConfigWarning(message), stacklevel=2)


def _library(config: pytest.Config) -> Library:
    """The scenarios of the run."""
    if _LIBRARY not in config.stash:
        from mockllm_pytest.serving import Library

        config.stash[_LIBRARY] = Library(options.paths(config))
    return config.stash[_LIBRARY]


@contextmanager
def _without_traceback() -> Iterator[None]:
    """Reports a mistake of the user by its message alone, without a traceback."""
    from mockllm.core.errors import MockLLMError

    try:
        yield
    except (MockLLMError, pytest.UsageError) as error:
        raise failure(str(error)) from None


# Fixtures


@pytest.fixture(scope="session")
def mockllm_server(request: pytest.FixtureRequest) -> Iterator[MockService]:
    """The mock server of this run: `url`, `base_urls`."""
    from mockllm.checking.conversations.judge import check_names
    from mockllm_pytest.serving import MockService

    config = request.config
    with _without_traceback():
        speed = options.setting(config, "speed", None, 1.0)
        required = options.required_rules(config)
        check_names(required)
        ignore = options.ignored_parts(config)
    played, late = config.stash[_PLAYED], config.stash[_LATE]
    service = MockService(_library(config), speed, played, late, required, ignore)
    yield service
    service.close()


@pytest.fixture
def mockllm_gateway() -> Callable[..., Results]:
    """Judges a gateway: `mockllm_gateway(down="anthropic", up="chat", command=[...])`."""
    from mockllm_pytest.gateways import judge

    def judge_gateway(**settings: Any) -> Results:
        with _without_traceback():
            try:
                return judge(**settings)
            except AssertionError as error:
                raise failure(str(error)) from None

    return judge_gateway


@pytest.fixture
def mockllm_session(
    request: pytest.FixtureRequest,
    mockllm_server: MockService,
) -> Iterator[MockSession]:
    """A session of the mock server for this test; environment variables lead SDKs to it."""
    node = request.node
    with _without_traceback():
        session = _session(request, mockllm_server)
    from mockllm_pytest.serving import led_by

    node.stash[_SESSION] = session
    with led_by(session.environment), session.redirect(node.stash[_OWNER]):
        yield session
    late = session.late_verdict()
    session.close()
    if session.recording_summary:
        add_section(node, "teardown", _RECORDING, session.recording_summary)
    if session.recording_failure:
        fail(session.recording_failure)
    if late is not None and not late.good:
        fail(f"Requests came after the body of the test.\n{late}")


def _session(request: pytest.FixtureRequest, server: MockService) -> MockSession:
    from mockllm_pytest.marks import recorded_mark
    from mockllm_pytest.sessions import MockSession

    node, config = request.node, request.config
    mark, recorded = _session_mark(node), recorded_mark(node)
    node.stash[_RECORDED] = recorded
    if recorded is None:
        speed = options.setting(config, "speed", mark.speed, server.speed)
        return MockSession(server, node.nodeid, node.path.parent, mark, speed)
    from mockllm_pytest.recording import RecordedSession, Recording, recording_folder

    speed = options.setting(config, "speed", mark.speed, 0.0)
    recording = Recording(config, node.nodeid, recording_folder(node), recorded)
    _check_age(node, recording)
    return RecordedSession(server, node.nodeid, node.path.parent, mark, speed, recording)


def _session_mark(node: pytest.Item) -> MockllmMark:
    """The marker of a test, with what the options of the run allow."""
    from mockllm_pytest.marks import session_mark

    mark = session_mark(node)
    allowed: dict[str, Any] = {
        name: True for name in ("unplayed", "no_requests") if options.flag(node.config, name)
    }
    return replace(mark, allowed=replace(mark.allowed, **allowed))


def _read_late_markers(item: pytest.Item, session: MockSession | None) -> None:
    """Reads the markers again that a test may have added while it ran (`request.node.add_marker`).
    What they allow counts; what else they say came too late.

    Raises:
        pytest.UsageError: a marker has an unknown argument or value, or came too late.
    """
    has_cases = item.get_closest_marker("mockllm_cases") is not None
    if not (has_cases or _is_marked(item)):
        return
    from mockllm_pytest.marks import cases_mark, recorded_mark

    if has_cases:
        cases_mark(item)
    mark, recorded = _session_mark(item), recorded_mark(item)
    in_time = session is not None and session.mark_again(mark)
    if _is_marked(item) and not (in_time and recorded == item.stash[_RECORDED]):
        raise pytest.UsageError(
            "a marker of mockllm was added while the test ran, when its session had begun or none "
            "was there: add it earlier, as in pytest_collection_modifyitems. Only what "
            "@pytest.mark.mockllm allows, and the rules that it requires, may come later"
        )


def _check_age(node: pytest.Item, recording: Recording) -> None:
    """Warns of a test whose recording is too old, or fails it."""
    known = recording.find_old(node.config) if recording.options is None else None
    if known is None:
        return
    most, found = known
    undated = [f"{file}: nothing says when it was recorded" for file in found.undated]
    old = [f"{file} {sentence}" for file, sentence in found.too_old]
    for message in (*undated, *(() if most.is_error else old)):
        node.warn(pytest.PytestWarning(message))
    if most.is_error and old:
        fail("\n".join(old))


@pytest.fixture(autouse=True)
def _mockllm_marked(request: pytest.FixtureRequest) -> None:
    """Gives a session to tests that have a marker and do not name the fixture."""
    if _is_marked(request.node):
        request.getfixturevalue("mockllm_session")


def _is_marked(node: pytest.Item) -> bool:
    return any(node.get_closest_marker(name) for name in ("mockllm", "mockllm_recorded"))


def _uses_session(node: pytest.Item) -> bool:
    return _is_marked(node) or "mockllm_session" in getattr(node, "fixturenames", ())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """Lets what a fixture makes belong to its test, or, of one with a wider scope, to each test
    that uses it. And gives a recorded test what it needs of the fixtures of pytest-recording."""
    from mockllm.serve.interception import ownership

    item = request._pyfuncitem  # noqa: SLF001 - a request of a wider scope shows no test otherwise
    wide = fixturedef.scope != "function"
    owner = ownership.WHOEVER_RUNS if wide else item.stash.get(_OWNER, None)
    function = fixturedef.func
    if not wide and fixturedef.argname not in _OWN_FIXTURES:
        _refuse_before_session(item, request)
    if owner is not None:
        _set_function(fixturedef, _bind(function, owner))
    try:
        with ownership.as_owner(owner) if wide else nullcontext():
            if not wide or fixturedef.argname == "mockllm_server" or not _uses_session(item):
                return _of_pytest_recording(fixturedef, item, (yield))
            return (yield from _setup_beside_session(fixturedef, request, item))
    finally:
        _set_function(fixturedef, function)


_END = object()
_OWN_FIXTURES = ("mockllm_session", "_mockllm_marked", "monkeypatch")


def _refuse_before_session(item: pytest.Item, request: pytest.FixtureRequest) -> None:
    """Refuses what fixtures of a test ask that pytest sets up before its session."""
    owner = item.stash.get(_OWNER, None)
    if owner is None or owner.redirect is not None or not _uses_session(item):
        return
    from mockllm.core.errors import MockLLMError
    from mockllm_pytest.marks import session_mark

    # What is wrong with options or marker, the session says.
    with suppress(MockLLMError, pytest.UsageError, pytest.fail.Exception):
        server, mark = request.getfixturevalue("mockllm_server"), session_mark(item)
        why = (
            f"A fixture of {item.nodeid} asks a service before the session of the test is there. "
            "Name mockllm_session among the arguments of the fixture: it is set up before then."
        )
        name = f"{item.nodeid}, before its session"
        session = partial(server.refusing_session, name, why)
        owner.lead(server.redirect(session, server.find_hosts(mark.intercept)), None)


def _set_function(fixturedef: pytest.FixtureDef[Any], function: Callable[..., Any]) -> None:
    if fixturedef.func is not function:
        fixturedef.func = function  # type: ignore[misc]  # as pytest-asyncio and anyio do


def _bind(function: Callable[..., Any], owner: Owner) -> Callable[..., Any]:
    """A function whose coroutine belongs to an owner: event loops that outlive a test may run it in
    the context of another. Other functions as they are."""
    from mockllm.serve.interception.ownership import as_owner

    if iscoroutinefunction(function):

        @wraps(function)
        async def run(*args: Any, **options: Any) -> Any:
            with as_owner(owner):
                return await function(*args, **options)

        return run
    if not isasyncgenfunction(function):
        return function

    @wraps(function)
    async def generate(*args: Any, **options: Any) -> Any:
        values = function(*args, **options)
        try:
            for _ in range(2):  # a second value is one too many: who runs the fixture says so
                with as_owner(owner):
                    value = await anext(values, _END)
                if value is _END:
                    return
                yield value
        finally:
            await values.aclose()

    return generate


def _setup_beside_session(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest, item: pytest.Item
) -> Generator[None, Any, Any]:
    """Answers or refuses what a fixture of a wider scope asks, for a test that has a session:
    pytest sets the fixture up before it."""
    from mockllm.core.errors import MockLLMError
    from mockllm_pytest.fixtures import FixtureSession, UnansweredFixture
    from mockllm_pytest.marks import recorded_mark, session_mark

    name = fixturedef.argname
    if hasattr(request, "param"):
        name += f"-{request.param_index}"  # type: ignore[attr-defined]  # of a request for one
    made: FixtureSession | UnansweredFixture | None = None
    # No error leaves from here: pytest would give the fixture no value, and keep its finalizers,
    # with which the next test that needs it cannot set it up.
    try:
        server, mark = request.getfixturevalue("mockllm_server"), session_mark(item)
        made = UnansweredFixture(name, server, mark)
        if recorded_mark(item) is not None or mark.has_proxy:
            report = item.config.stash[_FIXTURES]
            made = FixtureSession(name, fixturedef.func, item, server, report)
    except (MockLLMError, pytest.UsageError, pytest.fail.Exception) as error:
        if not isinstance(made, UnansweredFixture):
            return (yield)  # the session of the test says what is wrong
        made.reason = str(error)
    fixturedef.addfinalizer(made.close)  # the last one that is called
    made.enter()
    try:
        result = yield
    finally:
        made.leave()
        fixturedef.addfinalizer(made.enter)
    made.check()
    return result


def _of_pytest_recording(fixturedef: pytest.FixtureDef[Any], item: pytest.Item, value: Any) -> Any:
    """The value of a fixture, of those of pytest-recording what a recorded test needs."""
    name = fixturedef.argname
    is_recorded = item.get_closest_marker("mockllm_recorded") is not None
    if name not in ("vcr", "allowed_hosts") or not is_recorded:
        return value
    from mockllm_pytest.recording_fixtures import SentRequests, with_this_machine

    if name == "allowed_hosts":
        value = with_this_machine(value)
    elif value is None:  # there is no cassette
        value = SentRequests(item, _SESSION)
    # pytest hands later requests of the fixture this value, and not what the hook returns.
    assert fixturedef.cached_result is not None
    fixturedef.cached_result = (value, fixturedef.cached_result[1], None)
    return value


@pytest.fixture
def mockllm_case(request: pytest.FixtureRequest) -> Iterator[MockCase]:
    """One of the cases that `@pytest.mark.mockllm_cases` selects."""
    from mockllm_pytest.cases import CasePlayer, MockCase, scenario_name
    from mockllm_pytest.marks import cases_mark

    config, mark = request.config, cases_mark(request.node)
    played = config.stash[_PLAYED]
    played.add(scenario_name(_library(config), request.param))
    seed = options.setting(config, "seed", mark.seed, "0")
    rerun = f'pytest "{request.node.nodeid}" --mockllm-seed {seed}'
    player = CasePlayer(request)
    yield MockCase(request.param.compile(), mark.level, player.at, rerun)
    player.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes one test for each case."""
    if "mockllm_case" not in metafunc.fixturenames:
        return
    from mockllm.core.errors import MockLLMError
    from mockllm_pytest.cases import marked_cases
    from mockllm_pytest.marks import cases_mark

    folder = metafunc.definition.path.parent
    try:
        mark = cases_mark(metafunc.definition)
        specs = marked_cases(metafunc.config, _library(metafunc.config), folder, mark)
    except (pytest.UsageError, MockLLMError) as error:
        # An error of the collection is printed without the frames that found it.
        where = metafunc.definition.nodeid
        message = str(error) if where in str(error) else f"{where}: {error}"
        raise pytest.Collector.CollectError(message) from None
    ids = [spec.name for spec in specs]
    metafunc.parametrize("mockllm_case", specs, indirect=True, ids=ids)


# Whose request it is


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """From now on, what runs belongs to this test."""
    from mockllm.serve.interception import ownership

    owner = item.stash[_OWNER] = ownership.Owner(item.nodeid)
    ownership.begin(owner)
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """The test is over, with its fixtures."""
    from mockllm.serve.interception import ownership

    try:
        return (yield)
    finally:
        ownership.end(item.stash[_OWNER])
        if _SESSION in item.stash:
            from mockllm_pytest.serving import put_back

            put_back()


@contextmanager
def _with_bound_test(item: pytest.Item) -> Iterator[None]:
    """While it lasts, the coroutine of a test belongs to it, also that inside of a test of
    Hypothesis; and so do the contexts of a test case of unittest, which may be older."""
    from mockllm.serve.interception.ownership import adopt

    for value in vars(getattr(item, "instance", None) or item).values():
        if isinstance(value, Context):
            adopt(value, item.stash[_OWNER])
    function = getattr(item, "obj", None)
    inner = getattr(function, "hypothesis", None)
    place, name = (item, "obj") if inner is None else (inner, "inner_test")
    before = getattr(place, name, None)
    if before is None or not iscoroutinefunction(before):
        yield
        return
    setattr(place, name, _bind(before, item.stash[_OWNER]))
    try:
        yield
    finally:
        setattr(place, name, before)


# Verdicts


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Judges the session of a test that passed, and shows the exchanges of one that failed."""
    passed = False
    try:
        with _with_bound_test(item):
            result = yield
        passed = True
    finally:
        session = item.stash.get(_SESSION, None)
        if session is not None and not passed:
            add_section(item, "call", _SECTION, session.report_failure())
    with _without_traceback():
        _read_late_markers(item, session)
    if session is not None:
        with _without_traceback():
            verdict = session.verdict()
        if verdict.remarks:
            add_section(item, "call", _REMARKS, "\n".join(verdict.remarks))
        if verdict.changed:
            add_section(item, "call", _CHANGED, "\n".join(verdict.changed))
            item.user_properties += [("request-unchanged", line) for line in verdict.changed]
        if not verdict.good:
            fail(str(verdict))
        if options.flag(item.config, "show"):
            add_section(item, "call", _SECTION, session.format_exchanges())
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Notes whether the test of a session has passed, and adds the exchanges if they are missing.

    They are missing after failures of unittest tests, which `pytest_runtest_call` does not see.
    """
    report = yield
    session = item.stash.get(_SESSION, None)
    if session is not None and report.when == "call":
        session.passed = report.passed
        texts = (report.longreprtext, *(text for _, text in report.sections))
        if report.failed and not any(session.session in text for text in texts):
            report.sections.append((f"Captured {_SECTION} call", session.report_failure()))
    return report


# Reports


@pytest.hookimpl(trylast=True)  # of pytest-xdist, the workers have ended
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run where requests came after their tests. A worker of pytest-xdist sends them, and
    the names of the played scenarios, to the controller."""
    output = getattr(session.config, "workeroutput", None)
    played, late = session.config.stash[_PLAYED], session.config.stash[_LATE]
    if output is not None:
        output["mockllm_played"], output["mockllm_late"] = sorted(played), late
    elif late and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Receives what a worker of pytest-xdist played, and which requests were late."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[_PLAYED].update(output.get("mockllm_played", ()))
    node.config.stash[_LATE].extend(output.get("mockllm_late", ()))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Prints the exchanges of tests that passed, remarks, the recordings, the unused scenarios, and
    the requests that came too late."""
    for heading, lines in _summary(terminalreporter, config):
        if lines:
            terminalreporter.section(heading)
        for line in lines:
            terminalreporter.write_line(printable(line))
    if options.flag(config, "unused"):
        _write_unused(terminalreporter, config)


def _summary(
    reporter: pytest.TerminalReporter, config: pytest.Config
) -> Iterator[tuple[str, list[str]]]:
    """The headings of the summary, each with its lines."""
    # A green test does not show what was excused or not judged.
    suites = _sections(reporter, SUITE_SECTION, ("passed", "failed", "skipped", "xfailed"))
    of_classes = [(nodeid.rpartition("::")[0], text) for nodeid, text in suites]
    yield "mockllm suites", [line for suite in of_classes for line in suite]
    remarks = _sections(reporter, _REMARKS, ("passed",))
    yield (
        "mockllm remarks",
        [f"{nodeid}: {line}" for nodeid, text in remarks for line in text.splitlines()],
    )
    changed = _sections(reporter, _CHANGED, ("passed", "failed"))
    _keep_changed(config, reporter, [nodeid for nodeid, _ in changed])
    yield "mockllm: recordings that answered other requests", list(_changed_lines(changed))
    late = config.stash[_LATE]
    advice = "A task or thread went on: end it in the test, or in a fixture."
    yield "mockllm: requests after the end of their tests", [advice, *late] if late else []
    if options.flag(config, "show"):
        # pytest shows those of tests that failed with the failures.
        yield "mockllm exchanges", _blocks(_sections(reporter, _SECTION, ("passed",)))
    recordings = _sections(reporter, _RECORDING, reporter.stats, when="teardown")
    yield "mockllm recordings", _blocks(sorted(recordings + config.stash[_FIXTURES]))


def _changed_lines(changed: list[tuple[str, str]]) -> Iterator[str]:
    if not changed:
        return
    from mockllm.core.text import quantity

    tests = quantity(len(changed), "recorded test")
    yield f"{tests} sent another request than was recorded:"
    for nodeid, text in changed[:_MOST_CHANGED]:
        yield from (f"{nodeid}: {line}" for line in text.splitlines())
    if len(changed) > _MOST_CHANGED:
        yield f"and {len(changed) - _MOST_CHANGED} more"
    yield (
        "They fail with --mockllm-require request-unchanged; --mockllm-record=changed records them "
        "anew."
    )


def _keep_changed(
    config: pytest.Config, reporter: pytest.TerminalReporter, changed: list[str]
) -> None:
    """Keeps for `--mockllm-record=changed` which tests sent other requests; those that did not run
    are as they were."""
    cache: pytest.Cache | None = getattr(config, "cache", None)  # with -p no:cacheprovider
    if cache is None:
        return
    known: list[str] = cache.get(options.CHANGED, [])
    reports = (report for found in reporter.stats.values() for report in found)
    ran = {report.nodeid for report in reports if getattr(report, "when", None) == "call"}
    now = sorted({nodeid for nodeid in known if nodeid not in ran} | set(changed))
    if now != known:
        cache.set(options.CHANGED, now)


def _sections(
    reporter: pytest.TerminalReporter, title: str, outcomes: Iterable[str], when: str = "call"
) -> list[tuple[str, str]]:
    """The texts with a title in the reports of tests, each with the id of its test.

    Args:
        when: the phase; reports of later ones have the sections of earlier ones, too.
    """
    return [
        (report.nodeid, text)
        for outcome in outcomes
        for report in reporter.stats.get(outcome, ())
        if getattr(report, "when", None) == when
        for name, text in report.sections
        if name == f"Captured {title} {when}"
    ]


def _blocks(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Each id and its text, with an empty line after it."""
    return [line for nodeid, text in rows for line in (nodeid, f"{text}\n")]


def _write_unused(reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    from mockllm.core.errors import ScenarioError

    reporter.section("mockllm scenarios that nothing played")
    try:
        known = [scenario.name for scenario in _library(config).own]
    except ScenarioError as error:
        reporter.write_line(printable(str(error)))
        return
    if not known:
        reporter.write_line("--mockllm-scenarios names none")
    unused = [name for name in known if name not in config.stash[_PLAYED]]
    for name in unused:
        reporter.write_line(printable(name))
    if known and not unused:
        reporter.write_line("none: every scenario was played")
