"""Sessions of which requests are missing: what a missing one may explain makes no verdict `bad`."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from mockllm.checking.conversations.judge import verify
from mockllm.play.replay.sessions.session import Session
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import CALLING
from tests.cases import for_all
from tests.checking.conversations.bad_clients import (
    BAD,
    BOOK,
    BOTH,
    EXCEPT,
    FIND,
    HOPS,
    OTHER,
    RESULTS,
    TWO,
    Conversation,
    W,
)
from tests.checking.conversations.request_bodies import body, called, result
from tests.entries import amend

every_api = for_all("api", CALLING)
GAP = "the server process p was found ended"
ALL = {"depth": 5, "once": True, "require": frozenset(("text-in-history",))}
CERTAIN = {"depth-bounded", "request-valid"}


def without(conversation, lost):
    """The verdict on a session that has lost some of its requests, with what they played."""
    session = Session("default", gaps=(GAP,))
    for exchange in conversation.session.journal:
        if exchange.number not in lost:
            kept = exchange.copy()
            session.record(kept)
            kept.number = exchange.number
            if kept.scenario is not None and kept.turn is not None:
                session.note_played(kept.scenario, kept.turn)
    return verify(session, conversation.player.served.by_name, once=True)


def right_client(api):
    """Three conversations of a right client; where answers are stored, one refers to them."""
    conversation = Conversation(TWO + OTHER + "---" + HOPS, api)
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS)
    conversation.request("weather")
    conversation.request("weather", called(W), result(W, "snow"))
    stored = PROTOCOLS[api].stored
    if stored is None:
        conversation.request("book")
        found = (called(FIND), result(FIND, "found"))
        conversation.request("book", *found)
        conversation.request("book", *found, called(BOOK), result(BOOK, "booked"))
    else:
        first = conversation.request("book")
        found = {stored.field: first.played.answer_id}
        second = conversation.send({**body(api, result(FIND, "found")), **found})
        booked = {stored.field: second.played.answer_id}
        conversation.send({**body(api, result(BOOK, "booked")), **booked})
    return conversation


@pytest.mark.slow
@every_api
def test_no_loss_makes_a_right_client_bad(api):
    """Whichever requests are missing, the verdict is `unknown`, and says that some are."""
    conversation = right_client(api)
    assert conversation.verify(once=True).good
    numbers = [exchange.number for exchange in conversation.session.journal]
    losses = chain.from_iterable(combinations(numbers, count) for count in range(len(numbers)))
    for lost in losses:
        found = without(conversation, lost)
        assert (found.verdict, found.gaps) == ("unknown", (GAP,)), (lost, found)


@pytest.mark.slow
@every_api
def test_what_one_request_shows_is_bad_all_the_same(api):
    """No missing request explains a body that the API refuses, or an endless loop in one history;
    everything else is doubtful, and is still told."""
    for client, (text, invariant) in BAD.items():
        conversation = Conversation(text, api)
        if api in EXCEPT.get(client, ()):
            continue
        client(conversation)
        before = conversation.verify(**ALL)
        conversation.session.gaps = (GAP,)
        found = conversation.verify(**ALL)
        told = {violation.invariant for violation in found.violations}
        assert told <= CERTAIN, client
        certain = invariant in CERTAIN or found.invalid or found.unmatched
        assert found.verdict == ("bad" if certain else "unknown"), client
        assert len(found.doubtful) + sum(map(len, _told(found))) == sum(map(len, _told(before)))


def _told(found):
    return found.violations, found.unplayed, found.unmatched, found.invalid


@pytest.mark.parametrize("loss", [{"evicted": True}, {"gaps": (GAP,)}])
def test_every_kind_of_loss_counts(loss):
    """What is missing because a session was dropped is missing, too."""
    conversation = right_client("chat")
    conversation.session.played.clear()
    conversation.session.note_played("two", 0)
    for name, value in loss.items():
        setattr(conversation.session, name, value)
    found = conversation.verify()
    assert (found.verdict, found.unplayed) == ("unknown", ())
    assert found.doubtful == ("turn 2 of 2 of two was not played",)


TRIES = """
scenario: tries
match: {user: hi}
turns:
  - attempts: [{http: 429}, {http: 529}]
    reply: {text: Hello.}
"""
REFUSED = {"outcome": "error", "status": 503, "scenario": None, "turn": None, "position": None}


def tried(conversation, key, count):
    """A try of a request by a client whose headers say which one it is."""
    exchange = conversation.request("hi")
    return amend(exchange, headers={"idempotency-key": key, "x-stainless-retry-count": str(count)})


def refuse(exchange):
    """The request was counted, and only the answer of the state store was lost."""
    return amend(exchange, **REFUSED, counted=True)


@every_api
@for_all("before", range(4))
def test_a_refused_request_that_was_counted(api, before):
    """Its next try skips an answer, which nothing was tested by. The headers show it."""
    conversation = Conversation(TRIES, api)
    for _ in range(before):
        conversation.request("hi")
    refused = refuse(tried(conversation, "k", 0))
    tried(conversation, "k", 1)
    found = conversation.verify()
    assert (found.verdict, found.maybe_counted) == ("unknown", (refused.number,))


@every_api
@for_all("before", range(4))
@for_all("named", [True, False])
def test_a_refused_request_that_was_not_counted(api, before, named):
    """Where headers say which request is its next try, the number of the attempt shows that nothing
    was left out. An equal request proves nothing."""
    conversation = Conversation(TRIES, api)
    for _ in range(before):
        conversation.request("hi")
    other = Conversation(TRIES, api)
    refused = refuse(tried(other, "k" if named else "", 0))
    conversation.session.record(refused)
    tried(conversation, "k" if named else "", 1)
    for _ in range((1 - before) % 3):
        conversation.request("hi")
    found = conversation.verify()
    if named:
        assert (found.verdict, found.maybe_counted) == ("good", ())
    else:
        assert (found.verdict, found.maybe_counted) == ("unknown", (refused.number,))


@for_all("times", range(1, 5))
@for_all("again", [True, False])
def test_tries_that_are_refused_several_times(times, again):
    """As long as the number of the attempt cannot be the same by chance, it shows that none was
    counted: always where the attempts do not begin again."""
    text = TRIES + "    repeat: true\n" * again
    conversation = Conversation(text, "chat")
    for count in range(times):
        conversation.session.record(refuse(tried(Conversation(text, "chat"), "k", count)))
    tried(conversation, "k", times)
    for _ in range(2):
        conversation.request("hi")
    found = conversation.verify()
    shown = times <= 2 or not again
    assert found.verdict == ("good" if shown else "unknown")
    assert len(found.maybe_counted) == (0 if shown else times)


def test_tries_that_another_request_comes_between():
    """Its number may be that of the other one."""
    conversation = Conversation(TRIES, "chat")
    refused = refuse(tried(Conversation(TRIES, "chat"), "k", 0))
    conversation.session.record(refused)
    conversation.request("hi")
    tried(conversation, "k", 1)
    assert conversation.verify().maybe_counted == (refused.number,)
