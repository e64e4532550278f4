"""Gateways that are known, for `--preset`. It reads `presets.yaml`, which describes them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mockllm.checking.rules import table
from mockllm.conformance.gateways.cases import Pair
from mockllm.conformance.gateways.check import Gateway
from mockllm.conformance.gateways.program import GatewayCommand
from mockllm.conformance.results import Client
from mockllm.core.errors import UsageError
from mockllm.core.text import did_you_mean


def presets() -> Mapping[str, Mapping[str, Any]]:
    """All presets, by their names, in the form of the file."""
    found: Mapping[str, Mapping[str, Any]] = table("presets.yaml", __package__)
    return found


def preset_pairs(name: str) -> Iterator[Pair]:
    """The pairs of APIs that a preset has."""
    return (Pair(down, entry["up"]) for entry in presets()[name]["pairs"] for down in entry["down"])


def preset_gateway(name: str, pair: Pair, program: Sequence[str] = ()) -> Gateway:
    """A preset over a pair of APIs.

    Args:
        program: in place of the first word of its command; () for that.

    Raises:
        UsageError: there is no such preset, or it does not have the pair.
    """
    if name not in presets():
        hint = did_you_mean(name, presets(), f"there are: {', '.join(presets())}")
        raise UsageError(f"--preset {name}: there is no such preset; {hint}")
    preset = presets()[name]
    for entry in preset["pairs"]:
        if pair.down in entry["down"] and pair.up == entry["up"]:
            return _gateway(preset, entry, pair, program)
    pairs = ", ".join(map(str, preset_pairs(name)))
    raise UsageError(f"--preset {name} is not known over {pair}; its pairs are {pairs}")


def _gateway(
    preset: Mapping[str, Any], entry: Mapping[str, Any], pair: Pair, program: Sequence[str]
) -> Gateway:
    words = shlex.split(preset["command"])
    command = GatewayCommand(
        (*(program or words[:1]), *words[1:]),
        preset.get("files", {}),
        preset.get("ready", ""),
        preset.get("environment", {}),
        entry.get("variables", {}),
    )
    return Gateway(
        pair=pair,
        command=command,
        base=entry.get("base"),
        model=entry["model"],
        headers=entry.get("headers", {}),
        tries=preset.get("tries", 1),
        unsupported=preset.get("unsupported", {}),
    )


def preset_client(name: str) -> Client:
    """A preset as results name what is judged."""
    preset = presets()[name]
    return Client(name, preset["version"], adapter=preset["command"])


def preset_lines() -> Iterator[str]:
    """The presets, for people."""
    for name, preset in presets().items():
        install = preset["install"]
        yield f"{name}: {preset['title']} {preset['version']}"
        yield f"  needs {install['kind']}: {' '.join(install['packages'])}"
        yield f"  pairs: {', '.join(map(str, preset_pairs(name)))}"
