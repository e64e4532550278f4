"""AG-UI as a whole."""

from __future__ import annotations

from mockllm.wire.protocols import records
from mockllm.wire.protocols.ag_ui import ADDRESS
from mockllm.wire.protocols.ag_ui.client import CLIENT
from mockllm.wire.protocols.ag_ui.created import create
from mockllm.wire.protocols.ag_ui.decoder import Decoder, decode_body
from mockllm.wire.protocols.ag_ui.encoder import Encoder, encode_body
from mockllm.wire.protocols.ag_ui.errors import error_body, error_headers, headers
from mockllm.wire.protocols.ag_ui.native import NATIVE
from mockllm.wire.protocols.ag_ui.objects import ENDINGS, Options
from mockllm.wire.protocols.ag_ui.request import options, parse
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import mapped_text, string


def _is_text(name: str, event: Fields) -> bool:
    # Arguments of calls are deltas, too.
    return name == "delta" and str(event.get("type")).endswith("MESSAGE_CONTENT")


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=lambda reply: str(reply.options.run_id),
    error_body=error_body,
    error_headers=error_headers,
    headers=headers,
    project=projection(Encoder, Decoder, Options()),
    client=CLIENT,
    detect=records.Detection(
        request=lambda body: {"threadId", "runId", "messages"} <= body.keys(),
        answer=lambda value: value.get("type") in ("RUN_STARTED", "RUN_ERROR"),
    ),
    events=records.StreamEvents(
        has_finals=True,
        is_end=lambda event: bool(event.get("error")) or string(event.get("type")) in ENDINGS,
        map_text=mapped_text(_is_text, frozenset({"input"})),
        finish_path="outcome.type",
    ),
    fields=records.FieldNames(
        fragments=frozenset({"content", "delta"}),
        arguments=frozenset({"arguments"}),
        labels=frozenset({"id", "messageId", "name", "parentMessageId", "role", "runId"})
        | {"threadId", "toolCallId", "toolCallName", "type"},
        item_ids=frozenset({"messageId", "toolCallId"}),
    ),
    normalize=records.Normalisation(
        made_up=frozenset({"timestamp", "threadId", "runId", "messageId", "parentMessageId"}),
        places={"event": records.ObjectPlace(("",), ("",))},
    ),
    lookups={"create": create},
    zero_arguments="",
    finish_values={
        "stop": ("RUN_FINISHED", "success"),
        "tool_calls": ("RUN_FINISHED", "success", "stop"),
    },
    native=NATIVE,
    sdk=records.SdkTypes("ag-ui-protocol", "ag_ui.core:Event", "ag_ui.core:Event"),
)
