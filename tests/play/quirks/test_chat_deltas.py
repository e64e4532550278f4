"""Quirks inside the deltas of Chat Completions, the first half of group D."""

from __future__ import annotations

from mockllm.core.turn import ToolCall, Turn
from mockllm.play.quirks.chat.envelope import QUIRKS
from mockllm.play.quirks.samples import INTERLEAVED, TEXT_AND_TWO_CALLS
from mockllm.wire.protocols.openai_chat.request import Options
from tests.play.quirks import chat_laws as laws
from tests.play.quirks.chat_laws import (
    A1,
    CITY,
    DONE,
    HEL,
    LO,
    OPENING,
    PARIS,
    STOP,
    USAGE,
    calling,
    chunk,
    fragment,
    sent,
)

BY_NAME = {quirk.name: quirk for quirk in QUIRKS}

B2 = '{"index":1,"id":"call_B2","type":"function","function":{"name":"get_time","arguments":"%s"}}'
TZ, CET = '{\\"tz\\":', '\\"CET\\"}'
CALLS = chunk("{}", '"tool_calls"')
TAIL = [STOP, USAGE, DONE]
ROLE = '{"role":"assistant","content":null%s}'


SAMPLES = [
    (
        "chat-two-calls-one-chunk",
        [
            chunk(ROLE % ""),
            calling(f"{A1 % (CITY + PARIS)},{B2 % (TZ + CET)}"),
            CALLS,
            USAGE,
            DONE,
        ],
    ),
    (
        "chat-calls-interleaved",
        [
            chunk(ROLE % ""),
            calling(A1 % ""),
            calling(B2 % ""),
            fragment(0, CITY),
            fragment(1, TZ),
            fragment(0, PARIS),
            fragment(1, CET),
            CALLS,
            USAGE,
            DONE,
        ],
    ),
    (
        "chat-role-every-chunk",
        [
            OPENING,
            chunk('{"role":"assistant","content":"Hel"}'),
            chunk('{"role":"assistant","content":"lo"}'),
            chunk('{"role":"assistant"}', '"stop"'),
            USAGE,
            DONE,
        ],
    ),
    (
        "chat-role-null-empty-never",
        [
            OPENING.replace('"assistant"', "null"),
            chunk('{"role":null,"content":"Hel"}'),
            chunk('{"role":null,"content":"lo"}'),
            *TAIL,
        ],
    ),
    (
        "chat-role-null-empty-never:empty",
        [
            OPENING.replace('"assistant"', '""'),
            chunk('{"role":"","content":"Hel"}'),
            chunk('{"role":"","content":"lo"}'),
            *TAIL,
        ],
    ),
    (
        "chat-role-null-empty-never:never",
        [chunk('{"content":"","refusal":null}'), HEL, LO, *TAIL],
    ),
    (
        "chat-type-missing",
        [
            chunk(
                ROLE
                % (',"tool_calls":[%s],"refusal":null' % (A1 % "")).replace(
                    '"type":"function",', ""
                )
            ),
            fragment(0, CITY),
            fragment(0, PARIS),
            CALLS,
            USAGE,
            DONE,
        ],
    ),
    (
        "chat-function-null",
        [
            chunk(ROLE % (',"tool_calls":[%s],"refusal":null' % (A1 % ""))),
            calling('{"index":0,"function":null}'),
            fragment(0, CITY),
            fragment(0, PARIS),
            CALLS,
            USAGE,
            DONE,
        ],
    ),
    (
        "chat-tool-calls-null",
        [
            chunk('{"role":"assistant","content":"","refusal":null,"tool_calls":null}'),
            chunk('{"content":"Hel","tool_calls":null}'),
            chunk('{"content":"lo","tool_calls":null}'),
            *TAIL,
        ],
    ),
    (
        "chat-tool-calls-null:empty",
        [
            chunk('{"role":"assistant","content":"","refusal":null,"tool_calls":[]}'),
            chunk('{"content":"Hel","tool_calls":[]}'),
            chunk('{"content":"lo","tool_calls":[]}'),
            *TAIL,
        ],
    ),
    ("chat-delta-null", [OPENING, HEL, LO, chunk("null", '"stop"'), USAGE, DONE]),
    (
        "chat-delta-null:absent",
        [OPENING, HEL, LO, STOP.replace('"delta":{},', ""), USAGE, DONE],
    ),
]


def test_one_chunk_has_all_calls() -> None:
    """Calls of any number and order of fragments are whole and sorted, after the text."""
    quirk = BY_NAME["chat-two-calls-one-chunk"]
    both = calling(f"{A1 % (CITY + PARIS)},{B2 % (TZ + CET)}")
    assert sent(quirk, scenario=INTERLEAVED) == sent(quirk)
    assert sent(quirk, scenario=TEXT_AND_TWO_CALLS) == [
        OPENING,
        HEL,
        LO,
        both,
        CALLS,
        USAGE,
        DONE,
    ]


def test_each_choice_has_its_own_calls() -> None:
    """With several choices, each has a chunk with its calls."""
    turn = Turn((ToolCall("f", "call_1"), ToolCall("g", "call_2")), "tool_calls")
    found = laws.streamed(turn, Options(n=2), "chat-two-calls-one-chunk")
    assert [b"call_1" in part.data and b"call_2" in part.data for part in found] == [
        False,
        False,
        True,
        True,
        False,
        False,
        False,
    ]
