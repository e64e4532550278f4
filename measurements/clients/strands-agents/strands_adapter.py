"""Strands Agents: an `Agent` that is cancelled after the first message of the model."""

from __future__ import annotations

import asyncio
from typing import Any

from job import API_KEY, Job, joined
from strands import Agent
from strands.hooks import AfterModelCallEvent, MessageAddedEvent
from strands.tools import PythonAgentTool
from strands.types.exceptions import MaxTokensReachedException

__all__ = ["chat", "converse", "messages", "ollama", "responses"]


def chat(job: Job) -> dict[str, Any]:
    """`OpenAIModel`."""
    from strands.models.openai import OpenAIModel

    return asyncio.run(_run(OpenAIModel(client_args=_options(job), model_id="gpt-4o"), job))


def responses(job: Job) -> dict[str, Any]:
    """`OpenAIResponsesModel`."""
    from strands.models.openai_responses import OpenAIResponsesModel

    model = OpenAIResponsesModel(client_args=_options(job), model_id="gpt-4o")
    return asyncio.run(_run(model, job))


def messages(job: Job) -> dict[str, Any]:
    """`AnthropicModel`."""
    from strands.models.anthropic import AnthropicModel

    model = AnthropicModel(client_args=_options(job), model_id="claude-sonnet-4-5", max_tokens=1024)
    return asyncio.run(_run(model, job))


def converse(job: Job) -> dict[str, Any]:
    """`BedrockModel`."""
    import boto3
    from botocore.config import Config
    from strands.models.bedrock import BedrockModel

    session = boto3.Session(
        aws_access_key_id=API_KEY, aws_secret_access_key=API_KEY, region_name="us-east-1"
    )
    model = BedrockModel(
        boto_session=session,
        boto_client_config=Config(read_timeout=job.deadline, retries={"total_max_attempts": 1}),
        endpoint_url=job.base_url,
        model_id="anthropic.claude-sonnet-4-5-20250929-v1:0",
    )
    return asyncio.run(_run(model, job))


def ollama(job: Job) -> dict[str, Any]:
    """`OllamaModel`."""
    from strands.models.ollama import OllamaModel

    options = {"timeout": job.deadline}
    model = OllamaModel(job.base_url, ollama_client_args=options, model_id="qwen3:8b")
    return asyncio.run(_run(model, job))


def _options(job: Job) -> dict[str, Any]:
    return {
        "base_url": job.base_url,
        "api_key": API_KEY,
        "max_retries": 0,
        "timeout": job.deadline,
    }


async def _run(model: Any, job: Job) -> dict[str, Any]:
    agent = Agent(
        model=model,
        tools=list(map(_tool, job.functions or [_NONE])),
        callback_handler=None,
        retry_strategy=None,
    )
    answers: list[Any] = []

    def stop(event: MessageAddedEvent) -> None:
        if event.message["role"] == "assistant":
            answers.append(event.message)
            agent.cancel()

    agent.add_hook(stop, MessageAddedEvent)
    stopped: list[str] = []

    def note(event: AfterModelCallEvent) -> None:
        if event.stop_response is not None:
            stopped.append(event.stop_response.stop_reason)

    agent.add_hook(note, AfterModelCallEvent)
    try:
        await agent.invoke_async(job.prompt)
    except MaxTokensReachedException:
        # This is how it reports the finish; where it has replaced a call, it is an error.
        if _replaced(answers[0]["content"]):
            raise
    return {
        **_content(answers[0]["content"]),
        "finish": _FINISH.get(stopped[0], stopped[0]),
        "usage": _usage(agent.event_loop_metrics.accumulated_usage),
    }


_NONE = {"name": "none", "description": "Not to be called.", "parameters": {"type": "object"}}
"""Offered where a case has no tools: without any, `OpenAIModel` sends `"tools": []`."""


def _tool(function: dict[str, Any]) -> PythonAgentTool:
    def run(tool_use: Any, **options: Any) -> Any:
        return {
            "toolUseId": tool_use["toolUseId"],
            "status": "success",
            "content": [{"text": "done"}],
        }

    spec = {
        "name": function["name"],
        "description": function["description"],
        "inputSchema": {"json": function["parameters"]},
    }
    return PythonAgentTool(function["name"], spec, run)


def _replaced(blocks: Any) -> bool:
    return any("due to maximum token limits" in block.get("text", "") for block in blocks)


def _content(blocks: Any) -> dict[str, Any]:
    thoughts = [block["reasoningContent"] for block in blocks if "reasoningContent" in block]
    texts = [thought["reasoningText"] for thought in thoughts if "reasoningText" in thought]
    signatures = [text["signature"] for text in texts if text.get("signature")]
    answer = {
        "text": joined(block["text"] for block in blocks if "text" in block),
        "reasoning": joined(text["text"] for text in texts),
        "tool_calls": [
            {
                "id": block["toolUse"]["toolUseId"],
                "name": block["toolUse"]["name"],
                "arguments": block["toolUse"]["input"],
            }
            for block in blocks
            if "toolUse" in block
        ],
    }
    return {**answer, "opaque": signatures} if signatures else answer


def _usage(usage: Any) -> dict[str, Any] | None:
    """The usage; it has zeros if none was sent."""
    if not usage["totalTokens"]:
        return None
    cached = usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0)
    # Those of Bedrock, and of Anthropic, are not in `inputTokens`.
    apart = usage["totalTokens"] > usage["inputTokens"] + usage["outputTokens"]
    read = usage["inputTokens"] + (cached if apart else 0)
    return {"input": read, "output": usage["outputTokens"]}


_FINISH = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
}
"""Finish reasons of Strands, in those of mockllm."""
