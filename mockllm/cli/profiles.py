"""`mockllm list profiles`: the latency of real services, and where it was measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from mockllm.cli.terminal.output import echo


def print_profiles(names: Sequence[str], as_json: bool) -> None:
    """Prints the profiles of the names, or all, with the source of each figure."""
    from mockllm.play.replay.latency.profiles import profile as find
    from mockllm.play.replay.latency.profiles import profiles

    listed = [*map(find, names)] or list(profiles().values())
    if as_json:
        echo(json.dumps([*map(asdict, listed)], indent=2))
        return
    for number, profile in enumerate(listed):
        echo(f"{'' if not number else chr(10)}{profile.name}: {profile.title}")
        for figure in profile.figures:
            echo(f"  {figure.key}={figure.value}: {figure.measured}")
        echo(f"  {profile.source} ({profile.date})")
