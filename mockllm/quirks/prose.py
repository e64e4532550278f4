"""What people read about the quirks: `quirks.yaml` of each folder.

Playing a quirk needs none of it, so the files are read when somebody asks. They are the only files
that this room reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

Right = Literal["same", "error", "either"]
"""What a correct client does: return the same answer as without the quirk (or that of
`Variant.expected`), report a clear error, or either of them."""

TOPICS = (
    "index",
    "ids",
    "names",
    "arguments",
    "calls",
    "content",
    "blocks",
    "signatures",
    "unknown events",
    "ends",
    "errors",
    "usage",
    "framing",
    "other",
)
"""What quirks are about, in the order of reports."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Prose:
    """The description of a quirk.

    Args:
        group: the letter of its group, `A` to `K`: a section of docs/quirks.md.
        topic: what it is about (`TOPICS`), whatever the API; reports group cases by it.
        title: one line.
        servers: where it was seen.
        right: what a correct client does.
        correct: the same as an instruction to the author of a client.
        faults: what clients get wrong, in the third person.
        invariant: the invariant that a faulty client breaks.
        variants: what the bytes look like, one line for each variant, by its name.
        sources: `owner/repository#number` of reports, if any.
    """

    group: str
    topic: str
    title: str
    servers: str
    right: Right
    correct: str
    faults: str
    invariant: str
    variants: Mapping[str, str]
    sources: tuple[str, ...] = ()


@cache
def prose() -> Mapping[str, Prose]:
    """The descriptions of all quirks, by their names."""
    room = files(__package__)
    tables = [folder / "quirks.yaml" for folder in (room, *room.iterdir()) if folder.is_dir()]
    return {
        name: Prose(**{**fields, "sources": tuple(fields.get("sources", ()))})
        for table in tables
        if table.is_file()
        for name, fields in yaml.load(table.read_bytes(), _Loader).items()  # noqa: S506 - a safe one
    }
