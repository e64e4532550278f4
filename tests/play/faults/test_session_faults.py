"""Faults in tests with `mockllm_session`, and clients that try again."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from mockllm.core.errors import UsageError

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "resilient_client"
QUESTION: Any = [{"role": "user", "content": "Hello"}]


def client(session: Any, **options: Any) -> Any:
    openai = pytest.importorskip("openai")
    return openai.OpenAI(base_url=session.openai_url, api_key="key", **options)


def answer(openai_client: Any) -> str:
    """The text of a streamed answer."""
    stream = openai_client.chat.completions.create(model="m", messages=QUESTION, stream=True)
    with stream:
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


@pytest.mark.slow
@pytest.mark.mockllm(fault="cut:after=2 events,end=reset", unplayed=True)
def test_a_marker_breaks_answers(mockllm_session: Any) -> None:
    """Every answer has the fault, until the test takes it away."""
    openai = pytest.importorskip("openai")
    mockllm_session.reply("Hello there")
    with client(mockllm_session, max_retries=0) as sdk:
        with pytest.raises(openai.APIConnectionError):
            answer(sdk)
        mockllm_session.fault = ()
        assert answer(sdk) == "Hello there"
    first, second = mockllm_session.journal
    assert (first.fault, second.fault) == ("cut:after=2 events,end=reset", "")
    assert first.sent.struck_after == first.sent.bytes


@pytest.mark.mockllm(no_requests=True)
def test_a_wrong_fault_changes_nothing(mockllm_session: Any) -> None:
    """The error has what there is."""
    with pytest.raises(UsageError, match="there is no fault 'cutt'; did you mean 'cut'"):
        mockllm_session.fault = "cutt:after=1 event"
    assert mockllm_session.fault == ()


DIES = """
scenario: dies
turns:
  - attempts:
      - fault: {cut: {after: 3 events, end: END}}
    reply: {text: It works now., split: words}
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "reset", "chunk"])
def test_the_stream_dies_and_the_retry_succeeds(mockllm_session: Any, end: str) -> None:
    """With the SDK of OpenAI, which leaves the retry of a stream to its user."""
    openai = pytest.importorskip("openai")
    mockllm_session.add(DIES.replace("END", end))
    with client(mockllm_session) as sdk:
        with pytest.raises(openai.APIConnectionError):
            answer(sdk)
        assert answer(sdk) == "It works now."
    assert [entry.played.attempt for entry in mockllm_session.journal] == [1, 2]


@pytest.mark.slow
def test_langchain_tries_again(mockllm_session: Any) -> None:
    """`with_retry` asks again after a stream that died."""
    langchain = pytest.importorskip("langchain_openai")
    mockllm_session.add(DIES.replace("END", "reset"))
    model = langchain.ChatOpenAI(
        base_url=mockllm_session.openai_url, api_key="key", model="m", streaming=True
    )
    assert (
        model.with_retry(wait_exponential_jitter=False).invoke("Hello").content == "It works now."
    )
    assert [entry.played.attempt for entry in mockllm_session.journal] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "reset", "chunk", "orderly"])
def test_the_example_client_tries_again(
    mockllm_session: Any, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The client of examples/resilient_client replaces what it had shown."""
    pytest.importorskip("httpx")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    module = importlib.import_module("client")
    mockllm_session.add(DIES.replace("END", end))

    async def shown() -> str:
        url = mockllm_session.openai_url
        async with module.ResilientClient("chat", url, "key", backoff=0.01) as client:
            seen = ""
            async with client.stream("m", "Hello") as pieces:
                async for piece in pieces:
                    if piece is module.RESTART:
                        seen = ""
                    elif isinstance(piece, str):
                        seen += piece
            return seen

    try:
        assert asyncio.run(shown()) == "It works now."
    finally:
        for name in ("client", "apis", "failures"):
            sys.modules.pop(name, None)
    assert [entry.played.attempt for entry in mockllm_session.journal] == [1, 2]


@pytest.mark.mockllm(unplayed=True)
def test_a_fault_that_does_not_strike_fails_the_test(mockllm_session: Any) -> None:
    """Nothing was tested by it; `unplayed=True` allows it."""
    httpx = pytest.importorskip("httpx")
    mockllm_session.reply("Hello there")
    mockllm_session.fault = "cut:after=500 events"
    url, body = f"{mockllm_session.openai_url}/chat/completions", {"model": "m", "stream": True}
    headers = {"authorization": "Bearer key"}
    assert httpx.post(url, json={**body, "messages": QUESTION}, headers=headers).status_code == 200
    with pytest.raises(AssertionError, match="request 1: a fault did not strike: cut:after=500"):
        mockllm_session.verify()
    mockllm_session.verify(unplayed=True)
    mockllm_session.fault = ()
