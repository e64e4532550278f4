"""The answers of the routes that count the tokens of a Responses request, and compact it.

https://platform.openai.com/docs/api-reference/responses/input-tokens and
https://platform.openai.com/docs/api-reference/responses/compact; the fields are those of
`InputTokenCountResponse` and `CompactedResponse` in OpenAI's Python SDK.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mockllm.core.seeded import derive, tokens
from mockllm.core.target import Target
from mockllm.core.turn import TokenUsage
from mockllm.protocols.base import Reply, dumps
from mockllm.protocols.openai_responses.objects import response_id, usage_object
from mockllm.protocols.openai_responses.request import parse
from mockllm.protocols.records import FallbackRoute
from mockllm.protocols.service import counted_tokens

__all__ = ["FALLBACK_ROUTES"]


def _input_tokens(body: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """The number of tokens of instructions, messages, calls, results and tools."""
    counted = counted_tokens(parse(body, target, False))
    return {"object": "response.input_tokens", "input_tokens": counted}


def _compacted(body: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """The user messages, then one item that stands for everything.

    Raises:
        RequestError: the service would refuse the request.
    """
    request = parse(body, target, True)
    seed = dumps(body)
    token = derive(seed, "token", length=40, hex=True)
    content = "gAAAAA" + derive(seed, "encrypted", length=82)
    users = [message.text for message in request.messages if message.role == "user"]
    reply = Reply(seed, token, request.model, None)
    usage = TokenUsage(counted_tokens(request), tokens(content))
    return {
        "id": response_id(token),
        "object": "response.compaction",
        "created_at": reply.created,
        "output": [
            *(_user(text, f"msg_{token}{i:04x}") for i, text in enumerate(users)),
            {"id": f"cmp_{token}{len(users):04x}", "type": "compaction"}
            | {"encrypted_content": content},
        ],
        "usage": usage_object(usage),
    }


def _user(text: str, id: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"id": id, "type": "message", "status": "completed", "role": "user", "content": content}


FALLBACK_ROUTES = (
    FallbackRoute(re.compile(r"/responses/input_tokens$"), _input_tokens),
    FallbackRoute(re.compile(r"/responses/compact$"), _compacted),
)
