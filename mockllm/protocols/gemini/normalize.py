"""The fields of Gemini that the service generates anew, and where it adds others."""

from __future__ import annotations

from mockllm.protocols.records import Normalisation, ObjectPlace

_CALL = ("candidates.content.parts.functionCall",)

NORMALISATION = Normalisation(
    # Protocol buffers omit zeros, so servers may leave out the index of the first candidate.
    made_up=frozenset({"responseId", "modelVersion", "createTime", "candidates.index"}),
    usage="usageMetadata",
    places={
        "event": ObjectPlace(("",), ("",)),
        "choice": ObjectPlace(("candidates",), ("candidates",)),
        "message": ObjectPlace(("candidates.content",), ("candidates.content",)),
        "call": ObjectPlace(_CALL, _CALL, is_call=True),
        "usage": ObjectPlace(("usageMetadata",), ("usageMetadata",)),
    },
)
