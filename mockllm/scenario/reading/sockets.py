"""Conversations on a WebSocket: the reader of its messages, and the rules for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mockllm.core.http import MOST_REASON
from mockllm.scenario import model as m
from mockllm.scenario.reading.conditions import NO_CONDITION
from mockllm.scenario.reading.nodes import KeyPath, Mapping, Node, Sequence
from mockllm.scenario.reading.tables import table
from mockllm.scenario.reading.values import Findings, json_value, listing, readable_fields, record
from mockllm.scenario.route_model import CloseSpec, MessageSpec, MessageValue


def _object_or_array(node: Node, findings: Findings) -> MessageValue | None:
    if isinstance(node, Mapping | Sequence):
        return json_value(node, findings)
    findings.must_be(node, "a JSON object or array", "; other messages are a 'text' or 'base64'")
    return None


_MESSAGE = table(
    "message",
    json=_object_or_array,
    base64="base64 text, or how many bytes it stands for, such as <4800 bytes>",
    close=record(CloseSpec, table("close")),
)


def _message(node: Node, findings: Findings) -> MessageSpec | None:
    """One message, by the key that says its kind."""
    values = readable_fields(node, findings, _MESSAGE)
    if values is None or not isinstance(node, Mapping):
        return None
    kinds: list[Any] = [key for key in _MESSAGE.readers if key in node.entries]
    if len(kinds) != 1:
        got = " and ".join(kinds) or "none"
        findings.add(node, f"must have one of {', '.join(_MESSAGE.readers)}, got {got}")
        return None
    kind = kinds[0]
    return MessageSpec(kind, values[kind]) if kind in values else None


messages = listing(_message, "messages, such as json: {type: ping}")

_NO_CODES = (1004, 1005, 1006, 1015)
"""Close codes that no frame has (RFC 6455, section 7.4.1)."""


def is_sent(code: int) -> bool:
    """Whether a close frame may have a code."""
    return code >= 1000 and code not in _NO_CODES


def check_socket(scenario: m.Scenario) -> Iterator[tuple[KeyPath, str]]:
    """The mistakes of a scenario that concern `socket`, `client` and `service`."""
    if scenario.socket and (scenario.route is None or scenario.route.method not in ("", "GET")):
        yield ("socket",), "needs a 'route: GET /path', by which clients open it"
    ignoring = scenario.match is not None and scenario.match == m.Match(
        ignore=scenario.match.ignore
    )
    if ignoring and not scenario.socket:  # whose messages are compared without any condition
        yield ("match",), f"must have a condition{NO_CONDITION}"
    for index, turn in enumerate(scenario.turns):
        path: KeyPath = ("turns", index)
        sides = {"client": turn.client, "service": turn.service}
        if not (turn.client or turn.service):
            continue
        if not scenario.socket:
            key = "client" if turn.client else "service"
            yield (*path, key), "needs 'socket: text', or binary, and a 'route' in its scenario"
        if turn.job is not None:
            yield (*path, "job"), "has no meaning on a WebSocket; remove it"
        if turn.recorded is not None and index:
            yield (*path, "recorded"), "belongs to the first turn: it is of the whole session"
        if turn.timing is not None and len(turn.timing.at) not in (0, len(turn.service)):
            message = f"must have a time for each message of 'service': {len(turn.service)}"
            yield (*path, "timing", "at"), message
        if turn.service and any(message.kind == "close" for message in turn.client):
            yield (*path, "service"), "comes after the client has closed; make it the next turn"
        for key, side in sides.items():
            for number, sent in enumerate(side):
                place = (*path, key, number, "close")
                if sent.kind == "close":
                    yield from _check_close(place, sent.value, number == len(side) - 1)


def _check_close(path: KeyPath, close: CloseSpec, is_last: bool) -> Iterator[tuple[KeyPath, str]]:
    if not is_last:
        yield path, "must be the last message; what follows it is a turn of the next connection"
    if close.code and not is_sent(close.code):
        message = f"must be 1000 or more, or 0 for none, and {close.code} is never sent"
        yield (*path, "code"), message
    if len(close.reason.encode("utf-8", "surrogatepass")) > MOST_REASON:
        yield (*path, "reason"), f"is longer than {MOST_REASON} bytes, and a frame has no more"
