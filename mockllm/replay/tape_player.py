"""Recorded answers played again: the exact bytes, or the reason why the neutral reply is played.

A tape is read when its turn is first asked for; what follows from it is kept, bounded in bytes.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mockllm.core.events import Start
from mockllm.errors import MockLLMError, Problem, ScenarioError
from mockllm.framing.content_coding import decompressed
from mockllm.framing.sse import decode
from mockllm.protocols.base import WireProtocol
from mockllm.replay.answer import CORS, Answer, bytes_answer
from mockllm.scenario.model import Recorded, TurnSpec
from mockllm.tapes.load import load_head, load_tape
from mockllm.tapes.model import Tape, digest

__all__ = ["Played", "Recordings", "Why", "answer", "check", "load"]

Why = Literal[
    "", "exact", "edited", "other api", "not streamed", "streamed", "quirks", "unreadable"
]
"""Whether a turn's recording was played.

"" where it has none; `exact` where it was; else why not: the answer in the YAML was `edited`; the
request came over an `other api`; it asked for an answer that is `not streamed`, and the recording
is of a stream, or the other way round (`streamed`); it asked for `quirks`; the tape is
`unreadable`.
"""


@dataclass(frozen=True, slots=True)
class Played:
    """The recorded answer, where it is to be played, and why (not)."""

    answer: Answer | None
    why: Why
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Recording:
    """What is kept of a tape: whether the YAML is still what was written with it, and for what
    requests it is."""

    api: str
    streamed: bool
    untouched: bool
    answer: Answer


class Recordings:
    """The tapes that were played so far; the least recently used go first."""

    def __init__(self, *, max_bytes: int = 128 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple[str, str], _Recording] = OrderedDict()
        self._size = 0

    def play(
        self,
        scenario: str,
        turn: TurnSpec,
        protocol: WireProtocol,
        *,
        stream: bool,
        quirks: bool = False,
    ) -> Played:
        """The recorded answer of a turn to a request.

        Args:
            scenario: the name of the turn's scenario.
            turn: as written, not as the protocol plays it.
            stream: whether the request asks for a stream.
            quirks: whether it asks for what the recording does not have.
        """
        if turn.recorded is None:
            return Played(None, "")
        try:
            recording = self._recording(scenario, turn, protocol)
        except (OSError, MockLLMError) as error:
            return Played(None, "unreadable", (str(error),))
        if recording.api != protocol.name:
            return Played(None, "other api")
        if recording.streamed != stream:
            return Played(None, "not streamed" if recording.streamed else "streamed")
        if not recording.untouched:
            return Played(None, "edited")
        if stream and quirks:
            return Played(None, "quirks")
        return Played(recording.answer, "exact")

    def _recording(self, scenario: str, turn: TurnSpec, protocol: WireProtocol) -> _Recording:
        assert turn.recorded is not None
        key = (scenario, turn.recorded.file)
        kept = self._kept.get(key)
        if kept is None:
            tape = load(turn.recorded)
            untouched = tape.digest == digest(turn, tape.api)
            id = _id(tape, protocol) if tape.api == protocol.name else None
            kept = _Recording(tape.api, tape.streamed, untouched, answer(tape, id))
            self._kept[key] = kept
            self._size += 2 * len(kept.answer.instant)
            while self._size > self._max_bytes and len(self._kept) > 1:
                _, old = self._kept.popitem(last=False)
                self._size -= 2 * len(old.answer.instant)
        self._kept.move_to_end(key)
        return kept


def load(recorded: Recorded) -> Tape:
    """The tape of a turn.

    Raises:
        OSError: the file cannot be read.
        ScenarioError: it is broken, or the scenario came without the folder to look in.
    """
    if recorded.path is None:
        message = "the tape is not looked for, since its scenario was not loaded from a file"
        raise ScenarioError([Problem(recorded.file, 1, 1, "", message)])
    return load_tape(Path(recorded.path).read_bytes(), recorded.path)


def check(recorded: Recorded) -> None:
    """Looks at the first line of a turn's tape only.

    Raises:
        OSError, ScenarioError: as `load` does.
    """
    if recorded.path is not None:
        with Path(recorded.path).open("rb") as file:
            load_head(file.readline(), recorded.path)


_FRAMING = frozenset(
    ["content-length", "transfer-encoding", "connection", "keep-alive", "trailer", "upgrade"]
)
"""Headers of one connection, which the answer has of its own."""


def answer(tape: Tape, id: str | None = None) -> Answer:
    """The answer with the bytes of a tape, in its pieces and at its times.

    One that the upstream broke off breaks off again. One that the client left ends well after
    what there is of it: the client had what it wanted.

    Args:
        id: what a client may later ask for the answer by.
    """
    headers = [pair for pair in tape.headers if pair[0] not in _FRAMING]
    names = {name for name, _ in headers}
    headers += [pair for pair in CORS.items() if pair[0] not in names]
    broken = tape.cut == "upstream"
    pieces = [piece for piece in tape.chunks if piece.data]
    sized = any(name == "content-length" for name, _ in tape.headers)
    return bytes_answer(
        tape.status,
        headers,
        pieces,
        streamed=broken or not sized,
        segmented=len(pieces) > 1,
        ending="closed" if broken else "complete",
        id=id,
    )


def _id(tape: Tape, protocol: WireProtocol) -> str | None:
    """The id by which a client may point at the answer later."""
    encoding = next((value for name, value in tape.headers if name == "content-encoding"), "")
    try:
        pieces = decompressed(tape.chunks, encoding) if encoding else tape.chunks
        body = b"".join(piece.data for piece in pieces)
        return _streamed_id(body, protocol) if tape.streamed else _body_id(body)
    except (MockLLMError, ValueError):
        return None


def _streamed_id(body: bytes, protocol: WireProtocol) -> str | None:
    decoder = protocol.decoder()
    for frame in decode(body):
        for event in decoder.decode(frame):
            if isinstance(event, Start) and event.id:
                return event.id
    return None


def _body_id(body: bytes) -> str | None:
    value = json.loads(body)
    id = value.get("id") if isinstance(value, dict) else None
    return id if isinstance(id, str) else None
