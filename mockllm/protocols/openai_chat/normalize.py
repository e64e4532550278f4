"""The fields of Chat Completions that the service generates anew for each answer."""

from __future__ import annotations

from mockllm.protocols.records import Normalisation

__all__ = ["NORMALISATION"]

NORMALISATION = Normalisation(
    made_up=frozenset(
        {"id", "created", "model", "service_tier", "system_fingerprint", "obfuscation"}
    ),
)
