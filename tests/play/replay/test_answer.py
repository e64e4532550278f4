"""HTTP answers: head, framing, times, and the errors of scenarios in the shape of each API."""

from __future__ import annotations

import json

import pytest

from mockllm.core.errors import RequestError
from mockllm.core.http import Target, TimedBytes
from mockllm.core.seeded import derive
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.compilation.http_answer import (
    HttpAnswer,
    bytes_answer,
    chunk,
    error_answer,
    error_at,
    http_error_answer,
    json_answer,
)
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Http, TurnSpec
from mockllm.scenario.part_model import ErrorSpec
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

PARTS = [TimedBytes(0, b"abc"), TimedBytes(5, b"x" * 17)]
HEADERS = [("content-type", "text/event-stream"), ("x-a", "é")]


def streamed(**options: object) -> HttpAnswer:
    return bytes_answer(200, HEADERS, PARTS, streamed=True, **options)  # type: ignore[arg-type]


def test_a_streamed_answer() -> None:
    """Head and body are encoded once: an HTTP chunk for each part, and the last one."""
    answer = streamed(id="i")
    assert answer.encoded == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-a: \xe9\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n11\r\nxxxxxxxxxxxxxxxxx\r\n0\r\n\r\n"
    )
    assert answer.chunks == tuple(PARTS)
    assert (answer.size, answer.id, answer.status) == (20, "i", 200)
    assert (answer.headers, answer.ending) == (tuple(HEADERS), "complete")
    assert chunk(b"") == b"0\r\n\r\n"


def test_an_answer_with_a_length() -> None:
    """What is not streamed has its length, and no chunks."""
    answer = bytes_answer(404, [], PARTS, streamed=False)
    assert answer.encoded == b"HTTP/1.1 404 Not Found\r\ncontent-length: 20\r\n\r\nabc" + b"x" * 17
    assert answer.id is None


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({}, [b"transfer-encoding: chunked"]),
        ({"close": True}, [b"transfer-encoding: chunked", b"connection: close"]),
        ({"http_1_0": True}, [b"connection: close"]),
        ({"http_1_0": True, "close": True}, [b"connection: close"]),
    ],
)
def test_the_head_of_a_stream(options: dict[str, bool], end: list[bytes]) -> None:
    """HTTP/1.0 has no chunks: there the end of the connection is the end of the body."""
    head = streamed().head(**options)
    assert head.endswith(b"\r\n\r\n")
    assert head[:-4].split(b"\r\n")[3:] == end


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({}, [b"content-length: 20"]),
        ({"close": True}, [b"content-length: 20", b"connection: close"]),
        ({"http_1_0": True}, [b"content-length: 20"]),
    ],
)
def test_the_head_of_an_answer_with_a_length(options: dict[str, bool], end: list[bytes]) -> None:
    """The connection may stay open, for HTTP/1.0 too."""
    head = bytes_answer(200, [], PARTS, streamed=False).head(**options)
    assert head[:-4].split(b"\r\n")[1:] == end


@pytest.mark.parametrize(
    ("status", "reason"),
    [(200, b"OK"), (429, b"Too Many Requests"), (529, b"Overloaded"), (599, b"Unknown")],
)
def test_the_status_line(status: int, reason: bytes) -> None:
    """The phrase of the status; 529 is what Anthropic sends."""
    head = bytes_answer(status, [], [], streamed=False).head()
    assert head.startswith(b"HTTP/1.1 %d %b\r\n" % (status, reason))


@pytest.mark.parametrize("parts", [PARTS, [TimedBytes(0, part.data) for part in PARTS], []])
@pytest.mark.parametrize("is_streamed", [True, False])
def test_other_headers(parts: list[TimedBytes], is_streamed: bool) -> None:
    """The answer is the one that is made with them: body, framing and ends are the same."""
    made = bytes_answer(200, HEADERS, parts, streamed=is_streamed)
    changed = made.with_headers({"x-a": "a longer value", "x-new": "1"})
    headers = [HEADERS[0], ("x-a", "a longer value"), ("x-new", "1")]
    assert changed == bytes_answer(200, headers, parts, streamed=is_streamed)
    assert made.with_headers({}) == made


def test_what_takes_time() -> None:
    """An answer leaves in one write, unless it is timed, segmented, or breaks the connection."""
    at_once = bytes_answer(200, [], PARTS[:1], streamed=True)
    assert (at_once.timed, at_once.segmented, at_once.takes_time) == (False, False, False)
    assert not at_once.closes_connection
    timed = streamed()
    assert (timed.timed, timed.takes_time, timed.closes_connection) == (True, True, False)
    segmented = bytes_answer(200, [], PARTS[:1], streamed=True, segmented=True)
    assert (segmented.timed, segmented.segmented, segmented.takes_time) == (False, True, True)
    closed = bytes_answer(200, [], PARTS[:1], streamed=True, ending="closed")
    assert (closed.timed, closed.takes_time, closed.closes_connection) == (False, True, True)
    assert closed.ending == "closed"


def test_a_json_answer() -> None:
    """Compact JSON with its type; headers may add to it or replace the type."""
    answer = json_answer(201, {"a": ["é"]}, {"x-b": "c"})
    assert answer.status == 201
    assert answer.headers == (("content-type", "application/json"), ("x-b", "c"))
    assert answer.chunks == (TimedBytes(0, '{"a":["é"]}'.encode()),)
    assert (answer.streamed, answer.timed) == (False, False)
    plain = json_answer(200, {}, {"content-type": "text/plain"})
    assert (plain.headers, plain.times) == ((("content-type", "text/plain"),), (0,))


def test_an_error_answer() -> None:
    """The body of the API, its headers, access from any page; a scenario's headers win."""
    error = RequestError("No.", status=429, type="t", code="c", param="p", retry_after=2.0)
    answer = error_answer(
        PROTOCOLS["chat"],
        error,
        "seed",
        headers=[("X-Request-ID", "mine"), ("x-extra", "1")],
    )
    expected = dict(PROTOCOLS["chat"].error_headers("seed", error))
    assert answer.status == 429
    assert dict(answer.headers) == {
        "content-type": "application/json",
        "access-control-allow-origin": "*",
        "access-control-expose-headers": "*",
        **expected,
        "x-request-id": "mine",
        "x-extra": "1",
    }
    assert "retry-after" in expected
    assert json.loads(answer.data[0]) == PROTOCOLS["chat"].error_body(error)
    other = error_answer(PROTOCOLS["chat"], RequestError("No.", status=429), "other")
    assert "retry-after" not in dict(other.headers)
    assert dict(other.headers)["x-request-id"] != expected["x-request-id"]


def test_an_error_in_the_form_of_a_target() -> None:
    """Gemini puts an error in place of an array into one; elsewhere it has its usual form."""
    answer = json_answer(429, {"error": 1}, {"x-a": "b"})
    array = Target(method="streamGenerateContent")
    wrapped = error_at(answer, PROTOCOLS["gemini"], array)
    assert (wrapped.status, wrapped.headers) == (429, answer.headers)
    assert wrapped.chunks == (TimedBytes(0, b'[{"error":1}]'),)
    assert b"content-length: 13\r\n" in wrapped.encoded
    assert error_at(answer, PROTOCOLS["chat"], array) is answer


# The HTTP errors of scenarios

SCENARIO = loads("scenario: s\nseed: 7\nturns: [{http: 429}, {http: 500}]")[0]


def played(http: Http, *, api: str = "chat", position: int = 0, attempt: int = 1) -> HttpAnswer:
    selection = Selection(SCENARIO, position, position)
    return http_error_answer(PROTOCOLS[api], TurnSpec(http=http), selection, attempt)


def text_of(answer: HttpAnswer) -> dict[str, object]:
    found = json.loads(answer.data[0])["error"]
    assert isinstance(found, dict)
    return found


@for_all(
    ("status", "message"),
    [
        (400, "The request was malformed."),
        (401, "Incorrect API key provided."),
        (403, "You do not have access to this resource."),
        (404, "The requested resource was not found."),
        (408, "The request timed out."),
        (409, "The request conflicts with another one."),
        (413, "The request is too large."),
        (422, "The request could not be processed."),
        (429, "Rate limit reached. Please try again later."),
        (500, "The server had an error while processing your request."),
        (502, "Bad gateway."),
        (503, "The service is temporarily overloaded."),
        (504, "The gateway timed out."),
        (529, "Overloaded."),
        (418, "I'm a Teapot"),
        (599, "Unknown"),
    ],
)
def test_the_usual_message_of_a_status(status: int, message: str) -> None:
    """What services send; for other statuses the phrase of HTTP."""
    answer = played(Http(status))
    assert answer.status == status
    assert text_of(answer)["message"] == message


def test_an_error_as_the_scenario_has_it() -> None:
    """Message, type and code of the scenario, each on its own; its headers and its delay."""
    error = Http(429, (("X-A", "b"),), 1_500_000, ErrorSpec("Mine", "t", "c"))
    answer = played(error)
    found = text_of(answer)
    assert (found["message"], found["type"], found["code"]) == ("Mine", "t", "c")
    headers = dict(answer.headers)
    assert (headers["x-a"], headers["retry-after"]) == ("b", "2")
    assert headers["retry-after-ms"] == "1500"
    only_code = Http(429, error=ErrorSpec(code="c"))
    found = text_of(played(only_code))
    assert found["message"] == "Rate limit reached. Please try again later."
    assert found["code"] == "c"
    assert "retry-after" not in dict(played(only_code).headers)


def test_a_delay_is_in_the_body_where_the_api_has_it() -> None:
    """Gemini's RetryInfo."""
    body = text_of(played(Http(429, retry_after=1_500_000), api="gemini"))
    assert "1.5s" in json.dumps(body)


def test_ids_of_errors_differ_by_turn_and_attempt() -> None:
    """Each failure has a request id of its own, the same in every process."""
    ids = {
        dict(played(Http(429), position=position, attempt=attempt).headers)["x-request-id"]
        for position in (0, 1)
        for attempt in (1, 2)
    }
    assert len(ids) == 4
    seed = derive("7", "s", 1, 2)
    error = RequestError("x", status=429)
    own = PROTOCOLS["chat"].error_headers(seed, error)
    answer = played(Http(429), position=1, attempt=2)
    assert dict(answer.headers)["x-request-id"] == own["x-request-id"]
