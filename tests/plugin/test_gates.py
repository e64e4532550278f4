"""Gates in tests with `mockllm_session`: cancellation, and answers that are still on their way."""

from __future__ import annotations

import asyncio
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

from mockllm.core.errors import UsageError
from mockllm_pytest import gate
from tests.inner_pytest import ADDOPTS
from tests.timeouts import GIVE_UP

HELLO: Any = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}


def async_client(session: Any) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=session.openai_url, api_key="k", max_retries=0)


def test_a_stream_is_closed_while_it_goes_on(mockllm_session: Any) -> None:
    """The text before the gate has arrived, and the server sees that the client leaves."""
    mockllm_session.reply("Hello", gate("rest"), " world")

    async def first_words() -> str:
        async with async_client(mockllm_session) as client:
            stream = await client.chat.completions.create(**HELLO, stream=True)
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    await stream.close()
                    return str(chunk.choices[0].delta.content)
        raise AssertionError("no text came")

    assert asyncio.run(first_words()) == "Hello"
    (exchange,) = mockllm_session.wait_until_over(GIVE_UP)
    assert exchange.sent.client_gone
    assert [wait.ended for wait in exchange.sent.gates] == ["left"]


def test_a_task_is_cancelled_before_the_answer(mockllm_session: Any) -> None:
    """The request has come, and neither status nor headers were sent."""
    mockllm_session.reply("Hello", gate="thinking")

    async def cancel() -> None:
        async with async_client(mockllm_session) as client:
            asking = asyncio.create_task(client.chat.completions.create(**HELLO))
            await asyncio.to_thread(mockllm_session.wait_for_gate, "thinking", GIVE_UP)
            assert not asking.done()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    asyncio.run(cancel())
    (exchange,) = mockllm_session.wait_until_over(GIVE_UP)
    assert exchange.sent.client_gone
    assert exchange.sent.bytes == 0


def test_a_thread_gets_the_rest_when_the_test_says_so(mockllm_session: Any) -> None:
    """Of a client without an event loop; a gate may be opened before the request, too."""
    mockllm_session.reply("Hello", gate={"name": "thinking", "limit": "1m"})
    mockllm_session.reply("Bye", gate="bye")
    client = OpenAI(base_url=mockllm_session.openai_url, api_key="k", max_retries=0)
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(client.chat.completions.create, **HELLO)
        mockllm_session.wait_for_gate("thinking", GIVE_UP)
        assert not asking.done()
        mockllm_session.release("thinking")
        assert asking.result(GIVE_UP).choices[0].message.content == "Hello"
    mockllm_session.release("bye")
    assert client.chat.completions.create(**HELLO).choices[0].message.content == "Bye"
    with pytest.raises(UsageError, match="the gate 'bye' was released before, so no answer waits"):
        mockllm_session.wait_for_gate("bye")


@pytest.mark.mockllm(no_requests=True)
def test_wrong_names_and_waits_in_vain(mockllm_session: Any) -> None:
    """Each error says what there is."""
    mockllm_session.reply("Hello", gate="thinking")
    with pytest.raises(UsageError, match="has a gate 'thinkin'; did you mean 'thinking'"):
        mockllm_session.release("thinkin")
    with pytest.raises(UsageError, match="there are: thinking"):
        mockllm_session.wait_for_gate("other")
    with pytest.raises(TimeoutError, match=r"to the gate 'thinking' in 0.01 s. No request came"):
        mockllm_session.wait_for_gate("thinking", 0.01)
    assert mockllm_session.wait_until_over() == []


def test_a_client_that_does_not_leave(mockllm_session: Any) -> None:
    """It is named with the gate at which its answer waits."""
    mockllm_session.reply("Hello", gate="thinking")
    client = OpenAI(base_url=mockllm_session.openai_url, api_key="k", max_retries=0)
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(client.chat.completions.create, **HELLO)
        mockllm_session.wait_for_gate("thinking", GIVE_UP)
        with pytest.raises(TimeoutError, match="request 1 waits at the gate 'thinking' after"):
            mockllm_session.wait_until_over(0.01)
        assert "0 bytes, waits at the gate 'thinking'" in mockllm_session.format_exchanges()
        mockllm_session.release("thinking")
        asking.result(GIVE_UP)


def test_a_gate_that_nobody_opens_fails_the_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its name and what to do, and without an option that would allow it."""
    monkeypatch.setenv("PYTEST_ADDOPTS", ADDOPTS)
    pytester.makepyfile(
        textwrap.dedent(
            """
            from openai import OpenAI


            def test_it(mockllm_session):
                mockllm_session.reply("Hello", gate={"name": "thinking", "limit": "5ms"})
                client = OpenAI(base_url=mockllm_session.openai_url, api_key="k")
                messages = [{"role": "user", "content": "Hi"}]
                client.chat.completions.create(model="m", messages=messages)
            """
        )
    )
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*request 1: nobody opened the gate 'thinking' in * s, so the answer went on; call *"]
    )
    assert "unopened=True" not in result.stdout.str()
