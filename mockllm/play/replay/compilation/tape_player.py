"""Plays recorded answers: the exact bytes of a tape, or the reason why the reply is played instead.

A tape is read when its turn first answers a request. Its answer is cached, bounded in bytes. The
caller of `play` decides in which thread tapes are read.

A tape is played while the turn in the YAML is what it decodes to: parts, calls, finish and usage,
and of an error or of a route what the YAML has of it. How the answer is cut into fragments, and
when they come, is on the tape alone.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal

from cachetools import LRUCache

from mockllm.core.errors import MockLLMError, Problem, RequestError, ScenarioError
from mockllm.core.http import Ending, Target, TimedBytes
from mockllm.core.later import later
from mockllm.core.request import PLACEHOLDER_BYTES, World
from mockllm.core.turn import Part, ServerTool, ToolCall, Turn
from mockllm.play.replay.compilation.http_answer import (
    CORS,
    HttpAnswer,
    byte_bounded,
    bytes_answer,
    count_generated,
    origin_of,
    points_to,
)
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.tapes.captured import Captured, Cut, Tape, detect_api, load_head, load_tape
from mockllm.play.tapes.recorded_turn import (
    RecordedTurn,
    recorded_error,
    recorded_turn,
    route_headers,
)
from mockllm.play.tapes.socket_tape import load_session
from mockllm.scenario.model import Http, Ignored, Recorded, Scenario, TurnSpec
from mockllm.scenario.part_model import ServerToolPart, members, tool_parts
from mockllm.scenario.route_model import RouteAnswer
from mockllm.wire.framing.eventstream import begins_stream
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol

Why = Literal[
    "",
    "exact",
    "edited",
    "other api",
    "not streamed",
    "streamed",
    "quirks",
    "machine",
    "unreadable",
]
"""Whether a turn's recording was played.

"" for a turn without one; `exact`: it was. Else why not: the reply in the YAML was `edited`; the
request is of an `other api`; it is for an answer that is `not streamed` and the recording is a
stream, or the other way round (`streamed`); it has `quirks`; a folder of the client's `machine` is
written with characters that JSON escapes; the tape is `unreadable`.
"""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The recorded answer, or None with the reason why it is not played.

    Args:
        of: the exchange that it is of, without its chunks; None where that was not read.
        ignore: the parts of a request that are not compared with the recorded one.
    """

    answer: HttpAnswer | None
    why: Why
    problems: tuple[str, ...] = ()
    duration: int = 0
    of: Captured | None = None
    ignore: Ignored = ()

    def on_machine(self, world: World) -> RecordedAnswer:
        """The same with values of a client's machine in place of placeholders."""
        if self.answer is None:
            return self
        filled = _fill(self.answer, world)
        return replace(self, answer=filled, why="machine" if filled is None else self.why)

    @property
    def uncompared(self) -> tuple[str, ...]:
        """Why a request is not compared with the recorded one; () where nothing was recorded."""
        is_read = self.why != "unreadable"
        return () if is_read else ("the tape cannot be read, so the request is not compared",)


@dataclass(frozen=True, slots=True)
class _Recording:
    """The parts of a tape that stay in memory.

    Args:
        api, streamed: of the requests that it answers.
        unedited: whether the turn in the YAML is what the tape decodes to.
        of, ignore: as `RecordedAnswer` has them.
    """

    api: str
    streamed: bool
    unedited: bool
    answer: HttpAnswer
    of: Captured
    ignore: Ignored

    def recorded_answer(self, why: Why) -> RecordedAnswer:
        times = self.answer.times
        answer = self.answer if why == "exact" else None
        duration = times[-1] if times else 0
        return RecordedAnswer(answer, why, (), duration, self.of, self.ignore)


_Key = tuple[str, int, str]


class Recordings:
    """The cache of the tapes that were played; the least recently used are dropped first."""

    def __init__(self, *, max_bytes: int = 128 * 1024 * 1024) -> None:
        # Twice: a kept answer has its bytes whole and event by event.
        self._recordings: LRUCache[_Key, _Recording] = byte_bounded(
            max_bytes,
            lambda recording: 2 * len(recording.answer.encoded) + len(recording.of.request_body),
        )

    def play(
        self,
        scenario: Scenario,
        index: int,
        protocol: WireProtocol,
        *,
        stream: bool,
        quirks: bool = False,
        attempt: TurnSpec | None = None,
    ) -> RecordedAnswer:
        """The recorded answer of a turn to a request.

        Args:
            quirks: whether the request has quirks, which the recording does not have.
        """
        recording = self._recording(scenario, index, attempt)
        if isinstance(recording, RecordedAnswer):
            return recording
        why: Why = "exact"
        if recording.api != protocol.name:
            why = "other api"
        elif recording.streamed != stream:
            why = "not streamed" if recording.streamed else "streamed"
        elif not recording.unedited:
            why = "edited"
        elif stream and quirks:
            why = "quirks"
        return recording.recorded_answer(why)

    def know(
        self,
        scenario: Scenario,
        index: int,
        tape: Tape,
        content: bytes | None = None,
        decoded: RecordedTurn | None = None,
    ) -> None:
        """Takes the tape of a turn as it was just written, so that its file is not read."""
        recorded = scenario.turns[index].recorded
        assert recorded is not None
        key = (scenario.name, index, recorded.file)
        self._recordings[key] = _read_recording(tape, scenario, index, None, content, decoded)

    def play_route(self, scenario: Scenario, index: int) -> RecordedAnswer:
        """The recorded answer of a turn of a route that calls no model."""
        recording = self._recording(scenario, index, None)
        if isinstance(recording, RecordedAnswer):
            return recording
        why: Why = "other api" if recording.api else "exact" if recording.unedited else "edited"
        return recording.recorded_answer(why)

    def _recording(
        self, scenario: Scenario, index: int, attempt: TurnSpec | None
    ) -> _Recording | RecordedAnswer:
        """The recording of a turn, or of an earlier try; why there is none to play."""
        recorded = (attempt or scenario.turns[index]).recorded
        if recorded is None:
            return RecordedAnswer(None, "")
        key = (scenario.name, index, recorded.file)
        recording = self._recordings.get(key)
        if recording is None:
            try:
                recording = later(key, partial(_read_tape, recorded, scenario, index, attempt))
            except (OSError, MockLLMError) as error:
                return RecordedAnswer(None, "unreadable", (str(error),))
            self._recordings[key] = recording
        return recording


def _read_tape(
    recorded: Recorded, scenario: Scenario, index: int, attempt: TurnSpec | None
) -> _Recording:
    """Reads what is kept of a tape. It uses no state, so any thread may call it."""
    tape = load(recorded)
    written = scenario.turns[index].answer
    content = None
    if written is not None and written.path is not None:
        content = Path(written.path).read_bytes()
    return _read_recording(tape, scenario, index, attempt, content)


def _read_recording(
    tape: Tape,
    scenario: Scenario,
    index: int,
    attempt: TurnSpec | None,
    content: bytes | None,
    decoded: RecordedTurn | None = None,
) -> _Recording:
    protocol = PROTOCOLS.get(tape.api)
    if decoded is None and protocol is not None and tape.exchange.status < 400:
        decoded = recorded_turn(tape.exchange.plain(), protocol, streamed=tape.streamed)
    unedited = is_unedited(scenario, index, tape, attempt, content, decoded)
    recorded = answer(tape.exchange, (decoded.id or None) if decoded is not None else None)
    if decoded is not None:
        recorded = replace(recorded, generated=count_generated((decoded.turn,), recorded.times))
    written = (attempt or scenario.turns[index]).recorded
    ignore = written.ignore if written is not None else ()
    of = replace(tape.exchange, chunks=())
    return _Recording(tape.api, tape.streamed, unedited, recorded, of, ignore)


def load(recorded: Recorded) -> Tape:
    """The tape of a turn.

    Raises:
        OSError: the file cannot be read.
        ScenarioError: it is broken, or its scenario was not loaded from a file.
    """
    if recorded.path is None:
        message = "the tape is not looked for, since its scenario was not loaded from a file"
        raise ScenarioError([Problem(recorded.file, 1, 1, "", message)])
    return load_tape(Path(recorded.path).read_bytes(), recorded.path)


def check(recorded: Recorded, *, of_socket: bool) -> None:
    """Checks the first line of a turn's tape, or all of that of a WebSocket."""
    if recorded.path is None:
        return
    with Path(recorded.path).open("rb") as file:
        if of_socket:
            load_session(file.read(), recorded.path)
        else:
            load_head(file.readline(), recorded.path)


_CONNECTION = ("connection", "keep-alive", "trailer", "transfer-encoding", "upgrade")
# An alternative service would be a port where nothing listens.
_FRAMING = frozenset((*_CONNECTION, "content-length", "alt-svc"))
"""Headers of the recorded connection; the answer gets its own."""

_ENDINGS: Mapping[Cut, Ending] = {
    "": "complete",
    "client": "complete",
    "stalled": "open",
    "upstream": "closed",
    "chunk": "chunk",
    "reset": "reset",
}
"""How an answer ends, by the end of the recorded one."""


def answer(recorded: Captured, id: str | None = None) -> HttpAnswer:
    """The answer with the bytes of a recorded one, in its chunks and at its times; `id` is that by
    which a client may request or continue it later.

    If the upstream service closed or reset the connection early, the answer ends in the same way at
    the same byte. If the client closed it, the answer ends normally after the recorded bytes: the
    client needed no more. If it did so because nothing more came, nothing more comes.
    """
    framing = _FRAMING - {"trailer"} if recorded.trailers else _FRAMING
    headers = [pair for pair in recorded.headers if pair[0] not in framing]
    names = {name for name, _ in headers}
    if "access-control-allow-origin" not in names:  # or the service decided who may read it
        headers += [pair for pair in CORS.items() if pair[0] not in names]
    chunks = [chunk for chunk in recorded.chunks if chunk.data]
    length = _length(recorded)
    # Whatever the head says of a body (RFC 9112, section 6.3).
    bodiless = recorded.method == "HEAD" or recorded.status in (204, 304)
    broken = _ENDINGS[recorded.cut] != "complete"
    if broken and length is not None and sum(len(chunk.data) for chunk in chunks) >= length:
        length = None  # or the answer would be whole
    return bytes_answer(
        recorded.status,
        headers,
        chunks,
        streamed=length is None and not bodiless,
        segmented=len(chunks) > 1,
        bodiless=bodiless,
        length=length if bodiless or broken else None,
        ending=_ENDINGS[recorded.cut],
        id=id,
        reason=recorded.reason,
        trailers=recorded.trailers,
        service=_service(recorded),
    )


def _fill(recorded: HttpAnswer, world: World) -> HttpAnswer | None:
    """A recorded answer with the values of a machine in place of placeholders, in as many parts;
    None where a value cannot stand in its bytes as it is."""
    data = b"".join(recorded.data)
    spans = [found.span() for found in PLACEHOLDER_BYTES.finditer(data)]
    if not spans or any(name == "content-encoding" for name, _ in recorded.headers):
        return recorded
    values = [world.fill(data[start:end].decode()) for start, end in spans]
    if begins_stream(data) or not all(map(_stands_in_json, values)):
        return None
    filled = iter(values)
    whole = PLACEHOLDER_BYTES.sub(lambda _: next(filled).encode(), data)
    ends, passed, shift = [0], 0, 0
    for end in accumulate(map(len, recorded.data)):
        while passed < len(spans) and spans[passed][0] < end:
            start, stop = spans[passed]
            shift += len(values[passed].encode()) - (stop - start)
            passed += 1
        ends.append(max(end, spans[passed - 1][1] if passed else 0) + shift)
    parts = [
        TimedBytes(at, whole[start:end])
        for at, (start, end) in zip(recorded.times, pairwise(ends), strict=True)
        if start < end
    ]
    answer = bytes_answer(
        recorded.status,
        recorded.headers,
        parts,
        streamed=recorded.streamed,
        segmented=recorded.segmented,
        ending=recorded.ending,
        id=recorded.id,
        reason=recorded.reason,
        trailers=recorded.trailers,
        bodiless=recorded.bodiless,
        length=None if recorded.length is None else recorded.length + len(whole) - len(data),
        service=recorded.service,
    )
    return replace(answer, generated=recorded.generated)


def _stands_in_json(value: str) -> bool:
    """Whether a text is the same inside of a JSON string."""
    return json.dumps(value, ensure_ascii=False) == f'"{value}"'


def _service(recorded: Captured) -> str:
    """The origin of the service, if a header points there, as that of a redirect or an upload."""
    origin = origin_of(recorded.url)
    points = any(points_to(value, origin) for _, value in recorded.headers)
    return origin if recorded.url and points else ""


def _length(recorded: Captured) -> int | None:
    """The recorded `content-length`; None without one that is a number."""
    value = recorded.header("content-length")
    return int(value) if value.isascii() and value.isdigit() else None


def is_unedited(
    scenario: Scenario,
    index: int,
    tape: Tape,
    attempt: TurnSpec | None = None,
    content: bytes | None = None,
    decoded: RecordedTurn | None = None,
) -> bool:
    """Whether a turn of a scenario is what a tape decodes to.

    Args:
        attempt: the earlier try of the turn that has the tape; None: the turn itself has it. A try
            that was broken off has nothing in the YAML to be edited.
    """
    turn = scenario.turns[index].for_api(tape.api)
    plain = tape.exchange.plain()
    if attempt is not None:
        return attempt.http is None or _is_same_error(attempt.http, plain, tape.api)
    recorded = scenario.turns[index].recorded
    if recorded is not None and recorded.partial:
        return True
    if not tape.api:
        return turn.answer is not None and _is_same_route(turn.answer, plain, content)
    if plain.status >= 400 or turn.http is not None:
        return turn.http is not None and _is_same_error(turn.http, plain, tape.api)
    if turn.is_auto or any(
        (turn.wire, turn.headers, turn.service_tier, turn.fingerprint, turn.choices)
    ):
        return False  # no recording has these keys
    protocol = PROTOCOLS[tape.api]
    written = resolve(scenario, index, tape.api, spec=turn)
    taped = decoded or recorded_turn(plain, protocol, streamed=tape.streamed)
    return _content(written, turn) == _content(taped.turn, turn)


def _content(turn: Turn, spec: TurnSpec) -> Turn:
    """The turn without its fragments and times, and without the ids that the YAML leaves out."""
    whole = turn.whole()
    calls = [call.id is not None for call in tool_parts(spec.reply)]
    parts = members(spec.reply)
    hosted = [part.id is not None for part in parts if isinstance(part, ServerToolPart)]
    return replace(
        whole, parts=_with_ids(_with_ids(whole.parts, ToolCall, calls), ServerTool, hosted)
    )


def _with_ids(
    parts: Sequence[Part], kind: type[ToolCall | ServerTool], has_id: Sequence[bool]
) -> tuple[Part, ...]:
    """The parts, those of a kind without the ids that are not written."""
    written = iter(has_id)
    return tuple(
        replace(part, id="") if isinstance(part, kind) and not next(written, True) else part
        for part in parts
    )


def _is_same_error(http: Http, plain: Captured, api: str) -> bool:
    return plain.status >= 400 and http == recorded_error(plain, PROTOCOLS[api])


def _is_same_route(answer: RouteAnswer, plain: Captured, content: bytes | None) -> bool:
    if (answer.status, answer.headers) != (plain.status, route_headers(plain)):
        return False
    match answer.kind:
        case "json":
            return _is_same_json(answer.value, plain.body)
        case "text":
            return bool(answer.value.encode() == plain.body)
        case "base64":
            return base64.b64decode(answer.value) == plain.body
        case "file":
            return content == plain.body
    return not plain.body


def _is_same_json(value: object, body: bytes) -> bool:
    try:
        return bool(value == json.loads(body))
    except (ValueError, RecursionError):
        return False


@dataclass(frozen=True, slots=True)
class AcceptedRequest:
    """The request of a recorded turn, as the client sent it, which the service accepted.

    Servers that speak OpenAI's or another API (vLLM, Ollama, llama.cpp) are often less strict than
    the original, and their clients rely on that. A request that the recorded service answered is no
    mistake when a client sends it again.
    """

    target: Target
    body: bytes


def accepted_request(recorded: Recorded, protocol: WireProtocol) -> AcceptedRequest | None:
    """The request of a recorded turn; None where it is of another API, or its tape unreadable."""
    try:
        captured = load(recorded).exchange
    except (OSError, MockLLMError):
        return None  # playing the turn reports it
    sent = detect_api(captured)
    if sent.protocol is not protocol:
        return None
    return AcceptedRequest(sent.target, captured.request_body)


def same_refusal(one: RequestError, other: RequestError) -> bool:
    """Whether two refusals have the same reason: the same field, or without one, the same text."""
    if one.param is None:
        return one.message == other.message
    return (one.param, one.code) == (other.param, other.code)
