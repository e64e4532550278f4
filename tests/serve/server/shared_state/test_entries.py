"""Journal entries as bytes: an inverse pair, and a session that is restored from any split."""

from __future__ import annotations

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.http import Target
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session
from mockllm.play.replay.sessions.shared_session import (
    ENDED_EARLY,
    SessionReader,
    Stored,
    pack,
    restore,
    unpack,
    unpack_all,
)
from tests.entries import amend, journal_entry

texts = st.text(max_size=8)
pairs = st.dictionaries(texts, texts, max_size=2)
exchanges = st.builds(
    journal_entry,
    method=st.sampled_from(["GET", "POST"]),
    path=texts,
    headers=pairs,
    body=st.binary(max_size=40),
    api=st.none() | texts,
    at=st.floats(0, 2e9),
    model=st.none() | texts,
    scenario=st.none() | st.sampled_from("ab"),
    turn=st.none() | st.integers(0, 2),
    position=st.none() | st.integers(0, 9),
    attempt=st.integers(1, 3),
    stream=st.booleans(),
    outcome=st.sampled_from(["played", "unmatched", "error"]),
    status=st.integers(200, 599),
    problems=st.lists(texts, max_size=2).map(tuple),
    bytes_sent=st.integers(0, 9),
    client_gone=st.booleans(),
    duration=st.floats(0, 9),
    ended=st.none() | st.floats(0, 9),
    quirks=st.lists(texts, max_size=2).map(tuple),
    fault=texts,
    struck=st.none() | st.floats(0, 9),
    struck_after=st.none() | st.integers(0, 9),
    retry_after=st.none() | st.floats(0, 9),
    connection=st.integers(0, 65535),
    answer_id=st.none() | texts,
    target=st.none() | st.builds(Target, pairs, texts, pairs),
    complete=st.booleans(),
    body_size=st.none() | st.integers(0, 10**9),
)


def parts(exchange: Exchange) -> tuple[object, ...]:
    """All that is kept of an entry; its clock is that of all processes."""
    received = exchange.received._replace(clock=exchange.received.at)
    sent = replace(exchange.sent, clock=exchange.received.at)
    return received, exchange.played, sent, exchange.in_use, exchange.body_size


@given(exchanges)
def test_packing_loses_nothing(exchange: Exchange) -> None:
    """Any bytes of a body, any text, any field."""
    packed = pack([(3, exchange), (4, exchange)], "p")
    read = [(by, parts(one)) for by, one in unpack(packed)]
    assert read == [(("p", 3), parts(exchange)), (("p", 4), parts(exchange))]
    assert b"\n" not in packed


def test_every_field_is_kept_or_made_again() -> None:
    """A new field of the parts of an entry is packed."""
    odd = journal_entry("POST", "/", {}, b"x", in_use=True)
    for part in (odd.played, odd.sent):
        flags = [field.name for field in fields(part) if field.type in ("bool", bool)]
        amend(odd, **{name: not getattr(part, name) for name in flags})
    ((_, again),) = unpack(pack([(1, odd)], "p"))
    assert parts(again) == parts(odd)


def being_sent(exchange: Exchange) -> Exchange:
    """The entry while its answer goes on."""
    early = amend(exchange.copy(), status=0)
    early.in_use = True
    return early


@given(st.lists(exchanges, max_size=6, unique_by=lambda one: one.received.at), st.data())
def test_any_split_over_processes_is_one_session(
    recorded: list[Exchange], data: st.DataObject
) -> None:
    """Whichever process wrote an entry, in whichever order: the session of one process."""
    recorded.sort(key=lambda one: one.received.at)
    written: dict[str, list[tuple[int, Exchange]]] = {"a": [], "b": [], "c": []}
    for number, exchange in enumerate(recorded):
        of_process = written[data.draw(st.sampled_from("abc"))]
        if data.draw(st.booleans()):  # it is written while its answer goes on, too
            of_process.append((number, being_sent(exchange)))
        of_process.append((number, exchange))
    entries = []
    while any(written.values()):
        process = data.draw(st.sampled_from([name for name in written if written[name]]))
        count = data.draw(st.integers(1, len(written[process])))
        entries.append(pack(written[process][:count], process))
        del written[process][:count]
    one = Session("s")
    for exchange in recorded:
        one.record(exchange.copy())
    restored = restore("s", Stored(entries))
    shown = [entry.as_json() for entry in restored.journal]
    assert shown == [entry.as_json() for entry in one.journal]
    assert restored.outcomes() == one.outcomes()
    reader = SessionReader("s")
    for number, entry in enumerate(entries, start=1):  # as a list reads on where it stopped
        stored = Stored([entry], first=1, last=number)
        assert reader.goes_on(stored)
        session = reader.read(stored, unpack_all([entry]))
        assert reader.after == number
    if entries:
        assert [entry.as_json() for entry in session.journal] == shown
        assert session.outcomes() == one.outcomes()


def test_an_answer_whose_process_is_gone() -> None:
    """Its entry says so, and is not one that is still being answered."""
    entry = pack([(1, journal_entry("POST", "/", {}, b"", in_use=True, at=1.0))], "gone")
    session = restore("s", Stored([entry], gone={"gone"}))
    (exchange,) = session.journal
    assert (exchange.in_use, exchange.sent.complete) == (False, False)
    assert exchange.problems == (ENDED_EARLY,)
