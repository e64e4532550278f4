"""The table of what the kit's cases play: the items of a type, what plays them, and the reasons."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from tools.coverage.__main__ import main
from tools.coverage.page import PAGE, coverage, page
from tools.coverage.reasons import FOLDER, Reason, matching, problems, read
from tools.coverage.sdk import SDKS
from tools.coverage.tree import Tree


class Kind(Enum):
    ONE = "one"
    TWO = "two"


class Leaf(BaseModel):
    value: str | None = None


class Text(BaseModel):
    type: Literal["text"]
    text: str
    leaf: Leaf | None = None


class Call(BaseModel):
    type: Literal["call"]
    wire_name: str = Field(alias="wireName")
    leaves: list[Leaf] = []


class Delta(BaseModel):
    type: Literal["delta"]
    part: Annotated[Text | Call, Field(discriminator="type")]
    kind: Kind
    reason: Literal["stop", "length"] | None = None
    model: str | Literal["small", "large"]  # noqa: PYI051  # as the SDKs have it


class Node(BaseModel):
    children: list[Node] = []
    once: str = ""


class Stop(BaseModel):
    type: Literal["stop"]


TREE = Tree(Annotated[Delta | Stop, Field(discriminator="type")])
ITEMS = [
    "delta",
    "delta/part",
    "delta/part[text]",
    "delta/part[text].text",
    "delta/part[text].leaf",
    "delta/part[call]",
    "delta/part[call].wireName",
    "delta/part[call].leaves",
    "delta/part[call].leaves[]",
    "delta/kind",
    "delta/kind=one",
    "delta/kind=two",
    "delta/reason",
    "delta/reason=stop",
    "delta/reason=length",
    "delta/model",
    "stop",
    "Leaf/value",
]


def test_items_are_events_members_fields_and_values() -> None:
    """Each is listed once, in order; a type with several uses is listed under its name, and a field
    that may be any text has no values."""
    assert TREE.items() == ITEMS


def test_a_model_without_a_union_lists_its_fields() -> None:
    """The paths of a plain model begin with its fields; a type that contains itself ends."""
    assert Tree(Node).items() == ["children", "children[]", "once", "Node/children", *NODE]


NODE = ["Node/children[]", "Node/once"]


def test_an_event_plays_what_it_has() -> None:
    """Fields, members and values that are there are played, under the names of the list."""
    part = {"type": "call", "wireName": "x", "leaves": [{"value": "a"}]}
    event = {"type": "delta", "part": part, "kind": "two", "reason": "stop", "model": "huge"}
    played = set(TREE.played(event))
    assert played == {
        "delta",
        "delta/part",
        "delta/part[call]",
        "delta/part[call].wireName",
        "delta/part[call].leaves",
        "delta/part[call].leaves[]",
        "Leaf/value",
        "delta/kind",
        "delta/kind=two",
        "delta/reason",
        "delta/reason=stop",
        "delta/model",
    }
    assert played <= set(ITEMS)


@pytest.mark.parametrize(
    ("event", "played"),
    [
        ({"type": "delta", "part": None, "kind": None}, {"delta"}),
        ({"type": "delta", "part": {"type": "new"}}, {"delta", "delta/part", "+delta/part[new]"}),
        ({"type": "delta", "kind": "six"}, {"delta", "delta/kind", "+delta/kind=six"}),
        ({"type": "delta", "more": 1}, {"delta", "+delta/more"}),
        ({"type": "delta", "part": {"type": "call", "leaves": []}}, None),
        ({"type": "other"}, {"+other"}),
        ("text", {"+str"}),
    ],
)
def test_null_plays_nothing_and_the_rest_is_unlisted(event, played) -> None:
    """A null is no play of a field, an empty list none of its elements; what the types lack is
    marked with a plus."""
    if played is None:
        played = {"delta", "delta/part", "delta/part[call]", "delta/part[call].leaves"}
    assert set(TREE.played(event)) == played


def test_a_pattern_is_literal_except_for_stars() -> None:
    """Brackets and dots of items have no special meaning in the pattern of a reason."""
    reason = Reason("a[].b*", "why")
    assert [reason.matches(item) for item in ("a[].b", "a[].b.c", "a[]xb", "x.a[].b")] == [
        True,
        True,
        False,
        False,
    ]
    assert matching("c", [reason]) is None


def test_a_missing_case_and_a_needless_reason_are_problems() -> None:
    """An item needs a case or a reason, and not both; a reason needs an item."""
    reasons = [Reason("b", "why"), Reason("c*", "why"), Reason("e", "why")]
    found = problems(["a", "b", "c", "cc", "d"], {"a": "case 1", "c": "case 2"}, reasons)
    assert found == [
        "d is played by no case and has no reason",
        "the reason for 'c*' is for c, which case 2 plays",
        "the reason for 'e' is for no item",
    ]


@pytest.mark.parametrize("text", ["- a", "a: 1", "a: ' '"])
def test_a_file_of_reasons_maps_items_to_texts(tmp_path, text) -> None:
    """Anything else is an error that names the file."""
    path = tmp_path / "reasons.yaml"
    path.write_text(text)
    with pytest.raises((TypeError, ValueError), match=r"reasons\.yaml"):
        read(path)


def test_an_api_without_reasons_has_none(tmp_path) -> None:
    """A file that is not there, or is empty, has no reasons."""
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert read(tmp_path / "empty.yaml") == read(tmp_path / "none.yaml") == []


def test_there_is_a_file_for_each_api() -> None:
    """`reasons/` has a file for each API, and no other."""
    assert {path.stem for path in FOLDER.glob("*")} == set(SDKS)


@pytest.mark.slow
@pytest.mark.parametrize("api", SDKS)
def test_every_item_is_played_or_has_a_reason(api) -> None:
    """No event, part or field of the SDK's types is left out without a written reason."""
    assert coverage(api).problems == []


@pytest.mark.slow
def test_the_page_is_up_to_date(capsys) -> None:
    """docs/maintainers/coverage.md is what the tool writes today."""
    main(["--check"])
    assert "is not up to date" not in capsys.readouterr().out
    assert PAGE.read_text(encoding="utf-8") == page([coverage(api) for api in SDKS])


class Add(BaseModel):
    op: Literal["add"]
    path: str


class Remove(BaseModel):
    op: Literal["remove"]
    path: str


class Patch(BaseModel):
    type: Literal["patch"]
    role: Literal["tool"] | None = None
    patch: list[Add | Remove]


def test_members_differ_by_the_constants_that_a_value_has():
    """A member is found by its `op`, and an event without its optional role is that event."""
    played = list(Tree(Patch | Stop).played({"type": "patch", "patch": [{"op": "remove"}]}))
    assert "patch" in played
    assert "patch/patch[][remove]" in played
