"""Runs the steps of `action.yml` as GitHub's runner does, as far as the action uses it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
_EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")


@dataclass
class Job:
    """A job that uses the action.

    Args:
        folder: the checkout of the job.
        temp: the runner's folder for temporary files.
        path: folders that are searched for commands first.
    """

    folder: Path
    temp: Path
    path: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)

    def run(self, step: str, inputs: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Runs a step with a shell, and reads what it wrote for the runner."""
        (found,) = (one for one in STEPS if one.get("id") == step)
        context = {f"inputs.{name}": str(one["default"]) for name, one in ACTION["inputs"].items()}
        context |= {f"inputs.{name}": value for name, value in inputs.items()}
        context["github.action_path"] = str(ROOT)
        script = self.temp / f"{step}.sh"
        script.write_text(found["run"])
        # As the runner starts `shell: bash`.
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.folder,
            env={
                **os.environ,
                **self.variables,
                "PATH": ":".join([*self.path, os.environ["PATH"]]),
                **{name: self._file(name) for name in ("GITHUB_ENV", "GITHUB_OUTPUT")},
                **{name: self._file(name) for name in ("GITHUB_PATH", "GITHUB_STEP_SUMMARY")},
                "RUNNER_TEMP": str(self.temp),
                **{name: _resolved(value, context) for name, value in found["env"].items()},
            },
            capture_output=True,
            text=True,
            timeout=GIVE_UP,
        )
        self.variables |= self._pairs("GITHUB_ENV")
        self.outputs |= self._pairs("GITHUB_OUTPUT")
        self.path = [*self._lines("GITHUB_PATH"), *self.path]
        return done

    @property
    def summary(self) -> str:
        """What the page of the job shows."""
        return "\n".join(self._lines("GITHUB_STEP_SUMMARY"))

    def _file(self, name: str) -> str:
        return str(self.temp / name.lower())

    def _lines(self, name: str) -> list[str]:
        file = Path(self._file(name))
        return file.read_text().splitlines() if file.exists() else []

    def _pairs(self, name: str) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self._lines(name))


def _resolved(value: str, context: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: context[found[1]], value)
