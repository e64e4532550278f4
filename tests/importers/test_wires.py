"""Recorded traffic of services with other frames than events, imported and played again."""

from __future__ import annotations

import pytest

from mockllm.importers.batch import import_files
from mockllm.importers.file_formats import files
from mockllm.recording.store.folder import Folder
from mockllm.replay.call import ApiCall
from mockllm.replay.player import Player
from mockllm.replay.sessions.session import Session
from mockllm.tapes.captured import detected
from tests.importers.corpus import CORPUS, needs_corpus, read

WIRES = ("ollama",)


@needs_corpus
@pytest.mark.parametrize("wire", WIRES)
def test_every_exchange_is_a_readable_turn_and_replays_exactly(wire, tmp_path):
    """The report says neutral, and the recorded request gets the recorded bytes again."""
    paths = list(files([CORPUS / "wires" / wire]))
    exchanges = {one.source: one for path in paths for one in read(path)}
    assert exchanges
    folder = Folder(tmp_path)
    lines = [result.line for result in import_files(paths, folder)]
    assert {line.source: line.outcome for line in lines} == dict.fromkeys(exchanges, "neutral")
    scenarios = {scenario.name: scenario for scenario in folder.scenarios()}
    for line in lines:
        one = exchanges[line.source]
        found = detected(one)
        assert found.protocol is not None
        player = Player([scenarios[line.scenario]], strict=False)
        headers = dict(one.request_headers)
        call = ApiCall(found.protocol, found.target, headers, one.request_body, Session("default"))
        answered = player.play(call)
        assert answered.played.recorded == "exact", answered.played.problems
        assert answered.answer.status == one.status
        assert b"".join(answered.answer.data) == one.plain().body
