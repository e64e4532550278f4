"""Applies faults to an answer on its way: bytes, times and an ending go in and come out. Pure."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from mockllm.core.errors import RequestError
from mockllm.core.http import Ending, TimedBytes, reason_phrase
from mockllm.core.jsontext import json_bytes
from mockllm.play.faults.places import HEADERS, PlaceFinder, in_plain_body, no_place, seen_events
from mockllm.play.faults.strikes import (
    Strike,
    carrier_mismatch,
    end_of,
    error_kind,
    pace,
    place_of,
    socket_end,
    strike_of,
)
from mockllm.play.faults.transmission import Circumstances, Transmission, split_at
from mockllm.scenario.fault_model import Fault, Place, faults_text
from mockllm.wire.protocols.base import dumps, service_error


def break_answer(
    answer: Transmission, faults: tuple[Fault, ...], around: Circumstances
) -> Transmission:
    """The answer after faults, one after the other.

    A fault whose place the answer does not reach changes nothing; `missed` is why.
    """
    for fault in faults:
        reason = carrier_mismatch(fault, around.on_socket)
        if reason:
            answer = _with_miss(answer, fault, reason)
        else:
            answer = _FAULTS[fault.name](answer, fault, around)
    return replace(answer, faults=faults_text(faults))


def _with_miss(answer: Transmission, fault: Fault, reason: str) -> Transmission:
    return replace(answer, missed=f"{fault}: {reason}")


def _struck(answer: Transmission, at: int) -> int:
    return at if answer.struck is None else min(at, answer.struck)


def _refuse(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    return replace(answer, parts=(), ending=end_of(fault), has_head=False, struck=0)


def _at_place(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    """The answer with a fault that strikes at a place."""
    place = place_of(fault)
    if place == HEADERS:
        return _late_head(answer, strike_of(fault, around, b""))
    if fault.name == "error" and not answer.streamed:
        return http_failure(answer, error_kind(fault), around)
    at, reason = _locate(answer, fault, place, around)
    if reason:
        return _with_miss(answer, fault, reason)
    before, after = split_at(answer.parts, at)
    strike = strike_of(fault, around, answer.body[:at])
    struck, socket = _struck(answer, at), socket_end(answer.socket, fault)
    if strike.ending is None:
        end_at = answer.end_at + strike.pause if answer.end_at or not after else 0
        parts = before + _delay(after, strike.pause)
        return replace(answer, parts=parts, end_at=end_at, struck=struck, socket=socket)
    time = place.number if place.kind == "time" else 0
    due = max(time, before[-1].at if before else 0)
    own = (TimedBytes(due, strike.data),) if strike.data else ()
    ended = replace(answer, parts=before + own, end_at=time, struck=struck, socket=socket)
    return _with_ending(ended, strike.ending, answer.size)


def _locate(
    answer: Transmission, fault: Fault, place: Place, around: Circumstances
) -> tuple[int, str]:
    """The byte of the body at which a fault strikes, or why it does not."""
    if place.kind == "time":
        return _at_time(answer, fault, place, around)
    if not answer.streamed:
        at, missed = in_plain_body(place, answer.body), no_place(place, f"{answer.size} bytes")
    else:
        finder = _read(answer, place, around)
        at, missed = finder.position, finder.why_missed
        if at is not None and fault.name == "error":
            at = finder.between(at)
    if at is None or (at == answer.size and fault.get("end") == "orderly"):
        return 0, missed
    return at, ""


def _at_time(
    answer: Transmission, fault: Fault, place: Place, around: Circumstances
) -> tuple[int, str]:
    """The bytes that are sent by then."""
    last = answer.parts[-1].at if answer.parts else 0
    if fault.name == "cut" and place.number > max(last, answer.end_at):
        return 0, f"the answer has ended by then, after {last / 1e6:g} s"
    at = sum(len(part.data) for part in answer.parts if part.at <= place.number)
    return _read(answer, place, around).between(at) if fault.name == "error" else at, ""


def _read(answer: Transmission, place: Place, around: Circumstances) -> PlaceFinder:
    finder = PlaceFinder(place, around)
    finder.read(answer.body)
    finder.close()
    return finder


def _with_ending(answer: Transmission, ending: Ending, size: int) -> Transmission:
    """The end of the answer, whose body had so many bytes."""
    if answer.streamed:
        return replace(answer, ending=ending)
    length = size if ending != "complete" and answer.length is None else answer.length
    return replace(answer, ending="closed" if ending == "chunk" else ending, length=length)


def _late_head(answer: Transmission, strike: Strike) -> Transmission:
    """The answer of which nothing comes for a time, or ever."""
    if strike.ending is not None:
        return replace(answer, parts=(), has_head=False, ending=strike.ending, struck=0)
    parts = _delay(answer.parts, strike.pause)
    later = replace(answer, parts=parts, head_at=answer.head_at + strike.pause, struck=0)
    return replace(later, end_at=answer.end_at + strike.pause)


def _delay(parts: Iterable[TimedBytes], pause: int) -> tuple[TimedBytes, ...]:
    return tuple(TimedBytes(part.at + pause, part.data) for part in parts)


def _drip(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    size, gap = pace(fault)
    parts: list[TimedBytes] = []
    due = 0
    for part in answer.parts:
        for begin in range(0, len(part.data), size):
            due = max(due, part.at)
            parts.append(TimedBytes(due, part.data[begin : begin + size]))
            due += gap
    return replace(answer, parts=tuple(parts), struck=0)


def _burst(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    pause = fault.number("pause", 0)
    body = answer.body
    parts = (TimedBytes(pause, body),) if body else ()
    return replace(answer, parts=parts, head_alone=True, struck=0)


def _garble(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    """The answer with something that cannot be read."""
    protocol = around.protocol
    match fault.text("what", "json"):
        case "json":
            return _broken_json(answer, fault, around)
        case "content-type":
            return _with_type(answer, _HTML_TYPE)
        case "html":
            return _with_body(_with_type(answer, _HTML_TYPE), _PAGE)
        case "error":
            body = protocol.error_body(service_error(protocol, "server_error"))
            return _with_body(_with_type(answer, "application/json"), json_bytes(dumps(body)))
        case "gzip":
            return _broken_gzip(answer)
        case "opcode":
            return _reframe(answer, fault, around)
        case "checksum" | "prelude-checksum" as which:
            return _wrong_checksum(answer, fault, around, which.removesuffix("-checksum"))
    return _with_body(answer, b"")


def http_failure(answer: Transmission, kind: str, around: Circumstances) -> Transmission:
    """An error of the service as an HTTP answer."""
    protocol, error = around.protocol, service_error(around.protocol, kind)
    headers = protocol.error_headers(around.reply.seed, error)
    return _in_its_place(
        answer, error.status, headers, json_bytes(dumps(protocol.error_body(error)))
    )


def _in_its_place(
    answer: Transmission, status: int, headers: Mapping[str, str], body: bytes = b""
) -> Transmission:
    """Another answer, with what a browser needs to show it to a page."""
    shared = [pair for pair in answer.headers if pair[0].startswith("access-control-")]
    parts = (TimedBytes(0, body),) if body else ()
    return Transmission(status, (*headers.items(), *shared), parts, False, struck=0)


_HTML = """<html>
<head><title>{status} {reason}</title></head>
<body>
<center><h1>{status} {reason}</h1></center>
<hr><center>nginx</center>
</body>
</html>
"""


def _status(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    status = fault.number("status", 503)
    wait = fault.get("retry_after")
    form = fault.text("retry_form", "service")
    seconds = wait / 1_000_000 if isinstance(wait, int) else None
    protocol = around.protocol
    kinds = (kind for kind, own in protocol.service_errors.items() if own.status == status)
    kind = next(kinds, None)
    error = RequestError(reason_phrase(status) + ".", status=status)
    error = error if kind is None else service_error(protocol, kind)
    error.retry_after = seconds if form == "service" else None
    headers = protocol.error_headers(around.reply.seed, error)
    own = protocol.error_body(error)
    body, headers["content-type"] = _error_body(fault.text("body", "json"), status, own)
    if not body:
        del headers["content-type"]
    if seconds is not None and form == "seconds":
        headers["retry-after"] = f"{seconds:g}"
    elif seconds is not None and form == "ms":
        headers["retry-after-ms"] = str(round(seconds * 1000))
    retry = fault.get("should_retry")
    if retry is not None:
        headers["x-should-retry"] = str(retry).lower()
    retry_at = wait if isinstance(wait, int) and form == "date" else None
    return replace(_in_its_place(answer, status, headers, body), retry_at=retry_at)


def _error_body(form: str, status: int, own: object) -> tuple[bytes, str]:
    """The body of an error, and its content type."""
    reason = reason_phrase(status)
    match form:
        case "html":
            return _HTML.format(status=status, reason=reason).encode(), "text/html"
        case "empty":
            return b"", ""
        case "other":
            return dumps({"message": reason, "requestId": "0"}).encode(), "application/json"
    return json_bytes(dumps(own)), "application/json"


def _move_event(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    """The answer with an event twice, or after the next one."""
    number, twice = fault.number("event", 2), fault.name == "duplicate"
    if not answer.streamed:
        return _with_miss(answer, fault, "the answer is not streamed, so it has no events")
    body = answer.body
    events = seen_events(around.protocol, body, around.carrier)
    if number + (not twice) > len(events):
        return _with_miss(answer, fault, f"the answer has {len(events)} events")
    first = events[number - 1]
    second = first if twice else events[number]
    between = body[first.end : second.begin]
    if twice and body.lstrip().startswith(b"["):
        between = b","
    pieces = (body[second.begin : second.end], between, body[first.begin : first.end])
    before, rest = split_at(answer.parts, first.begin)
    own, after = split_at(rest, second.end - first.begin)
    moved = tuple(TimedBytes(own[-1].at, piece) for piece in pieces if piece)
    parts = (*before, *moved, *after)
    return replace(answer, parts=parts, struck=_struck(answer, first.begin))


def _reframe(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    """The answer with messages in several frames, or with the wrong opcode."""
    number = fault.number("event")
    events = seen_events(around.protocol, answer.body, around.carrier) if answer.streamed else []
    if number > max(len(events), 1):
        return _with_miss(answer, fault, f"the answer has {len(events)} events")
    socket = replace(answer.socket, opcode=number)
    if fault.name == "fragment":
        size = fault.number("bytes", 7)
        socket = replace(answer.socket, fragmented=number, fragment=size)
    begin = events[number - 1].begin if number and events else 0
    return replace(answer, socket=socket, struck=_struck(answer, begin))


def _keepalive_closed(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    return replace(answer, idle_closed=True)


def _redirect(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    if around.redirected:
        return _with_miss(answer, fault, "the request follows this redirect")
    status = fault.number("status", 307)
    prefix = _SESSION.match(around.path)
    end = 0 if prefix is None else prefix.end()
    to = around.path[:end] + ("" if fault.get("circle") else REDIRECTED) + around.path[end:]
    return _in_its_place(answer, status, {"location": to})


_SESSION = re.compile(r"/s/[^/]+(?=/)")
REDIRECTED = "/redirected"
"""The beginning of a path that a redirect led to."""


def _of_a_server(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    return _with_miss(answer, fault, "this is a fault of a server's connections, not of an answer")


_FAULTS: dict[str, Callable[[Transmission, Fault, Circumstances], Transmission]] = {
    "refuse": _refuse,
    "status": _status,
    "cut": _at_place,
    "stall": _at_place,
    "drip": _drip,
    "burst": _burst,
    "fragment": _reframe,
    "garble": _garble,
    "error": _at_place,
    "duplicate": _move_event,
    "reorder": _move_event,
    "keepalive-closed": _keepalive_closed,
    "redirect": _redirect,
    "slow-accept": _of_a_server,
    "limit": _of_a_server,
}


_HTML_TYPE = "text/html; charset=utf-8"
_PAGE = b"""<!DOCTYPE html>
<html>
<head><title>Sign in to this network</title></head>
<body><h1>Sign in</h1><p>You need to sign in before you can use this network.</p></body>
</html>
"""


def _with_body(answer: Transmission, body: bytes) -> Transmission:
    """The answer with another body, which comes when the first byte was due."""
    parts = (TimedBytes(answer.parts[0].at if answer.parts else 0, body),) if body else ()
    return replace(answer, parts=parts, streamed=False, struck=0, length=None)


def _with_type(answer: Transmission, value: str) -> Transmission:
    others = tuple(pair for pair in answer.headers if pair[0] != "content-type")
    return replace(answer, headers=(("content-type", value), *others), struck=0)


def _broken_json(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    """Without the last brace of an event (by its number from 1, else the last one with JSON), or of
    a body that is not streamed."""
    number, body = fault.number("event", 0), answer.body
    begin, end = 0, len(body)
    if answer.streamed:
        events = seen_events(around.protocol, body, around.carrier)
        objects = [event for event in events if event.data.startswith("{")]
        if number > len(events) or not objects:
            return _with_miss(answer, fault, f"the answer has {len(events)} events")
        event = events[number - 1] if number else objects[-1]
        begin, end = event.begin, event.end
    block = body[begin:end]
    payload = around.carrier.parts(block)["payload"] if answer.streamed else (0, end)
    at = block.rfind(b"}", *payload)
    if at < 0:
        return _with_miss(answer, fault, f"event {number} has no JSON object")
    broken = block[:at] + block[at + 1 :]
    if answer.streamed:
        broken = around.carrier.repair(broken)
    return _rewritten(answer, begin, block, broken)


def _wrong_checksum(
    answer: Transmission, fault: Fault, around: Circumstances, name: str
) -> Transmission:
    """With a wrong bit in the last byte of a part of a frame: of the first one, or of that of an
    event (by its number from 1)."""
    number, carrier = fault.number("event", 1), around.carrier
    events = seen_events(around.protocol, answer.body, carrier) if answer.streamed else []
    if number > len(events):
        return _with_miss(answer, fault, f"the answer has {len(events)} events")
    event = events[number - 1]
    block = answer.body[event.begin : event.end]
    part = carrier.parts(block).get(name)
    if part is None:
        return _with_miss(answer, fault, f"frames over {carrier.name} have no checksum")
    at = part[1] - 1
    broken = b"%b%c%b" % (block[:at], block[at] ^ 1, block[at + 1 :])
    return _rewritten(answer, event.begin, block, broken)


def _rewritten(answer: Transmission, begin: int, block: bytes, other: bytes) -> Transmission:
    """The answer with other bytes in place of a block, when its bytes were due."""
    before, rest = split_at(answer.parts, begin)
    own, after = split_at(rest, len(block))
    parts: list[TimedBytes] = []
    for part in own[:-1]:
        parts.append(TimedBytes(part.at, other[: len(part.data)]))
        other = other[len(part.data) :]
    if own:
        parts.append(TimedBytes(own[-1].at, other))
    changed = tuple(part for part in parts if part.data)
    return replace(answer, parts=(*before, *changed, *after), struck=_struck(answer, begin))


def _broken_gzip(answer: Transmission) -> Transmission:
    """The first half compressed, and then a block of a kind that there is not (RFC 1951, 3.2.3)."""
    body = answer.body
    packer = zlib.compressobj(wbits=31)
    data = packer.compress(body[: len(body) // 2]) + packer.flush(zlib.Z_SYNC_FLUSH) + b"\x07"
    due = answer.parts[-1].at if answer.parts else 0
    headers = (*answer.headers, ("content-encoding", "gzip"))
    parts = (TimedBytes(due, data),)
    return replace(answer, headers=headers, parts=parts, struck=0, length=None)
