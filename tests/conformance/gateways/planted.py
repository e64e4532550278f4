"""Gateways with a bug that is planted in them. It reads `bugs.yaml` and `mutants.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import yaml
from aiohttp import web

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Bug:
    """A mistake in a gateway.

    Args:
        gateway: the module that it is planted in.
        pair: the APIs with which it is judged, such as `anthropic-chat`.
        change: the texts of the module that are replaced, and by what.
        found: the rules under which it is found; of a mutant those that are apt.
        cases: that show it, without their pair; a mutant is judged by the default run.
    """

    name: str
    gateway: str
    pair: str
    mistake: str
    change: Mapping[str, str]
    found: tuple[str, ...]
    cases: tuple[str, ...]

    def planted(self) -> str:
        """The source of the gateway with this bug."""
        source = source_of(self.gateway)
        for old, new in self.change.items():
            assert source.count(old) == 1, f"{self.name}: {old!r} stands {source.count(old)} times"
            before, after = source.split(old)
            indent = before[before.rindex("\n") + 1 :]
            indent = indent[: len(indent) - len(indent.lstrip())]
            source = before + new.rstrip("\n").replace("\n", "\n" + indent) + after
        return source


def source_of(gateway: str) -> str:
    """The source of a gateway."""
    return (HERE / f"{gateway}.py").read_text(encoding="utf-8")


def _read(name: str) -> dict[str, Bug]:
    table = yaml.safe_load((HERE / name).read_text(encoding="utf-8"))
    return {
        entry["name"]: Bug(
            **{
                **entry,
                "found": tuple(entry["found"].split()),
                "cases": tuple(entry.get("cases", "").split()),
            }
        )
        for entry in table
    }


BUGS = _read("bugs.yaml")
MUTANTS = _read("mutants.yaml")


def gateway(name: str, upstream: str, bug: Bug | None = None) -> web.Application:
    """A gateway, with a bug in it.

    Args:
        upstream: the base URL of its upstream, as an SDK is given it.
    """
    if bug is None:
        module = import_module(f"tests.conformance.gateways.{name}")
    else:
        module = ModuleType(f"{name} with {bug.name}")
        exec(compile(bug.planted(), f"{name}.py with {bug.name}", "exec"), module.__dict__)
    app: web.Application = module.application(upstream)
    return app
