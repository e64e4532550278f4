"""`mockllm docs`: the pages of the documentation, from the package itself."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mockllm.cli.terminal.output import echo
from mockllm.cli.terminal.table import print_table
from mockllm.core import documentation
from mockllm.core.errors import UsageError
from mockllm.core.text import did_you_mean


def _folder() -> Path:
    from mockllm.play.replay.loading import shipped_folder

    return shipped_folder("the pages", "pages", "docs")


def _names(folder: Path) -> dict[str, Path]:
    found = sorted(folder.rglob("*.md"))
    return {file.relative_to(folder).with_suffix("").as_posix(): file for file in found}


def _complete(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in _names(_folder()) if name.startswith(incomplete)]


@click.command()
@click.argument("name", required=False, metavar="[PAGE]", shell_complete=_complete)
def docs(name: str | None) -> None:
    """Print a page of the documentation, or list them all.

    The pages are Markdown and belong to this very version; they need no network.

    \b
    Examples:
      mockllm docs
      mockllm docs scenarios
      mockllm docs scenarios | grep -n '^#'
    """
    pages = _names(_folder())
    if name is None:
        rows = [(page, _title(file)) for page, file in pages.items()]
        print_table([("PAGE", "TITLE"), *rows])
        if documentation.SITE:
            echo(f"\nwith search: {documentation.SITE}/")
        return
    wanted = name.partition("#")[0].removeprefix("docs/").removesuffix(".md")
    if wanted not in pages:
        hint = did_you_mean(wanted, pages, "`mockllm docs` lists them", most=3)
        raise UsageError(f"there is no page {name!r}; {hint}")
    show = click.echo_via_pager if sys.stdout.isatty() else echo
    show(pages[wanted].read_text(encoding="utf-8"))


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return next((line[2:].strip() for line in lines if line.startswith("# ")), "")
