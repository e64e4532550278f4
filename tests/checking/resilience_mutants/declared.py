"""`MUTANTS`: the client of examples/resilient_client with one bug each, as the TOML files here
declare them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """The client with one bug.

    Args:
        name: unique; a few words with hyphens.
        rule: the rule that must find it.
        bug: what the client does, for the table.
        changes: pairs of a text that is in the client's files exactly once, and of what replaces
            it.
        also: further rules that the same bug breaks.
        sampled: whether `make test` may play it; not if it takes more than 8 s to find
            it, shows in milliseconds only, or leaves sockets open.
    """

    name: str
    rule: str
    bug: str
    changes: tuple[tuple[str, str], ...]
    also: frozenset[str]
    sampled: bool


def _declared() -> tuple[Mutant, ...]:
    files = sorted(Path(__file__).parent.glob("*.toml"))
    entries = [load for file in files for load in tomllib.loads(file.read_text())["mutant"]]
    return tuple(
        Mutant(
            entry["name"],
            entry["rule"],
            entry["bug"],
            tuple((change["old"], change["new"]) for change in entry["change"]),
            frozenset(entry.get("also", ())),
            entry.get("sampled", True),
        )
        for entry in entries
    )


MUTANTS = _declared()
