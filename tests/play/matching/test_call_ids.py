"""Calls of a history by the ids of the scenario: `ids: any`, and results by position."""

from __future__ import annotations

import pytest

from mockllm.core.request import CallEcho, Message, Request
from mockllm.play.matching.request_validation import results_by_id, with_scenario_ids
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Expect, ResultCondition, TextCondition
from mockllm.scenario.reading.conditions import is_position

ANY = """
scenario: any
ids: any
turns:
  - reply:
      - {tool: f, id: f1, arguments: {n: 1}}
      - {tool: g, id: g1}
      - {tool: f, id: f2, arguments: {n: 2}}
  - reply: {tool: f, id: f3}
  - reply: {text: Done.}
"""
(SCENARIO,) = loads(ANY)


def calls(*pairs: tuple[str, str]) -> Message:
    return Message("assistant", calls=tuple(CallEcho(id, name, "{}") for id, name in pairs))


def result(id: str) -> Message:
    return Message("tool", f"of {id}", call_id=id)


def test_calls_are_known_by_turn_name_and_order() -> None:
    """The ids of a gateway are replaced, in calls and in the results that follow; the same id may
    come again in a later turn."""
    history = (
        Message("user", "go"),
        calls(("x1", "f"), ("x2", "f"), ("x3", "g")),
        result("x3"),
        result("x1"),
        result("x2"),
        calls(("x1", "f")),
        result("x1"),
    )
    found = with_scenario_ids(Request("chat", "m", {}, messages=history), SCENARIO, 2)
    assert [call.id for message in found for call in message.calls] == ["f1", "f2", "g1", "f3"]
    assert [message.call_id for message in found if message.role == "tool"] == [
        "g1",
        "f1",
        "f2",
        "f3",
    ]


@pytest.mark.parametrize(
    ("sent", "own"),
    [
        ([("f2", "f"), ("x", "f")], ["f2", "f1"]),
        ([("x", "f"), ("y", "f"), ("z", "f")], ["f1", "f2", "z"]),
        ([("x", "h")], ["x"]),
        ([("", "f")], [""]),
    ],
    ids=["one id kept", "one call too many", "another tool", "no id"],
)
def test_ids_that_are_kept(sent: list[tuple[str, str]], own: list[str]) -> None:
    """An id of the scenario is never replaced, nor that of a call that the scenario does not
    make."""
    request = Request("chat", "m", {}, messages=(Message("user", "go"), calls(*sent)))
    (_, message) = with_scenario_ids(request, SCENARIO, 1)
    assert [call.id for call in message.calls] == own


def test_turns_before_the_scenario_are_left_alone() -> None:
    """A history may begin with other turns; only those of the scenario are compared with it."""
    history = (calls(("x1", "f")), result("x1"), Message("user", "go"), calls(("x2", "f")))
    request = Request("chat", "m", {}, messages=history)
    found = with_scenario_ids(request, SCENARIO, 1)
    assert [call.id for message in found for call in message.calls] == ["x1", "f1"]


def test_a_position_names_a_call_of_the_turn_before() -> None:
    """An id that looks like a position is an id; a position that no call has stays."""
    condition = ResultCondition(TextCondition("equals", "42"))
    expect = Expect(results=(("1", condition), ("7", condition), ("9", condition)))
    found = results_by_id(expect, ["7", "a", "b"], ["a", "b"])
    assert [key for key, _ in found.results] == ["b", "7", "9"]
    assert [is_position(key) for key in ("0", "12", "01", "-1", "1.0", "call_1", "")] == [
        True,
        True,
        False,
        False,
        False,
        False,
        False,
    ]
