"""The names of the beta, which Azure's preview and its Voice Live have kept.

https://learn.microsoft.com/azure/ai-foundry/openai/realtime-audio-reference
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from mockllm.core.record import record
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.sockets import Opening
from mockllm.wire.protocols.values import mapping, string


@record
class Dialect:
    """How a service spells the messages.

    Args:
        read: a client's message in the names of the API.
        write: the events as the service sends them.
    """

    read: Callable[[Fields], Fields]
    write: Callable[[Sequence[str]], list[str]]


AS_IT_IS = Dialect(lambda message: message, list)
"""OpenAI, Azure's `/openai/v1` and xAI."""

_SOUNDS = {"pcm16": "audio/pcm", "g711_ulaw": "audio/pcmu", "g711_alaw": "audio/pcma"}
_EVENTS = {
    "output_text": "text",
    "output_audio": "audio",
    "output_audio_transcript": "audio_transcript",
}
_CONTENT = {"output_text": "text", "output_audio": "audio"}


def _read(message: Fields) -> Fields:
    changed: Json = dict(message)
    for name in ("session", "response"):
        if isinstance(message.get(name), dict):
            changed[name] = _new_settings(message[name], name == "session")
    item = message.get("item")
    if isinstance(item, dict) and item.get("role") == "assistant":
        names = {old: new for new, old in _CONTENT.items()}
        parts = [
            {**part, "type": names.get(string(part.get("type")), part.get("type"))}
            for part in item.get("content") or ()
            if isinstance(part, dict)
        ]
        changed["item"] = {**item, "content": parts}
    return changed


_OF_INPUT = {
    "input_audio_transcription": "transcription",
    "input_audio_noise_reduction": "noise_reduction",
    "turn_detection": "turn_detection",
}


def _new_settings(given: Json, is_session: bool) -> Json:
    """Settings in the names of the API; what only Azure has is left out."""
    names = ("instructions", "tools", "tool_choice", "metadata", "conversation", "input")
    settings: Json = {name: given[name] for name in names if name in given}
    if is_session:
        settings["type"] = "realtime"
    if "modalities" in given:
        settings["output_modalities"] = ["audio" if "audio" in given["modalities"] else "text"]
    for name in ("max_response_output_tokens", "max_output_tokens"):
        if name in given:
            settings["max_output_tokens"] = given[name]
    audio: Json = {}
    sound = {new: given[old] for old, new in _OF_INPUT.items() if old in given}
    detection = sound.get("turn_detection")
    if isinstance(detection, dict) and detection.get("type") not in ("server_vad", "semantic_vad"):
        kind = None if detection.get("type") in (None, "none") else "server_vad"
        sound["turn_detection"] = {**detection, "type": kind} if kind else None
    for name, inner in (("input", sound), ("output", {})):
        format = _SOUNDS.get(str(given.get(f"{name}_audio_format")))
        if format:
            inner["format"] = {"type": format}
        if name == "output" and "voice" in given:
            inner["voice"] = given["voice"]
        if inner:
            audio[name] = inner
    return {**settings, **({"audio": audio} if audio else {})}


def _old_settings(settings: Fields) -> Json:
    """A session, or a response, in the names of the beta."""
    audio = mapping(settings.get("audio"))
    sound, output = mapping(audio.get("input")), mapping(audio.get("output"))
    names = {new: old for old, new in _SOUNDS.items()}
    old = {n: v for n, v in settings.items() if n not in ("audio", "output_modalities", "type")}
    if settings.get("output_modalities") is not None:
        spoken = settings["output_modalities"] == ["audio"]
        old["modalities"] = ["text", "audio"] if spoken else ["text"]
    for name, inner in (("input", sound), ("output", output)):
        if "format" in inner:
            old[f"{name}_audio_format"] = names.get(
                string(mapping(inner["format"]).get("type")), "pcm16"
            )
    for name, new in _OF_INPUT.items():
        if new in sound:
            old[name] = sound[new]
    if "voice" in output:
        old["voice"] = output["voice"]
    return old


def _old_item(item: Json) -> Json:
    parts = item.get("content")
    if not isinstance(parts, list):
        return item
    renamed = [{**part, "type": _CONTENT.get(part["type"], part["type"])} for part in parts]
    return {**item, "content": renamed}


def _write(payloads: Sequence[str]) -> list[str]:
    out = []
    for payload in payloads:
        try:
            event = json.loads(payload)
        except ValueError:  # broken on purpose
            out.append(payload)
            continue
        if event.get("type") != "conversation.item.done":
            out.append(dumps(_old_event(event)))
    return out


def _old_event(event: Json) -> Json:
    kind = event["type"]
    if kind == "conversation.item.added":
        kind = "conversation.item.created"
    else:
        first, dot, rest = kind.removeprefix("response.").partition(".")
        if dot and kind.startswith("response.") and first in _EVENTS:
            kind = f"response.{_EVENTS[first]}.{rest}"
    changed = {**event, "type": kind}
    if "item" in event:
        changed["item"] = _old_item(event["item"])
    if "session" in event:
        changed["session"] = _old_settings(event["session"])
    if "response" in event:
        output = [_old_item(item) for item in event["response"].get("output", ())]
        changed["response"] = {**_old_settings(event["response"]), "output": output}
    return changed


BETA = Dialect(_read, _write)


def dialect_of(opening: Opening) -> Dialect:
    """The dialect of a connection, by the parameters that only Azure's preview has."""
    return BETA if "api-version" in opening.target.query else AS_IT_IS
