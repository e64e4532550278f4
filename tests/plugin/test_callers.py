"""Mistakes of a test in what it asks of its session are shown at its line, with what to write."""

from __future__ import annotations

from tests.cases import for_all

MISTAKES = {
    "s.reply('x', user='y')": "reply() has no argument 'user'; it belongs into 'match' of",
    "s.reply(status=500)": "reply() has no argument 'status'; the status of an error is 'http",
    "s.reply('x', delay='1s')": "reply() has no argument 'delay'; write 'timing: {ttft: 2s}'",
    "s.reply(text='x')": "reply() has no argument 'text'; a text stands alone: reply('Hello.')",
    "s.reply('x', whatever=1)": "reply() has no argument 'whatever'; the keys of a turn are its",
    "s.reply(ValueError('x'))": "reply(): holds what a scenario cannot (Object of type ValueError",
    "s.use('weather', quirk='x')": "use() has no argument 'quirk'; did you mean 'quirks'?",
    "s.use('nowhere.yaml')": "cannot be read: No such file or directory",
    "s.add('scenario: a')": "<add>:1:1: needs the key 'turns'",
    "s.requests": "has no attribute 'requests'; the requests so far are in 'journal', such as",
    "s.assert_called_once()": "has no attribute 'assert_called_once'; requests are judged when",
    "s.jurnal": "has no attribute 'jurnal'; did you mean 'journal'?",
    "s.nothing_like_it": "has no attribute 'nothing_like_it'",
    "s.fault = 'cutt'": "there is no fault 'cutt'; did you mean 'cut'?",
    "s.latency = 'fast'": "latency 'fast': must be KEY=VALUE",
    "s.quirk = ['sse-crlf']": "has no attribute 'quirk' to set; did you mean 'quirks'?",
    "s.speed = 0": "it is an argument of the marker: @pytest.mark.mockllm(speed=...)",
}


def test_the_callers_line_is_shown_and_no_frame_of_the_plugin(run) -> None:
    """Each mistake names what to write, at the line of the test that made it."""
    bodies = [
        f"def test_{number}(mockllm_session):\n    s = mockllm_session\n    {line}\n"
        for number, line in enumerate(MISTAKES)
    ]
    printed = run("\n".join(bodies)).stdout.str()
    for line, message in MISTAKES.items():
        assert message in printed, line
        assert f">       {line}" in printed or f">   {line}" in printed, line
    assert "mockllm_pytest/" not in printed
    assert f"{len(MISTAKES)} failed" in printed


@for_all(
    ("marker", "message"),
    [
        ("", "uses mockllm_case and does not say which"),
        ("@pytest.mark.mockllm_cases(api='openai')", "there is no API 'openai'; there are: chat"),
        ("@pytest.mark.mockllm_cases(api='chat', variation=1)", "did you mean 'variations'?"),
    ],
)
def test_markers_of_cases_are_refused_without_frames(run, marker: str, message: str) -> None:
    """What is wrong with a marker is one line about the test that has it."""
    result = run(f"import pytest\n{marker}\ndef test_it(mockllm_case):\n    pass\n")
    result.assert_outcomes(errors=1)
    assert message in result.stdout.str()
    assert "mockllm_pytest/" not in result.stdout.str()


def test_automatic_answers_stand_behind_replies(run) -> None:
    """With the scenario `auto`, replies answer first, and embeddings get an answer."""
    result = run(
        """
        import httpx
        from client import reply_to

        def embed(session):
            body = {"model": "m", "input": "hi"}
            return httpx.post(f"{session.openai_url}/embeddings", json=body)

        def test_both(mockllm_session):
            mockllm_session.use("auto")
            mockllm_session.reply("written")
            assert reply_to("hi") == "written"
            assert embed(mockllm_session).status_code == 200

        def test_alone(mockllm_session):
            mockllm_session.use("auto")
            assert embed(mockllm_session).json()["data"]

        def test_without(mockllm_session):
            mockllm_session.reply("written")
            assert "mockllm_session.use('auto')" in embed(mockllm_session).text
            assert reply_to("hi") == "written"
        """
    )
    result.assert_outcomes(passed=2, failed=1)
    assert "request 1 matches nothing" in result.stdout.str()


def test_braces_that_are_sent_as_they_stand_are_a_remark_of_a_failure(run) -> None:
    """A test that fails over a text with `{{ }}` says that it was no template."""
    result = run(
        """
        from client import reply_to

        def test_it(mockllm_session):
            mockllm_session.reply("You said {{ request.user }}")
            assert reply_to("hi") == "You said hi"

        def test_meant(mockllm_session):
            mockllm_session.reply("You said {{ request.user }}")
            assert "{{" in reply_to("hi")
        """
    )
    result.assert_outcomes(passed=1, failed=1)
    printed = result.stdout.str()
    assert (
        printed.count("mockllm: reply 1 has '{{ request.user }}', which is sent as it stands") == 1
    )
