"""Finds the scenarios that come with mockllm. Standard library only."""

from __future__ import annotations

from pathlib import Path

from mockllm.errors import MockLLMError


def shipped_scenarios() -> Path:
    """The folder of the shipped scenarios: in the installed package, or in a checkout.

    Raises:
        MockLLMError: the folder is missing from the installation.
    """
    package = Path(__file__).parent.parent
    for folder in (package / "shipped", package.parent / "scenarios"):
        if folder.is_dir():
            return folder
    raise MockLLMError(
        f"the shipped scenarios are not at {package / 'shipped'}; reinstall mockllm-harness, or "
        "name a folder of your own"
    )
