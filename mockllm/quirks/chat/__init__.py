"""The quirks of Chat Completions, groups A to E.

`identity` and `index` are about ids, names and indexes, `arguments` and `broken` about arguments,
`finish` about the end of a stream, `usage` about usage, `envelope` and `deltas` about all else;
`chunks` is what they share.
"""

from __future__ import annotations

from mockllm.quirks.base import Quirk
from mockllm.quirks.chat import arguments, envelope, finish, identity, usage

__all__ = ["QUIRKS"]

QUIRKS: tuple[Quirk, ...] = (
    *identity.QUIRKS,
    *arguments.QUIRKS,
    *finish.QUIRKS,
    *envelope.QUIRKS,
    *usage.QUIRKS,
)
