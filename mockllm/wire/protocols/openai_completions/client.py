"""The requests that a client of Completions sends. The API has a prompt, in which a conversation is
a text, and neither tools nor files."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.request import Message, Parameters, Request
from mockllm.core.turn import ToolCall
from mockllm.wire.protocols.openai_completions.prompts import next_prompt, written_conversation
from mockllm.wire.protocols.records import ClientRequests, Json
from mockllm.wire.protocols.writing import field_feature, parameter_fields, read_parameters

_OF_VLLM = ("min_tokens", "ignore_eos")
_NAMES = {name: name for name in ("max_tokens", "temperature", "top_p", "stop", "seed", *_OF_VLLM)}


def _write(request: Request, parameters: Parameters) -> Json:
    """The body of a request."""
    streamed = {"stream": True} if request.stream else {}
    prompt = written_conversation(request.messages)
    body = {"model": request.model, **streamed, "prompt": prompt}
    return body | parameter_fields(parameters, _NAMES)


def _next_body(
    body: Json, answer: str, messages: Sequence[Message], calls: Sequence[ToolCall]
) -> Json:
    """An answer has no calls. What another API would send as their results is said by the user."""
    said, *asked = messages
    user = "\n".join(message.text for message in asked)
    return {**body, "prompt": next_prompt(body["prompt"], said.text, user)}


CLIENT = ClientRequests(
    write=_write,
    parameters=lambda body: read_parameters(_NAMES, body.get),
    next_body=_next_body,
    path="/v1/completions",
    service="https://api.openai.com",
    group="openai",
    tool_fields=(),
    headers={"authorization": "Bearer mock-key"},
    stream_field="stream",
    usage={"stream_options": {"include_usage": True}},
    features={"end user": field_feature("user")},
)
