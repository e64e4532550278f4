"""How exchanges of AG-UI are recognised, what its events hold, what is made anew."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mockllm.protocols.ag_ui.objects import ENDINGS
from mockllm.protocols.records import (
    Detection,
    Environment,
    FieldNames,
    Normalisation,
    ObjectPlace,
    StreamEvents,
)
from mockllm.protocols.values import mapped_text, string

DETECTION = Detection(
    paths=(re.compile(r"/agui(?:/(?P<scenario>[^/]+))?$"),),
    request=lambda body: {"threadId", "runId", "messages"} <= body.keys(),
    answer=lambda value: value.get("type") in ("RUN_STARTED", "RUN_ERROR"),
    any_path=True,
)


def _is_text(name: str, event: Mapping[str, Any]) -> bool:
    # Arguments of calls are deltas, too.
    return name == "delta" and str(event.get("type")).endswith("MESSAGE_CONTENT")


FIELDS = FieldNames(
    fragments=frozenset({"content", "delta"}),
    arguments=frozenset({"arguments"}),
    labels=frozenset({"id", "messageId", "name", "parentMessageId", "role", "runId"})
    | {"threadId", "toolCallId", "toolCallName", "type"},
    item_ids=frozenset({"messageId", "toolCallId"}),
)

EVENTS = StreamEvents(
    is_end=lambda event: bool(event.get("error")) or string(event.get("type")) in ENDINGS,
    map_text=mapped_text(_is_text, frozenset({"input"})),
)

NORMALISATION = Normalisation(
    made_up=frozenset({"timestamp", "threadId", "runId", "messageId", "parentMessageId"}),
    places={"event": ObjectPlace(("",), ("",))},
)

# The protocol defines no variables.
ENVIRONMENT = Environment()
