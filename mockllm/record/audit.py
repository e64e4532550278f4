"""The audit of tests that replay cassettes by themselves, with vcrpy: whether they still send what
was recorded, and what their cassettes are worth. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from mockllm.core.errors import RequestError, WireError
from mockllm.core.record import record
from mockllm.core.text import quantity
from mockllm.play.matching.request_changes import changes_between
from mockllm.play.tapes.captured import Captured, detect_api, recorded_at, request_of
from mockllm.play.tapes.recorded_turn import answer_carrier, recorded_turn
from mockllm.play.tapes.socket_session import SocketSession
from mockllm.record.importers.reading import Entry, Unread
from mockllm.record.redaction.credentials import masked_url
from mockllm.record.redaction.redact import Redactor
from mockllm.scenario.model import Ignored
from mockllm.wire.protocols.values import json_value

_SHOWN = 3
"""Tests with other requests, and lines of each list, in the summary; further ones are counted."""

_DAY = 86400


@record
class Replay:
    """A recording that answered a request of a test.

    Args:
        number: of the recording in its cassette, from 1.
        request: its method and URL.
        changes: from the recorded request to that of the test, as lines.
        unread: why the two could not be compared; "" if they were.
    """

    cassette: str
    number: int
    request: str
    changes: tuple[str, ...] = ()
    unread: str = ""


@record
class StoredRecording:
    """A recording of a cassette.

    Args:
        at: when it was recorded, in seconds since 1970; None where nothing says so.
        flaw: why its answer is not whole; "" if it is, or if nobody can tell.
    """

    request: str
    at: float | None
    flaw: str


@record
class AuditedTest:
    """A test that opened a cassette.

    Args:
        outcome: `passed`, `failed` or `skipped`.
        reason: why it did not pass.
        refused: the requests that no recording answers, as VCR matches them.
    """

    test: str
    outcome: str
    reason: str
    cassettes: tuple[str, ...]
    replays: tuple[Replay, ...]
    refused: tuple[str, ...]

    @property
    def changed(self) -> tuple[Replay, ...]:
        return tuple(replay for replay in self.replays if replay.changes)


@record
class Audit:
    """The audit of a run.

    Args:
        now: when it was made, in seconds since 1970.
        cassettes: those that were opened, by their paths.
        unopened: the cassettes beside them that no test opened.
        remarks: what was not looked at, and why.
    """

    now: float
    tests: tuple[AuditedTest, ...]
    cassettes: Mapping[str, tuple[StoredRecording, ...]]
    unopened: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def replays(self) -> list[Replay]:
        return [replay for test in self.tests for replay in test.replays]

    @property
    def changed(self) -> list[AuditedTest]:
        """The tests that sent another request than was recorded."""
        return [test for test in self.tests if test.changed]

    @property
    def unrequested(self) -> list[tuple[str, StoredRecording]]:
        """The recordings that no test asked for, each with its place. Those of tests that did not
        pass are none: the rest of such a test may ask for them."""
        unfinished = {
            cassette
            for test in self.tests
            if test.outcome != "passed"
            for cassette in test.cassettes
        }
        played = {(replay.cassette, replay.number) for replay in self.replays}
        return [
            (place, recording)
            for cassette, number, place, recording in self._places()
            if cassette not in unfinished and (cassette, number) not in played
        ]

    @property
    def broken(self) -> list[tuple[str, StoredRecording]]:
        """The recordings with answers that break off, each with its place."""
        return [(place, one) for _, _, place, one in self._places() if one.flaw]

    @property
    def days(self) -> list[int]:
        """The ages of the recordings whose date is known, the oldest first."""
        dates = [one.at for _, _, _, one in self._places() if one.at is not None]
        return sorted((int((self.now - at) // _DAY) for at in dates), reverse=True)

    @property
    def count(self) -> int:
        """The number of recordings in the opened cassettes."""
        return sum(map(len, self.cassettes.values()))

    def _places(self) -> Iterator[tuple[str, int, str, StoredRecording]]:
        for cassette, recordings in sorted(self.cassettes.items()):
            for number, recording in enumerate(recordings, 1):
                yield cassette, number, f"{cassette}#{number}", recording


# From exchanges


def stored_recording(entry: Entry) -> StoredRecording:
    """A recording of a cassette."""
    if isinstance(entry, Unread):
        return StoredRecording(entry.request, None, f"it cannot be read: {entry.reason}")
    entry = entry.opening if isinstance(entry, SocketSession) else entry
    try:
        plain = entry.plain()
    except WireError as error:
        return StoredRecording(_request(entry), recorded_at(entry), str(error))
    return StoredRecording(_request(entry), recorded_at(plain), _flaw(plain))


def _flaw(plain: Captured) -> str:
    """Why a decompressed answer is not whole; "" where it is, or nobody can tell."""
    if "json" in plain.header("content-type") and "stream" not in plain.header("content-type"):
        return "" if not plain.body or json_value(plain.body) is not None else "its JSON breaks off"
    found = detect_api(plain)
    if plain.status >= 400 or found.protocol is None:
        return ""
    try:
        streamed = request_of(plain, found).stream
    except RequestError:
        return ""
    if not streamed or answer_carrier(plain, found.protocol, streamed=True) is None:
        return ""
    turn = recorded_turn(plain, found.protocol, streamed=True)
    return "" if turn.complete else "its stream has no end"


def replay(
    cassette: str,
    number: int,
    recorded: Entry,
    sent: Entry,
    *,
    redactor: Redactor,
    ignore: Ignored,
) -> Replay:
    """A recording that answered, compared with the request that it answered."""
    for entry in (recorded, sent):
        if isinstance(entry, Unread):
            return Replay(cassette, number, entry.request, unread=entry.reason)
    assert isinstance(recorded, Captured)
    assert isinstance(sent, Captured)
    made = Replay(cassette, number, _request(sent))
    if (recorded.url, recorded.request_body) == (sent.url, sent.request_body):
        return made
    placeholders = redactor.placeholders(recorded)
    try:
        # The same value has the same placeholder on both sides; answers are not looked at.
        old, new = (
            redactor.exchange(replace(each, headers=(), chunks=()), placeholders)
            for each in (recorded, sent)
        )
    except WireError as error:
        return replace(made, unread=str(error))
    return replace(made, changes=changes_between(old, new, ignore))


def _request(exchange: Captured) -> str:
    return f"{exchange.method} {masked_url(exchange.url)}"


# Forms


def audit_json(audit: Audit) -> dict[str, Any]:
    """The audit as JSON: `summary` has the counts, `tests` and `cassettes` all of it."""
    days = audit.days
    return {
        "mockllm-audit": 1,
        "date": _day(audit.now),
        "summary": {
            "tests": len(audit.tests),
            "outcomes": dict(Counter(test.outcome for test in audit.tests)),
            "replays": len(audit.replays),
            "tests_changed": len(audit.changed),
            "replays_changed": sum(len(test.changed) for test in audit.changed),
            "not_compared": sum(bool(replay.unread) for replay in audit.replays),
            "refused": sum(len(test.refused) for test in audit.tests),
            "cassettes": len(audit.cassettes),
            "recordings": audit.count,
            "unrequested": len(audit.unrequested),
            "unopened": len(audit.unopened),
            "broken": len(audit.broken),
            "undated": audit.count - len(days),
            "days_of_oldest": days[0] if days else None,
            "median_days": days[len(days) // 2] if days else None,
        },
        "tests": [asdict(test) for test in audit.tests],
        "cassettes": {
            path: [
                {**asdict(one), "at": None if one.at is None else _day(one.at)} for one in several
            ]
            for path, several in sorted(audit.cassettes.items())
        },
        "unrequested": [place for place, _ in audit.unrequested],
        "unopened": list(audit.unopened),
        "remarks": list(audit.remarks),
    }


def audit_lines(audit: Audit) -> Iterator[str]:
    """The summary of an audit: counts, and the first few of each kind."""
    yield from audit.remarks
    if not audit.tests:
        yield "No test opened a cassette of vcrpy, so nothing was compared."
        return
    outcomes = Counter(test.outcome for test in audit.tests)
    counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
    yield (
        f"{quantity(len(audit.tests), 'test')} with cassettes ({counts}); "
        f"{quantity(audit.count, 'recording')} in {quantity(len(audit.cassettes), 'cassette')} "
        f"answered {quantity(len(audit.replays), 'request')}"
    )
    for title, lines in audit_lists(audit):
        yield f"{title}: {len(lines)}"
        yield from (f"  {line}" for line in lines[:_SHOWN])
        if len(lines) > _SHOWN:
            yield f"  and {len(lines) - _SHOWN} more"
    yield age_line(audit)


def audit_lists(audit: Audit) -> list[tuple[str, list[str]]]:
    """The lines of each kind of finding, by their title; the first is always there."""
    replays = [(test.test, one) for test in audit.tests for one in test.replays]
    where = f", in {quantity(len(audit.changed), 'test')}" if audit.changed else ""
    changed = (
        f"other requests than were recorded{where}",
        [
            f"{test}: {_place(one)}: {'; '.join(one.changes)}"
            for test, one in replays
            if one.changes
        ],
    )
    others = {
        "requests that no recording answers": [
            f"{test.test}: {request}" for test in audit.tests for request in test.refused
        ],
        "requests that could not be compared": [
            f"{test}: {_place(one)}: {one.unread}" for test, one in replays if one.unread
        ],
        "recordings that nobody asks for": [
            f"{place} {one.request}" for place, one in audit.unrequested
        ],
        "cassettes that no test opens": list(audit.unopened),
        "answers that break off": [
            f"{place} {one.request}: {one.flaw}" for place, one in audit.broken
        ],
    }
    return [changed, *((title, lines) for title, lines in others.items() if lines)]


def _place(one: Replay) -> str:
    return f"{one.cassette}#{one.number} {one.request}"


def age_line(audit: Audit) -> str:
    """The ages of the recordings."""
    days = audit.days
    if not days:
        return "age: no recording says when it was made"
    undated = audit.count - len(days)
    rest = f"; {undated} of {audit.count} have no date" if undated else ""
    median = quantity(days[len(days) // 2], "day")
    return f"age: the oldest recording has {quantity(days[0], 'day')}, the median is {median}{rest}"


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
