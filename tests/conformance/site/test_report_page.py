"""docs/report.md works as written, and its pictures are there."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from mockllm.cli import main
from mockllm.conformance.reports.comparison import diff, diff_text
from mockllm.conformance.results.file import write_results
from mockllm.conformance.site.columns import MARKS
from tests.conformance.site.results import RIGHT, failed, results

PAGE = Path(__file__).parents[3] / "docs" / "report.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_every_mark_is_explained_in_the_same_words():
    """Two marks are no rows of their own: adapters are not published, tolerated is right."""
    for key, mark in MARKS.items():
        if key not in ("adapter", "tolerated"):
            assert f"| {mark.symbol} {mark.word} | {mark.meaning.split(',')[0]}" in TEXT, key


def test_the_pictures_are_there():
    """`python -m tools.report_pictures` takes them."""
    names = re.findall(r"\]\((images/[^)]+)\)", TEXT)
    assert len(names) == 4
    for name in names:
        assert (PAGE.parent / name).read_bytes().startswith(b"\x89PNG"), name


def test_the_command_for_pages_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """In a folder with a results file of that name."""
    write_results(results("mine", RIGHT), tmp_path / "mockllm-results" / "mine.json")
    monkeypatch.chdir(tmp_path)
    found = re.search(r"\$ mockllm (report mockllm-results/ .+)\n(.+)\n", TEXT)
    assert found is not None
    done = CliRunner().invoke(main, found[1].split())
    assert done.output == f"{found[2]}\n".replace("/", os.sep)


def test_the_comparison_has_the_form_that_the_page_shows():
    """The heading, the counts and the lines of a case."""
    name, cut = "chat/sample-text+sse-cut:eof", "no error is reported, although the stream is not "
    text = f'{cut}complete; got text "Hello", finish missing'
    rest = [replace(RIGHT, case=f"chat/{n}") for n in range(94)]
    fixed = [failed(f"chat/fixed {n}", "index", "data lost") for n in range(2)]
    right = [replace(RIGHT, case=one.case) for one in fixed]
    worse = failed(name, "ends", "data lost", differences=(text,), verdict="silent")
    old = results("my-client", replace(RIGHT, case=name), *fixed, *rest)
    new = results("my-client", worse, *right, *rest)
    old = replace(old, client=replace(old.client, version="1.1"))
    new = replace(new, client=replace(new.client, version="1.2"))
    found = re.search(
        r"\$ mockllm report --diff old.json new.json\n(.+?)\n\.\.\.\n", TEXT, re.DOTALL
    )
    assert found is not None
    assert diff_text(diff(old, new)).startswith(found[1])
