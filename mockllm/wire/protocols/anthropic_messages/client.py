"""The requests that a client of Anthropic Messages sends.

With thinking enabled, the service refuses a continuation whose last assistant message does not
begin with a thinking block, and one whose thinking blocks were modified:
https://platform.claude.com/docs/en/build-with-claude/extended-thinking#preserving-thinking-blocks
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mockllm.core.request import Message, OfferedTool, Parameters, Request, SentFile
from mockllm.core.text import display
from mockllm.core.turn import Opaque, Part, Reasoning, Turn
from mockllm.wire.protocols.anthropic_messages.blocks import signature_of
from mockllm.wire.protocols.base import block_part
from mockllm.wire.protocols.records import ClientRequests, Feature, Fields, Json, PromptPart
from mockllm.wire.protocols.values import array, json_object, mapping, objects, string, tool_schema
from mockllm.wire.protocols.writing import (
    arguments_value,
    contents_in,
    field_feature,
    history_appender,
    is_url,
    joined_answers,
    known_type,
    leading_system,
    pair_results,
    parameter_fields,
    read_parameters,
    strict_tools,
    with_content,
    with_function_tools,
)

_NAMES = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop_sequences",
}
_MARK = {"cache_control": {"type": "ephemeral"}}
_LEAST_BUDGET = 1024  # of `thinking.budget_tokens`, by the same page
_USUAL_TOKENS = 1024


def _write(request: Request, parameters: Parameters) -> Json:
    """The body of a request."""
    request = with_function_tools(request)
    system, history = leading_system(joined_answers(pair_results(request.messages)))
    messages = _write_messages(history)
    thinking = _thinking(request, parameters)
    usual = _USUAL_TOKENS + (_LEAST_BUDGET if thinking else 0)
    body: Json = {
        "model": request.model,
        "max_tokens": usual,
        **({"stream": True} if request.stream else {}),
        "messages": messages,
        **_system(system, parameters),
        **parameter_fields(parameters, _NAMES),
        **_tools(request, parameters),
        **thinking,
    }
    _mark(messages, parameters.cache_marks - (1 if system else 0))
    if request.output_schema:  # any JSON object has no form
        body["output_config"] = {"format": {"type": "json_schema", "schema": request.output_schema}}
    return body


def _parameters(body: Fields) -> Parameters:
    """The parameters in a body. Each object with `cache_control` counts as a mark."""
    disabled = mapping(body.get("tool_choice")).get("disable_parallel_tool_use")
    parallel = not disabled if isinstance(disabled, bool) else None
    marks = sum("cache_control" in block for block in _all_blocks(body))
    found = read_parameters(_NAMES, body.get)
    return replace(found, parallel_calls=parallel, cache_marks=marks)


def _marked_parts(body: Fields) -> list[PromptPart]:
    """The tools, the system prompt and the blocks of the messages. A mark of the whole body is one
    of its last block."""
    parts = [_part("tool", tool) for tool in objects(body.get("tools"))]
    parts += [_part("system", block) for block in _content_blocks(body.get("system"))]
    for message in objects(body.get("messages")):
        role = string(message.get("role"))
        parts += [_part(role, block) for block in _content_blocks(message.get("content"))]
    if parts and "cache_control" in body:
        parts[-1] = replace(parts[-1], marked=True)
    return parts


def _content_blocks(content: object) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def _part(role: str, block: Json) -> PromptPart:
    plain = _without_marks(block)
    return replace(block_part(role, plain), marked=plain != block)


def _without_marks(block: Json) -> Json:
    plain = {key: value for key, value in block.items() if key != "cache_control"}
    if isinstance(plain.get("content"), list):  # of the result of a tool
        plain["content"] = [_without_marks(inner) for inner in objects(plain["content"])]
    return plain


def _all_blocks(body: Fields) -> Iterator[Fields]:
    yield from objects(body.get("system"))
    yield from objects(body.get("tools"))
    for message in objects(body.get("messages")):
        for block in objects(message.get("content")):
            yield block
            yield from objects(block.get("content"))


def _system(text: str, parameters: Parameters) -> Json:
    if not text:
        return {}
    marked = [{"type": "text", "text": text, **_MARK}]
    return {"system": marked if parameters.cache_marks else text}


def _mark(messages: list[Json], marks: int) -> None:
    """Marks the messages of the user, from the last one on."""
    users = [message for message in messages if message["role"] == "user" and message["content"]]
    for message in users[::-1][: max(marks, 0)]:
        *others, last = _blocks(message["content"])
        message["content"] = [*others, last | _MARK]


def _tools(request: Request, parameters: Parameters) -> Json:
    if not request.tools:
        return {}
    choice, parallel = _choice(request.tool_choice), parameters.parallel_calls
    if parallel is not None and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = not parallel
    chosen = {} if choice == {"type": "auto"} else {"tool_choice": choice}
    return {"tools": list(map(_tool, request.tools)), **chosen}


def _tool(tool: OfferedTool) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": tool_schema(tool)}


def _choice(choice: str) -> Json:
    usual = {"auto": "auto", "none": "none", "required": "any"}
    return {"type": usual[choice]} if choice in usual else {"type": "tool", "name": choice}


def _thinking(request: Request, parameters: Parameters) -> Json:
    """The field that enables reasoning. The service refuses it with a forced tool, and without
    tokens for more than the reasoning."""
    forced = bool(request.tools) and request.tool_choice not in ("auto", "none")
    most = parameters.max_tokens
    if not request.wants_reasoning or forced or (most is not None and most <= _LEAST_BUDGET):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": _LEAST_BUDGET}}


def _write_messages(messages: Sequence[Message]) -> list[Json]:
    """Messages as the API has them: results are in one message of the user, before what the user
    says."""
    written: list[Json] = []
    results: list[Json] = []
    for message in messages:
        if message.role == "tool":
            results.append(_result(message))
        elif message.role == "user" and results:
            blocks = [*results, *_blocks(_content(message))]
            written.append({"role": "user", "content": blocks})
            results = []
        else:
            written += _result_messages(results)
            written.append({"role": message.role, "content": _content(message)})
            results = []
    return [*written, *_result_messages(results)]


def _result_messages(results: list[Json]) -> list[Json]:
    return [{"role": "user", "content": results}] if results else []


def _result(message: Message) -> Json:
    result = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}
    return {**result, **({"is_error": True} if message.error else {})}


def _content(message: Message) -> str | list[Json]:
    uses = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_value(call)}
        for call in message.calls
    ]
    others = [*_files(message.files), *uses]
    return [*_blocks(message.text), *others] if others else message.text


def _blocks(content: str | list[Json]) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return array(content)


def _files(files: Iterable[SentFile]) -> Iterator[Json]:
    """Images and documents; recordings and other files have no block."""
    for file in files:
        type = known_type(file)
        kind = "image" if type.startswith("image/") else "document"
        if kind == "image" or type in ("application/pdf", "*/*"):
            yield {"type": kind, "source": _source(file, type)}


def _source(file: SentFile, type: str) -> Json:
    if file.data:
        return {"type": "base64", "media_type": type, "data": file.data}
    kind = "url" if is_url(file) else "file"
    return {"type": kind, "url" if kind == "url" else "file_id": file.reference}


def _opaque_mistake(request: Request, turn: Turn) -> str | None:
    """Why the service refuses the thinking blocks in the latest turn; None if it does not."""
    streamed = [part for part in turn.parts if isinstance(part, Reasoning)]
    redacted = set(filter(None, map(_redacted_data, turn.parts)))
    thinking = request.body.get("thinking")
    if (
        not (streamed or redacted)
        or not isinstance(thinking, Mapping)
        or thinking.get("type") != "enabled"
    ):
        return None
    blocks = [block for block in _latest_blocks(request) if block.get("type") in _THINKING]
    if not blocks and _begins_with_reasoning(turn):
        return (
            "the thinking block that was streamed before the calls is not sent back; with thinking "
            "enabled a client sends back all thinking blocks of a turn that calls tools"
        )
    known = {signature_of(part): part.text for part in streamed}
    for block in blocks:
        data = block.get("data")
        if block.get("type") == "redacted_thinking" and redacted and str(data) not in redacted:
            return (
                f"redacted thinking is sent back as {display(data)}, which was not streamed; a "
                "client sends back thinking blocks unchanged"
            )
        signature = block.get("signature")
        if block.get("type") == "thinking" and known.get(str(signature)) != block.get("thinking"):
            return (
                f"a thinking block is sent back with the signature {display(signature)} and the "
                f"text {display(block.get('thinking'))}, which were not streamed together; a "
                "client sends back thinking blocks unchanged"
            )
    return None


def _begins_with_reasoning(turn: Turn) -> bool:
    parts = (part for part in turn.parts if not isinstance(part, Opaque) or _redacted_data(part))
    return isinstance(next(parts), Reasoning | Opaque)


def _redacted_data(part: Part) -> str:
    """The data of redacted thinking; "" of other parts."""
    if not isinstance(part, Opaque) or not part.native:
        return ""
    return string((json_object(part.frame.data) or {}).get("data"))


_THINKING = ("thinking", "redacted_thinking")


def _latest_blocks(request: Request) -> Iterator[Fields]:
    reached = False
    for message in reversed(array(request.body.get("messages"))):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "assistant":
            reached = True
            yield from objects(message.get("content"))
        elif reached:
            return


def _reasoning_feature(kind: str, *names: str) -> Feature:
    """The feature of blocks of a kind in the history: the values of these fields of each."""

    def put(body: Json, values: Sequence[Sequence[str]]) -> Json:
        blocks = [{"type": kind, **dict(zip(names, value, strict=True))} for value in values]
        return with_content(body, blocks, "messages", "assistant", "content")

    def find(body: Fields) -> object:
        blocks = contents_in(body, "messages", "content")
        own = [block for block in blocks if block.get("type") == kind]
        return [[block.get(name) for name in names] for block in own] or None

    return Feature(put, find, "claude")


CLIENT = ClientRequests(
    write=_write,
    parameters=_parameters,
    next_body=history_appender(_write_messages),
    path="/v1/messages",
    service="https://api.anthropic.com",
    group="anthropic",
    tool_fields=("tools", "tool_choice"),
    headers={"x-api-key": "mock-key", "anthropic-version": "2023-06-01"},
    stream_field="stream",
    arguments_are_values=True,
    opaque_mistake=_opaque_mistake,
    marked_parts=_marked_parts,
    features={
        "end user": field_feature("metadata", "user_id"),
        "strict tools": strict_tools(),
        "signatures": _reasoning_feature("thinking", "thinking", "signature"),
        "redacted": _reasoning_feature("redacted_thinking", "data"),
    },
    further_headers={"anthropic-beta": "interleaved-thinking-2025-05-14"},
)
