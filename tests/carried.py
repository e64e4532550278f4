"""Chat Completions over other carriers: protocols that live in the tests only."""

from __future__ import annotations

from dataclasses import replace

from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.eventstream import EVENTSTREAM
from mockllm.wire.framing.ndjson import NDJSON
from mockllm.wire.framing.sse import SSE
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol


def over(carrier: Carrier) -> WireProtocol:
    """Chat Completions whose frames travel in another form, named `chat-` and that form."""
    chat = PROTOCOLS["chat"]
    address = replace(chat.address, name=f"chat-{carrier.name}")
    end = chat.end_data if carrier is EVENTSTREAM else None
    return replace(
        chat, address=address, carriers=(carrier,), carrier=lambda _: carrier, end_data=end
    )


def payload(carrier: Carrier, block: bytes) -> bytes:
    """What should be JSON in a block with one frame."""
    if carrier is SSE:
        (frame,) = carrier.block(block)
        return (frame.data or "").encode()
    begin, end = carrier.parts(block)["payload"]
    return block[begin:end]


CARRIED = {protocol.name: protocol for protocol in map(over, (EVENTSTREAM, NDJSON))}
"""By their names. None of them is in `PROTOCOLS` before a test puts it there."""
