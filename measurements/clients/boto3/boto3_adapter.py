"""boto3 and aioboto3: `converse_stream()`, whose events the user joins by their block's index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from job import API_KEY, Job, joined

__all__ = ["aio_converse", "converse"]


def converse(job: Job) -> dict[str, Any]:
    """boto3's `converse_stream()`."""
    import boto3
    from botocore.config import Config

    def make() -> Any:
        # The default session is not for several threads.
        return boto3.Session().client("bedrock-runtime", **_options(job, Config))

    with job.using(make) as client:
        stream = client.converse_stream(**_request(job))["stream"]
        return _outcome(list(job.watched(stream, _text, stream.close)))


def aio_converse(job: Job) -> dict[str, Any]:
    """aioboto3's `converse_stream()`."""
    import aioboto3
    from aiobotocore.config import AioConfig

    async def run() -> dict[str, Any]:
        session = aioboto3.Session()
        async with session.client("bedrock-runtime", **_options(job, AioConfig)) as client:
            response = await client.converse_stream(**_request(job))
            return _outcome([event async for event in response["stream"]])

    return job.wait(run())


def _options(job: Job, config: Any) -> dict[str, Any]:
    return {
        "endpoint_url": job.base_url,
        "region_name": "us-east-1",
        "aws_access_key_id": API_KEY,
        "aws_secret_access_key": API_KEY,
        "config": config(
            connect_timeout=job.deadline,
            read_timeout=job.seconds,
            retries={"total_max_attempts": job.tries, "mode": "standard"},
        ),
    }


def _request(job: Job) -> dict[str, Any]:
    request = {
        "modelId": "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "messages": [{"role": "user", "content": [{"text": job.prompt}]}],
    }
    tools = [
        {
            "toolSpec": {
                "name": function["name"],
                "description": function["description"],
                "inputSchema": {"json": function["parameters"]},
            }
        }
        for function in job.functions
    ]
    return {**request, "toolConfig": {"tools": tools}} if tools else request


def _text(event: Any) -> str:
    return event.get("contentBlockDelta", {}).get("delta", {}).get("text", "")


def _outcome(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The message: a call begins with its block, and its input is the text of all its deltas."""
    blocks: dict[int, list[dict[str, Any]]] = {}
    calls: dict[int, dict[str, Any]] = {}
    answer: dict[str, Any] = {"role": None, "finish": None, "usage": None}
    for event in events:
        match event:
            case {"messageStart": {"role": role}}:
                answer["role"] = role
            case {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": call}}}:
                if call.get("type") != "server_tool_use":
                    calls[index] = call
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}:
                blocks.setdefault(index, []).append(delta)
            case {"messageStop": {"stopReason": reason}}:
                answer["finish"] = reason
            case {"metadata": {"usage": usage}}:
                answer["usage"] = _usage(usage)
    deltas = [delta for index in sorted(blocks) for delta in blocks[index]]
    thoughts = [delta["reasoningContent"] for delta in deltas if "reasoningContent" in delta]
    return {
        **answer,
        "text": joined(delta["text"] for delta in deltas if "text" in delta),
        "reasoning": joined(thought["text"] for thought in thoughts if "text" in thought),
        "opaque": [thought["signature"] for thought in thoughts if "signature" in thought],
        "tool_calls": [_call(calls[index], blocks.get(index, ())) for index in sorted(calls)],
    }


def _call(call: dict[str, Any], deltas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    text = joined(delta["toolUse"]["input"] for delta in deltas if "toolUse" in delta)
    return {
        "id": call["toolUseId"],
        "name": call["name"],
        "arguments": text,
        "raw_arguments": text,
    }


def _usage(usage: dict[str, Any]) -> dict[str, Any]:
    """The token counts; those of the cache are not in `inputTokens`."""
    cached = usage.get("cacheReadInputTokens", 0)
    read = usage["inputTokens"] + cached + usage.get("cacheWriteInputTokens", 0)
    return {"input": read, "output": usage["outputTokens"], "cached": cached}
