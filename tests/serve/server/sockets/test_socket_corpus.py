"""Every recorded session of the corpus plays to a client that sends what was recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from mockllm.play.replay.loading import load
from mockllm.play.tapes.socket_session import SocketMessage, SocketSession
from mockllm.play.tapes.socket_tape import dump_session
from mockllm.play.tapes.socket_turns import socket_turns
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Recorded, Scenario
from mockllm.scenario.route_model import RouteSpec
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.corpus import CORPUS, needs_corpus
from tests.serve.server.sockets.replaying import replay
from tests.timeouts import GIVE_UP

_FILES = sorted((CORPUS / "wires" / "websocket").glob("*.yaml")) or [CORPUS]
_SIDES: dict[str, Any] = {"sent": "client", "received": "service"}


def session_in(path: Path) -> SocketSession:
    """The session in a cassette of pydantic-ai, which has no times."""
    content = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", None))
    messages: list[SocketMessage] = []
    connection = 0
    for at, written in enumerate(content["interactions"]):
        if written.get("kind") == "close":
            end = {"code": written["code"], "reason": written["reason"]}
            messages.append(SocketMessage(at, connection, "service", "close", **end))
            connection += 1
        elif "direction" in written:
            data = json.dumps(written["data"]).encode()
            side = _SIDES[written["direction"]]
            messages.append(SocketMessage(at, connection, side, "text", data))
    return SocketSession("https://api.example.com/live", (), 101, (), tuple(messages))


@needs_corpus
@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_a_session_is_played(path: Path, tmp_path: Path) -> None:
    """Byte for byte; nothing is left, and nothing differs."""
    session = session_in(path)
    if not session.messages:
        pytest.skip("the cassette has HTTP alone")
    first, *others = socket_turns(session)
    turns = (replace(first, recorded=Recorded("live.jsonl")), *others)
    scenario = Scenario("live", turns, route=RouteSpec("GET", "/live"), socket="text")
    (tmp_path / "live.yaml").write_text(dump(scenario), encoding="utf-8")
    (tmp_path / "live.jsonl").write_bytes(dump_session(session))
    with ServerThread(load([tmp_path]), ServerOptions(speed=0)) as thread:
        assert replay(f"{thread.url.replace('http', 'ws', 1)}/live", session) == []
        verdict = httpx.get(f"{thread.url}/_mockllm/verify", timeout=GIVE_UP).json()
    assert (verdict["verdict"], verdict["remarks"]) == ("good", [])
