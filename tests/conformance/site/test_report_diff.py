"""`mockllm report --diff`: what got worse, what got better, and what is not known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from mockllm.cli import main
from mockllm.conformance.reports.comparison import diff, diff_text
from mockllm.conformance.results import CaseResult, Results
from mockllm.conformance.results.file import write_results
from tests.conformance.site.results import RIGHT, WRONG, results

RIGHT_NOW = replace(WRONG, verdict="right", cost=None, differences=())
LOUD = replace(WRONG, verdict="rejected", cost="loud failure")
EXCUSED = replace(WRONG, baseline="chat/sample-two-calls")
UNJUDGED = replace(RIGHT_NOW, verdict="not judged", reason="no place for it")


@pytest.mark.parametrize(
    ("old", "new", "direction", "code"),
    [
        (RIGHT_NOW, WRONG, "worse", 1),
        (LOUD, WRONG, "worse", 1),
        (EXCUSED, WRONG, "worse", 1),
        (UNJUDGED, WRONG, "worse", 1),
        (WRONG, RIGHT_NOW, "better", 0),
        (WRONG, LOUD, "better", 0),
        (WRONG, UNJUDGED, "other", 2),
        (RIGHT_NOW, UNJUDGED, "other", 2),
        (RIGHT_NOW, replace(RIGHT_NOW, verdict="tolerated"), "other", 0),
    ],
)
def test_each_change_has_a_direction_and_an_exit_code(
    tmp_path: Path, old: CaseResult, new: CaseResult, direction: str, code: int
):
    """A case that is not judged any more did not get better."""
    found = diff(results("one", old), results("one", new))
    assert [change.direction for change in found.changes] == [direction]
    write_results(results("one", old), tmp_path / "old.json")
    write_results(results("one", new), tmp_path / "new.json")
    files = [str(tmp_path / "old.json"), str(tmp_path / "new.json")]
    assert CliRunner().invoke(main, ["report", "--diff", *files]).exit_code == code
    printed = CliRunner().invoke(main, ["report", "--diff", "--json", *files]).output
    values = json.loads(printed)
    assert [len(values[name]) for name in ("worse", "better", "other")] == [
        int(direction == name) for name in ("worse", "better", "other")
    ]


def test_the_text_names_cases_versions_and_what_cannot_be_compared():
    """New cases, cases that are gone, and other settings are listed, too."""
    other = replace(RIGHT, case="chat/gone")
    old = results("one", RIGHT_NOW, other, RIGHT)
    new = replace(results("one", WRONG, replace(WRONG, case="chat/new"), RIGHT), mockllm="1.0")
    text = diff_text(diff(old, new))
    assert text.splitlines()[1] == (
        "1 worse, 0 better, 0 changed otherwise, 1 as before; 1 cases are new (1 with a mistake), "
        "1 are gone"
    )
    assert "note: mockllm was 0.9 and is 1.0" in text
    assert "chat/sample-two-calls+chat-index-all-zero: right -> wrong call" in text
    assert "  chat/gone" in text
    assert "  chat/new: wrong call" in text


@pytest.mark.parametrize(
    ("cases", "last"), [(40, "chat/39"), (41, "and 1 more"), (45, "and 5 more")]
)
def test_forty_cases_of_a_kind_are_listed(cases: int, last: str):
    """The text says how many more there are."""
    gone = [replace(RIGHT, case=f"chat/{number}") for number in range(cases)]
    text = diff_text(diff(results("one", WRONG, *gone), results("one", WRONG)))
    assert text.splitlines()[-1] == f"  {last}"
    assert text.count("  chat/") == 40


def test_results_without_a_case_in_common_are_not_compared(tmp_path: Path):
    """Nothing is known then, which is not the same as no change."""
    write_results(results("one", RIGHT), tmp_path / "old.json")
    write_results(results("one", WRONG), tmp_path / "new.json")
    files = [str(tmp_path / "old.json"), str(tmp_path / "new.json")]
    assert CliRunner().invoke(main, ["report", "--diff", *files]).exit_code == 2


def test_a_stopped_run_is_no_pass(tmp_path: Path):
    """The remaining cases were not judged."""
    stopped: Results = replace(results("one", RIGHT), stopped="streams share state")
    assert diff(results("one", RIGHT), stopped).unknown
    assert "streams share state" in diff_text(diff(results("one", RIGHT), stopped))
