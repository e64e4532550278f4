"""docs/maintainers/mutants.md is about the mutants that there are. Writing it takes minutes, so
only the head and the table are checked, without running a mutant."""

from __future__ import annotations

import re

from tests.checking.mutants import FAMILIES, MUTANTS
from tools.kit_mutants import PAGE

AGAIN = f"python -m tools.kit_mutants --markdown docs/maintainers/{PAGE.name}"


def _rows() -> list[list[str]]:
    """The cells of the table, without the line below its head."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _count(cell: str) -> int:
    """The mutants in a cell: caught, tolerated and escaped."""
    return sum(map(int, cell.split(" / "))) if cell else 0


def test_the_table_has_every_family_and_api() -> None:
    """There is a row for each family of mistakes, and a column for each API."""
    head, *rows = _rows()
    assert set(head[1:-1]) == {mutant.api for mutant in MUTANTS}
    assert [row[0] for row in rows] == [*FAMILIES, "all"]


def test_the_numbers_are_those_of_the_mutants() -> None:
    """Every cell counts the mutants of its family and API as they are now."""
    head, *rows = _rows()
    for family, *cells in rows:
        own = [mutant for mutant in MUTANTS if family in (mutant.family, "all")]
        for api, cell in zip(head[1:], cells, strict=True):
            known = [one for one in own if api in (one.api, "all")]
            assert _count(cell) == len(known), (family, api, AGAIN)


def test_the_first_sentence_has_the_number_of_mutants() -> None:
    """The conclusion at the top counts all mutants."""
    found = re.search(r"(\d+) mutants: ", PAGE.read_text())
    assert found is not None
    assert int(found[1]) == len(MUTANTS), AGAIN
