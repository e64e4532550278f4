"""Laws of every quirk of protocols that stream typed events: it plays on any turn, and decodes to
the turn that it declares.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from mockllm.core.events import Frame
from mockllm.core.http import TimedBytes
from mockllm.core.turn import Opaque, Turn
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.compilation.encoding import stream
from mockllm.scenario.model import Wire
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.decoding import decode_turn
from tests.strategies import parts, turns

_ODD_DATA = (
    None,
    "",
    "null",
    "[DONE]",
    '"text"',
    "[1, 2]",
    "{",
    "{}",
    '{"type":5}',
    '{"type":["error"]}',
    '{"type":"error","error":"boom"}',
    '{"type":"response.created","response":null}',
    '{"type":"response.in_progress","sequence_number":true}',
    '{"type":"response.output_item.added","output_index":"x","item":null}',
    '{"type":"response.output_item.added","output_index":7,"item":{"id":{},"type":"kit"}}',
    '{"type":"response.output_item.done","item":{"type":"function_call","id":null}}',
    '{"type":"response.output_item.done","output_index":2,"item":{"id":"ci_9","type":"kit"}}',
    '{"type":"response.output_item.done","item":{"type":"message","content":null}}',
    '{"type":"response.function_call_arguments.delta","delta":1,"item_id":[1]}',
    '{"type":"response.function_call_arguments.done","arguments":{}}',
    '{"type":"response.output_text.delta","sequence_number":90,"item_id":7,"delta":"x"}',
    '{"type":"response.output_text.done","text":5}',
    '{"type":"response.completed"}',
    '{"type":"response.completed","response":{"output":[1,null,{"id":4}]}}',
    '{"type":"TEXT_MESSAGE_START"}',
    '{"type":"TOOL_CALL_START","toolCallId":3}',
    '{"type":"TOOL_CALL_START","toolCallId":"call_odd","toolCallName":"f"}',
    '{"type":"TOOL_CALL_ARGS","toolCallId":"call_odd","delta":null}',
    '{"type":"TOOL_CALL_END","toolCallId":"call_odd"}',
    '{"type":"TOOL_CALL_RESULT","toolCallId":"call_odd","content":"1"}',
    '{"type":"REASONING_ENCRYPTED_VALUE","subtype":"tool-call","entityId":null}',
    '{"type":"RUN_FINISHED","outcome":5}',
    '{"type":"RUN_STARTED"}',
    '{"messageStart":null}',
    '{"contentBlockStart":{"contentBlockIndex":"x","start":{"toolUse":5}}}',
    '{"contentBlockStart":{"contentBlockIndex":9,"start":{"image":{}}}}',
    '{"contentBlockDelta":{"contentBlockIndex":9,"delta":{"image":{}}}}',
    '{"contentBlockDelta":{"delta":{"toolUse":{"input":{}}}}}',
    '{"contentBlockDelta":{"contentBlockIndex":[],"delta":{"text":7}}}',
    '{"metadata":{"usage":[]}}',
    '{"event_type":"step.start","index":0,"step":null}',
    '{"event_type":"step.start","index":"x","step":{"type":"function_call","arguments":[]}}',
    '{"event_type":"step.start","index":9,"step":{"type":"kit_step"}}',
    '{"event_type":"step.delta","index":9,"delta":{"type":"text","text":7}}',
    '{"event_type":"step.delta","delta":{"type":"arguments_delta"}}',
    '{"event_type":"step.delta","index":[],"delta":5}',
    '{"event_type":"step.stop"}',
    '{"event_type":"interaction.created","interaction":7}',
    '{"event_type":"interaction.kit_event"}',
    '{"error":5}',
    '{"a":1,"b":2}',
)


def odd_turns(api: str) -> st.SearchStrategy[Turn]:
    """Turns of any shape, with frames of any content between their parts."""
    frame = st.builds(Frame, st.sampled_from(_ODD_DATA)) | st.sampled_from(
        [Frame(comment="ping"), Frame(raw="data: raw\n\n"), Frame(event="ping")]
    )
    return turns(parts | st.builds(Opaque, st.just(api), frame))


@cache
def _reply(api: str) -> Reply:
    protocol = PROTOCOLS[api]
    body = first_body(protocol, "mock-model", "Hello")
    request = replace(
        protocol.parse(body, client_target(protocol, "mock-model"), True), stream=True
    )
    return Reply("seed", "0" * 40, "mock-model", protocol.options(request))


def named(quirk: Quirk, variant: Variant) -> str:
    """The name by which a scenario selects a variant."""
    return f"{quirk.name}:{variant.name}" if variant.name else quirk.name


def sent(turn: Turn, api: str, *quirks: str) -> list[TimedBytes]:
    """The timed bytes of a streamed turn, with these quirks."""
    return stream((turn,), PROTOCOLS[api], _reply(api), Wire(quirks=quirks))


def assert_plays(turn: Turn, api: str, quirk: Quirk, variant: Variant) -> None:
    """A variant changes any turn to bytes with sorted times, and always to the same."""
    name = named(quirk, variant)
    timed = sent(turn, api, name)
    assert timed == sent(turn, api, name), name
    assert all(a.at <= b.at for a, b in pairwise(timed)), name


def read(timed: list[TimedBytes], api: str) -> Turn:
    """The turn that our own decoder reads."""
    protocol = PROTOCOLS[api]
    return decode_turn(protocol, protocol.usual.decode(b"".join(part.data for part in timed)))[0]


def summary(turn: Turn, *, ids: bool = True) -> dict[str, Any]:
    """The fields of a turn that do not depend on how it was cut.

    Args:
        ids: whether the ids of calls belong to them.
    """
    return {
        "text": turn.text,
        "reasoning": turn.reasoning,
        "refusal": turn.refusal,
        "calls": [
            (call.id if ids else None, call.name, call.arguments) for call in turn.tool_calls
        ],
        "finish": turn.finish,
        "finish_raw": turn.finish_raw,
        "usage": turn.usage,
        "error": turn.error,
    }
