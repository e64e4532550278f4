"""What the Echo API makes up in its acts."""

from __future__ import annotations

from mockllm.protocols.records import Normalisation

__all__ = ["NORMALISATION"]

NORMALISATION = Normalisation(made_up=frozenset({"show", "speaker"}), usage="tally")
