"""The names in scenarios that other packages define. Only the interface may live here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mockllm.scenario.model import Scenario
    from mockllm.scenario.reading.locate import KeyPath


class Vocabulary(Protocol):
    """The names of protocols and quirks, passed to `load` so that it imports neither.

    Both are looked up only where a scenario has such a name: quirks that no scenario uses are
    not imported.
    """

    @property
    def apis(self) -> tuple[str, ...]:
        """The names of the protocols, in the order in which messages list them."""
        ...

    def quirk_problem(self, name: str) -> str | None:
        """Why there is no quirk with this name; None where there is one."""
        ...

    def fault_mistakes(self, scenario: Scenario) -> Iterable[tuple[KeyPath, str]]:
        """The faults of a scenario that cannot strike: where each is, and why."""
        ...
