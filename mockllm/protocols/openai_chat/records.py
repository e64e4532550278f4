"""How exchanges of Chat Completions are recognised, what its events hold, what is made anew."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mockllm.protocols.records import (
    Detection,
    FieldNames,
    Normalisation,
    ObjectPlace,
    StreamEvents,
)
from mockllm.protocols.values import mapped_text, mapping

DETECTION = Detection(
    paths=(re.compile(r"(?:/deployments/(?P<deployment>[^/]+))?/chat/completions$"),),
    answer=lambda value: "choices" in value,
    likely_request=lambda body: "messages" in body,
)

_TEXT = frozenset({"content", "refusal", "reasoning_content"})

FIELDS = FieldNames(
    # Services send reasoning as `reasoning` or `thinking` too; custom tools have an `input`.
    fragments=_TEXT | {"arguments", "input", "reasoning", "text", "thinking"},
    arguments=frozenset({"arguments"}),
    labels=frozenset({"finish_reason", "id", "model", "name", "object", "role", "service_tier"})
    | {"system_fingerprint", "tool_call_id", "type"},
    opaque=frozenset({"obfuscation"}),
    item_ids=frozenset({"index", "tool_call_id"}),
)


def _is_end(chunk: Mapping[str, Any]) -> bool:
    choices = chunk.get("choices")
    return bool(chunk.get("error")) or (
        isinstance(choices, list)
        and any(mapping(choice).get("finish_reason") for choice in choices)
    )


EVENTS = StreamEvents(
    is_end=_is_end,
    map_text=mapped_text(lambda name, _: name in _TEXT, frozenset({"logprobs"})),
    id_path="id",
    model_path="model",
)

NORMALISATION = Normalisation(
    made_up=frozenset(
        {"id", "created", "model", "service_tier", "system_fingerprint", "obfuscation"}
    ),
    places={
        "event": ObjectPlace(("",), ("",)),
        "choice": ObjectPlace(("choices",), ("choices",)),
        "message": ObjectPlace(("choices.delta",), ("choices.message",)),
        "call": ObjectPlace(
            ("choices.delta.tool_calls",), ("choices.message.tool_calls",), is_call=True
        ),
        "usage": ObjectPlace(("usage",), ("usage",)),
    },
)
