"""Long histories take time in proportion to their turns, wherever a conversation may begin."""

from __future__ import annotations

import sys
from types import FrameType

from mockllm.core.http import NO_TARGET
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.select import select
from mockllm.play.replay.loading import loads
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

_TURN = "  - reply: {text: answer A}\n"
_CALL = "  - reply: [{tool: f, id: call_a}]\n"
_USER = "scenario: a\nmatch: {user: {contains: hi}}\n"
SCENARIOS = {
    "one turn": f"{_USER}turns:\n{_TURN}",
    "three turns": f"{_USER}turns:\n{_TURN * 3}",
    "a turn that repeats": f"{_USER}turns:\n{_TURN}    repeat: true\n",
    "turns that restart": f"{_USER}then: restart\nturns:\n{_TURN * 3}",
    "no condition on a user": f"scenario: a\nmatch: {{model: m}}\nturns:\n{_TURN}",
    "conditions on users": f"{_USER}turns:\n{_TURN}  - request: {{user: {{contains: hi}}}}\n"
    "    reply: {text: answer A}\n    repeat: true\n",
    "calls": f"{_USER}then: restart\nturns:\n{_CALL}{_TURN}",
}


VARYING = (
    f"{_USER}turns:\n{_TURN}    repeat: true\n    when:\n"
    "      - user: {contains: stop}\n        reply: {text: bye}\n"
)


def _calls(yaml: str, turns: int) -> int:
    """How many functions are called to select a turn for a history whose last turn is another
    one, so that each beginning but the last is doubtful."""
    served, messages = ScenarioIndex(loads(yaml)), []
    for number in range(turns):
        text = "answer A" if number < turns - 1 else "unlike"
        messages += [
            {"role": "user", "content": f"hi {number}"},
            {"role": "assistant", "content": text},
        ]
    body = {"model": "m", "messages": [*messages, {"role": "user", "content": "hi"}]}
    request = PROTOCOLS["chat"].parse(body, NO_TARGET, False)
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event.endswith("call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        selection = select(served, request, {})
    finally:
        sys.setprofile(before)
    assert selection.start == 2 * turns
    return count


@for_all("name", SCENARIOS)
def test_four_times_the_turns_take_four_times_the_work(name: str) -> None:
    """Counted in calls of functions."""
    assert _calls(SCENARIOS[name], 800) < 4.5 * _calls(SCENARIOS[name], 200)


def test_conditions_of_turns_are_judged_once() -> None:
    """However many beginnings a conversation may have whose turns have conditions: for each the way
    is put together anew, which is a step of the history for each, and no more."""
    assert _calls(VARYING, 200) < 20 * _calls(VARYING, 50)
