"""No service's route is answered by another one's code, as the official SDKs see it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import anthropic
import botocore.exceptions
import openai
import pytest
from google import genai
from google.genai import errors, types

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.bedrock_client import bedrock

SCENARIOS = "{scenario: a, match: {user: Hi}, turns: [{reply: {text: Hello}, repeat: true}]}"


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "fallback"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    """A server without and with answers made from requests."""
    with ServerThread(loads(SCENARIOS), ServerOptions(fallback=request.param)) as running:
        yield running


@pytest.fixture(scope="module")
def plain() -> Iterator[ServerThread]:
    """A server without answers made from requests."""
    with ServerThread(loads(SCENARIOS)) as running:
        yield running


@pytest.fixture(scope="module")
def auto() -> Iterator[ServerThread]:
    """A server with answers made from requests."""
    with ServerThread(loads(SCENARIOS), ServerOptions(fallback=True)) as running:
        yield running


def invoke(url: str, model: str, body: dict[str, Any]) -> dict[str, Any]:
    """The answer of InvokeModel."""
    with bedrock(url, attempts=1) as client:
        answer = client.invoke_model(modelId=model, body=json.dumps(body))
        whole: dict[str, Any] = json.loads(answer["body"].read())
        return whole


@pytest.mark.parametrize(
    ("model", "body", "size"),
    [
        ("amazon.titan-embed-text-v1", {}, 1536),
        ("amazon.titan-embed-text-v2:0", {}, 1024),
        ("amazon.titan-embed-text-v2:0", {"dimensions": 256, "normalize": True}, 256),
        ("amazon.titan-embed-image-v1", {"embeddingConfig": {"outputEmbeddingLength": 384}}, 384),
    ],
)
def test_titan(auto: ServerThread, model: str, body: dict[str, Any], size: int) -> None:
    """A unit vector for a text; equal texts have equal ones."""
    one, other = (invoke(auto.url, model, {"inputText": "a cat", **body}) for _ in range(2))
    assert one == other
    assert len(one["embedding"]) == size
    assert math.isclose(sum(value**2 for value in one["embedding"]), 1, rel_tol=1e-3)
    assert one["inputTextTokenCount"] == 2


def test_titan_by_type(auto: ServerThread) -> None:
    """Version 2 has the vectors of each type that is asked for."""
    asked = {"inputText": "x", "embeddingTypes": ["binary"], "dimensions": 256}
    answer = invoke(auto.url, "amazon.titan-embed-text-v2:0", asked)
    assert set(answer) == {"embeddingsByType", "inputTextTokenCount"}
    assert set(answer["embeddingsByType"]["binary"]) == {0, 1}


def test_cohere(auto: ServerThread) -> None:
    """Version 3 has a list of vectors, unless types are named; version 4 has types always."""
    asked = {"texts": ["Hello", "World"], "input_type": "search_query"}
    floats = invoke(auto.url, "cohere.embed-english-v3", asked)
    assert [len(vector) for vector in floats["embeddings"]] == [1024, 1024]
    assert (floats["response_type"], floats["texts"]) == ("embeddings_floats", ["hello", "world"])
    types = {**asked, "embedding_types": ["int8"]}
    by_type = invoke(auto.url, "cohere.embed-multilingual-v3", types)
    assert (by_type["response_type"], by_type["texts"]) == ("embeddings_by_type", asked["texts"])
    assert [len(vector) for vector in by_type["embeddings"]["int8"]] == [1024, 1024]
    later = invoke(auto.url, "us.cohere.embed-v4:0", {**asked, "output_dimension": 512})
    assert [len(vector) for vector in later["embeddings"]["float"]] == [512, 512]


def test_nova(auto: ServerThread) -> None:
    """One vector of one input."""
    params = {"text": {"truncationMode": "END", "value": "x"}, "embeddingDimension": 256}
    asked = {"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": params}
    answer = invoke(auto.url, "amazon.nova-2-multimodal-embeddings-v1:0", asked)
    ((vector, kind),) = [(e["embedding"], e["embeddingType"]) for e in answer["embeddings"]]
    assert (len(vector), kind) == (256, "TEXT")


@pytest.mark.parametrize(
    ("model", "body", "message"),
    [
        ("amazon.titan-embed-text-v2:0", {}, "inputText"),
        ("amazon.titan-embed-text-v2:0", {"inputText": "x", "dimensions": 7}, "256, 512, 1024"),
        ("amazon.titan-embed-image-v1", {}, "inputText or inputImage"),
        ("cohere.embed-english-v3", {"texts": [], "input_type": "x"}, "1 to 96"),
        ("cohere.embed-english-v3", {"texts": ["x"]}, "input_type"),
        ("amazon.nova-2-multimodal-embeddings-v1:0", {"taskType": "OTHER"}, "SINGLE_EMBEDDING"),
    ],
)
def test_wrong_embeddings(
    auto: ServerThread, model: str, body: dict[str, Any], message: str
) -> None:
    """They are refused as Bedrock refuses requests."""
    with pytest.raises(botocore.exceptions.ClientError, match=message) as caught:
        invoke(auto.url, model, body)
    assert caught.value.response["Error"]["Code"] == "ValidationException"


@pytest.mark.parametrize(
    "model",
    [
        "us.amazon.nova-pro-v1:0",
        "amazon.titan-text-express-v1",
        "meta.llama3-8b-instruct-v1:0",
        "mistral.mistral-large-2402-v1:0",
        "cohere.command-r-v1:0",
        "openai.gpt-oss-120b-1:0",
    ],
)
def test_other_vendors(server: ServerThread, model: str) -> None:
    """Their bodies are their own: one line says what is known, and how to add it, in the form of
    Bedrock and not of Anthropic."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        invoke(server.url, model, {"prompt": "Hi"})
    error = caught.value.response["Error"]
    assert error["Code"] == "ResourceNotFoundException"
    assert "Converse is played for all models" in error["Message"]
    assert "add a scenario with 'route: POST /model/" in error["Message"]


def test_models_of_anthropic(server: ServerThread) -> None:
    """They are answered by scenarios, as before; so is a profile whose name says no vendor."""
    body = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    profile = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
    for model in ("eu.anthropic.claude-sonnet-4-5", profile):
        assert invoke(server.url, model, body)["content"][0]["text"] == "Hello"


def test_files_of_anthropic(plain: ServerThread) -> None:
    """OpenAI's files are not theirs: an error of their form."""
    with anthropic.Anthropic(base_url=plain.url, api_key="k", max_retries=0) as client:
        calls = [
            client.beta.files.list,
            lambda: client.beta.files.upload(file=("a.txt", b"x", "text/plain")),
            lambda: client.beta.files.delete("file_1"),
        ]
        for call in calls:
            with pytest.raises(anthropic.NotFoundError, match="mockllm knows no route") as caught:
                call()
            body: Any = caught.value.body
            assert (body["type"], body["error"]["type"]) == ("error", "not_found_error")
            assert "Did you mean" not in body["error"]["message"]
        assert "mock/a" in [model.id for model in client.models.list()]


def test_files_of_google(plain: ServerThread) -> None:
    """The same for Gemini's, whose error has a status."""
    options = types.HttpOptions(base_url=plain.url)
    with genai.Client(api_key="k", http_options=options) as client:
        for call in (client.files.list, lambda: client.files.get(name="x"), client.caches.list):
            with pytest.raises(errors.ClientError, match="mockllm knows no route") as caught:
                call()
            assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")


def test_files_of_each_service(auto: ServerThread) -> None:
    """No service lists the files of another one."""
    options = types.HttpOptions(base_url=auto.url)
    with (
        anthropic.Anthropic(base_url=auto.url, api_key="k", max_retries=0) as claude,
        genai.Client(api_key="k", http_options=options) as gemini,
        openai.OpenAI(base_url=f"{auto.url}/v1", api_key="k", max_retries=0) as client,
    ):
        theirs = claude.beta.files.upload(file=("a.txt", b"x", "text/plain"))
        ours = client.files.create(file=("b.txt", b"x"), purpose="assistants")
        assert [file.id for file in claude.beta.files.list()] == [theirs.id]
        assert [file.id for file in client.files.list()] == [ours.id]
        assert list(gemini.files.list()) == []
        with pytest.raises(anthropic.NotFoundError):
            claude.beta.files.retrieve_metadata(ours.id)
        client.files.delete(ours.id)


def test_files_of_openai(server: ServerThread) -> None:
    """Requests without a sign of another client are for OpenAI's."""
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as client:
        assert list(client.files.list()) == []


def test_what_a_fallback_would_answer(auto: ServerThread) -> None:
    """A path of several methods is no wrong method of them: `compact` is no response."""
    with openai.OpenAI(base_url=f"{auto.url}/v1", api_key="k", max_retries=0) as client:
        assert client.responses.compact(model="m", input="x").object == "response.compaction"
    with (
        ServerThread(loads(SCENARIOS)) as plain,
        openai.OpenAI(base_url=f"{plain.url}/v1", api_key="k", max_retries=0) as client,
        pytest.raises(openai.NotFoundError, match="--fallback auto would answer it"),
    ):
        client.responses.compact(model="m", input="x")
