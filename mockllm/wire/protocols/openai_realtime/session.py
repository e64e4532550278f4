"""The settings of a session, and what a client may change of them.

https://platform.openai.com/docs/api-reference/realtime-client-events/session/update
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.seeded import derive
from mockllm.wire.protocols.base import created_at
from mockllm.wire.protocols.openai_common import bad_value, check_tool, invalid_type, missing
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import mapping, objects, string

LIFETIME = 60 * 60
"""How long a session may last, in seconds."""

KINDS = ("realtime", "transcription")
_PCM = {"type": "audio/pcm", "rate": 24000}
_DETECTION: Mapping[str, Json] = {
    "server_vad": {
        "type": "server_vad",
        "threshold": 0.5,
        "prefix_padding_ms": 300,
        "silence_duration_ms": 200,
        "idle_timeout_ms": None,
        "create_response": True,
        "interrupt_response": True,
    },
    "semantic_vad": {
        "type": "semantic_vad",
        "eagerness": "auto",
        "create_response": True,
        "interrupt_response": True,
    },
}
"""How the service finds the end of speech, by the type, with its usual values."""

_FIELDS = frozenset(
    {"audio", "include", "instructions", "max_output_tokens", "model", "output_modalities"}
    | {"parallel_tool_calls", "prompt", "reasoning", "tool_choice", "tools", "tracing"}
    | {"truncation", "type"}
)


def new_session(model: str, seed: str, kind: str = "realtime") -> Json:
    """The session of a connection before the client changes it."""
    given: Json = {"type": kind, "object": f"realtime.{kind}_session".replace("realtime_", "")}
    sound = {
        "format": dict(_PCM),
        "transcription": None,
        "noise_reduction": None,
        "turn_detection": dict(_DETECTION["server_vad"]),
    }
    given |= {"id": "sess_" + derive(seed, "session", length=21)}
    expires = {"expires_at": created_at(seed) + LIFETIME}
    if kind == "transcription":
        return {**given, **expires, "audio": {"input": sound}, "include": None}
    return {
        **given,
        "model": model,
        "output_modalities": ["audio"],
        "instructions": "",
        "tools": [],
        "tool_choice": "auto",
        "max_output_tokens": "inf",
        "tracing": None,
        "truncation": "auto",
        "prompt": None,
        **expires,
        "audio": {
            "input": sound,
            "output": {"format": dict(_PCM), "voice": "alloy", "speed": 1.0},
        },
        "include": None,
    }


def update(session: Json, change: object) -> Json:
    """A session with what a client changes of it.

    Raises:
        RequestError: the service refuses the change.
    """
    if not isinstance(change, Mapping):
        raise missing("session")
    kind = change.get("type")
    if kind is None:
        raise missing("session.type")
    if kind not in KINDS:
        raise bad_value("session.type", str(kind), KINDS)
    check_fields(change, "session", _FIELDS)
    audio = mapping(change.get("audio"))
    parts = {name: mapping(audio.get(name)) for name in ("input", "output") if name in audio}
    known = mapping(session.get("audio"))
    merged = {
        **known,
        **{name: {**mapping(known.get(name)), **part} for name, part in parts.items()},
    }
    if "input" in parts:
        merged["input"] = _filled_input(merged["input"])
    fixed = {name: session[name] for name in ("id", "object", "model") if name in session}
    return {**session, **change, **fixed, "audio": merged}


def check_fields(change: Fields, where: str, known: frozenset[str]) -> None:
    """Raises for fields that a session, or a response, does not have, and for bad values."""
    for name in change:
        if name not in known:
            path = f"{where}.{name}"
            raise RequestError(
                f"Unknown parameter: '{path}'.", param=path, code="unknown_parameter"
            )
    modalities = change.get("output_modalities")
    if modalities is not None and modalities not in (["text"], ["audio"]):
        raise RequestError(
            f"Invalid modalities: {modalities}. Supported combinations are: ['text'] and "
            "['audio'].",
            param=f"{where}.output_modalities",
            code="invalid_value",
        )
    tools = change.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise invalid_type(f"{where}.tools", "an array of objects", tools)
    for i, tool in enumerate(objects(tools)):
        if tool.get("type") == "function":
            check_tool(tool.get("name"), tool.get("parameters"), f"{where}.tools[{i}]")


def _filled_input(sound: Json) -> Json:
    """The settings of the user's sound with the usual values of what is left out."""
    detection, transcription = sound.get("turn_detection"), sound.get("transcription")
    if isinstance(detection, Mapping):
        usual = _DETECTION.get(string(detection.get("type")) or "server_vad")
        if usual is None:
            kind = str(detection.get("type"))
            raise bad_value("session.audio.input.turn_detection.type", kind, (*_DETECTION,))
        sound = {**sound, "turn_detection": {**usual, **detection}}
    if isinstance(transcription, Mapping):
        filled = {"model": None, "language": None, "prompt": None, **transcription}
        sound = {**sound, "transcription": filled}
    return sound


def input_of(session: Fields) -> Fields:
    """The settings of the user's sound."""
    return mapping(mapping(session.get("audio")).get("input"))


def detection_of(session: Fields) -> Fields | None:
    """How the service finds the end of speech; None where the client says it."""
    found = input_of(session).get("turn_detection")
    return found if isinstance(found, Mapping) and found.get("type") else None


def sound_type(settings: object) -> str:
    """The type of a format in the settings of the input or the output."""
    return string(mapping(mapping(settings).get("format")).get("type")) or "audio/pcm"


def choice_of(value: Any) -> str:
    """The neutral choice of tools."""
    if isinstance(value, Mapping):
        return string(value.get("name")) or "auto"
    return value if value in ("none", "required") else "auto"
