"""How exchanges of Responses are recognised, what its events hold, what is made anew."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mockllm.core.events import Start
from mockllm.protocols.records import (
    Detection,
    FieldNames,
    Normalisation,
    ObjectPlace,
    StreamEvents,
    identity,
)
from mockllm.protocols.values import mapped_text


def _answer(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return value.get("object") == "response" or (
        isinstance(kind, str) and kind.startswith("response.")
    )


def _identity(value: Mapping[str, Any]) -> Start:
    # Events hold the response, bodies are one.
    response = value.get("response")
    return identity(response if isinstance(response, dict) else value)


DETECTION = Detection(
    paths=(re.compile(r"/responses$"),),
    answer=_answer,
    likely_request=lambda body: "input" in body,
    identity=_identity,
)

_ENDINGS = ("response.completed", "response.incomplete", "response.failed", "error")
_TEXT_DELTAS = ("text.delta", "refusal.delta")


def _is_text(name: str, value: Mapping[str, Any]) -> bool:
    if name == "delta":  # of text or of arguments
        return str(value.get("type")).endswith(_TEXT_DELTAS)
    return name in ("text", "refusal")


FIELDS = FieldNames(
    fragments=frozenset({"arguments", "content", "delta", "input", "refusal", "text"}),
    arguments=frozenset({"arguments"}),
    labels=frozenset({"call_id", "id", "item_id", "model", "name", "object", "response_id"})
    | {"role", "service_tier", "status", "type"},
    opaque=frozenset({"encrypted_content", "obfuscation"}),
    item_ids=frozenset({"content_index", "item_id", "output_index", "summary_index"}),
)

EVENTS = StreamEvents(
    is_end=lambda event: bool(event.get("error")) or event.get("type") in _ENDINGS,
    map_text=mapped_text(_is_text, frozenset({"input", "logprobs", "tools"})),
    id_path="response.id",
    model_path="response.model",
)

NORMALISATION = Normalisation(
    made_up=frozenset(
        {"sequence_number", "obfuscation", "item_id", "item.id"}
        | {"response.id", "response.output.id", "response.output.encrypted_content"}
        | {"response.created_at", "response.completed_at", "response.model"}
    ),
    answer_fields={
        "response": frozenset(
            {"object", "status", "output", "usage", "error", "incomplete_details"}
        )
    },
    replaced={"response.output_item.added": "encrypted_content"},
    envelope="response",
    places={
        "event": ObjectPlace(("",), ()),
        "message": ObjectPlace(("response",), ("response",)),
        "call": ObjectPlace(("item", "response.output"), ("response.output",), is_call=True),
        "usage": ObjectPlace(("response.usage",), ("response.usage",)),
    },
)
