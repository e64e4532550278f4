"""What real servers send that the rules of their protocols do not foresee.

A folder for each API; a quirk is one entry of one list: its bytes, where it was seen, who
stumbled over it, and what is right. `QUIRKS` is the table of them.
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
    usage,
)
from mockllm.quirks.base import Quirk, Variant

__all__ = ["QUIRKS", "Quirk", "Variant", "find"]

_GROUPS = (
    chat,
    usage,
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
    """The quirk and the variant that `NAME` or `NAME:VARIANT` means.

    Raises:
        UsageError: there is none; the message tells the nearest names.
    """
    plain, _, wanted = name.partition(":")
    quirk = QUIRKS.get(plain)
    if quirk is None:
        near = get_close_matches(plain, QUIRKS, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`mockllm quirks` lists them"
        raise UsageError(f"there is no quirk {plain!r}; {hint}")
    variant = quirk.variant(wanted)
    if variant is None:
        known = ", ".join(v.name for v in quirk.variants if v.name) or "none"
        raise UsageError(f"quirk {plain!r} has no variant {wanted!r}; it has: {known}")
    return quirk, variant
