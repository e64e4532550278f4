"""The bytes of the quirks of AG-UI, on their samples."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mockllm.play.quirks.agui import QUIRKS
from tests.play.quirks.playing import frames, play

BY_NAME = {quirk.name: quirk for quirk in QUIRKS}
_MESSAGE_ID = re.compile(r"msg_[0-9A-Za-z]{24}_")
_RUN = {"threadId": "thread_1", "runId": "run_1"}


def bytes_of(name: str, variant: str = "") -> bytes:
    quirk = BY_NAME[name]
    found = quirk.variant(variant)
    assert found is not None
    return b"".join(play(quirk, found, "agui").data)


def played(name: str, variant: str = "") -> list[Any]:
    """The events of a variant on its sample; messages are `m1`, `m2`, usage is left out."""
    quirk = BY_NAME[name]
    found = quirk.variant(variant)
    assert found is not None
    events = []
    for frame in frames(play(quirk, found, "agui")):
        assert frame.event is None
        data = _MESSAGE_ID.sub("m", frame.data or "")
        value = json.loads(data) if data.startswith("{") else data
        if isinstance(value, dict):
            value.pop("usage", None)
        events.append(value)
    return events


def ev(type: str, **fields: Any) -> dict[str, Any]:
    return {"type": type, **fields}


def start(id: str, name: str, parent: str = "m1", type: str = "TOOL_CALL_START") -> Any:
    return ev(type, toolCallId=id, toolCallName=name, parentMessageId=parent)


def args(id: str, delta: str, type: str = "TOOL_CALL_ARGS") -> Any:
    return ev(type, toolCallId=id, delta=delta)


def end(id: str) -> Any:
    return ev("TOOL_CALL_END", toolCallId=id)


STARTED, FINISHED = ev("RUN_STARTED", **_RUN), ev("RUN_FINISHED", **_RUN)
OPEN = ev("TEXT_MESSAGE_START", messageId="m1", role="assistant")
HEL = ev("TEXT_MESSAGE_CONTENT", messageId="m1", delta="Hel")
LO = ev("TEXT_MESSAGE_CONTENT", messageId="m1", delta="lo")
CLOSE = ev("TEXT_MESSAGE_END", messageId="m1")
A_START, B_START = start("call_A1", "get_weather"), start("call_B2", "get_time")
A_ARGS = [args("call_A1", '{"city":'), args("call_A1", '"Paris"}')]
B_ARGS = [args("call_B2", '{"tz":'), args("call_B2", '"CET"}')]
TWO_CALLS = [A_START, *A_ARGS, end("call_A1"), B_START, *B_ARGS, end("call_B2")]


def test_lines_end_in_crlf() -> None:
    """agui-crlf: `data: {…}\\r\\n\\r\\n`, and no line end of another kind."""
    body = bytes_of("agui-crlf")
    assert body.startswith(
        b'data: {"type":"RUN_STARTED","threadId":"thread_1","runId":"run_1"}\r\n\r\n'
        b'data: {"type":"TEXT_MESSAGE_START"'
    )
    assert body.count(b"\r\n\r\n") == 6
    assert body.count(b"\n") == body.count(b"\r") == 12


def test_the_run_does_not_finish() -> None:
    """agui-no-run-finished: ends after TEXT_MESSAGE_END, inside the message, or at once."""
    assert played("agui-no-run-finished") == [STARTED, OPEN, HEL, LO, CLOSE]
    assert played("agui-no-run-finished", "inside-message") == [STARTED, OPEN, HEL, LO]
    assert bytes_of("agui-no-run-finished", "empty") == b""


def test_a_delta_is_empty() -> None:
    """agui-empty-delta: TEXT_MESSAGE_CONTENT with `"delta":""` before the first fragment."""
    empty = ev("TEXT_MESSAGE_CONTENT", messageId="m1", delta="")
    assert played("agui-empty-delta") == [STARTED, OPEN, empty, HEL, LO, CLOSE, FINISHED]


def test_arguments_name_another_call() -> None:
    """agui-args-wrong-id: the arguments of a call name one that never started."""
    assert played("agui-args-wrong-id") == [
        STARTED,
        A_START,
        args("call_A1_other", '{"city":'),
        args("call_A1_other", '"Paris"}'),
        end("call_A1"),
        FINISHED,
    ]


def test_the_parent_was_never_sent() -> None:
    """agui-phantom-parent: `"parentMessageId":"nope"`, where a message m1 exists."""
    events = played("agui-phantom-parent")
    assert events[1] == OPEN
    assert events[5] == start("call_A1", "get_weather", parent="nope")


def test_success_names_no_pending_calls() -> None:
    """agui-success-pending: an outcome of success that does not list the pending call."""
    finish = ev("RUN_FINISHED", **_RUN, outcome={"type": "success"})
    assert played("agui-success-pending") == [STARTED, A_START, *A_ARGS, end("call_A1"), finish]


def test_a_call_is_open_at_the_end() -> None:
    """agui-open-call-at-finish: START c1, START c2, END c1, RUN_FINISHED."""
    assert played("agui-open-call-at-finish") == [
        STARTED,
        A_START,
        B_START,
        A_ARGS[0],
        B_ARGS[0],
        A_ARGS[1],
        B_ARGS[1],
        end("call_A1"),
        FINISHED,
    ]


@pytest.mark.parametrize(
    ("variant", "opened"),
    [
        ("message", ev("TEXT_MESSAGE_START", messageId="msg_open", role="assistant")),
        ("step", ev("STEP_STARTED", stepName="open")),
        ("reasoning", ev("REASONING_START", messageId="msg_open")),
    ],
)
def test_something_is_open_at_the_end(variant: str, opened: object) -> None:
    """agui-open-call-at-finish: a message, a step or reasoning is opened and never closed."""
    events = played("agui-open-call-at-finish", variant)
    assert events == [STARTED, *TWO_CALLS, opened, FINISHED]


def test_calls_are_parallel() -> None:
    """agui-parallel-calls: START c1, START c2, ARGS c1, ARGS c2."""
    assert played("agui-parallel-calls") == [
        STARTED,
        A_START,
        B_START,
        A_ARGS[0],
        B_ARGS[0],
        A_ARGS[1],
        B_ARGS[1],
        end("call_A1"),
        end("call_B2"),
        FINISHED,
    ]


def test_done_sentinel() -> None:
    """agui-done-sentinel: `data: [DONE]` after RUN_FINISHED."""
    assert played("agui-done-sentinel") == [STARTED, OPEN, HEL, LO, CLOSE, FINISHED, "[DONE]"]


def test_chunks_alternate() -> None:
    """agui-chunk-interleave: chunks of c1, c2, then c1 without a name; no ends."""
    chunk = "TOOL_CALL_CHUNK"
    assert played("agui-chunk-interleave") == [
        STARTED,
        start("call_A1", "get_weather", type=chunk),
        start("call_B2", "get_time", type=chunk),
        args("call_A1", '{"city":', type=chunk),
        args("call_B2", '{"tz":', type=chunk),
        args("call_A1", '"Paris"}', type=chunk),
        args("call_B2", '"CET"}', type=chunk),
        FINISHED,
    ]


def test_a_call_without_arguments() -> None:
    """agui-zero-arg: START, END. A plain run sends the same, so the first variant does not change
    its sample; the second has an empty TOOL_CALL_ARGS."""
    begun = start("call_Z0", "list_issues")
    assert played("agui-zero-arg") == [STARTED, begun, end("call_Z0"), FINISHED]
    empty = [STARTED, begun, args("call_Z0", ""), end("call_Z0"), FINISHED]
    assert played("agui-zero-arg", "empty") == empty


def test_an_unknown_event() -> None:
    """agui-unknown-event: `{"type":"KIT_UNKNOWN"}`, or events of versions before 1.0."""
    rest = [OPEN, HEL, LO, CLOSE, FINISHED]
    assert played("agui-unknown-event") == [STARTED, ev("KIT_UNKNOWN"), *rest]
    removed = [ev("THINKING_START"), ev("THINKING_END")]
    assert played("agui-unknown-event", "removed") == [STARTED, *removed, *rest]
