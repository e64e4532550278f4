"""The report: static pages made from results files alone. They need no network and no server.

`build_site` writes a folder of pages, `overview_page` gives one page that stands alone. Templates
and the script are written by hand; Jinja2 escapes every value.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockllm.conformance.results import Results
from mockllm.conformance.site.columns import first_page, overview_details, rules_section
from mockllm.conformance.site.pages import Pages
from mockllm.conformance.site.rendering import FOLDER, environment
from mockllm.core.errors import UsageError

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["build_site", "inline_files", "overview_page"]

_SHARED_STYLE = FOLDER.parents[1] / "serve" / "ui" / "site" / "shared.css"
"""Colours, and how streams look, here and in the live page."""

_MOST = 1_000_000
"""Bytes of a page that stands alone."""

_ROWS = (10_000, 100, 40, 15, 5, 0)
"""How many mistakes of each client such a page lists, until it is small enough."""


def build_site(results: Sequence[Results], folder: Path) -> None:
    """Writes the pages of results into a folder: `index.html` is the first one.

    Pages of an earlier report in the same folder that are not part of this one are removed; other
    files stay.
    """
    pages = _pages(results)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("clients", "cases", "cells", "quirks"):
            if (folder / name).is_dir() and (folder / "style.css").is_file():
                shutil.rmtree(folder / name)
        for file in (_SHARED_STYLE, FOLDER / "style.css", FOLDER / "script.js"):
            shutil.copyfile(file, folder / file.name)
        for name, text in _texts(pages):
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        place = error.filename or folder
        raise UsageError(f"{place} cannot be written: {error.strerror or error}") from None


def overview_page(results: Sequence[Results]) -> str:
    """One page that stands alone, of at most 1 MB: matrix, ranking, quirks and mistakes."""
    pages = _pages(results)
    template = environment().get_template("overview.html")
    values = first_page(pages.columns, alone=True) | rules_section(pages.rule_columns)
    inline = inline_files()
    for most in _ROWS:
        details = overview_details((*pages.columns, *pages.rule_columns), most)
        text = template.render(values, **pages.common, root="", inline=inline, details=details)
        if len(text.encode("utf-8", "backslashreplace")) <= _MOST:
            return text
    raise UsageError(
        f"{len(results)} results are too many for one page of 1 MB; build a folder of pages with "
        "`mockllm report RESULTS... -o DIR`"
    )


def inline_files() -> dict[str, Markup]:
    """The styles and the script of a page that stands alone."""
    return {
        "shared": _inline(_SHARED_STYLE),
        "style": _inline(FOLDER / "style.css"),
        "script": _inline(FOLDER / "script.js"),
    }


def _pages(results: Sequence[Results]) -> Pages:
    if not results:
        raise UsageError("there are no results; `mockllm check --output FILE` makes them")
    environment()
    return Pages(results)


def _inline(file: Path) -> Markup:
    from markupsafe import Markup

    return Markup(file.read_text(encoding="utf-8"))  # noqa: S704 - our own file


def _texts(pages: Pages) -> Iterator[tuple[str, str]]:
    """The path and the text of each page."""

    def render(template: str, root: str, values: dict[str, Any]) -> str:
        page = environment().get_template(template)
        return page.render(values, **pages.common, root=root, inline=None)

    values = first_page(pages.columns, alone=False) | rules_section(pages.rule_columns)
    if pages.is_alone:
        values["quirk_href"] = None
    yield "index.html", render("index.html", "", values)
    shared = (
        ()
        if pages.is_alone
        else (
            ("quirk.html", "../", pages.quirks()),
            ("case.html", "../", pages.cases()),
        )
    )
    for template, root, listed in (
        ("client.html", "../", pages.clients()),
        *shared,
        ("cell.html", "../../", pages.cells()),
    ):
        for name, values in listed:
            yield name, render(template, root, values)
