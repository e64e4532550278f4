"""AG-UI: the decoder with streams that mockllm would write in another way."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mockllm.core.events import Frame, StreamError
from mockllm.core.jsontext import compact
from mockllm.core.turn import Opaque, Reasoning, Text, TokenUsage, ToolCall, Turn
from mockllm.wire.protocols.ag_ui.decoder import _HANDLERS, Decoder
from mockllm.wire.protocols.ag_ui.protocol import PROTOCOL
from mockllm.wire.protocols.decoding import decode_turn

Json = dict[str, Any]
START: Json = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
END: Json = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


def frame(value: Json) -> Frame:
    return Frame(json.dumps(value))


def read(*values: Json) -> Turn:
    """The turn of a stream of events."""
    return decode_turn(PROTOCOL, map(frame, values))[0]


def native(value: Json) -> Opaque:
    """The native part of an event."""
    return Opaque("agui", Frame(compact(value)), native=True)


def message(id: str, *texts: str, kind: str = "TEXT") -> list[Json]:
    """A whole message."""
    name = f"{kind}_MESSAGE"
    return [
        {"type": f"{name}_START", "messageId": id},
        *({"type": f"{name}_CONTENT", "messageId": id, "delta": text} for text in texts),
        {"type": f"{name}_END", "messageId": id},
    ]


def test_text_in_chunks() -> None:
    """Chunks stand for a message's start and content; later ones may leave out the id."""
    turn = read(
        START,
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "role": "assistant", "delta": "Hel"},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "lo"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m2"},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "again"},
        END,
    )
    assert turn == Turn((Text(("Hel", "lo")), Text(("again",))), "stop")


def test_calls_in_chunks() -> None:
    """A chunk with a new id and a name opens a call; the others go on with it."""
    turn = read(
        START,
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c1", "toolCallName": "f", "delta": '{"a"'},
        {"type": "TOOL_CALL_CHUNK", "delta": ":1"},
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c1", "toolCallName": "f", "delta": "}"},
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c2", "toolCallName": "g"},
        END,
    )
    assert turn == Turn(
        (ToolCall("f", "c1", ('{"a"', ":1", "}")), ToolCall("g", "c2")), "tool_calls"
    )


def test_reasoning_in_chunks() -> None:
    """Reasoning may come in chunks, without a span around it."""
    turn = read(START, {"type": "REASONING_MESSAGE_CHUNK", "messageId": "r1", "delta": "Hm"}, END)
    assert turn.parts == (Reasoning(("Hm",)),)


def test_thinking_of_older_versions() -> None:
    """`THINKING_*` events, which have no ids, are reasoning; a title is kept."""
    title = {"type": "THINKING_START", "title": "Planning"}
    begin, end = {"type": "THINKING_TEXT_MESSAGE_START"}, {"type": "THINKING_TEXT_MESSAGE_END"}
    first = {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "Hm"}
    second = {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "Ah"}
    turn = read(START, title, begin, first, end, begin, second, end, {"type": "THINKING_END"}, END)
    assert turn.parts == (Opaque("agui", frame(title)), Reasoning(("Hm",)), Reasoning(("Ah",)))


def test_missing_ends() -> None:
    """Open messages and calls are closed when the run or the stream ends."""
    opened = [
        {"type": "TEXT_MESSAGE_START", "messageId": "m1"},
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "f"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{"},
    ]
    parts = (Text(("",)), ToolCall("f", "c1", ("{",)))
    finished, cut = read(START, *opened, END), read(START, *opened)
    assert (set(finished.parts), finished.finish) == (set(parts), "tool_calls")
    assert (set(cut.parts), cut.finish) == (set(parts), None)


def test_messages_without_a_start() -> None:
    """Content of a message that never opened is not lost."""
    content = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hi"}
    assert read(START, content, END).parts == (Text(("Hi",)),)


def test_messages_reuse_an_id() -> None:
    """A message that opens again is another one."""
    turn = read(START, *message("m1", "a"), *message("m1", "b"), END)
    assert turn.parts == (Text(("a",)), Text(("b",)))


def test_messages_of_others_are_kept_as_frames() -> None:
    """A streamed message of a user or the system is not part of the model's text."""
    spoken = message("u1", "Hi")
    spoken[0]["role"] = "user"
    decoded = read(START, *spoken, *message("m1", "Hello"), END)
    assert decoded.parts == (*(Opaque("agui", frame(value)) for value in spoken), Text(("Hello",)))


def test_results_of_tools_that_the_agent_ran() -> None:
    """The result of a server-side tool keeps its position between call and text."""
    call = {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "f"}
    end = {"type": "TOOL_CALL_END", "toolCallId": "c1"}
    result = {"type": "TOOL_CALL_RESULT", "messageId": "t1", "toolCallId": "c1", "content": "21C"}
    decoded = read(START, call, end, result, *message("m1", "21C"), END)
    assert decoded.parts == (ToolCall("f", "c1"), native(result), Text(("21C",)))


def test_several_runs_are_one_answer() -> None:
    """Parts of later runs follow those of earlier ones; the end is that of the last."""
    usage = {"usage": [{"inputTokens": 1, "outputTokens": 2}]}
    decoder = Decoder()
    runs = [START, *message("m1", "a"), END, START, *message("m2", "b"), {**END, **usage}]
    completes = []
    for value in runs:
        decoder.decode(frame(value))
        completes.append(decoder.complete)
    assert completes == [False] * 4 + [True] + [False] * 4 + [True]
    assert read(*runs) == Turn((Text(("a",)), Text(("b",))), "stop", TokenUsage(1, 2))


def test_a_second_run_that_is_cut() -> None:
    """The end of the first run is not the end of the answer, once a second run has begun."""
    decoded = read(START, *message("m1", "a"), END, START, *message("m2", "b"))
    assert decoded == Turn((Text(("a",)), Text(("b",))))


def test_error_after_the_end() -> None:
    """A run that finished may still fail."""
    failed = {"type": "RUN_ERROR", "message": "late", "code": "x"}
    assert read(START, END, failed) == Turn(error=StreamError("late", None, "x"))


def test_run_with_a_result_is_a_native_part() -> None:
    """A result, an interrupt and a cancellation are kept, without the ids of the run; a plain
    success leaves no part, and the end of another run keeps its ids in a frame."""
    for extra in ({"result": 1}, {"outcome": {"type": "cancelled"}}):
        decoded = read(START, {**END, **extra})
        assert decoded == Turn((native({"type": "RUN_FINISHED", **extra}),), "stop")
        other = {**END, "runId": "other", **extra}
        assert read(START, other) == Turn((Opaque("agui", frame(other)),), "stop")
    success = {"outcome": {"type": "success", "pendingToolCallIds": []}, "result": None}
    assert read(START, {**END, **success}) == Turn((), "stop")


def test_proof_of_hidden_reasoning() -> None:
    """A signature for a message that was never sent stands for reasoning kept to itself."""
    proof = {
        "type": "REASONING_ENCRYPTED_VALUE",
        "subtype": "message",
        "entityId": "r1",
        "encryptedValue": "c2ln",
    }
    assert read(START, proof, END).parts == (Reasoning(("",), "c2ln"),)
    of_text = {**proof, "entityId": "m1"}
    decoded = read(START, *message("m1", "Hi"), of_text, END)
    assert decoded.parts == (Text(("Hi",)), Opaque("agui", frame(of_text)))


def test_stray_events_are_kept() -> None:
    """Fragments of calls that were never opened, and ends of closed ones, stay frames."""
    strange = [
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{}"},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        {"type": "TOOL_CALL_CHUNK", "delta": "{}"},
        {"type": "TOOL_CALL_START", "toolCallId": "c1"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": None},
        {"type": "NEW_IN_2_0"},
    ]
    decoded = read(START, *strange, END)
    assert decoded.parts == tuple(Opaque("agui", frame(value)) for value in strange)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "m1", "c1", "user", "{}"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)
FIELDS = ("messageId", "toolCallId", "toolCallName", "delta", "role", "entityId", "subtype")
MORE_FIELDS = ("encryptedValue", "outcome", "usage", "result", "message", "code", "title", "runId")
strange_events = st.builds(
    lambda kind, fields: {"type": kind, **fields},
    st.sampled_from([*_HANDLERS, "CUSTOM"]),
    st.dictionaries(st.sampled_from(FIELDS + MORE_FIELDS), anything, max_size=4),
)


def test_an_id_that_is_no_string_opens_no_call():
    """The event is kept as it is."""
    start = {"type": "TOOL_CALL_START", "toolCallId": [], "toolCallName": "f"}
    (part,) = read(start).parts
    assert isinstance(part, Opaque)


@settings(deadline=None)
@example([{"type": "TOOL_CALL_START", "toolCallId": []}])
@given(st.lists(strange_events, max_size=8))
def test_nothing_makes_the_decoder_fail(values: list[Json]) -> None:
    """Events with any field values decode to a turn."""
    assert isinstance(read(*values), Turn)
