"""Answers requests for routes that call no model, from the scenarios with a `route`.

`mockllm.play.matching.route_selection` selects the turns. This module plays the next of them: its
tape, or else its `answer`. Files are read where the caller of `play` decides, as tapes are.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from cachetools import LRUCache

from mockllm.core.errors import Problem, ScenarioError
from mockllm.core.http import TimedBytes
from mockllm.core.jsontext import json_bytes
from mockllm.core.later import later
from mockllm.play.matching.index import SCENARIO_HEADER
from mockllm.play.matching.route_selection import RouteIndex, RouteRequest
from mockllm.play.replay.call import Answered
from mockllm.play.replay.compilation.http_answer import (
    CORS,
    HttpAnswer,
    byte_bounded,
    bytes_answer,
    with_own_headers,
)
from mockllm.play.replay.compilation.tape_player import RecordedAnswer, Recordings
from mockllm.play.replay.filling import fill, route_values
from mockllm.play.replay.route_jobs import RouteJobs
from mockllm.play.replay.sessions.exchange import Played
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.reading.files import MAX_BODY
from mockllm.scenario.route_model import RouteAnswer
from mockllm.wire.protocols.base import dumps

if TYPE_CHECKING:
    from mockllm.play.replay.socket_player import SocketPlayer

_NO_BODY = (204, 304)
_MAX_KEPT = 64 * 1024 * 1024
"""Bytes of all answers that are kept."""

_BINARY = "application/octet-stream"
_CONTENT_TYPES = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
    "base64": _BINARY,
}
_FILE_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "gif": "image/gif",
    "html": "text/html; charset=utf-8",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ogg": "audio/ogg",
    "opus": "audio/opus",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain; charset=utf-8",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
    "zip": "application/zip",
}
"""The content types of files, by the end of their names. The table of the system is not read: it
differs from machine to machine."""


class RoutePlayer:
    """Answers requests with the scenarios that have a route."""

    def __init__(
        self, scenarios: Iterable[Scenario], named: str | None = None, speed: float = 1.0
    ) -> None:
        scenarios = tuple(scenarios)
        self.index = RouteIndex(scenarios)
        self.jobs = RouteJobs(scenarios, self._job_answer, speed)
        self._named = named
        self._recordings = Recordings()
        self._kept: LRUCache[tuple[str, int, str], HttpAnswer] = byte_bounded(
            _MAX_KEPT, lambda answer: 2 * len(answer.encoded)
        )

    @cached_property
    def sockets(self) -> SocketPlayer:
        """Plays the routes that are WebSockets."""
        from mockllm.play.replay.socket_player import SocketPlayer  # few scenarios have some

        return SocketPlayer(self.index, self._named, self._answer)

    def fits(self, method: str, path: str, host: str) -> bool:
        """Whether a scenario, or a job of one, has a route that fits; the host is "" where it is
        not known."""
        return bool(self.index.fitting(method, path, host)) or self.jobs.fits(method, path)

    def play(self, request: RouteRequest, session: Session, now: float = 0.0) -> Answered | None:
        """The answer to a request; None where no scenario answers.

        Args:
            now: when it arrived, in seconds since 1970, by the clock of the entries of its session.
        """
        return self.jobs.play(request, session, now) or self._play(request, session)

    def _play(self, request: RouteRequest, session: Session) -> Answered | None:
        named = request.headers.get(SCENARIO_HEADER) or self._named
        turns = self.index.select(request, named)
        if not turns:
            return None
        unplayed = session.next_unplayed(turns)
        scenario, index = unplayed or turns[-1]
        if scenario.restart:
            index = session.attempt(scenario, 0, len(scenario.turns))
        turn = scenario.turns[index]
        recorded = self._recordings.play_route(scenario, index)
        if recorded.answer is not None:
            answer = recorded.answer
        elif scenario.is_template(turn) and scenario.route is not None:
            values = route_values(request, scenario.route)
            answer = route_answer(fill(scenario, index, turn, values)[0])
        else:
            answer = self._answer(scenario, index, turn)
        session.note_played(scenario.name, index)
        played = Played(
            outcome="played" if answer.status < 400 else "error",
            status=answer.status,
            cause="" if answer.status < 400 else "scenario",
            problems=recorded.problems,
            model=request.model or None,
            scenario=scenario.name,
            turn=index,
            position=index,
            recorded=recorded.why,
            changes=_changes(request, recorded),
            repeated=unplayed is None and turn.recorded is not None,
        )
        answered = Answered(answer, played)
        if turn.job is not None and turn.answer is not None:
            answered = self.jobs.create(answered, scenario, turn.answer, session)
        return replace(answered, answer=answered.answer.behind(turn.gate))

    def _job_answer(
        self, scenario: Scenario, index: int, written: RouteAnswer, of: str
    ) -> HttpAnswer:
        return self._answer(scenario, index, TurnSpec(answer=written), of)

    def _answer(
        self, scenario: Scenario, index: int, turn: TurnSpec, of: str = "turn"
    ) -> HttpAnswer:
        """The answer that a turn describes, or `of` a key of its job."""
        key = scenario.name, index, of
        answer = self._kept.get(key)
        if answer is None:
            content = None
            if turn.answer is not None and turn.answer.kind == "file":
                content = later(("file", *key), partial(_content, turn.answer))
            answer = route_answer(turn, content)
            self._kept[key] = answer
        return answer


def _changes(request: RouteRequest, recorded: RecordedAnswer) -> tuple[str, ...]:
    """The differences of a request from the one that its recording was made from."""
    if recorded.of is None:
        return recorded.uncompared
    from mockllm.play.matching.request_changes import changes_of_route

    return changes_of_route(recorded.of, request, recorded.ignore)


def route_answer(turn: TurnSpec, content: bytes | None = None) -> HttpAnswer:
    """The HTTP answer that a turn of a route describes; its tape is not looked at."""
    answer = turn.answer or RouteAnswer()
    body = _body(answer) if content is None else content
    headers = with_own_headers({**CORS, **_content_type(answer)}, answer.headers)
    due = (turn.timing.ttft or 0) if turn.timing is not None else 0
    parts = [TimedBytes(due, body)] if body else []
    bodiless = answer.status in _NO_BODY
    return bytes_answer(answer.status, headers, parts, streamed=False, bodiless=bodiless)


def _content_type(answer: RouteAnswer) -> dict[str, str]:
    if answer.kind == "file":
        end = str(answer.value).rpartition(".")[2].lower()
        return {"content-type": _FILE_TYPES.get(end, _BINARY)}
    kind = _CONTENT_TYPES.get(answer.kind)
    return {} if kind is None else {"content-type": kind}


def _body(answer: RouteAnswer) -> bytes:
    match answer.kind:
        case "json":
            return json_bytes(dumps(answer.value))
        case "text":
            text: str = answer.value
            return text.encode()
        case "base64":
            return base64.b64decode(answer.value)
        case "file":
            return _content(answer)
    return b""


def _content(answer: RouteAnswer) -> bytes:
    """The bytes of the file that an answer names."""
    if answer.path is None:
        why = "is not looked for, since its scenario was not loaded from a file"
        raise ScenarioError([Problem(str(answer.value), 1, 1, "", why)])
    try:
        with Path(answer.path).open("rb") as file:
            content = file.read(MAX_BODY + 1)
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise ScenarioError([Problem(answer.path, 1, 1, "", message)]) from None
    if len(content) > MAX_BODY:
        message = f"is larger than {MAX_BODY // 2**20} MiB"
        raise ScenarioError([Problem(answer.path, 1, 1, "", message)])
    return content
