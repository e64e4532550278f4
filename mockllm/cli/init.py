"""`mockllm init`: a first scenario to change, or a runner for a client."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click

from mockllm.cli.terminal.output import echo
from mockllm.core.errors import UsageError
from mockllm.play.replay.loading import shipped_folder
from mockllm.wire.protocols.environment import MOCK_KEY

FIRST_MODEL = "mock/weather"
"""The model that plays the first scenario."""

LANGUAGES = ("c", "go", "java", "javascript", "python", "rust", "typescript")
"""The languages that there are runners in; each has a folder."""

_FILE = "weather.yaml"
_SAID = "What is the weather in Paris?"
_URL = "http://127.0.0.1:8080"
_PYTHON = (
    "from openai import OpenAI  # pip install openai",
    f'client = OpenAI(base_url="{_URL}/v1", api_key="{MOCK_KEY}")',
    f'stream = client.responses.create(model="gpt-5", input="{_SAID}", stream=True)',
    "for event in stream:",
    "    print(event)",
)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--runner",
    "language",
    type=click.Choice(LANGUAGES),
    help="Write a runner in this language instead: a program in which `mockllm check` judges a "
    "client.",
)
def init(folder: Path, language: str | None) -> None:
    """Write a first scenario into DIR, or a runner for a client.

    The scenario has comments to learn from, and the next steps are printed. A missing folder is
    created. No file is ever overwritten.

    \b
    Examples:
      mockllm init scenarios
      mockllm init --runner rust runner
    """
    if language is None:
        _first_scenario(folder)
    else:
        _runner(language, folder)


def _runner(language: str, folder: Path) -> None:
    for file in copy_runner(language, folder):
        echo(f"wrote {file}")
    echo("\nBuild and check it:\n" if len(steps(language)) > 1 else "\nCheck it:\n")
    for line in (f"cd {shlex.quote(str(folder))}", *steps(language)):
        echo(f"  {line}")
    echo(f"\nThen put your client in its place: {folder / 'README.md'} names the file.")


def _first_scenario(folder: Path) -> None:
    target = folder / _FILE
    content = Path(__file__).with_name("first.yaml").read_text(encoding="utf-8")
    quoted = shlex.quote(str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        raise UsageError(
            f"{target} is there already and stays as it is; name another folder"
        ) from None
    echo(f"wrote {target}\n")
    echo("Serve it:\n")
    echo(f"  mockllm serve {quoted}\n")
    echo("Ask it, from another terminal:\n")
    for line in (*curl(_URL, FIRST_MODEL), "", *_PYTHON):
        echo(f"  {line}".rstrip())
    echo("\nSee what a client gets, and check what you change:\n")
    echo(f"  mockllm show weather --scenarios {quoted} --api responses --timing")
    echo(f"  mockllm validate {quoted}")


def curl(url: str, model: str) -> tuple[str, ...]:
    """The lines of a command that streams the first turn of a scenario."""
    body = {
        "model": model,
        "stream": True,
        "messages": [{"role": "user", "content": _SAID}],
    }
    return (
        f"curl -N {url}/v1/chat/completions -H 'content-type: application/json' \\",
        f"  -d {shlex.quote(json.dumps(body))}",
    )


def runners_folder() -> Path:
    """The folder of the runners: in the installed package, or in a checkout."""
    return shipped_folder("the runners", "conformance/runners", "examples/runners")


def copy_runner(language: str, target: Path) -> list[Path]:
    """Copies the runner of a language; returns the new files.

    Raises:
        UsageError: a file is there already; then nothing is written.
    """
    source = runners_folder() / language
    files = [
        path.relative_to(source) for path in sorted(source.rglob("*")) if _belongs(path, source)
    ]
    present = [target / path for path in files if (target / path).exists()]
    if present:
        raise UsageError(f"{present[0]} is there already and stays as it is; name another folder")
    for path in files:
        new = target / path
        new.parent.mkdir(parents=True, exist_ok=True)
        with new.open("xb") as file:
            file.write((source / path).read_bytes())
    return [target / path for path in files]


_LEFT_OUT = frozenset({"__pycache__", "node_modules", "target", "dist", "classes"})
"""What building leaves in a checkout."""


def _belongs(file: Path, source: Path) -> bool:
    return file.is_file() and not _LEFT_OUT.intersection(file.relative_to(source).parts)


def steps(language: str) -> list[str]:
    """The command lines that build a runner, if it is built, and check it: the block of its
    README."""
    text = (runners_folder() / language / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()
