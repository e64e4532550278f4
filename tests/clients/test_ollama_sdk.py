"""Every scenario with the official `ollama` client, sync and async."""

from __future__ import annotations

import base64

import pytest

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.conversation import (
    PLAIN,
    SCENARIOS,
    converse,
    drive,
    drive_async,
    first,
    plays,
)
from tests.timeouts import GIVE_UP

ollama = pytest.importorskip("ollama")

from tests.clients.ollama_client import ASYNC_WAYS, WAYS  # noqa: E402 - needs the client

API = "ollama"
every_plain = pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
every_way = pytest.mark.parametrize("how", WAYS)


@pytest.fixture
def client(run):
    """The official client in the test's session."""
    with ollama.Client(host=run.root, timeout=GIVE_UP, trust_env=False) as client:
        yield client


def ignored(scenario):
    """The client has no field for tokens of the cache."""
    return {"usage"} if scenario.name == "token-usage" else set()


@pytest.mark.slow
@every_way
@every_plain
def test_conversation(client, run, scenario, how):
    """The client reads every answer of every scenario, and the server reads its history."""
    conversation = converse(scenario, API, ids=False, ignored=ignored(scenario))
    drive(conversation, lambda request: WAYS[how](client, request))
    run.expects_plays(plays(scenario, API))


@pytest.mark.parametrize("name", ["multi-hop", "parallel-tools", "reasoning"])
@every_way
def test_conversation_async(loop, run, name, how):
    """The asynchronous client reads the answers, too."""

    async def converse_all() -> None:
        conversation = converse(SCENARIOS[name], API, ids=False)
        async with ollama.AsyncClient(host=run.root, timeout=GIVE_UP, trust_env=False) as client:
            await drive_async(conversation, lambda request: ASYNC_WAYS[how](client, request))

    loop.run(converse_all())
    run.expects_plays(plays(SCENARIOS[name], API))


def test_an_error_is_the_last_line(client, run):
    """The client raises it after the text so far; its status was 200, so it has none."""
    chunks = []
    with pytest.raises(ollama.ResponseError) as raised:  # noqa: PT012 - of the iteration
        for chunk in client.chat(**first(SCENARIOS["stream-error"], API), stream=True):
            chunks.append(chunk.message.content)
    assert raised.value.status_code == -1
    assert raised.value.error
    assert "".join(chunks)
    run.expects("played")


def test_no_scenario_is_an_unknown_model(client, run):
    """A request that nothing answers gets status 404 and an error as text."""
    with pytest.raises(ollama.ResponseError, match="There is no scenario 'nope'") as raised:
        client.chat(model="mock/nope", messages=[{"role": "user", "content": "Hello"}])
    assert raised.value.status_code == 404
    run.expects("unmatched")


ECHO = """
scenario: echo
match: {user: {contains: sky}}
turns:
  - reply: [{reasoning: Let me think.}, {text: Blue}]
    repeat: true
"""


@pytest.fixture(scope="module")
def blue():
    """A client of a server with one scenario and with `--fallback auto`."""
    options = ServerOptions(speed=0, fallback="auto")
    with (
        ServerThread(loads(ECHO), options) as server,
        ollama.Client(host=server.url, timeout=GIVE_UP, trust_env=False) as client,
    ):
        yield client


def test_generate(blue):
    """`/api/generate` has the same answer in other fields; images are accepted."""
    image = base64.b64encode(b"an image").decode()
    whole = blue.generate(model="m", prompt="Why is the sky blue?", images=[image], think=True)
    assert (whole.response, whole.thinking, whole.done_reason) == ("Blue", "Let me think.", "stop")
    chunks = list(blue.generate(model="m", prompt="Why is the sky blue?", stream=True))
    assert "".join(chunk.response for chunk in chunks) == "Blue"
    assert "".join(chunk.thinking or "" for chunk in chunks) == "Let me think."
    assert chunks[-1].done
    assert chunks[-1].total_duration == sum(
        (chunks[-1].load_duration, chunks[-1].prompt_eval_duration, chunks[-1].eval_duration)
    )


def test_models(blue):
    """Lists of models, one model, embeddings."""
    assert "mock/echo" in [model.model for model in blue.list().models]
    assert "mock/echo" in [model.model for model in blue.ps().models]
    shown = blue.show("mock/echo")
    assert shown.modelinfo["general.architecture"] == "mockllm"
    assert "tools" in shown.capabilities
    embedded = blue.embed(model="nomic-embed-text", input=["a", "b"])
    assert [len(vector) for vector in embedded.embeddings] == [768, 768]
    assert len(blue.embeddings(model="nomic-embed-text", prompt="a").embedding) == 768
