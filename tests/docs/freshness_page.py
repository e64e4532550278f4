"""Writes docs/freshness.md and the table of recorded fields: `python -m tests.docs.freshness_page`.

They are made from recorded traffic, which lies beside the checkout and is not part of it. With
folders, `python -m tests.docs.freshness_page FOLDER ...` prints the page of what these hold, and
then what mockllm sends that neither they nor the table have.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from itertools import product
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
from tests.wire.recorded_fields import (
    FORMS,
    NOTHING,
    TABLE,
    Exceptions,
    Form,
    by_form,
    read,
    unrecorded,
    write,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "freshness.md"

HEAD = """\
# How fresh the encoders are

What mockllm sends is compared here with what the services sent: each recorded answer with the one
that mockllm makes of its turn for the same request. Listed is each field that one sends and the
other does not, and each field that is present, null, empty (`""`, `[]`, `{}`) or absent in clearly
more answers of the one. `mockllm drift` makes the same comparison for
[your own recordings](drift.md).

Only answers of the service that defines an API count, not those of compatible ones. A field is
written without indexes; an object with a `type` has it in the path, `output[function_call].name`,
and a field of a stream has the type of its event beside it. Objects with a whole answer in the
events of a stream count as bodies. What only some answers have, such as fields of a service's own
tools, and what older recordings lack, is listed, too: nothing here was sorted by hand. An API
without a date has no recordings with one.

A test holds the encoders to the types: no field of an answer to the kit's scenarios has a type
(null is one) that no recording has, but for exceptions, each of which has a reason below.

`python -m tests.docs.freshness_page` makes this page from recorded traffic that is not part of the
project; where that is absent, the test of the page is skipped.
"""

_CLEARLY = 0.2
"""The difference of two shares from which on they are listed."""

_STATES = ("present", "null", "empty", "absent")


@dataclass
class Shares:
    """In how many answers a field is in which state, of those that have its object.

    Args:
        answers: how many have an object.
        having: how many have a field.
    """

    answers: Counter[JsonPlace] = field(default_factory=Counter)
    having: Counter[JsonPlace] = field(default_factory=Counter)
    states: Counter[tuple[JsonPlace, str]] = field(default_factory=Counter)
    parents: dict[JsonPlace, JsonPlace] = field(default_factory=dict)

    def add(self, shape: Shape) -> None:
        """Adds one answer."""
        self.answers.update(shape.objects.keys())
        for place, known in shape.fields.items():
            self.parents[place] = known.parent
            self.having[place] += 1
            states = {
                "present": known.count > known.null + known.empty,
                "null": known.null > 0,
                "empty": known.empty > 0,
            }
            self.states.update((place, name) for name, is_seen in states.items() if is_seen)

    def of(self, place: JsonPlace, parent: JsonPlace) -> tuple[float, ...]:
        """The shares of the states of a field; several can be in one answer."""
        count = self.answers[parent]
        seen = [self.states[place, name] / count for name in _STATES[:-1]]
        return (*seen, 1 - self.having[place] / count)


@dataclass
class Recordings:
    """The recorded answers of one API in one form."""

    shape: Shape = field(default_factory=Shape)
    encoded: Shape = field(default_factory=Shape)
    """Of the same turns, as mockllm writes them."""
    shares: Shares = field(default_factory=Shares)
    shares_sent: Shares = field(default_factory=Shares)
    events: set[str] = field(default_factory=set)
    count: int = 0
    newest: float = 0.0


Found = dict[Form, Recordings]


def page(found: Found) -> str:
    """The text of the page."""
    parts = [HEAD, _table(found)]
    parts += [_section(api, found) for api in PROTOCOLS if _of(api, found)]
    return "\n".join(parts)


def recordings(folders: Iterable[Path]) -> Found:
    """What the services sent, in the recordings below some folders."""
    found: Found = {}
    for exchange in _exchanges(folders):
        protocol = detect_api(exchange).protocol
        if protocol is not None and exchange.status == 200 and defines(protocol, exchange.url):
            _add(found, exchange, protocol)
    return found


def _exchanges(folders: Iterable[Path]) -> Iterator[Captured]:
    folders = tuple(folders)
    files = [file for folder in folders for file in sorted(folder.rglob("*.yaml"))]
    streams = [file for folder in folders for file in sorted(folder.rglob("*.sse"))]
    entries = (entry for file in files for entry in _read(file))
    dumps = (entry for file in streams for entry in sse_dump.read(ForeignFile(file)))
    for entry in (*entries, *dumps):
        if isinstance(entry, Captured):
            yield entry


def _read(file: Path) -> Iterable[object]:
    try:
        return vcr.read(ForeignFile(file))
    except MockLLMError:
        return ()  # sessions over WebSockets have a form of their own


def _add(found: Found, exchange: Captured, protocol: WireProtocol) -> None:
    try:
        plain = exchange.plain()
        request = request_of(plain, detect_api(plain))
        answer = answer_shape(plain, protocol, streamed=request.stream)
        again = _encoded(plain, protocol, request)
        sent = answer_shape(again, protocol, streamed=request.stream).shape
    except MockLLMError:
        return
    api, streamed = protocol.name, bool(answer.events)
    for form, shape in by_form(api, streamed=streamed, shape=answer.shape).items():
        of_form = found.setdefault(form, Recordings())
        of_form.shape.merge(shape)
        of_form.shares.add(shape)
    for form, shape in by_form(api, streamed=streamed, shape=sent).items():
        found[form].encoded.merge(shape)
        found[form].shares_sent.add(shape)
    own = found[api, streamed]
    own.events |= set(answer.events)
    own.count += 1
    own.newest = max(own.newest, recorded_at(plain) or 0.0)


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


def _of(api: str, found: Found) -> list[tuple[str, Recordings]]:
    forms = (("streams", True), ("bodies", False))
    return [(name, found[api, form]) for name, form in forms if (api, form) in found]


@cache
def known_shapes() -> dict[Form, Shape]:
    """What mockllm sends for the kit's scenarios, by API and form."""
    found: dict[Form, Shape] = {}
    for api, streamed in product(PROTOCOLS, FORMS):
        shape = known_shape(api, streamed=streamed).sent
        for form, part in by_form(api, streamed=streamed, shape=shape).items():
            found.setdefault(form, Shape()).merge(part)
    return found


def _table(found: Found) -> str:
    rows = ["| API | newest recording | streams | bodies |", "|---|---|---|---|"]
    for api, protocol in PROTOCOLS.items():
        newest = max((one.newest for _, one in _of(api, found)), default=0.0)
        date = f"{datetime.fromtimestamp(newest, UTC):%Y-%m-%d}" if newest else "not known"
        counts = [found[api, form].count if (api, form) in found else 0 for form in (True, False)]
        rows.append(f"| {protocol.address.title} | {date} | {counts[0]} | {counts[1]} |")
    return "\n".join(rows) + "\n"


def _section(api: str, found: Found) -> str:
    lines = [f"## {PROTOCOLS[api].address.title}", ""]
    for streamed, name in ((True, "stream"), (False, "plain answer")):
        if (api, streamed) not in found:
            continue
        own = found[api, streamed]
        known = Shape()
        known.merge(known_shapes()[api, streamed])
        known.merge(own.encoded)
        new = [*unknown_fields(known, own.shape), *unknown_kinds(known, own.shape)]
        gone = missing_fields(own.encoded, own.shape)
        events = sorted(own.events - known_shape(api, streamed=streamed).events)
        lines.append(f"{quantity(own.count, name)}:")
        lines.append("")
        lines.append(f"- The service sends, mockllm does not: {_list(new, events)}")
        lines.append(f"- mockllm sends, the service does not: {_list(gone, ())}")
        lines.append("")
        lines += _share_rows(own)
    lines += _exception_lines(api)
    return "\n".join(lines)


def _share_rows(own: Recordings) -> list[str]:
    """A table of the fields that both send, in states of clearly different shares."""
    rows = []
    for place, parent in sorted(own.shares.parents.items()):
        if place not in own.encoded.fields or not own.shares_sent.answers[parent]:
            continue
        recorded, sent = own.shares.of(place, parent), own.shares_sent.of(place, parent)
        if max(abs(a - b) for a, b in zip(recorded, sent, strict=True)) >= _CLEARLY:
            event = f" of `{place.event}`" if place.event else ""
            rows.append(f"| `{place.path}`{event} | {_shares(recorded)} | {_shares(sent)} |")
    head = ["| share of answers | recorded | sent |", "|---|---|---|"]
    return [*head, *rows, ""] if rows else []


def _shares(values: Sequence[float]) -> str:
    named = zip(_STATES, values, strict=True)
    return ", ".join(f"{name} {value:.0%}" for name, value in named if value)


def _exception_lines(api: str) -> list[str]:
    reasons = Exceptions().reasons(api)
    if not reasons:
        return []
    lines = ["Sent in a state that no recording has:", ""]
    lines += [f"- {reason} ({quantity(count, 'place')})" for reason, count in reasons.items()]
    return [*lines, ""]


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


def print_page(folders: Sequence[Path]) -> None:
    """Prints the page of other recordings, and what is sent that is recorded nowhere."""
    found = recordings(folders)
    print(page(found))
    table = read()
    for form, shape in known_shapes().items():
        if form in found:
            known = table.get(form, NOTHING).with_shape(found[form].shape)
            for one in unrecorded(form, shape, known):
                print(f"{form[0]}: {one}")


def main(folders: Sequence[Path]) -> None:
    """Writes page and table from the corpus, or prints what other folders show."""
    if folders:
        print_page(folders)
        return
    found = recordings([CORPUS])
    PAGE.write_text(page(found))
    TABLE.write_text(write({form: own.shape for form, own in found.items()}))


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
