"""openai-agents: `Runner.run_streamed()`, ended after one answer of the model."""

from __future__ import annotations

import asyncio
from typing import Any

import agents
import openai

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Outcome, Usage
from mockllm.scenario.model import ToolSpec
from tests.conformance.client import API_KEY, TIMEOUT

__all__ = ["chat", "responses"]


def chat(base_url: str, case: Case) -> Outcome:
    """`OpenAIChatCompletionsModel` with `include_usage`, its default for OpenAI's own URL only."""
    settings = agents.ModelSettings(include_usage=True)
    return asyncio.run(_run(agents.OpenAIChatCompletionsModel, settings, base_url, case))


def responses(base_url: str, case: Case) -> Outcome:
    """`OpenAIResponsesModel`."""
    return asyncio.run(_run(agents.OpenAIResponsesModel, agents.ModelSettings(), base_url, case))


async def _run(kind: Any, settings: Any, base_url: str, case: Case) -> Outcome:
    async with openai.AsyncOpenAI(
        base_url=base_url, api_key=API_KEY, max_retries=0, timeout=TIMEOUT
    ) as client:
        agent = agents.Agent(
            name="tester",
            model=kind(model="gpt-4o", openai_client=client),
            model_settings=settings,
            tools=list(map(_tool, case.tools)),
            tool_use_behavior="stop_on_first_tool",
        )
        config = agents.RunConfig(tracing_disabled=True)
        result = agents.Runner.run_streamed(agent, case.prompt, max_turns=1, run_config=config)
        async for _ in result.stream_events():
            pass
        (response,) = result.raw_responses
        return _outcome(response)


def _tool(spec: ToolSpec) -> Any:
    async def invoke(context: Any, arguments: str) -> str:
        return "done"

    schema = dict(spec.parameters or {"type": "object", "properties": {}})
    return agents.FunctionTool(spec.name, spec.description or "", schema, invoke)


def _outcome(response: Any) -> Outcome:
    texts: dict[str, str] = {"text": "", "refusal": "", "reasoning": ""}
    calls = []
    for item in response.output:
        match item.type:
            case "message":
                for part in item.content:
                    texts["refusal" if part.type == "refusal" else "text"] += (
                        part.refusal if part.type == "refusal" else part.text
                    )
            case "reasoning":
                texts["reasoning"] += "".join(p.text for p in item.content or item.summary or ())
            case "function_call":
                calls.append((item.call_id, item.name, item.arguments))
    return Outcome.of(**texts, tool_calls=calls, usage=_usage(response.usage))


def _usage(usage: Any) -> Usage | None:
    """The usage; it has zeros if none was sent."""
    if not usage.total_tokens:
        return None
    return Usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.output_tokens_details.reasoning_tokens,
        usage.input_tokens_details.cached_tokens,
    )
