"""One exchange with a real service, as it was on the wire, and the file of the tape that keeps it.
Pure.

A tape has JSON lines, which people can read and `diff` can compare: a head, then a line for each
chunk, `[microseconds, "text"]`, or `[microseconds, {"base64": "..."}]` if the chunk is not UTF-8 by
itself (compressed, or cut inside a character).

    {"mockllm-tape": 1, "api": "chat", "streamed": true, "status": 200, "chunks": 2, ...}
    [412003,"data: {\\"id\\": ...}\\n\\n"]
    [431877,"data: [DONE]\\n\\n"]

The head has the number of chunks, so that a truncated file is detected. `at` is when the request
was sent, where that is known. `reason` and `trailers` are there only if the answer had an unusual
reason phrase, or trailer fields.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json.encoder import encode_basestring
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from mockllm.core.errors import Problem, RequestError, ScenarioError
from mockllm.core.http import TimedBytes
from mockllm.core.jsontext import compact, json_bytes
from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.play.agents.agent_requests import read_request
from mockllm.scenario.model import Api
from mockllm.wire.framing.content_coding import decompress
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.route_matching import Detected, answer_values, detect
from mockllm.wire.protocols.values import json_object, utf8_text

Cut = Literal["", "client", "stalled", "upstream", "chunk", "reset"]
"""How the connection ended before the end of the answer: the `client` closed it, also after
the upstream had sent nothing for a long time (`stalled`), or the `upstream` closed it (FIN), also
in the middle of an HTTP `chunk`, or `reset` it (RST); "" if the answer is complete."""

CUTS: Mapping[Cut, str] = {
    "client": "cut by the client",
    "stalled": "cut by the client after the upstream stalled",
    "upstream": "cut by the upstream",
    "chunk": "cut by the upstream in an HTTP chunk",
    "reset": "reset by the upstream",
}
"""The descriptions of incomplete answers."""

_Pairs = tuple[tuple[str, str], ...]


@record
class Captured:
    """A request and its answer, names of headers in lower case.

    Args:
        method: "" where the request is not known.
        url: of the upstream, with the query.
        chunks: the body as it arrived, not decompressed, in microseconds after the request.
        at: when the request came, in seconds since 1970; 0 where that is not known.
        source: the origin, for messages: a file and a number, or the proxy.
        reason: the reason phrase of the status line; None for the usual one of the status.
        hidden: eight bits of each value of the request that was hidden, after its place
            (`mockllm.play.matching.hidden`).
    """

    method: str
    url: str
    request_headers: tuple[tuple[str, str], ...]
    request_body: bytes
    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[TimedBytes, ...]
    cut: Cut = ""
    at: float = 0.0
    source: str = ""
    reason: str | None = None
    trailers: tuple[tuple[str, str], ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()

    @property
    def body(self) -> bytes:
        """The whole body, not decompressed."""
        return b"".join(chunk.data for chunk in self.chunks)

    @property
    def path(self) -> str:
        """The path of the URL."""
        return urlsplit(self.url).path

    @property
    def host(self) -> str:
        """The host of the URL, without its port."""
        return urlsplit(self.url).hostname or ""

    def header(self, name: str) -> str:
        """A header of the answer, by its name in lower case; "" if it has none."""
        return next((value for key, value in self.headers if key == name), "")

    def plain(self) -> Captured:
        """The same exchange with decompressed chunks, each with the data that it completes.

        Raises:
            WireError: an unknown content coding, or data that are not compressed with it.
        """
        plain = _decompress(self.headers, self.chunks, self.source)
        return self if plain is None else replace(self, headers=plain[0], chunks=plain[1])

    def plain_request(self) -> Captured:
        """The same exchange with the body of its request decompressed: some clients compress it.

        Raises:
            WireError: as `plain`.
        """
        sent = (TimedBytes(0, self.request_body),)
        plain = _decompress(self.request_headers, sent, self.source)
        if plain is None:
            return self
        body = b"".join(chunk.data for chunk in plain[1])
        return replace(self, request_headers=plain[0], request_body=body)


def _decompress(
    headers: _Pairs, chunks: tuple[TimedBytes, ...], source: str
) -> tuple[_Pairs, tuple[TimedBytes, ...]] | None:
    """Headers and chunks without their content coding; None if they have none."""
    coding = next((value for name, value in headers if name == "content-encoding"), "")
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return None
    others = tuple(pair for pair in headers if pair[0] != "content-encoding")
    return others, decompress(chunks, coding, source)


@record
class Tape:
    """An exchange as a file keeps it: all but `source`, and `at` in whole seconds.

    Args:
        api: the name of its protocol; "" if the exchange has no known protocol.
        streamed: whether the request was for a stream.
    """

    api: Api
    streamed: bool
    exchange: Captured


def detect_api(exchange: Captured) -> Detected:
    """The API of an exchange, with its path and query; never fails."""
    return detect(exchange.method, exchange.url, exchange.request_body)


def recorded_at(exchange: Captured) -> float | None:
    """When an exchange was recorded, in seconds since 1970: as its file says, or else its answer,
    in its header or as the service dates it; None where nothing does."""
    if exchange.at:
        return exchange.at
    with suppress(ValueError, OverflowError):
        return parsedate_to_datetime(exchange.header("date")).timestamp()
    protocol = detect_api(exchange).protocol
    paths = protocol.detect.created if protocol is not None else ()
    dates = (_date_in(value, path) for value in answer_values(exchange.body) for path in paths)
    return next(filter(None, dates), None)


def _date_in(value: Any, path: str) -> float | None:
    """The time at a path of an event or a body: in seconds, or as text."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, str):
        return seconds_of(value)
    # Larger numbers are milliseconds.
    return float(value) if type(value) in (int, float) and 0 < value < 1e11 else None


def request_of(exchange: Captured, found: Detected) -> Request:
    """The neutral request of an exchange of a known protocol.

    Raises:
        RequestError: its body is not a request of the protocol.
    """
    protocol = found.protocol
    assert protocol is not None
    body = json_object(exchange.request_body)
    if body is None:
        raise RequestError("the request is no JSON object")
    headers = {name.lower(): value for name, value in exchange.request_headers}
    return read_request(protocol, body, found.target, headers)


# The file of a tape

FORMAT_VERSION = 1
SOCKET_VERSION = 2
"""The version of a tape with the messages of a WebSocket (`socket_tape`)."""
MARK = "mockllm-tape"
"""The key in the first line that marks a file as a tape."""


def load_tape(data: bytes, name: str) -> Tape:
    """The tape in a file.

    Raises:
        ScenarioError: it is malformed or incomplete; the message names file and line.
    """
    first, lines = tape_lines(data)
    tape, count = load_head(first, name)
    check_count(lines, count, "chunks", name)
    chunks = [_chunk(line, name, number) for number, line in enumerate(lines[:-1], 2)]
    return replace(tape, exchange=replace(tape.exchange, chunks=tuple(chunks)))


def tape_lines(data: bytes) -> tuple[bytes, list[bytes]]:
    """The first line of a tape, with its end, and the others without theirs; the last of these is
    what follows the last line end."""
    first, end, rest = data.partition(b"\n")
    return first + end, rest.split(b"\n")


def check_count(lines: Sequence[bytes], count: int, of: str, name: str) -> None:
    """Checks that the lines after the head are as many as it counts.

    Raises:
        ScenarioError: the file was truncated, or goes on.
    """
    whole = len(lines) - 1
    if whole < count:
        raise broken_line(
            name, whole + 2, f"the tape ends here, with {whole} of its {count} {of} complete"
        )
    if whole > count or lines[-1]:
        raise broken_line(
            name, count + 2, f"the tape goes on here, after the {count} {of} that its head counts"
        )


def load_head(line: bytes, name: str) -> tuple[Tape, int]:
    """The tape of a first line, without chunks, and the number of its chunks.

    Raises:
        ScenarioError: it is not the first line of a tape.
    """
    head = json_line(line, name, 1)
    if not line.endswith(b"\n") or not isinstance(head, dict) or MARK not in head:
        raise broken_line(
            name, 1, f"is no tape; one begins with {{{json.dumps(MARK)}: {FORMAT_VERSION}, ...}}"
        )
    if head[MARK] != FORMAT_VERSION:
        if head[MARK] == SOCKET_VERSION:
            raise broken_line(name, 1, "is the tape of a WebSocket, and no answer to a request")
        message = f"is a tape of version {head[MARK]!r}, and this mockllm reads {FORMAT_VERSION}"
        raise broken_line(name, 1, f"{message}; update mockllm, or record the tape again")
    check_head(head, _head_fields(), _OPTIONAL, name)
    method, url, request_headers, request_body = _request(head.get("request"), name)
    exchange = Captured(
        method,
        url,
        request_headers,
        request_body,
        head["status"],
        pairs_of(head["headers"]),
        (),
        head["cut"],
        at=seconds_of(head.get("at", "")) or 0.0,
        source=f"{method} {urlsplit(url).path}",
        reason=head.get("reason"),
        trailers=pairs_of(head.get("trailers", [])),
        hidden=tuple(head.get("hidden", {}).items()),
    )
    return Tape(head["api"], head["streamed"], exchange), head["chunks"]


def check_head(
    head: Mapping[str, Any], fields: Mapping[str, Check], optional: Collection[str], name: str
) -> None:
    """Checks the fields of a first line.

    Raises:
        ScenarioError: one is not there, or no such value.
    """
    for key, (fits, expected) in fields.items():
        if key not in head and key in optional:
            continue
        if key not in head or not fits(head[key]):
            found = compact(head[key])[:60] if key in head else "nothing"
            raise broken_line(name, 1, f"{key!r} must be {expected}, got {found}")


def _request(value: Any, name: str) -> tuple[str, str, _Pairs, bytes]:
    """Method, URL, headers and body."""
    match value:
        case None:
            return "", "", (), b""
        case {"method": str(method), "url": str(url), "headers": headers, "body": body}:
            with suppress(TypeError, ValueError, RecursionError):
                data = bytes_of(body)
                if _is_headers(headers):
                    return method, url, pairs_of(headers), data
    raise broken_line(name, 1, "'request' must be {method, url, headers, body}")


def pairs_of(headers: list[list[str]]) -> _Pairs:
    """The headers of a head."""
    return tuple((name, value) for name, value in headers)


def _chunk(line: bytes, name: str, number: int) -> TimedBytes:
    match json_line(line, name, number):
        case [at, data] if type(at) is int and at >= 0:
            with suppress(TypeError, ValueError):
                return TimedBytes(at, bytes_of(data))
    expected = 'a chunk, [microseconds, "text"] or [microseconds, {"base64": "..."}]'
    raise broken_line(name, number, f"must be {expected}")


def bytes_of(written: Any) -> bytes:
    """The inverse of `written_bytes` and `_dump_body`; TypeError, ValueError: it is neither."""
    match written:
        case str():
            return written.encode()
        case {"base64": str(text)}:
            return base64.b64decode(text, validate=True)
        case {"json": value}:
            return json_bytes(compact(value))
    raise TypeError


def json_line(line: bytes, name: str, number: int) -> Any:
    """The value of a line.

    Raises:
        ScenarioError: it is no JSON.
    """
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        reason = f"{error.msg.lower()} at character {error.pos + 1}"
    except UnicodeDecodeError as error:
        reason = f"byte 0x{line[error.start]:02x} is not UTF-8"
    except RecursionError:
        reason = "it is nested too deeply"
    raise broken_line(name, number, f"is no line of JSON: {reason}")


def broken_line(name: str, line: int, message: str) -> ScenarioError:
    """The error about a line of a tape."""
    return ScenarioError([Problem(name, line, 1, "", message)])


Check = tuple[Callable[[Any], bool], str]
"""Whether a value is valid, and the description of valid values."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_TAG = re.compile(r"[0-9a-f]{2}")
_REASON = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


def _is_headers(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(isinstance(item, str) for item in pair)
        and _NAME.fullmatch(pair[0]) is not None
        and _VALUE.fullmatch(pair[1]) is not None
        for pair in value
    )


def _is_reason(value: Any) -> bool:
    return isinstance(value, str) and _REASON.fullmatch(value) is not None


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and seconds_of(value) is not None


def seconds_of(text: str) -> float | None:
    """A time with its zone, as seconds since 1970; None for any other text."""
    try:
        time = datetime.fromisoformat(text)
        return time.timestamp() if time.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _is_hidden(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(tag, str) and _TAG.fullmatch(tag) is not None for tag in value.values()
    )


def is_count(value: Any) -> bool:
    """Whether a value is a whole number that counts something."""
    return type(value) is int and value >= 0


def common_fields() -> dict[str, Check]:
    """The fields of every head."""
    return {
        "headers": (_is_headers, "a list of [name, value]"),
        "hidden": (_is_hidden, "a table of two hexadecimal digits"),
        "at": (_is_time, "a time such as 2026-01-31T12:00:00Z"),
    }


def _head_fields() -> dict[str, Check]:
    return common_fields() | {
        "api": (lambda value: value in ("", *PROTOCOLS), "one of " + ", ".join(PROTOCOLS)),
        "streamed": (lambda value: isinstance(value, bool), "true or false"),
        "status": (lambda value: type(value) is int and 200 <= value <= 599, "an HTTP status"),
        "cut": (
            lambda value: value in get_args(Cut),
            'one of "", "client", "stalled", "upstream", "chunk", "reset"',
        ),
        "chunks": (is_count, "a whole number"),
        "reason": (_is_reason, "a reason phrase"),
        "trailers": (_is_headers, "a list of [name, value]"),
    }


_OPTIONAL = frozenset(("reason", "trailers", "hidden", "at"))


# Writing


def dump_tape(tape: Tape) -> bytes:
    """The bytes of a tape's file."""
    exchange = tape.exchange
    first: dict[str, Any] = {
        MARK: FORMAT_VERSION,
        "api": tape.api,
        "streamed": tape.streamed,
        "status": exchange.status,
        "cut": exchange.cut,
        "chunks": len(exchange.chunks),
        "headers": exchange.headers,
    }
    if exchange.at >= 1:
        first["at"] = written_time(exchange.at)
    if exchange.reason is not None:
        first["reason"] = exchange.reason
    if exchange.trailers:
        first["trailers"] = exchange.trailers
    if exchange.hidden:
        first["hidden"] = dict(exchange.hidden)
    if exchange.method:
        first["request"] = {
            "method": exchange.method,
            "url": exchange.url,
            "headers": exchange.request_headers,
            "body": _dump_body(exchange.request_body),
        }
    lines = [compact(first), *[_dump_chunk(chunk) for chunk in exchange.chunks], ""]
    return json_bytes("\n".join(lines))


def written_time(at: float) -> str:
    """A time in seconds since 1970, as a head has it."""
    return f"{datetime.fromtimestamp(int(at), UTC):%Y-%m-%dT%H:%M:%SZ}"


def _dump_chunk(chunk: TimedBytes) -> str:
    """The line of a chunk, as `compact` writes it, in a third of the time: there may be many."""
    text = utf8_text(chunk.data)
    if text is None:
        return compact([chunk.at, written_bytes(chunk.data)])
    return f"[{chunk.at},{encode_basestring(text)}]"


def written_bytes(data: bytes) -> Any:
    """Bytes as JSON: their text, or base64 where they are not UTF-8."""
    text = utf8_text(data)
    return {"base64": base64.b64encode(data).decode()} if text is None else text


def _dump_body(body: bytes) -> Any:
    """A body as JSON, for people to read, if compact JSON has the same bytes."""
    try:
        value = json.loads(body)
        if json_bytes(compact(value)) == body:
            return {"json": value}
    except (ValueError, RecursionError):
        pass
    return written_bytes(body)
