"""`request-unchanged` over every API: a change is reported by its path, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mockllm.checking.conversations.judge import verify
from mockllm.core.request import (
    CallEcho,
    Message,
    OfferedTool,
    Parameters,
    Request,
    SentFile,
    system_text,
)
from mockllm.core.turn import ToolCall
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.loading import load, loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import Exchange, Received
from mockllm.play.replay.sessions.session import Session
from mockllm.play.replay.turn_answer import turn_answer
from mockllm.play.tapes.captured import Captured, detect_api
from mockllm.play.tapes.recorded_turn import recorded_turn
from mockllm.record.importers.batch import import_files
from mockllm.record.recording.store.folder import Folder
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol
from tests.apis import OVER_HTTP
from tests.record.importers.test_batch import cassette
from tests.record.recording.exchanging import JSON, timed

(SCENARIO,) = loads(
    """
scenario: weather
turns:
  - reply: [{tool: look, id: call_1, arguments: {city: Oslo}}]
  - reply: [{text: It rains.}]
"""
)
PICTURE, OTHER_PICTURE = SentFile("image/png", "aW1hZ2U="), SentFile("image/png", "b3RoZXI=")
LOOK = OfferedTool("look", "Looks it up.", {"type": "object", "properties": {}})
TIME = OfferedTool("time", "Says the time.", {"type": "object", "properties": {}})
MESSAGES = (
    Message("system", "Be kind."),
    Message("user", "How is it?", files=(PICTURE,)),
    Message("assistant", calls=(CallEcho("call_1", "look", '{"city":"Oslo"}'),)),
    Message("tool", "rain", call_id="call_1", name="look"),
)

Asked = tuple[Request, Parameters]
Change = Callable[[Request, Parameters], Asked]


def message(index: int, **fields: Any) -> Change:
    def change(request: Request, parameters: Parameters) -> Asked:
        messages = list(request.messages)
        messages[index] = replace(messages[index], **fields)
        return replace(request, messages=tuple(messages), system=system_text(messages)), parameters

    return change


def tools(*offered: OfferedTool) -> Change:
    return lambda request, parameters: (replace(request, tools=offered), parameters)


CHANGES: Mapping[str, tuple[Change, Sequence[str]]] = {
    "system prompt": (message(0, text="Be evil."), ("Be kind.", "Be evil.")),
    "result": (message(3, text="sun"), ('"rain" → "sun"',)),
    "arguments": (
        message(2, calls=(CallEcho("call_1", "look", '{"city":"Rome"}'),)),
        ('.city: "Oslo" → "Rome"',),
    ),
    "image": (message(1, files=(OTHER_PICTURE,)), (PICTURE.data, OTHER_PICTURE.data)),
    "no image": (message(1, files=()), (" → ",)),
    "tool added": (tools(LOOK, TIME), ("ools", ": + time")),
    "tool dropped": (tools(TIME), ("ools", ": + time, - look")),
    "description": (
        tools(replace(LOOK, description="Looks.")),
        ('.description: "Looks it up." → "Looks."',),
    ),
    "schema": (
        tools(replace(LOOK, parameters={"type": "object", "properties": {"a": {}}})),
        (".properties.a: nothing → {}",),
    ),
    "model": (
        lambda request, parameters: (replace(request, model="odd-2"), parameters),
        ('model: "odd-1" → "odd-2"',),
    ),
    "temperature": (
        lambda request, parameters: (request, replace(parameters, temperature=0.25)),
        ("emperature: 0.5 → 0.25",),
    ),
    "stream": (
        lambda request, parameters: (replace(request, stream=False), parameters),
        ("stream: true → false",),
    ),
}

OF_TOOLS = {"result", "arguments", "tool added", "tool dropped", "description", "schema"}
NOT_IN_BODY: Mapping[str, set[str]] = {
    "agui": {
        "image",
        "no image",
        "model",
        "temperature",
        "stream",
    },  # an agent has a model of its own
    "completions": {"image", "no image", *OF_TOOLS},
}
"""By the API, what its requests do not have."""


def asked(protocol: WireProtocol, change: Change) -> list[Captured]:
    """Both requests of a conversation and their answers, after a change."""
    api, system = protocol.name, system_text(MESSAGES)
    request = Request(api, "odd-1", {}, True, MESSAGES, system, tools=(LOOK,))
    request, parameters = change(request, Parameters(temperature=0.5, max_tokens=100))
    requests = [replace(request, messages=request.messages[:2]), request]
    if not protocol.client.tool_fields:
        del requests[1]
    return [
        exchange(protocol, protocol.client.write(sent, parameters), sent, position)
        for position, sent in enumerate(requests)
    ]


def exchange(protocol: WireProtocol, body: Any, request: Request, position: int) -> Captured:
    url = "https://api.odd.test" + protocol.client.path_of(request.model, stream=request.stream)
    sent = Captured("POST", url, JSON, json.dumps(body).encode(), 200, (), ())
    parsed = protocol.parse(body, detect_api(sent).target, False)
    answer = turn_answer(SCENARIO, position, protocol, parsed)
    headers = tuple((name.lower(), value) for name, value in answer.headers)
    return replace(sent, headers=headers, chunks=timed(answer.data))


def unchanged(request: Request, parameters: Parameters) -> Asked:
    return request, parameters


class Recorded:
    """The recording of a conversation, which is played again and again."""

    def __init__(self, folder: Path, exchanges: Sequence[Captured]) -> None:
        import_files([cassette(folder / "it.yaml", *exchanges)], Folder(folder / "scenarios"))
        self.folder = folder / "scenarios"
        self.load()

    def load(self) -> None:
        self.scenarios = load(self.folder)
        self.player, self.session = Player(self.scenarios), Session("test")

    def send(self, sent: Captured, **headers: str) -> Exchange:
        found = detect_api(sent)
        assert found.protocol is not None
        call = ApiCall(found.protocol, found.target, headers, sent.request_body, self.session)
        played = self.player.play(call)
        received = Received("POST", "/x", headers, sent.request_body, target=found.target)
        entry = Exchange(received, played.played)
        self.session.record(entry)
        self.answer = played.answer
        return entry

    def red(self) -> list[int]:
        """The numbers of the requests that fail where `request-unchanged` is required."""
        by_name = {scenario.name: scenario for scenario in self.scenarios}
        found = verify(self.session, by_name, require=frozenset(("request-unchanged",)))
        named = [one for one in found.violations if one.invariant == "request-unchanged"]
        return [one.exchange for one in named]


@pytest.mark.parametrize("api", OVER_HTTP)
def test_each_change_is_reported_and_red(api: str, tmp_path: Path) -> None:
    """With both values, by its path: whatever of a conversation with a tool the API can say."""
    protocol = PROTOCOLS[api]
    before = asked(protocol, unchanged)
    recorded, missing, red = Recorded(tmp_path, before), set(), []
    for name, (change, words) in CHANGES.items():
        sent = asked(protocol, change)[-1]
        if (sent.request_body, sent.url) == (before[-1].request_body, before[-1].url):
            missing.add(name)
            continue
        entry = recorded.send(sent)
        assert entry.outcome == "played", (name, entry.problems)
        (line,) = (line for line in entry.played.changes if all(word in line for word in words))
        assert ": " in line, "a path, and the values"
        red.append(recorded.session.count)
    assert missing == NOT_IN_BODY.get(api, set())
    assert recorded.red() == red


@pytest.mark.parametrize("api", OVER_HTTP)
def test_nothing_else_is_reported(api: str, tmp_path: Path) -> None:
    """Neither what SDKs add, nor the order of fields, null, and the order of tools."""
    protocol = PROTOCOLS[api]
    recorded = Recorded(tmp_path, asked(protocol, tools(LOOK, TIME)))
    (same, reverse) = (asked(protocol, tools(*order))[-1] for order in ((LOOK, TIME), (TIME, LOOK)))
    body = json.loads(same.request_body)
    bodies = (
        body,
        dict(reversed(body.items())),
        {**body, "metadata": None},
        {**body, **protocol.client.usage},
        json.loads(reverse.request_body),
    )
    for each in bodies:
        sent = replace(same, request_body=json.dumps(each, indent=1).encode())
        entry = recorded.send(sent, **{"user-agent": "SDK/9", "x-stainless-package-version": "9"})
        assert (entry.outcome, entry.played.changes) == ("played", ())
    assert recorded.red() == []


@pytest.mark.parametrize("api", [api for api in OVER_HTTP if PROTOCOLS[api].client.tool_fields])
def test_ids_that_mockllm_gives_do_not_count(api: str, tmp_path: Path) -> None:
    """An answer that was edited has other ids than the recorded one, and clients send them back."""
    protocol = PROTOCOLS[api]
    first, second = asked(protocol, unchanged)
    body = json.loads(first.request_body)

    def next_request(answered: Captured) -> Captured:
        told = recorded_turn(answered, protocol, streamed=True)
        calls = [ToolCall(name="look", id=call.id) for call in told.turn.tool_calls]
        sent = protocol.client.continuation(body, told.id, calls, ["rain"])
        return replace(second, request_body=json.dumps(sent).encode())

    recorded = Recorded(tmp_path, [first, next_request(first)])
    (file,) = recorded.folder.glob("*.yaml")
    edited = file.read_text().replace("city: Oslo", "city: Rome")
    file.write_text("".join(line for line in edited.splitlines(True) if " id: call" not in line))
    recorded.load()
    assert recorded.send(first).played.recorded == "edited"
    given = replace(first, chunks=timed(recorded.answer.data))
    assert recorded.send(next_request(given)).played.changes == ()


def test_another_api_is_not_compared_and_said_so(tmp_path: Path) -> None:
    """A recording that answers over another API than it was made with."""
    recorded = Recorded(tmp_path, asked(PROTOCOLS["chat"], unchanged))
    entry = recorded.send(asked(PROTOCOLS["anthropic"], unchanged)[0])
    assert (entry.outcome, entry.played.recorded) == ("played", "other api")
    assert entry.played.changes == ('api: "chat" → "anthropic", not compared',)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("[1]", "body: [1] → {"),
        ('{"messages": 1}', "messages: 1 → [{"),
        ("odd", 'body: "3 bytes, '),
    ],
)
def test_a_recorded_request_that_cannot_be_read(tmp_path: Path, body: str, line: str) -> None:
    """Its body is compared as it is: somebody has changed the tape, or its service took more."""
    sent = asked(PROTOCOLS["chat"], unchanged)[0]
    recorded = Recorded(tmp_path, [sent])
    (tape,) = recorded.folder.glob("*.jsonl")
    head, rest = tape.read_text().split("\n", 1)
    fields = json.loads(head)
    fields["request"]["body"] = body
    tape.write_text(f"{json.dumps(fields)}\n{rest}")
    changes = recorded.send(sent).played.changes
    assert any(change.startswith(line) for change in changes), changes
    assert recorded.red() == [1]


def test_a_tape_that_cannot_be_read(tmp_path: Path) -> None:
    """The request is not compared, and this is no acquittal."""
    sent = asked(PROTOCOLS["chat"], unchanged)[0]
    recorded = Recorded(tmp_path, [sent])
    (tape,) = recorded.folder.glob("*.jsonl")
    tape.write_text("{}\n")
    entry = recorded.send(sent)
    assert entry.played.changes == ("the tape cannot be read, so the request is not compared",)
    assert recorded.red() == [1]
