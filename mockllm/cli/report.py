"""`mockllm report`: pages from results files, and what changed between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mockllm.cli.options.parameters import EXISTING
from mockllm.cli.terminal.output import echo
from mockllm.core.errors import UsageError
from mockllm.core.text import quantity

if TYPE_CHECKING:
    from mockllm.conformance.results import Results


@click.command()
@click.argument("results", nargs=-1, required=True, type=EXISTING, metavar="RESULTS...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR|FILE.html",
    help="Write pages to DIR, or one page that stands alone, of at most 1 MB.",
)
@click.option("--diff", is_flag=True, help="Compare two results: OLD NEW.")
@click.option("--json", "as_json", is_flag=True, help="With --diff, print a JSON object.")
@click.pass_context
def report(
    context: click.Context,
    results: tuple[Path, ...],
    output: Path | None,
    diff: bool,
    as_json: bool,
) -> None:
    """Make pages from results files, or compare two of them.

    RESULTS are files that `mockllm check` wrote, or folders with such files. The pages need no
    network and no server. With --diff the exit code is 1 if anything got worse, and 2 if
    something was judged before and is not now.

    \b
    Examples:
      mockllm report mockllm-results/ -o site
      mockllm report mockllm-results/ -o conformance.html
      mockllm report --diff old.json new.json
    """
    if diff:
        if output:
            raise click.UsageError("--diff prints text or, with --json, JSON; it writes no pages")
        context.exit(_compare(results, as_json=as_json))
    if as_json:
        raise click.UsageError("--json goes with --diff")
    if output is None:
        raise click.UsageError("name the folder to write with -o DIR, or a page with -o FILE.html")
    _write(list(_read(results)), output)


def _write(results: list[Results], output: Path) -> None:
    from mockllm.conformance.results.file import write_report
    from mockllm.conformance.site import build_site, overview_page

    if output.suffix == ".html":
        page = output
        write_report(page, overview_page(results))
    else:
        page = output / "index.html"
        build_site(results, output)
    echo(f"{page}: {quantity(len(results), 'client')}")


def _read(paths: tuple[Path, ...]) -> Iterator[Results]:
    """The results of files, and of the JSON files in folders, in the order of their names."""
    from mockllm.conformance.results.file import read_results

    for path in paths:
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not files:
            raise UsageError(f"{path} holds no results files, which end in .json")
        yield from map(read_results, files)


def _compare(paths: tuple[Path, ...], *, as_json: bool) -> int:
    from mockllm.conformance.reports.comparison import diff, diff_json, diff_text
    from mockllm.conformance.results.file import read_results

    if len(paths) != 2 or any(path.is_dir() for path in paths):
        raise click.UsageError("--diff takes two results files: OLD NEW")
    changes = diff(*map(read_results, paths))
    echo(json.dumps(diff_json(changes), indent=2) if as_json else diff_text(changes))
    if changes.of("worse"):
        return 1
    return 2 if changes.unknown else 0
