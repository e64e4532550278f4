"""Turns of routes that call no model are played in order, from their tape or as written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mockllm.core.errors import ScenarioError
from mockllm.core.http import TimedBytes
from mockllm.core.later import NotDoneError, deferring
from mockllm.play.matching.fingerprint import route_digest
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.loading import load, loads
from mockllm.play.replay.route_player import RoutePlayer, route_answer
from mockllm.play.replay.sessions.exchange import Played
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import Tape, dump_tape
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Recorded, Scenario
from tests.entries import played_entry
from tests.play.tapes.making import Sent, changed, taped
from tests.play.tapes.turns import turn_of

BUSY = """
scenario: busy
route: POST /v1/embeddings
turns:
  - answer: {status: 503, headers: {Retry-After: "1"}, text: busy}
  - answer: {json: {data: [1, "é"]}}
"""


class Client:
    """Requests to a player, in one session."""

    def __init__(self, *scenarios: Scenario) -> None:
        self.player = RoutePlayer(scenarios)
        self.session = Session("default")
        self.exchange = played_entry(Played())

    def send(self, line: str, body: bytes = b"", **headers: str) -> HttpAnswer:
        """The answer to a request `METHOD /path?query`."""
        method, _, target = line.partition(" ")
        path, _, query = target.partition("?")
        request = RouteRequest(method, path, query, headers, body)
        answered = self.player.play(request, self.session)
        assert answered is not None
        self.exchange = played_entry(answered.played, body, method)
        return answered.answer


def body(answer: HttpAnswer) -> bytes:
    return b"".join(answer.data)


def test_turns_are_played_in_order_and_the_last_repeats() -> None:
    """Each request of a session gets the next turn; after the last one it gets the last again."""
    client = Client(*loads(BUSY))
    answers = [client.send("POST /v1/embeddings") for _ in range(3)]
    assert [answer.status for answer in answers] == [503, 200, 200]
    assert body(answers[1]) == body(answers[2]) == '{"data":[1,"é"]}'.encode()
    assert (client.exchange.scenario, client.exchange.turn) == ("busy", 1)
    assert client.exchange.outcome == "played"
    client.session = Session("other")
    assert client.send("POST /v1/embeddings").status == 503
    assert client.exchange.outcome == "error"


def test_turns_begin_again_if_the_scenario_says_so() -> None:
    """`then: restart`: the first turn follows the last one, as often as that comes."""
    client = Client(*loads(BUSY + "then: restart\n"))
    answers = [client.send("POST /v1/embeddings").status for _ in range(5)]
    assert answers == [503, 200, 503, 200, 503]
    assert (client.exchange.turn, client.exchange.outcome) == (0, "error")


def test_turns_that_were_not_played_are_counted() -> None:
    """A session knows which turns of a begun route were not played."""
    scenarios = loads(BUSY)
    client = Client(*scenarios)
    client.send("POST /v1/embeddings")
    by_name = {scenario.name: scenario for scenario in scenarios}
    assert list(client.session.unplayed_turns(by_name)) == [("busy", 1)]
    client.send("POST /v1/embeddings")
    assert list(client.session.unplayed_turns(by_name)) == []


@pytest.mark.parametrize(
    ("answer", "kind", "content"),
    [
        ("json: {a: 1}", "application/json", b'{"a":1}'),
        ("json: null", "application/json", b"null"),
        ("text: ö", "text/plain; charset=utf-8", "ö".encode()),
        ("base64: AP8=", "application/octet-stream", b"\x00\xff"),
        ("text: a, headers: {Content-Type: text/csv}", "text/csv", b"a"),
        ("status: 201", None, b""),
    ],
)
def test_bodies(answer: str, kind: str | None, content: bytes) -> None:
    """Each kind of body has its bytes and a content type, which `headers` may replace."""
    (scenario,) = loads(f"scenario: a\nroute: GET /x\nturns: [{{answer: {{{answer}}}}}]")
    found = route_answer(scenario.turns[0])
    assert body(found) == content
    assert dict(found.headers).get("content-type") == kind
    assert found.encoded.endswith(b"\r\ncontent-length: %d\r\n\r\n%b" % (len(content), content))


def test_an_answer_without_a_body_has_no_length() -> None:
    """Status 204 has neither body nor `content-length` (RFC 9110, section 8.6)."""
    (scenario,) = loads("scenario: a\nroute: DELETE /x\nturns: [{answer: {status: 204}}]")
    assert b"content-length" not in route_answer(scenario.turns[0]).encoded


def test_an_answer_may_be_late() -> None:
    """`timing.ttft` delays the answer as a whole."""
    (scenario,) = loads(
        "scenario: a\nroute: GET /x\nturns: [{answer: {text: a}, timing: {ttft: 20ms}}]"
    )
    assert route_answer(scenario.turns[0]).chunks == (TimedBytes(20_000, b"a"),)


def test_a_file_is_read_where_the_caller_decides(tmp_path: Path) -> None:
    """Who defers work gets the function that reads the file, and the answer afterwards."""
    text = "scenario: a\nroute: GET /speech\nturns: [{answer: {file: a.mp3}}]"
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "a.mp3").write_bytes(b"\0\1")
    player = RoutePlayer(load(tmp_path))
    session, request = Session("s"), RouteRequest("GET", "/speech", "", {})
    with pytest.raises(NotDoneError) as missing, deferring({}):
        player.play(request, session)
    assert session.played == {}
    content = missing.value.read()
    with deferring({missing.value.key: lambda: content}):
        answered = player.play(request, session)
    assert answered is not None
    answer = answered.answer
    assert body(answer) == b"\0\1"
    assert ("content-type", "audio/mpeg") in answer.headers


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    """An answer whose file was removed after loading is an error with the name of the file."""
    text = "scenario: a\nroute: GET /x\nturns: [{answer: {file: a.bin}}]"
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "a.bin").write_bytes(b"a")
    client = Client(*load(tmp_path))
    (tmp_path / "a.bin").unlink()
    with pytest.raises(ScenarioError, match=r"a\.bin:1:1: cannot be read: No such file"):
        client.send("GET /x")


# Recordings

BYTES = taped(
    api="",
    streamed=False,
    status=200,
    headers=(("content-type", "audio/mpeg"), ("x-request-id", "r1"), ("content-length", "4")),
    chunks=(TimedBytes(1000, b"\xff\xfb"), TimedBytes(2000, b"\x00\x01")),
    request=Sent("POST", "https://api.example/v1/audio/speech", (), b'{"input":"a"}'),
)


def record(folder: Path, name: str, tape: Tape, order: int = 0) -> None:
    """Writes a scenario that was recorded from the request of a tape."""
    sent = tape.exchange
    path = sent.url.removeprefix("https://api.example")
    (scenario,) = loads(
        f"scenario: {name}\nroute: {sent.method} {path}\nturns: [{{answer: {{text: x}}}}]"
    )
    turn = turn_of(tape, scenario.turns[0])
    found = route_digest(sent.method, path, "", "application/json", sent.request_body)
    recorded = Recorded(f"{name}.jsonl", request=found, order=order)
    written = replace(scenario, turns=(replace(turn, recorded=recorded),))
    (folder / f"{name}.yaml").write_text(dump(written))
    (folder / f"{name}.jsonl").write_bytes(dump_tape(tape))


def send(client: Client, text: str = "a") -> HttpAnswer:
    content = {"content-type": "application/json"}
    return client.send("POST /v1/audio/speech", b'{"input": "%b"}' % text.encode(), **content)


def test_a_tape_is_played_exactly(tmp_path: Path) -> None:
    """The recorded status, headers, bytes and times are played."""
    record(tmp_path, "speech", BYTES)
    client = Client(*load(tmp_path))
    answer = send(client)
    assert answer.chunks == BYTES.exchange.chunks
    assert set(BYTES.exchange.headers) - {("content-length", "4")} <= set(answer.headers)
    assert b"\r\ncontent-length: 4\r\n" in answer.head()
    assert (client.exchange.played.recorded, client.exchange.outcome) == ("exact", "played")


def test_equal_requests_get_their_recordings_in_order(tmp_path: Path) -> None:
    """Three recordings of one request are played one after the other, and the last one repeats,
    which the exchange reports."""
    for order, name in enumerate(("c", "a", "b")):
        tape = changed(BYTES, chunks=(TimedBytes(0, b"%d" % order),))
        record(tmp_path, name, tape, order)
    client = Client(*load(tmp_path))
    found = [(body(send(client)), client.exchange.played.repeated) for _ in range(4)]
    assert found == [(b"0", False), (b"1", False), (b"2", False), (b"2", True)]


def test_an_edited_answer_is_played_instead_of_its_tape(tmp_path: Path) -> None:
    """After a change of `answer` in the YAML, that is played, and the exchange has the reason."""
    record(tmp_path, "speech", BYTES)
    file = tmp_path / "speech.yaml"
    file.write_text(file.read_text().replace("base64: //sAAQ==", "text: edited"))
    client = Client(*load(tmp_path))
    assert body(send(client)) == b"edited"
    assert client.exchange.played.recorded == "edited"


def test_a_recorded_error_is_an_error(tmp_path: Path) -> None:
    """A recorded 404 is answered as it was, with the outcome `error`."""
    record(tmp_path, "speech", changed(BYTES, status=404))
    client = Client(*load(tmp_path))
    assert send(client).status == 404
    assert (client.exchange.outcome, client.exchange.played.recorded) == ("error", "exact")
