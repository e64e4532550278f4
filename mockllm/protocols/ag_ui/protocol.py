"""AG-UI as a whole."""

from __future__ import annotations

from mockllm.protocols.ag_ui import ADDRESS, records
from mockllm.protocols.ag_ui.client import CLIENT
from mockllm.protocols.ag_ui.created import create
from mockllm.protocols.ag_ui.decoder import Decoder, decode_body
from mockllm.protocols.ag_ui.encoder import Encoder, encode_body
from mockllm.protocols.ag_ui.errors import error_body, error_headers, headers
from mockllm.protocols.ag_ui.request import options, parse
from mockllm.protocols.base import Reply, WireProtocol

__all__ = ["PROTOCOL"]


def _answer_id(reply: Reply) -> str:
    run_id: str = reply.options.run_id
    return run_id


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=_answer_id,
    error_body=error_body,
    error_headers=error_headers,
    headers=headers,
    project=records.project,
    client=CLIENT,
    detect=records.DETECTION,
    events=records.EVENTS,
    fields=records.FIELDS,
    normalize=records.NORMALISATION,
    lookups={"create": create},
    zero_arguments="",
    finish_values={
        "stop": ("RUN_FINISHED", "success"),
        "tool_calls": ("RUN_FINISHED", "success", "stop"),
    },
    losses=records.LOSSES,
)
