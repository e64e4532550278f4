"""How exchanges of Anthropic Messages are recognised, what its events hold, what is made anew."""

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
    identity,
)
from mockllm.protocols.values import mapped_text


def _identity(value: Mapping[str, Any]) -> Start:
    # `message_start` holds the message, a body is one.
    message = value.get("message")
    return identity(message if isinstance(message, dict) else value)


DETECTION = Detection(
    paths=(
        re.compile(
            r"^(?!.*/threads/).*/messages$"
        ),  # OpenAI's Assistants have /threads/ID/messages
        re.compile(r"/publishers/anthropic/models/(?P<model>[^/:]+):(?:streamR|r)awPredict$"),
    ),
    answer=lambda value: value.get("type") in ("message_start", "message"),
    identity=_identity,
)

_ENDINGS = ("message_delta", "message_stop", "error")

FIELDS = FieldNames(
    fragments=frozenset({"input", "partial_json", "text", "thinking"}),
    arguments=frozenset({"partial_json"}),
    labels=frozenset({"id", "model", "name", "role", "stop_reason", "type"}),
    opaque=frozenset({"signature"}),
    item_ids=frozenset({"index"}),
)

EVENTS = StreamEvents(
    is_end=lambda event: bool(event.get("error")) or event.get("type") in _ENDINGS,
    map_text=mapped_text(lambda name, _: name in ("text", "thinking"), frozenset({"input"})),
    id_path="message.id",
    model_path="message.model",
)

NORMALISATION = Normalisation(
    # The usage in `message_start` is provisional; `message_delta` has the final one.
    made_up=frozenset(
        {"message.id", "message.model", "message.usage", "id", "model", "request_id"}
        | {"usage.inference_geo"}
    ),
    keepalive=frozenset({"ping"}),
    places={
        "event": ObjectPlace(("",), ()),
        "message": ObjectPlace(("message",), ("",)),
        "call": ObjectPlace(("content_block",), ("content",), is_call=True),
        "usage": ObjectPlace(("usage",), ("usage",)),
    },
)

ENVIRONMENT = Environment(
    base_urls=(("ANTHROPIC_BASE_URL", ""),),
    keys=("ANTHROPIC_API_KEY",),
    other_keys=("ANTHROPIC_AUTH_TOKEN",),
)
