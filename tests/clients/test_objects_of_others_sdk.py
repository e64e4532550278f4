"""Objects that clients make at Anthropic, Gemini, Cohere, Ollama and vLLM, and what else these have
with `--fallback auto`, with their SDKs."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import cohere
import httpx
import ollama
import pytest
from google import genai
from google.genai import errors, types
from google.oauth2.credentials import Credentials

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread

SCENARIOS = """
scenario: a
match: {user: Hi}
turns: [{reply: {text: Hello there}, repeat: true}]
---
scenario: weather
match: {user: Weather?}
turns:
  - reply: [{text: I look.}, {tool: get_weather, arguments: {city: Oslo}}]
  - reply: {text: It rains.}
"""


@pytest.fixture(scope="module", params=[True, False], ids=["alone", "shared"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerThread]:
    """A server with answers made from requests, alone or with a shared state."""
    state = None if request.param else f"sqlite:{tmp_path_factory.mktemp('state') / 'state.db'}"
    with ServerThread(loads(SCENARIOS), ServerOptions(fallback=True, state=state)) as running:
        yield running


@pytest.fixture(scope="module")
def plain() -> Iterator[ServerThread]:
    """A server without the fallback."""
    with ServerThread(loads(SCENARIOS)) as running:
        yield running


@pytest.fixture
def url(server: ServerThread, request: pytest.FixtureRequest) -> str:
    """The base URL of a session of its own."""
    return f"{server.url}/s/{request.node.originalname}"


def claude(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)


def gemini(url: str) -> genai.Client:
    return genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))


# Anthropic


def test_files_of_anthropic(url: str) -> None:
    """They are uploaded, shown, listed in pages and deleted; no upload is downloaded."""
    with claude(url) as client:
        files = client.beta.files
        one, two = (files.upload(file=(f"{n}.txt", b"abc", "text/plain")) for n in "ab")
        assert (one.filename, one.mime_type, one.size_bytes) == ("a.txt", "text/plain", 3)
        assert files.retrieve_metadata(one.id) == one
        assert [file.id for file in files.list(limit=1)] == [two.id, one.id]
        with pytest.raises(anthropic.BadRequestError, match="not downloadable"):
            files.download(one.id)
        assert files.delete(one.id).type == "file_deleted"
        with pytest.raises(anthropic.NotFoundError, match="File not found") as caught:
            files.retrieve_metadata(one.id)
        body: Any = caught.value.body
        assert body["error"]["type"] == "not_found_error"
        assert [file.id for file in files.list()] == [two.id]


def skill(name: str, about: str) -> Any:
    text = f"---\nname: {name}\ndescription: {about}\n---\nDo it.\n"
    return [("pdf/SKILL.md", text.encode(), "text/markdown")]


def test_skills(url: str) -> None:
    """They have versions, whose name and description `SKILL.md` says."""
    with claude(url) as client:
        skills = client.beta.skills
        made = skills.create(files=skill("pdf", "Reads PDFs."))
        assert (made.display_name, made.source.type) == ("pdf", "custom")
        named = skills.create(files=skill("pdf", ""), display_name="Other")
        assert [one.display_name for one in skills.list(limit=1)] == ["Other", "pdf"]
        version = skills.versions.create(made.id, files=skill("pdf", "Writes PDFs."))
        assert skills.retrieve(made.id).latest_version_id == version.id
        listed = skills.versions.list(made.id)
        assert [one.description for one in listed] == ["Writes PDFs.", "Reads PDFs."]
        assert skills.versions.retrieve(version.id, skill_id=made.id) == version
        skills.versions.delete(version.id, skill_id=made.id)
        with pytest.raises(anthropic.NotFoundError, match="Skill version not found"):
            skills.versions.retrieve(version.id, skill_id=made.id)
        with pytest.raises(anthropic.BadRequestError, match=r"SKILL\.md"):
            skills.create(files=[("a.txt", b"x", "text/plain")])
        skills.delete(named.id)
        with pytest.raises(anthropic.NotFoundError, match="Skill not found"):
            skills.retrieve(named.id)


# Gemini


def test_cached_contents(url: str) -> None:
    """They are made, used, prolonged, listed and deleted, and count their tokens."""
    with gemini(url) as client:
        config = types.CreateCachedContentConfig(contents=["one two"], ttl="60s", display_name="d")
        made = client.caches.create(model="gemini-2.5-flash", config=config)
        assert made.name is not None
        assert made.usage_metadata is not None
        assert made.usage_metadata.total_token_count == 2
        assert client.caches.get(name=made.name) == made
        used = types.GenerateContentConfig(cached_content=made.name)
        answer = client.models.generate_content(
            model="gemini-2.5-flash", contents="Hi", config=used
        )
        assert answer.text == "Hello there"
        longer = types.UpdateCachedContentConfig(ttl="120s")
        changed = client.caches.update(name=made.name, config=longer)
        assert (changed.expire_time - made.expire_time).seconds == 60  # type: ignore[operator]
        other = client.caches.create(model="gemini-2.5-flash")
        pages = client.caches.list(config={"page_size": 1})
        assert [one.name for one in pages] == [other.name, made.name]
        client.caches.delete(name=made.name)
        with pytest.raises(errors.ClientError, match="Requested entity was not found") as caught:
            client.caches.get(name=made.name)
        assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
        wrong = types.UpdateCachedContentConfig(ttl="soon")
        with pytest.raises(errors.ClientError, match="ttl: must be seconds"):
            client.caches.update(name=str(other.name), config=wrong)


def test_files_of_gemini(url: str) -> None:
    """They are uploaded in pieces of any size, and may have a name that the client gives."""
    with gemini(url) as client:

        def upload(data: bytes, **fields: Any) -> types.File:
            config = types.UploadFileConfig(mime_type="text/plain", **fields)
            return client.files.upload(file=io.BytesIO(data), config=config)

        one = upload(b"hello", name="mine", display_name="Mine")
        assert (one.name, one.display_name, one.size_bytes) == ("files/mine", "Mine", 5)
        assert one.state is types.FileState.ACTIVE
        assert one.uri == f"{url}/v1beta/files/mine"
        assert client.files.get(name="mine") == one
        large = upload(b"x" * 9_000_000)  # more than a chunk of the SDK
        assert client.files.get(name=str(large.name)).size_bytes == 9_000_000
        assert [file.name for file in client.files.list()] == [large.name, one.name]
        with pytest.raises(errors.ClientError, match="already exists"):
            upload(b"again", name="mine")
        client.files.delete(name="mine")
        with pytest.raises(errors.ClientError, match="it may not exist") as caught:
            client.files.get(name="mine")
        assert (caught.value.code, caught.value.status) == (403, "PERMISSION_DENIED")
        assert upload(b"new", name="mine").size_bytes == 3
        assert client.files.get(name="mine").size_bytes == 3


def test_checksums_of_files(url: str) -> None:
    """The checksum is that of the bytes, in base64."""
    with gemini(url) as client:
        config = types.UploadFileConfig(mime_type="text/plain")
        made = client.files.upload(file=io.BytesIO(b"hello"), config=config)
    digest = hashlib.sha256(b"hello").digest()
    assert made.sha256_hash == base64.b64encode(digest).decode()


def test_videos_on_vertex(url: str) -> None:
    """They are operations, which are polled; each video is a valid file without content."""
    options = types.HttpOptions(base_url=url)
    where: Any = {"project": "p", "location": "l", "credentials": Credentials("t")}
    with genai.Client(vertexai=True, http_options=options, **where) as client:
        source = types.GenerateVideosSource(prompt="a cat")
        operation = client.models.generate_videos(model="veo-3", source=source)
        polls = 0
        while not operation.done:
            operation, polls = client.operations.get(operation), polls + 1
        assert polls == 2
        assert operation.response is not None
        (made,) = operation.response.generated_videos or ()
        assert made.video is not None
        assert b"ftypisom" in (made.video.video_bytes or b"")
        cached = client.caches.create(model="gemini-2.5-flash")
        assert [one.name for one in client.caches.list()] == [cached.name]


def test_videos(url: str) -> None:
    """The Gemini API has URIs, below which the files are."""
    place = f"{url}/v1beta/models/veo-3"
    asked = {"instances": [{"prompt": "a cat"}], "parameters": {"sampleCount": 2}}
    made = httpx.post(f"{place}:predictLongRunning", json=asked).json()
    polled = [httpx.get(f"{url}/v1beta/{made['name']}").json() for _ in range(2)]
    assert ["done" in one for one in polled] == [False, True]
    samples = polled[1]["response"]["generateVideoResponse"]["generatedSamples"]
    assert len(samples) == 2
    video = httpx.get(samples[0]["video"]["uri"])
    assert (video.status_code, video.headers["content-type"]) == (200, "video/mp4")
    assert httpx.get(f"{place}/operations/none").status_code == 404


# Cohere


@pytest.fixture
def first(url: str) -> Iterator[cohere.Client]:
    """A client of Cohere's first version."""
    with cohere.Client(api_key="k", base_url=url) as client:
        yield client


def test_first_chat(first: cohere.Client) -> None:
    """Scenarios answer it, streamed or not."""
    whole = first.chat(message="Hi", preamble="Be kind.")
    assert (whole.text, whole.finish_reason) == ("Hello there", "COMPLETE")
    assert [entry.message for entry in whole.chat_history or ()] == ["Hi", "Hello there"]
    events: list[Any] = list(first.chat_stream(message="Hi"))
    kinds = [event.event_type for event in events]
    assert kinds == ["stream-start", "text-generation", "text-generation", "stream-end"]
    assert "".join(event.text for event in events[1:-1]) == "Hello there"
    assert events[-1].response.text == "Hello there"


def test_calls_of_the_first_chat(first: cohere.Client) -> None:
    """Tools are called, and their results lead to the next turn, either way."""
    city: Any = {"type": "str", "description": "", "required": True}
    tool: Any = {"name": "get_weather", "description": "w"}
    tool["parameter_definitions"] = {"city": city}
    asked = first.chat(message="Weather?", tools=[tool])
    (call,) = asked.tool_calls or ()
    assert (call.name, call.parameters) == ("get_weather", {"city": "Oslo"})
    results: Any = [{"call": call, "outputs": [{"text": "rain"}]}]
    more: Any = {"tools": [tool], "tool_results": results}
    after = first.chat(message="", chat_history=asked.chat_history, **more)
    again = first.chat(message="Weather?", **more)
    assert (after.text, again.text) == ("It rains.", "It rains.")


def test_errors_of_the_first_chat(first: cohere.Client) -> None:
    """A request without a message is refused in Cohere's form."""
    with pytest.raises(cohere.BadRequestError, match="message"):
        first.chat(message="")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pydantic, in the SDK itself
def test_other_routes_of_the_first_version(first: cohere.Client) -> None:
    """Embeddings have the forms of that version, rankings their documents, texts their tokens."""
    embed: Any = {"texts": ["a cat"], "model": "embed-english-v3.0", "input_type": "search_query"}
    floats: Any = first.embed(**embed)
    by_type: Any = first.embed(**embed, embedding_types=["float"])
    assert floats.response_type == "embeddings_floats"
    assert by_type.response_type == "embeddings_by_type"
    assert floats.embeddings == by_type.embeddings.float_
    ranked = first.rerank(query="cat", documents=["a dog", "a cat"], return_documents=True)
    best = ranked.results[0]
    assert best.document is not None
    assert (best.index, best.document.text) == (1, "a cat")
    made = first.tokenize(text="hé", model="command", offline=False)
    assert made.token_strings == ["h", "é"]
    text = first.detokenize(tokens=made.tokens, model="command", offline=False)
    assert text.text == "hé"


# Ollama


@pytest.fixture
def client(url: str) -> Iterator[ollama.Client]:
    """A client of Ollama."""
    with ollama.Client(host=url) as made:
        yield made


def names(client: ollama.Client) -> list[str | None]:
    return [model.model for model in client.list().models]


def test_models_of_ollama(client: ollama.Client) -> None:
    """Models are pulled, with progress, made, copied, pushed and deleted; then they are listed, or
    are not."""
    served = names(client)
    progress = list(client.pull("llama3", stream=True))
    assert [one.status for one in progress][-1] == "success"
    loading = [(one.completed, one.total) for one in progress if one.total]
    assert loading == sorted(loading)
    assert loading[-1][0] == loading[-1][1]
    assert client.pull("llama3").status == "success"
    assert [one.status for one in client.create("mine", from_="llama3", stream=True)][
        -1
    ] == "success"
    assert client.copy("mine", "other").status == "success"
    assert client.push("other").status == "success"
    assert sorted(names(client)) == sorted([*served, "llama3", "mine", "other"])
    assert client.delete("mine").status == "success"
    client.delete("mock/a")
    assert sorted(names(client)) == sorted({*served, "llama3", "other"} - {"mock/a"})
    calls: list[Callable[[], Any]] = [
        lambda: client.delete("mine"),
        lambda: client.show("mine"),
        lambda: client.push("mine"),
        lambda: client.copy("mine", "x"),
        lambda: client.create("x", from_="mine"),
    ]
    for call in calls:
        with pytest.raises(ollama.ResponseError, match="model 'mine' not found") as caught:
            call()
        assert caught.value.status_code == 404
    client.pull("mine")
    assert "mine" in names(client)


def test_blobs_of_ollama(client: ollama.Client, tmp_path: Path) -> None:
    """Files of a model can be sent."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"\0GGUF")
    digest = client.create_blob(file)
    assert client.create("made", files={"model.gguf": digest}).status == "success"


# vLLM


def test_server_of_vllm(url: str) -> None:
    """It has its health, its version, and tokens of texts and of messages."""
    assert httpx.get(f"{url}/health").status_code == 200
    assert httpx.get(f"{url}/version").json()["version"]
    made = httpx.post(f"{url}/tokenize", json={"model": "m", "prompt": "hé"}).json()
    assert (made["count"], made["tokens"], made["token_strs"]) == (2, [104, 233], None)
    sent = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "return_token_strs": True,
    }
    assert httpx.post(f"{url}/tokenize", json=sent).json()["token_strs"] == ["H", "i"]
    text = httpx.post(f"{url}/detokenize", json={"model": "m", "tokens": made["tokens"]}).json()
    assert text == {"prompt": "hé"}
    assert httpx.post(f"{url}/detokenize", json={"tokens": [-1]}).status_code == 400


# All of them


def test_without_the_fallback(plain: ServerThread) -> None:
    """Then one line says what would answer, in the form of the service."""
    with claude(plain.url) as client, pytest.raises(anthropic.NotFoundError, match="would answer"):
        client.beta.skills.list()
    with gemini(plain.url) as client, pytest.raises(errors.ClientError, match="would answer"):
        client.caches.list()
    with (
        cohere.Client(api_key="k", base_url=plain.url) as first,
        pytest.raises(cohere.NotFoundError, match="would answer"),
    ):
        first.chat(message="Hi")
    with (
        ollama.Client(host=plain.url) as local,
        pytest.raises(ollama.ResponseError, match="would answer"),
    ):
        local.pull("llama3")
    assert httpx.get(f"{plain.url}/health").status_code == 404


def test_services_beside_the_models(server: ServerThread) -> None:
    """One line says that these stay with routes of scenarios."""
    for path in ("/v1/fine_tuning/jobs", "/v1/evals", "/v1/assistants", "/v1/agents"):
        message = httpx.get(server.url + path).json()["error"]["message"]
        assert "a service beside the models, which mockllm leaves to routes of scenarios" in message
        assert f"'route: GET {path}'" in message
