"""A request beside the one that its recording was made from, line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from mockllm.core.errors import MockLLMError
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.compilation.tape_player import load
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols.values import utf8_text

_MOST_LINES = 4000
"""Of both requests: more are not compared line by line."""

_CONTEXT = 3
"""Equal lines that are shown before and after others."""


def recorded_json(exchange: Exchange, scenario: Scenario | None) -> dict[str, Any] | None:
    """The differences of a request from the recorded one, and both side by side; None where they
    ask for the same.

    Args:
        scenario: that answered, as it is served now; None: it is no longer served.
    """
    if not exchange.played.changes:
        return None
    try:
        lines, why = _side_by_side(exchange, scenario), ""
    except (OSError, MockLLMError, LookupError) as error:
        lines, why = [], f"The recorded request cannot be shown: {error}"
    return {"changes": list(exchange.played.changes), "lines": lines, "why": why}


def _side_by_side(exchange: Exchange, scenario: Scenario | None) -> list[Any]:
    played = exchange.played
    if scenario is None or played.turn is None:
        raise LookupError("its scenario is no longer served")
    if exchange.body_size is not None:
        raise LookupError("the request that was sent is too large to be kept whole")
    tries = (*scenario.turns[played.turn].attempts, scenario.turns[played.turn])
    recorded = tries[min(played.attempt, len(tries)) - 1].recorded
    if recorded is None:
        raise LookupError("its turn has no recording now")
    before = RouteRequest.of_exchange(load(recorded).exchange.plain_request())
    sent = RouteRequest(before.method, before.path, "", exchange.headers, exchange.body)
    sides = [_lines(request) for request in (before, sent)]
    if sum(map(len, sides)) > _MOST_LINES:
        raise LookupError(f"both have more than {_MOST_LINES:,} lines")
    return list(_pairs(*sides))


def _lines(request: RouteRequest) -> list[str]:
    """The lines of a body, its fields in the order of their names."""
    if request.fields is not None:
        fields = json.dumps(request.fields, indent=2, ensure_ascii=False, sort_keys=True)
        return fields.split("\n")
    text = utf8_text(request.body)
    return [f"{len(request.body):,} bytes"] if text is None else text.split("\n")


def _pairs(before: Sequence[str], sent: Sequence[str]) -> Iterator[Any]:
    """Pairs of lines, None for one that a side does not have; an equal line is alone, and a number
    is of equal lines that are left out."""
    matcher = SequenceMatcher(None, before, sent, autojunk=False)
    end = 0
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        if group[0][1] > end:
            yield group[0][1] - end
        for kind, first, end, other_first, other_end in group:
            if kind == "equal":
                yield from before[first:end]
            else:
                yield from map(list, zip_longest(before[first:end], sent[other_first:other_end]))
    if len(before) > end:
        yield len(before) - end
