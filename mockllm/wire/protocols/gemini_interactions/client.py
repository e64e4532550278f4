"""The requests that a client of Interactions sends. A continuation names the earlier interaction by
its id, or has all steps, those of the model with their signatures.

The service refuses a call or a thought that comes back without a valid signature:
https://ai.google.dev/gemini-api/docs/thought-signatures
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.core.request import CallEcho, Message, Parameters, Request, SentFile
from mockllm.core.text import display
from mockllm.core.turn import Reasoning, ToolCall, Turn
from mockllm.wire.protocols.gemini_interactions.fields import PREFIX
from mockllm.wire.protocols.gemini_interactions.input import RESULT, USER
from mockllm.wire.protocols.gemini_interactions.request import PREVIOUS
from mockllm.wire.protocols.gemini_interactions.steps import CALL, TEXT, THOUGHT, thought_signature
from mockllm.wire.protocols.records import ClientRequests, Feature, Fields, Json
from mockllm.wire.protocols.values import function_tool, mapping, objects
from mockllm.wire.protocols.writing import (
    arguments_value,
    field_feature,
    joined_answers,
    known_type,
    pair_results,
    parameter_fields,
    read_parameters,
    with_function_tools,
)

_NAMES = {
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop_sequences",
    "seed": "seed",
}


def _write(request: Request, parameters: Parameters) -> Json:
    """The body of a request."""
    request = with_function_tools(request)
    system = [message.text for message in request.messages if message.role == "system"]
    others = [message for message in request.messages if message.role != "system"]
    body: Json = {"model": request.model, **({"stream": True} if request.stream else {})}
    body["input"] = _input(joined_answers(pair_results(others)))
    if any(system):
        body["system_instruction"] = "\n".join(filter(None, system))
    if request.previous is not None:
        body[PREVIOUS] = PREFIX + request.previous
    config = parameter_fields(parameters, _NAMES)
    if request.tools:
        body["tools"] = [{"type": "function", **function_tool(tool)} for tool in request.tools]
        config |= _tool_choice(request.tool_choice)
    if request.wants_reasoning:
        config["thinking_summaries"] = "auto"
    if request.output_schema is not None:
        schema = {"schema": request.output_schema} if request.output_schema else {}
        json = {"type": "text", "mime_type": "application/json", **schema}
        body["response_format"] = json
    return body | ({"generation_config": config} if config else {})


def _tool_choice(choice: str) -> Json:
    if choice == "auto":
        return {}
    modes = {"none": "none", "required": "any"}
    only = {"allowed_tools": {"mode": "any", "tools": [choice]}}
    return {"tool_choice": modes.get(choice, only)}


def _input(messages: Sequence[Message]) -> str | list[Json]:
    match messages:
        case [Message(role="user", text=text, files=())]:
            return text
    return [step for message in messages for step in _steps(message)]


def _steps(message: Message) -> Iterator[Json]:
    """The steps of a message; none for an answer that says nothing."""
    text = [{"type": "text", "text": message.text}] if message.text else []
    if message.role == "tool":
        yield _result(message)
    elif message.role == "user":
        yield {"type": USER, "content": [*text, *_files(message.files)]}
    elif text:
        yield {"type": TEXT, "content": text}
    for call in message.calls:
        yield _call(call)


def _call(call: CallEcho) -> Json:
    return {"type": CALL, "id": call.id, "name": call.name, "arguments": arguments_value(call)}


def _result(message: Message) -> Json:
    named = {"name": message.name} if message.name else {}
    failed = {"is_error": True} if message.error else {}
    return {"type": RESULT, "call_id": message.call_id, **named, "result": message.text, **failed}


def _files(files: Sequence[SentFile]) -> Iterator[Json]:
    for file in files:
        media_type = known_type(file)
        kind = media_type.partition("/")[0]
        typed = {} if media_type.endswith("*") else {"mime_type": media_type}
        source = {"data": file.data} if file.data else {"uri": file.reference}
        is_media = kind in ("image", "audio", "video")
        yield {"type": kind if is_media else "document", **source, **typed}


def _next_body(
    body: Json, answer: str, messages: Sequence[Message], calls: Sequence[ToolCall]
) -> Json:
    """The service has the answer already."""
    _, *given = messages
    results = [_result(message) for message in given if message.role == "tool"]
    return {**body, PREVIOUS: answer, "input": results or given[-1].text}


def _latest_steps(body: Fields) -> list[Json]:
    """The steps of the latest turn of the model in a history."""
    latest: list[Json] = []
    for step in reversed(objects(body.get("input"))):
        if step.get("type") not in (USER, RESULT):
            latest.insert(0, step)
        elif latest:
            break
    return latest


def _opaque_mistake(request: Request, turn: Turn) -> str | None:
    """Why the service refuses the thoughts of the latest turn; None if it does not, or has them."""
    latest = _latest_steps(request.body)
    streamed = [thought_signature(part) for part in turn.parts if isinstance(part, Reasoning)]
    if not streamed or not any(step.get("type") == CALL for step in latest):
        return None
    sent = [step.get("signature") for step in latest if step.get("type") == THOUGHT]
    for signature in sent:
        if signature not in streamed:
            return (
                f"a thought is sent back with the signature {display(signature)}, but was streamed "
                f"with {display(streamed[0])}; a client sends back signatures unchanged"
            )
    if len(sent) < len(streamed):
        return (
            "the thought that was streamed before the calls is not sent back; a client that sends "
            "the steps of the model sends back their thoughts, too"
        )
    return None


def _put_signatures(body: Json, pairs: Sequence[Sequence[str]]) -> Json:
    """The body with thoughts, each of its summary and its signature, before what the model did
    last."""
    steps, latest = objects(body["input"]), _latest_steps(body)
    at = steps.index(latest[0]) if latest else len(steps)
    thoughts = [
        {
            "type": THOUGHT,
            **({"summary": [{"type": "text", "text": text}]} if text else {}),
            "signature": signature,
        }
        for text, signature in pairs
    ]
    return {**body, "input": [*steps[:at], *thoughts, *steps[at:]]}


def _signatures(body: Fields) -> object:
    thoughts = [step for step in objects(body.get("input")) if step.get("type") == THOUGHT]
    texts = ["".join(one.get("text", "") for one in objects(t.get("summary"))) for t in thoughts]
    pairs = zip(texts, thoughts, strict=True)
    return [[text, thought.get("signature")] for text, thought in pairs] or None


CLIENT = ClientRequests(
    write=_write,
    parameters=lambda body: read_parameters(_NAMES, mapping(body.get("generation_config")).get),
    next_body=_next_body,
    path="/v1beta/interactions",
    service="https://generativelanguage.googleapis.com",
    group="gemini",
    tool_fields=("tools",),
    headers={"x-goog-api-key": "mock-key"},
    stream_field="stream",
    arguments_are_values=True,
    opaque_mistake=_opaque_mistake,
    features={
        "metadata": field_feature("labels"),
        "signatures": Feature(_put_signatures, _signatures, "google"),
    },
)
