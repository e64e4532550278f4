"""OpenAI Responses: the code of a code interpreter, in fragments of JSON and in deltas."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.wire.protocols.openai_responses.item_fields import code_deltas, code_of, code_text
from tests import strategies
from tests.wire.protocols.projections.openai_responses import canonical


@given(strategies.texts, st.data())
def test_code_survives_any_cut_of_its_json(code: str, data: st.DataObject) -> None:
    """However the JSON text is cut, inside escapes too, the deltas join to the code, and what is
    read from them is the same code."""
    text = data.draw(st.sampled_from([code_text(code), json.dumps({"code": code})]))
    fragments = data.draw(strategies.cut(text, at_most=8))
    assert code_of(fragments) == code
    assert "".join(canonical(fragments)) == code_text(code)
    assert canonical(canonical(fragments)) == canonical(fragments)


def test_code_is_sent_while_it_arrives() -> None:
    """Each fragment is sent at once, but for an escape that is cut."""
    assert code_deltas(('{"code":"a', "b\\", 'nc"', "}")) == (("a",), ("b",), ("\nc",), ())


@pytest.mark.parametrize("text", ['{"code":"a\\q"}', '{"code":"a\\ud83dxxxxxxxxxx"}'])
def test_code_ends_where_it_is_no_json(text: str) -> None:
    """Malformed JSON never makes the encoder fail."""
    assert code_of((text,)) == "a"


@pytest.mark.parametrize(
    ("text", "code"), [('{"a":1}', '{"a":1}'), ("print()", "print()"), ('{ "code":"a"}', "a")]
)
def test_input_of_another_form_is_the_code(text: str, code: str) -> None:
    """Other APIs have other fields: their whole input is shown as code, and nothing is lost."""
    assert code_of((text,)) == code
