"""`CARRIERS`: all forms in which frames travel."""

from __future__ import annotations

from collections.abc import Iterable

from mockllm.errors import StreamFormatError
from mockllm.framing.carrier import Carrier
from mockllm.framing.eventstream import EVENTSTREAM
from mockllm.framing.json_array import JSON_ARRAY
from mockllm.framing.ndjson import NDJSON
from mockllm.framing.sse import SSE

CARRIERS: tuple[Carrier, ...] = (SSE, JSON_ARRAY, NDJSON, EVENTSTREAM)


def carrier_in(body: bytes, usual: Carrier) -> Carrier | None:
    """The carrier of an answer by its bytes, where no content type says it: the usual one of its
    API, or None for a body. Some services send their streams as plain text."""
    if body.lstrip()[:1] not in (b"{", b"[", b"<"):
        return usual
    try:
        return usual if len(usual.decode(body)) > 1 else None
    except StreamFormatError:
        return None


def carrier_of(content_type: str, among: Iterable[Carrier] = CARRIERS) -> Carrier | None:
    """The carrier of a stream by its content type; None where other bodies have the same."""
    named = (carrier for carrier in among if carrier.content_type in content_type)
    return next((carrier for carrier in named if carrier.name != JSON_ARRAY.name), None)
