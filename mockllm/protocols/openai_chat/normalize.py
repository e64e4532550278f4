"""What Chat Completions makes up in its events."""

from __future__ import annotations

from mockllm.protocols.base import Normalisation

__all__ = ["NORMALISATION"]

NORMALISATION = Normalisation(
    made_up=frozenset(
        {"id", "created", "model", "service_tier", "system_fingerprint", "obfuscation"}
    ),
)
