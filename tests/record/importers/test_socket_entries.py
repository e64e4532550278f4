"""Sessions over WebSockets in files of other recorders."""

import json
from dataclasses import replace

import pytest
import yaml

from mockllm.play.replay.loading import load
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.socket_session import SocketMessage, SocketSession
from mockllm.record.importers.batch import import_files, summary
from mockllm.record.importers.reading import Unread
from mockllm.record.recording.finding import not_found
from mockllm.record.recording.store.folder import Folder
from tests.corpus import CORPUS, needs_corpus, read

SETUP = {"setup": {"model": "models/gemini"}}
CREATED = {"type": "session.created", "session": {"model": "gpt-realtime"}}


def written(tmp_path, value, name="cassette.yaml"):
    path = tmp_path / name
    path.write_text(
        yaml.safe_dump(value, sort_keys=False) if name.endswith("yaml") else json.dumps(value)
    )
    return path


def message(direction, data):
    return {"kind": "message", "direction": direction, "data": data}


def cassette(*interactions):
    return {"version": 1, "interactions": list(interactions)}


def pairs(session):
    return [
        (one.connection, one.side, one.kind, one.data, one.code, one.reason, one.how)
        for one in session.messages
    ]


# pydantic-ai


def test_messages_of_realtime(tmp_path):
    """The path follows from the messages; after a close the client has dialled again."""
    update = {"type": "session.update"}
    path = written(
        tmp_path,
        cassette(
            message("received", CREATED),
            message("sent", update),
            {"kind": "close", "code": 1011, "reason": "again", "ok": False},
            message("received", CREATED),
            {"kind": "close", "code": 1000, "reason": "", "ok": False},
        ),
    )
    (session,) = read(path)
    created, sent = (json.dumps(one, separators=(",", ":")).encode() for one in (CREATED, update))
    assert session.url == "/v1/realtime"
    assert session.status == 101
    assert pairs(session) == [
        (0, "service", "text", created, 0, "", ""),
        (0, "client", "text", sent, 0, "", ""),
        (0, "service", "close", b"", 1011, "again", ""),
        (1, "service", "text", created, 0, "", ""),
        (1, "service", "close", b"", 0, "", "eof"),
    ]


def test_messages_of_gemini_live(tmp_path):
    """Its service sends JSON in binary frames."""
    path = written(tmp_path, cassette(message("sent", SETUP), message("received", {"a": 1})))
    (session,) = read(path)
    assert session.url.endswith(".BidiGenerateContent")
    assert [one.kind for one in session.messages] == ["text", "binary"]


def test_messages_beside_exchanges(tmp_path):
    """The session has the number of its first message."""
    exchange = {
        "request": {"method": "GET", "uri": "https://api.example.com/v1"},
        "response": {"status": {"code": 200}},
    }
    path = written(tmp_path, cassette(exchange, message("sent", SETUP)))
    assert [one.source.rpartition("#")[2] for one in read(path)] == ["1", "2"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (
            message("sent", {"type": "hello"}),
            "its messages are those of no API whose path is known",
        ),
        ({"kind": "message", "direction": "up"}, "its message 1 has no direction with data"),
    ],
)
def test_messages_that_cannot_be_placed(tmp_path, entry, reason):
    path = written(tmp_path, cassette(entry))
    assert read(path) == [Unread(f"{path}#1", reason)]


# cassetter


def frame(direction, kind, body, offset=0):
    return {"direction": direction, "frame_type": kind, "body": body, "offset_ms": offset}


def test_frames_of_cassetter(tmp_path):
    """As version 0.16 writes them."""
    frames = [
        frame("send", "text", {"type": "text", "content": '{"a": 1}'}),
        frame("recv", "text", {"type": "json", "content": {"price": 42.5}}, 120),
        frame("recv", "binary", {"type": "binary", "content": "00ff"}, 121),
        frame("recv", "ping", {"type": "none"}, 122),
        frame("recv", "close", {"type": "binary", "content": "0fa1627965"}, 123),
    ]
    interaction = {
        "uri": "wss://ws.example.com/stream?a=b",
        "headers": {"Origin": ["https://example.com"]},
        "frames": frames,
        "recorded_at": "2026-01-05T00:00:00Z",
    }
    value = {"version": 1, "interactions": [], "ws_interactions": [interaction]}
    path = written(tmp_path, value)
    (session,) = read(path)
    assert session == SocketSession(
        "https://ws.example.com/stream?a=b",
        (("origin", "https://example.com"),),
        101,
        (),
        (
            SocketMessage(0, 0, "client", "text", b'{"a": 1}'),
            SocketMessage(120_000, 0, "service", "text", b'{"price":42.5}'),
            SocketMessage(121_000, 0, "service", "binary", b"\x00\xff"),
            SocketMessage(122_000, 0, "service", "ping"),
            SocketMessage(123_000, 0, "service", "close", code=4001, reason="bye"),
        ),
        at=1767571200.0,
        source=f"{path}#1",
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"frames": None}, "it is no WebSocket: it has no 'uri' with 'frames'"),
        ({"uri": "[FILTERED]"}, "'[FILTERED]' is no URL of a service"),
        ({"frames": [{"direction": "send"}]}, "a frame has no direction, frame_type and body"),
        (
            {"frames": [frame("send", "binary", {"type": "binary", "content": "xy"})]},
            "the body is not hexadecimal as it says",
        ),
    ],
)
def test_frames_that_cannot_be_read(tmp_path, change, reason):
    interaction = {"uri": "wss://ws.example.com/", "frames": [], **change}
    value = {"version": 1, "interactions": [], "ws_interactions": [interaction]}
    (unread,) = read(written(tmp_path, value))
    assert unread.reason.startswith(reason)


# HTTP archives


def archive(**entry):
    opening = {
        "_resourceType": "websocket",
        "startedDateTime": "2026-01-05T00:00:00.500Z",
        "request": {"method": "GET", "url": "wss://ws.example.com/v1/x?a=b", "headers": []},
        "response": {
            "status": 101,
            "headers": [{"name": "Sec-WebSocket-Protocol", "value": "realtime"}],
        },
    }
    return {"log": {"entries": [{**opening, **entry}]}}


def test_messages_in_an_archive(tmp_path):
    """As Chrome saves them: times since 1970, binary data in base64."""
    messages = [
        {"type": "send", "time": 1767571200.75, "opcode": 1, "data": "Zürich"},
        {"type": "receive", "time": 1767571201.0, "opcode": 2, "data": "AP8="},
        {"type": "receive", "time": 1767571202.0, "opcode": 8, "data": "bye", "code": 1001},
    ]
    path = written(tmp_path, archive(_webSocketMessages=messages), "a.har")
    (session,) = read(path)
    assert session.url == "https://ws.example.com/v1/x?a=b"
    assert session.headers == (("sec-websocket-protocol", "realtime"),)
    assert session.messages == (
        SocketMessage(250_000, 0, "client", "text", "Zürich".encode()),
        SocketMessage(500_000, 0, "service", "binary", b"\x00\xff"),
        SocketMessage(1_500_000, 0, "service", "close", code=1001, reason="bye"),
    )


def test_times_that_count_from_the_first_message(tmp_path):
    messages = [{"type": "send", "time": at, "opcode": 1, "data": ""} for at in (7.5, 8)]
    (session,) = read(written(tmp_path, archive(_webSocketMessages=messages), "a.har"))
    assert [one.at for one in session.messages] == [0, 500_000]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({}, "it is a WebSocket, and the archive has none of its messages"),
        (
            {"_webSocketMessages": [{"type": "send"}]},
            "a message of the WebSocket has no type, opcode and data",
        ),
        (
            {"_webSocketMessages": [{"type": "send", "opcode": 2, "data": "!"}]},
            "the body is not base64 as it says",
        ),
    ],
)
def test_an_archive_that_cannot_be_read(tmp_path, entry, reason):
    (unread,) = read(written(tmp_path, archive(**entry), "a.har"))
    assert unread.reason.startswith(reason)
    assert unread.request == "GET wss://ws.example.com/v1/x?a=***"


# Written


def test_a_session_becomes_a_scenario_once(tmp_path):
    """It is found again; imported a second time it is in the folder already."""
    path = written(tmp_path, cassette(message("sent", SETUP), message("received", {"a": 1})))
    folder = Folder(tmp_path / "recorded")
    (first,) = import_files([path], folder)
    assert (first.line.outcome, first.line.not_found) == ("neutral", "")
    assert "1 message of the client, 1 of the service" in str(first)
    (second,) = import_files([path], folder)
    assert second.line.description == "it is in the folder already"


def test_what_has_secrets_is_found_by_them(tmp_path):
    """As its client sends them again: in the URL and in messages, also one that it got before."""
    handle = "Cihyd2tlbjEyMzQ1Njc4OTBhYmNkZWZnaGlq"
    said = {"type": "x", "text": "mail anna@holm-mail.com", "key": "sk-proj-abcdefgh12345678ijkl"}
    frames = [
        frame("send", "text", {"type": "json", "content": said}),
        frame("recv", "text", {"type": "json", "content": {"newHandle": handle}}),
        frame("send", "text", {"type": "json", "content": {"handle": handle}}),
        frame("recv", "text", {"type": "text", "content": "anna@holm-mail.com"}),
    ]
    uri = "wss://ws.example.com/stream?key=AIzaSyDdI0hCZtE6vySjMm-WEfRq3CPzqKqqsHI&model=m"
    value = {"interactions": [], "ws_interactions": [{"uri": uri, "frames": frames}]}
    path = written(tmp_path, value)
    (result,) = import_files([path], Folder(tmp_path / "recorded"))
    assert not result.line.not_found
    texts = "".join(file.read_text() for file in (tmp_path / "recorded").glob("*.*"))
    assert not any(secret in texts for secret in (handle, "anna@", "abcdefgh1234", "AIzaSy"))


def test_responses_become_exchanges(tmp_path):
    """Also from a file: the messages are those of a conversation, which plays over HTTP."""
    created = {"id": "resp_1", "status": "in_progress", "output": [], "model": "m"}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    said = {**item, "content": [{"type": "output_text", "text": "Hello.", "annotations": []}]}
    events = [
        {"type": "response.created", "response": created},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": said},
        {
            "type": "response.completed",
            "response": {**created, "status": "completed", "output": [said]},
        },
    ]
    asked = {"type": "response.create", "model": "m", "input": "Hi"}
    frames = [frame("send", "text", {"type": "json", "content": asked})]
    frames += [frame("recv", "text", {"type": "json", "content": event}) for event in events]
    frames.append(frame("send", "text", {"type": "text", "content": "what?"}))
    interaction = {"uri": "wss://api.openai.com/v1/responses", "frames": frames}
    path = written(tmp_path, {"version": 1, "interactions": [], "ws_interactions": [interaction]})
    results = import_files([path], Folder(tmp_path / "recorded"))
    assert [result.line.outcome for result in results] == ["neutral", "skipped"]
    assert not results[0].line.not_found
    assert results[1].details.endswith("not kept: text")
    assert not results[1].line.is_missing


@pytest.mark.parametrize("what", ["edited", "unreadable"])
def test_what_is_not_found_again(tmp_path, what):
    """A scenario that a person changed does not play what was recorded, nor does a tape that is not
    whole."""
    path = written(tmp_path, cassette(message("sent", SETUP), message("received", {"a": 1})))
    (session,) = read(path)
    import_files([path], Folder(tmp_path / "recorded"))
    ending, old, new = ("yaml", "{a: 1}", "{a: 2}") if what == "edited" else ("jsonl", '"<"', "")
    (file,) = (tmp_path / "recorded").glob(f"*.{ending}")
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    (scenario,) = load([tmp_path / "recorded"])
    problem = not_found(Player([scenario]), session, scenario.name, 0, Session("again"))
    assert problem == f"its recording is not played: {what}"


def test_a_scenario_of_another_route(tmp_path):
    path = written(tmp_path, cassette(message("sent", SETUP), message("received", {"a": 1})))
    (session,) = read(path)
    import_files([path], Folder(tmp_path / "recorded"))
    (scenario,) = load([tmp_path / "recorded"])
    other = replace(session, url="/v1/realtime")
    problem = not_found(Player([scenario]), other, scenario.name, 0, Session("again"))
    assert problem == "no scenario answers its opening"


def test_a_client_that_sends_something_else(tmp_path):
    path = written(tmp_path, cassette(message("sent", SETUP), message("received", {"a": 1})))
    (session,) = read(path)
    import_files([path], Folder(tmp_path / "recorded"))
    (scenario,) = load([tmp_path / "recorded"])
    other = replace(session.messages[0], data=b'{"setup":{"model":"another"}}')
    changed = replace(session, messages=(other, session.messages[1]))
    problem = not_found(Player([scenario]), changed, scenario.name, 0, Session("again"))
    assert problem.startswith("a message of its client is refused: turn 1: setup.model")


@needs_corpus
def test_every_session_of_the_corpus(tmp_path):
    """All 22 sessions, and the 4 exchanges of the 3 cassettes beside them, are found again: a
    client that sends what was recorded gets what was recorded."""
    files = [CORPUS / "wires" / "websocket"]
    results = import_files(files, Folder(tmp_path))
    assert summary(results).startswith("26 exchanges: 26 neutral, 0 in part, 0 skipped; 26 scen")
    assert sum("WebSocket /" in str(result) for result in results) == 22
    tapes = [tape.read_text() for tape in tmp_path.glob("*.jsonl")]
    sessions = [tape for tape in tapes if tape.startswith('{"mockllm-tape":2')]
    assert len(sessions) == 22
    assert not [tape for tape in sessions if "REDACTED" in tape]
