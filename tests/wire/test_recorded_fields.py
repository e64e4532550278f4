"""The law of recorded fields: a generated answer has no field in a state that no recording has."""

from __future__ import annotations

import pytest

from mockllm.conformance.drift.shapes import JsonPlace, Shape
from mockllm.wire.protocols import PROTOCOLS
from tests.corpus import CORPUS, needs_corpus
from tests.docs.freshness_page import known_shapes, recordings
from tests.wire.recorded_fields import (
    NOTHING,
    TABLE,
    Exceptions,
    Recorded,
    by_form,
    read,
    unrecorded,
    write,
)


def test_no_generated_answer_has_a_field_in_an_unrecorded_state() -> None:
    """Of all answers to the kit's scenarios."""
    exceptions, table = Exceptions(), read()
    found = [
        one
        for form, shape in known_shapes().items()
        if form[0] not in exceptions.without_recordings()
        for one in exceptions.rest(unrecorded(form, shape, table.get(form, NOTHING)))
    ]
    assert list(map(str, found)) == []
    assert exceptions.without_recordings() | {api for api, _ in table} == set(PROTOCOLS)


@needs_corpus
def test_the_table_is_that_of_the_corpus() -> None:
    """`python -m tests.docs.freshness_page` writes it."""
    found = recordings([CORPUS])
    assert TABLE.read_text() == write({form: own.shape for form, own in found.items()})


@needs_corpus
def test_no_answer_made_of_a_recorded_turn_has_a_field_in_an_unrecorded_state() -> None:
    """Of the recorded turns for the recorded requests. With these, each exception is needed."""
    exceptions, table = Exceptions(), read()
    shapes = [(form, own.encoded) for form, own in recordings([CORPUS]).items()]
    for form, shape in (*shapes, *known_shapes().items()):
        if form[0] not in exceptions.without_recordings():
            found = exceptions.rest(unrecorded(form, shape, table.get(form, NOTHING)))
            assert list(map(str, found)) == []
    assert exceptions.unused() == []


def shape(*values: object, event: str = "") -> Shape:
    made = Shape()
    for value in values:
        made.add(value, event)
    return made


RECORDED = NOTHING.with_shape(shape({"a": {"b": "x"}, "parts": [{"type": "text", "text": ""}]}))


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ({"a": {"b": "y"}}, []),
        ({"a": {"b": None}}, ["body a.b null"]),
        ({"a": None}, ["body a null"]),
        ({"a": {"c": {"d": 1}}}, ["body a.c object"]),
        ({"parts": [{"type": "image", "url": "u"}]}, ["body parts[image] object"]),
        ({"parts": []}, []),
    ],
)
def test_unrecorded_states(sent: object, found: list[str]) -> None:
    """New fields, types and kinds of objects, each the outermost one."""
    assert list(map(str, unrecorded(("chat", False), shape(sent), RECORDED))) == found


def test_an_unrecorded_event_is_one_state() -> None:
    """Its fields are not counted beside it."""
    recorded = NOTHING.with_shape(shape({"delta": "x"}, event="known"))
    sent = shape({"delta": "x"}, event="known")
    sent.merge(shape({"a": 1, "b": 2}, event="new"))
    found = unrecorded(("responses", True), sent, recorded)
    assert list(map(str, found)) == ["stream new:  object"]


def test_whole_answers_in_events_are_bodies() -> None:
    """Their fields are compared with those of bodies, whichever event has them."""
    event = {"type": "response.created", "response": {"id": "r", "usage": None}}
    forms = by_form("responses", streamed=True, shape=shape(event, event="response.created"))
    assert set(forms["responses", True].fields) == {
        JsonPlace("response.created", "type"),
        JsonPlace("response.created", "response"),
    }
    body = forms["responses", False]
    assert set(body.fields) == {JsonPlace("", "id"), JsonPlace("", "usage")}
    assert body.objects == {JsonPlace("", ""): 1}


def test_the_table_is_read_as_written(tmp_path, monkeypatch) -> None:
    """Places with their events and types."""
    monkeypatch.setattr("tests.wire.recorded_fields.TABLE", tmp_path / "table.txt")
    made = shape({"a": {"b": None}}, {"a": {"b": "x"}}, event="e")
    (tmp_path / "table.txt").write_text(write({("chat", True): made}))
    types = {
        JsonPlace("e", "a"): frozenset({"object"}),
        JsonPlace("e", "a.b"): frozenset({"null", "string"}),
    }
    objects = frozenset({JsonPlace("e", ""), JsonPlace("e", "a")})
    assert read() == {("chat", True): Recorded(types, objects)}
