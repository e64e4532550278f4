"""How a connection ended is recorded, and is played so."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockllm.replay.loading import load
from mockllm.server.thread import ServerThread
from mockllm.tapes.load import load_tape
from tests.faults.playing import TURNS, ask, served
from tests.faults.test_live import recording

DYING = TURNS.replace("- ATTEMPTS\n    ", "- fault: {cut: {after: 4 events, end: END}}\n    ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "cut"),
    [("close", "upstream"), ("reset", "reset"), ("chunk", "chunk"), ("orderly", "")],
)
@pytest.mark.parametrize("api", ["chat", "anthropic"])
def test_a_recorded_ending_is_played(tmp_path: Path, api: str, end: str, cut: str) -> None:
    """The client of the service, that of the recorder and that of the replay see the same."""
    with served(DYING.replace("END", end)) as upstream:
        first = ask(upstream, api)
        with recording(tmp_path, upstream) as recorder:
            passed = ask(recorder, api)
    (tape,) = tmp_path.glob("*.jsonl")
    assert load_tape(tape.read_bytes(), str(tape)).cut == cut
    with ServerThread(load(tmp_path)) as replay:
        played = ask(replay, api)
    for one in (passed, played):
        assert (one.body, one.ended, one.whole) == (first.body, first.ended, first.whole)
        assert in_chunk(one.wire) == in_chunk(first.wire) == (end == "chunk")


def in_chunk(wire: bytes) -> bool:
    """Whether the last HTTP chunk is longer than what came of it."""
    while wire:
        size, _, rest = wire.partition(b"\r\n")
        if len(rest) < int(size, 16) + 2:
            return True
        wire = rest[int(size, 16) + 2 :]
    return False
