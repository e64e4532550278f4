"""Images and sound in answers, as the official SDKs read them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from google import genai
from google.genai import types

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.bedrock_client import bedrock
from tests.timeouts import GIVE_UP

GIF = base64.b64decode("R0lGODlhAQABAAAAACwAAAAAAQABAAA=")
SOUND = bytes(range(14))
TEXT = f"""\
scenario: draws
match: {{user: draw}}
turns:
  - reply:
      - {{text: Here., split: 3}}
      - image: {{base64: {base64.b64encode(GIF).decode()}, type: image/gif}}
        signature: c2ln
      - text: Done.
  - reply: {{text: Once more.}}
---
scenario: speaks
match: {{user: speak}}
turns:
  - reply:
      audio: {{base64: {base64.b64encode(SOUND).decode()}, type: audio/L16;codec=pcm;rate=24000}}
      transcript: Hello there, you.
      split: words
      fragment_bytes: 6
  - reply: {{text: Once more.}}
"""
SCENARIOS = loads(TEXT)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ServerThread(SCENARIOS, ServerOptions(speed=0)) as running:
        yield running.url


@pytest.fixture(scope="module")
def openai_client(url: str) -> Iterator[openai.OpenAI]:
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(
        api_key="sk-test", base_url=f"{url}/v1", timeout=GIVE_UP, http_client=http
    ) as client:
        yield client


@pytest.fixture(scope="module")
def google_client(url: str) -> genai.Client:
    options = types.HttpOptions(base_url=url, client_args={"trust_env": False})
    return genai.Client(api_key="key", http_options=options)


ASK_CHAT: dict[str, Any] = {
    "model": "gpt-audio",
    "modalities": ["text", "audio"],
    "audio": {"voice": "alloy", "format": "pcm16"},
    "messages": [{"role": "user", "content": "Please speak."}],
}


def parts_of(response: types.GenerateContentResponse) -> list[types.Part]:
    assert response.candidates is not None
    content = response.candidates[0].content
    assert content is not None
    return content.parts or []


def test_google_reads_an_image(google_client: genai.Client) -> None:
    """google-genai has the bytes, the type and the signature, of a body and of a stream."""
    models = google_client.models
    body = models.generate_content(model="gemini-image", contents="draw")
    streamed = [
        part
        for chunk in models.generate_content_stream(model="gemini-image", contents="draw")
        for part in parts_of(chunk)
    ]
    for parts in (parts_of(body), streamed):
        (image,) = [part for part in parts if part.inline_data is not None]
        assert image.inline_data is not None
        assert (image.inline_data.data, image.inline_data.mime_type) == (GIF, "image/gif")
        assert image.thought_signature == b"sig"
        assert "".join(part.text or "" for part in parts) == "Here.Done."


def test_google_reads_sound(google_client: genai.Client) -> None:
    """A body has all of the sound in one part, a stream a fragment in each."""
    models = google_client.models
    body = models.generate_content(model="gemini-tts", contents="speak")
    (part,) = parts_of(body)
    assert part.inline_data is not None
    assert part.inline_data.data == SOUND
    blobs = [
        part.inline_data
        for chunk in models.generate_content_stream(model="gemini-tts", contents="speak")
        for part in parts_of(chunk)
        if part.inline_data is not None
    ]
    assert [blob.data for blob in blobs] == [SOUND[:6], SOUND[6:12], SOUND[12:]]
    assert {blob.mime_type for blob in blobs} == {"audio/L16;codec=pcm;rate=24000"}


def test_google_sends_an_image_back(google_client: genai.Client) -> None:
    """The history with the image is accepted, and the conversation goes on."""
    chat = google_client.chats.create(model="gemini-image")
    chat.send_message("draw")
    assert chat.send_message("again").text == "Once more."


def test_openai_reads_sound_of_a_body(openai_client: openai.OpenAI) -> None:
    """`message.audio` has the sound as base64, its transcript, an id and when it expires."""
    message = openai_client.chat.completions.create(**ASK_CHAT).choices[0].message
    assert message.content is None
    assert message.audio is not None
    assert base64.b64decode(message.audio.data) == SOUND
    assert message.audio.transcript == "Hello there, you."
    assert message.audio.id.startswith("audio_")
    assert message.audio.expires_at > 0


def test_openai_accumulates_sound(openai_client: openai.OpenAI) -> None:
    """The accumulator of openai-python joins the fragments of a stream to the sound of the body."""
    body = openai_client.chat.completions.create(**ASK_CHAT).choices[0].message
    with openai_client.chat.completions.stream(**ASK_CHAT) as stream:
        message = stream.get_final_completion().choices[0].message
    assert message.audio == body.audio
    assert message.content is None


def test_openai_sends_the_id_of_a_sound_back(openai_client: openai.OpenAI) -> None:
    """A later request may name the sound by its id in place of a text."""
    message = openai_client.chat.completions.create(**ASK_CHAT).choices[0].message
    assert message.audio is not None
    said = {"role": "assistant", "audio": {"id": message.audio.id}}
    messages = [*ASK_CHAT["messages"], said, {"role": "user", "content": "And?"}]
    again = openai_client.chat.completions.create(**{**ASK_CHAT, "messages": messages})
    assert again.choices[0].message.content == "Once more."


def test_responses_has_images_as_calls(openai_client: openai.OpenAI) -> None:
    """Responses sends an image as the result of its image tool, streamed and not."""
    response = openai_client.responses.create(model="gpt", input="draw")
    with openai_client.responses.stream(model="gpt", input="draw") as stream:
        streamed = stream.get_final_response()
    for one in (response, streamed):
        (call,) = [item for item in one.output if item.type == "image_generation_call"]
        assert base64.b64decode(call.result or "") == GIF
        assert one.output_text == "Here.Done."


def test_boto3_reads_an_image(url: str) -> None:
    """boto3 has the bytes of an image, of a body and of a stream."""
    ask = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "draw"}]}]}
    with bedrock(url) as client:
        message = client.converse(**ask)["output"]["message"]
        events = list(client.converse_stream(**ask)["stream"])
    (image,) = [block["image"] for block in message["content"] if "image" in block]
    assert image == {"format": "gif", "source": {"bytes": GIF}}
    starts = [event["contentBlockStart"] for event in events if "contentBlockStart" in event]
    assert [start["start"] for start in starts] == [{"image": {"format": "gif"}}]
    deltas = [
        event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event
    ]
    assert [delta["image"] for delta in deltas if "image" in delta] == [{"source": {"bytes": GIF}}]
