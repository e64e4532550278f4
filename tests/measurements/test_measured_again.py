"""A part of each client's column, measured again, is as published."""

from __future__ import annotations

import hashlib

import pytest

from measurements.entries import Entry, entries
from measurements.measure import measure, played
from mockllm.conformance.results.file import read_results
from tests.cases import for_all

pytestmark = pytest.mark.heavy

_CASES = 6
"""Of each client: what takes time is its start."""


@for_all("entry", entries(), ids=lambda entry: entry.slug)
def test_a_part_is_as_published(entry: Entry) -> None:
    """The first plain sample, and some quirks, other ones for each client, have the same verdicts
    and costs as in the file."""
    if entry.missing:
        pytest.skip(entry.missing)
    known = read_results(entry.results)
    verdicts = {case_.case: (case_.verdict, case_.cost) for case_ in known.cases}
    again = measure(entry, _chosen(entry))
    if again.client.version != known.client.version:
        pytest.skip(
            f"{known.client.version} is published, {again.client.version} is installed: "
            f"`python -m measurements.measure {entry.slug}` measures it"
        )
    assert {case_.case: (case_.verdict, case_.cost) for case_ in again.cases} == {
        case_.case: verdicts[case_.case] for case_ in again.cases
    }


def _chosen(entry: Entry) -> list:
    cases = [one for one in played(entry.api) if "huge" not in one.quirk]
    plain = next(case_ for case_ in cases if not case_.quirk)
    quirks = [case_ for case_ in cases if case_.quirk]

    def order(case) -> str:
        return hashlib.sha256(f"{entry.slug} {case.name}".encode()).hexdigest()

    return [plain, *sorted(quirks, key=order)[: _CASES - 1]]
