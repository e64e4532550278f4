"""Whether a turn in the YAML is what its tape decodes to, so that the tape is played.

Parts, calls, finish and usage are compared, and of an error or of a route what the YAML has of it.
How the answer is cut into fragments, and when they come, is on the tape alone.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace

from mockllm.core.turn import Part, ServerTool, ToolCall, Turn
from mockllm.matching.conversation import tool_parts
from mockllm.protocols import PROTOCOLS
from mockllm.replay.compilation.resolve import resolve
from mockllm.scenario.model import (
    Http,
    RouteAnswer,
    Scenario,
    ServerToolPart,
    TurnSpec,
    members,
)
from mockllm.tapes.captured import Captured, Tape
from mockllm.tapes.recorded_turn import RecordedTurn, recorded_error, recorded_turn, route_headers


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
    if turn.wire is not None or turn.is_auto:
        return False
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
