"""The names in scenarios that other rooms define. Only the interface may live here."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Vocabulary"]


class Vocabulary(Protocol):
    """What the loader is handed, so that it imports neither protocols nor quirks.

    Both are asked only where a scenario writes such a name, so that loading does not have to
    import what no scenario uses.
    """

    @property
    def apis(self) -> tuple[str, ...]:
        """The names of the protocols, in the order in which messages list them."""
        ...

    def quirk_problem(self, name: str) -> str | None:
        """Why `name` names no quirk; None where it names one."""
        ...
