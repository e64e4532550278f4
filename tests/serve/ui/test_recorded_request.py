"""A request beside the recorded one in the live page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mockllm.serve.ui.live import row
from mockllm.serve.ui.recorded_request import recorded_json
from mockllm.wire.protocols import PROTOCOLS
from tests.checking.conversations.test_changes_of_all_apis import (
    CHANGES,
    Recorded,
    asked,
    unchanged,
)

CHAT = PROTOCOLS["chat"]


def test_changed_lines_are_side_by_side(tmp_path: Path) -> None:
    """Pairs where they differ, single lines around them, and how many equal ones are left out."""
    recorded = Recorded(tmp_path, asked(CHAT, unchanged))
    entry = recorded.send(asked(CHAT, CHANGES["system prompt"][0])[1])
    (scenario,) = recorded.scenarios
    shown = recorded_json(entry, scenario)
    assert shown is not None
    assert shown["changes"] == ['messages[0].content: "Be kind." → "Be evil."']
    pairs = [line for line in shown["lines"] if isinstance(line, list)]
    assert pairs == [['      "content": "Be kind.",', '      "content": "Be evil.",']]
    assert '      "role": "system"' in shown["lines"]
    kinds = [type(line) for line in shown["lines"]]
    assert kinds == [int, str, str, str, list, str, str, str, int]
    assert shown["why"] == ""
    assert row(entry)["changes"] == 1


def test_lines_that_only_one_of_them_has(tmp_path: Path) -> None:
    """None is on the other side."""
    recorded = Recorded(tmp_path, asked(CHAT, unchanged))
    shown = recorded_json(
        recorded.send(asked(CHAT, CHANGES["tool added"][0])[1]), recorded.scenarios[0]
    )
    assert shown is not None
    pairs = [line for line in shown["lines"] if isinstance(line, list)]
    assert all(before is None for before, _ in pairs)
    assert any('"time"' in sent for _, sent in pairs)


def test_what_is_not_shown(tmp_path: Path) -> None:
    """Nothing for the recorded request itself; a reason where one of both is not there."""
    recorded = Recorded(tmp_path, asked(CHAT, unchanged))
    (scenario,) = recorded.scenarios
    same = recorded.send(asked(CHAT, unchanged)[1])
    assert recorded_json(same, scenario) is None
    entry = recorded.send(asked(CHAT, CHANGES["result"][0])[1])
    written = replace(scenario, turns=tuple(replace(one, recorded=None) for one in scenario.turns))
    for tape in recorded.folder.glob("*.jsonl"):
        tape.write_text("{}\n")
    for each, why in ((None, "no longer served"), (written, "no recording"), (scenario, "no tape")):
        shown = recorded_json(entry, each)
        assert shown is not None
        assert shown["lines"] == []
        assert why in shown["why"]
