"""Reads command lines of containers, and finds the programs that check deployment files."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from mockllm.cli import main
from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]

_SCHEMAS = ROOT / ".venv-schemas" / "bin"


def parsed(arguments: Sequence[str]) -> dict[str, Any]:
    """The values of all parameters of a command line of `mockllm`; an option that is not there, or
    a value that it does not take, is an error of click."""
    name, *rest = map(str, arguments)
    command = main.get_command(click.Context(main), name)
    assert command is not None, name
    return command.make_context(name, rest).params


def schema_program(name: str) -> Path:
    """A program of `schemas_env`; skips where it is not installed."""
    program = _SCHEMAS / name
    if not program.exists():
        pytest.skip(f"{name} is not here; `make ready` installs it into .venv-schemas")
    return program


def program(name: str) -> str:
    """The path of a program; skips where there is none."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here")
    return found


def run(*command: str | Path, **options: Any) -> str:
    """Standard output of a command that succeeds."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=options.pop("timeout", GIVE_UP),
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
