"""The turns that a client of Gemini Live sends, as the bodies that `request` parses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mockllm.core.request import Message, Parameters, Request
from mockllm.core.turn import ToolCall
from mockllm.wire.protocols.gemini_common import get, write_contents, write_function
from mockllm.wire.protocols.records import ClientRequests, Fields, Json
from mockllm.wire.protocols.writing import (
    joined_answers,
    pair_results,
    parameter_fields,
    read_parameters,
    with_function_tools,
)

_NAMES = {"max_tokens": "maxOutputTokens", "temperature": "temperature", "top_p": "topP"}


def _write(request: Request, parameters: Parameters) -> Json:
    request = with_function_tools(request)
    system = [message.text for message in request.messages if message.role == "system"]
    others = [message for message in request.messages if message.role != "system"]
    config = {"responseModalities": ["TEXT"], **parameter_fields(parameters, _NAMES)}
    if request.wants_reasoning:
        config["thinkingConfig"] = {"includeThoughts": True}
    setup: Json = {"model": f"models/{request.model}", "generationConfig": config}
    if any(system):
        setup["systemInstruction"] = {"parts": [{"text": "\n".join(filter(None, system))}]}
    if request.tools:
        setup["tools"] = [{"functionDeclarations": list(map(write_function, request.tools))}]
    return {**setup, "turns": write_contents(joined_answers(pair_results(others)))}


def _parameters(body: Fields) -> Parameters:
    return read_parameters(_NAMES, partial(get, get(body, "generationConfig")))


def _next_body(
    body: Json, _answer: str, messages: Sequence[Message], _calls: Sequence[ToolCall]
) -> Json:
    return {**body, "turns": [*body["turns"], *write_contents(messages)]}


CLIENT = ClientRequests(
    write=_write,
    parameters=_parameters,
    next_body=_next_body,
    path="/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
    service="https://generativelanguage.googleapis.com",
    group="gemini",
    headers={"x-goog-api-key": "mock-key"},
    arguments_are_values=True,
    # The service cancels calls where the user goes on, and waits otherwise.
    needs_results=lambda _: False,
)
