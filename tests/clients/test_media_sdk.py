"""Images, speech and transcripts of `--fallback auto`, as the official SDKs read them."""

from __future__ import annotations

import base64
import io
import json
import struct
import wave

import openai
import pytest
from google import genai
from google.genai import types
from google.oauth2.credentials import Credentials
from openai import OpenAI

from tests.timeouts import GIVE_UP

SERVED = "scenario: a\nturns: [{reply: {text: a}}]"
SOUND = ("meeting.wav", b"RIFF....", "audio/wav")


@pytest.fixture
def served(serve):
    """A server without a scenario for the routes."""
    return serve(SERVED, fallback=True)


@pytest.fixture
def client(served):
    """OpenAI's client of the server."""
    url = f"{served.url}/v1"
    with OpenAI(api_key="k", base_url=url, timeout=GIVE_UP, max_retries=0) as made:
        yield made


def size_of(image: bytes) -> tuple[int, int]:
    """Width and height of a PNG image."""
    assert image.startswith(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    return struct.unpack(">II", image[16:24])


def test_images_have_the_size_that_is_asked_for(client):
    """Each of several images differs; the same request gets the same images."""
    answer = client.images.generate(model="gpt-image-1", prompt="a cat", n=2, size="1536x1024")
    images = [base64.b64decode(image.b64_json) for image in answer.data]
    assert [size_of(image) for image in images] == [(1536, 1024)] * 2
    assert images[0] != images[1]
    assert (answer.size, answer.output_format) == ("1536x1024", "png")
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert answer == client.images.generate(
        model="gpt-image-1", prompt="a cat", n=2, size="1536x1024"
    )


def test_an_image_by_url_is_a_data_url(client):
    """DALL-E sends URLs, unless it is asked for base64."""
    (image,) = client.images.generate(model="dall-e-2", prompt="a cat", size="256x256").data
    head, _, data = image.url.partition(",")
    assert head == "data:image/png;base64"
    assert size_of(base64.b64decode(data)) == (256, 256)
    other = client.images.generate(
        model="dall-e-2", prompt="a cat", size="256x256", response_format="b64_json"
    )
    assert other.data[0].b64_json == data


def test_images_are_streamed(client):
    """The stream has the whole image in its last event."""
    with client.images.generate(model="gpt-image-1", prompt="a cat", stream=True) as stream:
        (event,) = stream
    assert event.type == "image_generation.completed"
    assert size_of(base64.b64decode(event.b64_json)) == (1024, 1024)


def test_images_are_edited_and_varied(client):
    """The image that a form has decides, too."""
    images = [("a.png", b"one", "image/png"), ("b.png", b"two", "image/png")]
    edits = [
        client.images.edit(model="gpt-image-1", prompt="a hat", image=image).data[0].b64_json
        for image in (images[0], images[1], images)
    ]
    assert len(set(edits)) == 3
    with pytest.deprecated_call():
        (varied,) = client.images.create_variation(image=images[0], size="512x512").data
    assert size_of(base64.b64decode(varied.b64_json)) == (512, 512)
    with client.images.edit(prompt="a hat", image=images[0], stream=True) as stream:
        assert [event.type for event in stream] == ["image_edit.completed"]


def test_imagen_predicts_images(served):
    """Google's SDK gets as many images as it asks for, with their ratio."""
    client = genai.Client(
        vertexai=True,
        project="p",
        location="l",
        credentials=Credentials(token="t"),
        http_options=types.HttpOptions(base_url=served.url, timeout=int(GIVE_UP * 1000)),
    )
    config = types.GenerateImagesConfig(number_of_images=2, aspect_ratio="16:9")
    with pytest.warns(Warning, match="generate_images"):
        answer = client.models.generate_images(
            model="imagen-4.0-generate-001", prompt="a cat", config=config
        )
    images = [made.image.image_bytes for made in answer.generated_images]
    assert [size_of(image) for image in images] == [(1408, 768)] * 2


def test_speech_is_a_file_of_its_format(client):
    """WAV and PCM have a tone, the others silence; the first bytes are those of the format."""

    def spoken(text, **options):
        return client.audio.speech.create(model="tts-1", voice="alloy", input=text, **options)

    made = spoken("one two three", response_format="wav")
    assert made.response.headers["content-type"] == "audio/wav"
    with wave.open(io.BytesIO(made.content)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (1, 24000, 7200)
        samples = file.readframes(7200)
    assert spoken("one two three", response_format="pcm").content == samples
    assert spoken("three two one", response_format="pcm").content != samples
    assert spoken("one").content[:4].hex() == "fff314c0"
    for kind, start in (("aac", b"\xff\xf1"), ("flac", b"fLaC"), ("opus", b"OggS")):
        assert spoken("one", response_format=kind).content.startswith(start)


def test_speech_is_streamed(client):
    """As bytes, and as events with base64."""
    options = {"model": "gpt-4o-mini-tts", "voice": "alloy", "input": "one"}
    create = client.audio.speech.with_streaming_response.create
    with create(**options, response_format="pcm") as answer:
        assert len(b"".join(answer.iter_bytes())) == 4800
    with create(**options, stream_format="sse") as answer:
        lines = [line for line in answer.iter_lines() if line]
    delta, done = (json.loads(line.removeprefix("data: ")) for line in lines)
    assert (delta["type"], done["type"]) == ("speech.audio.delta", "speech.audio.done")
    assert base64.b64decode(delta["audio"]).hex().startswith("fff314c0")


def test_a_transcript_names_its_file(client):
    """Another file gets another text; the model decides how usage is counted."""
    create = client.audio.transcriptions.create
    first = create(model="gpt-4o-transcribe", file=SOUND)
    assert first.text.startswith("This is the transcript of meeting.wav, ")
    assert first.text != create(model="whisper-1", file=("meeting.wav", b"else")).text
    assert first.usage.type == "tokens"
    assert create(model="whisper-1", file=SOUND).usage.type == "duration"
    with pytest.deprecated_call():
        assert client.audio.translations.create(model="whisper-1", file=SOUND).text == first.text


def test_transcripts_have_each_format(client):
    """Subtitles last as long as the words."""

    def create(kind, **options):
        return client.audio.transcriptions.create(
            model="whisper-1", file=SOUND, response_format=kind, **options
        )

    text = create("json").text
    assert create("text") == f"{text}\n"
    assert create("srt") == f"1\n00:00:00,000 --> 00:00:00,700\n{text}\n\n"
    assert create("vtt") == f"WEBVTT\n\n00:00:00.000 --> 00:00:00.700\n{text}\n\n"
    verbose = create("verbose_json", timestamp_granularities=["word", "segment"])
    assert (verbose.duration, verbose.segments[0].end, verbose.text) == (0.7, 0.7, text)
    assert [word.word for word in verbose.words][:3] == ["This", "is", "the"]
    assert verbose.words[-1].end == 0.7
    assert create("verbose_json").words is None


def test_a_transcript_is_streamed(client):
    """The deltas join to the text of the last event; whisper does not stream."""
    create = client.audio.transcriptions.create
    with create(model="gpt-4o-transcribe", file=SOUND, stream=True) as stream:
        *deltas, done = stream
    assert "".join(event.delta for event in deltas) == done.text
    assert (done.type, done.usage.type) == ("transcript.text.done", "tokens")


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("images/generations", {}, "prompt"),
        ("images/generations", {"prompt": "a", "n": 11}, "n"),
        ("images/generations", {"prompt": "a", "n": "two"}, "n"),
        ("images/generations", {"prompt": "a", "size": "0x1"}, "size"),
        ("images/generations", {"prompt": "a", "size": "4097x16"}, "size"),
        ("images/generations", {"prompt": "a", "size": [1]}, "size"),
        ("images/generations", {"prompt": "a", "output_format": "jpeg"}, "output_format"),
        ("images/generations", {"prompt": "a", "response_format": "gif"}, "response_format"),
        ("images/edits", {"prompt": "a"}, "image"),
        ("audio/speech", {"model": "m", "voice": "v"}, "input"),
        ("audio/speech", {"model": "m", "voice": "v", "input": "a" * 4097}, "input"),
        ("audio/speech", {"model": "m", "input": "a"}, "voice"),
        ("audio/speech", {"voice": "v", "input": "a"}, "model"),
        ("audio/speech", {"model": "m", "voice": "v", "input": "a", "response_format": "ogg"},
         "response_format"),
        ("audio/transcriptions", {"model": "m"}, "file"),
    ],
)  # fmt: skip
def test_bad_requests_are_refused(served, path, body, param):
    """A request that the service refuses, or that would need a codec, names the field."""
    answer = served.http.post(f"/v1/{path}", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_bad_forms_are_refused(served, client):
    """A form without its end, and one with fields that are there twice, are no server errors."""
    head = {"content-type": "multipart/form-data; boundary=x"}
    broken = served.http.post("/v1/audio/transcriptions", headers=head, content=b"--x\r\n")
    assert "not the form" in broken.json()["error"]["message"]
    twice = {"model": "m", "response_format": ["json", "text"]}
    sent = {"data": twice, "files": {"file": ("a", b"1")}}
    answer = served.http.post("/v1/audio/transcriptions", **sent)
    assert answer.json()["error"]["param"] == "response_format"
    with pytest.raises(openai.BadRequestError, match="makes no other"):
        client.images.generate(prompt="a", output_format="webp")
    bad = {"instances": [{"prompt": "a"}], "parameters": {"aspectRatio": ["1:1"]}}
    refused = served.http.post("/v1/models/imagen-4:predict", json=bad)
    assert refused.json()["error"]["status"] == "INVALID_ARGUMENT"


def test_the_journal_has_the_models(served, client):
    """The model in a form is that of the request."""
    client.audio.transcriptions.create(model="whisper-1", file=SOUND)
    (entry,) = served.journal()
    assert (entry["outcome"], entry["model"]) == ("played", "whisper-1")
