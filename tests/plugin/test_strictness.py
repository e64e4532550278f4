"""Strict by default: what fails a test, the message, and the marker that allows it."""

from __future__ import annotations

from fnmatch import fnmatch

import pytest

from mockllm.play.replay.sessions.session import Session
from mockllm_pytest.marks import Allowed, MockllmMark
from mockllm_pytest.session_report import judge
from tests.entries import journal_entry

TWO_TURNS = """
    from client import *
    from mockllm_pytest import *
    import pytest

    def turns(session):
        session.reply(tool("f", {"a": 1}, id="call_1"))
        session.reply("Done.")

"""


def verdict(run, body: str, *arguments: str):
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return run(TWO_TURNS + lines, *arguments)


def test_the_marker_gives_a_session_without_the_fixture(run):
    """A test with the marker needs no fixture; its other fixtures are served as well."""
    run(
        """
        import pytest
        from client import reply_to

        @pytest.fixture
        def answer():
            return reply_to("hello")

        @pytest.mark.mockllm("greeting")
        def test_it(answer):
            assert answer == "Hi there."

        @pytest.mark.mockllm("farewell")
        class TestThem:
            def test_class(self):
                assert reply_to("bye") == "See you."

            @pytest.mark.mockllm("greeting")
            def test_nearest(self):
                assert reply_to("hello") == "Hi there."

        @pytest.mark.mockllm(scenarios="greetings.yaml")
        def test_file():
            assert [reply_to("hello"), reply_to("bye")] == ["Hi there.", "See you."]
        """,
        "--mockllm-scenarios=greetings.yaml",
    ).assert_outcomes(passed=4)


def test_unittest_classes_are_served_too(run):
    """The marker works on methods of `unittest.TestCase`."""
    result = run(
        """
        import unittest
        import pytest
        from client import reply_to

        class Tests(unittest.TestCase):
            @pytest.mark.mockllm("tick-tock", unplayed=True)
            def test_it(self):
                self.assertTrue(reply_to("play the clock"))

            @pytest.mark.mockllm("tick-tock")
            def test_strict(self):
                pass
        """
    )
    result.assert_outcomes(passed=1, failed=1)


def test_unplayed_turns_fail_the_test_itself(run):
    """A bad verdict fails the test, with its exchanges and the marker that allows it."""
    result = verdict(
        run,
        """
def test_it(mockllm_session):
    turns(mockllm_session)
    post(user("Hello"))
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "mockllm: turn 2 of 2 of replies-of-test-it was not played",
            "1 request in session test_it.test_it-1:",
            '  1. POST /v1/chat/completions  "Hello"',
            "     -> 200, turn 1 of 2 of replies-of-test-it, calls f, * bytes",
            "To allow it: @pytest.mark.mockllm(unplayed=True)",
        ]
    )


def test_a_stream_is_described_with_its_chunks(run):
    """The description of a streamed answer counts its chunks."""
    result = verdict(
        run,
        """
def test_it(mockllm_session):
    turns(mockllm_session)
    post(user("Hello"), stream=True)
""",
    )
    result.stdout.fnmatch_lines(
        ["     -> 200, turn 1 of 2 of replies-of-test-it, calls f, 4 chunks, * bytes"]
    )


def test_a_scenario_that_nothing_played_fails(run):
    """A verdict on nothing is not right; the message gives a likely reason."""
    result = run(
        """
        import pytest

        @pytest.mark.mockllm("secret-numbers")
        def test_it():
            pass
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "mockllm: no request came; does the client read its base URL *",
            'To allow it: @pytest.mark.mockllm("secret-numbers", no_requests=True)',
        ]
    )


FAILURES = {
    "unmatched": 'mockllm_session.use("greeting", "farewell"); post_user("hello"); '
    'post_user("bye"); post_user("what?")',
    "invalid": 'mockllm_session.use("greeting"); post_user("hello"); post(user("x"), n=-1)',
    "unplayed": 'mockllm_session.use("greeting", "farewell"); post_user("hello")',
    "no_requests": 'mockllm_session.use("greeting")',
    "extra_requests": 'mockllm_session.use("greeting"); post_user("hello"); post_user("hello")',
    "violations": 'turns(mockllm_session); post(user("x")); post(user("x"), FORGED, RESULT)',
}
FORGED = """
    FORGED = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 2}'}}]}
    RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "1"}

    def post_user(text):
        return post(user(text))

"""


@pytest.mark.slow
@pytest.mark.parametrize("argument", FAILURES)
def test_the_suggested_marker_allows_the_failure(project, argument: str):
    """Each kind of failure passes with the marker that its message suggests."""

    def outcome(marker: str):
        test = f"{marker}\ndef test_it(mockllm_session):\n    {FAILURES[argument]}\n"
        text = "".join(f"    {line}\n" for line in test.splitlines())
        project.makepyfile(test_it=TWO_TURNS + FORGED + text)
        return project.runpytest_inprocess("--mockllm-scenarios=greetings.yaml")

    result = outcome("")
    result.assert_outcomes(failed=1)
    (line,) = [line for line in result.outlines if line.startswith("To allow it: ")]
    assert argument in line
    outcome(line.removeprefix("To allow it: ")).assert_outcomes(passed=1)


@pytest.mark.slow
def test_all_violations_may_be_allowed(project):
    """`violations=True` allows violations of every invariant."""
    text = "".join(
        f"    {line}\n"
        for line in (
            "@pytest.mark.mockllm(violations=True)",
            "def test_it(mockllm_session):",
            f"    {FAILURES['violations']}",
        )
    )
    project.makepyfile(test_it=TWO_TURNS + FORGED + text)
    project.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_failing_test_shows_its_exchanges(run):
    """A failing test shows its exchanges in a section, and no verdict."""
    result = verdict(
        run,
        """
def test_it(mockllm_session):
    turns(mockllm_session)
    post(user("Hello"))
    assert 1 == 2
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*", "*Captured mockllm call*", "1 request in *"])
    result.stdout.no_fnmatch_line("*not played*")


def test_a_failing_test_shows_its_mistakes_first(run):
    """What the verdict would call a mistake stands above the exchanges, also where the assertion of
    the test fails before the verdict; what the marker allows is none."""
    text = (
        """
def test_it(mockllm_session):
"""
        + FORGED.lstrip("\n")
        + "    "
        + FAILURES["violations"]
        + """
    assert 1 == 2
"""
    )
    result = verdict(run, text)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*Captured mockllm call*", "mockllm: *request *", "", "* in session *"]
    )
    result.stdout.no_fnmatch_line("*not played*")
    marked = text.replace("def test_it", "@pytest.mark.mockllm(violations=True)\ndef test_it")
    allowed = verdict(run, marked)
    allowed.stdout.fnmatch_lines(["*Captured mockllm call*", "* in session *"])
    allowed.stdout.no_fnmatch_line("mockllm: *request *")


TOO_LARGE = """
def test_it(mockllm_session):
    mockllm_session.reply("Fine.")
    post(user("Hello"), logit_bias={str(token): 1 for token in range(200_000)})
"""


def test_a_request_that_cannot_be_judged_fails_the_test(run):
    """What was not judged is not right: of a body that is too large only its beginning is kept."""
    result = verdict(run, TOO_LARGE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*mockllm: verdict unknown: too large to be kept and judged: request 1",
            "To allow it: @pytest.mark.mockllm(violations=True)",
        ]
    )


def test_a_marker_allows_a_request_that_cannot_be_judged(run):
    """Where every invariant may be broken, nothing needs to be judged."""
    marker = "@pytest.mark.mockllm(violations=True)"
    verdict(run, marker + TOO_LARGE).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (Session("s", evicted=True), "it was dropped once, as there were too many; *"),
        (Session("s", gaps=("a process was killed",)), "requests may be missing: a process *"),
        (Session("s", 1, max_dropped=1), "its first 2 requests exceeded its memory; not judged"),
    ],
)
def test_a_session_that_is_not_known_whole_is_not_right(session, reason):
    """A missing request may have been a mistake, so the verdict on the others is not enough."""
    for _ in range(4):
        session.record(journal_entry("POST", "/v1/responses", body=b"{}", outcome="played"))
    found = judge(session, {}, (), MockllmMark(), Allowed())
    assert fnmatch(found.mistakes[0], f"verdict unknown: {reason}")
    assert judge(session, {}, (), MockllmMark(), Allowed(violations=True)).good


def test_a_mistake_that_left_the_journal_is_reported():
    """The verdict covers requests that the journal has dropped."""
    session = Session("s", 1)
    for problems in (("nothing answers it",), ()):
        outcome = "unmatched" if problems else "played"
        session.record(journal_entry("POST", body=b"{}", outcome=outcome, problems=problems))
    found = judge(session, {}, (), MockllmMark(), Allowed())
    assert found.mistakes == ("request 1 matches nothing: nothing answers it",)


def test_a_bad_verdict_counts_as_xfail(run):
    """A bad verdict fulfils `xfail(strict=True)`."""
    verdict(
        run,
        """
@pytest.mark.xfail(strict=True)
def test_it(mockllm_session):
    turns(mockllm_session)
""",
    ).assert_outcomes(xfailed=1)


def test_skipping_is_not_judged(run):
    """A test that skips itself is skipped, even with unplayed turns."""
    verdict(
        run,
        """
def test_it(mockllm_session):
    turns(mockllm_session)
    pytest.skip("not today")
""",
    ).assert_outcomes(skipped=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ('mockllm("secret-number")', "did you mean 'secret-numbers'?"),
        ("mockllm(unplaid=True)", "did you mean 'unplayed'?"),
        ('mockllm(quirks="sse-clrf")', "did you mean 'sse-crlf'"),
        ('mockllm("greeting", violations="history-faithfull")', "did you mean 'history-faithful'"),
    ],
)
def test_a_mistake_in_a_marker_is_a_short_error(run, marker: str, message: str):
    """A wrong name in a marker is an error that suggests the nearest, without a traceback."""
    result = run(
        f"""
        import pytest
        from client import reply_to

        @pytest.mark.{marker}
        def test_it():
            reply_to("hello")
        """,
        "--mockllm-scenarios=greetings.yaml",
    )
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"*{message}*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*During handling*")


LATE_MARKERS = {
    "mockllm(unplaid=True)": "*mockllm has no argument 'unplaid'; did you mean 'unplayed'?",
    'mockllm_recorded(modus="all")': "*mockllm_recorded has no argument 'modus'; *",
    'mockllm_cases(apii="chat")': "*mockllm_cases has no argument 'apii'; did you mean 'api'?",
    'mockllm(quirks="sse-crlf")': "*a marker of mockllm was added while the test ran, *",
    "mockllm_recorded()": "*a marker of mockllm was added while the test ran, *",
}


@pytest.mark.parametrize("fixture", ["mockllm_session", "tmp_path"])
@pytest.mark.parametrize("marker", LATE_MARKERS)
def test_a_marker_that_is_added_late_is_read(run, marker: str, fixture: str):
    """Of every marker that a running test adds, wrong arguments are an error, also without a
    session, and so is what comes too late."""
    result = run(
        f"""
        import pytest

        def test_it(request, {fixture}):
            request.node.add_marker(pytest.mark.{marker})
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([LATE_MARKERS[marker]])


def test_what_a_late_marker_allows_counts(run):
    """A running test knows best what it expects."""
    run(
        """
        import pytest

        def test_it(request, mockllm_session):
            request.node.add_marker(pytest.mark.mockllm(no_requests=True))
        """
    ).assert_outcomes(passed=1)
