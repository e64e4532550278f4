"""The behaviour of mockllm equals the golden record."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus import needs_corpus
from tests.golden.record import GROUPS, OF_CORPUS, differences, report, visible
from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]


OTHERS = [group for group in GROUPS if group not in ("wire", "kit", *OF_CORPUS)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "groups", [["wire"], ["kit"], OTHERS, pytest.param(OF_CORPUS, marks=needs_corpus)], ids=" ".join
)
def test_nothing_has_changed(groups: list[str]) -> None:
    """Every text of the groups is the committed one. They are made in a process of their own, so
    that no state and no thread that other tests left has a part in them."""
    only = [argument for group in groups for argument in ("--only", group)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden.record", "--check", *only],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=10 * GIVE_UP,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[:8000]}\n{done.stderr[-4000:]}"


def test_a_difference_is_shown_once_and_as_text() -> None:
    """Below the keys that have it in common; JSON by its fields, and equal texts not at all."""
    before, after = '200\n{"id":1,"text":"Hello","n":1}', '200\n{"id":1,"text":"Hallo","n":1}'
    pairs = [("wire/a", before, after), ("wire/b", before, after), ("wire/c", before, before)]
    assert report(differences([*pairs, ("wire/d", None, "new")])).splitlines() == [
        "== wire/a",
        "== wire/b",
        "@@ -2,3 +2,3 @@",
        ' {"id":1,',
        '-"text":"Hello",',
        '+"text":"Hallo",',
        ' "n":1}',
        "== wire/d",
        "@@ -1 +1 @@",
        "-(no such key)",
        "+new",
        "3 keys differ",
    ]


def test_a_character_that_is_not_visible_is_recorded_as_its_number() -> None:
    """So that a line end or half of a character is seen, and no editor changes it."""
    assert visible("a\r\nü▸\u202e".encode() + b"\xff") == "a▸d;\nü▸25b8;▸202e;▸dcff;"
