"""Routes that call no model, with the official SDKs: scenarios with a route, `--fallback auto`."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.timeouts import GIVE_UP

SCENARIOS = """
scenario: vertex
match: {model: claude-x@1}
turns: [{reply: {text: on Vertex}}]
---
scenario: upload
route: POST /v1/files
match: {body: {purpose: batch, file: {filename: in.jsonl}}}
turns:
  - answer: {json: {id: file-1, object: file, bytes: 2, created_at: 1, filename: in.jsonl, purpose: batch, status: processed}}
---
scenario: content
route: GET /v1/files/{id}/content
turns: [{answer: {base64: AAH/}}]
---
scenario: batch
route: GET /v1/batches/{id}
turns:
  - answer: {json: &batch {id: b1, object: batch, status: in_progress, endpoint: /v1/x, input_file_id: file-1, completion_window: 24h, created_at: 1}}
  - answer: {json: {<<: *batch, status: completed}}
---
scenario: limited
route: POST /v1/images/generations
turns:
  - answer: {status: 429, headers: {retry-after-ms: "1"}, json: {error: {message: slow down}}}
  - answer: {json: {created: 1, data: [{b64_json: AAH/}]}}
---
scenario: speech
route: POST /v1/audio/speech
turns: [{answer: {base64: SUQz, headers: {content-type: audio/mpeg}}}]
"""  # noqa: E501 - objects of the API


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ServerThread(loads(SCENARIOS), ServerOptions(fallback=True)) as thread:
        yield thread.url


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    base = f"{url}/v1"
    with openai.OpenAI(base_url=base, api_key="k", max_retries=1, timeout=GIVE_UP) as made:
        yield made


def test_openai_files(client: openai.OpenAI) -> None:
    """An upload matches by its parts, and a binary answer arrives as it is."""
    uploaded = client.files.create(file=("in.jsonl", b"{}"), purpose="batch")
    assert uploaded.id == "file-1"
    assert client.files.content(uploaded.id).read() == b"\0\1\xff"
    with pytest.raises(openai.NotFoundError, match=r"body\.file\.filename must be 'in\.jsonl'"):
        client.files.create(file=("out.jsonl", b"{}"), purpose="batch")


def test_openai_polling(client: openai.OpenAI) -> None:
    """A client that polls gets one turn after the other."""
    assert [client.batches.retrieve("b1").status for _ in range(3)] == [
        "in_progress",
        "completed",
        "completed",
    ]


def test_openai_images_are_retried(client: openai.OpenAI) -> None:
    """An error of a route is one that the SDK retries."""
    assert client.images.generate(model="m", prompt="a cat").data[0].b64_json == "AAH/"


def test_openai_speech(client: openai.OpenAI) -> None:
    """Audio arrives as it is."""
    assert client.audio.speech.create(model="m", voice="alloy", input="hi").read() == b"ID3"


@pytest.mark.parametrize("encoding", ["float", "base64", None])
def test_openai_embeddings(client: openai.OpenAI, encoding: str | None) -> None:
    """The SDK decodes the same vector from each format."""
    model = "text-embedding-3-small"
    more = {} if encoding is None else {"encoding_format": encoding}
    made = client.embeddings.create(model=model, input="hi", dimensions=5, **more)
    vector = made.data[0].embedding
    if encoding == "base64":
        assert isinstance(vector, str)
        return
    assert len(vector) == 5
    assert isclose(sum(value**2 for value in vector), 1, abs_tol=1e-5)
    plain = client.embeddings.create(
        model=model, input=["hi"], dimensions=5, encoding_format="float"
    )
    assert vector == pytest.approx(plain.data[0].embedding, abs=1e-6)


def test_openai_moderations(client: openai.OpenAI) -> None:
    """The answer has every field of the SDK's types."""
    (result,) = client.moderations.create(input="hi").results
    assert result.flagged is False
    fields = result.model_dump()
    assert all(None not in fields[name].values() for name in fields if name != "flagged")


def test_openai_input_tokens(client: openai.OpenAI) -> None:
    """Input tokens are counted."""
    assert client.responses.input_tokens.count(model="m", input="one two").input_tokens == 2


def test_azure_embeddings(url: str) -> None:
    """The deployment in the path is the model."""
    with openai.AzureOpenAI(
        azure_endpoint=url, api_key="k", api_version="2024-10-21", timeout=GIVE_UP
    ) as client:
        made = client.embeddings.create(model="text-embedding-3-large", input="hi")
    assert len(made.data[0].embedding) == 3072


def test_anthropic_on_vertex(url: str) -> None:
    """The model in the path of Vertex AI is that of the request, streamed or not."""
    with anthropic.AnthropicVertex(
        project_id="p", region="r", access_token="t", base_url=f"{url}/v1", timeout=GIVE_UP
    ) as client:
        fields: Any = {"max_tokens": 9, "messages": [{"role": "user", "content": "say it"}]}
        whole = client.messages.create(model="claude-x@1", **fields)
        with client.messages.stream(model="claude-x@1", **fields) as stream:
            assert stream.get_final_text() == "on Vertex"
    assert whole.model == "claude-x@1"


def test_google_embeddings(url: str) -> None:
    """Contents get vectors of the dimensions requested."""
    options = types.HttpOptions(base_url=url)
    client = genai.Client(api_key="k", http_options=options)
    made = client.models.embed_content(
        model="gemini-embedding-001",
        contents=["one", "two"],
        config=types.EmbedContentConfig(output_dimensionality=6),
    )
    assert made.embeddings is not None
    assert [len(embedding.values or ()) for embedding in made.embeddings] == [6, 6]
    assert made.embeddings[0].values != made.embeddings[1].values
    assert client.models.count_tokens(model="gemini-x", contents="one two").total_tokens == 2


@pytest.mark.parametrize("model", ["text-embedding-005", "gemini-embedding-2-preview"])
def test_google_embeddings_on_vertex(url: str, model: str) -> None:
    """Vertex AI's two forms of embeddings are answered."""
    from google.oauth2.credentials import Credentials

    client = genai.Client(
        vertexai=True,
        project="p",
        location="l",
        credentials=Credentials(token="t"),  # type: ignore[no-untyped-call]
        http_options=types.HttpOptions(base_url=url),
    )
    made = client.models.embed_content(
        model=model, contents="one", config=types.EmbedContentConfig(output_dimensionality=6)
    )
    assert made.embeddings is not None
    assert [len(embedding.values or ()) for embedding in made.embeddings] == [6]
