"""A WebSocket as the live page shows it: what each side sent, on one time axis."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from mockllm.core.jsontext import json_bytes
from mockllm.core.text import shorten
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session
from mockllm.serve.server.control.server_view import SentAnswers
from mockllm.serve.server.http.socket_writing import AnswerPayloads
from mockllm.serve.ui.live import user_text
from mockllm.serve.ui.shown_answers import sent_times
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.values import json_object

_MOST = 500
_LONGEST = 160


def connection_json(
    session: Session, exchange: Exchange, sent: SentAnswers | None, speed: float
) -> dict[str, Any] | None:
    """The messages on the connection of a request, in the order of their times; None for a request
    over HTTP.

    Messages of one kind that follow one another are counted together.
    """
    if exchange.headers.get("upgrade", "").lower() != "websocket":
        return None
    port = exchange.received.connection
    entries = [
        one
        for one in session.journal
        if one.received.connection == port and "upgrade" in one.headers
    ]
    begin = min(one.received.at for one in entries)
    items = [item for one in entries for item in _items(one, one.received.at - begin, sent, speed)]
    items.sort(key=lambda item: item["at"])
    return {"items": items[:_MOST], "left_out": max(0, len(items) - _MOST)}


def _items(
    exchange: Exchange, at: float, sent: SentAnswers | None, speed: float
) -> Iterator[dict[str, Any]]:
    """What both sides sent for one request, and what broke."""

    def item(side: str, when: float, kind: str, text: str = "", count: int = 1) -> dict[str, Any]:
        shown = {"kind": shorten(kind, _LONGEST), "text": shorten(text, _LONGEST)}
        return {"side": side, "at": when, "number": exchange.number, "count": count, **shown}

    message = exchange.json
    kind = "opens" if exchange.received.method == "GET" else "asks"
    yield item("client", at, str((message or {}).get("type") or kind), user_text(exchange))
    if exchange.status >= 400 or exchange.status == 101:
        yield item("service", at + exchange.sent.duration, f"status {exchange.status}")
    known = None if sent is None else sent.find(exchange)
    if known is not None and known[1].status < 400:
        last: dict[str, Any] | None = None
        for when, kind in _kinds(exchange, known[1], speed):
            if last is not None and last["kind"] == kind:
                last["count"] += 1
                continue
            if last is not None:
                yield last
            last = item("service", at + when, kind)
        if last is not None:
            yield last
    if exchange.sent.struck is not None:
        yield item("service", at + exchange.sent.struck, "fault", exchange.fault)
    if exchange.sent.client_gone:
        yield item("client", at + exchange.sent.duration, "leaves")


def _kinds(exchange: Exchange, answer: HttpAnswer, speed: float) -> Iterator[tuple[float, str]]:
    """When each message of an answer was sent, in seconds after its request, and its kind; when it
    was due, where an API sends other messages than the events of its streams."""
    protocol = PROTOCOLS.get(exchange.played.api or "")
    if protocol is None:
        return
    payloads, due, _ = AnswerPayloads().read(answer, protocol.usual)
    parts = [json_bytes(payload) for payload in payloads]
    marks, written = exchange.sent.marks or (), exchange.sent.bytes
    times: list[int | None] = [round(at / speed) if speed else 0 for at in due]
    if marks and written in accumulate(map(len, parts)):
        times = list(sent_times(parts, marks, all_at=None))
    for at, part in zip(times, parts, strict=True):
        if at is None:  # not sent yet, or never
            return
        value = json_object(part) or {}
        yield at / 1e6, str(value.get("type") or ", ".join(value) or "no JSON")
