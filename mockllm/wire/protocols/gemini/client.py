"""The requests that a client of Gemini sends, with the model and the method in the path. The API
has one system prompt, before the history.

Gemini 3 refuses a continuation whose first function call of a turn has lost its signature. Every
model refuses a signature that it did not make:
https://ai.google.dev/gemini-api/docs/thought-signatures
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from mockllm.core.request import Message, Parameters, Request
from mockllm.core.text import display, quantity
from mockllm.core.turn import Media, ToolCall, Turn
from mockllm.wire.protocols.gemini_common import (
    get,
    signature_of,
    write_contents,
    write_function,
)
from mockllm.wire.protocols.records import ClientRequests, Feature, Fields, Json
from mockllm.wire.protocols.values import array, objects
from mockllm.wire.protocols.writing import (
    contents_in,
    joined_answers,
    pair_results,
    parameter_fields,
    read_parameters,
    with_function_tools,
    without_ids,
)

_NAMES = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
    "seed": "seed",
}


def _write(request: Request, parameters: Parameters) -> Json:
    """The body of a request."""
    request = with_function_tools(request)
    system = [message.text for message in request.messages if message.role == "system"]
    others = [message for message in request.messages if message.role != "system"]
    body: Json = {"contents": write_contents(joined_answers(pair_results(others, make_ids=False)))}
    if any(system):
        body["systemInstruction"] = {"parts": [{"text": "\n".join(filter(None, system))}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": list(map(write_function, request.tools))}]
        body |= _tool_choice(request.tool_choice)
    config = parameter_fields(parameters, _NAMES)
    if request.output_schema is not None:
        config["responseMimeType"] = "application/json"
        if request.output_schema:
            config["responseJsonSchema"] = request.output_schema
    if request.wants_reasoning:
        config["thinkingConfig"] = {"includeThoughts": True}
    return body | ({"generationConfig": config} if config else {})


def _tool_choice(choice: str) -> Json:
    if choice == "auto":
        return {}
    named = {} if choice in ("none", "required") else {"allowedFunctionNames": [choice]}
    mode = "NONE" if choice == "none" else "ANY"
    return {"toolConfig": {"functionCallingConfig": {"mode": mode, **named}}}


_NO_SIGNATURE = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""What a client sends for a call that no model made, according to the documentation."""

_DUMMIES = frozenset(
    form
    for text in _NO_SIGNATURE
    for form in (text, base64.b64encode(text.encode()).decode().rstrip("="))
)


def _opaque_mistake(request: Request, turn: Turn) -> str | None:
    """Why the service refuses the signatures of the calls in the latest turn; None if it does not.
    Only signatures that the scenario gives to a call are compared."""
    calls = [part for part in turn.parts if isinstance(part, ToolCall)]
    parts = list(_latest_calls(request))
    if [call.name for call in calls] != [_name(part) for part in parts]:
        return None  # which call is which is not certain
    for number, (call, part) in enumerate(zip(calls, parts, strict=True)):
        if not call.signature:
            continue
        sent = part.get("thoughtSignature", part.get("thought_signature"))
        if sent is None and number == 0 and "gemini-3" in request.model:
            return (
                f"the call of {call.name!r} was streamed with a thought signature and is sent back "
                "without; a client sends back the signature of a call, which Gemini 3 requires"
            )
        if sent is not None and not _is_valid(sent, call.signature):
            return (
                f"the thought signature of the call of {call.name!r} is sent back as "
                f"{display(sent)}, but was streamed as {display(signature_of(call.signature))}; a "
                "client sends back signatures unchanged"
            )
    return None


def _image_mistake(request: Request, turn: Turn) -> str | None:
    """Why the model does not know its images again: they are gone from the latest turn, or their
    signatures. The models that make images edit what the history has."""
    images = [
        part
        for part in turn.parts
        if isinstance(part, Media) and part.media_type.startswith("image/")
    ]
    parts = [part for part in _latest_parts(request) if _has_file(part)]
    if len(parts) < len(images):
        return (
            f"the turn was streamed with {quantity(len(images), 'image')} and is sent back with "
            f"{len(parts)}; a client sends back the images of the model, which edits them"
        )
    for image, part in zip(images, parts, strict=False):
        sent = part.get("thoughtSignature", part.get("thought_signature"))
        if image.signature and not _is_valid(sent, image.signature):
            return (
                f"the thought signature of an image is sent back as {display(sent)}, but was "
                f"streamed as {display(signature_of(image.signature))}; a client sends back "
                "signatures unchanged, which the models that make images require"
            )
    return None


def _has_file(part: Fields) -> bool:
    """Whether a part is a file, and no draft among the thoughts."""
    names = ("inlineData", "inline_data", "fileData", "file_data")
    return any(name in part for name in names) and not part.get("thought")


def _is_valid(sent: object, streamed: str) -> bool:
    if not isinstance(sent, str):
        return False
    if sent.rstrip("=") in _DUMMIES:
        return True
    return _plain(sent) == _plain(signature_of(streamed))


def _plain(value: str) -> str:
    """Base64 without the differences between its alphabets: SDKs decode and encode the value."""
    return value.replace("-", "+").replace("_", "/").rstrip("=")


def _name(part: Fields) -> object:
    call = part.get("functionCall", part.get("function_call"))
    return call.get("name") if isinstance(call, Mapping) else None


def _latest_calls(request: Request) -> Iterator[Fields]:
    return (part for part in _latest_parts(request) if _name(part) is not None)


def _latest_parts(request: Request) -> list[Json]:
    """The parts of the latest turn of the model."""
    latest: list[Json] = []
    for content in reversed(array(request.body.get("contents"))):
        role = content.get("role") if isinstance(content, Mapping) else None
        if role == "model":
            latest = [*objects(content.get("parts")), *latest]
        elif latest:
            break
    return latest


def _next_body(
    body: Json, answer: str, messages: Sequence[Message], calls: Sequence[ToolCall]
) -> Json:
    """The history goes on without the ids of calls, and with their signatures."""
    model, user = write_contents(without_ids(messages))
    for part, call in zip(model["parts"], calls, strict=False):  # a text has no call
        if call.signature:
            part["thoughtSignature"] = signature_of(call.signature)
    return {**body, "contents": [*body["contents"], model, user]}


def _put_signatures(body: Json, pairs: Sequence[Sequence[str]]) -> Json:
    """The body with the signatures of the parts that the model made last; their thoughts do not go
    back."""
    contents = list(body["contents"])
    at = max(at for at, content in enumerate(contents) if content["role"] == "model")
    parts = list(contents[at]["parts"])
    calls = [number for number, part in enumerate(parts) if "functionCall" in part]
    for number, (_, signature) in zip(calls or range(len(parts)), pairs, strict=False):
        parts[number] = {**parts[number], "thoughtSignature": signature_of(signature)}
    contents[at] = {**contents[at], "parts": parts}
    return {**body, "contents": contents}


def _signatures(body: Fields) -> object:
    parts = contents_in(body, "contents", "parts")
    found = (part.get("thoughtSignature", part.get("thought_signature")) for part in parts)
    return [["", value] for value in found if isinstance(value, str)] or None


CLIENT = ClientRequests(
    write=_write,
    parameters=lambda body: read_parameters(_NAMES, partial(get, get(body, "generationConfig"))),
    next_body=_next_body,
    path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
    body_path="/v1beta/models/{model}:generateContent",
    service="https://generativelanguage.googleapis.com",
    group="gemini",
    tool_fields=("tools", "toolConfig", "tool_config"),
    headers={"x-goog-api-key": "mock-key"},
    arguments_are_values=True,
    may_lack_call_ids=lambda _: True,
    opaque_mistake=_opaque_mistake,
    image_mistake=_image_mistake,
    features={"signatures": Feature(_put_signatures, _signatures, "google")},
)
