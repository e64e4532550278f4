"""A tape stays as long as any scenario of the folder names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockllm.play.replay.loading import load
from mockllm.play.tapes.captured import Captured
from mockllm.record.recording.drafting.drafts import Drafting
from mockllm.record.recording.store.folder import Folder
from tests.record.recording.exchanging import answer, user

HELLO = [user("hello")]


def tapes(path: Path) -> list[str]:
    return sorted(file.name for file in path.glob("*.jsonl"))


def write(folder: Folder, exchange: Captured, *, overwrite: bool = False) -> None:
    drafting = Drafting(known=folder.scenarios(), tape=folder.tape, overwrite=overwrite)
    for draft in drafting.add(exchange):
        drafting.adopt_changes(draft, folder.write(draft))


def share(path: Path) -> None:
    """Writes a second scenario with the tapes of the first, as a person does who copies it."""
    text = (path / "hello.yaml").read_text()
    changes = {"scenario: hello\n": "scenario: copy\n", "equals: hello\n": "equals: no\n"}
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (path / "copy.yaml").write_text(text)


@pytest.mark.parametrize("shared", [False, True])
def test_a_tape_that_another_scenario_names_is_kept(tmp_path: Path, shared: bool) -> None:
    """A new conversation takes the place of an old one, and the tape of the old one goes with it:
    but not where another scenario has a turn with the same tape."""
    write(Folder(tmp_path), answer(HELLO, "old"))
    assert tapes(tmp_path) == ["hello.1.jsonl"]
    if shared:
        share(tmp_path)
    write(Folder(tmp_path), answer(HELLO, "hi"), overwrite=True)
    kept = ["hello.1-2.jsonl", "hello.1.jsonl"] if shared else ["hello.1-2.jsonl"]
    assert tapes(tmp_path) == kept
    named = {
        turn.recorded.file
        for scenario in load([tmp_path])
        for turn in scenario.turns
        if turn.recorded is not None
    }
    assert sorted(named) == kept
