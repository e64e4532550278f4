"""Requests that come after the body of their test, and what a request lost of the one before."""

from __future__ import annotations

import pytest


def test_a_request_of_a_fixture_that_ends_is_judged(run):
    """The test has an error that says so; an answer that is left for it is fine."""
    result = run(
        """
        import pytest
        from client import post, reply_to, user

        @pytest.fixture
        def bye(mockllm_session):
            yield
            post(user("bye"))

        def test_wrong(bye, mockllm_session):
            mockllm_session.reply("Hi")
            reply_to("hello")

        def test_right(bye, mockllm_session):
            mockllm_session.reply("Hi", repeat=True)
            reply_to("hello")
        """
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*Requests came after the body of the test.*"])
    result.stdout.fnmatch_lines(["ERROR test_*::test_wrong*"])


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_request_after_the_test_fails_the_run_by_name(run, workers):
    """The next test does not absorb what a thread of another one sends, also with `repeat`."""
    result = run(
        """
        import os, threading
        from client import post, user
        import httpx

        GO_ON = threading.Event()
        LATE = []

        def test_one(mockllm_session):
            mockllm_session.reply("Hi", repeat=True)
            post(user("hello"))
            url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"

            def late():
                GO_ON.wait()
                body = {"model": "any", "messages": [user("late")]}
                LATE.append(httpx.post(url, json=body, timeout=60))

            LATE.append(threading.Thread(target=late))
            LATE[0].start()

        def test_two(mockllm_session):
            mockllm_session.reply("Hi", repeat=True)
            GO_ON.set()
            LATE[0].join()
            assert LATE[1].status_code == 410
            post(user("hello"))
            assert len(mockllm_session.journal) == 1
        """,
        *workers,
    )
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*requests after the end of their tests*"])
    result.stdout.fnmatch_lines(["test_*.py::test_one: POST /v1/chat/completions"])


LOSES_TOOLS = """
    import pytest
    from client import message, post, user

    TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}

    MARK
    def test_it(mockllm_session):
        mockllm_session.reply("Hi")
        mockllm_session.reply("Bye")
        first = message(post(user("hello"), tools=[TOOL]))
        post(user("hello"), first, user("and?"))
"""


def test_what_a_request_lost_is_a_remark(run):
    """The test is green, and the summary says so."""
    result = run(LOSES_TOOLS.replace("MARK", ""))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*::test_it: tools-kept, request 2: the tools of request 1*"])


def test_what_is_required_fails(project, run):
    """By the marker, on the command line, or in the ini file."""
    marked = LOSES_TOOLS.replace("MARK", '@pytest.mark.mockllm(require="tools-kept")')
    run(marked).assert_outcomes(failed=1)
    run(LOSES_TOOLS.replace("MARK", ""), "--mockllm-require=tools-kept").assert_outcomes(failed=1)
    result = run(LOSES_TOOLS.replace("MARK", ""), "--mockllm-require=tools-kep")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*did you mean 'tools-kept'?*"])
