"""`mockllm docs`: the pages of the documentation, from the package itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from mockllm.cli.terminal.output import echo
from mockllm.cli.terminal.table import print_table
from mockllm.core import documentation
from mockllm.core.text import did_you_mean, quantity

_LATER = re.compile(
    "findings|freshness|gateways$|quirks$|decisions|architecture|maintainers|.*clients$|resilience-"
)
"""Pages about what was measured, or how mockllm is made; a question is rarely about them."""
_MOST = 20
"""Sections that a search shows."""


class _Section(NamedTuple):
    """A heading and the text below it; the title of a page is the heading of its first section."""

    page: str
    heading: str
    text: str


def _folder() -> Path:
    from mockllm.play.replay.loading import shipped_folder

    return shipped_folder("the pages", "pages", "docs")


def _names(folder: Path) -> dict[str, Path]:
    found = sorted(folder.rglob("*.md"))
    return {file.relative_to(folder).with_suffix("").as_posix(): file for file in found}


def _complete(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in _names(_folder()) if name.startswith(incomplete)]


@click.command()
@click.argument("name", nargs=-1, metavar="[PAGE | WORD...]", shell_complete=_complete)
def docs(name: tuple[str, ...]) -> None:
    """Print a page of the documentation, list them all, or search them.

    The pages are Markdown and belong to this very version; they need no network. What is no name of
    a page is searched: the sections with all of the words are listed, the best first.

    \b
    Examples:
      mockllm docs
      mockllm docs scenarios
      mockllm docs retry
      mockllm docs tool calls
    """
    pages = _names(_folder())
    if not name:
        rows = [(page, _title(file)) for page, file in pages.items()]
        print_table([("PAGE", "TITLE"), *rows])
        if documentation.SITE:
            echo(f"\nwith search: {documentation.SITE}/")
        return
    wanted = " ".join(name)
    page = wanted.partition("#")[0].removeprefix("docs/").removesuffix(".md")
    if page in pages:
        show = click.echo_via_pager if sys.stdout.isatty() else echo
        show(pages[page].read_text(encoding="utf-8"))
    else:
        _search(pages, wanted)


def _search(pages: dict[str, Path], wanted: str) -> None:
    """Lists the sections with all words, the best first; without any, exits with 1."""
    sections = [section for page, file in pages.items() for section in _sections(page, file)]
    words = [re.compile(rf"(?<!\w){re.escape(word)}", re.IGNORECASE) for word in wanted.split()]
    scores = [(_score(section, words), section) for section in sections]
    hits = sorted((hit for hit in scores if hit[0]), key=lambda hit: -hit[0])
    if not hits:
        headings = " ".join(section.heading for section in sections).lower()
        known = {*pages, *re.findall(r"[\w-]+", headings)}
        name = wanted.lower().removesuffix(".md")
        hint = did_you_mean(name, known, "`mockllm docs` lists them", most=3)
        echo(f"mockllm: no page is named {wanted!r} or has it; {hint}", err=True)
        raise SystemExit(1)
    print_table([("PAGE", "SECTION"), *((hit.page, hit.heading) for _, hit in hits[:_MOST])])
    left_out = len(hits) - _MOST
    more = f"{quantity(left_out, 'further section')} left out: add a word. " if left_out > 0 else ""
    echo(f"\n{more}`mockllm docs {hits[0][1].page}` prints the page of the first.")


def _score(section: _Section, words: list[re.Pattern[str]]) -> float:
    """The rank of a section, 0 if a word is missing: names and headings first, then density; pages
    about measurements last."""
    total, hundreds = 0.0, 1 + len(section.text.split()) / 100
    for word in words:
        count = len(word.findall(section.text))
        named = bool(word.search(section.heading)) + bool(word.match(section.page))
        if not count and not named:
            return 0
        total += 10 * named + min(count / hundreds, 9)
    return total / 4 if _LATER.match(section.page) else total


def _sections(page: str, file: Path) -> Iterator[_Section]:
    """The sections of a page; a `#` in a block of code is no heading."""
    heading, lines, is_code = "", list[str](), False
    for line in file.read_text(encoding="utf-8").splitlines():
        is_code ^= line.lstrip().startswith("```")
        if not is_code and re.match("#+ ", line):
            if heading:
                yield _Section(page, heading, "\n".join(lines))
            heading, lines = line.lstrip("#").strip(), []
        else:
            lines.append(line)
    if heading:
        yield _Section(page, heading, "\n".join(lines))


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return next((line[2:].strip() for line in lines if line.startswith("# ")), "")
