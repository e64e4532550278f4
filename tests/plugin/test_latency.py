"""Latency in tests with `mockllm_session`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mockllm.core.errors import UsageError
from mockllm.core.http import NO_TARGET
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.sessions.session import Session
from mockllm.wire.protocols import PROTOCOLS


def first_times(session: Any) -> tuple[int, ...]:
    """When the parts of the session's first answer are due."""
    thread = session._thread
    player = thread.ask(thread.server.player_of, session.session)
    body = json.dumps({**first_body(PROTOCOLS["chat"], "m", "Hello"), "stream": True}).encode()
    headers = {"authorization": "Bearer key"}
    call = ApiCall(PROTOCOLS["chat"], NO_TARGET, headers, body, Session(session.session))
    answer = player.play(call).answer
    assert answer.status == 200
    return answer.times


@pytest.mark.mockllm(latency="ttft=300ms itl=10ms", no_requests=True)
def test_a_marker_has_latency(mockllm_session: Any) -> None:
    """The answers of the test take so long, until the test changes it."""
    mockllm_session.reply("Hello there")
    assert min(first_times(mockllm_session)) == 300_000
    mockllm_session.latency = "ttft=1s"
    assert min(first_times(mockllm_session)) == 1_000_000
    mockllm_session.latency = None
    assert not any(first_times(mockllm_session))


@pytest.mark.mockllm(no_requests=True)
def test_wrong_latency_changes_nothing(mockllm_session: Any) -> None:
    """The error has what there is."""
    with pytest.raises(UsageError, match="there is no 'tfft'; did you mean 'ttft'"):
        mockllm_session.latency = "tfft=1s"
    assert mockllm_session.latency is None
