"""llama-index: `stream_chat_with_tools()`; the last response holds the whole message."""

from __future__ import annotations

from typing import Any

from job import API_KEY, Job, as_text, joined
from llama_index.core.tools import FunctionTool, ToolMetadata

__all__ = ["chat", "messages"]


def chat(job: Job) -> dict[str, Any]:
    """The LLM `OpenAI`, which requests usage only if it is given `stream_options`."""
    from llama_index.llms.openai import OpenAI

    options = {"additional_kwargs": {"stream_options": {"include_usage": True}}}
    return _run(
        lambda: OpenAI(
            model="gpt-4o",
            api_base=job.base_url,
            api_key=API_KEY,
            max_retries=job.retries,
            timeout=job.seconds,
            **options,
        ),
        job,
    )


def messages(job: Job) -> dict[str, Any]:
    """The LLM `Anthropic`."""
    from llama_index.llms.anthropic import Anthropic

    return _run(
        lambda: Anthropic(
            model="claude-sonnet-4-5",
            base_url=job.base_url,
            api_key=API_KEY,
            max_retries=job.retries,
            timeout=job.seconds,
        ),
        job,
    )


def _run(make: Any, job: Job) -> dict[str, Any]:
    llm = job.kept(make)
    tools = list(map(_tool, job.functions))
    stream = llm.stream_chat_with_tools(tools, user_msg=job.prompt, allow_parallel_tool_calls=True)
    responses = list(job.watched(stream, lambda one: one.delta))
    if not responses:
        return {"text": "", "tool_calls": []}
    last = responses[-1]
    calls = llm.get_tool_calls_from_response(last, error_on_no_tool_call=False)
    blocks = last.message.blocks
    return {
        "text": as_text(last.message.content),
        "reasoning": joined(block.content for block in blocks if block.block_type == "thinking"),
        "tool_calls": [
            {"id": call.tool_id, "name": call.tool_name, "arguments": call.tool_kwargs}
            for call in calls
        ],
        "usage": _usage(responses),
    }


def _usage(responses: list[Any]) -> dict[str, Any] | None:
    """The last token counts: beside a response, or in what it calls raw."""
    for response in reversed(responses):
        if "prompt_tokens" in response.additional_kwargs:
            counts = response.additional_kwargs
            return {"input": counts["prompt_tokens"], "output": counts["completion_tokens"]}
        counts = response.raw.get("usage") if isinstance(response.raw, dict) else None
        if counts:
            counts = counts if isinstance(counts, dict) else counts.model_dump()
            return {"input": counts["input_tokens"], "output": counts["output_tokens"]}
    return None


class _Metadata(ToolMetadata):
    """The schema of a tool as it was offered."""

    schema: dict[str, Any]

    def get_parameters_dict(self) -> dict[str, Any]:
        return self.schema


def _tool(function: dict[str, Any]) -> FunctionTool:
    metadata = _Metadata(name=function["name"], description=function["description"])
    metadata.schema = function["parameters"]
    return FunctionTool(fn=lambda **arguments: "done", metadata=metadata)
