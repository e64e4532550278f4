"""Answers of OpenAI's routes for audio: speech as a tone or silence, and transcripts that name the
file. A word lasts as long in both.

https://platform.openai.com/docs/api-reference/audio; the fields are those of the types in OpenAI's
Python SDK (`Transcription`, `TranscriptionVerbose`, `TranscriptionStreamEvent`). How streams end
was seen in output that users of the API have published.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from functools import partial

from mockllm.core.events import Frame
from mockllm.core.http import Target
from mockllm.core.sample_files import (
    silent_aac,
    silent_flac,
    silent_mp3,
    silent_opus,
    tone,
    wav,
)
from mockllm.core.seeded import derive_int, tokens
from mockllm.core.text import shorten
from mockllm.errors import RequestError
from mockllm.framing import sse
from mockllm.protocols.base import dumps
from mockllm.protocols.openai_common import bad_value, missing
from mockllm.protocols.records import FallbackBody, FallbackRoute, Fields, Json
from mockllm.protocols.values import array, mapping, string

_WORD = 100
"""How long a word lasts, in milliseconds."""

_LONGEST = 5_000
"""How long speech may last, in milliseconds."""

_LONGEST_NAME = 60
_MOST_CHARACTERS = 4096
_FILES: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "mp3": ("audio/mpeg", silent_mp3),
    "opus": ("audio/ogg", silent_opus),
    "aac": ("audio/aac", silent_aac),
    "flac": ("audio/flac", silent_flac),
}
"""The formats for which there is silence: its media type, and a file of some milliseconds."""

_FORMATS = (*_FILES, "wav", "pcm")
_TEXT = "text/plain; charset=utf-8"


# Speech


def _speech(body: Fields, target: Target) -> FallbackBody:
    text = string(body.get("input"))
    if not text:
        raise missing("input")
    if len(text) > _MOST_CHARACTERS:
        message = f"Invalid 'input': expected at most {_MOST_CHARACTERS} characters."
        raise RequestError(message, param="input")
    _model(body, target)
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
        {"type": "speech.audio.delta", "audio": audio},
        {"type": "speech.audio.done", "usage": counts},
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
    model = _model(body, target)
    wanted = body.get("response_format", "json")
    if wanted not in tuple(_TRANSCRIPTS):
        raise bad_value("response_format", str(wanted), tuple(_TRANSCRIPTS))
    name = shorten(file["filename"], _LONGEST_NAME) or "a file"
    text = f"This is the transcript of {name}, {file['sha256'][:12]}."
    if body.get("stream") == "true" and task == "transcribe" and not model.startswith("whisper"):
        deltas = re.findall(r"\s*\S+", text)
        return _stream(
            *({"type": "transcript.text.delta", "delta": delta} for delta in deltas),
            {"type": "transcript.text.done", "text": text, "usage": _usage("", text)},
            last="[DONE]",
        )
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


def _model(body: Fields, target: Target) -> str:
    model = string(body.get("model")) or target.segments.get("deployment", "")
    if not model:
        raise missing("model")
    return model


def _stream(*events: Json, last: str = "") -> FallbackBody:
    data: Iterable[str] = [*map(dumps, events), *([last] if last else [])]
    parts = tuple(sse.encode(Frame(data=text)) for text in data)
    return FallbackBody("text/event-stream; charset=utf-8", parts, streamed=True)


_Answer = Callable[[Fields, Target], Json | FallbackBody]
_transcription: _Answer = partial(_transcript, task="transcribe")
_translation: _Answer = partial(_transcript, task="translate")

_PATH = r"(?:/deployments/(?P<deployment>[^/]+))?/audio"
ROUTES = (
    FallbackRoute(re.compile(_PATH + "/speech$"), _speech),
    FallbackRoute(re.compile(_PATH + "/transcriptions$"), _transcription, takes_form=True),
    FallbackRoute(re.compile(_PATH + "/translations$"), _translation, takes_form=True),
)
