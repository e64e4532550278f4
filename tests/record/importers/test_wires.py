"""Recorded traffic of the APIs that came later: each exchange is readable, and replays exactly."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import yaml

from mockllm.core.turn import Opaque
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import detect_api, request_of
from mockllm.play.tapes.recorded_turn import recorded_turn
from mockllm.record.importers.batch import import_files
from mockllm.record.importers.file_formats import files
from mockllm.record.recording.store.folder import Folder
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.cases import for_all
from tests.corpus import CORPUS, needs_corpus, read

WIRES = ("cohere", "completions", "interactions", "ollama")


@needs_corpus
@for_all("wire", WIRES)
def test_recorded_exchanges(wire: str, tmp_path: Path) -> None:
    """Every answer of a model is a turn without frames of its own, and comes back as recorded."""
    paths = list(files([CORPUS / "wires" / wire]))
    folder = Folder(tmp_path / wire)
    lines = {result.line.source: result.line for result in import_files(paths, folder)}
    assert {line.outcome for line in lines.values()} == {"neutral"}
    scenarios = {scenario.name: scenario for scenario in folder.scenarios()}
    for exchange in (entry for path in paths for entry in read(path)):
        found = detect_api(exchange)
        if found.protocol is None or found.protocol.name != wire:
            continue  # a route, or another API in the same cassette
        whole = exchange.plain()
        streamed = request_of(exchange, found).stream
        if exchange.status >= 400:
            continue
        turn = recorded_turn(whole, found.protocol, streamed=streamed).turn
        # What runs in the background has no answer yet.
        assert turn.parts or b'"in_progress"' in whole.body
        assert not any(isinstance(part, Opaque) for part in turn.parts)
        name = lines[exchange.source].scenario
        assert name is not None
        player = Player([scenarios[name]], strict=False, named=name)
        headers = dict(exchange.request_headers)
        call = ApiCall(found.protocol, found.target, headers, exchange.request_body, Session("s"))
        answered = player.play(call)
        assert answered.played.recorded == "exact", exchange.source
        assert b"".join(answered.answer.data) == whole.body


V1 = "".join(
    json.dumps(line) + "\n"
    for line in (
        {"is_finished": False, "event_type": "stream-start", "generation_id": "g1"},
        {"is_finished": False, "event_type": "text-generation", "text": "Hel"},
        {"is_finished": False, "event_type": "text-generation", "text": "lo"},
        {"is_finished": True, "event_type": "stream-end", "finish_reason": "COMPLETE"},
    )
)


def test_the_first_chat_api_of_cohere_replays_as_it_was_recorded(tmp_path: Path) -> None:
    """`/v1/chat` streams lines of JSON. It is a route: its bytes are played, and no turn read."""
    request = {
        "method": "POST",
        "uri": "https://api.cohere.com/v1/chat",
        "body": '{"message": "Hi", "stream": true}',
        "headers": {"Content-Type": ["application/json"]},
    }
    answer = {
        "status": {"code": 200, "message": "OK"},
        "headers": {"Content-Type": ["application/stream+json"]},
        "body": {"string": V1},
    }
    path = tmp_path / "cassette.yaml"
    cassette = {"interactions": [{"request": request, "response": answer}], "version": 1}
    path.write_text(yaml.dump(cassette), encoding="utf-8")
    folder = Folder(tmp_path / "recorded")
    (result,) = import_files([path], folder)
    assert "POST /v1/chat" in str(result.line)
    served = ServerThread(folder.scenarios(), ServerOptions(speed=0))
    with served as server, httpx.Client(trust_env=False) as client:
        sent = client.post(f"{server.url}/v1/chat", json={"message": "Hi", "stream": True})
    assert (sent.status_code, sent.headers["content-type"], sent.text) == (
        200,
        "application/stream+json",
        V1,
    )
