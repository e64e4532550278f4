"""The fields of Gemini that the service generates anew, and where it adds others."""

from __future__ import annotations

from mockllm.protocols.records import Normalisation, Place

_CALL = ("candidates.content.parts.functionCall",)

NORMALISATION = Normalisation(
    # Protocol buffers omit zeros, so servers may leave out the index of the first candidate.
    made_up=frozenset({"responseId", "modelVersion", "createTime", "candidates.index"}),
    usage="usageMetadata",
    places={
        "event": Place(("",), ("",)),
        "choice": Place(("candidates",), ("candidates",)),
        "message": Place(("candidates.content",), ("candidates.content",)),
        "call": Place(_CALL, _CALL, is_call=True),
        "usage": Place(("usageMetadata",), ("usageMetadata",)),
    },
)
