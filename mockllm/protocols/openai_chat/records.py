"""How exchanges of Chat Completions are recognised, what events hold, what is made up or lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.protocols.decoding import projection
from mockllm.protocols.openai_chat.decoder import Decoder
from mockllm.protocols.openai_chat.encoder import Encoder
from mockllm.protocols.openai_chat.request import Options
from mockllm.protocols.records import (
    Detection,
    FieldNames,
    Normalisation,
    ObjectPlace,
    StreamEvents,
)
from mockllm.protocols.values import mapped_text, mapping

DETECTION = Detection(
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


LOSSES = (
    "Parts of one kind (text, reasoning, refusal) are merged into one, in order of arrival.",
    "Reasoning comes back before text, text before refusals, then calls, then frames.",
    "Tools of the service, with their input and output, are not sent.",
    "Signatures are not sent, and a summary of reasoning is sent as reasoning.",
    "The first fragment of text determines whether all of it has log probabilities.",
    "A finish of `stop` comes back as `refusal` after a refusal, as `tool_calls` (raw: `stop`) "
    "after calls; a finish of `refusal` without a refusal comes back as `stop`.",
    "A finish reason of another protocol is replaced by the equivalent one of this protocol.",
    "Usage is streamed only if `stream_options.include_usage` is set, and not before an error; "
    "an error without a type is a `server_error`.",
    "With `n` above 1 every choice has the same content; only the first comes back.",
    "The fields of a chunk without a neutral form (fields of providers, real log probabilities,"
    " spans of citations) do not come back. Of an error only message, type and code come back; of "
    "several different usages, finishes or reasonings in one chunk the "
    "first; `event` and `id` lines do not. Citations cover the whole text.",
    "A body holds no frames and no error after a part of the answer; without a finish it has "
    "the usual one.",
)

project = projection(Encoder, Decoder, Options(stream_usage=True))
"""The turn that the Decoder reads from the stream of a turn; `LOSSES` lists what is missing."""
