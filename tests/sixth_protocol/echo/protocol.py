"""The Echo API as a whole."""

from __future__ import annotations

from mockllm.wire.protocols.base import WireProtocol
from tests.sixth_protocol.echo import ADDRESS
from tests.sixth_protocol.echo.acts import FINISH_WORDS, SILENCE, read_mishap
from tests.sixth_protocol.echo.client import CLIENT
from tests.sixth_protocol.echo.decoder import Decoder, decode_body
from tests.sixth_protocol.echo.encoder import Encoder, answer_id, encode_body
from tests.sixth_protocol.echo.errors import error_body, error_headers, headers, voices
from tests.sixth_protocol.echo.records import (
    DETECTION,
    EVENTS,
    NORMALISATION,
    project,
)
from tests.sixth_protocol.echo.request import guard, options, parse

PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=answer_id,
    error_body=error_body,
    decode_error=read_mishap,
    error_headers=error_headers,
    headers=headers,
    project=project,
    client=CLIENT,
    detect=DETECTION,
    events=EVENTS,
    normalize=NORMALISATION,
    lookups={"models": voices},
    guard=guard,
    call_prefix="cue_",
    end_data=SILENCE,
    finish_values={reason: (word,) for reason, word in FINISH_WORDS.items()},
)
