"""Sync and async tests, alone and in parallel: the plugin does not touch the user's loop."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import INI

ASYNC = """
    import asyncio
    import os

    import httpx
    import pytest
    {head}

    async def reply_to(text):
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        body = {{"model": "any", "messages": [{{"role": "user", "content": text}}]}}
        async with httpx.AsyncClient(headers={{"authorization": "Bearer x"}}, timeout=60) as client:
            return (await client.post(url, json=body)).json()

    {marker}
    async def test_it(mockllm_session):
        mockllm_session.reply("Hi", repeat=True)
        before, tasks = asyncio.get_running_loop(), asyncio.all_tasks()
        replies = [reply_to("Hello") for _ in range(5)]
        for answer in await asyncio.gather(*replies):
            assert answer["choices"][0]["message"]["content"] == "Hi"
        assert asyncio.get_running_loop() is before
        assert len(mockllm_session.journal) == 5
        assert asyncio.all_tasks() == tasks

    {marker}
    @pytest.mark.mockllm("secret-numbers")
    async def test_strict():
        await reply_to("secret numbers")

    def test_sync(mockllm_session):
        mockllm_session.reply("Hi")
        asyncio.run(reply_to("Hello"))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("marker", "head", "arguments"),
    [
        ("@pytest.mark.asyncio", "", ["--asyncio-mode=strict"]),
        ("", "", ["--asyncio-mode=auto"]),
        (
            "@pytest.mark.anyio",
            "@pytest.fixture\n    def anyio_backend(): return 'asyncio'",
            ["-p", "no:asyncio"],
        ),
    ],
    ids=["asyncio-strict", "asyncio-auto", "anyio"],
)
def test_async_tests_are_served_and_judged(run, marker, head, arguments):
    """pytest-asyncio in both modes and anyio: tests are served from another thread, and judged."""
    result = run(ASYNC.format(marker=marker, head=head), *arguments)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["mockllm: turn 2 of 2 of secret-numbers was not played"])


@pytest.mark.slow
def test_a_sync_test_has_no_event_loop(run):
    """A sync test has no running loop, and keeps its event loop policy."""
    run(
        """
        import asyncio
        import pytest
        from client import reply_to

        POLICY = asyncio.get_event_loop_policy()

        def test_it(mockllm_session):
            mockllm_session.reply("Hi")
            reply_to("Hello")
            assert asyncio.get_event_loop_policy() is POLICY
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
        """,
        "-p",
        "no:asyncio",
    ).assert_outcomes(passed=1)


MANY = """
    import os
    import pytest
    from client import reply_to

    @pytest.mark.parametrize("number", range(12))
    def test_it(mockllm_session, mockllm_server, number):
        mockllm_session.reply(str(number))
        assert reply_to("Hello") == str(number)
        assert len(mockllm_session.journal) == 1

    @pytest.mark.mockllm_cases(api="chat", scenarios="unicode", variations=5, quirks=False)
    def test_case(mockllm_case):
        mockllm_case.check(mockllm_case.expected) if mockllm_case.case.reaction == "same" else None
"""


@pytest.mark.slow
def test_each_worker_has_its_own_server(run):
    """Under `-n 2` both workers have the same cases, and each has its own server."""
    alone = run(MANY).parseoutcomes()
    result = run(MANY, "-n2")
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] == alone["passed"]


@pytest.mark.slow
def test_tests_pass_in_random_order(project, run):
    """With pytest-randomly the tests run in random order, and pass."""
    project.makeini(INI.replace("-p no:randomly", ""))
    assert run(MANY, "-p", "randomly").ret == 0


@pytest.mark.slow
def test_the_official_sdk_needs_no_configuration(run):
    """The openai SDK, sync and async, finds the session by environment variables alone."""
    run(
        """
        import openai
        import pytest
        from mockllm_pytest import text, tool

        MESSAGES = [{"role": "user", "content": "secret numbers"}]
        TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}

        def test_sync(mockllm_session):
            mockllm_session.reply(text("Hello there.", split=3))
            with openai.OpenAI() as client:
                with client.chat.completions.stream(model="m", messages=MESSAGES) as stream:
                    deltas = [e.delta for e in stream if e.type == "content.delta" and e.delta]
            assert deltas == ["Hel", "lo ", "the", "re."]

        @pytest.mark.asyncio
        async def test_async(mockllm_session):
            mockllm_session.reply(tool("f", {"a": 1}, id="call_1"))
            async with openai.AsyncOpenAI() as client:
                answer = await client.chat.completions.create(
                    model="m", messages=MESSAGES, tools=[TOOL]
                )
            (call,) = answer.choices[0].message.tool_calls
            assert (call.id, call.function.arguments) == ("call_1", '{"a":1}')

        @pytest.mark.mockllm("secret-numbers")
        def test_conversation():
            with openai.OpenAI() as client:
                first = client.responses.create(model="m", input="secret numbers")
                results = [
                    {"type": "function_call_output", "call_id": call.call_id, "output": number}
                    for call, number in zip(first.output, ("42", "7"))
                ]
                last = client.responses.create(
                    model="m", previous_response_id=first.id, input=results
                )
            assert last.output_text == "Alice's number is 42, Bob's is 7."
        """
    ).assert_outcomes(passed=3)
