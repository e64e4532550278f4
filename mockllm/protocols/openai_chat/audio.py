"""Sound in answers: pieces of it and of its transcript in a stream, one object in a body.

https://platform.openai.com/docs/guides/audio and the type `ChatCompletionAudio` of openai-python.

An answer has one sound, and no media type: the client asked for one (`audio.format`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from mockllm.core import events as ev
from mockllm.core.seeded import derive
from mockllm.protocols.base import Reply
from mockllm.protocols.openai_chat.fields import AUDIO
from mockllm.protocols.records import Fields, Json
from mockllm.protocols.values import base64_bytes, string

TYPE = "audio/*"
"""The media type of a sound that was read."""

_KEPT = 3600
"""How long the service keeps a sound, in seconds."""


def write_first(reply: Reply) -> Json:
    """The fields of a sound that come first: the id, by which a later request refers to it."""
    return {"id": "audio_" + derive(reply.seed, "audio", length=24, hex=True)}


def write_last(reply: Reply) -> Json:
    """The fields of a sound that come last: when the service forgets it, in seconds since 1970."""
    return {"expires_at": reply.created + _KEPT}


def write_piece(event: ev.MediaDelta) -> Json:
    """The fields of a piece of the sound, or of its transcript."""
    return {"transcript": event.text} if event.text else {"data": _base64(event.data)}


def write_audio(pieces: list[ev.MediaDelta], reply: Reply) -> Json:
    """The object of a body, in which several sounds are one."""
    return {
        **write_first(reply),
        "data": _base64(b"".join(piece.data for piece in pieces)),
        **write_last(reply),
        "transcript": "".join(piece.text for piece in pieces),
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def read_audio(audio: Fields) -> Iterator[ev.MediaDelta]:
    """The pieces in the object of a delta or a message; data that are not base64 are left out."""
    if text := string(audio.get("transcript")):
        yield ev.MediaDelta(AUDIO, TYPE, text=text)
    if data := base64_bytes(audio.get("data")):
        yield ev.MediaDelta(AUDIO, TYPE, data)


def is_known(audio: Fields) -> bool:
    """Whether the object has fields of a sound, so that no chunk with it is unknown."""
    return bool(audio.keys() & {"id", "expires_at"})
