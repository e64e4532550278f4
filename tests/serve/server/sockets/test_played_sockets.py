"""Scenarios on WebSockets: what clients of three libraries get, what they have to send, what the
journal and the verdict say where they do not, and tapes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from contextlib import contextmanager, suppress
from dataclasses import replace

import aiohttp
import pytest
from click.testing import CliRunner
from openai import OpenAI
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect

from mockllm.cli import main
from mockllm.play.replay.loading import load
from mockllm.play.tapes.socket_tape import dump_session
from mockllm.play.tapes.socket_turns import socket_turns
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Recorded, Scenario
from mockllm.scenario.route_model import RouteSpec
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.play.tapes.test_socket_tape import AUDIO, closed, said, session_of
from tests.serve.server.sockets.replaying import replay
from tests.timeouts import GIVE_UP

GREET = """
scenario: greet
route: GET api.example.com/v1/realtime
match: {query: {model: voice}}
socket: text
turns:
  - service:
      - json: {type: created}
  - client:
      - json: {type: update, session: {tone: kind}}
      - json: {type: go, item: {id: item_1}}
    service:
      - json: {type: going, item_id: item_1}
      - text: hello
      - base64: AAE=
  - client:
      - text: bye
    service:
      - close: {code: 4001, reason: enough}
"""
PATH = "/v1/realtime?model=voice"


@contextmanager
def dialled(served, path=PATH, **options):
    url = served.url.replace("http", "ws", 1) + path
    with connect(url, proxy=None, open_timeout=GIVE_UP, **options) as socket:
        yield socket


def send(socket, value):
    socket.send(json.dumps(value))


def entries(served, session="default"):
    return [
        (entry["turn"], entry["outcome"], entry["problems"]) for entry in served.journal(session)
    ]


def verdict(served, session="default"):
    return served.http.get("/_mockllm/verify", params={"session": session}).json()


def close_of(socket):
    """The code and the reason with which the server closes, after what else it sends."""
    with suppress(ConnectionClosedError):
        for _ in socket:
            pass
    return socket.close_code, socket.close_reason


def test_a_conversation(serve):
    """The service speaks first; what the client sends is answered with its own ids; a close is an
    entry; the opening and each turn are in the journal."""
    served = serve(GREET, speed=0)
    with dialled(served) as socket:
        assert json.loads(socket.recv(GIVE_UP)) == {"type": "created"}
        send(socket, {"type": "update", "session": {"tone": "kind", "more": 1}, "event_id": "e1"})
        send(socket, {"type": "go", "item": {"id": "mine-7"}})
        assert socket.recv(GIVE_UP) == '{"type":"going","item_id":"mine-7"}'
        assert socket.recv(GIVE_UP) == "hello"
        assert socket.recv(GIVE_UP) == b"\x00\x01"
        socket.send("bye")
        assert close_of(socket) == (4001, "enough")
    assert entries(served) == [
        (None, "played", []),
        (0, "played", []),
        (1, "played", []),
        (2, "played", []),
    ]
    sent = [json.loads(line) for line in served.journal()[2]["body"].splitlines()]
    assert [message["type"] for message in sent] == ["update", "go"]
    assert verdict(served)["verdict"] == "good"


def test_another_message_closes_with_the_field(serve):
    """The close has the field that differs, as much of it as a frame holds; journal and verdict
    have the message and the field; nothing that comes later is looked at."""
    served = serve(GREET, speed=0)
    with dialled(served) as socket:
        send(socket, {"type": "update", "session": {"tone": "rude" * 50}})
        code, reason = close_of(socket)
    assert code == 1008
    assert reason.startswith("turn 2: message.session.tone must be")
    assert len(reason.encode()) <= 123
    opening, first, refused = served.journal()
    assert (opening["outcome"], first["turn"]) == ("played", 0)
    assert refused["outcome"] == "invalid"
    assert json.loads(refused["body"])["session"] == {"tone": "rude" * 50}
    assert "session.tone" in refused["problems"][0]
    judged = verdict(served)
    assert (judged["verdict"], judged["invalid"]) == ("bad", [3])
    assert [entry["turn"] for entry in judged["unplayed"]] == [1, 2]


def test_a_client_that_leaves(serve):
    """What it has not sent is a mistake, also where no turn was played."""
    served = serve(GREET.replace("  - service:\n      - json: {type: created}\n", "", 1), speed=0)
    with dialled(served, "/s/early" + PATH):
        pass
    (_, (_, outcome, problems)) = entries(served, "early")
    assert outcome == "invalid"
    assert problems == [
        'greet: the client left before turn 1 of 2 turns, before it had sent type: "update"'
    ]
    served = serve(GREET, speed=0)
    with dialled(served, "/s/late" + PATH) as socket:
        socket.recv(GIVE_UP)
        send(socket, {"type": "update", "session": {"tone": "kind"}})
    assert [entry["turn"] for entry in verdict(served, "late")["unplayed"]] == [1, 2]
    assert entries(served, "late")[-1][2] == [
        'greet: the client left before turn 2 of 3 turns, before it had sent type: "go"'
    ]


def test_more_than_is_expected(serve):
    """A message after the last one is refused, and so is JSON in place of a text."""
    served = serve(GREET.replace("close: {code: 4001, reason: enough}", "text: ok"), speed=0)
    with dialled(served) as socket:
        send(socket, {"type": "update", "session": {"tone": "kind"}})
        send(socket, {"type": "go", "item": {}})
        socket.send("bye")
        socket.send("again")
        assert close_of(socket) == (1008, "no further message is expected")
    with dialled(served) as socket:
        socket.send("no JSON")
        code, reason = close_of(socket)
        assert (code, reason.startswith("turn 2: message:")) == (1008, True)


def test_what_is_not_found(serve):
    """Conditions choose a route; a plain request does not get a WebSocket's scenario; the error
    names the nearest."""
    served = serve(GREET.replace("/v1/realtime", "/voice"), speed=0)
    with pytest.raises(InvalidStatus) as caught, dialled(served, "/voice?model=other"):
        pass
    assert caught.value.response.status_code == 404
    assert b"greet: match.query" in caught.value.response.body
    assert served.http.get("/voice?model=voice").status_code != 200


REFUSED = """
scenario: limited
route: GET /live
socket: text
turns:
  - answer: {status: 429, headers: {retry-after: "1"}, text: slow down}
  - service: [{text: welcome}, {close: {}}]
  - client: [{text: hi}, {close: {}}]
  - service: [{text: again}, {close: {code: 0}}]
  - service: [{close: {code: 0, how: reset}}]
"""


def test_several_connections(serve):
    """An opening may be refused over HTTP; a close ends a connection, and the next one goes on;
    after the last one, the first one comes again."""
    served = serve(REFUSED, speed=0)
    for _ in range(2):
        with pytest.raises(InvalidStatus) as caught, dialled(served, "/live"):
            pass
        assert caught.value.response.status_code == 429
        assert caught.value.response.headers["retry-after"] == "1"
        with dialled(served, "/live") as socket:
            assert socket.recv(GIVE_UP) == "welcome"
            assert close_of(socket) == (1000, "")
        with dialled(served, "/live") as socket:
            socket.send("hi")
        with dialled(served, "/live") as socket:
            assert socket.recv(GIVE_UP) == "again"
            assert close_of(socket) == (1005, "")
        with dialled(served, "/live") as socket:
            assert close_of(socket) == (1006, "")
    assert verdict(served)["unplayed"] == []


def test_binary_frames_and_times(serve):
    """A service may send JSON in binary frames; pauses are played, and so is the one before a
    close."""
    text = """
scenario: slow
route: GET /live
socket: binary
turns:
  - service: [{json: {n: 1}}, {json: {n: 2}}, {close: {}}]
    timing: {at: [0, 40ms, 80ms]}
"""
    served = serve(text, speed=2)
    with dialled(served, "/live") as socket:
        assert [socket.recv(GIVE_UP) for _ in "12"] == [b'{"n":1}', b'{"n":2}']
        assert close_of(socket) == (1000, "")


# Tapes


def recorded(folder, *messages, edit=lambda text: text):
    """The scenarios of a folder with a session and its tape."""
    session = session_of(*messages)
    first, *others = socket_turns(session)
    turns = (replace(first, recorded=Recorded("live.jsonl")), *others)
    route = RouteSpec("GET", "/live", "api.example.com")
    scenario = Scenario("live", turns, route=route, socket="text")
    (folder / "live.yaml").write_text(edit(dump(scenario)), encoding="utf-8")
    (folder / "live.jsonl").write_bytes(dump_session(session))
    return session


@contextmanager
def played(folder, **options):
    """The URL of a server that plays a folder, and a function that gives its verdict."""
    with ServerThread(load([folder]), ServerOptions(**{"speed": 0, **options})) as thread:

        async def ask():
            async with aiohttp.ClientSession() as client:
                found = [
                    await (await client.get(f"{thread.url}/_mockllm/{what}")).json()
                    for what in ("verify", "journal")
                ]
                return found[0], found[1]["exchanges"]

        yield f"{thread.url.replace('http', 'ws', 1)}/live", lambda: asyncio.run(ask())


def sized(size):
    return json.dumps({"type": "append", "audio": "QUJD" * (size // 3)})


TALK = (
    said("service", '{"type": "hello", "session": {"id": "sess_1"} }', 5),
    said("client", '{"type": "update", "voice": "a", "event_id": "evt_1"}', 10),
    *[said("client", sized(45), 20 + n) for n in range(4)],
    said("service", '{"type": "call", "call_id": "call_%s"}' % ("0" * 8), 30),
    said(
        "client", '{"type": "result", "call_id": "call_%s", "item": {"id": "it_1"}}' % ("0" * 8), 40
    ),
    said("service", json.dumps({"type": "said", "delta": AUDIO, "item": "it_1"}), 50),
    closed("client", 1000),
)


def test_a_tape_is_played_byte_for_byte(tmp_path):
    """Spaces in JSON are those of the recording."""
    session = recorded(tmp_path, *TALK)
    with played(tmp_path) as (url, ask):
        assert replay(url, session) == []
        judged, journal = ask()
    assert judged["verdict"] == "good"
    assert not judged["remarks"]
    assert [entry["recorded"] for entry in journal] == ["", "exact", "exact", "exact"]
    assert '"audio":"<180 bytes in 4 messages>"' in journal[2]["body"]


async def _messages(url, sent, count):
    """What a client of aiohttp gets that sends all at once."""
    async with aiohttp.ClientSession() as client, client.ws_connect(url) as socket:
        for message in sent:
            await socket.send_str(message)
        got = [await socket.receive(GIVE_UP) for _ in range(count)]
        await socket.close()
        return got


def test_ids_audio_and_order(tmp_path):
    """A client makes up its own ids, cuts its audio as it likes and runs ahead; what the service
    made up has to come back; fields that are ignored do not count."""
    recorded(tmp_path, *TALK)
    sent = [
        sized(90),
        '{"type": "update", "voice": "b", "event_id": "mine"}',
        '{"type": "result", "item": {"id": "new_9"}, "call_id": "call_00000000"}',
        sized(60),
        sized(30),
    ]
    with played(tmp_path, ignore=("$.voice",)) as (url, ask):
        got = asyncio.run(_messages(url, sent, 3))
        assert json.loads(got[2].data) == {"type": "said", "delta": AUDIO, "item": "new_9"}
        judged, _ = ask()
        assert judged["verdict"] == "good"
        sent[2] = sent[2].replace("00000000", "00000001")
        got = asyncio.run(_messages(url, sent, 2))
        assert (got[1].data, got[1].extra) == (
            1008,
            'turn 3: call_id: "call_00000000" → "call_00000001"',
        )


IGNORING = """
scenario: ignoring
route: GET /live
match: {ignore: [$.voice]}
socket: text
turns:
  - client:
      - json: {type: update, voice: a}
    service:
      - json: {type: updated}
"""


def test_a_match_that_only_ignores(tmp_path):
    """A route of a WebSocket needs no condition to leave out what differs in each run."""
    (tmp_path / "ignoring.yaml").write_text(IGNORING)
    (scenario,) = load([tmp_path])
    assert dump(scenario).count("ignore: [$.voice]") == 1
    with played(tmp_path) as (url, ask):
        got = asyncio.run(_messages(url, ['{"type": "update", "voice": "b"}'], 1))
        assert json.loads(got[0].data) == {"type": "updated"}
        assert ask()[0]["verdict"] == "good"


def test_less_and_more_audio(tmp_path):
    """Too little keeps the answer back, and the journal says how much is missing; more than was
    recorded is a remark."""
    recorded(tmp_path, *TALK)
    update, result = TALK[1].data.decode(), TALK[7].data.decode()
    with played(tmp_path) as (url, ask):
        asyncio.run(_messages(url, [update, sized(90), sized(45)], 1))
        judged, journal = ask()
        assert "before it had sent 45 bytes of audio" in journal[-1]["problems"][0]
        assert judged["verdict"] == "bad"
    with played(tmp_path) as (url, ask):
        asyncio.run(_messages(url, [update, sized(90), sized(90), result, sized(45)], 3))
        judged, _ = ask()
        assert judged["verdict"] == "good"
        (remark,) = judged["remarks"]
        assert "audio: 180 bytes → 225 bytes" in remark["message"]


def test_an_edited_message_is_played_as_it_is_written(tmp_path):
    """The others stay those of the tape, also after one that was taken out."""

    def edit(text):
        lines = [line for line in text.splitlines() if "type: call," not in line]
        return (
            "\n".join(lines)
            .replace("item: it_1}", "item: it_1, new: 1}")
            .replace("    service:\n  - client", "  - client")
        )

    recorded(tmp_path, *TALK, edit=edit)
    result = TALK[7].data.decode()
    with played(tmp_path) as (url, ask):
        sent = [TALK[1].data.decode(), sized(90), sized(90), result]
        got = asyncio.run(_messages(url, sent, 2))
        assert got[0].data == TALK[0].data.decode()
        edited = json.loads(got[1].data)
        assert edited["new"] == 1
        assert edited["delta"] == "A" * 80
        _, journal = ask()
    assert {entry["recorded"] for entry in journal[1:]} == {"edited"}


def test_a_missing_tape_is_said(tmp_path):
    """Without its tape a session is played as it is written, and the log says why."""
    recorded(tmp_path, *TALK)
    scenarios = load([tmp_path])
    (tmp_path / "live.jsonl").write_bytes(b"no tape\n")
    with ServerThread(scenarios, ServerOptions(speed=0)) as thread:
        url = f"{thread.url.replace('http', 'ws', 1)}/live"
        with connect(url, proxy=None) as socket:
            assert socket.recv(GIVE_UP) == '{"type":"hello","session":{"id":"sess_1"}}'


REALTIME = """
scenario: spoken
route: GET /v1/realtime
socket: text
turns:
  - service:
      - json: {type: session.created, event_id: e1, session: {id: sess_1, type: realtime}}
  - client:
      - json: {type: session.update, session: {type: realtime, instructions: Be kind.}}
      - json: {type: input_audio_buffer.append, audio: <9600 bytes in 2 messages>}
      - json: {type: response.create}
    service:
      - json:
          type: response.output_audio.delta
          delta: <4800 bytes>
          event_id: e2
          response_id: r
          item_id: i
          output_index: 0
          content_index: 0
      - json: {type: response.done, event_id: e3, response: {id: r, output: []}}
"""


def test_openai_realtime(serve):
    """OpenAI's SDK for Python speaks with a session that a person wrote; audio of the service is
    silence."""
    served = serve(REALTIME, speed=0)
    client = OpenAI(api_key="test", base_url=f"{served.url}/v1")
    with client.realtime.connect(model="gpt-realtime") as connection:
        assert connection.recv().type == "session.created"
        connection.session.update(session={"type": "realtime", "instructions": "Be kind."})
        for _ in range(3):
            connection.input_audio_buffer.append(audio="AAAA" * 1600)
        connection.response.create()
        delta = connection.recv()
        assert delta.type == "response.output_audio.delta"
        assert delta.delta == "A" * 6400
        assert connection.recv().type == "response.done"
    assert verdict(served)["verdict"] == "good"
    assert "audio: 9600 bytes → 14400 bytes" in verdict(served)["remarks"][0]["message"]


def test_validate_reads_tapes(tmp_path):
    """`mockllm validate` accepts the tape of a WebSocket, and reports a broken one."""
    recorded(tmp_path, *TALK)
    run = CliRunner().invoke
    assert run(main, ["validate", os.fspath(tmp_path)]).exit_code == 0
    tape = tmp_path / "live.jsonl"
    tape.write_bytes(tape.read_bytes()[:-20])
    broken = run(main, ["validate", os.fspath(tmp_path)])
    assert broken.exit_code == 1
    assert "the tape ends here, with 9 of its 10 messages complete" in broken.output


CLIENT = """
import json, os
from websockets.sync.client import connect

url = os.environ["OPENAI_BASE_URL"].replace("http", "ws", 1) + "/realtime?model=voice"
with connect(url) as socket:
    socket.recv()
    socket.send(json.dumps({"type": "update", "session": {"tone": TONE}}))
    socket.send(json.dumps({"type": "go", "item": {"id": "mine"}}))
    for _ in range(3):
        socket.recv()
    socket.send("bye")
    for _ in socket:
        pass
"""


@pytest.mark.parametrize(("tone", "code"), [("kind", 0), ("rude", 1)])
def test_run_judges_a_client(tmp_path, tone, code):
    """`mockllm run` fails where a message is not the expected one, says the field, and passes where
    all are."""
    (tmp_path / "greet.yaml").write_text(GREET, encoding="utf-8")
    program = CLIENT.replace("TONE", repr(tone))
    program = (
        f"try:\n{textwrap.indent(program, '    ')}\nexcept Exception as error:\n    print(error)"
    )
    command = [sys.executable, "-m", "mockllm", "run", os.fspath(tmp_path), "--"]
    done = subprocess.run(
        [*command, sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=GIVE_UP,
    )
    assert done.returncode == code, done.stderr
    assert ("session.tone" in done.stderr) == bool(code)


def test_show_prints_messages(tmp_path):
    """`mockllm show` prints the messages of a turn, a line for each."""
    (tmp_path / "greet.yaml").write_text(GREET, encoding="utf-8")
    done = CliRunner().invoke(main, ["show", "greet", os.fspath(tmp_path), "--turn", "2"])
    assert done.output.endswith('{"type":"going","item_id":"item_1"}\nhello\n\x00\x01\n')
