"""ollama: `chat(stream=True)`, whose chunks the user joins, as its documentation does."""

from __future__ import annotations

from typing import Any

import httpx
import ollama
from job import Job, as_text, joined

__all__ = ["chat"]


def chat(job: Job) -> dict[str, Any]:
    """The fields of all chunks, joined; the last chunk has the end and the counts."""
    timeout = job.timeout(httpx.Timeout)
    with job.using(lambda: ollama.Client(host=job.base_url, timeout=timeout)) as client:
        stream = client.chat(
            model=job.model,
            messages=[{"role": "user", "content": job.prompt}],
            tools=job.chat_tools,
            stream=True,
        )
        chunks = list(job.watched(stream, lambda chunk: as_text(chunk.message.content)))
    return {
        "text": joined(chunk.message.content for chunk in chunks),
        "reasoning": joined(chunk.message.thinking for chunk in chunks),
        "tool_calls": [
            {"name": call.function.name, "arguments": call.function.arguments}
            for chunk in chunks
            for call in chunk.message.tool_calls or ()
        ],
        "role": chunks[0].message.role if chunks else None,
        "model": chunks[0].model if chunks else None,
        "finish": chunks[-1].done_reason if chunks else None,
        "usage": _usage(chunks[-1]) if chunks else None,
    }


def _usage(last: Any) -> dict[str, Any] | None:
    """The token counts, or None if none was sent."""
    if last.prompt_eval_count is None and last.eval_count is None:
        return None
    return {"input": last.prompt_eval_count, "output": last.eval_count}
