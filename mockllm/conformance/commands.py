"""The command lines that show a case again. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """How a client was attached and which cases were chosen, as words of the command line.

    Args:
        command: of the runner; () where its answers came from a file.
        options: of `mockllm check`, `--api` among them, without those that choose single cases.
        scenarios: paths of the user's scenarios.
    """

    command: tuple[str, ...]
    options: tuple[str, ...]
    scenarios: tuple[str, ...] = ()


def check_command(setting: Setting, case: str) -> str:
    """The line that judges a case again."""
    paths = _paths(setting.scenarios)
    words = ["mockllm", "check", *setting.options, *paths, "--only", case]
    return shlex.join([*words, "--", *setting.command])


def show_command(setting: Setting, case: str) -> str:
    """The line that prints the bytes of a case."""
    return shlex.join(["mockllm", "show", case, *_paths(setting.scenarios)])


def _paths(scenarios: Sequence[str]) -> list[str]:
    return [word for path in scenarios for word in ("--scenarios", path)]
