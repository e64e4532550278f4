"""`--self-test` names what is wrong with a runner."""

import sys
from pathlib import Path

import pytest

from mockllm.conformance.clients.self_test import self_test
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
        ("leak", "a case gets another answer after other cases than alone"),
        ("any-api", "an unknown API is not refused: the runner accepts every API"),
        ("any-level", "an unknown level is not refused: the runner accepts every level"),
        ("refuses-with-0", "an unknown API is refused with exit code 0"),
        ("sums", "a case gets another answer after other cases than alone"),
        ("unsupported", "the hello says that the client has no place for usage, and an answer has"),
        ("latin-1", "a line is not UTF-8"),
        ("utf-16", "a line is not UTF-8"),
        ("mojibake", "the text 'Grüße, 日本, 🙂' comes back as 'GrÃ¼Ã"),
        ("question-marks", "the text 'Grüße, 日本, 🙂' comes back as 'Gr??e, ??, ?'"),
    ],
)
def test_each_fault_is_named(fault, problem):
    assert any(one.startswith(problem) for one in problems(fault))


@for_all(
    ("fault", "limits", "problem"),
    [
        ("no-flush", {"start_limit": 0.1, "limit": GIVE_UP}, "there is no hello: nothing came for"),
        (
            "flushes-hello",
            {"start_limit": GIVE_UP, "limit": 0.1},
            "there is no answer to the cases",
        ),
    ],
)
def test_a_runner_that_does_not_flush(fault, limits, problem):
    """It is told after the limit, not after the time that a slow start may take: what it holds back
    comes when its input ends."""
    found = self_test([*RUNNER, fault], "chat", **limits, end_limit=GIVE_UP)
    (silence,) = [one for one in found if one.problem.startswith(problem)]
    assert silence.problem.endswith("and a line came when the input had ended")
    assert "Flush after each line" in silence.advice
    assert silence.received


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
