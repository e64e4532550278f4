"""Writes requests of Gemini: the inverse of `request`. The API has one system prompt, before the
history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from mockllm.core.request import CallEcho, Message, OfferedTool, Parameters, Request, SentFile
from mockllm.protocols.gemini.schema import get, json_schema
from mockllm.protocols.records import Fields, Json
from mockllm.protocols.values import function_tool, tool_schema
from mockllm.protocols.writing import (
    arguments_value,
    joined_answers,
    known_type,
    paired,
    parameter_fields,
    read_parameters,
    with_function_tools,
)

_NAMES = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
    "seed": "seed",
}


def write(request: Request, parameters: Parameters) -> Json:
    """The body of a request."""
    request = with_function_tools(request)
    system = [message.text for message in request.messages if message.role == "system"]
    others = [message for message in request.messages if message.role != "system"]
    body: Json = {"contents": write_contents(joined_answers(paired(others, make_ids=False)))}
    if any(system):
        body["systemInstruction"] = {"parts": [{"text": "\n".join(filter(None, system))}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": list(map(_declaration, request.tools))}]
        body |= _tool_choice(request.tool_choice)
    config = parameter_fields(parameters, _NAMES)
    if request.output_schema is not None:
        config["responseMimeType"] = "application/json"
        if request.output_schema:
            config["responseJsonSchema"] = request.output_schema
    if request.wants_reasoning:
        config["thinkingConfig"] = {"includeThoughts": True}
    return body | ({"generationConfig": config} if config else {})


def parameters(body: Fields) -> Parameters:
    """The parameters in a body."""
    config = get(body, "generationConfig")
    return read_parameters(_NAMES, lambda name: get(config, name))


def _declaration(tool: OfferedTool) -> Json:
    """A function, with what Gemini's own schemas cannot hold as a JSON Schema."""
    declared, schema = function_tool(tool), tool_schema(tool)
    if json_schema(schema) == schema:
        return declared
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": schema}


def _tool_choice(choice: str) -> Json:
    if choice == "auto":
        return {}
    named = {} if choice in ("none", "required") else {"allowedFunctionNames": [choice]}
    mode = "NONE" if choice == "none" else "ANY"
    return {"toolConfig": {"functionCallingConfig": {"mode": mode, **named}}}


def write_contents(messages: Sequence[Message]) -> list[Json]:
    """Messages as the API has them: a run of results is one content of the user."""
    contents: list[Json] = []
    for role, run in groupby(messages, lambda message: message.role):
        if role == "tool":
            contents.append({"role": "user", "parts": list(map(_response, run))})
        else:
            side = "model" if role == "assistant" else "user"
            contents += ({"role": side, "parts": _parts(message)} for message in run)
    return contents


def _response(message: Message) -> Json:
    identified = {"id": message.call_id} if message.call_id else {}
    response = {"error" if message.error else "result": message.text}
    return {"functionResponse": {**identified, "name": message.name, "response": response}}


def _parts(message: Message) -> list[Json]:
    parts = [*_files(message.files), *map(_call, message.calls)]
    return [{"text": message.text}, *parts] if message.text or not parts else parts


def _call(call: CallEcho) -> Json:
    arguments = arguments_value(call)
    # Arguments are an object; what is none is lost.
    args = arguments if isinstance(arguments, dict) else {}
    identified = {"id": call.id} if call.id else {}
    return {"functionCall": {**identified, "name": call.name, "args": args}}


def _files(files: Iterable[SentFile]) -> Iterator[Json]:
    for file in files:
        type = known_type(file)
        typed = {} if type == "*/*" else {"mimeType": type}
        if file.data:
            yield {"inlineData": {**typed, "data": file.data}}
        else:
            yield {"fileData": {**typed, "fileUri": file.reference}}
