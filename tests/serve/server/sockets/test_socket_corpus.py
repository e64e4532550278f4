"""Every recorded session of the corpus plays to a client that sends what was recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import httpx
import pytest
import yaml

from mockllm.play.replay.loading import load
from mockllm.play.tapes.socket_session import SocketSession
from mockllm.play.tapes.socket_tape import dump_session
from mockllm.play.tapes.socket_turns import socket_turns
from mockllm.record.importers.socket_entries import is_message, read_messages
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Recorded, Scenario
from mockllm.scenario.route_model import RouteSpec
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.corpus import CORPUS, needs_corpus
from tests.serve.server.sockets.replaying import replay
from tests.timeouts import GIVE_UP

_FILES = sorted((CORPUS / "wires" / "websocket").glob("*.yaml")) or [CORPUS]


def session_in(path: Path) -> SocketSession | None:
    """The session in a cassette of pydantic-ai; None where it has HTTP alone."""
    content = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", None))
    entries = [entry for entry in content["interactions"] if is_message(entry)]
    if not entries:
        return None
    session = read_messages(entries, path.name)
    assert isinstance(session, SocketSession), session
    return session


@needs_corpus
@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_a_session_is_played(path: Path, tmp_path: Path) -> None:
    """Byte for byte; nothing is left, and nothing differs."""
    session = session_in(path)
    if session is None:
        pytest.skip("the cassette has HTTP alone")
    first, *others = socket_turns(session)
    turns = (replace(first, recorded=Recorded("live.jsonl")), *others)
    is_binary = any(message.kind == "binary" for message in session.messages)
    frames: Literal["binary", "text"] = "binary" if is_binary else "text"
    scenario = Scenario("live", turns, route=RouteSpec("GET", "/live"), socket=frames)
    (tmp_path / "live.yaml").write_text(dump(scenario), encoding="utf-8")
    (tmp_path / "live.jsonl").write_bytes(dump_session(session))
    with ServerThread(load([tmp_path]), ServerOptions(speed=0)) as thread:
        assert replay(f"{thread.url.replace('http', 'ws', 1)}/live", session) == []
        verdict = httpx.get(f"{thread.url}/_mockllm/verify", timeout=GIVE_UP).json()
    assert (verdict["verdict"], verdict["remarks"]) == ("good", [])
