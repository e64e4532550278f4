"""agno: a model's `response_stream()`, read up to the end of one answer."""

from __future__ import annotations

from typing import Any

from agno.models.message import Message
from agno.models.response import ModelResponseEvent
from agno.tools import Function
from job import API_KEY, Job, as_text, parsed

__all__ = ["chat", "messages", "responses"]


def chat(job: Job) -> dict[str, Any]:
    """`OpenAIChat`."""
    from agno.models.openai import OpenAIChat

    model = OpenAIChat(id="gpt-4o", base_url=job.base_url, **_options(job))
    return _run(model, job)


def responses(job: Job) -> dict[str, Any]:
    """`OpenAIResponses`."""
    from agno.models.openai import OpenAIResponses

    model = OpenAIResponses(id="gpt-4o", base_url=job.base_url, **_options(job))
    return _run(model, job)


def messages(job: Job) -> dict[str, Any]:
    """`Claude`."""
    from agno.models.anthropic import Claude

    parameters = {"base_url": job.base_url, "max_retries": 0}
    model = Claude(
        id="claude-sonnet-4-5",
        api_key=API_KEY,
        timeout=job.deadline,
        client_params=parameters,
    )
    return _anew(_run(model, job))


def _anew(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer of a model that serializes the arguments of its calls anew."""
    calls = [{**call, "arguments": parsed(call["arguments"])} for call in answer["tool_calls"]]
    return {**answer, "tool_calls": calls}


def _options(job: Job) -> dict[str, Any]:
    return {"api_key": API_KEY, "max_retries": 0, "timeout": job.deadline}


def _run(model: Any, job: Job) -> dict[str, Any]:
    history = [Message(role="user", content=job.prompt)]
    tools = list(map(_tool, job.functions))
    for event in model.response_stream(messages=history, tools=tools):
        # What comes next are the tools, and another request where a call cannot be executed.
        if event.event == ModelResponseEvent.model_request_completed.value:
            break
    return _outcome(history[-1])


def _tool(function: dict[str, Any]) -> Function:
    return Function(
        name=function["name"],
        description=function["description"],
        parameters=function["parameters"],
        entrypoint=lambda **arguments: "done",
        skip_entrypoint_processing=True,
        external_execution=True,
    )


def _outcome(message: Any) -> dict[str, Any]:
    usage = message.metrics
    return {
        "text": as_text(message.content),
        "reasoning": as_text(message.reasoning_content),
        "tool_calls": [
            {
                "id": call.get("call_id") or call["id"],
                "name": call["function"]["name"],
                "arguments": call["function"]["arguments"],
            }
            for call in message.tool_calls or ()
            if call.get("type") == "function"  # it fills gaps of the index, and leaves these out
        ],
        # It has zeros if none was sent.
        "usage": {"input": usage.input_tokens, "output": usage.output_tokens}
        if usage and usage.total_tokens
        else None,
    }
