"""Recorded traffic of Amazon Bedrock, imported and played again."""

from __future__ import annotations

import pytest

from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import Captured, detect_api
from mockllm.play.tapes.recorded_turn import recorded_turn
from mockllm.record.importers.batch import import_files
from mockllm.record.importers.file_formats import files
from mockllm.record.recording.store.folder import Folder
from tests.corpus import CORPUS, needs_corpus, read

pytestmark = needs_corpus

WIRES = ["converse", "converse-stream", "invoke", "invoke-stream"]


def exchanges(wire: str) -> dict[str, Captured]:
    """The exchanges of a wire, by their sources."""
    folder = CORPUS / "wires" / f"bedrock-{wire}"
    return {
        entry.source: entry
        for path in files([folder])
        for entry in read(path)
        if isinstance(entry, Captured)
    }


@pytest.mark.parametrize("wire", WIRES)
def test_every_answer_is_a_whole_turn(wire):
    """Each decodes without a problem. Other vendors than Anthropic have their own bodies on
    InvokeModel: Nova, Titan and the embeddings of Cohere are routes."""
    read_as = set()
    for source, exchange in exchanges(wire).items():
        found = detect_api(exchange)
        read_as.add(found.protocol.name if found.protocol else found.reason.partition(" of ")[0])
        if found.protocol is None or exchange.status != 200:
            continue
        streamed = "stream" in wire
        turn = recorded_turn(exchange.plain(), found.protocol, streamed=streamed)
        assert turn.problem == "", source
        assert turn.turn.finish is not None, source
    assert read_as == ({"anthropic", "InvokeModel"} if "invoke" in wire else {"bedrock"})


@pytest.mark.parametrize("wire", WIRES)
def test_every_exchange_replays_exactly(wire, tmp_path):
    """The recorded request gets the recorded bytes again."""
    recorded = exchanges(wire)
    folder = Folder(tmp_path)
    paths = list(files([CORPUS / "wires" / f"bedrock-{wire}"]))
    lines = [result.line for result in import_files(paths, folder)]
    assert {line.source for line in lines} == set(recorded)
    scenarios = {scenario.name: scenario for scenario in folder.scenarios()}
    for line in lines:
        exchange = recorded[line.source]
        found, session = detect_api(exchange), Session("default")
        player = Player([scenarios[line.scenario]], strict=False)
        headers, body = dict(exchange.request_headers), exchange.request_body
        if found.protocol is None:
            request = RouteRequest("POST", exchange.path, "", headers, body)
            answered = player.routes.play(request, session)
        else:
            answered = player.play(ApiCall(found.protocol, found.target, headers, body, session))
        assert answered is not None, line.source
        assert answered.played.recorded == "exact", (line.source, answered.played.problems)
        assert answered.answer.status == exchange.status
        assert b"".join(answered.answer.data) == exchange.plain().body
