"""The events of sound in a Responses stream: no item holds what they say, so a body has none.

https://platform.openai.com/docs/api-reference/responses-streaming; the keys are those of OpenAI's
Python SDK. The encoder numbers them.
"""

from __future__ import annotations

from mockllm.wire.protocols.native import Shape, keys, text

_FRAGMENT, _END = keys({"delta": text}), keys({})

NATIVE: dict[str, Shape] = {
    "response.audio.delta": _FRAGMENT,
    "response.audio.done": _END,
    "response.audio.transcript.delta": _FRAGMENT,
    "response.audio.transcript.done": _END,
}
"""The shapes of events by their types."""
