"""Differences of a message on a WebSocket from the one that is expected, in lines for people. Pure.

Of a recorded message all counts but ids that the client makes up, bytes of media (their number
counts), and what `request_changes` leaves out. Of a message that a person wrote, what is not in it
does not count. Ids that the service made up have to be those that it sent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from mockllm.core.jsontext import compact, json_bytes
from mockllm.play.matching.conditions import check_partial
from mockllm.play.matching.request_changes import request_changes
from mockllm.play.tapes.socket_turns import (
    bytes_text,
    is_id,
    is_made_id,
    is_media,
    shorten_media,
    shortened_size,
    strings,
    value_of,
)
from mockllm.scenario.ignoring import normal_text, normal_value
from mockllm.scenario.model import Ignored

_Path = tuple[str | int, ...]


@dataclass(slots=True)
class SocketIds:
    """The ids of one connection.

    Args:
        served: the ids and other opaque values that the service sends, each with the turn in which
            it comes first.
        made: by each id of the client in the scenario, the one that it made up now.
        turn: the turn whose messages are compared.
    """

    served: Mapping[str, int]
    made: dict[str, str] = field(default_factory=dict)
    turn: int = 0

    def is_served(self, text: str | None) -> bool:
        """Whether the service has sent an id before."""
        return text is not None and self.served.get(text, self.turn) < self.turn

    def put_into(self, data: bytes) -> bytes:
        """A message of the service with the ids of this client."""
        for old, new in self.made.items():
            data = data.replace(json_bytes(compact(old)), json_bytes(compact(new)))
        return data


def opaque_values(data: bytes) -> set[str]:
    """The ids, and other values without a meaning for clients, in a message of the service."""
    value = value_of(data)
    if not isinstance(value, dict | list):
        return set()
    return {text for path, text in strings(value) if is_id(path) or is_media(text)}


def message_changes(
    expected: Any, sent: Any, ids: SocketIds, ignore: Ignored = (), *, partial: bool = False
) -> tuple[str, ...]:
    """The differences of a message, each with its path; none where it is the expected one.

    Args:
        expected, sent: a JSON value, a text or bytes.
        ids: those that the client makes up are noted there.
        partial: whether the message may have more fields than are expected.
    """
    if not (isinstance(expected, dict | list) and isinstance(sent, dict | list)):
        return _plain_changes(expected, sent, ignore)
    if isinstance(expected, dict) and isinstance(sent, dict):
        sent = _with_names_of(expected, sent)
    wanted, given = dict(strings(expected)), dict(strings(sent))
    changes: list[str] = []
    apart: set[_Path] = set()  # what is compared here, or not at all
    for path, text in wanted.items():
        other = given.get(path)
        known = ids.made.get(text) or (text if ids.is_served(text) else None)
        if known is None and is_made_id(path) and not ids.is_served(other):
            apart.add(path)
            if other is not None:
                ids.made[text] = other
        elif known is not None and other is not None:
            apart.add(path)
            if other != known:
                changes.append(_line(path, known, other))
    apart |= {
        path
        for path, text in given.items()
        if path not in wanted and is_made_id(path) and not ids.is_served(text)
    }
    old, new = (shorten_media(_without(value, apart)) for value in (expected, sent))
    if partial:
        problem = check_partial("message", *(normal_value(ignore, value) for value in (old, new)))
        return (*changes, *([problem] if problem else []))
    return (*changes, *request_changes(old, new, ignore))


def _with_names_of(expected: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """A message with the names of another one at its top: Google's SDK for Python writes
    `client_content` where the one for Node writes `clientContent`, and its services read both."""
    names = {name.replace("_", "").lower(): name for name in expected}
    return {
        name if name in expected else names.get(name.replace("_", "").lower(), name): value
        for name, value in sent.items()
    }


def _plain_changes(expected: Any, sent: Any, ignore: Ignored) -> tuple[str, ...]:
    if isinstance(expected, str) and isinstance(sent, str):
        expected, sent = normal_text(ignore, expected), normal_text(ignore, sent)
    if isinstance(sent, bytes) and shortened_size(expected) is not None:
        sent = bytes_text(len(sent))
    if type(expected) is type(sent) and expected == sent:
        return ()
    old, new = (
        f"{len(value)} bytes" if isinstance(value, bytes) else value for value in (expected, sent)
    )
    return request_changes(old, new, path="message") or ("message: other bytes",)


def _line(path: _Path, expected: str, sent: str) -> str:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"{steps.removeprefix('.')}: {compact(expected)} → {compact(sent)}"


def _without(value: Any, paths: Collection[_Path], path: _Path = ()) -> Any:
    """A JSON value without the strings at some paths; in a list they leave None."""
    if isinstance(value, dict):
        return {
            key: _without(item, paths, (*path, key))
            for key, item in value.items()
            if (*path, key) not in paths
        }
    if isinstance(value, list):
        return [
            None if (*path, index) in paths else _without(item, paths, (*path, index))
            for index, item in enumerate(value)
        ]
    return value
