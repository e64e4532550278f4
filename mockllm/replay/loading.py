"""Scenarios, with the names of the protocols and quirks that are there.

`mockllm.scenario.load` is handed these names, so that the language itself knows none.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from mockllm.errors import UsageError
from mockllm.scenario import load as language
from mockllm.scenario.model import Scenario

__all__ = ["VOCABULARY", "load", "loads"]


class _Installed:
    """The protocols in `PROTOCOLS` and the quirks in `QUIRKS`; imported when first asked for."""

    @property
    def apis(self) -> tuple[str, ...]:
        from mockllm.protocols import PROTOCOLS

        return tuple(PROTOCOLS)

    def quirk_problem(self, name: str) -> str | None:
        from mockllm.quirks import find

        try:
            find(name)
        except UsageError as error:
            return str(error)
        return None


VOCABULARY = _Installed()
"""The names that scenarios may use."""


def load(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
) -> tuple[Scenario, ...]:
    """The scenarios of files and folders, in the order of the paths and of the file names.

    Args:
        paths: one path, or several: of files, or of folders that are searched to the bottom for
            `*.yaml` and `*.yml`; what is hidden is passed over, and no file is read twice.

    Raises:
        ScenarioError: with every problem of every file.
    """
    return language.load(paths, VOCABULARY)


def loads(text: str, name: str = "<text>") -> tuple[Scenario, ...]:
    """The scenarios in a text. Their tapes (`recorded`) are not looked for.

    Args:
        name: what problems call the text.

    Raises:
        ScenarioError: with every problem.
    """
    return language.loads(text, VOCABULARY, name)
