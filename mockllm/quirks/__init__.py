"""Quirks: ways in which the streams of real servers break the rules of their protocols.

A folder for each API and one for framing; `stream_errors` are quirks of several APIs. A quirk is
one entry of one list, with the change of the stream; its description (the servers that do it, what
clients get wrong, what is right) stands in `quirks.yaml` beside it. `QUIRKS` is the table of all.
"""

from __future__ import annotations

from difflib import get_close_matches

from mockllm.errors import UsageError
from mockllm.quirks import (
    agui,
    anthropic,
    chat,
    framing,
    gemini,
    responses,
    stream_errors,
)
from mockllm.quirks.base import Quirk, Variant

__all__ = ["QUIRKS", "Quirk", "Variant", "find"]

_GROUPS = (
    chat,
    framing,
    stream_errors,
    anthropic,
    responses,
    gemini,
    agui,
)

QUIRKS: dict[str, Quirk] = {quirk.name: quirk for group in _GROUPS for quirk in group.QUIRKS}
"""Every quirk by its name, group by group."""


def find(name: str) -> tuple[Quirk, Variant]:
    """The quirk and the variant of a name, `NAME` or `NAME:VARIANT`.

    Raises:
        UsageError: there is none; the message lists the most similar names.
    """
    plain, _, variant_name = name.partition(":")
    quirk = QUIRKS.get(plain)
    if quirk is None:
        similar = get_close_matches(plain, QUIRKS, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(similar)}?" if similar else "`mockllm quirks` lists them"
        raise UsageError(f"there is no quirk {plain!r}; {hint}")
    variant = quirk.variant(variant_name)
    if variant is None:
        known = ", ".join(v.name for v in quirk.variants if v.name) or "none"
        raise UsageError(f"quirk {plain!r} has no variant {variant_name!r}; it has: {known}")
    return quirk, variant
