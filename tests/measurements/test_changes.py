"""What was measured again is compared with what is published."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from measurements.changes import changes
from mockllm.conformance.results.file import read_results, write_results
from tests.conformance.site.results import RIGHT, WRONG, results

PUBLISHED = results("one", RIGHT, WRONG)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one published column."""
    write_results(PUBLISHED, tmp_path / "measurements/results/one.json")
    for words in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-m", "m"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_a_column_that_differs_in_its_date_alone_is_put_back(checkout: Path) -> None:
    path = checkout / "measurements/results/one.json"
    write_results(replace(PUBLISHED, date="2027-01-01", commit="abc"), path)
    assert changes(checkout) == []
    assert read_results(path) == PUBLISHED


def test_another_verdict_and_another_version_are_changes(checkout: Path) -> None:
    path = checkout / "measurements/results/one.json"
    right = replace(WRONG, verdict="right", cost=None, differences=())
    write_results(results("one", RIGHT, right), path)
    (text,) = changes(checkout)
    assert text.startswith("### measurements/results/one.json")
    assert "0 worse, 1 better" in text
    newer = replace(PUBLISHED, client=replace(PUBLISHED.client, version="99"))
    write_results(newer, path)
    (text,) = changes(checkout)
    assert "-> 99" in text
    path.unlink()
    assert changes(checkout) == ["### measurements/results/one.json\n\nis gone"]
