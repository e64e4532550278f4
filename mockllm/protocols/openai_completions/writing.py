"""Writes requests of Completions: the inverse of `request`. The API has a prompt, and neither
tools nor files."""

from __future__ import annotations

from mockllm.core.request import Parameters, Request
from mockllm.protocols.openai_completions.prompts import written_conversation
from mockllm.protocols.records import Fields, Json
from mockllm.protocols.writing import parameter_fields, read_parameters

_OF_VLLM = ("min_tokens", "ignore_eos")
_NAMES = {name: name for name in ("max_tokens", "temperature", "top_p", "stop", "seed", *_OF_VLLM)}


def write(request: Request, parameters: Parameters) -> Json:
    """The body of a request."""
    streamed = {"stream": True} if request.stream else {}
    prompt = written_conversation(request.messages)
    body = {"model": request.model, **streamed, "prompt": prompt}
    return body | parameter_fields(parameters, _NAMES)


def parameters(body: Fields) -> Parameters:
    """The parameters in a body."""
    return read_parameters(_NAMES, body.get)
