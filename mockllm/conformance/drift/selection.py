"""Which recorded requests are sent again, and about what that costs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import zip_longest

from mockllm.conformance.drift.answers import AnswerShape, answer_shape
from mockllm.conformance.drift.compare import Group
from mockllm.core.errors import MockLLMError
from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.core.tokens_and_fragments import tokens
from mockllm.play.tapes.captured import CUTS, Captured, Tape, detect_api, request_of
from mockllm.record.redaction.placeholders import is_placeholder, placeholder_kinds
from mockllm.wire.protocols.base import counted_tokens
from mockllm.wire.protocols.route_matching import Detected
from mockllm.wire.protocols.values import json_object


@record
class TapeOfTurn:
    """A recording of a scenario.

    Args:
        turn, attempt: its turn, and the try of it before the last one, from 0; None for the last.
    """

    scenario: str
    turn: int
    attempt: int | None
    tape: Tape

    @property
    def name(self) -> str:
        """The scenario and the turn, counted from 1, for messages."""
        tried = "" if self.attempt is None else f", try {self.attempt + 1}"
        return f"{self.scenario} turn {self.turn + 1}{tried}"


@record
class LiveRequest:
    """A recorded request that is sent again.

    Args:
        input, output: about how many tokens that costs.
    """

    recording: TapeOfTurn
    group: Group
    before: AnswerShape
    input: int = 0
    output: int = 0


@record
class RecordingNote:
    """The outcome for a recording: why it is not looked at, or how it was updated."""

    name: str
    text: str


@record
class LiveRequests:
    """The requests that are sent again, and those that are not.

    Args:
        all: every recording whose shape is known, whether it is sent again or not.
        same: how many have the request of another one, which is sent once.
    """

    requests: tuple[LiveRequest, ...]
    left_out: tuple[RecordingNote, ...]
    all: tuple[tuple[Group, AnswerShape], ...]
    same: int = 0


def select(
    recordings: Iterable[TapeOfTurn], include: Sequence[str] = (), sample: int | None = None
) -> LiveRequests:
    """The requests to send again.

    Args:
        include: patterns of routes that are requested, too, though they call no model:
            `/v1/embeddings` or `POST /v1/files*`.
        sample: at most so many, of each kind of answer in turn.
    """
    found: list[LiveRequest] = []
    left: list[RecordingNote] = []
    shapes: list[tuple[Group, AnswerShape]] = []
    for recording in recordings:
        exchange = recording.tape.exchange
        request = None
        try:
            reason = "its tape has no request"
            if exchange.method:
                request = _live_request(recording)
                shapes.append((request.group, request.before))
                reason = _why_not(request, include)
        except MockLLMError as error:
            reason = f"it cannot be read: {error}"
        if reason or request is None:
            left.append(RecordingNote(recording.name, reason))
        else:
            found.append(request)
    different = {_key(request): request for request in reversed(found)}
    requests = list(reversed(different.values()))
    same = len(found) - len(requests)
    if sample is not None:
        chosen = _sample_ids(requests, sample)
        others = (request for request in requests if id(request) not in chosen)
        left += [RecordingNote(other.recording.name, "it is not in the sample") for other in others]
        requests = [request for request in requests if id(request) in chosen]
    return LiveRequests(tuple(requests), tuple(left), tuple(shapes), same)


def _live_request(recording: TapeOfTurn) -> LiveRequest:
    tape, exchange = recording.tape, recording.tape.exchange
    found = detect_api(exchange)
    protocol = found.protocol
    request = request_of(exchange, found) if protocol is not None else None
    before = answer_shape(exchange, protocol, streamed=tape.streamed)
    route = "" if protocol is not None else f"{exchange.method} {exchange.path}"
    model = request.model if request is not None else ""
    error = exchange.status >= 400
    api = protocol.name if protocol is not None else ""
    group = Group(api, exchange.host, route, model, tape.streamed, error)
    return LiveRequest(recording, group, before, *_cost(exchange, before, request))


def _cost(exchange: Captured, before: AnswerShape, request: Request | None) -> tuple[int, int]:
    """The tokens that were counted, or about so many; an error costs none."""
    if exchange.status >= 400:
        return 0, 0
    if before.usage is not None:
        return before.usage.input, before.usage.output
    sent = counted_tokens(request) if request is not None else len(exchange.request_body) // 4
    return sent, tokens(exchange.body.decode("utf-8", "replace")) if request is not None else 0


_OF_THE_KEY = (401, 403)
_PASSING = (408, 425, 429)


def is_passing(status: int) -> bool:
    """Whether a status says nothing of what the service answers usually."""
    return status in _PASSING or status >= 500


def is_of_key(status: int) -> bool:
    """Whether a status depends on the key."""
    return status in _OF_THE_KEY


def _why_not(request: LiveRequest, include: Sequence[str]) -> str:
    """Why a request is not sent again; "" if it is."""
    exchange = request.recording.tape.exchange
    found = detect_api(exchange)
    if found.protocol is None and not any(_is_named(exchange, pattern) for pattern in include):
        where = f"{exchange.method} {exchange.path}"
        return f"{found.reason}; --include {where!r} sends it"
    if exchange.cut:
        return f"its answer was {CUTS[exchange.cut]}"
    if is_of_key(exchange.status):
        return f"its answer, HTTP {exchange.status}, depends on the key"
    if is_passing(exchange.status):
        return f"its answer, HTTP {exchange.status}, is a passing error"
    return _unfillable(exchange, found)


def _is_named(exchange: Captured, pattern: str) -> bool:
    method, _, path = pattern.rpartition(" ")
    return method.strip().upper() in ("", exchange.method) and fnmatchcase(exchange.path, path)


def _unfillable(exchange: Captured, found: Detected) -> str:
    stored = found.protocol.stored if found.protocol is not None else None
    body = json_object(exchange.request_body) or {}
    if stored is not None and body.get(stored.field):
        return f"it continues an answer that the service kept ({stored.field})"
    texts = (without_secrets(exchange.url), exchange.request_body.decode("utf-8", "replace"))
    kinds: Counter[str] = placeholder_kinds(texts)
    if kinds:
        what = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        return f"parts of its request were redacted ({what})"
    return ""


def without_secrets(url: str) -> str:
    """A URL without the parameters that were redacted whole, such as keys."""
    before, mark, query = url.partition("?")
    kept = [pair for pair in query.split("&") if not is_placeholder(pair.partition("=")[2])]
    return before + mark + "&".join(kept) if "".join(kept) else before


def _key(request: LiveRequest) -> tuple[str, str, bytes]:
    exchange = request.recording.tape.exchange
    return exchange.method, exchange.url, exchange.request_body


def _sample_ids(requests: Sequence[LiveRequest], most: int) -> set[int]:
    """The ids of requests that are taken from each kind in turn."""
    kinds: dict[object, list[LiveRequest]] = {}
    for request in requests:
        kinds.setdefault((request.group, request.before.choice), []).append(request)
    return set(map(id, _in_turn(kinds.values(), most)))


def _in_turn(groups: Iterable[Sequence[LiveRequest]], most: int) -> Iterator[LiveRequest]:
    count = 0
    for together in zip_longest(*groups):
        for request in together:
            if request is not None and count < most:
                count += 1
                yield request
