"""Shared by the APIs of Gemini: Google's JSON format, keys, headers and signatures, contents to
neutral messages and back, images and sounds, declared functions and their schemas.

https://ai.google.dev/api/caching#Content
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

from mockllm.core import jsontext
from mockllm.core.errors import RequestError
from mockllm.core.events import Usage
from mockllm.core.http import Target
from mockllm.core.request import CallEcho, Message, OfferedTool, SentFile
from mockllm.core.seeded import derive_int
from mockllm.core.turn import ToolCall
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import (
    array,
    base64_bytes,
    count,
    function_tool,
    mapping,
    sent_as_base64,
    sent_by_url,
    sent_files,
    string,
    tool_schema,
)
from mockllm.wire.protocols.writing import arguments_value, known_type, pair_results

# JSON

NO_JSON = object()
"""The result of `json_value` for text that is not JSON."""


_spaced = json.JSONEncoder(ensure_ascii=False, separators=(",", ": ")).encode
# Google escapes `<` and `>` (which could end a script element), controls and invisible characters.
_ESCAPED = re.compile(
    "[<>\x7f-\x9f\u00ad\u0600-\u0603\u06dd\u070f\u17b4\u17b5\u200b-\u200f\u2028-\u202e"
    "\u2060-\u2064\u206a-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def wire(value: object) -> str:
    """A value as Google's servers write JSON: a space after `:`, none after `,`."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", _spaced(value))


def get(value: object, name: str) -> Any:
    """A field by its camelCase name, or by its snake_case name: protocol buffers accept both in
    JSON."""
    if not isinstance(value, Mapping):
        return None
    item = value.get(name)
    return value.get(snake(name)) if item is None else item


@lru_cache(maxsize=256)
def snake(name: str) -> str:
    """`systemInstruction` as `system_instruction`."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def compact(value: object) -> str:
    """A value as compact JSON text that UTF-8 can encode: lone surrogates stay escaped."""
    return jsontext.json_bytes(dumps(value)).decode()


def json_value(text: str) -> Any:
    """The value of a JSON text; `NO_JSON` for anything else, infinite numbers included."""
    try:
        return jsontext.decode(text)
    except (ValueError, RecursionError):
        return NO_JSON


def arguments_of(call: ToolCall) -> Json | None:
    """The arguments of a call as a JSON object; None where they are not one."""
    value = json_value(call.arguments)
    return value if isinstance(value, dict) else None


# Around an answer


def guard(headers: Mapping[str, str], target: Target) -> None:
    """Raises for a request without a key; any key is accepted.

    Args:
        headers: with lower-case names.
    """
    keys = [
        headers.get("x-goog-api-key"),
        headers.get("authorization"),
        target.query.get("key"),
        target.query.get("access_token"),
    ]
    if any(keys):
        return
    if any(key is not None for key in keys):
        raise RequestError(
            "API key not valid. Please pass a valid API key.", code="API_KEY_INVALID"
        )
    raise RequestError(
        "Method doesn't allow unregistered callers (callers without established identity). "
        "Please use API Key or other form of API consumer identity to call this API.",
        status=403,
    )


def google_headers(seed: str, *what: object) -> dict[str, str]:
    """The headers of every answer; the processing time is derived from a seed."""
    took = 200 + derive_int(seed, "took", *what, below=1500)
    return {"vary": "Origin, X-Origin, Referer", "server-timing": f"gfet4t7; dur={took}"}


def signature_of(value: str) -> str:
    """A signature as base64, encoded where it is not: the field is `bytes` in protocol buffers."""
    if base64_bytes(value) is None:
        return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    return value


# Contents

_ALONE = ("result", "output", "return_value", "content", "error")
"""The names that SDKs give to the only field of a result that is not an object."""


def messages(contents: object) -> list[Message]:
    """The messages of a history: one for each answer of the model, one for each tool result. A
    result without an id gets that of the first unanswered call of its name, as the service matches
    them."""
    if isinstance(contents, str):
        return [Message("user", contents)]
    out: list[Message] = []
    for content in contents if isinstance(contents, list) else [contents]:
        if isinstance(content, str):
            out.append(Message("user", content))
        elif get(content, "role") == "model":
            calls = [get(part, "functionCall") for part in _parts(content)]
            echoes = tuple(_echo(call) for call in calls if isinstance(call, Mapping))
            out.append(Message("assistant", text_of(content), echoes))
        elif isinstance(content, Mapping):
            out += _user_messages(content)
    return pair_results(out, make_ids=False)


def _user_messages(content: Fields) -> list[Message]:
    results = [get(part, "functionResponse") for part in _parts(content)]
    tool_messages = [_result(result) for result in results if isinstance(result, Mapping)]
    text = text_of(content)
    files = sent_files(map(_file, _parts(content)))
    if text or files or not tool_messages:
        return [*tool_messages, Message("user", text, files=files)]
    return tool_messages


def _file(part: object) -> SentFile | None:
    inline, stored = get(part, "inlineData"), get(part, "fileData")
    media_type = string(get(inline or stored, "mimeType")) or "*/*"
    if inline is not None:
        return sent_as_base64(get(inline, "data"), media_type)
    return sent_by_url(get(stored, "fileUri"), media_type)


def _parts(content: object) -> list[Any]:
    parts = get(content, "parts")
    if isinstance(parts, list):
        return parts
    return [] if parts is None else [parts]


def text_of(content: object) -> str:
    """The text of a content, without thoughts."""
    if isinstance(content, str):
        return content
    return "".join(
        part if isinstance(part, str) else string(get(part, "text"))
        for part in _parts(content)
        if not get(part, "thought")
    )


def _echo(call: Fields) -> CallEcho:
    arguments = compact(call.get("args") or {})
    return CallEcho(string(call.get("id")), string(call.get("name")), arguments)


def _result(result: Fields) -> Message:
    response, name = mapping(result.get("response")), result.get("name")
    error = response.get("error")
    # Vercel's AI SDK adds the name of the function to its result.
    own = {key: value for key, value in response.items() if (key, value) != ("name", name)}
    output: object = response
    if len(own) == 1:
        ((field, value),) = own.items()
        output = value if field in _ALONE else response
    return Message(
        "tool",
        output if isinstance(output, str) else compact(output),
        call_id=string(result.get("id")),
        name=string(name),
        error=error is not None and error != "",
    )


def write_contents(messages: Sequence[Message]) -> list[Json]:
    """Messages as the API has them: a run of results is one content of the user."""
    contents: list[Json] = []
    for role, run in groupby(messages, lambda message: message.role):
        if role == "tool":
            contents.append({"role": "user", "parts": list(map(_response, run))})
        else:
            side = "model" if role == "assistant" else "user"
            contents += ({"role": side, "parts": _written_parts(message)} for message in run)
    return contents


def _response(message: Message) -> Json:
    identified = {"id": message.call_id} if message.call_id else {}
    response = {"error" if message.error else "result": message.text}
    return {"functionResponse": {**identified, "name": message.name, "response": response}}


def _written_parts(message: Message) -> list[Json]:
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


# Images and sounds: https://ai.google.dev/api/caching#Blob

_TYPE = re.compile(r"(?:image|audio)/[^\r\n]+\Z")


def write_media(media_type: str, data: bytes) -> Json:
    """The part with the bytes."""
    return {"inlineData": {"mimeType": media_type, "data": base64.b64encode(data).decode()}}


def read_media(part: Fields) -> tuple[str, bytes] | None:
    """The media type and the bytes of a part; None for a part of another kind, for files that are
    neither, and for the drafts that a model shows among its thoughts."""
    blob = part.get("inlineData")
    if not isinstance(blob, Mapping) or part.get("thought") or part.get("text") is not None:
        return None
    if blob.keys() - {"mimeType", "data"}:
        return None
    media_type = string(blob.get("mimeType"))
    data = base64_bytes(blob.get("data"))
    return (media_type, data) if data and _TYPE.match(media_type) else None


# Functions


def declarations(value: object) -> Iterator[tuple[str, Fields]]:
    """The functions in `tools`, each with its place in the request."""
    for i, tool in enumerate(value if isinstance(value, list) else [value]):
        for j, declaration in enumerate(array(get(tool, "functionDeclarations"))):
            yield f"tools[{i}].function_declarations[{j}]", mapping(declaration)


def read_function(declaration: Fields) -> OfferedTool | None:
    """A declared function; None for one without a name."""
    name, schema = declaration.get("name"), get(declaration, "parametersJsonSchema")
    if not isinstance(name, str):
        return None
    given = json_schema(get(declaration, "parameters")) if schema is None else mapping(schema)
    return OfferedTool(name, string(declaration.get("description")), given)


def write_function(tool: OfferedTool) -> Json:
    """A function, with what Gemini's own schemas cannot hold as a JSON Schema."""
    declared, schema = function_tool(tool), tool_schema(tool)
    if json_schema(schema) == schema:
        return declared
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": schema}


_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_MOST_DIGITS = 19
"""Of a count, which is an int64."""

_SAME = ("title", "description", "enum", "required", "minimum", "maximum", "pattern", "default")


def json_schema(schema: object) -> Json:
    """A schema with lower-case types, `nullable` as a type, and counts as numbers. Keywords that
    JSON Schema does not have (`propertyOrdering`, `example`) are left out."""
    if not isinstance(schema, Mapping):
        return {}
    out: Json = {name: schema[name] for name in _SAME if schema.get(name) is not None}
    for name in _COUNTS:
        count = get(schema, name)
        digits = str(count) if isinstance(count, (int, str)) else ""
        if digits.isdecimal() and len(digits) <= _MOST_DIGITS:
            out[name] = int(digits)
    properties, items, any_of = schema.get("properties"), schema.get("items"), get(schema, "anyOf")
    if isinstance(properties, Mapping):
        out["properties"] = {name: json_schema(value) for name, value in properties.items()}
    if isinstance(items, Mapping):
        out["items"] = json_schema(items)
    if isinstance(any_of, list):
        out["anyOf"] = [json_schema(item) for item in any_of]
    kind = schema.get("type")
    if isinstance(kind, str) and kind.upper() != "TYPE_UNSPECIFIED":
        out["type"] = kind.lower()
    return _nullable(out) if schema.get("nullable") is True else out


def _nullable(schema: Json) -> Json:
    if "type" in schema:
        schema["type"] = [schema["type"], "null"]
    if "anyOf" in schema:
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema


# Usage


def read_usage(value: object, visible: str) -> Usage | None:
    """The tokens in a `usageMetadata`. Tool use counts as input, thoughts as output: both stand
    beside `promptTokenCount` and the count of what is seen.

    Args:
        visible: the name of that count, in which the two APIs differ.
    """
    if not isinstance(value, Mapping) or not value:
        return None
    names = ("promptTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount")
    prompt, tool_use, cached = (count(value.get(name)) for name in names)
    seen, thoughts = count(value.get(visible)), count(value.get("thoughtsTokenCount"))
    return Usage(prompt + tool_use, seen + thoughts, thoughts, cached)
