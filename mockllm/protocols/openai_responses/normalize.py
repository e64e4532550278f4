"""The fields of Responses that the service generates anew, and where it adds others."""

from __future__ import annotations

from mockllm.protocols.records import Normalisation, ObjectPlace

NORMALISATION = Normalisation(
    made_up=frozenset(
        {"sequence_number", "obfuscation", "item_id", "item.id"}
        | {"response.id", "response.output.id", "response.output.encrypted_content"}
        | {"response.created_at", "response.completed_at", "response.model"}
    ),
    answer_fields={
        "response": frozenset(
            {"object", "status", "output", "usage", "error", "incomplete_details"}
        )
    },
    replaced={"response.output_item.added": "encrypted_content"},
    envelope="response",
    places={
        "event": ObjectPlace(("",), ()),
        "message": ObjectPlace(("response",), ("response",)),
        "call": ObjectPlace(("item", "response.output"), ("response.output",), is_call=True),
        "usage": ObjectPlace(("response.usage",), ("response.usage",)),
    },
)
