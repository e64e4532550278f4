"""openai-python with its own helpers for streams."""

from __future__ import annotations

from typing import Any

import openai

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Outcome, Usage
from tests.conformance.client import API_KEY, TIMEOUT
from tests.conformance.request_body import as_text, body

__all__ = ["chat", "responses"]


def chat(base_url: str, case: Case) -> Outcome:
    """`chat.completions.stream()`, read to its end, then `get_final_completion()`."""
    with (
        _client(base_url) as client,
        client.chat.completions.stream(
            **body(case), stream_options={"include_usage": True}
        ) as stream,
    ):
        for _ in stream:
            pass
        completion = stream.get_final_completion()
    usage = _usage(completion.usage, "prompt", "completion")
    if not completion.choices:
        return Outcome.of(usage=usage)
    choice = completion.choices[0]
    message = choice.message
    return Outcome.of(
        as_text(message.content),
        refusal=as_text(message.refusal),
        tool_calls=[
            (call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
        ],
        finish=choice.finish_reason,
        usage=usage,
    )


def responses(base_url: str, case: Case) -> Outcome:
    """`responses.stream()`, read to its end, then `get_final_response()`."""
    with _client(base_url) as client, client.responses.stream(**body(case)) as stream:
        for _ in stream:
            pass
        response = stream.get_final_response()
    texts: dict[str, str] = {"reasoning": "", "refusal": ""}
    calls = []
    for item in response.output:
        match item.type:
            case "message":
                refused = (part.refusal for part in item.content if part.type == "refusal")
                texts["refusal"] += "".join(refused)
            case "reasoning":
                texts["reasoning"] += _reasoning(item)
            case "function_call":
                calls.append((item.call_id, item.name, item.arguments))
    why = response.incomplete_details
    return Outcome.of(
        response.output_text,
        **texts,
        tool_calls=calls,
        finish=why.reason if why is not None else response.status,
        usage=_usage(response.usage, "input", "output"),
        errors=[response.error.message] if response.error is not None else (),
    )


def _client(base_url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=base_url, api_key=API_KEY, max_retries=0, timeout=TIMEOUT)


def _reasoning(item: Any) -> str:
    """The reasoning text if it is sent, else its summary."""
    return "".join(part.text for part in item.content or item.summary or ())


def _usage(usage: Any, input_name: str, output_name: str) -> Usage | None:
    if usage is None:
        return None
    input_details = getattr(usage, f"{input_name}_tokens_details", None)
    output_details = getattr(usage, f"{output_name}_tokens_details", None)
    return Usage(
        getattr(usage, f"{input_name}_tokens", None),
        getattr(usage, f"{output_name}_tokens", None),
        getattr(output_details, "reasoning_tokens", None),
        getattr(input_details, "cached_tokens", None),
    )
