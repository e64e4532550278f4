"""The published results and pages: true, dated, whole, and made from each other."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from measurements import fault_page, gateway_page
from measurements.entries import RESULTS, ROOT, Entry, entries
from measurements.page import OVERVIEW, PAGE, page, published
from mockllm.conformance.gateways.presets import preset_pairs, presets
from mockllm.conformance.results import Results
from mockllm.conformance.site import overview_page
from mockllm.play.quirks import QUIRKS, find
from tests.cases import for_all

FILES = sorted(RESULTS.glob("*.json"))
SLUGS = [path.stem for path in FILES]
_MOST = 300_000
"""Bytes of a results file: they are committed."""


@cache
def measured() -> dict[str, Results]:
    """What was published of each client."""
    return dict(zip(SLUGS, published(), strict=True))


def test_each_client_has_its_file() -> None:
    """Each client is measured, and each file is of a client."""
    assert {path.stem for path in FILES} == {entry.slug for entry in entries()}


@for_all("slug", SLUGS)
def test_a_file_says_what_was_measured_and_when(slug: str) -> None:
    """Date, version of the client, language, entry point, adapter and how it was measured."""
    results = measured()[slug]
    client = results.client
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", results.date)
    assert re.match(r"v?\d+\.\d+", client.version)
    assert client.language
    assert client.entry_point
    assert client.adapter
    assert (results.level, results.stopped) == ("http", "")
    assert results.mockllm
    assert {"cases", "streams"} <= set(results.arguments)


@pytest.mark.slow
@for_all("slug", SLUGS)
def test_no_mistake_is_one_of_the_adapter(slug: str) -> None:
    """An exception that the adapter raised says nothing about the client."""
    adapter = [case.case for case in measured()[slug].cases if case.verdict == "adapter"]
    assert adapter == []


@pytest.mark.slow
@for_all("slug", SLUGS)
def test_each_form_of_each_quirk_was_played(slug: str) -> None:
    """Every quirk of the API is there, or is left out with a reason."""
    results = measured()[slug]
    names = {name for name, quirk in QUIRKS.items() if quirk.applies_to(results.api)}
    played = {case.quirk.partition(":")[0] for case in results.cases} - {""}
    unplayable = {n for n in names if not any(v.changes(results.api) for v in QUIRKS[n].variants)}
    assert played == names - unplayable
    left_out = [case for case in results.cases if case.verdict == "not judged"]
    assert [one.case for one in left_out if not one.reason] == []
    for case in results.cases:
        assert not case.quirk or find(case.quirk)


@for_all("entry", [entry for entry in entries() if entry.by_adapter])
def test_a_right_cell_says_what_the_adapter_does(entry: Entry) -> None:
    """Each pattern is of a case that is right, which has the sentence."""
    cases = measured()[entry.slug].cases
    for pattern, sentence in entry.by_adapter.items():
        right = [
            case for case in cases if case.verdict == "right" and fnmatchcase(case.quirk, pattern)
        ]
        assert {case.reason for case in right} == {f"by the adapter: {sentence}"}, pattern


@for_all("slug", SLUGS)
def test_a_mistake_has_its_evidence(slug: str) -> None:
    """A mistake has its cost, what differs, what came out, and a command that shows it again."""
    for case in measured()[slug].cases:
        if case.failed:
            assert case.cost, case.case
            assert case.differences, case.case
            assert case.expected, case.case
            assert any(case.case in line for line in case.reproduce), case.case


@for_all("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_small_and_of_no_machine(path: Path) -> None:
    """A file has no path of the machine that measured, and no port."""
    text = path.read_text("utf-8")
    assert len(text) < _MOST
    assert str(ROOT) not in text
    assert str(Path.home()) + "/" not in text
    assert not re.search(r"127\.0\.0\.1:\d", text)


@pytest.mark.slow
def test_the_page_equals_the_files() -> None:
    """docs/clients.md is what `python -m measurements.page` writes."""
    assert PAGE.read_text("utf-8") == page(list(measured().values()))


def test_the_page_is_short() -> None:
    """The page is read, not searched: a line for each client, and little else."""
    text = PAGE.read_text("utf-8")
    assert len(text) < 16_000
    assert len(text.splitlines()) < len(SLUGS) + 100


def test_the_links_of_the_page_lead_somewhere() -> None:
    """Each relative link is of a file."""
    links = re.findall(r"\]\(([^)#]+)", PAGE.read_text("utf-8"))
    assert links
    assert [link for link in links if not (PAGE.parent / link).exists()] == []


@pytest.mark.slow
def test_the_overview_equals_the_files() -> None:
    """docs/conformance.html is made from the same files, and has at most 1 MB."""
    text = OVERVIEW.read_text("utf-8")
    assert text == overview_page(list(measured().values()))
    assert len(text.encode()) <= 1_000_000


@pytest.mark.slow
def test_the_table_of_rules_equals_the_files() -> None:
    """The table of docs/resilience-clients.md is what `python -m measurements.fault_page`
    writes."""
    text = fault_page.PAGE.read_text("utf-8")
    assert text == fault_page.with_table(text, fault_page.table(fault_page.measured_faults()))


@pytest.mark.slow
def test_the_tables_of_gateways_equal_the_files() -> None:
    """docs/gateways.md is what `python -m measurements.gateway_page` writes, and has every pair
    that is known, in the versions that are."""
    results = gateway_page.measured_gateways()
    text = gateway_page.PAGE.read_text("utf-8")
    assert text == fault_page.with_table(text, gateway_page.table(results))
    measured = {(one.client.name, one.api): one.client.version for one in results}
    assert measured == {
        (name, str(pair)): str(preset["version"])
        for name, preset in presets().items()
        for pair in preset_pairs(name)
    }
    assert not [one.api for one in results if one.stopped]
