"""Requests that differ only in what is ignored find the same scenario and the same recording."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.http import NO_TARGET
from mockllm.core.request import Request
from mockllm.play.matching.fingerprint import request_digest, route_digest
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.mismatch import explain_mismatch
from mockllm.play.matching.route_selection import RouteIndex, RouteRequest
from mockllm.play.matching.select import select
from mockllm.play.replay.loading import loads
from mockllm.scenario.ignoring import with_ignored
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

IGNORE = ("uuid", "timestamp", "$.metadata")


def asks(text: str, **more: Any) -> Request:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    return PROTOCOLS["chat"].parse(body, NO_TARGET, False)


def answers(served: str, request: Request) -> str:
    return select(ScenarioIndex(loads(served)), request, {}).scenario.name


SERVED = """\
scenario: equal
match:
  user: {equals: 'run 11111111-1111-4111-8111-111111111111 at 2026-01-01T10:00:00Z'}
  ignore: [uuid, timestamp]
turns: [{reply: {text: a}}]
---
scenario: part
match: {user: 'job 11111111-1111-4111-8111-111111111111', ignore: [uuid]}
turns: [{reply: {text: b}}]
---
scenario: plain
match: {user: {equals: 'run 11111111-1111-4111-8111-111111111111'}}
turns: [{reply: {text: c}}]
---
scenario: body
match:
  body: {user: 'at 2026-01-01T10:00:00Z', metadata: {run: 1}}
  ignore: [timestamp, $.metadata]
turns: [{reply: {text: d}}]
---
scenario: regex
match: {user: {regex: 'order [0-9-]{10}T'}, ignore: [timestamp]}
turns: [{reply: {text: e}}]
"""
OTHER = "22222222-2222-4222-8222-222222222222"


@for_all(
    ("text", "more", "name"),
    [
        (f"run {OTHER} at 2026-02-02T02:02:02+01:00", {}, "equal"),
        (f"this is job {OTHER}, go", {}, "part"),
        ("run 11111111-1111-4111-8111-111111111111", {}, "plain"),
        ("x", {"user": "at 2027-03-03 03:03", "metadata": {"run": 2}}, "body"),
        ("order 2026-01-01T10:00:00Z", {}, "regex"),
    ],
)
def test_scenarios_are_found(text: str, more: dict[str, Any], name: str) -> None:
    """Conditions on texts and on bodies are compared without what is ignored; a regular expression
    sees the text as it was sent."""
    assert answers(SERVED, asks(text, **more)) == name


def test_a_message_shows_what_differs() -> None:
    """What is ignored is a placeholder on both sides."""
    served = ScenarioIndex(loads(SERVED.partition("---")[0]))
    message = explain_mismatch(served, asks(f"Run {OTHER} at 2026-02-02T02:02:02Z"), {})
    assert (
        "- equal: match.user: the last user message must be 'run <uuid> at <timestamp>', "
        "got 'Run <uuid> at <timestamp>'" in message
    )


def test_a_turn_ignores_what_its_scenario_ignores() -> None:
    """`request:` has no `ignore` of its own."""
    from mockllm.play.matching.conditions import first_problem, judged_expectations

    (scenario,) = loads(
        "scenario: a\nmatch: {user: x, ignore: [uuid]}\nturns:\n- request: {user: {equals: "
        f"'go {UUID(int=7)}'}}, body: {{user: '{UUID(int=8)}'}}}}\n  reply: {{text: y}}"
    )
    expect = scenario.turns[0].request
    assert expect is not None

    def problem(request: Request) -> str | None:
        return first_problem(judged_expectations(expect, request, request.messages))

    assert problem(asks(f"go {OTHER}", user=OTHER)) is None
    assert problem(asks(f"go {OTHER}!", user=OTHER)) is not None
    assert problem(asks(f"go {OTHER}", user=f"{OTHER}!")) is not None


def test_a_run_ignores_more() -> None:
    """What a run ignores counts for every scenario."""
    (plain,) = loads(SERVED.split("---\n")[2])
    index = ScenarioIndex([with_ignored(plain, ("uuid",))])
    assert select(index, asks(f"run {OTHER}"), {}).scenario.name == "plain"


texts = st.text(alphabet="abc ", max_size=8)


moments = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31))


@given(texts, texts, st.uuids(version=4), st.uuids(version=4), moments, moments)
def test_digests(text: str, other: str, one: UUID, two: UUID, first: Any, second: Any) -> None:
    """Two requests that differ only in ignored parts have one digest; two that differ elsewhere,
    also inside of a text with ignored parts, do not."""

    def sent(text: str, uuid: UUID, time: Any) -> Request:
        return asks(f"{text} {uuid.hex} {time.isoformat()}", metadata={"run": str(uuid)})

    digests = [
        request_digest(sent(text, uuid, time), (), IGNORE)
        for uuid, time in ((one, first), (two, second))
    ]
    assert digests[0] == digests[1]
    different = request_digest(sent(other, one, first), (), IGNORE)
    assert (different == digests[0]) is (text == other)


def test_a_recording_is_found_by_its_request() -> None:
    """The digest leaves out what the recording says, whatever its scenario ignores."""
    request = asks("at 2026-01-01T10:00:00Z", temperature=0)
    digest = request_digest(request, (), ("timestamp",))
    served = (
        "scenario: a\nmatch: {user: at, ignore: [timestamp]}\nturns:\n- recorded: {file: a.jsonl, "
        f"request: '{digest}', ignore: [timestamp]}}\n  reply: {{text: x}}\n"
    )
    index = ScenarioIndex(loads(served))
    later = asks("at 2026-02-02T12:00:00Z", temperature=0)
    assert [found.name for found, _ in index.recorded_turns(later)] == ["a"]
    assert index.recorded_turns(asks("at 2026-02-02T12:00:00Z", temperature=1)) == ()


def test_routes() -> None:
    """Query and body of a route are compared without what is ignored, and so are their digests."""

    def sent(uuid: str, input: str = "x") -> RouteRequest:
        body = json.dumps({"input": input, "id": uuid}).encode()
        return RouteRequest("POST", "/v1/things", f"run={uuid}", {}, body)

    one, two = str(UUID(int=1)), str(UUID(int=2))
    recorded = sent(one)
    digest = route_digest("POST", "/v1/things", recorded.query, "", recorded.body, (), ("uuid",))
    index = RouteIndex(
        loads(
            "scenario: a\nroute: POST /v1/things\n"
            f"match:\n  query: {{run: {{equals: '{one}'}}}}\n  body: {{id: '{one}'}}\n"
            "  ignore: [uuid]\n"
            f"turns: [{{answer: {{text: y}}, recorded: {{file: a.jsonl, request: '{digest}', "
            "ignore: [uuid]}}]\n"
        )
    )
    assert [scenario.name for scenario, _ in index.select(sent(two))] == ["a"]
    assert index.select(sent("other")) == ()
