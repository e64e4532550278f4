"""Laws of every quirk of Anthropic Messages and of Gemini."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.events import Frame, StreamError
from mockllm.core.turn import Opaque, Text, TokenUsage, ToolCall, Turn
from mockllm.play.quirks.anthropic import QUIRKS as ANTHROPIC
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.play.quirks.gemini import QUIRKS as GEMINI
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.wire.protocols import PROTOCOLS
from tests import strategies
from tests.cases import for_all
from tests.play.quirks.event_laws import assert_plays, named, read, sent, summary
from tests.play.quirks.meaning import expected_turn, sent_turn
from tests.play.quirks.playing import decoded_turn, plain, play

pytestmark = pytest.mark.slow

Form = tuple[str, Quirk, Variant]

FORMS: list[Form] = [
    (api, quirk, variant)
    for api, quirks in (("anthropic", ANTHROPIC), ("gemini", GEMINI))
    for quirk in quirks
    for variant in quirk.variants
]
BY_NAME = {named(quirk, variant): (api, quirk, variant) for api, quirk, variant in FORMS}

# Our own decoder reads these differently: an array is no event stream, a second start is an error
# to it, which is right too; deltas of a block that has not started are none; ids stay as sent.
UNREAD = {"gem-array-form", "anth-message-start-twice", "anth-start-missing", "anth-id-shared"}
READ = [form for form in FORMS if form[1].name not in UNREAD]

TEXT = Turn((Text(("Hel", "lo")),), "stop", TokenUsage(1, 1))
CALL = Turn((ToolCall("f", "call_1", ('{"a":', "1}")),), "tool_calls")
ZERO = Turn((ToolCall("f", "call_1"),), "tool_calls")
CUT = Turn()
FAILED = Turn(error=StreamError("boom", "INTERNAL", "500"))
EMPTY = Turn(finish="stop")
IDLE = {
    "anth-ping:everywhere": CUT,
    "anth-ping:untyped": CUT,
    "anth-ping:bare": CUT,
    "anth-unknown-types:delta": EMPTY,
    "anth-done-sentinel": CUT,
    "anth-zero-arg": CALL,
    "anth-input-in-start": ZERO,
    "anth-input-missing": TEXT,
    "anth-tool-cut-by-limit": ZERO,
    "anth-index-gap:gap": TEXT,
    "anth-index-gap:from-one": EMPTY,
    "anth-index-gap:out-of-order": TEXT,
    "anth-index-all-zero": TEXT,
    "anth-interleaved": CALL,
    "anth-start-missing": CALL,
    "anth-id-shared": CALL,
    "anth-signature": TEXT,
    "anth-text-in-start": CALL,
    "anth-cut": CUT,
    "anth-usage-missing:message-delta": CUT,
    "anth-two-message-delta": CUT,
    "anth-end-turn-with-tools": TEXT,
    "gem-args-absent": CALL,
    "gem-same-name-no-id": CALL,
    "gem-stop-for-tools": TEXT,
    "gem-partial-args": ZERO,
    "gem-args-string": TEXT,
    "gem-strict-framing": CUT,
    "gem-array-form": CUT,
    "gem-empty-candidate": FAILED,
    "gem-no-finish": CUT,
}
"""By quirk or variant, a turn in which there is nothing to change; the others change any."""

_SURROGATE = '{"text":"\\ud83d"}'
ODD = {
    "anthropic": (
        '{"type":"content_block_start"}',
        '{"type":"content_block_start","index":"x","content_block":{"type":"text"}}',
        '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t"}}',
        '{"type":"content_block_start","index":9,"content_block":{"type":["text"]}}',
        '{"type":"content_block_start","index":2,"content_block":null}',
        '{"type":"content_block_delta","index":0,"delta":' + _SURROGATE + "}",
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ud83d"}}',
        '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":5}}',
        '{"type":"content_block_delta","index":1,"delta":{"type":["text_delta"]}}',
        '{"type":"content_block_delta","index":true,"delta":[]}',
        '{"type":"content_block_stop","index":1}',
        '{"type":"content_block_stop"}',
        '{"type":"message_start","message":null}',
        '{"type":"message_start","message":{"id":"","usage":3}}',
        '{"type":"message_delta","delta":{"stop_reason":["end_turn"]}}',
        '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":7}',
        '{"type":"message_delta"}',
        '{"type":"message_stop"}',
        '{"type":"error","error":"boom"}',
        '{"type":["ping"]}',
        '{"type":"ping"}',
    ),
    "gemini": (
        '{"candidates":null}',
        '{"candidates":[]}',
        '{"candidates":[1,null,{"index":0}]}',
        '{"candidates":[{"content":null,"index":1}]}',
        '{"candidates":[{"content":{"parts":null}}]}',
        '{"candidates":[{"content":{"parts":[null,' + _SURROGATE + "]}}]}",
        '{"candidates":[{"content":{"parts":[{"functionCall":5}]}}]}',
        '{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}',
        '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}',
        '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","id":1}}]}}]}',
        '{"candidates":[{"content":{"parts":[{"functionCall":{"name":["f"],"args":5}}]}}]}',
        '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":'
        + _SURROGATE
        + "}}]}}]}",
        '{"candidates":[{"content":{"parts":[{"text":["x"]}]},"finishReason":5}]}',
        '{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"},{}]}',
        '{"candidates":[{"finishReason":"STOP"}],"usageMetadata":4}',
        '{"promptFeedback":{"blockReason":"OTHER"}}',
        '{"promptFeedback":1,"usageMetadata":{"promptTokenCount":2}}',
        '{"error":"boom"}',
        '{"usageMetadata":null}',
    ),
}
"""Data of events that have the names of this API and other values than it gives them."""
_OTHER = (None, "", "null", "[DONE]", '"text"', "[1, 2]", "{", "{}", "[" * 50_000)


def _odd(api: str) -> st.SearchStrategy[Opaque]:
    frames = st.builds(Frame, st.sampled_from(ODD[api] + _OTHER)) | st.sampled_from(
        [Frame(comment="ping"), Frame(raw="data: raw\n\n"), Frame(event="ping")]
    )
    return st.builds(Opaque, st.just(api), frames)


_PARTS = strategies.parts | strategies.tool_calls(well_formed=False)
ODD_TURNS = {api: strategies.turns(_PARTS | _odd(api)) for api in ODD}
TURNS = strategies.turns(_PARTS)

forms = for_all(("api", "quirk", "variant"), FORMS, ids=list(BY_NAME))
read_forms = for_all(
    ("api", "quirk", "variant"), READ, ids=[named(quirk, variant) for _, quirk, variant in READ]
)
few = settings(max_examples=20)


def _expected(turn: Turn, api: str, quirk: Quirk, variant: Variant) -> dict[str, Any]:
    meaning = PROTOCOLS[api].project(turn)
    return _values(sent_turn(named(quirk, variant), variant, meaning))


def _values(turn: Turn) -> dict[str, Any]:
    """The summary of a turn, with arguments as values where they are JSON."""
    calls = [(call.id, call.name, _value(call.arguments)) for call in turn.tool_calls]
    return {**summary(turn), "calls": calls}


def _value(text: str) -> Any:
    try:
        return json.dumps(json.loads(text))
    except ValueError:
        return text


@forms
def test_every_variant_changes_its_sample(api: str, quirk: Quirk, variant: Variant) -> None:
    """The bytes of a sample differ with the quirk."""
    assert play(quirk, variant, api).data != plain(quirk.sample, api).data


@read_forms
def test_samples_decode_to_the_declared_turn(api: str, quirk: Quirk, variant: Variant) -> None:
    """Our own decoder reads the turn that the variant declares: the same, the rest of it, or the
    error."""
    turn = resolve(quirk.sample, 0, api)
    assert _values(decoded_turn(play(quirk, variant, api), api)) == _expected(
        turn, api, quirk, variant
    )


@pytest.mark.slow
@pytest.mark.parametrize("api", ODD)
@few
@given(st.data())
def test_any_turn_plays(api: str, data: st.DataObject) -> None:
    """No turn makes a variant fail, whatever frames it has; times stay sorted."""
    turn = data.draw(ODD_TURNS[api])
    for own, quirk, variant in FORMS:
        if own == api:
            assert_plays(turn, api, quirk, variant)


@pytest.mark.slow
@pytest.mark.parametrize("api", ODD)
def test_every_odd_frame_plays(api: str) -> None:
    """No frame with known names and unusual values makes a variant fail."""
    for data in ODD[api] + _OTHER:
        turn = Turn((Opaque(api, Frame(data)), *TEXT.parts, *CALL.parts), "stop")
        for own, quirk, variant in FORMS:
            if own == api:
                assert_plays(turn, api, quirk, variant)


@pytest.mark.slow
@few
@given(turn=TURNS)
def test_any_turn_decodes_to_the_declared_turn(turn: Turn) -> None:
    """Our own decoder reads the turn that the variant declares, of any turn."""
    for api, quirk, variant in READ:
        got = _values(read(sent(turn, api, named(quirk, variant)), api))
        assert got == _expected(turn, api, quirk, variant), named(quirk, variant)


@forms
def test_nothing_to_change(api: str, quirk: Quirk, variant: Variant) -> None:
    """A turn without the feature that a variant changes keeps its bytes."""
    name = named(quirk, variant)
    turn = IDLE.get(name, IDLE.get(quirk.name))
    if turn is None:
        assert all(sent(t, api, name) != sent(t, api) for t in (TEXT, CALL)), "give IDLE a turn"
        return
    assert sent(turn, api, name) == sent(turn, api)
    assert expected_turn(name, variant, turn) == turn
