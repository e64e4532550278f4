"""smolagents: `generate_stream()`, whose deltas `agglomerate_stream_deltas` joins."""

from __future__ import annotations

from typing import Any

import openai
from job import API_KEY, Job, as_text
from smolagents import OpenAIModel, Tool
from smolagents.models import ChatMessage, MessageRole, agglomerate_stream_deltas

__all__ = ["chat"]


def chat(job: Job) -> dict[str, Any]:
    """The message of one answer, as `ToolCallingAgent` gets it."""
    model = job.kept(lambda: _model(job))
    question = ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": job.prompt}])
    stream = model.generate_stream(
        [question], tools_to_call_from=list(map(_tool, job.functions)) or None
    )
    deltas = list(job.watched(stream, lambda one: one.content))
    message = agglomerate_stream_deltas(deltas)
    usage = message.token_usage
    return {
        "text": as_text(message.content),
        "tool_calls": [
            {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
            for call in message.tool_calls or ()
        ],
        # It has zeros if none was sent.
        "usage": {"input": usage.input_tokens, "output": usage.output_tokens}
        if usage.total_tokens
        else None,
    }


def _model(job: Job) -> OpenAIModel:
    return OpenAIModel(
        "gpt-4o",
        api_base=job.base_url,
        api_key=API_KEY,
        client_kwargs={"max_retries": job.retries, "timeout": job.timeout(openai.Timeout)},
        retry=False,
    )


def _tool(function: dict[str, Any]) -> Tool:
    class Offered(Tool):  # type: ignore[misc]  # untyped
        name = function["name"]
        description = function["description"]
        inputs = {  # noqa: RUF012 - as smolagents wants it
            key: {"type": value.get("type", "any"), "description": key}
            for key, value in function["parameters"].get("properties", {}).items()
        }
        output_type = "string"
        skip_forward_signature_validation = True

        def forward(self, **arguments: Any) -> str:
            return "done"

    return Offered()
