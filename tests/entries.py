"""Journal entries for tests, from the names of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from mockllm.core.http import Target
from mockllm.play.replay.sessions.exchange import Exchange, Played, Received, Sent

_IN_SENT = {"bytes_sent": "bytes"}


def journal_entry(
    method: str = "POST",
    path: str = "/",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    api: str | None = None,
    **values: Any,
) -> Exchange:
    """An entry with these fields, each in the part that has it."""
    values["api"] = api
    received = _fields_of(Received, values)
    played = _fields_of(Played, values)
    values = {_IN_SENT.get(name, name): value for name, value in values.items()}
    sent = Sent(received.get("clock", 0.0), **_fields_of(Sent, values))
    return Exchange(
        Received(method, path, headers or {}, body, **received), Played(**played), sent, **values
    )


def _fields_of(part: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The values that are fields of a part; they are removed from the others."""
    names = Received._fields if part is Received else [field.name for field in fields(part)]
    return {name: values.pop(name) for name in names if name in values}


def played_entry(
    played: Played, body: bytes = b"", method: str = "POST", target: Target | None = None
) -> Exchange:
    """The entry of a request that was played, and of which nothing was sent."""
    return Exchange(Received(method, "/", {}, body, target=target), played)


def amend(exchange: Exchange, **values: Any) -> Exchange:
    """Gives an entry other values, as nothing but a test does; returns it."""
    exchange.received = exchange.received._replace(**_fields_of(Received, values))
    exchange.played = replace(exchange.played, **_fields_of(Played, values))
    for name, value in values.items():
        part = exchange if name in Exchange.__slots__ else exchange.sent
        setattr(part, _IN_SENT.get(name, name), value)
    return exchange
