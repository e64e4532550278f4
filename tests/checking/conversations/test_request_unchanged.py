"""`request-unchanged`: a recording that answers another request than it was made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mockllm.checking.conversations.judge import Verification, verify
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.loading import load
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import Exchange, Received
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import Captured, detect_api
from mockllm.record.importers.batch import import_files
from mockllm.record.recording.store.folder import Folder
from tests.record.importers.test_batch import cassette
from tests.record.recording.exchanging import (
    asks,
    calling,
    exchange,
    model,
    responding,
    result,
    user,
)

SYSTEM = {"role": "system", "content": "Be kind."}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
FIRST = [SYSTEM, user("Look it up.")]
CALL = model(None, ("c1", "look", "{}"))
SECOND = [*FIRST, CALL, result("c1", "sunny")]
FIELDS = {"tools": [TOOL], "temperature": 0}


def answer_to(messages: list[dict[str, Any]], **fields: Any) -> Captured:
    body = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "odd-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "It is."},
                     "finish_reason": "stop"}],
    }  # fmt: skip
    sent = asks(*messages, stream=False, **fields)
    kind = (("content-type", "application/json"),)
    return exchange(sent, [json.dumps(body).encode()], headers=kind)


RECORDED = [answer_to(FIRST, **FIELDS), answer_to(SECOND, **FIELDS)]


def judged(
    tmp_path: Path, recorded: list[Captured], sent: list[bytes], *require: str
) -> tuple[Verification, Session]:
    """The verdict about a client that sends bodies to the recordings of some exchanges."""
    folder = tmp_path / "scenarios"
    import_files([cassette(tmp_path / "it.yaml", *recorded)], Folder(folder))
    scenarios = load(folder)
    player, session = Player(scenarios), Session("test")
    for one, body in zip(recorded, sent, strict=True):
        found = detect_api(one)
        headers = dict(one.request_headers)
        if found.protocol is None:
            path = one.url.partition("odd.test")[2]
            played = player.routes.play(RouteRequest(one.method, path, "", headers, body), session)
            received = Received(one.method, path, headers, body)
        else:
            played = player.play(ApiCall(found.protocol, found.target, headers, body, session))
            received = Received("POST", "/v1/x", headers, body, target=found.target)
        assert played is not None
        assert played.played.outcome == "played"
        session.record(Exchange(received, played.played))
    by_name = {scenario.name: scenario for scenario in scenarios}
    return verify(session, by_name, require=frozenset(require)), session


CHANGES = {
    "system prompt": (
        [{**SYSTEM, "content": "Be evil."}, *SECOND[1:]], {},
        'messages[0].content: "Be kind." → "Be evil."',
    ),
    "tool": (
        SECOND, {"tools": [{**TOOL, "function": {**TOOL["function"], "name": "drop"}}]},  # type: ignore[dict-item]
        "tools: + drop, - look",
    ),
    "schema": (
        SECOND, {"tools": [{**TOOL, "function": {**TOOL["function"], "parameters": {}}}]},  # type: ignore[dict-item]
        'tools.look.function.parameters.type: "object" → nothing',
    ),
    "model": (SECOND, {"model": "odd-2"}, 'model: "odd-1" → "odd-2"'),
    "temperature": (SECOND, {"temperature": 1.9}, "temperature: 0 → 1.9"),
    "result": (
        [*FIRST, CALL, result("c1", "an error")], {},
        'messages[3].content: "sunny" → "an error"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_reported_and_fails_where_it_is_required(tmp_path: Path, change: str) -> None:
    """With its path and both values; the journal has it, too."""
    messages, fields, line = CHANGES[change]
    bodies = [RECORDED[0].request_body, asks(*messages, stream=False, **{**FIELDS, **fields})]
    found, session = judged(tmp_path, [answer_to(FIRST, **FIELDS), RECORDED[1]], bodies)
    (remark,) = (one for one in found.remarks if one.invariant == "request-unchanged")
    assert remark.exchange == 2
    assert line in remark.message
    assert not [one for one in found.violations if one.invariant == "request-unchanged"]
    assert [entry.as_json()["changes"] for entry in session.exchanges()] == [(), (line,)]
    required, _ = judged(tmp_path / "again", RECORDED, bodies, "request-unchanged")
    assert [one.invariant for one in required.violations] == ["request-unchanged"]
    assert required.verdict == "bad"


def test_the_recorded_requests_are_unchanged(tmp_path: Path) -> None:
    """Also with their fields in another order, without a null, and with what SDKs add."""
    first = json.loads(RECORDED[0].request_body)
    other = dict(reversed((first | {"seed": None, "stream_options": None}).items()))
    bodies = [json.dumps(other, indent=1).encode(), RECORDED[1].request_body]
    found, _ = judged(tmp_path, RECORDED, bodies, "request-unchanged")
    assert found.violations == ()


@pytest.mark.parametrize(
    ("recorded", "body", "line"),
    [
        (calling([user("hi")], "c1"), asks(user("hi"), seed=1), "seed: nothing → 1"),
        (responding("hi", "resp_1", "Hello"), None, 'instructions: nothing → "Be evil."'),
        (
            exchange(b'{"input": "a", "size": 1}', [b"{}"], url="https://api.odd.test/v1/x"),
            b'{"input": "a", "size": 1, "user": "b"}',
            'body.user: nothing → "b"',
        ),
    ],
)
def test_every_kind_of_request(
    tmp_path: Path, recorded: Captured, body: bytes | None, line: str
) -> None:
    """Streams, another API, and a route."""
    if body is None:
        sent = json.loads(recorded.request_body) | {"instructions": "Be evil."}
        body = json.dumps(sent).encode()
    found, _ = judged(tmp_path, [recorded], [body], "request-unchanged")
    assert [line in one.message for one in found.violations] == [True]
