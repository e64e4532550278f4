"""Recorded answers are replayed exactly: every byte, cut and time, status and header."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm import ServerOptions, ServerThread
from mockllm.checking.conversations.judge import verify
from mockllm.core.errors import ScenarioError
from mockllm.core.http import NO_TARGET, Target, TimedBytes
from mockllm.core.later import NotDoneError, deferring
from mockllm.play.replay.call import Answered, ApiCall
from mockllm.play.replay.compilation.http_answer import HttpAnswer, chunk
from mockllm.play.replay.compilation.tape_player import answer as recorded_answer
from mockllm.play.replay.loading import load, loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import Tape, dump_tape
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Recorded, Scenario
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.entries import played_entry
from tests.play.tapes.making import Sent, changed, taped
from tests.play.tapes.turns import turn_of
from tests.serve.server.test_server import http_chunks
from tests.timeouts import GIVE_UP

YAML = """
scenario: greeting
match: {user: hello}
turns:
  - reply: {text: Hi!, split: [H, i!]}
  - reply: {text: Again.}
"""
# No encoder of mockllm writes this: CR LF, a comment, unknown fields, a cut inside of é.
CHUNKS = (
    TimedBytes(1_000, b": OPENROUTER PROCESSING\r\n\r\n"),
    TimedBytes(2_500, b'data: {"id":"x1","provider":"?","choices":[{"delta":{"content":"H\xc3'),
    TimedBytes(2_500, b'\xa9"}}]}\r\n\r\n'),
    TimedBytes(4_000, b"data: [DONE]\r\n\r\n"),
)
STREAM = taped("chat", True, 200, (("content-type", "text/event-stream"),), CHUNKS)
BODY = taped(
    "chat",
    False,
    200,
    (("content-type", "application/json"), ("content-length", "9"), ("x-ratelimit", "3")),
    (TimedBytes(1_500, b'{"id": '), TimedBytes(2_000, b"1}")),
)


class Folder:
    """A folder with one scenario, in which turns are recorded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self, *tapes: Tape | None, text: str = YAML) -> tuple[Scenario, ...]:
        """Writes the scenario with what these tapes decode to as its turns, and loads it."""
        (scenario,) = loads(text)
        turns = list(scenario.turns)
        for index, tape in enumerate(tapes):
            if tape is not None:
                name = f"{scenario.name}.{index + 1}.jsonl"
                (self.path / name).write_bytes(dump_tape(tape))
                turns[index] = replace(turn_of(tape, turns[index]), recorded=Recorded(name))
        self.yaml.write_text(dump(replace(scenario, turns=tuple(turns))))
        return self.load()

    @property
    def yaml(self) -> Path:
        """The file of the scenario."""
        return self.path / "greeting.yaml"

    def load(self) -> tuple[Scenario, ...]:
        """The scenarios of the folder."""
        return load([self.path])


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty folder to record into."""
    return Folder(tmp_path)


@pytest.fixture(params=["at once", "elsewhere"], autouse=True, scope="module")
def tapes(request: pytest.FixtureRequest) -> Any:
    """Players read tapes themselves, or let their caller read them: each test runs in both ways."""
    Client.tapes = None if request.param == "at once" else {}


class Client:
    """One client of one player."""

    tapes: dict[Any, Any] | None = None

    def __init__(self, scenarios: tuple[Scenario, ...], **options: Any) -> None:
        self.player = Player(scenarios, **options)
        self.session = Session("s")

    def __call__(
        self, body: dict[str, Any], api: str = "chat", **headers: str
    ) -> tuple[HttpAnswer, Exchange]:
        sent = json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        tapes = None if self.tapes is None else dict(self.tapes)
        call = ApiCall(PROTOCOLS[api], NO_TARGET, named, sent, self.session)
        answered: Answered | None = None
        while answered is None:
            session, read = repr(self.session), len(tapes or ())
            try:
                with deferring(tapes):
                    answered = self.player.play(call)
            except NotDoneError as missing:
                assert tapes is not None, "a player that may read tapes reads them"
                tapes[missing.key] = outcome_of(missing.read)
                assert len(tapes) > read, "no tape is needed twice"
                assert repr(self.session) == session, "nothing was counted or noted"
        exchange = played_entry(answered.played, sent, target=NO_TARGET)
        self.session.record(exchange)
        return answered.answer, exchange


def outcome_of(read: Callable[[], object]) -> Callable[[], object]:
    """The result of reading a tape, or its error."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(read).result


def chat_body(*texts: str, **more: Any) -> dict[str, Any]:
    """The body of a Chat Completions request; user and assistant alternate in `texts`."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    return {"model": "m", "messages": messages, **more}


HELLO = chat_body("hello", stream=True)


def test_a_stream_is_replayed_exactly(folder: Folder) -> None:
    """Every byte, the cuts between the chunks, the time of each, and the service's headers are the
    same."""
    answer, exchange = Client(folder.record(STREAM))(HELLO)
    assert answer.chunks == CHUNKS
    assert answer.segmented
    assert answer.status == exchange.status == 200
    assert dict(answer.headers)["content-type"] == "text/event-stream"
    assert (exchange.outcome, exchange.played.recorded, exchange.problems) == (
        "played",
        "exact",
        (),
    )
    assert exchange.as_json()["recorded"] == "exact"


def test_turns_without_a_tape_play_their_reply(folder: Folder) -> None:
    """The journal does not mention a recording for them."""
    client = Client(folder.record(STREAM))
    answer, exchange = client(chat_body("hello", "Hé", "again", stream=True))
    assert b"Again." in b"".join(answer.data)
    assert exchange.played.recorded == ""


def test_a_cached_tape_gives_the_same_answer(folder: Folder) -> None:
    """The answer is the same when the tape was deleted meanwhile."""
    client = Client(folder.record(STREAM))
    first = client(HELLO)[0]
    (folder.path / "greeting.1.jsonl").unlink()
    for model in ("m", "another"):
        answer, exchange = client({**HELLO, "model": model})
        assert (answer, exchange.played.recorded) == (first, "exact")


def test_a_body_is_replayed_exactly(folder: Folder) -> None:
    """An answer that is not streamed has its bytes, its times and its length."""
    answer, exchange = Client(folder.record(BODY))(chat_body("hello"))
    assert answer.chunks == BODY.exchange.chunks
    assert not answer.streamed
    assert b"content-length: 9\r\n" in answer.head()
    assert b"x-ratelimit: 3\r\n" in answer.head()
    assert exchange.played.recorded == "exact"


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (429, (("retry-after", "7"), ("content-type", "application/json")), b'{"error": 1}'),
        (500, (("content-type", "text/html"),), b"<html>oh</html>"),
        (200, (("content-type", "application/json"),), b'{"error": {"code": 502}}'),
    ],
)
def test_errors_are_replayed_exactly(
    folder: Folder, status: int, headers: tuple[tuple[str, str], ...], body: bytes
) -> None:
    """Status, `retry-after` and body of an error are the service's, in whatever form."""
    tape = taped("chat", True, status, headers, (TimedBytes(10, body),))
    answer, exchange = Client(folder.record(tape))(HELLO)
    assert (answer.status, answer.data) == (status, (body,))
    assert set(headers) <= set(answer.headers)
    assert (exchange.outcome, exchange.status) == ("played" if status == 200 else "error", status)
    assert exchange.played.recorded == "exact"


def test_compression_is_kept(folder: Folder) -> None:
    """Compressed bytes are replayed with their `content-encoding`."""
    data = gzip.compress(b"".join(part.data for part in CHUNKS))
    headers = (("content-type", "text/event-stream"), ("content-encoding", "gzip"))
    timed = (TimedBytes(1, data[:20]), TimedBytes(2, data[20:]))
    answer, _ = Client(folder.record(taped("chat", True, 200, headers, timed)))(HELLO)
    assert answer.chunks == timed
    assert ("content-encoding", "gzip") in answer.headers


def test_headers_of_the_connection_are_not_replayed(folder: Folder) -> None:
    """Framing headers are the server's own; repeated headers stay repeated."""
    headers = (
        ("transfer-encoding", "chunked"),
        ("connection", "keep-alive"),
        ("vary", "a"),
        ("vary", "b"),
        ("access-control-allow-origin", "https://example.com"),
    )
    answer, _ = Client(folder.record(changed(STREAM, headers=headers)))(HELLO)
    assert answer.headers == headers[2:]


@given(st.lists(st.tuples(st.integers(0, 10**7), st.binary(max_size=9)), max_size=6))
def test_any_bytes_at_any_cuts_are_played(times: list[tuple[int, bytes]]) -> None:
    """Every recorded chunk is replayed, except those without bytes."""
    timed = tuple(TimedBytes(at, data) for at, data in times)
    answer = recorded_answer(changed(STREAM, chunks=timed).exchange)
    assert answer.chunks == tuple(part for part in timed if part.data)
    assert answer.encoded.partition(b"\r\n\r\n")[2] == (
        b"".join(chunk(part.data) for part in answer.chunks) + b"0\r\n\r\n"
    )


def test_empty_chunks_do_not_end_the_body(folder: Folder) -> None:
    """A chunk without bytes would end the body in HTTP; it is left out."""
    tape = changed(STREAM, chunks=(TimedBytes(0, b""), *CHUNKS))
    assert Client(folder.record(tape))(HELLO)[0].chunks == CHUNKS


@pytest.mark.parametrize(
    ("body", "api", "headers", "why"),
    [
        (chat_body("hello"), "chat", {}, "not streamed"),
        ({"model": "m", "input": "hello", "stream": True}, "responses", {}, "other api"),
        (HELLO, "chat", {"x_mockllm_quirk": "sse-crlf"}, "quirks"),
    ],
)
def test_other_requests_get_the_reply(
    folder: Folder, body: dict[str, Any], api: str, headers: dict[str, str], why: str
) -> None:
    """A request of another form than the recorded one gets the neutral reply, and the journal gives
    the reason."""
    client = Client(folder.record(STREAM))
    for _ in range(2):
        answer, exchange = client(body, api, **headers)
        assert b"H" in b"".join(answer.data)
        assert b"OPENROUTER" not in b"".join(answer.data)
        assert (exchange.outcome, exchange.played.recorded) == ("played", why)


def test_a_body_does_not_answer_a_streaming_request(folder: Folder) -> None:
    """A recording that is not a stream is not played as one."""
    answer, exchange = Client(folder.record(BODY))(HELLO)
    assert answer.data[0].startswith(b"data: ")
    assert exchange.played.recorded == "streamed"


def test_an_edited_reply_replaces_the_recording(folder: Folder) -> None:
    """The edited reply is played, and the journal reports the edit."""
    folder.record(STREAM)
    folder.yaml.write_text(folder.yaml.read_text().replace("text: Hé", "text: Ho!"))
    answer, exchange = Client(folder.load())(HELLO)
    assert b'"Ho!"' in b"".join(answer.data)
    assert exchange.played.recorded == "edited"


def test_an_edited_reply_takes_the_time_of_the_tape(folder: Folder) -> None:
    """Without times of its own its fragments are spread over the whole time of the tape; with
    `timing` it has those."""
    folder.record(STREAM)
    text = folder.yaml.read_text().replace("text: Hé", "text: Hello\n        split: 1")
    folder.yaml.write_text(text)
    answer, exchange = Client(folder.load())(HELLO)
    assert exchange.played.recorded == "edited"
    content = [
        at for at, data in zip(answer.times, answer.data, strict=True) if b'content":"' in data
    ]
    assert content[-5:] == [800, 1600, 2400, 3200, 4000]
    folder.yaml.write_text(text.replace("    recorded:", "    timing: {ttft: 7us}\n    recorded:"))
    answer, _ = Client(folder.load())(HELLO)
    assert set(answer.times) == {7}


@pytest.mark.parametrize("stream", [True, False])
def test_another_api_takes_the_time_of_the_tape(folder: Folder, stream: bool) -> None:
    """Its stream and its body end when the tape does."""
    body = {"model": "m", "input": "hello", "stream": stream}
    answer, exchange = Client(folder.record(STREAM))(body, "responses")
    assert exchange.played.recorded == "other api"
    assert answer.times[-1] == CHUNKS[-1].at


def test_an_edited_reply_has_the_fields_of_the_service(folder: Folder) -> None:
    """`extra` of its API; the tape is played while only they are edited."""
    folder.record(STREAM)
    text = folder.yaml.read_text()
    extra = (
        "    extra: {chat: {event: {provider: P}}, gemini: {event: {provider: G}}}\n    recorded:"
    )
    folder.yaml.write_text(text.replace("    recorded:", extra))
    assert Client(folder.load())(HELLO)[1].played.recorded == "exact"
    edited = folder.yaml.read_text().replace("text: Hé", "text: Ho!")
    folder.yaml.write_text(edited)
    answer, _ = Client(folder.load())(HELLO)
    events = [json.loads(data[6:]) for data in answer.data if data.startswith(b"data: {")]
    assert len(events) > 1
    assert {event["provider"] for event in events} == {"P"}


def test_edits_outside_the_reply_keep_the_recording(folder: Folder) -> None:
    """Conditions, attempts and other turns may be edited."""
    folder.record(STREAM)
    edited = folder.yaml.read_text().replace(
        "    recorded:", "    attempts: [{http: 503}]\n    request: {user: hello}\n    recorded:"
    )
    folder.yaml.write_text(edited.replace("Again.", "Once more."))
    client = Client(folder.load())
    first, busy = client(HELLO)
    assert (first.status, busy.outcome, busy.played.recorded) == (503, "error", "")
    answer, exchange = client(HELLO)
    assert answer.chunks == CHUNKS
    assert (exchange.played.attempt, exchange.played.recorded) == (2, "exact")


def test_requested_faults_strike_recorded_tries(folder: Folder) -> None:
    """A recorded try is played as the turn itself is: with the faults that the request asks for."""
    folder.record(STREAM)
    (folder.path / "try.jsonl").write_bytes(dump_tape(STREAM))
    tried = folder.yaml.read_text().replace(
        "    recorded:", "    attempts: [{recorded: try.jsonl}]\n    recorded:"
    )
    folder.yaml.write_text(tried)
    client = Client(folder.load())
    first, tries = client(HELLO, x_mockllm_fault="cut:after=20 bytes")
    assert (tries.played.recorded, tries.played.attempt) == ("exact", 1)
    assert (first.size, first.ending) == (20, "closed")
    assert first.data[0] == CHUNKS[0].data[:20]


@pytest.mark.parametrize("broken", [None, b"", b"{}\n", dump_tape(STREAM)[:-5]])
def test_an_unreadable_tape_is_reported(folder: Folder, broken: bytes | None) -> None:
    """A tape that is missing or broken after loading is replaced by the reply, with the reason in
    the journal."""
    scenarios = folder.record(STREAM)
    tape = folder.path / "greeting.1.jsonl"
    if broken is None:
        tape.unlink()
    else:
        tape.write_bytes(broken)
    answer, exchange = Client(scenarios)(HELLO)
    assert b"OPENROUTER" not in b"".join(answer.data)
    assert (exchange.outcome, exchange.played.recorded) == ("played", "unreadable")
    assert "greeting.1.jsonl" in exchange.problems[0]


def test_a_scenario_without_a_folder_has_no_tape(folder: Folder) -> None:
    """A scenario that was loaded from a text plays its reply."""
    folder.record(STREAM)
    _, exchange = Client(loads(folder.yaml.read_text()))(HELLO)
    assert exchange.played.recorded == "unreadable"


def test_variants_of_the_own_protocol_are_edits(folder: Folder) -> None:
    """`when` for another protocol keeps the recording; for its own protocol it is an edit."""
    folder.record(STREAM)
    text = folder.yaml.read_text()
    for api, why in (("gemini", "exact"), ("chat", "edited")):
        when = f"    when: {{api: {api}, finish: length}}\n    recorded:"
        folder.yaml.write_text(text.replace("    recorded:", when))
        assert Client(folder.load())(HELLO)[1].played.recorded == why


@pytest.mark.parametrize(("last", "turn"), [("then: restart", 0), ("    repeat: true", 1)])
def test_repeated_turns_replay_their_tapes(folder: Folder, last: str, turn: int) -> None:
    """With `restart` and `repeat` a later request gets the bytes of the turn that answers it."""
    again = changed(STREAM, chunks=(TimedBytes(3, b"data: again\n\n"),))
    client = Client(folder.record(STREAM, again, text=YAML + last + "\n"))
    answer, exchange = client(chat_body("hello", "a", "b", "c", "d", stream=True))
    assert exchange.played.position == 2
    assert answer.chunks == (STREAM, again)[turn].exchange.chunks


def test_a_recorded_response_can_be_continued(folder: Folder) -> None:
    """The service's id of the answer leads to the next turn, and can be looked up."""
    created = {"type": "response.created", "response": {"id": "resp_of_the_service"}}
    data = f"event: response.created\ndata: {json.dumps(created)}\n\n".encode()
    tape = taped(
        "responses", True, 200, (("content-type", "text/event-stream"),), (TimedBytes(1, data),)
    )
    client = Client(folder.record(tape))
    first = {"model": "m", "input": "hello", "stream": True}
    then = {"model": "m", "input": "more", "previous_response_id": "resp_of_the_service"}
    assert client(then, "responses")[1].outcome == "invalid"
    answer, exchange = client(first, "responses")
    assert (answer.data, exchange.played.recorded) == ((data,), "exact")
    answer, exchange = client(then, "responses")
    assert (exchange.scenario, exchange.turn) == ("greeting", 1)
    target = Target({"response_id": "resp_of_the_service"})
    call = ApiCall(PROTOCOLS["responses"], target, {}, b"", client.session)
    found = client.player.look_up(call, "response").answer
    assert json.loads(found.data[0])["id"] == "resp_of_the_service"


def test_a_recorded_response_can_be_continued_after_another_api(folder: Folder) -> None:
    """The id is known also where the tape was first read for a request over another API."""
    created = {"type": "response.created", "response": {"id": "resp_of_the_service"}}
    data = f"event: response.created\ndata: {json.dumps(created)}\n\n".encode()
    headers = (("content-type", "text/event-stream"),)
    client = Client(folder.record(taped("responses", True, 200, headers, (TimedBytes(1, data),))))
    assert client(HELLO)[1].played.recorded == "other api"
    assert client({"model": "m", "input": "hello", "stream": True}, "responses")[0].data == (data,)
    then = {"model": "m", "input": "more", "previous_response_id": "resp_of_the_service"}
    assert client(then, "responses")[1].turn == 1


@pytest.mark.parametrize(("id", "broken"), [("call_1", []), ("call_9", ["answer-each-once"])])
def test_the_results_of_a_continued_recording_are_checked(
    folder: Folder, id: str, broken: list[str]
) -> None:
    """The results must match the calls of the recorded answer."""
    created = {"type": "response.created", "response": {"id": "resp_of_the_service"}}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look"}
    added = {"type": "response.output_item.added", "output_index": 0, "item": call}
    done = {**added, "type": "response.output_item.done", "item": {**call, "arguments": "{}"}}
    data = "".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in (created, added, done)
    ).encode()
    tape = taped(
        "responses", True, 200, (("content-type", "text/event-stream"),), (TimedBytes(1, data),)
    )
    client = Client(folder.record(tape), strict=False)
    tools = [{"type": "function", "name": "look", "parameters": {}}]
    first = {"model": "m", "input": "hello", "stream": True, "tools": tools}
    result = {"type": "function_call_output", "call_id": id, "output": "42"}
    assert client(first, "responses")[1].played.recorded == "exact"
    client({**first, "input": [result], "previous_response_id": "resp_of_the_service"}, "responses")
    found = verify(client.session, client.player.served.by_name).violations
    assert [one.invariant for one in found] == broken


@for_all(
    ("then", "now", "status"),
    [
        ({"tools": []}, {"tools": []}, 200),
        ({"tools": []}, {"tools": [], "temperature": 0.5}, 200),
        ({}, {"tools": []}, 400),
        ({"tools": []}, {"temperature": 7}, 400),
        ({"tools": []}, {"messages": []}, 400),
        ({"temperature": 9}, {"temperature": 7}, 200),
    ],
)
def test_requests_that_the_recorded_service_accepted_are_accepted(
    folder: Folder, then: dict[str, Any], now: dict[str, Any], status: int
) -> None:
    """A request that OpenAI refuses is answered where the recorded service accepted the same
    deviation; other mistakes are refused."""
    request = Sent("POST", "http://odd/v1/chat/completions", (), json.dumps(HELLO | then).encode())
    client = Client(folder.record(changed(STREAM, request=request)))
    for _ in range(2):
        answer, exchange = client(HELLO | now)
        assert answer.status == status, exchange.problems
        assert exchange.played.recorded == ("exact" if status == 200 else "")
    found = verify(client.session, client.player.served.by_name).violations
    assert {one.invariant for one in found} == ({"request-valid"} if status == 400 else set())


def test_an_answer_that_broke_off_breaks_off(folder: Folder) -> None:
    """An answer that the upstream cut has no end of its body; one that the client cut has."""
    for cut, ending in (("upstream", "closed"), ("client", "complete"), ("", "complete")):
        answer, _ = Client(folder.record(changed(STREAM, cut=cut)))(HELLO)
        assert (answer.ending, answer.chunks) == (ending, CHUNKS)


# Over a socket


@pytest.fixture
def serve(folder: Folder) -> Callable[..., Any]:
    """Serves what is recorded with these tapes: `with serve(tape, speed=0) as server`."""
    return lambda *tapes, **options: ServerThread(folder.record(*tapes), ServerOptions(**options))


def exchanged(url: str, body: dict[str, Any], *, last: bool = True) -> tuple[bytes, bytes]:
    """Head and rest of a raw answer, until the server closes the connection."""
    data = json.dumps(body).encode()
    close = b"Connection: close\r\n" * last
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n"
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=GIVE_UP) as sock:
        sock.sendall(head % (close, len(data)) + data)
        got = b""
        while part := sock.recv(65536):
            got += part
    first, _, rest = got.partition(b"\r\n\r\n")
    return first, rest


@pytest.mark.parametrize("speed", [0, 1, 4])
def test_the_chunks_of_a_stream_arrive_unchanged(serve: Any, speed: float) -> None:
    """Each recorded chunk is one HTTP chunk, with and without the times between them."""
    with serve(STREAM, speed=speed) as server:
        head, rest = exchanged(server.url, HELLO)
        (exchange,) = server.server.sessions.get("default").journal
    assert head.startswith(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
    assert http_chunks(rest) == [part.data for part in CHUNKS]
    assert exchange.played.recorded == "exact"


def test_a_body_arrives_with_its_length(serve: Any) -> None:
    """A body with a `content-length` keeps it, and is sent when it is due."""
    with serve(BODY) as server:
        head, rest = exchanged(server.url, chat_body("hello"))
    assert b"\r\ncontent-length: 9\r\n" in head
    assert b"transfer-encoding" not in head
    assert rest == b'{"id": 1}'


def test_an_error_arrives_unchanged(serve: Any) -> None:
    """A 429 with `retry-after` reaches the client of a stream as the service sent it."""
    headers = (("retry-after", "7"), ("content-length", "2"))
    with serve(taped("chat", True, 429, headers, (TimedBytes(5, b"no"),))) as server:
        head, rest = exchanged(server.url, HELLO)
    assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\n")
    assert rest == b"no"


def test_a_recorded_list_of_errors_is_not_wrapped(folder: Folder) -> None:
    """Errors of Gemini's JSON streams are lists in the recording already."""
    headers = (("content-type", "application/json"),)
    error = (TimedBytes(1, b'[{"err'), TimedBytes(2, b'or": 1}]'))
    scenarios = folder.record(taped("gemini", True, 400, headers, error))
    path = "/v1beta/models/m:streamGenerateContent"
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}).encode()
    with ServerThread(scenarios, ServerOptions(strict=False)) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=GIVE_UP) as sock:
            sock.sendall(
                b"POST %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
                % (path.encode(), len(body), body)
            )
            got = b""
            while part := sock.recv(65536):
                got += part
    assert http_chunks(got.partition(b"\r\n\r\n")[2]) == [b'[{"err', b'or": 1}]']


@pytest.mark.parametrize("speed", [0, 1])
def test_a_cut_arrives_as_a_broken_body(serve: Any, speed: float) -> None:
    """The connection ends without the last chunk, and without `connection: close` in the head."""
    with serve(changed(STREAM, cut="upstream"), speed=speed) as server:
        head, rest = exchanged(server.url, HELLO, last=False)
    assert rest == b"".join(chunk(part.data) for part in CHUNKS)
    assert b"connection: close" not in head
    assert b"content-length" not in head


@pytest.mark.parametrize("speed", [0, 1])
@pytest.mark.parametrize("chunks", [CHUNKS, ()], ids=["some", "none"])
def test_a_cut_body_keeps_its_length(serve: Any, speed: float, chunks: Any) -> None:
    """A body that was shorter than its `content-length` is so again, also an empty one."""
    headers = (("content-length", "999"),)
    tape = changed(STREAM, cut="upstream", headers=headers, chunks=chunks)
    with serve(tape, speed=speed) as server:
        head, rest = exchanged(server.url, HELLO, last=False)
    assert rest == b"".join(part.data for part in chunks)
    assert b"content-length: 999" in head
    assert b"transfer-encoding" not in head


def test_a_cut_body_with_a_wrong_length(serve: Any) -> None:
    """Where the length would make the cut body a whole one, it is left out."""
    size = sum(len(part.data) for part in CHUNKS)
    tape = changed(STREAM, cut="upstream", headers=(("content-length", str(size)),))
    with serve(tape, speed=0) as server:
        head, rest = exchanged(server.url, HELLO, last=False)
    assert rest == b"".join(chunk(part.data) for part in CHUNKS)
    assert b"content-length" not in head


@pytest.mark.parametrize("speed", [0, 1])
def test_a_reset_is_a_reset_again(serve: Any, speed: float) -> None:
    """Where the service reset the connection, the client gets all bytes, and then a reset."""
    with serve(changed(STREAM, cut="reset"), speed=speed) as server:
        got, end = until_the_end(server.url, HELLO)
    assert got.partition(b"\r\n\r\n")[2] == b"".join(chunk(part.data) for part in CHUNKS)
    assert isinstance(end, ConnectionResetError)


def until_the_end(url: str, body: dict[str, Any]) -> tuple[bytes, OSError | None]:
    """The bytes of a raw answer, and the error with which its connection ended."""
    data = json.dumps(body).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=GIVE_UP) as sock:
        sock.sendall(head % len(data) + data)
        got = b""
        try:
            while part := sock.recv(65536):
                got += part
        except ConnectionResetError as error:
            return got, error
    return got, None


@pytest.mark.parametrize("speed", [0, 1])
def test_trailers_are_sent_again(serve: Any, speed: float) -> None:
    """The trailer fields follow the last chunk, and the `trailer` header announces them again."""
    tape = changed(
        STREAM,
        headers=(*STREAM.exchange.headers, ("trailer", "x-sum, x-two")),
        trailers=(("x-sum", "0abc"), ("x-two", "2")),
    )
    with serve(tape, speed=speed) as server:
        head, rest = exchanged(server.url, HELLO)
    assert rest.endswith(b"\r\n0\r\nx-sum: 0abc\r\nx-two: 2\r\n\r\n")
    assert b"\r\ntrailer: x-sum, x-two\r\n" in head


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        (None, b"HTTP/1.1 200 OK"),
        ("Quite Right", b"HTTP/1.1 200 Quite Right"),
        ("", b"HTTP/1.1 200 "),
    ],
)
def test_the_reason_phrase_is_sent_again(serve: Any, reason: str | None, line: bytes) -> None:
    """An unusual reason phrase, also an empty one, is in the status line again."""
    with serve(changed(STREAM, reason=reason), speed=0) as server:
        head, _ = exchanged(server.url, HELLO)
    assert head.split(b"\r\n")[0] == line


def test_an_answer_without_a_byte_can_be_cut(serve: Any) -> None:
    """A head without a body may be a cut answer; an empty answer is whole."""
    with serve(changed(STREAM, cut="upstream", chunks=())) as server:
        assert exchanged(server.url, HELLO, last=False)[1] == b""
    with serve(changed(STREAM, chunks=())) as server:
        assert exchanged(server.url, HELLO)[1] == b"0\r\n\r\n"


# Loading


def test_a_missing_tape_is_a_problem_of_the_file(folder: Folder) -> None:
    """The problem has line and column, and what to do."""
    folder.record(STREAM)
    (folder.path / "greeting.1.jsonl").unlink()
    with pytest.raises(ScenarioError) as caught:
        folder.load()
    line = folder.yaml.read_text().splitlines().index("    recorded: greeting.1.jsonl") + 1
    assert str(caught.value) == (
        f"{folder.yaml}:{line}:15: turns[0].recorded: 'greeting.1.jsonl' cannot be read: No such "
        "file or directory; put it there, or take the key away to play the reply"
    )


def test_a_tape_outside_of_the_folder_is_not_read(folder: Folder, tmp_path_factory: Any) -> None:
    """A link out of the folder, or a directory, is a problem."""
    folder.record(STREAM)
    tape = folder.path / "greeting.1.jsonl"
    outside = tmp_path_factory.mktemp("outside") / "tape.jsonl"
    tape.rename(outside)
    tape.symlink_to(outside)
    with pytest.raises(ScenarioError, match="is a link that leaves the folder"):
        folder.load()
    tape.unlink()
    tape.mkdir()
    with pytest.raises(ScenarioError, match="is not a regular file"):
        folder.load()


def test_a_tape_may_lie_below_the_folder(folder: Folder) -> None:
    """Tapes may be in a subfolder, which must not be a link out of the folder."""
    folder.record(STREAM)
    below = folder.path / "tapes"
    below.mkdir()
    (folder.path / "greeting.1.jsonl").rename(below / "a b.jsonl")
    text = folder.yaml.read_text().replace("greeting.1.jsonl", "tapes/a b.jsonl")
    folder.yaml.write_text(text)
    assert Client(folder.load())(HELLO)[0].chunks == CHUNKS
    away = folder.path.with_name(folder.path.name + "-away")
    below.rename(away)
    below.symlink_to(away)
    with pytest.raises(ScenarioError, match="is a link that leaves the folder"):
        load([folder.yaml])


def test_tapes_are_not_read_to_load(folder: Folder) -> None:
    """Loading only checks that a tape is there."""
    folder.record(STREAM)
    (folder.path / "greeting.1.jsonl").write_bytes(b"not a tape")
    (scenario,) = folder.load()
    assert scenario.turns[0].recorded == Recorded("greeting.1.jsonl")
    assert scenario.turns[0].recorded.path == str(folder.path / "greeting.1.jsonl")
