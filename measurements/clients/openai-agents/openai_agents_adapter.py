"""openai-agents: `Runner.run_streamed()`, ended after one answer of the model."""

from __future__ import annotations

from typing import Any

import agents
import openai
from job import API_KEY, Job, joined

__all__ = ["chat", "responses"]


def chat(job: Job) -> dict[str, Any]:
    """`OpenAIChatCompletionsModel` with `include_usage`, its default for OpenAI's own URL only."""
    settings = agents.ModelSettings(include_usage=True)
    answer = job.wait(_run(agents.OpenAIChatCompletionsModel, settings, job))
    del answer["opaque"]  # Chat Completions has no such values
    return answer


def responses(job: Job) -> dict[str, Any]:
    """`OpenAIResponsesModel`."""
    return job.wait(_run(agents.OpenAIResponsesModel, agents.ModelSettings(), job))


async def _run(kind: Any, settings: Any, job: Job) -> dict[str, Any]:
    async with job.ausing(lambda: _client(job)) as client:
        agent = agents.Agent(
            name="tester",
            model=kind(model="gpt-4o", openai_client=client),
            model_settings=settings,
            tools=list(map(_tool, job.functions)),
            tool_use_behavior="stop_on_first_tool",
        )
        config = agents.RunConfig(tracing_disabled=True)
        result = agents.Runner.run_streamed(agent, job.prompt, max_turns=1, run_config=config)

        async def cancel() -> None:
            result.cancel()

        async for _ in job.awatched(result.stream_events(), _text, cancel):
            pass
        (response,) = result.raw_responses
        return _outcome(response)


def _client(job: Job) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=job.base_url,
        api_key=API_KEY,
        max_retries=job.retries,
        timeout=job.timeout(openai.Timeout),
    )


def _text(event: Any) -> Any:
    """The text that an event adds, as the examples of its documentation print it."""
    is_text = event.type == "raw_response_event" and event.data.type == _TEXT
    return event.data.delta if is_text else ""


_TEXT = "response.output_text.delta"


def _tool(function: dict[str, Any]) -> Any:
    async def invoke(context: Any, arguments: str) -> str:
        return "done"

    return agents.FunctionTool(
        function["name"], function["description"], function["parameters"], invoke
    )


def _outcome(response: Any) -> dict[str, Any]:
    texts: dict[str, list[Any]] = {"text": [], "refusal": [], "reasoning": []}
    calls, opaque = [], []
    for item in response.output:
        match item.type:
            case "message":
                # A part of another type has neither a text nor a refusal.
                texts["text"] += [one.text for one in item.content if one.type == "output_text"]
                texts["refusal"] += [one.refusal for one in item.content if one.type == "refusal"]
            case "reasoning":
                texts["reasoning"] += [part.text for part in item.content or item.summary or ()]
                opaque += [item.encrypted_content] if item.encrypted_content else []
            case "function_call":
                calls.append({"id": item.call_id, "name": item.name, "arguments": item.arguments})
    return {
        **{name: joined(values) for name, values in texts.items()},
        "tool_calls": calls,
        "usage": _usage(response.usage),
        "opaque": opaque,
    }


def _usage(usage: Any) -> dict[str, Any] | None:
    """The usage; it has zeros if none was sent."""
    if not usage.total_tokens:
        return None
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "reasoning": usage.output_tokens_details.reasoning_tokens,
        "cached": usage.input_tokens_details.cached_tokens,
    }
