"""`--self-test` names what is wrong with a runner."""

import sys
from pathlib import Path

import pytest

from mockllm.conformance.attachments.self_test import self_test
from tests.cases import for_all
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

RUNNER = [sys.executable, str(Path(__file__).with_name("runner.py"))]


def problems(*faults, limit=GIVE_UP):
    found = self_test([*RUNNER, *faults], "chat", limit=limit)
    assert all(str(one) and one.advice for one in found)
    return [one.problem for one in found]


@pytest.mark.parametrize("level", ["bytes", "payloads"])
def test_a_good_runner_has_no_problem(level):
    assert self_test(RUNNER, "chat", level, limit=GIVE_UP) == []


@for_all(
    ("fault", "problem"),
    [
        ("no-hello", "there is no hello: the program has ended with exit code 0"),
        ("version", "the hello is not valid: mockllm: this mockllm speaks version 1"),
        ("no-name", "the hello is not valid: client.name: is missing"),
        ("shout", "a line is no JSON"),
        ("endless", "a line is no JSON"),
        ("list-id", "the id [7] was not sent"),
        ("text-id", "the id '7' was not sent"),
        ("other-id", "the id 1007 was not sent"),
        ("twice", "the id 7 is answered twice"),
        ("wrong-type", "an answer is not valid: tool_calls: must be a list"),
        ("nothing", "an answer has no field of an outcome"),
        ("exit-code", "the runner ends with exit code 4"),
    ],
)
def test_each_fault_is_named(fault, problem):
    assert any(one.startswith(problem) for one in problems(fault))


def test_a_problem_of_every_answer_is_shown_once():
    found = problems("shout", "wrong-type")
    assert len(found) == 2


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("silent", "there is no answer to the cases with the ids 7, 3, 4000000011, 5"),
        ("stays", "the runner goes on 2 s after the end of its standard input"),
    ],
)
def test_what_shows_after_the_limit(fault, problem):
    assert any(one.startswith(problem) for one in problems(fault, limit=2.0))


def test_no_such_program():
    assert self_test(["/nowhere"], "chat")[0].problem.startswith("the program cannot be started")
