"""How exchanges of Gemini are recognised, what its events hold, what is made anew."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mockllm.core.events import Start
from mockllm.protocols.records import (
    Detection,
    Environment,
    FieldNames,
    Normalisation,
    ObjectPlace,
    StreamEvents,
)
from mockllm.protocols.values import mapped_text, mapping, string


def _identity(value: Mapping[str, Any]) -> Start:
    model = string(value.get("model")) or string(value.get("modelVersion"))
    return Start(string(value.get("responseId")), model.removeprefix("models/"))


DETECTION = Detection(
    paths=(
        re.compile(
            r"/(?:publishers/(?P<publisher>[^/]+)/models|models(?:/(?P<owner>[^/:]+))?)"
            r"/(?P<model>[^/:]+):(?:streamGenerateContent|generateContent)$"
        ),
    ),
    request=lambda body: "contents" in body,
    answer=lambda value: "candidates" in value or "promptFeedback" in value,
    identity=_identity,
)


def _is_end(chunk: Mapping[str, Any]) -> bool:
    candidates = chunk.get("candidates")
    return bool(chunk.get("error") or chunk.get("promptFeedback")) or (
        isinstance(candidates, list)
        and any(mapping(candidate).get("finishReason") for candidate in candidates)
    )


FIELDS = FieldNames(
    fragments=frozenset({"text"}),
    arguments=frozenset({"args"}),
    labels=frozenset({"finishReason", "id", "modelVersion", "name", "responseId", "role"}),
    opaque=frozenset({"thoughtSignature"}),
    item_ids=frozenset({"index"}),
)

EVENTS = StreamEvents(
    is_end=_is_end,
    map_text=mapped_text(
        lambda name, _: name == "text", frozenset({"functionCall", "groundingMetadata"})
    ),
    id_path="responseId",
    model_path="modelVersion",
)

_CALL = ("candidates.content.parts.functionCall",)

NORMALISATION = Normalisation(
    # Protocol buffers omit zeros, so servers may leave out the index of the first candidate.
    made_up=frozenset({"responseId", "modelVersion", "createTime", "candidates.index"}),
    usage="usageMetadata",
    places={
        "event": ObjectPlace(("",), ("",)),
        "choice": ObjectPlace(("candidates",), ("candidates",)),
        "message": ObjectPlace(("candidates.content",), ("candidates.content",)),
        "call": ObjectPlace(_CALL, _CALL, is_call=True),
        "usage": ObjectPlace(("usageMetadata",), ("usageMetadata",)),
    },
)

ENVIRONMENT = Environment(
    base_urls=(("GOOGLE_GEMINI_BASE_URL", ""),),
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
)
