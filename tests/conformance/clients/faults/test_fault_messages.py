"""The fields of messages that only cases with faults have."""

import jsonschema
import pytest

from mockllm.checking.outcome import NOT_KEPT
from mockllm.checking.policy import ResiliencePolicy
from mockllm.checking.resilience.cases import fault_cases
from mockllm.conformance.clients.http_sessions import case_message
from mockllm.conformance.clients.messages import (
    Answer,
    InvalidMessageError,
    encode,
    parse,
    read_answer,
    read_hello,
)
from mockllm.wire.protocols import PROTOCOLS
from tests.conformance.schemas import runner_schema

HELLO = {"mockllm": 1, "client": {"name": "x"}}
ANSWER = {
    "id": 1,
    "text": "Once",
    "tool_calls": [],
    "errors": [{"message": "late", "type": "TimeoutError", "kind": "timeout"}, "plain"],
    "partial": True,
    "handed_on": "Once",
    "earlier": [{"text": "before", "errors": []}],
    "left": {"tasks": 0, "connections": 1},
}


def valid(kind):
    return jsonschema.Draft202012Validator({**runner_schema(), "$ref": f"#/$defs/{kind}"})


@pytest.mark.parametrize("api", PROTOCOLS)
def test_the_message_of_every_case_is_in_the_schema(api):
    for case in fault_cases(api):
        message = parse(encode({"id": 1, **case_message(case, {api: "http://x"})}))
        valid("case").validate(message)


def test_an_answer_says_what_the_client_did_with_a_fault():
    valid("answer").validate(ANSWER)
    first, last = read_answer(ANSWER).outcomes()
    assert first.text == "before"
    assert (first.partial, first.handed_on, first.open_at_end) == (None, None, None)
    assert (last.partial, last.handed_on, last.open_at_end["connections"]) == (True, "Once", 1)
    assert [(error.type, error.cause) for error in last.errors] == [
        ("TimeoutError", "timeout"),
        ("", NOT_KEPT),
    ]


def test_an_answer_that_came_too_late_is_none():
    """What a client reports because its connection was broken off says nothing about the fault."""
    (outcome,) = read_answer(ANSWER).outcomes(late=True)
    assert not outcome.answered
    assert not outcome.errors


def test_a_runner_that_died_has_not_answered():
    (outcome,) = Answer(read_answer({}).outcome, ended="it died").outcomes()
    assert not outcome.answered


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"partial": "yes"}, "partial: must be true or false"),
        ({"handed_on": 3}, "handed_on: must be a text"),
        ({"earlier": {}}, "earlier: must be a list"),
        ({"earlier": [{"text": 3}]}, r"earlier\[0\].text: must be a text"),
        (
            {"left": {"files": 1}},
            "left.files: there is no such field, only tasks, threads",
        ),
        ({"left": {"tasks": -1}}, "left.tasks: must be at least 0, not -1"),
        (
            {"errors": [{"message": "x", "kind": "odd"}]},
            r"errors\[0\].kind: must be one of overloaded, .*, null, not 'odd'",
        ),
        ({"errors": [{"message": "x", "type": 3}]}, r"errors\[0\].type: must be a text"),
    ],
)
def test_a_field_of_another_type_is_named(changed, message):
    with pytest.raises(InvalidMessageError, match=message):
        read_answer({**ANSWER, **changed})
    with pytest.raises(jsonschema.ValidationError):
        valid("answer").validate({**ANSWER, **changed})


def test_a_hello_declares_what_cases_cannot_set():
    declared = {"tries": 2, "idle_timeout": None, "longest_wait": 60, "final_errors": ["quota"]}
    hello = {**HELLO, "resilience": declared}
    valid("hello").validate(hello)
    policy = read_hello(hello).resilience
    assert (policy.tries, policy.retries, policy.longest_wait) == (2, True, 60)
    assert not policy.has_idle_timeout
    assert policy.final_errors == {"quota"}


def test_a_hello_without_declarations_takes_the_settings_of_the_cases():
    policy = read_hello(HELLO).resilience
    assert policy.has_idle_timeout
    assert policy.retries
    assert policy.tries is None
    assert not ResiliencePolicy.from_settings({"tries": None}).retries


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ([], "resilience: must be an object"),
        ({"retries": 2}, "resilience.retries: there is no such field, only tries"),
        ({"tries": 0}, "resilience.tries: must be at least 1, not 0"),
        ({"idle_timeout": "1s"}, "resilience.idle_timeout: must be a number or null"),
        ({"final_errors": "quota"}, "resilience.final_errors: must be a list"),
    ],
)
def test_a_declaration_of_another_type_is_named(declared, message):
    with pytest.raises(InvalidMessageError, match=message):
        read_hello({**HELLO, "resilience": declared})
    with pytest.raises(jsonschema.ValidationError):
        valid("hello").validate({**HELLO, "resilience": declared})
