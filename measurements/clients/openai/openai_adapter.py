"""openai-python with its own helpers for streams, read to their ends; the legacy Completions have
none, so the user joins the chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
from job import API_KEY, Job, as_text, joined

__all__ = ["chat", "completions", "responses"]


def chat(job: Job) -> dict[str, Any]:
    """`chat.completions.stream()`, then `get_final_completion()`."""
    options = {"tools": job.chat_tools} if job.tools else {}
    with (
        job.using(lambda: _client(job)) as client,
        job.entered(
            client.chat.completions.stream(
                model=job.model,
                messages=[{"role": "user", "content": job.prompt}],
                stream_options={"include_usage": True},
                **options,
            )
        ) as stream,
    ):
        for _ in job.watched(stream, _delta("content.delta"), stream.close):
            pass
        completion = stream.get_final_completion()
    answer = {
        "usage": _usage(completion.usage, "prompt", "completion"),
        "model": completion.model,
        "response_id": completion.id,
    }
    if not completion.choices:
        return {**answer, "text": "", "refusal": "", "role": None, "tool_calls": [], "finish": None}
    choice = completion.choices[0]
    message = choice.message
    return {
        **answer,
        "text": as_text(message.content),
        "refusal": as_text(message.refusal),
        "role": message.role,
        "tool_calls": [
            {
                "id": call.id,
                "name": call.function.name,
                "arguments": call.function.arguments,
                "raw_arguments": call.function.arguments,
            }
            for call in message.tool_calls or ()
        ],
        "finish": choice.finish_reason,
    }


def responses(job: Job) -> dict[str, Any]:
    """`responses.stream()`, then `get_final_response()`."""
    tools = [{"type": "function", **function} for function in job.functions]
    options = {"tools": tools} if tools else {}
    with (
        job.using(lambda: _client(job)) as client,
        job.entered(
            client.responses.stream(model=job.model, input=job.prompt, **options)
        ) as stream,
    ):
        for _ in job.watched(stream, _delta("response.output_text.delta"), stream.close):
            pass
        response = stream.get_final_response()
    why = response.incomplete_details
    return {
        "text": response.output_text,
        **_items(response.output),
        "finish": why.reason if why is not None else response.status,
        "usage": _usage(response.usage, "input", "output"),
        "errors": [response.error.message] if response.error is not None else [],
        "model": response.model,
        "response_id": response.id,
    }


def completions(job: Job) -> dict[str, Any]:
    """`completions.create(stream=True)`: the text of the first choice."""

    def text(chunk: Any) -> str:
        return joined(choice.text for choice in _first_choice(chunk))

    with job.using(lambda: _client(job)) as client:
        stream = client.completions.create(
            model=job.model,
            prompt=job.prompt,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(job.watched(stream, text, stream.close))
    choices = [choice for chunk in chunks for choice in _first_choice(chunk)]
    usages = [chunk.usage for chunk in chunks if chunk.usage]
    reasons = [choice.finish_reason for choice in choices if choice.finish_reason]
    return {
        "text": joined(choice.text for choice in choices),
        "finish": reasons[-1] if reasons else None,
        "usage": _usage(usages[-1], "prompt", "completion") if usages else None,
        "model": chunks[0].model if chunks else None,
        "response_id": chunks[0].id if chunks else None,
    }


def _first_choice(chunk: Any) -> list[Any]:
    return [choice for choice in chunk.choices or () if choice.index == 0]


def _delta(kind: str) -> Callable[[Any], Any]:
    """The text that an event adds, if it is of a kind."""
    return lambda event: event.type == kind and event.delta


def _items(output: Any) -> dict[str, Any]:
    refusals, thoughts, calls, opaque = [], [], [], []
    for item in output:
        match item.type:
            case "message":
                refusals += [part.refusal for part in item.content if part.type == "refusal"]
            case "reasoning":
                # The reasoning text if it is sent, else its summary.
                thoughts += [part.text for part in item.content or item.summary or ()]
                opaque += [item.encrypted_content] if item.encrypted_content else []
            case "function_call":
                calls.append(
                    {
                        "id": item.call_id,
                        "name": item.name,
                        "arguments": item.arguments,
                        "raw_arguments": item.arguments,
                    }
                )
    return {
        "refusal": joined(refusals),
        "reasoning": joined(thoughts),
        "tool_calls": calls,
        "opaque": opaque,
    }


def _client(job: Job) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=job.base_url,
        api_key=API_KEY,
        max_retries=job.retries,
        timeout=job.timeout(openai.Timeout),
    )


def _usage(usage: Any, input_name: str, output_name: str) -> dict[str, Any] | None:
    if usage is None:
        return None
    input_details = getattr(usage, f"{input_name}_tokens_details", None)
    output_details = getattr(usage, f"{output_name}_tokens_details", None)
    return {
        "input": getattr(usage, f"{input_name}_tokens", None),
        "output": getattr(usage, f"{output_name}_tokens", None),
        "reasoning": getattr(output_details, "reasoning_tokens", None),
        "cached": getattr(input_details, "cached_tokens", None),
    }
