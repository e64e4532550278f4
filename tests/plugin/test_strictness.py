"""Strict by default: what a test's verdict finds, how it is told, and how it is allowed."""

from __future__ import annotations

import pytest

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
    """A test that has the marker need not name the fixture; fixtures that ask are served."""
    run(
        """
        import pytest
        from client import say

        @pytest.fixture
        def answer():
            return say("Hello")

        @pytest.mark.mockllm("greeting")
        def test_it(answer):
            assert answer == "Hi there."

        @pytest.mark.mockllm("farewell")
        class TestThem:
            def test_class(self):
                assert say("x") == "See you."

            @pytest.mark.mockllm("greeting")
            def test_nearest(self):
                assert say("x") == "Hi there."

        @pytest.mark.mockllm(scenarios="greetings.yaml")
        def test_file():
            assert [say("hello"), say("bye")] == ["Hi there.", "See you."]
        """,
        "--mockllm-scenarios=greetings.yaml",
    ).assert_outcomes(passed=4)


def test_unittest_classes_are_served_too(run):
    """The marker works on methods of `unittest.TestCase`."""
    result = run(
        """
        import unittest
        import pytest
        from client import say

        class Tests(unittest.TestCase):
            @pytest.mark.mockllm("tick-tock", unplayed=True)
            def test_it(self):
                self.assertTrue(say("Hello"))

            @pytest.mark.mockllm("tick-tock")
            def test_strict(self):
                pass
        """
    )
    result.assert_outcomes(passed=1, failed=1)


def test_unplayed_turns_fail_the_test_itself(run):
    """A bad verdict is the test's own failure, with the exchange drawn and the way out."""
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
            "mockllm: turn 2 of 2 of inline was not played",
            "1 request in session test_it.test_it-1:",
            '  1. POST /v1/chat/completions  "Hello"',
            "     -> 200, turn 1 of 2 of inline, calls f, * bytes",
            "To allow it: @pytest.mark.mockllm(unplayed=True)",
        ]
    )


def test_a_stream_is_drawn_with_its_chunks(run):
    """What is told of a streamed answer counts its events."""
    result = verdict(
        run,
        """
def test_it(mockllm_session):
    turns(mockllm_session)
    post(user("Hello"), stream=True)
""",
    )
    result.stdout.fnmatch_lines(["     -> 200, turn 1 of 2 of inline, calls f, 4 chunks, * bytes"])


def test_a_scenario_that_nothing_played_fails(run):
    """A scenario that a test names has to be played; the words say what may be the matter."""
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
            "mockllm: no turn of secret-numbers was played (2 turns): no request came; *",
            'To allow it: @pytest.mark.mockllm("secret-numbers", unplayed=True)',
        ]
    )


WRONGS = {
    "unmatched": 'mockllm_session.use("greeting", "farewell"); say2("hello"); '
    'say2("bye"); say2("what?")',
    "invalid": 'mockllm_session.use("greeting"); say2("hello"); post(user("x"), n=-1)',
    "unplayed": 'mockllm_session.use("greeting")',
    "violations": 'turns(mockllm_session); post(user("x")); post(user("x"), FORGED, RESULT)',
}
FORGED = """
    FORGED = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 2}'}}]}
    RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "1"}

    def say2(text):
        return post(user(text))

"""


@pytest.mark.slow
@pytest.mark.parametrize("argument", WRONGS)
def test_the_suggested_marker_allows_it(project, argument: str):
    """Each kind of wrong fails, and the line that the message suggests makes it pass."""

    def outcome(marker: str):
        test = f"{marker}\ndef test_it(mockllm_session):\n    {WRONGS[argument]}\n"
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
    """`violations=True` allows whatever a client may get wrong between turns."""
    text = "".join(
        f"    {line}\n"
        for line in (
            "@pytest.mark.mockllm(violations=True)",
            "def test_it(mockllm_session):",
            f"    {WRONGS['violations']}",
        )
    )
    project.makepyfile(test_it=TWO_TURNS + FORGED + text)
    project.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_failing_test_shows_its_exchanges(run):
    """The exchanges come as a section of their own beside the test's own failure."""
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


def test_a_verdict_counts_for_xfail(run):
    """A test that is expected to fail may do so by its verdict."""
    verdict(
        run,
        """
@pytest.mark.xfail(strict=True)
def test_it(mockllm_session):
    turns(mockllm_session)
""",
    ).assert_outcomes(xfailed=1)


def test_skipping_is_not_judged(run):
    """A test that skips itself is skipped, whatever it left unplayed."""
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
    ("marker", "words"),
    [
        ('mockllm("secret-number")', "Did you mean 'secret-numbers'?"),
        ("mockllm(unplaid=True)", "Did you mean 'unplayed'?"),
        ('mockllm(quirks="sse-clrf")', "did you mean sse-crlf"),
        ('mockllm("greeting", violations="history-faithfull")', "Did you mean 'history-faithful'"),
    ],
)
def test_a_marker_with_a_mistake_is_told_shortly(run, marker: str, words: str):
    """A wrong name in a marker is told with the nearest right one, without a traceback."""
    result = run(
        f"""
        import pytest
        from client import say

        @pytest.mark.{marker}
        def test_it():
            say("hello")
        """,
        "--mockllm-scenarios=greetings.yaml",
    )
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"*{words}*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*During handling*")
