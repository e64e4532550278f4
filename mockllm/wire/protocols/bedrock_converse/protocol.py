"""Amazon Bedrock Converse as a whole."""

from __future__ import annotations

from mockllm.core.events import Start
from mockllm.core.seeded import derive
from mockllm.wire.protocols import aws, records
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.bedrock_converse import ADDRESS, errors
from mockllm.wire.protocols.bedrock_converse.blocks import STOPS
from mockllm.wire.protocols.bedrock_converse.client import CLIENT
from mockllm.wire.protocols.bedrock_converse.decoder import Decoder, decode_body
from mockllm.wire.protocols.bedrock_converse.encoder import Encoder, encode_body
from mockllm.wire.protocols.bedrock_converse.fallback import FALLBACK_ROUTES
from mockllm.wire.protocols.bedrock_converse.form import mistakes
from mockllm.wire.protocols.bedrock_converse.guardrails import APPLY
from mockllm.wire.protocols.bedrock_converse.request import count_tokens, options, parse
from mockllm.wire.protocols.bedrock_converse.union import UNION, is_error
from mockllm.wire.protocols.bedrock_converse.ways import ways
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import mapped_text, mapping, objects

_FIELDS = (
    "inferenceConfig",
    "additionalModelRequestFields",
    "guardrailConfig",
    "performanceConfig",
)
_EVENTS = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop")


def _is_request(body: Fields) -> bool:
    """Whether a body has the fields of Converse, or blocks that are unions without a `type`."""
    blocks = [
        block
        for message in objects(body.get("messages"))
        for block in objects(message.get("content"))
    ]
    return (bool(blocks) and all(len(block) == 1 for block in blocks)) or any(
        name in body for name in _FIELDS
    )


def _is_answer(value: Fields) -> bool:
    return "message" in mapping(value.get("output")) or (
        len(value) == 1 and not value.keys().isdisjoint(_EVENTS)
    )


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    # No answer has an id that a client could name.
    answer_id=lambda reply: derive(reply.seed, "answer", reply.token),
    error_body=errors.error_body,
    decode_error=errors.decode_error,
    error_headers=errors.error_headers,
    service_errors=errors.SERVICE_ERRORS,
    quota_error=aws.quota_error,
    headers=errors.answer_headers,
    reply_fields=("service_tier",),
    project=projection(Encoder, Decoder, None),
    client=CLIENT,
    detect=records.Detection(request=_is_request, answer=_is_answer, identity=lambda _: Start()),
    events=records.StreamEvents(
        is_end=lambda event: "messageStop" in event or any(map(is_error, event)),
        map_text=mapped_text(lambda name, _: name == "text", frozenset({"input", "citation"})),
        mistakes=mistakes,
        ways=ways,
    ),
    fields=records.FieldNames(
        fragments=frozenset({"input", "text"}),
        labels=frozenset({"name", "role", "status", "stopReason", "toolUseId", "type"}),
        opaque=frozenset({"p", "redactedContent", "signature"}),
        item_ids=frozenset({"contentBlockIndex"}),
    ),
    normalize=records.Normalisation(
        made_up=frozenset(
            {"metrics", *(f"{name}.p" for name in (*_EVENTS, "messageStop", "metadata"))}
            | {"metadata.metrics"}
        ),
        places={
            "metadata": records.ObjectPlace(("metadata",), ("",)),
            "call": records.ObjectPlace(
                ("contentBlockStart.start.toolUse",), ("output.message.content.toolUse",), True
            ),
            "finish": records.ObjectPlace(("messageStop",), ("",)),
            "usage": records.ObjectPlace(("metadata.usage",), ("usage",)),
        },
    ),
    zero_arguments="",
    finish_values={reason: (value,) for reason, value in STOPS.usual.items()},
    lookups={"count_tokens": count_tokens},
    fallback_routes=(*FALLBACK_ROUTES, APPLY),
    call_prefix="tooluse_",
    carriers=(UNION,),
    carrier=lambda _: UNION,
)
