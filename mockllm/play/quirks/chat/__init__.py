"""The quirks of Chat Completions, groups A to E.

`identity` is about ids, names and indexes, `arguments` about arguments, `finish` about the end of a
stream with its usage, `envelope` about all else; `chunks` is what they share.
"""

from __future__ import annotations

from mockllm.play.quirks.base import Quirk
from mockllm.play.quirks.chat import arguments, envelope, finish, identity

QUIRKS: tuple[Quirk, ...] = (
    *identity.QUIRKS,
    *arguments.QUIRKS,
    *finish.QUIRKS,
    *envelope.QUIRKS,
    *finish.USAGE,
)
