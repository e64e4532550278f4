"""The fields of AG-UI that an agent generates anew for each answer."""

from __future__ import annotations

from mockllm.protocols.records import Normalisation, ObjectPlace

NORMALISATION = Normalisation(
    made_up=frozenset({"timestamp", "threadId", "runId", "messageId", "parentMessageId"}),
    places={"event": ObjectPlace(("",), ("",))},
)
