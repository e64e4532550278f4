"""`mockllm_case`: streams as parameters of a test, with their expected outcomes."""

from __future__ import annotations

import pytest

CASES = """
    import httpx
    import pytest
    from mockllm.checking import Outcome
    from examples.accumulators import ChatAccumulator

    def accumulated(case):
        probe = ChatAccumulator()
        for value in case.chunks:
            probe.feed(value)
        return probe

"""


def test_a_case_has_the_stream_in_every_form(run):
    """A case has values, events, bytes in any cut, and a URL that plays it."""
    run(
        CASES
        + """
    @pytest.mark.mockllm_cases(api="chat", scenarios=["secret-numbers"], variations=3, quirks=False)
    def test_it(mockllm_case):
        assert mockllm_case.api == "chat"
        assert [event.value for event in mockllm_case.events] == mockllm_case.chunks
        assert mockllm_case.tools[0].name == "get_secret_number"
        whole = b"".join(mockllm_case.byte_chunks())
        split = list(mockllm_case.byte_chunks(1, 2))
        assert b"".join(split) == whole and len(split[1]) == 2
        body = {
            "model": mockllm_case.case.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": mockllm_case.prompt}],
        }
        url = mockllm_case.url + "/chat/completions"
        answer = httpx.post(url, json=body, headers={"authorization": "Bearer x"}, timeout=60)
        assert answer.content == whole
        mockllm_case.check(mockllm_case.expected)
        mockllm_case.check(accumulated(mockllm_case))
        mockllm_case.check(ChatAccumulator)
    """
    ).assert_outcomes(passed=8)


def test_the_values_of_a_case_may_be_changed(run):
    """`chunks` returns new values at each access."""
    run(
        CASES
        + """
    @pytest.mark.mockllm_cases(api="chat", scenarios="tick-tock", variations=0, quirks=False)
    def test_it(mockllm_case):
        mockllm_case.chunks[0].clear()
        assert mockllm_case.chunks[0]
    """
    ).assert_outcomes(passed=2)


@pytest.mark.slow
def test_ids_are_the_names_of_the_cases(run):
    """The id of a case is its name, the same in each run, and `-k` selects by it."""
    text = (
        CASES
        + """
    @pytest.mark.mockllm_cases(api="chat", scenarios="tick-tock", variations=2)
    def test_it(mockllm_case, request):
        assert request.node.name == f"test_it[{mockllm_case.name}]"
    """
    )
    first = run(text, "--collect-only", "-q").outlines
    assert "test_it.py::test_it[chat/tick-tock-1]" in first
    assert any("chat/sample-call+chat-index-missing]" in line for line in first)
    assert first[:-1] == run(text, "--collect-only", "-q").outlines[:-1]
    other = run(text, "--collect-only", "-q", "--mockllm-seed=other").outlines
    assert other != first
    run(text, "-k", "chat-index-missing").assert_outcomes(
        passed=sum("chat-index-missing" in line for line in first),
        deselected=sum("::" in line and "chat-index-missing" not in line for line in first),
    )


def test_a_failure_has_the_differences_and_the_command(run):
    """The message has the differences, the stream, and the command that runs the case again."""
    result = run(
        CASES
        + """
    @pytest.mark.mockllm_cases(api="chat", scenarios="tick-tock", variations=0, quirks=False)
    def test_outcome(mockllm_case):
        mockllm_case.check(Outcome.of("Tock."))

    @pytest.mark.mockllm_cases(api="chat", scenarios="tick-tock", variations=0, quirks=False)
    def test_error(mockllm_case):
        mockllm_case.check(KeyError("choices"))
    """
    )
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "chat/tick-tock-1 breaks *",
            "  *text is *",
            "  the stream:",
            "    data: *",
            '  to run it again: pytest "test_it.py::test_outcome?chat/tick-tock-1?" *seed 0',
            "*KeyError: 'choices'*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_cases_without_values_refuse_chunks(run):
    """Some cases of bytes have no values; reading `chunks` is then an error."""
    result = run(
        CASES
        + """
    @pytest.mark.mockllm_cases(api="chat", scenarios="tick-tock", variations=0, level="bytes")
    def test_it(mockllm_case):
        if mockllm_case.case.events is None:
            with pytest.raises(Exception, match="use byte_chunks"):
                mockllm_case.chunks
        assert list(mockllm_case.byte_chunks())
    """,
        "-k",
        "sse-cut",
    )
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("", "add @pytest.mark.mockllm_cases"),
        ("mockllm_cases()", "missing a required argument: 'api'"),
        ('mockllm_cases(api="chat", variation=1)', "did you mean 'variations'?"),
        ('mockllm_cases(api="chat", level="byte")', "level must be 'payloads' or 'bytes'"),
        ('mockllm_cases(api="chats")', "there is no API 'chats'"),
        ('mockllm_cases(api="chat", scenarios="tick-tok")', "did you mean 'tick-tock'"),
    ],
)
def test_a_wrong_marker_is_an_error_at_collection(run, marker: str, message: str):
    """A wrong marker is an error at collection, without a traceback."""
    line = f"@pytest.mark.{marker}" if marker else ""
    result = run(
        f"""
        import pytest

        {line}
        def test_it(mockllm_case):
            pass
        """
    )
    assert result.ret == 2
    result.stdout.fnmatch_lines([f"*{message}*"])
    result.stdout.no_fnmatch_line("*Traceback*")
