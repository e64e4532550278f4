"""Writes docs/freshness.md: `python -m tests.docs.freshness_page`.

It is made from recorded traffic, which lies beside the checkout and is not part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from mockllm.conformance.drift.answers import answer_shape
from mockllm.conformance.drift.destinations import defines
from mockllm.conformance.drift.encoder_shapes import known_shape
from mockllm.conformance.drift.shapes import (
    JsonPlace,
    Shape,
    missing_fields,
    unknown_fields,
    unknown_kinds,
)
from mockllm.core.errors import MockLLMError
from mockllm.core.http import TimedBytes
from mockllm.core.request import Request
from mockllm.core.text import quantity
from mockllm.core.timeline import expand
from mockllm.core.turn import TokenUsage
from mockllm.play.tapes.captured import Captured, detect_api, recorded_at, request_of
from mockllm.play.tapes.recorded_turn import answer_carrier, recorded_turn
from mockllm.record.importers import sse_dump, vcr
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, WireProtocol, dumps
from tests.corpus import CORPUS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "freshness.md"

HEAD = """\
# How fresh the encoders are

What mockllm sends is compared here with what the services sent: for each API the newest recorded
answer, and each field that one sends and the other does not. `mockllm drift` makes the same
comparison for [your own recordings](drift.md).

Only answers of the service that defines an API count, not those of compatible ones. A field is
written without indexes; an object with a `type` has it in the path, `output[function_call].name`,
and a field of a stream has the type of its event beside it. What only some answers have, such as
fields of a service's own tools, is listed, too: nothing here was sorted by hand. An API without a
date has no recordings with one.

`python -m tests.docs.freshness_page` makes this page from recorded traffic that is not part of the
project; where that is absent, the test of the page is skipped.
"""


@dataclass
class Recordings:
    """The recorded answers of one API in one form."""

    shape: Shape = field(default_factory=Shape)
    encoded: Shape = field(default_factory=Shape)
    """Of the same turns, as mockllm writes them."""
    events: set[str] = field(default_factory=set)
    count: int = 0
    newest: float = 0.0


def page() -> str:
    """The text of the page."""
    found: dict[tuple[str, bool], Recordings] = {}
    for exchange in _exchanges():
        protocol = detect_api(exchange).protocol
        if protocol is not None and exchange.status == 200 and defines(protocol, exchange.url):
            _add(found, exchange, protocol)
    parts = [HEAD, _table(found)]
    parts += [_section(api, found) for api in PROTOCOLS if _of(api, found)]
    return "\n".join(parts)


def _exchanges() -> Iterator[Captured]:
    files = sorted(CORPUS.rglob("*.yaml"))
    entries = (entry for file in files for entry in _read(file))
    dumps = (
        entry
        for file in sorted(CORPUS.rglob("*.sse"))
        for entry in sse_dump.read(ForeignFile(file))
    )
    for entry in (*entries, *dumps):
        if isinstance(entry, Captured):
            yield entry


def _read(file: Path) -> Iterable[object]:
    try:
        return vcr.read(ForeignFile(file))
    except MockLLMError:
        return ()  # sessions over WebSockets have a form of their own


def _add(
    found: dict[tuple[str, bool], Recordings], exchange: Captured, protocol: WireProtocol
) -> None:
    try:
        plain = exchange.plain()
        request = request_of(plain, detect_api(plain))
        answer = answer_shape(plain, protocol, streamed=request.stream)
        again = _encoded(plain, protocol, request)
    except MockLLMError:
        return
    recordings = found.setdefault((protocol.name, bool(answer.events)), Recordings())
    recordings.shape.merge(answer.shape)
    recordings.encoded.merge(answer_shape(again, protocol, streamed=request.stream).shape)
    recordings.events |= set(answer.events)
    recordings.count += 1
    recordings.newest = max(recordings.newest, recorded_at(plain) or 0.0)


def _encoded(plain: Captured, protocol: WireProtocol, request: Request) -> Captured:
    """The exchange with the answer that mockllm makes of its turn for the same request."""
    recorded = recorded_turn(plain, protocol, streamed=request.stream)
    turn, options = recorded.turn.whole(), protocol.options(request)
    usage = turn.usage or TokenUsage(0, 0)
    reply = Reply("recorded", "0" * 40, recorded.model or request.model, options, usage)
    if answer_carrier(plain, protocol, streamed=request.stream) is None:
        body = dumps(protocol.encode_body(turn, reply))
        return replace(plain, chunks=(TimedBytes(0, body.encode("utf-8", "replace")),))
    encoder, carrier = protocol.encoder(turn, reply), protocol.carrier(options)
    frames = [frame for timed in expand(turn) for frame in encoder.encode(timed.event)]
    data = b"".join(carrier.encode(frame, protocol.line_end) for frame in frames)
    headers = tuple(pair for pair in plain.headers if pair[0] != "content-type")
    headers = (*headers, ("content-type", carrier.content_type))
    return replace(plain, headers=headers, chunks=(TimedBytes(0, data),))


def _of(api: str, found: dict[tuple[str, bool], Recordings]) -> list[tuple[str, Recordings]]:
    forms = (("streams", True), ("bodies", False))
    return [(name, found[api, form]) for name, form in forms if (api, form) in found]


def _table(found: dict[tuple[str, bool], Recordings]) -> str:
    rows = ["| API | newest recording | streams | bodies |", "|---|---|---|---|"]
    for api, protocol in PROTOCOLS.items():
        newest = max((one.newest for _, one in _of(api, found)), default=0.0)
        date = f"{datetime.fromtimestamp(newest, UTC):%Y-%m-%d}" if newest else "not known"
        counts = [found[api, form].count if (api, form) in found else 0 for form in (True, False)]
        rows.append(f"| {protocol.address.title} | {date} | {counts[0]} | {counts[1]} |")
    return "\n".join(rows) + "\n"


def _section(api: str, found: dict[tuple[str, bool], Recordings]) -> str:
    lines = [f"## {PROTOCOLS[api].address.title}", ""]
    for name, recordings in _of(api, found):
        known = known_shape(api, streamed=name == "streams")
        shape, sent = recordings.shape, Shape()
        sent.merge(known.sent)
        sent.merge(recordings.encoded)
        new = [*unknown_fields(sent, shape), *unknown_kinds(sent, shape)]
        gone = missing_fields(recordings.encoded, shape)
        events = sorted(recordings.events - known.events)
        kind = "stream" if name == "streams" else "plain answer"
        lines.append(f"{quantity(recordings.count, kind)}:")
        lines.append("")
        lines.append(f"- The service sends, mockllm does not: {_list(new, events)}")
        lines.append(f"- mockllm sends, the service does not: {_list(gone, ())}")
        lines.append("")
    return "\n".join(lines)


def _list(places: Iterable[JsonPlace], events: Iterable[str]) -> str:
    events_of: dict[str, list[str]] = {}
    for place in sorted(places, key=lambda place: place.path):
        events_of.setdefault(place.path, []).append(place.event)
    named = [f"`{path}`{_where(inside)}" for path, inside in events_of.items()]
    named += [f"the event `{event}`" for event in events]
    return ", ".join(named) + "." if named else "nothing."


def _where(events: list[str]) -> str:
    if events == [""]:
        return ""
    return f" of `{events[0]}`" if len(events) == 1 else f" of {len(events)} events"


if __name__ == "__main__":
    PAGE.write_text(page())
