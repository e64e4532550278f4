"""Options, their ini keys, and the reports at the end of a run."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import INI

pytestmark = pytest.mark.slow

SPEED = """
    import pytest
    from client import reply_to

    def speed(session):
        return session._speed

    def test_plain(mockllm_session):
        print("plain:", speed(mockllm_session))

    @pytest.mark.mockllm(speed=3)
    def test_marked(mockllm_session):
        print("marked:", speed(mockllm_session))
"""


@pytest.mark.parametrize(
    ("arguments", "ini", "plain", "marked"),
    [
        ((), "", "1.0", "3"),
        ((), "mockllm_speed = 2", "2.0", "3"),
        (("--mockllm-speed=5",), "mockllm_speed = 2", "5.0", "5.0"),
    ],
)
def test_the_command_line_overrides_the_marker_and_the_marker_the_ini(
    project, run, arguments, ini, plain, marked
):
    """The command line overrides the marker, and the marker overrides the ini file."""
    project.makeini(f"{INI}    {ini}\n")
    result = run(SPEED, "-s", *arguments)
    result.stdout.fnmatch_lines([f"*plain: {plain}*", f"*marked: {marked}*"])


def test_speed_zero_skips_pauses(run):
    """A session at speed 0 skips a pause of ten minutes."""
    run(
        """
        import pytest
        from client import post, user
        from mockllm_pytest import pause

        @pytest.mark.mockllm(speed=0)
        def test_it(mockllm_session):
            mockllm_session.reply("a", pause("10m"), "b")
            assert "b" in post(user("Hello"), stream=True).text
        """
    ).assert_outcomes(passed=1)


def test_scenarios_of_the_command_line_replace_those_of_the_ini(project, run):
    """Paths in the ini file are relative to it; paths of the command line replace them."""
    project.makeini(f"{INI}    mockllm_scenarios = greetings.yaml\n")
    project.makefile(".yaml", other="scenario: other\nmatch: any\nturns: [{reply: {text: Other}}]")
    text = """
        import pytest
        from client import reply_to

        @pytest.mark.parametrize("name", ["greeting", "other"])
        def test_it(mockllm_session, name):
            mockllm_session.use(name)
            print("reply:", reply_to("hello"))
    """
    result = run(text, "-s")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*reply: Hi there.*", "*there is no scenario 'other'*"])
    result = run(text, "-s", "--mockllm-scenarios=other.yaml")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*reply: Other*", "*there is no scenario 'greeting'*"])


def test_a_broken_scenario_file_is_reported_with_all_its_problems(project, run):
    """A file that cannot be loaded fails the tests that need it, with a line for each problem."""
    project.makefile(".yaml", bad="scenario: A\nturns: [{reply: {txt: a}}]")
    result = run(
        """
        def test_it(mockllm_session):
            pass

        def test_other():
            pass
        """,
        "--mockllm-scenarios=bad.yaml",
    )
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["*bad.yaml:1:11: scenario: *", "*bad.yaml:2:*turns?0?.reply*"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("argument", "ini", "message"),
    [
        ("--mockllm-speed=fast", "", "'fast' is not a number of at least 0"),
        ("--mockllm-variations=-1", "", "'-1' is not a whole number of at least 0"),
        ("", "mockllm_speed = fast", "ini option mockllm_speed: 'fast' is not a number"),
        ("--mockllm-match-ignore=uid", "", "mockllm_match_ignore: 'uid' must be uuid, timestamp"),
        ("", "mockllm_match_ignore = $.a b", "mockllm_match_ignore: '$.a b' is no path"),
    ],
)
def test_a_wrong_value_is_an_error(project, run, argument, ini, message):
    """A wrong value is refused, and the message names the option."""
    project.makeini(f"{INI}    {ini}\n")
    result = run("def test_it(mockllm_session):\n    pass", *([argument] if argument else []))
    assert result.ret != 0
    assert message in result.stdout.str() + result.stderr.str()


def test_turns_that_no_test_has_to_play(project, run):
    """`mockllm_unplayed` allows for all tests what `unplayed=True` allows for one, and
    `mockllm_no_requests` what `no_requests=True` allows."""
    test = """
        from client import reply_to

        def test_a_turn(mockllm_session):
            mockllm_session.reply("asked for")
            mockllm_session.reply("never asked for")
            reply_to("Hello")

        def test_nothing(mockllm_session):
            mockllm_session.reply("never asked for")
    """
    run(test).assert_outcomes(failed=2)
    run(test, "--mockllm-unplayed").assert_outcomes(passed=1, failed=1)
    run(test, "--mockllm-no-requests").assert_outcomes(passed=1, failed=1)
    project.makeini(f"{INI}    mockllm_unplayed = true\n    mockllm_no_requests = true\n")
    run(test).assert_outcomes(passed=2)


def test_what_the_run_ignores(project, run):
    """The ini file and the command line together; for every scenario of the tests."""
    project.makeini(f"{INI}    mockllm_match_ignore = uuid\n")
    result = run(
        """
        from client import reply_to

        def test_it(mockllm_session):
            mockllm_session.add(
                "scenario: a\\nmatch: {user: {equals: 'run 0f8fad5b-d9cb-469f-a165-70867728950e of "
                "2026-01-01'}}\\nturns: [{reply: {text: hi}}]"
            )
            assert reply_to("run 7c9e6679-7425-40de-944b-e07fc1f90ae7 of 2026-02-02") == "hi"
        """,
        "--mockllm-match-ignore=date",
    )
    result.assert_outcomes(passed=1)


def test_variations_and_seed_reach_the_cases(project, run):
    """`--mockllm-variations` overrides the number of the marker."""
    text = """
        import pytest

        @pytest.mark.mockllm_cases(api="chat", scenarios="unicode", variations=3, quirks=False)
        def test_it(mockllm_case):
            pass
    """
    # Two turns, each plain and with its variations.
    run(text).assert_outcomes(passed=8)
    run(text, "--mockllm-variations=1").assert_outcomes(passed=4)


def test_exchanges_are_shown_on_request(project, run):
    """`--mockllm-show` prints the exchanges of tests that passed."""
    text = """
        from client import reply_to

        def test_it(mockllm_session):
            mockllm_session.reply("Hi")
            reply_to("Hello")

        def test_failing(mockllm_session):
            mockllm_session.reply("Hi")
    """
    result = run(text, "--mockllm-show")
    result.stdout.fnmatch_lines(
        [
            "*= mockllm exchanges =*",
            "test_it.py::test_it",
            "1 request in session test_it.test_it-1:",
            '  1. POST /v1/chat/completions  "Hello"',
            '     -> 200, turn 1 of 1 of replies-of-test-it, text "Hi", * bytes',
        ]
    )
    run(text).stdout.no_fnmatch_line("*mockllm exchanges*")
    project.makeini(f"{INI}    mockllm_show = true\n")
    run(text).stdout.fnmatch_lines(["*= mockllm exchanges =*"])


UNUSED = """
    import pytest
    from client import reply_to

    @pytest.mark.mockllm("greeting")
    def test_one():
        reply_to("hello")

    def test_other():
        pass
"""


def test_unused_scenarios_are_named_on_request(run):
    """`--mockllm-unused` lists scenarios that nothing played; cases count as playing them."""
    given = "--mockllm-scenarios=greetings.yaml"
    result = run(UNUSED, given, "--mockllm-unused")
    result.stdout.fnmatch_lines(["*scenarios that nothing played*", "farewell"])
    result.stdout.no_fnmatch_line("greeting")
    run(UNUSED, given).stdout.no_fnmatch_line("*nothing played*")
    result = run(
        UNUSED
        + """
    @pytest.mark.mockllm_cases(api="chat", variations=0, quirks=False)
    def test_case(mockllm_case):
        pass
    """,
        given,
        "--mockllm-unused",
    )
    result.stdout.fnmatch_lines(["none: every scenario was played"])


def test_unused_scenarios_are_counted_over_all_workers(run):
    """A scenario that one worker of pytest-xdist played is not unused."""
    text = UNUSED.replace(
        "def test_other():\n        pass",
        "@pytest.mark.mockllm('farewell')\n    def test_other():\n        reply_to('bye')",
    )
    given = ("--mockllm-scenarios=greetings.yaml", "--mockllm-unused", "-n2")
    result = run(text, *given, "--dist=each")
    result.stdout.fnmatch_lines(["none: every scenario was played"])
    result = run(UNUSED, *given, "--mockllm-show")
    result.stdout.fnmatch_lines(["*scenarios that nothing played*", "farewell"])
    # `--mockllm-show` prints the exchanges of tests in other processes, too.
    result.stdout.fnmatch_lines(["*= mockllm exchanges =*", "test_it.py::test_one"])
