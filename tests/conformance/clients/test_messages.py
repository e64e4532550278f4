"""Messages of runners and back."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.checking.cases.build import case
from mockllm.checking.outcome import FIELDS, NOT_KEPT, Call, Outcome, Trouble, Usage
from mockllm.conformance.clients.messages import (
    InvalidMessageError,
    as_json,
    case_json,
    encode,
    parse,
    question,
    read_answer,
    read_hello,
    sent_id,
)
from mockllm.play.quirks.samples import CALL
from tests.cases import for_all
from tests.conformance.schemas import runner_schema


def valid(kind):
    """The validator of one kind of message."""
    return jsonschema.Draft202012Validator({**runner_schema(), "$ref": f"#/$defs/{kind}"})


ANSWER, HELLO = valid("answer"), valid("hello")

TEXTS = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(TEXTS, JSON, max_size=3)


@st.composite
def calls(draw):
    """A call with its arguments as text, or parsed."""
    name, id = draw(TEXTS), draw(st.none() | TEXTS)
    if draw(st.booleans()):
        return Call(name, draw(ARGUMENTS), id)
    text = draw(ARGUMENTS.map(json.dumps) | st.just('{"city":"Pa'))
    return Outcome.of(
        tool_calls=[{"name": name, "arguments": text, "id": id, "raw_arguments": text}]
    ).tool_calls[0]


KEPT = st.just(NOT_KEPT) | st.none() | TEXTS
COUNT = st.none() | st.integers(0, 10**9)
OUTCOMES = st.builds(
    Outcome,
    text=TEXTS,
    reasoning=TEXTS,
    refusal=TEXTS,
    tool_calls=st.lists(calls(), max_size=3).map(tuple),
    finish=st.none() | TEXTS,
    usage=st.none() | st.builds(Usage, COUNT, COUNT, COUNT, COUNT),
    errors=st.lists(st.builds(Trouble, TEXTS, raised=TEXTS), max_size=2).map(tuple),
    role=KEPT,
    model=KEPT,
    response_id=KEPT,
    opaque=st.just(NOT_KEPT) | st.lists(TEXTS, max_size=2).map(tuple),
)


@given(OUTCOMES)
def test_an_outcome_and_its_answer_are_inverse(outcome):
    """Through the line of a runner, and by the schema."""
    value = parse(encode({"id": 1, **as_json(outcome)}))
    ANSWER.validate(value)
    answer = read_answer(value)
    assert answer.outcome == outcome
    assert answer.absent == frozenset()


@given(OUTCOMES, st.frozensets(st.sampled_from(FIELDS)))
def test_absent_fields_stay_absent(outcome, absent):
    answer = read_answer(as_json(outcome, absent))
    assert answer.absent == absent
    assert as_json(answer.outcome, answer.absent) == as_json(outcome, absent)


def test_a_crash_is_the_first_error():
    answer = read_answer({"crash": {"message": "KeyError: 'x'", "raised": "a.py:3 in feed"}})
    assert answer.outcome.errors == (Trouble("KeyError: 'x'", crash=True, raised="a.py:3 in feed"),)
    assert as_json(answer.outcome)["crash"]["raised"] == "a.py:3 in feed"


@pytest.mark.parametrize("level", ["bytes", "payloads"])
def test_what_mockllm_sends_is_in_the_schema(level):
    valid("question").validate(question("chat", level))
    message = {"id": 1, **case_json(case(CALL, "chat"), level)}
    valid("case").validate(message)


@for_all(
    ("value", "field"),
    [
        ({"text": 3}, "text: must be a text or null, not 3"),
        ({"tool_calls": {}}, "tool_calls: must be a list"),
        ({"tool_calls": [{"nme": "x"}]}, r"tool_calls\[0\].nme: there is no such field"),
        ({"tool_calls": [{"id": 3}]}, r"tool_calls\[0\].id: must be a text"),
        ({"usage": {"input": "3"}}, "usage.input: must be a whole number"),
        ({"usage": [1, 2]}, "usage: must be an object or null, not"),
        ({"errors": "x"}, "errors: must be a list"),
        ({"errors": [3]}, r"errors\[0\]: must be a text or an object, not 3"),
        ({"opaque": "x"}, "opaque: must be a list or null"),
        ({"finish": 3}, "finish: must be a text or null"),
        ({"txt": ""}, "txt: there is no such field"),
    ],
)
def test_an_answer_of_another_form_names_the_field(value, field):
    with pytest.raises(InvalidMessageError, match=f"^{field}"):
        read_answer(value)
    with pytest.raises(jsonschema.ValidationError):
        ANSWER.validate({"id": 1, **value})


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"mockllm": 2, "client": {"name": "x"}},
        {"mockllm": 1},
        {"mockllm": 1, "client": {"name": 3}},
        {"mockllm": 1, "client": {"name": "x", "version": 1}},
        {"mockllm": 1, "client": {"name": "x"}, "unsupported": ["colour"]},
        {"mockllm": 1, "client": {"name": "x"}, "intermediate": "no"},
    ],
)
def test_a_hello_of_another_form(value):
    with pytest.raises(InvalidMessageError):
        read_hello(value)
    with pytest.raises(jsonschema.ValidationError):
        HELLO.validate(value)


@pytest.mark.parametrize(
    ("id", "found"), [(3, 3), (True, 0), ("3", 0), ([], 0), ({}, 0), (3.5, 0), (None, 0)]
)
def test_only_a_whole_number_is_an_id(id, found):
    """A list cannot be looked up, and True equals 1 in Python."""
    assert sent_id({"id": id}) == found
    assert sent_id({}) == 0
