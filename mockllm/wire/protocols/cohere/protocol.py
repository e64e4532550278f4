"""Cohere as a whole."""

from __future__ import annotations

from typing import get_args

from mockllm.core.events import FinishReason
from mockllm.wire.protocols import records
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.cohere import ADDRESS, errors
from mockllm.wire.protocols.cohere.client import CLIENT
from mockllm.wire.protocols.cohere.decoder import Decoder, decode_body
from mockllm.wire.protocols.cohere.encoder import Encoder, encode_body
from mockllm.wire.protocols.cohere.fallback import FALLBACK_ROUTES
from mockllm.wire.protocols.cohere.fields import answer_id, write_finish
from mockllm.wire.protocols.cohere.first import FIRST_CHAT
from mockllm.wire.protocols.cohere.request import options, parse
from mockllm.wire.protocols.cohere.ways import ways
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import mapped_text

_REQUEST = frozenset({"citation_options", "safety_mode", "strict_tools"})
"""Fields of requests that no other API has."""

_TEXT = frozenset({"text", "thinking", "tool_plan"})


def _is_answer(value: Fields) -> bool:
    if value.get("type") in ("message-start", "message-end", "tool-plan-delta"):
        return True
    return isinstance(value.get("message"), dict) and str(value.get("finish_reason")).isupper()


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=answer_id,
    error_body=errors.error_body,
    decode_error=errors.decode_error,
    error_headers=errors.error_headers,
    headers=errors.answer_headers,
    project=projection(Encoder, Decoder, ()),
    client=CLIENT,
    detect=records.Detection(
        request=lambda body: "messages" in body and not _REQUEST.isdisjoint(body),
        answer=_is_answer,
    ),
    events=records.StreamEvents(
        is_end=lambda event: event.get("type") == "message-end" or bool(event.get("error")),
        map_text=mapped_text(lambda name, _: name in _TEXT, frozenset({"citations", "logprobs"})),
        id_path="id",
        ways=ways,
        # https://docs.cohere.com/reference/chat-stream: "a chain-of-thought style reflection and
        # plan that the model generates when working with Tools".
        plan_path="delta.message.tool_plan",
    ),
    fields=records.FieldNames(
        fragments=_TEXT | {"arguments"},
        arguments=frozenset({"arguments"}),
        labels=frozenset({"finish_reason", "id", "name", "role", "tool_call_id", "type"}),
        item_ids=frozenset({"content_index", "index", "tool_call_id"}),
    ),
    normalize=records.Normalisation(
        made_up=frozenset({"id"}),
        places={
            "event": records.ObjectPlace(("",), ("",)),
            "call": records.ObjectPlace(
                ("delta.message.tool_calls",), ("message.tool_calls",), is_call=True
            ),
            "usage": records.ObjectPlace(("delta.usage",), ("usage",)),
        },
    ),
    fallback_routes=FALLBACK_ROUTES,
    objects=(FIRST_CHAT,),
    zero_arguments="{}",
    finish_values={reason: (write_finish(reason, None),) for reason in get_args(FinishReason)},
    service_errors=errors.SERVICE_ERRORS,
    quota_headers=errors.quota_headers,
    quota_error=errors.quota_error,
    end_data="[DONE]",
    sdk=records.SdkTypes("cohere", "cohere:V2ChatStreamResponse", "cohere:V2ChatResponse"),
)
