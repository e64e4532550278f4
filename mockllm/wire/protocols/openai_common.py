"""Shared by OpenAI's APIs: errors, headers, usage, texts of messages, checks of tools; and the
form of a call, which others have from OpenAI. An error for an invalid field has the service's
message, `param` and `code`.

https://platform.openai.com/docs/api-reference and https://platform.openai.com/docs/guides/error-codes
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mockllm.core.errors import RequestError
from mockllm.core.events import Frame, StreamError, Usage
from mockllm.core.http import Target
from mockllm.core.request import CallEcho, OfferedTool, SentFile
from mockllm.core.seeded import derive, derive_int
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import Reply, content_headers, dumps, retry_headers
from mockllm.wire.protocols.checks import Check, Checks
from mockllm.wire.protocols.records import Fields, Json, NumberedFrame, service_errors
from mockllm.wire.protocols.values import (
    array,
    digits,
    kind,
    mapping,
    objects,
    plain_object,
    sent_as_base64,
    sent_by_url,
    sent_files,
    string,
    whole,
)
from mockllm.wire.protocols.writing import data_url, is_url

if TYPE_CHECKING:
    from mockllm.core.quotas import Excess, Level

SERVICE_ERRORS = service_errors(
    StreamError(
        "The server is currently overloaded with other requests. Sorry about that!",
        "service_unavailable_error",
        "server_is_overloaded",
    ),
    StreamError("Rate limit reached for requests.", "requests", "rate_limit_exceeded"),
    StreamError(
        "The server had an error while processing your request. Sorry about that!",
        "server_error",
        "server_error",
    ),
)
"""The errors that do not depend on the request."""

VERSION = "2020-10-01"
"""The value of the `openai-version` header, the same for years."""

ORGANIZATION = "user-" + derive("organization", length=24, hex=True)
PROJECT = "proj_" + derive("project", length=24)
"""The account that each answer names."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_NAME_PATTERN = "^[a-zA-Z0-9_-]+$"
_TEXT_FIELDS = {"refusal": "refusal"} | dict.fromkeys(
    ("text", "input_text", "output_text", "summary_text", "reasoning_text"), "text"
)
"""The field with the text of a part, by its type."""

_SCHEMA_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})

_TYPES = {
    408: "timeout_error",
    429: "requests",
    503: "service_unavailable_error",
    504: "timeout_error",
}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}

_LIMIT_REQUESTS = 10_000
_LIMIT_TOKENS = 30_000_000


def error_body(error: RequestError) -> Json:
    """An error as `{"error": {"message", "type", "param", "code"}}`. Where the error has no `type`,
    it is the usual one of the status; so is `code` for 401 and 429."""
    status = error.status
    usual = "server_error" if status >= 500 else "invalid_request_error"
    code = error.code
    if code is None and error.type is None:
        code = _CODES.get(status)
    return {
        "error": {
            "message": error.message,
            "type": error.type or _TYPES.get(status, usual),
            "param": error.param,
            "code": code,
        }
    }


def write_error(error: StreamError) -> Json:
    """An error as an event, and as a body; the inverse of `error_of`."""
    fields = {
        "message": error.message,
        "type": error.type or "server_error",
        "param": None,
        "code": error.code,
    }
    return {"error": fields}


def error_of(error: object) -> StreamError:
    """An error from `{"message", "type", "code"}`, from such an object under `error`, or from a
    string."""
    if isinstance(error, dict) and error.get("error"):
        error = error["error"]
    if not isinstance(error, dict):
        return StreamError(error if isinstance(error, str) else json.dumps(error))
    code = error.get("code")
    return StreamError(
        string(error.get("message")) or json.dumps(error, ensure_ascii=False),
        string(error.get("type")) or None,
        None if code is None else str(code),
    )


def error_headers(seed: str, error: RequestError) -> dict[str, str]:
    """The headers of an error answer.

    Args:
        seed: the request id is derived from it.
    """
    headers = {"content-type": "application/json", **_identity(seed, "error", error.status)}
    if error.status == 429:
        tokens = error.type == "tokens"
        headers |= _limits(
            requests=_LIMIT_REQUESTS if tokens else 0,
            tokens=0 if tokens else _LIMIT_TOKENS,
            reset=1.0 if error.retry_after is None else error.retry_after,
        )
    return headers | retry_headers(error.retry_after)


def answer_headers(reply: Reply, stream: bool) -> dict[str, str]:
    """The headers of a successful answer; all values are derived from `reply.seed`."""
    return (
        content_headers(stream)
        | _identity(reply.seed, "answer")
        | _limits(
            requests=_LIMIT_REQUESTS - 1,
            tokens=max(0, _LIMIT_TOKENS - reply.usage.input - reply.usage.output),
            reset=0.006,
        )
    )


def _identity(seed: str, *what: object) -> dict[str, str]:
    return {
        "x-request-id": "req_" + derive(seed, "request", *what, length=32, hex=True),
        "openai-version": VERSION,
        "openai-organization": ORGANIZATION,
        "openai-project": PROJECT,
        "openai-processing-ms": str(20 + derive_int(seed, "processing", *what, below=400)),
    }


def _limits(requests: int, tokens: int, reset: float) -> dict[str, str]:
    duration = _duration(reset)
    return {
        "x-ratelimit-limit-requests": str(_LIMIT_REQUESTS),
        "x-ratelimit-limit-tokens": str(_LIMIT_TOKENS),
        "x-ratelimit-remaining-requests": str(requests),
        "x-ratelimit-remaining-tokens": str(tokens),
        "x-ratelimit-reset-requests": duration,
        "x-ratelimit-reset-tokens": duration,
    }


def quota_headers(_target: Target, levels: Sequence[Level]) -> dict[str, str]:
    """The rest of limits. The service has no headers for input or output tokens alone.
    Those of other limits stay as they are; in a refusal, nothing of them is used."""
    headers: dict[str, str] = {}
    if any(level.exceeded for level in levels):
        headers = _limits(requests=_LIMIT_REQUESTS, tokens=_LIMIT_TOKENS, reset=0)
    for level in levels:
        resource = level.limit.resource
        if resource in ("requests", "tokens"):
            headers[f"x-ratelimit-limit-{resource}"] = str(level.limit.amount)
            headers[f"x-ratelimit-remaining-{resource}"] = str(level.remaining)
            headers[f"x-ratelimit-reset-{resource}"] = _duration(level.reset)
    return headers


def quota_error(_target: Target, excess: Excess) -> RequestError:
    """The error for a request that exceeds a limit."""
    limit = excess.limit
    period = "min" if limit.period == "minute" else limit.period
    short = "".join(word[0] for word in f"{limit.noun} per {period}".split()).upper()
    where = f"for {excess.model} in organization {ORGANIZATION} on {limit.noun} per {period} "
    where += f"({short}): Limit {limit.amount}, "
    if excess.wait is None:
        text = f"Request too large {where}Requested {excess.requested}. The input or output tokens "
        text += "must be reduced in order to run successfully."
    else:
        text = f"Rate limit reached {where}Used {excess.used}, Requested {excess.requested}. "
        text += f"Please try again in {_duration(excess.wait)}."
    return RequestError(
        f"{text} Visit https://platform.openai.com/account/rate-limits to learn more.",
        status=429,
        type="requests" if limit.resource == "requests" else "tokens",
        code=_CODES[429],
        retry_after=excess.wait,
    )


def _duration(seconds: float) -> str:
    """A duration in Go's format, which the service uses: `6ms`, `1s`, `1.5s`, `6m0s`, `1h0m0s`."""
    milliseconds = round(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    rest = f"{milliseconds / 1000:g}s"
    if hours:
        return f"{hours}h{minutes}m{rest}"
    return f"{minutes}m{rest}" if minutes else rest


_OTHER_FINISHES = frozenset(
    {
        "end_turn",
        "max_output_tokens",
        "max_tokens",
        "model_context_window_exceeded",
        "pause_turn",
        "refusal",
        "stop_sequence",
        "tool_use",
    }
)


def is_end(chunk: Fields) -> bool:
    """Whether a chunk of a stream of choices says how it ended."""
    choices = objects(chunk.get("choices"))
    return bool(chunk.get("error")) or any(choice.get("finish_reason") for choice in choices)


def join_choices(
    frames: Sequence[NumberedFrame], _turn: Turn, _reply: Reply
) -> list[tuple[int, Frame]]:
    """The chunks of several choices as one stream. Usage and `[DONE]` come once, after all of
    them."""
    joined: list[tuple[int, Frame]] = []
    ends: list[Frame] = []
    for at, number, frame in frames:
        chunk = plain_object(frame) or {}
        if frame.data == "[DONE]" or (chunk.get("choices") == [] and chunk.get("usage")):
            ends += [] if number else [frame]
        elif number:
            choices = [{**choice, "index": number} for choice in objects(chunk.get("choices"))]
            joined.append((at, Frame(dumps({**chunk, "choices": choices}))))
        else:
            joined.append((at, frame))
    return [*joined, *((frames[-1][0], frame) for frame in ends)]


def join_bodies(bodies: Sequence[Json]) -> Json:
    """The bodies of several choices as one, which has the usage of the first."""
    choices = [body["choices"][0] for body in bodies]
    return {**bodies[0], "choices": [{**one, "index": i} for i, one in enumerate(choices)]}


def is_foreign_finish(value: str) -> bool:
    """Whether a finish reason is a value of another protocol. A scenario that was recorded over one
    API is played over others, which never send its `finish_raw`."""
    return value in _OTHER_FINISHES or value.isupper()  # Gemini's and Cohere's are upper case


def usage_of(usage: object) -> Usage | None:
    """The usage in a `usage` object, also with the names that DeepSeek and xAI give to details.
    None where it counts neither prompt tokens nor completion tokens."""
    if not isinstance(usage, dict):
        return None
    if whole(usage.get("prompt_tokens")) is whole(usage.get("completion_tokens")) is None:
        return None
    prompt = mapping(usage.get("prompt_tokens_details"))
    completion = mapping(usage.get("completion_tokens_details"))
    return Usage(
        input=_count(usage.get("prompt_tokens")),
        output=_count(usage.get("completion_tokens")),
        reasoning=_count(completion.get("reasoning_tokens") or usage.get("reasoning_tokens")),
        cached=_count(prompt.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")),
        cache_written=_count(prompt.get("cache_write_tokens")),
    )


def cache_write(usage: Usage) -> Json:
    """The fields of `prompt_tokens_details` for a prompt that was written into a cache."""
    return {"cache_write_tokens": usage.cache_written} if usage.cache_written else {}


def _count(value: object) -> int:
    return whole(value) or 0


def text_of(content: object) -> str:
    """The text of a message's content: a string, or a list of parts whose texts are joined. Parts
    that hold no text (images, audio, files) add nothing, and neither does content of another
    kind."""
    if isinstance(content, str):
        return content
    return "".join(map(_part_text, array(content)))


def _part_text(part: object) -> str:
    if not isinstance(part, Mapping):
        return part if isinstance(part, str) else ""
    type_ = part.get("type", "text")
    field = _TEXT_FIELDS.get(type_, "") if isinstance(type_, str) else "text"
    return string(part.get(field))


def files_of(content: object) -> tuple[SentFile, ...]:
    """The files in the parts of a message, each by its type."""
    if not isinstance(content, list):
        return ()
    return sent_files(_file_in(part) for part in content if isinstance(part, Mapping))


def _file_in(part: Mapping[str, object]) -> SentFile | None:
    kind = part.get("type")
    given = part.get(kind) if isinstance(kind, str) else None
    inner = given if isinstance(given, Mapping) else part
    match kind:
        case "image_url":
            return sent_by_url(inner.get("url") or given, "image/*")
        case "input_image":
            return sent_by_url(part.get("image_url") or part.get("file_id"), "image/*")
        case "input_audio":
            return sent_as_base64(inner.get("data"), f"audio/{string(inner.get('format')) or '*'}")
        case "file" | "input_file":
            names = ("file_data", "file_id", "file_url")
            return sent_by_url(next(filter(None, map(inner.get, names)), None), "*/*")
    return None


def check_parts(where: str, content: object) -> None:
    """Raises for content that is neither a string nor a list of parts with a type and a text."""
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise invalid_type(where, "a string or array of content parts", content)
    for i, part in enumerate(content):
        OBJECT(f"{where}[{i}]", part)
        type_ = part.get("type")
        if not isinstance(type_, str):
            raise missing(f"{where}[{i}].type")
        field = _TEXT_FIELDS.get(type_)
        if field is not None:
            TEXT(f"{where}[{i}].{field}", part.get(field))


def function_call(id: str, name: str, arguments: str) -> Json:
    """A call of a function in a message."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def read_call(call: Fields, absent: str = "") -> CallEcho:
    """A call in a message, the inverse of `function_call`. Arguments may be a value instead of
    text.

    Args:
        absent: the arguments of a call that has none.
    """
    function = mapping(call.get("function"))
    given = function.get("arguments")
    arguments = given if isinstance(given, str) else absent if given is None else dumps(given)
    return CallEcho(string(call.get("id")), string(function.get("name")), arguments)


def json_schema_format(schema: Fields) -> Json:
    """The format of a text with a JSON Schema, the inverse of `output_schema`: in one object."""
    if not schema:
        return {"type": "json_object"}
    return {"type": "json_schema", "name": "answer", "schema": schema}


def sent_audio(file: SentFile) -> Iterator[Json]:
    """The part of a message with a recording; none for one that is only referred to."""
    if file.data:
        sound = {"data": file.data, "format": file.media_type.partition("/")[2]}
        yield {"type": "input_audio", "input_audio": sound}


def sent_document(file: SentFile) -> Json:
    """The fields of a file that is no image and no recording; {} for one by its URL."""
    if file.reference:
        return {} if is_url(file) else {"file_id": file.reference}
    name = f"file.{file.media_type.partition('/')[2].replace('*', 'bin')}"
    return {"filename": name, "file_data": data_url(file)}


def is_tool_name(name: object) -> bool:
    """Whether OpenAI accepts it as the name of a tool: `^[a-zA-Z0-9_-]{1,64}$`."""
    return isinstance(name, str) and _NAME.match(name) is not None


def _grammar_of(format: object) -> str:
    """The grammar in the `format` of a custom tool, as either API writes it; "" for any text. The
    `CustomToolInputFormat` of openai-python 2.x has `syntax` and `definition` in the format, that
    of Chat Completions in its `grammar`."""
    value = format if isinstance(format, Mapping) else {}
    grammar = value.get("grammar") if isinstance(value.get("grammar"), Mapping) else value
    definition = grammar.get("definition") if isinstance(grammar, Mapping) else None
    return definition if isinstance(definition, str) else ""


def check_name(where: str, name: object) -> None:
    """Raises for a name of a tool that OpenAI would refuse."""
    TEXT(where, name)
    if not is_tool_name(name):
        raise _bad_name(str(name), where)


def check_tool(name: object, parameters: object, where: str) -> None:
    """Raises for a tool whose name or schema OpenAI would refuse.

    Args:
        parameters: the JSON Schema of the arguments; None is a tool without any.
        where: the path of the mapping that holds `name` and `parameters`, e.g.
            `tools[0].function`.
    """
    if name is None:
        raise missing(f"{where}.name")
    if not is_tool_name(name):
        check_name(f"{where}.name", name)
    if parameters is not None:
        check_schema(parameters, str(name), f"{where}.parameters")


def _bad_name(name: str, where: str) -> RequestError:
    if not name:
        problem, code = "empty string. Expected a string with minimum length 1", "empty_string"
    elif len(name) > 64:
        problem = (
            "string too long. Expected a string with maximum length 64, "
            f"but got a string with length {len(name)} instead"
        )
        code = "string_above_max_length"
    else:
        problem = (
            "string does not match pattern. "
            f"Expected a string that matches the pattern '{_NAME_PATTERN}'"
        )
        code = "invalid_value"
    return RequestError(f"Invalid '{where}': {problem}.", param=where, code=code)


def check_schema(schema: object, name: str, where: str) -> None:
    """Raises for parameters that are not the JSON Schema of an object. Only the outermost level is
    checked: OpenAI requires `type: object` (a schema without `type` is accepted), and properties
    that are schemas."""
    OBJECT(where, schema)
    assert isinstance(schema, Mapping)
    refusal = partial(_bad_schema, name, where)
    type_ = schema.get("type", "object")
    if type_ != "object":
        got = f'"{type_}"' if isinstance(type_, str) else str(type_)
        raise refusal(f"schema must be a JSON Schema of 'type: \"object\"', got 'type: {got}'")
    properties = schema.get("properties", {})
    if not isinstance(properties, (dict, Mapping)):
        raise refusal(f"{kind(properties)} is not of type 'object' in 'properties'")
    for key, value in properties.items():
        if isinstance(value, (dict, Mapping)):
            inner = value.get("type")
            if isinstance(inner, str) and inner not in _SCHEMA_TYPES:
                raise refusal(f"'{inner}' is not valid under any of the given schemas")
        elif not isinstance(value, bool):
            raise refusal(f"{kind(value)} is no schema in 'properties.{key}'")
    required = schema.get("required", [])
    if not isinstance(required, list) or [item for item in required if not isinstance(item, str)]:
        raise refusal("'required' must be an array of strings")


def _bad_schema(name: str, where: str, problem: str) -> RequestError:
    message = f"Invalid schema for function '{name}': {problem}."
    return RequestError(message, param=where, code="invalid_function_parameters")


def invalid_type(where: str, expected: str, got: object) -> RequestError:
    """A field of the wrong kind, e.g. `invalid_type("n", "an integer", "2")`."""
    message = f"Invalid type for '{where}': expected {expected}, but got {kind(got)} instead."
    return RequestError(message, param=where, code="invalid_type")


def missing(where: str) -> RequestError:
    """A required field that is missing."""
    return RequestError(
        f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter"
    )


def not_found(kind: str, id: str, param: str = "id") -> RequestError:
    """A file, a batch or another thing that is not known, or no longer."""
    return RequestError(f"No such {kind} object: {id}", status=404, param=param)


def page_size(target: Target, default: int, most: int) -> int:
    """The `limit` of a query."""
    text = target.query.get("limit", str(default))
    size = digits(text)
    if size is None or not 1 <= size <= most:
        raise RequestError(
            f"Invalid 'limit': expected a whole number from 1 to {most}, got '{text}'.",
            param="limit",
        )
    return size


def list_page(values: list[Json], after: str | None, limit: int) -> Json:
    """A page of a list of objects with ids: those behind the id `after`."""
    ids = [value["id"] for value in values]
    start = ids.index(after) + 1 if after in ids else 0
    page = values[start : start + limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "has_more": start + limit < len(values),
        "last_id": page[-1]["id"] if page else None,
    }


def empty_array(where: str) -> RequestError:
    """An empty array that must have an item."""
    problem = "empty array. Expected an array with minimum length 1, but got an empty array instead"
    return RequestError(f"Invalid '{where}': {problem}.", param=where, code="empty_array")


def bad_value(where: str, got: str, known: tuple[str, ...]) -> RequestError:
    """A value that is not one of the known ones."""
    quoted = [f"'{value}'" for value in known]
    if len(quoted) > 2:
        quoted = [", ".join(quoted[:-1]) + ",", quoted[-1]]
    message = f"Invalid value: '{got}'. Supported values are: {' and '.join(quoted)}."
    return RequestError(message, param=where, code="invalid_value")


def _outside(where: str, got: float, low: float, high: float | None, whole: bool) -> RequestError:
    noun = "integer" if whole else "decimal"
    side, bound, relation = "above", "maximum", f"<= {high:g}" if high is not None else ""
    if got < low:
        side, bound, relation = "below", "minimum", f">= {low:g}"
    problem = f"{noun} {side} {bound} value. Expected a value {relation}, but got {got} instead"
    code = f"{noun}_{side}_{bound[:3]}_value"
    return RequestError(f"Invalid '{where}': {problem}.", param=where, code=code)


CHECKS = Checks(
    invalid_type,
    a_string="a string",
    an_object="an object",
    an_array="an array of objects",
    an_integer="an integer",
    a_decimal="a decimal",
    missing=missing,
    unknown=bad_value,
    outside=_outside,
)
BOOLEAN = CHECKS.of_kind(bool, "a boolean")
TEXT = CHECKS.text
OBJECT = CHECKS.mapping
OBJECTS = CHECKS.of_kind(list, "an array of objects")
_HAS_FORMAT = CHECKS.fields({"type": CHECKS.one_of("json_object", "json_schema", "text")})


def output_schema(
    format: object, where: str, strict: bool, check: Check, inner: str = ""
) -> Fields | None:
    """The JSON Schema in the format of a text; {} for any JSON object, None for plain text.

    Args:
        check: of a format with a schema.
        inner: the field of the format that has the schema; "" if it is the format itself.
    """
    if format is None:
        return None
    if strict:
        _HAS_FORMAT(where, format)
    given = mapping(format)
    if given.get("type") == "json_schema":
        if strict:
            check(where, format)
        return mapping((mapping(given.get(inner)) if inner else given).get("schema"))
    return {} if given.get("type") == "json_object" else None


def offered_tool(fields: Fields, *, custom: bool) -> OfferedTool | None:
    """The tool that an object offers; None for one without a name."""
    name, format = fields.get("name"), fields.get("format")
    if not isinstance(name, str):
        return None
    description, schema = string(fields.get("description")), mapping(fields.get("parameters"))
    return OfferedTool(name, description, schema, custom, _grammar_of(format))
