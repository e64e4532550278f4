"""The requests that a client of Converse sends, with the model and the operation in the path. The
API cannot forbid calls while it offers tools, and refers only to files in S3.

Reasoning goes back as it was streamed, with its signature; Claude refuses the results of calls
without the reasoning before them:
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ReasoningContentBlock.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from mockllm.core.request import Message, OfferedTool, Parameters, Request, SentFile
from mockllm.core.text import display
from mockllm.core.turn import Opaque, Part, Reasoning, Turn
from mockllm.wire.protocols.base import block_part, dumps
from mockllm.wire.protocols.records import ClientRequests, Feature, Fields, Json, PromptPart
from mockllm.wire.protocols.values import json_object, mapping, objects, string, tool_schema
from mockllm.wire.protocols.writing import (
    arguments_value,
    contents_in,
    field_feature,
    history_appender,
    joined_answers,
    known_type,
    leading_system,
    pair_results,
    parameter_fields,
    read_parameters,
    with_content,
    with_function_tools,
)

_NAMES = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
}
_MARK: Json = {"cachePoint": {"type": "default"}}
_BUDGET = 1024


def _write(request: Request, parameters: Parameters) -> Json:
    """The body of a request."""
    request = with_function_tools(request)
    system, history = leading_system(joined_answers(pair_results(request.messages)))
    body: Json = {"messages": _write_messages(history)}
    if system:
        body["system"] = [{"text": system}]
    _mark(body, parameters.cache_marks)
    inference = parameter_fields(parameters, _NAMES)
    if inference:
        body["inferenceConfig"] = inference
    if request.tools:
        choice = _choice(request.tool_choice)
        body["toolConfig"] = {"tools": list(map(_spec, request.tools)), **choice}
    if request.output_schema:  # any JSON object has no form
        schema = {"name": "answer", "schema": dumps(request.output_schema)}
        format = {"type": "json_schema", "structure": {"jsonSchema": schema}}
        body["outputConfig"] = {"textFormat": format}
    if request.wants_reasoning and (parameters.max_tokens or _BUDGET + 1) > _BUDGET:
        thinking = {"type": "enabled", "budget_tokens": _BUDGET}
        body["additionalModelRequestFields"] = {"thinking": thinking}
    return body


def _parameters(body: Fields) -> Parameters:
    """The parameters in a body. Each `cachePoint` counts as a mark."""
    marks = sum("cachePoint" in block for block in _all_blocks(body))
    found = read_parameters(_NAMES, mapping(body.get("inferenceConfig")).get)
    return replace(found, cache_marks=marks)


def _marked_parts(body: Fields) -> list[PromptPart]:
    """The tools, the system prompt and the blocks of the messages; a `cachePoint` marks what is
    before it."""
    blocks = [("tool", tool) for tool in objects(mapping(body.get("toolConfig")).get("tools"))]
    blocks += [("system", block) for block in objects(body.get("system"))]
    for message in objects(body.get("messages")):
        role = string(message.get("role"))
        blocks += [(role, block) for block in objects(message.get("content"))]
    parts: list[PromptPart] = []
    for role, block in blocks:
        if "cachePoint" not in block:
            parts.append(block_part(role, block))
        elif parts:
            parts[-1] = replace(parts[-1], marked=True)
    return parts


def _all_blocks(body: Fields) -> Iterator[Fields]:
    yield from objects(body.get("system"))
    yield from objects(mapping(body.get("toolConfig")).get("tools"))
    for message in objects(body.get("messages")):
        yield from objects(message.get("content"))


def _mark(body: Json, marks: int) -> None:
    """Marks the system prompt, then the messages of the user from the last one on."""
    users = [message["content"] for message in body["messages"] if message["role"] == "user"]
    places = [*([body["system"]] if "system" in body else []), *reversed(users)]
    for blocks in places[:marks]:
        blocks.append(_MARK)


def _spec(tool: OfferedTool) -> Json:
    # The service refuses an empty description.
    described = {"description": tool.description} if tool.description else {}
    return {
        "toolSpec": {"name": tool.name, **described, "inputSchema": {"json": tool_schema(tool)}}
    }


def _choice(choice: str) -> Json:
    if choice in ("auto", "none"):
        return {}
    return {"toolChoice": {"any": {}} if choice == "required" else {"tool": {"name": choice}}}


def _write_messages(messages: Sequence[Message]) -> list[Json]:
    """Messages as the API has them, of user and model in turn: results are the user's, and come
    before what the user says."""
    runs = groupby(messages, lambda message: "user" if message.role == "tool" else message.role)
    return [{"role": role, "content": _blocks(list(run))} for role, run in runs]


def _blocks(run: list[Message]) -> list[Json]:
    results = [_result(message) for message in run if message.role == "tool"]
    others = [block for message in run if message.role != "tool" for block in _content(message)]
    # The service refuses a blank text, and a message without blocks.
    return [*results, *others] or [{"text": "."}]


def _result(message: Message) -> Json:
    failed = {"status": "error"} if message.error else {}
    result = {"toolUseId": message.call_id, "content": [{"text": message.text}], **failed}
    return {"toolResult": result}


def _content(message: Message) -> Iterator[Json]:
    if message.text.strip():
        yield {"text": message.text}
    yield from _files(message.files)
    for call in message.calls:
        use = {"toolUseId": call.id, "name": call.name, "input": arguments_value(call)}
        yield {"toolUse": use}


_DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
}


def _files(files: Iterable[SentFile]) -> Iterator[Json]:
    for file in files:
        type, _, format = known_type(file).partition("/")
        kind = type if type in ("image", "video", "audio") else "document"
        if kind == "document":
            named = {"format": _DOCUMENTS.get(file.media_type, "txt"), "name": "document"}
        else:
            named = {"format": format}
        if file.data:
            yield {kind: {**named, "source": {"bytes": file.data}}}
        elif file.reference.startswith("s3://"):
            yield {kind: {**named, "source": {"s3Location": {"uri": file.reference}}}}


def _opaque_mistake(request: Request, turn: Turn) -> str | None:
    """Why the service refuses the reasoning in the latest turn; None if it does not."""
    streamed = {(part.text, part.signature) for part in turn.parts if isinstance(part, Reasoning)}
    redacted = set(filter(None, map(_redacted_content, turn.parts)))
    if not streamed and not redacted:
        return None
    blocks = list(_latest_reasoning(request))
    first = next(
        part for part in turn.parts if not isinstance(part, Opaque) or _redacted_content(part)
    )
    if not blocks and isinstance(first, Reasoning | Opaque) and _thinks(request):
        return (
            "the reasoning that was streamed before the calls is not sent back; with thinking "
            "enabled a client sends back the reasoning of a turn that calls tools"
        )
    for block in blocks:
        reasoning = block.get("reasoningText")
        if isinstance(reasoning, Mapping):
            text, signature = reasoning.get("text"), reasoning.get("signature")
            if (text, signature) not in streamed:
                return (
                    f"reasoning is sent back with the signature {display(signature)} and the text "
                    f"{display(text)}, which were not streamed together; a client sends back "
                    "reasoning unchanged"
                )
            continue
        content = block.get("redactedContent")
        if content not in redacted:
            return (
                f"redacted reasoning is sent back as {display(content)}, which was not streamed; a "
                "client sends back redacted content unchanged"
            )
    return None


def _redacted_content(part: Part) -> str:
    """The redacted reasoning in a part; "" in others."""
    if not isinstance(part, Opaque):
        return ""
    event = mapping(mapping(json_object(part.frame.data or "")).get("contentBlockDelta"))
    return string(
        mapping(mapping(event.get("delta")).get("reasoningContent")).get("redactedContent")
    )


def _thinks(request: Request) -> bool:
    """Whether the reasoning of Claude is enabled, whose service checks it."""
    fields = mapping(request.body.get("additionalModelRequestFields"))
    kinds = (mapping(fields.get(name)).get("type") for name in ("thinking", "reasoning_config"))
    return "enabled" in kinds


def _latest_reasoning(request: Request) -> Iterator[Fields]:
    """The reasoning in the latest turn of the history."""
    reached = False
    for message in reversed(objects(request.body.get("messages"))):
        if message.get("role") == "assistant":
            reached = True
            for block in objects(message.get("content")):
                if "reasoningContent" in block:
                    yield mapping(block["reasoningContent"])
        elif reached:
            return


def _put_reasoning(body: Json, pairs: Sequence[Sequence[str]]) -> Json:
    texts = [{"text": text, "signature": signature} for text, signature in pairs]
    return _with_reasoning(body, [{"reasoningText": text} for text in texts])


def _put_redacted(body: Json, values: Sequence[Sequence[str]]) -> Json:
    return _with_reasoning(body, [{"redactedContent": data} for (data,) in values])


def _with_reasoning(body: Json, contents: Sequence[Json]) -> Json:
    blocks = [{"reasoningContent": content} for content in contents]
    return with_content(body, blocks, "messages", "assistant", "content")


def _reasoning_texts(body: Fields) -> object:
    texts = [mapping(content.get("reasoningText")) for content in _reasoning_contents(body)]
    return [[text.get("text"), text.get("signature")] for text in texts if text] or None


def _find_redacted(body: Fields) -> object:
    values = (content.get("redactedContent") for content in _reasoning_contents(body))
    return [[value] for value in values if value] or None


def _reasoning_contents(body: Fields) -> Iterator[Fields]:
    for content in contents_in(body, "messages", "content"):
        yield mapping(content.get("reasoningContent"))


CLIENT = ClientRequests(
    write=_write,
    parameters=_parameters,
    next_body=history_appender(_write_messages),
    path="/model/{model}/converse-stream",
    body_path="/model/{model}/converse",
    service="https://bedrock-runtime.us-east-1.amazonaws.com",
    group="bedrock",
    tool_fields=("toolConfig",),
    arguments_are_values=True,
    opaque_mistake=_opaque_mistake,
    marked_parts=_marked_parts,
    features={
        "metadata": field_feature("requestMetadata"),
        "signatures": Feature(_put_reasoning, _reasoning_texts, "claude"),
        "redacted": Feature(_put_redacted, _find_redacted, "claude"),
    },
)
