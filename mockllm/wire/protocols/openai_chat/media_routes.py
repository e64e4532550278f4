"""Answers of OpenAI's routes for images and audio. Images are small PNG files of one colour, which
follows from prompt and files; speech is a tone or silence; transcripts name the file. A word lasts
as long in speech and in transcripts.

https://platform.openai.com/docs/api-reference/images and
https://platform.openai.com/docs/api-reference/audio; the fields are those of the types in OpenAI's
Python SDK (`ImagesResponse`, `ImageGenCompletedEvent`, `ImageEditCompletedEvent`, `Transcription`,
`TranscriptionVerbose`, `TranscriptionStreamEvent`). How streams of transcripts end was seen in
output that users of the API have published.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import partial

from mockllm.core.errors import RequestError
from mockllm.core.events import Frame
from mockllm.core.http import Target
from mockllm.core.sample_files import (
    png,
    silent_aac,
    silent_flac,
    silent_mp3,
    silent_opus,
    tone,
    wav,
)
from mockllm.core.seeded import derive_int
from mockllm.core.text import shorten
from mockllm.core.tokens_and_fragments import tokens
from mockllm.wire.framing import sse
from mockllm.wire.protocols.base import created_at, dumps
from mockllm.wire.protocols.openai_common import bad_value, missing
from mockllm.wire.protocols.records import FallbackBody, FallbackRoute, Fields, Json
from mockllm.wire.protocols.values import array, mapping, string

_MOST_IMAGES = 10  # `n` of /images/generations
_MOST_PIXELS = 4096  # of one side
_PIXELS_OF_TOKEN = 1024

_WORD = 100
"""How long a word lasts, in milliseconds."""

_LONGEST = 5_000
"""How long speech may last, in milliseconds."""

_LONGEST_NAME = 60
_MOST_CHARACTERS = 4096  # of `input` of /audio/speech
_FILES: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "mp3": ("audio/mpeg", silent_mp3),
    "opus": ("audio/ogg", silent_opus),
    "aac": ("audio/aac", silent_aac),
    "flac": ("audio/flac", silent_flac),
}
"""The formats for which there is silence: its media type, and a file of some milliseconds."""

_FORMATS = (*_FILES, "wav", "pcm")
_TEXT = "text/plain; charset=utf-8"


# Images


def _images(
    body: Fields,
    target: Target,
    *,
    event: str = "",
    has_prompt: bool = True,
    has_image: bool = True,
) -> Json | FallbackBody:
    """The images of a request.

    Args:
        event: the beginning of the types of events; "" where the route does not stream.
        has_prompt, has_image: whether the request needs a prompt, or images to begin with.
    """
    prompt = string(body.get("prompt"))
    if has_prompt and not prompt:
        raise missing("prompt")
    given = [value for key in ("image", "image[]", "images") for value in _as_list(body.get(key))]
    if has_image and not given:
        raise missing("image")
    if body.get("output_format", "png") != "png":
        raise _only("output_format", body["output_format"], ("png",))
    width, height = _size(body)
    seed = dumps([prompt, given])
    count = _count(body)
    files = [png(width, height, f"{seed}\x1f{index}") for index in range(count)]
    encoded = [base64.b64encode(file).decode() for file in files]
    used, made = tokens(prompt), -(-width * height // _PIXELS_OF_TOKEN) * count
    about: Json = {
        "background": "opaque",
        "output_format": "png",
        "quality": _quality(body),
        "size": f"{width}x{height}",
        "usage": {
            "input_tokens": used,
            "input_tokens_details": {"image_tokens": 0, "text_tokens": used},
            "output_tokens": made,
            "total_tokens": used + made,
        },
    }
    created = created_at(seed)
    if event and body.get("stream") in (True, "true"):
        kind = f"{event}.completed"
        events = [
            {"type": kind, "b64_json": b64, "created_at": created, **about} for b64 in encoded
        ]
        return _stream(*(Frame(event=kind, data=dumps(event)) for event in events))
    if _by_url(body, target):
        data = [{"url": f"data:image/png;base64,{b64}"} for b64 in encoded]
        return {"created": created, "data": data}
    return {"created": created, "data": [{"b64_json": b64} for b64 in encoded], **about}


def _as_list(value: object) -> list[object]:
    return array(value) or ([] if value is None else [value])


def _by_url(body: Fields, target: Target) -> bool:
    """Whether images are sent as URLs, as the models of DALL-E do unless asked otherwise."""
    wanted = body.get("response_format")
    if wanted not in (None, "url", "b64_json"):
        raise bad_value("response_format", str(wanted), ("url", "b64_json"))
    model = string(body.get("model")) or target.segments.get("deployment", "")
    return wanted == "url" or (wanted is None and model.startswith("dall-e"))


def _quality(body: Fields) -> str:
    quality = string(body.get("quality"))
    return quality if quality in ("low", "medium", "high", "xhigh", "max") else "medium"


def _count(body: Fields) -> int:
    """`n`, which is text in a form."""
    given = body.get("n")
    text = "1" if given is None else str(given)
    if not re.fullmatch("[0-9]{1,2}", text) or not 1 <= int(text) <= _MOST_IMAGES:
        raise RequestError(f"Invalid 'n': expected 1 to {_MOST_IMAGES}, got {text}.", param="n")
    return int(text)


def _size(body: Fields) -> tuple[int, int]:
    given = body.get("size")
    if given in (None, "auto"):
        return 1024, 1024
    match = re.fullmatch("([1-9][0-9]{0,3})x([1-9][0-9]{0,3})", str(given))
    if match is None or max(map(int, match.groups())) > _MOST_PIXELS:
        most = f"{_MOST_PIXELS}x{_MOST_PIXELS}"
        raise RequestError(
            f"Invalid 'size': expected WIDTHxHEIGHT up to {most}, or auto, got '{given}'.",
            param="size",
        )
    return int(match[1]), int(match[2])


def _only(where: str, got: object, known: tuple[str, ...]) -> RequestError:
    error = bad_value(where, str(got), known)
    advice = "mockllm makes no other; a scenario with a 'route' can answer with a file."
    return RequestError(f"{error.message} {advice}", param=where, code=error.code)


# Speech


def _speech(body: Fields, target: Target) -> FallbackBody:
    text = string(body.get("input"))
    if not text:
        raise missing("input")
    if len(text) > _MOST_CHARACTERS:
        message = f"Invalid 'input': expected at most {_MOST_CHARACTERS} characters."
        raise RequestError(message, param="input")
    served_model(body, target)
    if not body.get("voice"):
        raise missing("voice")
    wanted = body.get("response_format", "mp3")
    if wanted not in _FORMATS:
        raise bad_value("response_format", str(wanted), _FORMATS)
    kind, data = _spoken(text, wanted)
    if body.get("stream_format") != "sse":
        return FallbackBody(kind, (data,))
    used, made = tokens(text), -(-_length(text) // _WORD)
    counts = {"input_tokens": used, "output_tokens": made, "total_tokens": used + made}
    audio = base64.b64encode(data).decode()
    return _stream(
        Frame(data=dumps({"type": "speech.audio.delta", "audio": audio})),
        Frame(data=dumps({"type": "speech.audio.done", "usage": counts})),
    )


def _spoken(text: str, wanted: str) -> tuple[str, bytes]:
    """The media type and the file: a tone that follows from the text, or silence."""
    if wanted in _FILES:
        kind, silent = _FILES[wanted]
        return kind, silent(_length(text))
    samples = tone(220 + derive_int(text, "tone", below=440), _length(text))
    return ("audio/wav", wav(samples)) if wanted == "wav" else ("audio/pcm", samples)


def _length(text: str) -> int:
    return min(_LONGEST, _WORD * max(1, len(text.split())))


# Transcripts


def _transcript(body: Fields, target: Target, *, task: str) -> Json | FallbackBody:
    file = mapping(body.get("file"))
    if "sha256" not in file:
        raise missing("file")
    model = served_model(body, target)
    wanted = body.get("response_format", "json")
    if wanted not in tuple(_TRANSCRIPTS):
        raise bad_value("response_format", str(wanted), tuple(_TRANSCRIPTS))
    name = shorten(file["filename"], _LONGEST_NAME) or "a file"
    text = f"This is the transcript of {name}, {file['sha256'][:12]}."
    if body.get("stream") == "true" and task == "transcribe" and not model.startswith("whisper"):
        deltas = re.findall(r"\s*\S+", text)
        events = [{"type": "transcript.text.delta", "delta": delta} for delta in deltas]
        done = {"type": "transcript.text.done", "text": text, "usage": _usage("", text)}
        frames = [Frame(data=dumps(event)) for event in [*events, done]]
        return _stream(*frames, Frame(data="[DONE]"))
    answer = _TRANSCRIPTS[wanted](text)
    if wanted == "verbose_json":
        answer = {"task": task, **mapping(answer), **_words(body, text)}
    elif wanted == "json" and task == "transcribe":
        answer = {**mapping(answer), "usage": _usage(model, text)}
    return answer


def _usage(model: str, text: str) -> Json:
    if model.startswith("whisper"):
        return {"type": "duration", "seconds": _seconds(text)}
    heard, made = _length(text) // _WORD, tokens(text)
    return {
        "type": "tokens",
        "input_tokens": heard,
        "input_token_details": {"text_tokens": 0, "audio_tokens": heard},
        "output_tokens": made,
        "total_tokens": heard + made,
    }


def _seconds(text: str) -> float:
    return _length(text) / 1000


def _cue(text: str, point: str) -> str:
    """The only cue of subtitles, from the beginning on."""
    seconds, milliseconds = divmod(_length(text), 1000)
    return f"00:00:00{point}000 --> 00:00:{seconds:02}{point}{milliseconds:03}\n{text}\n\n"


def _verbose(text: str) -> Json:
    segment = {
        "id": 0,
        "seek": 0,
        "start": 0.0,
        "end": _seconds(text),
        "text": text,
        "tokens": [],
        "temperature": 0.0,
        "avg_logprob": 0.0,
        "compression_ratio": 1.0,
        "no_speech_prob": 0.0,
    }
    return {
        "language": "english",
        "duration": _seconds(text),
        "text": text,
        "segments": [segment],
        "usage": {"type": "duration", "seconds": _seconds(text)},
    }


def _words(body: Fields, text: str) -> Json:
    """The words with their times, where they are asked for."""
    named = [body.get(key) for key in ("timestamp_granularities", "timestamp_granularities[]")]
    if "word" not in [item for value in named for item in (array(value) or [value])]:
        return {}
    starts = [index * _WORD / 1000 for index in range(len(text.split()) + 1)]
    return {
        "words": [
            {"word": word.strip(",."), "start": starts[index], "end": starts[index + 1]}
            for index, word in enumerate(text.split())
        ]
    }


def _plain(text: str) -> FallbackBody:
    return FallbackBody(_TEXT, (text.encode("utf-8", "replace"),))


_TRANSCRIPTS: dict[str, Callable[[str], Json | FallbackBody]] = {
    "json": lambda text: {"text": text},
    "text": lambda text: _plain(f"{text}\n"),
    "srt": lambda text: _plain("1\n" + _cue(text, ",")),
    "verbose_json": _verbose,
    "vtt": lambda text: _plain("WEBVTT\n\n" + _cue(text, ".")),
}


# Both


def served_model(body: Fields, target: Target) -> str:
    """The model that the body or the path names; raises where neither does."""
    model = string(body.get("model")) or target.segments.get("deployment", "")
    if not model:
        raise missing("model")
    return model


def _stream(*frames: Frame) -> FallbackBody:
    parts = tuple(map(sse.encode, frames))
    return FallbackBody("text/event-stream; charset=utf-8", parts, streamed=True)


_Answer = Callable[[Fields, Target], Json | FallbackBody]
_generations: _Answer = partial(_images, event="image_generation", has_image=False)
_edits: _Answer = partial(_images, event="image_edit")
_variations: _Answer = partial(_images, has_prompt=False)
_transcription: _Answer = partial(_transcript, task="transcribe")
_translation: _Answer = partial(_transcript, task="translate")

_DEPLOYMENT = r"(?:/deployments/(?P<deployment>[^/]+))?"
MEDIA_ROUTES = (
    FallbackRoute(re.compile(_DEPLOYMENT + "/images/generations$"), _generations),
    FallbackRoute(re.compile(_DEPLOYMENT + "/images/edits$"), _edits, takes_form=True),
    FallbackRoute(re.compile(_DEPLOYMENT + "/images/variations$"), _variations, takes_form=True),
    FallbackRoute(re.compile(_DEPLOYMENT + "/audio/speech$"), _speech),
    FallbackRoute(
        re.compile(_DEPLOYMENT + "/audio/transcriptions$"), _transcription, takes_form=True
    ),
    FallbackRoute(re.compile(_DEPLOYMENT + "/audio/translations$"), _translation, takes_form=True),
)
