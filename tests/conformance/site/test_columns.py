"""Ranking and cells: numbers count groups and quirks, and what was not judged is no pass."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mockllm.checking.rules import COSTS
from mockllm.conformance.results import CaseResult
from mockllm.conformance.site.columns import cell_of, groups_of, quirk_rows
from mockllm.conformance.site.ranking import sections_of
from mockllm.conformance.site.rendering import addresses, slug
from tests.cases import for_all
from tests.conformance.site.results import RIGHT, WRONG, failed, results

UNJUDGED = CaseResult("chat/a", "usage", "not judged", reason="no place for usage")


def test_a_wrong_call_weighs_more_than_any_number_of_others():
    """Clients are ordered by cost, then by the number of groups."""
    many = [failed(f"chat/{n}", f"group {n}", "data lost") for n in range(5)]
    columns, _ = sections_of(
        [
            results("wrong call", WRONG, RIGHT),
            results("much lost", *many),
            results("loud", failed("chat/x", "index", "loud failure")),
            results("right", RIGHT),
            results("nothing", UNJUDGED),
        ]
    )
    names = [(column.place, column.results.client.name) for column in columns]
    assert names == [(1, "right"), (2, "loud"), (3, "much lost"), (4, "wrong call"), (0, "nothing")]
    assert columns[3].counts == (1, *(0,) * (len(COSTS) - 1))
    assert columns[3].right == 1
    assert columns[4].unjudged == 1


def test_each_api_has_its_own_places_and_the_same_mistakes_are_the_same_place():
    """Clients of another API are no rivals; a place has no order by what was not judged."""
    two = results("two", WRONG, RIGHT, replace(RIGHT, case="chat/b", group="usage"))
    columns, _ = sections_of(
        [
            replace(results("other", RIGHT), api="gemini"),
            results("one", WRONG, RIGHT),
            two,
            results("worse", WRONG, failed("chat/x", "usage", "data lost")),
        ]
    )
    names = [(column.place, column.results.client.name) for column in columns]
    assert names == [(1, "one"), (1, "two"), (3, "worse"), (1, "other")]


@for_all(("unjudged", "place"), [(1, 1), (2, 0)])
def test_a_client_of_which_little_was_judged_has_no_place(unjudged: int, place: int):
    """At least 80 % of the cases have to be judged; what does not apply is no case."""
    right = [replace(RIGHT, case=f"chat/{n}") for n in range(4)]
    other = [replace(UNJUDGED, case=f"chat/u{n}") for n in range(unjudged)]
    apart = [replace(UNJUDGED, case=f"chat/n{n}", verdict="not applicable") for n in range(9)]
    (column,) = sections_of([results("one", *right, *other, *apart)])[0]
    assert column.place == place


def test_what_does_not_count_is_shown():
    """A refused invalid stream is no mistake; without a source, a cell says nothing."""
    loud = replace(failed("chat/x", "index", "loud failure"), verdict="non-strict")
    unsourced = replace(WRONG, verdict="informational", group="usage")
    (column,) = sections_of([results("one", loud, unsourced, RIGHT)])[0]
    marks = {name: cell.mark and cell.mark.key for name, cell in column.cells.items()}
    assert marks == {"index": "non-strict", "usage": "informational", "plain": "right"}
    assert (column.place, column.counts, column.right, column.unjudged) == (
        1,
        (0,) * len(COSTS),
        2,
        1,
    )
    assert cell_of([unsourced, RIGHT]).mark == cell_of([RIGHT]).mark


def test_variants_of_a_quirk_count_once():
    """Four forms of one quirk are one quirk in a cell and in the list."""
    variants = [replace(WRONG, case=f"chat/{n}", quirk=f"chat-index-all-zero:{n}") for n in "abcd"]
    cell = cell_of([*variants, RIGHT])
    assert cell.count == 1
    assert cell.text == "wrong call: 1 of 2 wrong (cases: 4 wrong call, 1 right)"
    rows = quirk_rows(sections_of([results("one", *variants), results("two", RIGHT)])[0])
    assert [(row.name, len(row.broken), len(row.judged)) for row in rows] == [
        ("chat-index-all-zero", 1, 1)
    ]


def test_quirks_that_break_the_most_clients_come_first():
    """A share is that of the clients that were judged; those that were not say nothing."""
    more, less = "index-a", "ids-b"
    cases = {
        "one": [
            failed("chat/a+index-a", "index", "data lost", quirk=more),
            failed("chat/a+ids-b", "ids", "data lost", quirk=less),
        ],
        "two": [
            failed("chat/a+index-a", "index", "data lost", quirk=more),
            replace(RIGHT, case="chat/a+ids-b", group="ids", quirk=less),
        ],
        "three": [
            replace(RIGHT, case="chat/a+index-a", group="index", quirk=more),
            replace(UNJUDGED, case="chat/a+ids-b", group="ids", quirk=less),
        ],
    }
    columns, _ = sections_of([results(name, *found) for name, found in cases.items()])
    rows = [(row.name, len(row.broken), round(row.share, 2)) for row in quirk_rows(columns)]
    assert rows == [(more, 2, 0.67), (less, 1, 0.5)]


def test_a_cell_without_a_judged_case_is_not_right():
    """Nothing was compared, and the cell has to show it."""
    cell = cell_of([UNJUDGED])
    assert cell.mark is not None
    assert cell.mark.key == "not-judged"
    mixed = cell_of([UNJUDGED, RIGHT])
    assert mixed.mark is not None
    assert mixed.mark.key == "right"
    assert "1 not judged" in mixed.text


def test_an_excused_mistake_is_neither_right_nor_counted():
    """The plain stream shows the mistake already."""
    excused = replace(WRONG, baseline="chat/sample-two-calls")
    (column,) = sections_of([results("one", excused)])[0]
    assert not any(column.counts)
    mark = column.cells["index"].mark
    assert mark is not None
    assert mark.key == "as-plain"


def test_groups_are_in_the_order_of_reports_and_unknown_ones_last():
    """User's own groups are shown, too."""
    cases = [failed(f"chat/{name}", name, "data lost") for name in ("mine", "usage", "index")]
    assert groups_of(sections_of([results("one", *cases, RIGHT)])[0]) == [
        "plain",
        "index",
        "usage",
        "mine",
    ]


def test_two_versions_of_a_client_have_pages_of_their_own():
    """Addresses never collide, whatever the names."""
    same = [results("a b", RIGHT), results("a-b", RIGHT), results("a b", RIGHT, date="2026-08-01")]
    keys = [one.key for one in sections_of([*same, same[0]])[0]]
    assert len(set(keys)) == 4


@given(st.lists(st.text(max_size=200)))
def test_addresses_are_unique_and_safe(names: list[str]):
    """They are file names on every system."""
    found = addresses(names)
    assert len(set(found.values())) == len(set(names))
    assert all(set(one) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for one in found.values())
    assert all(0 < len(slug(name)) < 120 for name in names)
