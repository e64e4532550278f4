"""A recorded session over WebSockets as the turns of a scenario, for people to read. Pure.

What the client sends until the service answers, and the answer, are a turn. Long base64, such as
audio, is shortened to the number of its bytes, `<4800 bytes>`; what a client streams so between two
answers is one message, `<48000 bytes in 10 messages>`. The bytes and the times are on the tape.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from mockllm.core.jsontext import compact, decode
from mockllm.core.record import record
from mockllm.play.tapes.socket_session import Side, SocketMessage, SocketSession
from mockllm.scenario.model import TurnSpec
from mockllm.scenario.route_model import CloseSpec, MessageSpec

_Path = tuple[str | int, ...]

_DEEPEST = 60
"""JSON that is nested deeper is written as text: YAML must be read again within its bounds."""

_LONG_TEXT = 40
_LONG_BYTES = 64
"""Shorter base64 texts, and binary messages, are written as they are."""

_SHORTENED = re.compile(r"<([0-9]+) bytes(?: in ([0-9]+) messages)?>")
_ALPHABETS = re.compile(r"([A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}")
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_MADE = frozenset(
    ("event", "item", "call", "request", "message", "response", "stream", "turn", "context", "")
)
"""The things within a conversation whose ids are made up for it. The ids of others, of voices or
prompts, are choices."""


def _words_of_id(path: _Path) -> list[str]:
    """The words of the name of an id, `id` the last of them; [] for any other value."""
    words = _WORDS.findall(str(path[-1])) if path else []
    return words if words and words[-1].lower() == "id" else []


def is_id(path: _Path) -> bool:
    """Whether the value at a path of a message is an id."""
    return bool(_words_of_id(path))


def is_made_id(path: _Path) -> bool:
    """Whether the value at a path of a message is an id that a client makes up, as it is that of a
    thing within the conversation."""
    words = _words_of_id(path)
    if not words:
        return False
    names = [step for step in path[:-1] if isinstance(step, str)]
    owner = words[:-1] or (_WORDS.findall(names[-1].removesuffix("s")) if names else [])
    return (owner[-1].lower() if owner else "") in _MADE


def _encoded_size(text: str) -> int | None:
    """The bytes of a base64 text, with the alphabet of either RFC 4648 section; None: it is
    none."""
    if _ALPHABETS.fullmatch(text) is None or len(text.rstrip("=")) % 4 == 1:
        return None
    return len(text.rstrip("=")) * 3 // 4


def is_media(text: str) -> bool:
    """Whether a text is long base64, and neither words nor hexadecimal digits."""
    if len(text) < _LONG_TEXT or _encoded_size(text) is None:
        return False
    is_mixed = re.search("[A-Z+]", text) is not None or re.search("[a-z]", text) is None
    return is_mixed and re.fullmatch("[0-9a-f]*", text) is None


def bytes_text(size: int, count: int = 1) -> str:
    """What stands for so many bytes, in so many messages."""
    return f"<{size} bytes>" if count == 1 else f"<{size} bytes in {count} messages>"


def shortened_size(text: Any) -> int | None:
    """The inverse of `bytes_text`; None for any other value."""
    match = _SHORTENED.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else int(match[1])


def message_count(value: Any) -> int:
    """In how many messages a client sent what is one message of a scenario."""
    for _, text in strings(value):
        match = _SHORTENED.fullmatch(text)
        if match is not None:
            return int(match[2] or 1)
    return 1


def strings(value: Any, path: _Path = ()) -> Iterator[tuple[_Path, str]]:
    """The strings in a JSON value, with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from strings(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from strings(item, (*path, index))


def shorten_media(value: Any, path: _Path = ()) -> Any:
    """A JSON value with the number of their bytes in place of long base64 texts."""
    if isinstance(value, str):
        is_long = is_media(value) and not is_made_id(path)
        return bytes_text(_encoded_size(value) or 0) if is_long else value
    if isinstance(value, dict):
        return {key: shorten_media(item, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [shorten_media(item, (*path, index)) for index, item in enumerate(value)]
    return value


def with_bytes(value: Any) -> Any:
    """A JSON value with so many zero bytes, as base64, in place of their number."""
    if isinstance(value, dict):
        return {key: with_bytes(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_bytes(item) for item in value]
    size = shortened_size(value)
    return value if size is None else base64.b64encode(bytes(size)).decode()


# Streams of media


@record
class MediaStream:
    """What a client streams in pieces: messages that differ in the bytes of one base64 text, and in
    ids, or binary messages.

    Args:
        path: of the text; () for binary messages.
        rest: of the messages.
    """

    path: _Path
    rest: str = ""

    def size_in(self, value: Any) -> int | None:
        """The bytes in a message of the stream, a JSON value or bytes; None: it is none."""
        if isinstance(value, bytes) or not self.path:
            return len(value) if isinstance(value, bytes) and not self.path else None
        text = value
        for step in self.path:
            try:
                text = text[step]
            except (KeyError, IndexError, TypeError):
                return None
        size = shortened_size(text)
        if size is None and isinstance(text, str):
            size = _encoded_size(text)
        return size if size is not None and _rest(value, self.path) == self.rest else None


def stream_of(value: Any) -> MediaStream | None:
    """The stream that a message of a client, a JSON value or bytes, may belong to; None: it has not
    one text of bytes."""
    if isinstance(value, bytes):
        return MediaStream(()) if len(value) >= _LONG_BYTES else None
    if isinstance(value, str):
        return MediaStream(()) if shortened_size(value) is not None else None
    paths = [
        path for path, text in strings(shorten_media(value)) if shortened_size(text) is not None
    ]
    return MediaStream(paths[0], _rest(value, paths[0])) if len(paths) == 1 else None


def streams_of(values: Iterable[Any]) -> tuple[MediaStream, ...]:
    """What the messages of a client stream, each once."""
    return tuple(dict.fromkeys(stream for value in values if (stream := stream_of(value))))


def _rest(value: Any, without: _Path) -> str:
    """A JSON value as text, but for what stands at a path, and ids."""

    def rest(item: Any, path: _Path) -> Any:
        if path == without:
            return None
        if isinstance(item, dict):
            return {
                key: rest(inner, (*path, key))
                for key, inner in sorted(item.items())
                if not is_made_id((*path, key))
            }
        if isinstance(item, list):
            return [rest(inner, (*path, index)) for index, inner in enumerate(item)]
        return item

    return compact(rest(value, ()))


# Messages


def value_of(data: bytes) -> Any:
    """A message as a JSON object or array, else as text, else as bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    with_brackets = text.lstrip()[:1] in ("{", "[")
    try:
        value = decode(text) if with_brackets else text
    except (ValueError, RecursionError):
        return text
    return value if _depth(value) <= _DEEPEST else text


def _depth(value: Any) -> int:
    deepest, level = 0, [value]
    while level:
        deepest += 1
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return deepest


def message_spec(message: SocketMessage) -> MessageSpec:
    """A message as a scenario has it."""
    if message.kind == "close":
        return MessageSpec("close", CloseSpec(message.code, message.reason, message.how))
    value = value_of(message.data)
    if isinstance(value, dict | list):
        return MessageSpec("json", shorten_media(value))
    if isinstance(value, str) and message.kind == "text":
        return MessageSpec("text", value)
    size = len(message.data)
    text = bytes_text(size) if size >= _LONG_BYTES else base64.b64encode(message.data).decode()
    return MessageSpec("base64", text)


# Turns


@dataclass(slots=True)
class TakenMessage:
    """A message of a scenario, and the recorded ones that it stands for.

    Args:
        recorded: empty for the end of a connection that was not recorded.
        stream, size, count: of what the client streams, its bytes in so many messages.
    """

    spec: MessageSpec
    recorded: list[SocketMessage] = field(default_factory=list)
    stream: MediaStream | None = None
    size: int = 0
    count: int = 0


@dataclass(slots=True)
class TakenTurn:
    """A turn of a scenario, with what was recorded of it.

    Args:
        since: when its answer began to be due, in microseconds of the session.
    """

    since: int
    client: list[TakenMessage] = field(default_factory=list)
    service: list[TakenMessage] = field(default_factory=list)

    def spec(self) -> TurnSpec:
        """The turn without what was recorded."""
        client, service = (
            tuple(taken.spec for taken in side) for side in (self.client, self.service)
        )
        return TurnSpec(client=client, service=service)


def socket_turns(session: SocketSession) -> tuple[TurnSpec, ...]:
    """The turns of a session whose opening was accepted; at least one."""
    return tuple(turn.spec() for turn in taken_turns(session))


def taken_turns(session: SocketSession) -> list[TakenTurn]:
    """The turns of a session whose opening was accepted, with what was recorded; at least one."""
    messages = sorted(session.messages, key=attrgetter("connection"))  # the sort is stable
    connections = [list(group) for _, group in groupby(messages, attrgetter("connection"))]
    streams = streams_of(
        value_of(message.data)
        for message in messages
        if message.side == "client" and message.kind in ("text", "binary")
    )
    turns: list[TakenTurn] = []
    for number, connection in enumerate(connections):
        turns += _turns_of(connection, streams, is_last=number == len(connections) - 1)
    return turns or [TakenTurn(0, [TakenMessage(MessageSpec("close", CloseSpec()))])]


def _turns_of(
    messages: list[SocketMessage], streams: Iterable[MediaStream], *, is_last: bool
) -> Iterator[TakenTurn]:
    """The turns of one connection. That the client ends the last one is not expected of it."""
    turn = TakenTurn(0 if messages[0].connection == 0 else messages[0].at)
    side: Side = "client"
    for message in messages:
        if message.kind in ("ping", "pong"):
            continue
        if message.kind == "close" and message.side == "client" and is_last:
            break
        if message.side == "client" and side == "service":
            yield turn
            turn = TakenTurn(message.at)
        side = message.side
        if side == "client":
            turn.since = message.at
            add_sent(turn.client, message, streams)
        else:
            turn.service.append(TakenMessage(message_spec(message), [message]))
        if message.kind == "close":
            break
    else:
        if not is_last:
            if turn.service:
                yield turn
                turn = TakenTurn(messages[-1].at)
            turn.client.append(TakenMessage(MessageSpec("close", CloseSpec(0, how="eof"))))
    if turn.client or turn.service:
        yield turn


def add_sent(
    sent: list[TakenMessage], message: SocketMessage, streams: Iterable[MediaStream]
) -> None:
    """Adds a message of the client to those of its turn, or to what it has streamed in it."""
    value = None if message.kind == "close" else value_of(message.data)
    for stream in streams:
        size = None if value is None else stream.size_in(value)
        if size is None:
            continue
        taken = next((taken for taken in sent if taken.stream == stream), None)
        if taken is None:
            taken = TakenMessage(message_spec(message), stream=stream)
            sent.append(taken)
        taken.recorded.append(message)
        taken.size, taken.count = taken.size + size, taken.count + 1
        text = bytes_text(taken.size, taken.count)
        taken.spec = replace(taken.spec, value=_put(taken.spec.value, stream.path, text))
        return
    sent.append(TakenMessage(message_spec(message), [message]))


def _put(value: Any, path: _Path, text: str) -> Any:
    """A JSON value with a text at a path."""
    if not path:
        return text
    if isinstance(value, dict):
        return {**value, path[0]: _put(value[str(path[0])], path[1:], text)}
    return [_put(item, path[1:], text) if n == path[0] else item for n, item in enumerate(value)]
