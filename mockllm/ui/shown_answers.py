"""The answer to a request as the live page shows it: as it was sent, or made again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from difflib import SequenceMatcher

from mockllm.errors import MockLLMError, RequestError
from mockllm.framing.content_coding import decompressed
from mockllm.matching.conversation import turn_at
from mockllm.protocols import PROTOCOLS
from mockllm.replay.client_requests import parsed_request
from mockllm.replay.compilation.http_answer import HttpAnswer, bytes_answer
from mockllm.replay.sessions.exchange import Exchange, PassedAnswer
from mockllm.replay.turn_answer import turn_answer
from mockllm.scenario.model import Scenario
from mockllm.server.control.server_view import KEEPS, SentAnswers
from mockllm.ui.stream_json import ShownAnswer, sent_times

_KEPT = f"Each process keeps the last {KEEPS} answers that it sent."

_MOST_COMPARED = 2000
"""With more parts it is not looked for which of them a quirk made."""


def sent_of(
    exchange: Exchange, sent: SentAnswers | None, scenario: Scenario | None, speed: float
) -> tuple[ShownAnswer | None, str]:
    """The answer to a request; None, and why.

    Args:
        scenario: that answered, as it is served now; None: it is no longer served.
    """
    if exchange.passed is not None and exchange.passed.status:
        return _passed(exchange, exchange.passed), ""
    known = None if sent is None else sent.find(exchange)
    if known is not None:
        return _sent(*known, scenario, speed), ""
    if exchange.outcome == "forwarded":
        return None, f"The bytes of the service are not kept. {_KEPT}"
    if scenario is None or exchange.played.position is None or exchange.played.api not in PROTOCOLS:
        return None, f"The bytes are not kept, and no scenario gives them again. {_KEPT}"
    if exchange.body_size is not None:
        return None, "The answer cannot be made again: its request was too large to be kept whole."
    try:
        answer = _made_again(exchange, scenario, exchange.played.quirks)
    except MockLLMError as error:
        return None, f"The answer cannot be made again: {error}"
    note = (
        "Made again from the scenario as it is now: these bytes are not kept, or another process "
        "sent them. When each part left is not known."
    )
    made = made_answer(answer, speed, note=note)
    return replace(made, fault=exchange.fault, struck_after=exchange.sent.struck_after), ""


def made_answer(answer: HttpAnswer, speed: float, *, note: str = "") -> ShownAnswer:
    """An answer that is not sent, as it would be."""
    due = [round(at / speed) if speed > 0 else 0 for at in answer.times]
    return ShownAnswer(
        answer,
        due,
        source="made again",
        note=note,
        timed=answer.timed and speed > 0,
        fault="" if answer.fault is None else answer.fault.faults,
        struck_after=None if answer.fault is None else answer.fault.struck,
    )


def _sent(
    exchange: Exchange, answer: HttpAnswer, scenario: Scenario | None, speed: float
) -> ShownAnswer:
    at_once = not exchange.sent.marks and not exchange.in_use and not exchange.broken_off
    all_at = round(exchange.sent.duration * 1_000_000) if at_once else None
    short = exchange.sent.bytes < answer.size and not exchange.in_use
    return replace(
        made_answer(answer, speed),
        sent_at=list(sent_times(answer.data, exchange.sent.marks or (), all_at=all_at)),
        source="sent",
        note="The answer is still being sent." if exchange.in_use else "",
        fault=exchange.fault,
        struck_after=exchange.sent.struck_after,
        gone_after=exchange.sent.bytes if exchange.broken_off or short else None,
        quirks=_quirks(exchange, answer, scenario),
    )


def _passed(exchange: Exchange, passed: PassedAnswer) -> ShownAnswer:
    """What a service answered."""
    chunks, note = tuple(passed.chunks), ""
    headers = dict(reversed(passed.headers))
    coding = headers.get("content-encoding", "")
    if coding:
        note = f"Shown without the {coding} of the service. "
        try:
            chunks = decompressed(chunks, coding)
        except MockLLMError as error:
            note = f"Not decoded: {error}. "
    if passed.left_out:
        note += f"{passed.left_out:,} more bytes came, and are not kept here. "
    answer = bytes_answer(
        passed.status,
        passed.headers,
        chunks,
        streamed="event-stream" in headers.get("content-type", ""),
        ending="complete" if exchange.sent.complete else "closed",
    )
    return ShownAnswer(
        answer,
        sent_at=answer.times,
        note=note.strip(),
        timed=True,
        fault=exchange.fault,
        struck_after=exchange.sent.struck_after,
        gone_after=exchange.sent.bytes if exchange.broken_off else None,
    )


def _made_again(exchange: Exchange, scenario: Scenario, quirks: tuple[str, ...]) -> HttpAnswer:
    """The answer of the turn that answered an exchange."""
    protocol = PROTOCOLS[exchange.played.api or ""]
    request = parsed_request(exchange)
    if request is None:
        raise RequestError("its request cannot be read any more")
    return turn_answer(
        scenario,
        exchange.played.position or 0,
        protocol,
        replace(request, stream=exchange.played.stream),
        attempt=exchange.played.attempt,
        quirks=quirks,
    )


# Quirks


def _quirks(exchange: Exchange, answer: HttpAnswer, scenario: Scenario | None) -> dict[int, str]:
    """By the number of a part, the quirks that made it: those parts that the same answer without
    quirks does not have."""
    names = exchange.played.quirks
    if scenario is None or exchange.played.position is None or len(answer.data) > _MOST_COMPARED:
        return {}
    spec = turn_at(scenario, exchange.played.position, exchange.played.api or "")
    names += () if spec is None or spec.wire is None else spec.wire.quirks
    if not names or not answer.streamed or exchange.body_size is not None:
        return {}
    turns = tuple(
        turn if turn.wire is None else replace(turn, wire=replace(turn.wire, quirks=()))
        for turn in scenario.turns
    )
    try:
        plain = _made_again(exchange, replace(scenario, turns=turns), ())
    except MockLLMError:  # the scenario is another one now
        return {}
    label = ", ".join(dict.fromkeys(names))
    return dict.fromkeys(_only_in(answer.data, plain.data), label)


def _only_in(parts: Iterable[bytes], others: Iterable[bytes]) -> list[int]:
    matcher = SequenceMatcher(None, list(parts), list(others), autojunk=False)
    numbers: list[int] = []
    for kind, begin, end, _, _ in matcher.get_opcodes():
        if kind != "equal":
            numbers += range(begin, end)
    return numbers
