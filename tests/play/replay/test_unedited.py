"""A turn is unedited while it is what its tape decodes to: parts, calls, finish and usage."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mockllm.core.errors import WireError
from mockllm.core.http import TimedBytes
from mockllm.play.replay.compilation.tape_player import is_unedited
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Http, Recorded, Scenario, TurnSpec
from mockllm.scenario.part_model import ErrorSpec
from tests.cases import for_all
from tests.play.tapes.making import changed, taped
from tests.play.tapes.turns import turn_of

CALL = {"index": 0, "id": "call_1", "function": {"name": "f", "arguments": '{"a":1}'}}
DELTAS = (
    ({"content": "h"}, None),
    ({"content": "i"}, None),
    ({"tool_calls": [CALL]}, None),
    ({}, "tool_calls"),
)
CHUNKS = tuple(
    TimedBytes(
        1_000 * number,
        b"data: %b\n\n"
        % json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode(),
    )
    for number, (delta, finish) in enumerate(DELTAS)
)
EVENTS = (("content-type", "text/event-stream"),)
TAPE = taped("chat", True, 200, EVENTS, CHUNKS)
CALLED = "{tool: f, id: call_1, arguments: {a: 1}}"


def scenario(turn: str) -> Scenario:
    return loads(f"scenario: a\nturns:\n  - {turn}\n")[0]


@for_all(
    "same",
    [
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none}}",
        f"{{reply: [{{text: hi, split: [h, i]}}, {CALLED}], usage: none}}",
        f"{{reply: [{{text: hi, every: 9ms}}, {{pause: 1s}}, {CALLED}], usage: none}}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, timing: {{ttft: 1s}}}}",
        f"{{reply: [{{text: hi}}, {{parallel: [{CALLED}]}}], usage: none, finish: tool_calls}}",
        "{reply: [{text: hi}, {tool: f, arguments: {a: 1}}], usage: none}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, extra: {{chat: {{event: {{a: 1}}}}}}}}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, attempts: [{{http: 429}}]}}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, request: {{user: you}}, repeat: true}}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, when: {{api: gemini, finish: length}}}}",
    ],
)
def test_splits_times_and_conditions_are_no_edits(same: str) -> None:
    """Nor are fields of the service, and what only other protocols send; a call without an id has
    any."""
    assert is_unedited(scenario(same), 0, TAPE)


@for_all(
    "edited",
    [
        f"{{reply: [{{text: Hi}}, {CALLED}], usage: none}}",
        "{reply: {text: hi}, usage: none, finish: tool_calls}",
        "{reply: [{text: hi}, {tool: f, id: call_2, arguments: {a: 1}}], usage: none}",
        "{reply: [{text: hi}, {tool: g, id: call_1, arguments: {a: 1}}], usage: none}",
        "{reply: [{text: hi}, {tool: f, id: call_1, arguments: {a: 2}}], usage: none}",
        f"{{reply: [{CALLED}, {{text: hi}}], usage: none}}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, finish: length}}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, finish_raw: eos}}",
        f"{{reply: [{{text: hi}}, {CALLED}]}}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, wire: {{bom: true}}}}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, service_tier: flex}}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, fingerprint: fp_1}}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, choices: [{{reply: {{text: ho}}}}]}}",
        f"{{reply: [{{text: hi}}, {CALLED}], usage: none, when: {{api: chat, finish: length}}}}",
        "{reply: {auto: true}}",
        "http: 429",
    ],
)
def test_other_parts_calls_finish_and_usage_are_edits(edited: str) -> None:
    """And so are keys that no recording has."""
    assert not is_unedited(scenario(edited), 0, TAPE)


def test_what_a_file_cannot_hold_is_no_edit() -> None:
    """Counts that no service means."""
    value = {
        "choices": [{"message": {"content": "a"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10**12, "completion_tokens": 1},
    }
    tape = taped("chat", False, 200, (), (TimedBytes(1, json.dumps(value).encode()),))
    (written,) = loads(
        "scenario: a\nturns: [{reply: {text: a}, usage: {input: 1000000000, output: 1}}]"
    )
    assert is_unedited(written, 0, tape)


def test_a_partial_turn_is_always_unedited() -> None:
    """The YAML could not hold all of the answer."""
    written = scenario("reply: {text: some}")
    (turn,) = written.turns
    for partial in (True, False):
        recorded = replace(turn, recorded=Recorded("a.jsonl", partial=partial))
        assert is_unedited(replace(written, turns=(recorded,)), 0, TAPE) == partial


def test_errors_and_tries() -> None:
    """Status, headers, wait and error are compared; a try that was broken off has nothing to be
    edited."""
    body = (TimedBytes(1, b'{"error": {"message": "no", "type": "t"}}'),)
    tape = taped("chat", True, 429, (("retry-after", "2"), ("x-own", "y")), body)
    http = Http(429, (("x-own", "y"),), 2_000_000, ErrorSpec("no", "t"))
    assert turn_of(tape).http == http
    written = replace(scenario("http: 500"), turns=(turn_of(tape),))
    assert is_unedited(written, 0, tape)
    assert not is_unedited(written, 0, TAPE)
    for edited in (
        replace(http, status=400),
        replace(http, headers=()),
        replace(http, retry_after=None),
        replace(http, error=ErrorSpec("yes", "t")),
    ):
        assert not is_unedited(written, 0, tape, TurnSpec(http=edited))
    assert is_unedited(written, 0, tape, TurnSpec(http=http))
    assert is_unedited(written, 0, TAPE, TurnSpec())


@for_all(
    ("answer", "same"),
    [
        ("{text: 'some [1]'}", True),
        ("{base64: c29tZSBbMV0=}", True),
        ("{file: a.txt}", True),
        ("{text: other}", False),
        ("{json: [1]}", False),
        ("{status: 201, text: 'some [1]'}", False),
        ("{headers: {location: /x}, text: 'some [1]'}", False),
    ],
)
def test_answers_of_routes(answer: str, same: bool) -> None:
    """Status, headers and body are compared, however the body is written."""
    (written,) = loads(f"scenario: a\nroute: GET /x\nturns: [{{answer: {answer}}}]")
    tape = taped("", False, 200, (("etag", "e"),), (TimedBytes(1, b"some [1]"),))
    content = b"some [1]" if "file" in answer else None
    assert is_unedited(written, 0, tape, content=content) == same
    if "file" in answer:
        assert not is_unedited(written, 0, tape, content=b"other")


def test_a_tape_that_cannot_be_decompressed() -> None:
    """It is an error, which says why."""
    tape = changed(TAPE, headers=(*EVENTS, ("content-encoding", "odd")))
    with pytest.raises(WireError, match="compressed as 'odd'"):
        is_unedited(scenario("reply: {text: hi}"), 0, tape)
