"""`mockllm_case`: streams as parameters of a test, with what is right for them."""

from __future__ import annotations

import pytest

from mockllm.checking.cases.compile import cases, plans
from mockllm.replay.loading import load
from mockllm.scenario.model import APIS
from mockllm.scenario.shipped import shipped_scenarios

SOME = load([shipped_scenarios()])[:4]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["payloads", "bytes"])
@pytest.mark.parametrize("api", APIS)
def test_plans_are_the_cases_before_they_are_compiled(api, level):
    """Planned and compiled, the cases are the same, in the same order."""
    planned = list(plans(api, SOME, variations=2, level=level))
    compiled = list(cases(api, SOME, variations=2, level=level))
    assert [plan.name for plan in planned] == [case.name for case in compiled]
    for plan, case in list(zip(planned, compiled, strict=True))[::10]:
        again = plan.case()
        assert again.chunks == case.chunks
        assert again.expected == case.expected


CASES = """
    import httpx
    import pytest
    from mockllm.checking import Outcome
    from mockllm.checking.reference import ChatAccumulator

    def fed(case):
        probe = ChatAccumulator()
        for value in case.chunks:
            probe.feed(value)
        return probe

"""


def test_a_case_has_the_stream_in_every_form(run):
    """Values, events, bytes cut as one likes, and a URL that plays just this case."""
    run(
        CASES
        + """
    @pytest.mark.mockllm_cases(api="chat", scenarios=["secret-numbers"], variations=3, quirks=False)
    def test_it(mockllm_case):
        assert mockllm_case.api == "chat"
        assert [event.value for event in mockllm_case.events] == mockllm_case.chunks
        assert mockllm_case.tools[0].name == "get_secret_number"
        whole = b"".join(mockllm_case.byte_chunks())
        pieces = list(mockllm_case.byte_chunks(1, 2))
        assert b"".join(pieces) == whole and len(pieces[1]) == 2
        body = {
            "model": mockllm_case.case.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": mockllm_case.prompt}],
        }
        url = mockllm_case.url + "/chat/completions"
        answer = httpx.post(url, json=body, headers={"authorization": "Bearer x"})
        assert answer.content == whole
        mockllm_case.check(mockllm_case.expected)
        mockllm_case.check(fed(mockllm_case))
        mockllm_case.check(ChatAccumulator)
    """
    ).assert_outcomes(passed=8)


def test_what_is_handed_out_may_be_changed(run):
    """Values are made anew each time they are asked for."""
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
    """A case is found again by its name, whatever the process, and `-k` picks some."""
    text = (
        CASES
        + """
    @pytest.mark.mockllm_cases(api="chat", scenarios="tick-tock", variations=2)
    def test_it(mockllm_case):
        assert mockllm_case.name in f"{mockllm_case.name}"
    """
    )
    first = run(text, "--collect-only", "-q").outlines
    assert "test_it.py::test_it[chat/tick-tock-1]" in first
    assert any("chat/sample-call + chat-index-missing]" in line for line in first)
    assert first[:-1] == run(text, "--collect-only", "-q").outlines[:-1]
    other = run(text, "--collect-only", "-q", "--mockllm-seed=other").outlines
    assert other != first
    run(text, "-k", "chat-index-missing").assert_outcomes(
        passed=sum("chat-index-missing" in line for line in first),
        deselected=sum("::" in line and "chat-index-missing" not in line for line in first),
    )


def test_a_failure_tells_what_differs_and_how_to_see_it_again(run):
    """The differences, the stream, and the line that runs the case again."""
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


def test_cases_of_bytes_say_so(run):
    """At the level of bytes there are cases without values; asking for them is told."""
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
    assert result.parseoutcomes()["passed"] > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ("", "add @pytest.mark.mockllm_cases"),
        ("mockllm_cases()", "missing a required argument: 'api'"),
        ('mockllm_cases(api="chat", variation=1)', "Did you mean 'variations'?"),
        ('mockllm_cases(api="chat", level="byte")', "level must be 'payloads' or 'bytes'"),
        ('mockllm_cases(api="chats")', "there is no API 'chats'"),
        ('mockllm_cases(api="chat", scenarios="tick-tok")', "Did you mean 'tick-tock'"),
    ],
)
def test_mistakes_are_told_when_tests_are_collected(run, marker: str, words: str):
    """A case that cannot be planned is an error of the collection, in few words."""
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
    result.stdout.fnmatch_lines([f"*{words}*"])
    result.stdout.no_fnmatch_line("*Traceback*")
