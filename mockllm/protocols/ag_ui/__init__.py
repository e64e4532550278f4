"""AG-UI 1.0, the protocol between an agent and its user interface.

https://docs.ag-ui.com

`request` (with `messages`) parses the input of a run; `encoder` writes its stream
and `decoder` reads it; `objects` has what both share, `errors` all
errors; `created` makes ids of threads and runs; `records` lists what the API cannot express. AG-UI
always streams: the body form is mockllm's own.
"""

from __future__ import annotations

from mockllm.protocols.ag_ui import records
from mockllm.protocols.ag_ui.client import CLIENT
from mockllm.protocols.ag_ui.created import CREATES, create
from mockllm.protocols.ag_ui.decoder import Decoder, decode_body
from mockllm.protocols.ag_ui.encoder import Encoder, encode_body
from mockllm.protocols.ag_ui.errors import error_body, error_headers, headers
from mockllm.protocols.ag_ui.objects import API
from mockllm.protocols.ag_ui.request import options, parse
from mockllm.protocols.base import Reply, Route, WireProtocol

__all__ = ["PROTOCOL", "Decoder", "Encoder", "decode_body", "encode_body", "project"]


def _answer_id(reply: Reply) -> str:
    run_id: str = reply.options.run_id
    return run_id


PROTOCOL = WireProtocol(
    name=API,
    title="AG-UI",
    routes=(
        Route("POST", "/agui", "generate"),
        Route("POST", "/agui/{scenario}", "generate"),
    ),
    base_path="/agui",
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
    env=records.ENVIRONMENT,
    lookups={"create": create},
    creates=CREATES,
    zero_arguments="",
    finish_values={
        "stop": ("RUN_FINISHED", "success"),
        "tool_calls": ("RUN_FINISHED", "success", "stop"),
    },
    losses=records.LOSSES,
)
