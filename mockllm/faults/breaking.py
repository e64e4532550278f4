"""Applies faults to an answer on its way: bytes, times and an ending go in and come out. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from mockllm.core.http_status import reason_phrase
from mockllm.core.text import json_bytes
from mockllm.core.timed_bytes import Ending, TimedBytes
from mockllm.errors import RequestError
from mockllm.faults.events import SeenEvent, seen_events
from mockllm.faults.garbling import garbled
from mockllm.faults.places import PlaceFinder, described, in_plain_body
from mockllm.faults.service_errors import error_frames
from mockllm.faults.transmission import Circumstances, Transmission
from mockllm.protocols.base import dumps
from mockllm.scenario.fault_model import Fault, Place, faults_text

ENDINGS: dict[str, Ending] = {
    "close": "closed",
    "reset": "reset",
    "chunk": "chunk",
    "orderly": "complete",
}
"""How an answer ends, by the parameter `end` of a fault."""

_TICK = 10_000
"""The least time between two pieces of an answer that drips, in microseconds."""


def break_answer(
    answer: Transmission, faults: tuple[Fault, ...], around: Circumstances
) -> Transmission:
    """The answer after faults, one after the other.

    A fault whose place does not come in the answer changes nothing; `missed` is why.
    """
    for fault in faults:
        answer = _FAULTS[fault.name](answer, fault, around)
    return replace(answer, faults=faults_text(faults))


def located(
    answer: Transmission, place: Place, around: Circumstances
) -> tuple[int | None, list[SeenEvent]]:
    """The byte of the body at which a place is, and the events of the stream.

    None: the place does not come in this answer. After a time: the bytes that are sent by then.
    """
    if place.kind == "time":
        return sum(len(part.data) for part in answer.parts if part.at <= place.number), []
    body = answer.body
    if not answer.streamed:
        at = in_plain_body(place, body)
        return (at if at <= len(body) else None), []
    events = seen_events(around.protocol, body)
    finder = PlaceFinder(place, around.call_names)
    found = finder.begin()
    for event in events:
        if found is not None:
            break
        found = finder.see(event, body[event.begin : event.end])
    found = finder.end() if found is None else found
    return (None if found is None or found > len(body) else found), events


def _missed(answer: Transmission, fault: Fault, reason: str) -> Transmission:
    return replace(answer, missed=f"{fault}: {reason}")


def _no_place(answer: Transmission, place: Place, events: Sequence[SeenEvent]) -> str:
    size = f"{answer.size} bytes" + (f" and {len(events)} events" if answer.streamed else "")
    return f"nothing is {described(place)}: the answer has {size}"


def _struck(answer: Transmission, at: int) -> int:
    return at if answer.struck is None else min(at, answer.struck)


def _ended(answer: Transmission, at: int, ending: Ending, *, end_at: int = 0) -> Transmission:
    """The answer up to a byte, and how it ends there."""
    cut = split_at(answer.parts, at)[0]
    length = answer.length
    if not answer.streamed and ending != "complete" and length is None:
        length = answer.size
    return replace(
        answer,
        parts=cut,
        ending="closed" if ending == "chunk" and not answer.streamed else ending,
        length=length,
        end_at=end_at,
        struck=_struck(answer, at),
    )


def split_at(
    parts: Sequence[TimedBytes], at: int
) -> tuple[tuple[TimedBytes, ...], tuple[TimedBytes, ...]]:
    """The parts before a byte of the body, and those from it on."""
    before: list[TimedBytes] = []
    for index, part in enumerate(parts):
        if at >= len(part.data):
            before.append(part)
            at -= len(part.data)
            continue
        rest = TimedBytes(part.at, part.data[at:])
        if at:
            before.append(TimedBytes(part.at, part.data[:at]))
        return tuple(before), (rest, *parts[index + 1 :])
    return tuple(before), ()


def _cross_origin(answer: Transmission) -> list[tuple[str, str]]:
    """The headers that a browser needs to show a page the answer in its place."""
    return [pair for pair in answer.headers if pair[0].startswith("access-control-")]


def _refuse(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    ending = ENDINGS[fault.text("end", "close")]
    return replace(answer, parts=(), ending=ending, has_head=False, struck=0)


def _cut(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    ending = ENDINGS[fault.text("end", "close")]
    place = fault.place
    assert place is not None
    timed = place.kind == "time"
    last = answer.parts[-1].at if answer.parts else 0
    if timed and place.number > max(last, answer.end_at):
        return _missed(answer, fault, f"the answer has ended by then, after {last / 1e6:g} s")
    found, events = located(answer, place, around)
    if found is None or (found == answer.size and ending == "complete" and not timed):
        return _missed(answer, fault, _no_place(answer, place, events))
    return _ended(answer, found, ending, end_at=place.number if timed else 0)


def _stall(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    pause = fault.get("for")
    place = fault.place or Place("before", name="headers")
    if place == Place("before", name="headers"):
        if not isinstance(pause, int):
            return replace(answer, parts=(), has_head=False, ending="open", struck=0)
        parts = tuple(TimedBytes(part.at + pause, part.data) for part in answer.parts)
        later = replace(answer, parts=parts, head_at=answer.head_at + pause, struck=0)
        return replace(later, end_at=answer.end_at + pause)
    found, events = located(answer, place, around)
    if found is None:
        return _missed(answer, fault, _no_place(answer, place, events))
    if not isinstance(pause, int):
        return _ended(answer, found, "open")
    before, after = split_at(answer.parts, found)
    parts = before + tuple(TimedBytes(part.at + pause, part.data) for part in after)
    end_at = answer.end_at + pause if answer.end_at or not after else 0
    return replace(answer, parts=parts, end_at=end_at, struck=_struck(answer, found))


def pace(fault: Fault) -> tuple[int, int]:
    """How an answer drips: bytes of a piece, and microseconds from one to the next."""
    each = fault.number("every") or 1_000_000 / fault.number("rate", 1)
    size = max(1, -(-_TICK // max(1, int(each)))) if each < _TICK else 1
    return size, round(each * size)


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
    return replace(answer, parts=parts, struck=0)


def _garble(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    what = fault.text("what", "json")
    number = fault.number("event", 0)
    changed, reason = garbled(answer, what, number, around.protocol)
    if changed is None:
        return _missed(answer, fault, reason)
    return replace(changed, struck=_struck(answer, changed.struck or 0))


def _error(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    kind = fault.text("kind", "overloaded")
    if not answer.streamed:
        return http_failure(answer, kind, around)
    place = fault.place or Place("before", name="first")
    found, events = located(answer, place, around)
    if found is None:
        return _missed(answer, fault, _no_place(answer, place, events))
    at = place.number if place.kind == "time" else 0
    # An error comes between two events.
    ends = (event.end for event in seen_events(around.protocol, answer.body))
    whole = max((end for end in ends if end <= found), default=0)
    before = split_at(answer.parts, whole)[0]
    body = b"".join(part.data for part in before)
    at = max(at, before[-1].at if before else 0)
    error = around.protocol.service_errors[kind].error
    data = error_frames(around, body, error)
    parts = (*before, TimedBytes(at, data))
    return replace(answer, parts=parts, ending="complete", struck=_struck(answer, len(body)))


def http_failure(answer: Transmission, kind: str, around: Circumstances) -> Transmission:
    """An error of the service as an HTTP answer."""
    protocol, failure = around.protocol, around.protocol.service_errors[kind]
    own = failure.error
    error = RequestError(own.message, status=failure.status, type=own.type, code=own.code)
    headers = {**protocol.error_headers(around.reply.seed, error, None)}
    body = json_bytes(dumps(protocol.error_body(error)))
    return Transmission(
        failure.status,
        (*headers.items(), *_cross_origin(answer)),
        (TimedBytes(0, body),),
        False,
        struck=0,
    )


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
    own = next((one for one in protocol.service_errors.values() if one.status == status), None)
    message = reason_phrase(status) + "." if own is None else own.error.message
    error = RequestError(
        message,
        status=status,
        type=None if own is None else own.error.type,
        code=None if own is None else own.error.code,
        retry_after=seconds if form == "service" else None,
    )
    headers = protocol.error_headers(
        around.reply.seed, error, seconds if form == "service" else None
    )
    body, kind = _error_body(fault.text("body", "json"), status, protocol.error_body(error))
    headers["content-type"] = kind
    if not kind:
        del headers["content-type"]
    if seconds is not None and form == "seconds":
        headers["retry-after"] = f"{seconds:g}"
    elif seconds is not None and form == "ms":
        headers["retry-after-ms"] = str(round(seconds * 1000))
    retry = fault.get("should_retry")
    if retry is not None:
        headers["x-should-retry"] = str(retry).lower()
    return Transmission(
        status,
        (*headers.items(), *_cross_origin(answer)),
        (TimedBytes(0, body),) if body else (),
        False,
        retry_at=wait if isinstance(wait, int) and form == "date" else None,
        struck=0,
    )


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


def _duplicate(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    return _moved(answer, fault, around, lambda first, _: (first, first))


def _reorder(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    return _moved(answer, fault, around, lambda first, second: (second, first))


def _moved(
    answer: Transmission,
    fault: Fault,
    around: Circumstances,
    move: Callable[[bytes, bytes], tuple[bytes, bytes]],
) -> Transmission:
    """The answer with an event and the one after it changed; of an event that is sent twice the
    next one stays."""
    number = fault.number("event", 2)
    if not answer.streamed:
        return _missed(answer, fault, "the answer is not streamed, so it has no events")
    body = answer.body
    events = seen_events(around.protocol, body)
    twice = fault.name == "duplicate"
    if number + (not twice) > len(events):
        return _missed(answer, fault, f"the answer has {len(events)} events")
    first = events[number - 1]
    before, rest = split_at(answer.parts, first.begin)
    second = first if twice else events[number]
    own, after = split_at(rest, second.end - first.begin)
    at = own[-1].at
    joined = b"".join(part.data for part in own)
    size = first.end - first.begin
    gap = second.begin - first.end if second is not first else 0
    between = joined[size : size + gap]
    if twice and body.lstrip().startswith(b"["):
        between = b","
    pieces = move(joined[:size], joined[size + gap :])
    moved = (pieces[0], between, pieces[1])
    parts = (*before, *(TimedBytes(at, piece) for piece in moved if piece), *after)
    return replace(answer, parts=parts, struck=_struck(answer, first.begin))


def _keepalive_closed(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    return replace(answer, idle_closed=True)


def _redirect(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    if around.redirected:
        return _missed(answer, fault, "the request follows this redirect")
    status = fault.number("status", 307)
    prefix = _SESSION.match(around.path)
    end = 0 if prefix is None else prefix.end()
    to = around.path[:end] + ("" if fault.get("circle") else REDIRECTED) + around.path[end:]
    return Transmission(status, (("location", to), *_cross_origin(answer)), (), False, struck=0)


_SESSION = re.compile(r"/s/[^/]+(?=/)")
REDIRECTED = "/redirected"
"""The beginning of a path that a redirect led to."""


def _of_a_server(answer: Transmission, fault: Fault, around: Circumstances) -> Transmission:
    return _missed(answer, fault, "this is a fault of a server's connections, not of an answer")


_FAULTS: dict[str, Callable[[Transmission, Fault, Circumstances], Transmission]] = {
    "refuse": _refuse,
    "status": _status,
    "cut": _cut,
    "stall": _stall,
    "drip": _drip,
    "burst": _burst,
    "garble": _garble,
    "error": _error,
    "duplicate": _duplicate,
    "reorder": _reorder,
    "keepalive-closed": _keepalive_closed,
    "redirect": _redirect,
    "slow-accept": _of_a_server,
    "limit": _of_a_server,
}
