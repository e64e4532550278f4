"""A turn of the client as a request: the setup of the connection, and the history as `turns`.

https://ai.google.dev/api/live#BidiGenerateContentSetup
"""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.request import Message, Request
from mockllm.wire.protocols.base import api_key
from mockllm.wire.protocols.gemini_common import declarations, get, messages, read_function, text_of
from mockllm.wire.protocols.gemini_live import API
from mockllm.wire.protocols.gemini_live.fields import Options
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, string

_SETUP = frozenset(
    {"avatarConfig", "contextWindowCompression", "explicitVadSignal", "generationConfig"}
    | {"historyConfig", "inputAudioTranscription", "labels", "model", "outputAudioTranscription"}
    | {"proactivity", "realtimeInputConfig", "safetySettings", "sessionResumption"}
    | {"systemInstruction", "tools", "turns"}
)


def parse(body: Fields, _target: Target, strict: bool) -> Request:
    """The neutral request of a turn.

    Args:
        body: the fields of the setup, and `turns` beside them, the contents of the history.
    """
    if strict:
        _check(body)
    read = (read_function(declared) for _, declared in declarations(get(body, "tools")))
    tools = {tool.name: tool for tool in read if tool is not None}
    system = text_of(get(body, "systemInstruction"))
    history = messages(body.get("turns"))
    if system:
        history.insert(0, Message("system", system))
    thinking = get(get(body, "generationConfig"), "thinkingConfig")
    return Request(
        API,
        model_of(body),
        body,
        True,
        tuple(history),
        system,
        tuple(tools.values()),
        wants_reasoning=get(thinking, "includeThoughts") is True,
    )


def model_of(setup: Fields) -> str:
    """The model of a connection: `mock/greeting` for `models/mock/greeting`; of a model on Vertex
    AI its name alone."""
    name = string(setup.get("model"))
    _, publisher, named = name.rpartition("publishers/google/models/")
    return named if publisher else name.removeprefix("models/")


def options(request: Request) -> Options:
    """The options for the encoder. The service answers in speech unless it is told otherwise."""
    body = request.body
    modalities = array(get(get(body, "generationConfig"), "responseModalities"))
    return Options(
        spoken="TEXT" not in modalities,
        transcribed=get(body, "outputAudioTranscription") is not None,
    )


def _check(setup: Fields) -> None:
    unknown = next((name for name in setup if name not in _SETUP), None)
    if unknown is not None:
        raise RequestError(
            f"Invalid JSON payload received. Unknown name \"{unknown}\" at 'setup': Cannot find "
            "field.",
            param=f"setup.{unknown}",
        )
    if not string(setup.get("model")):
        raise RequestError("setup.model must be the name of a model.", param="setup.model")


def guard(headers: Mapping[str, str], target: Target) -> None:
    """Raises for a connection without a key or a token; any is accepted.

    Args:
        headers: with lower-case names.
    """
    if not (api_key(headers, target) or target.query.get("access_token")):
        raise RequestError(
            "Method doesn't allow unregistered callers (callers without established identity). "
            "Please use API Key or other form of API consumer identity to call this API.",
            status=403,
        )


def error_body(error: RequestError) -> Json:
    """An error, whose message becomes the reason of a close frame."""
    return {"error": {"code": error.status, "message": error.message}}
