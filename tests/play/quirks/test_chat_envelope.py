"""Group D: the chunks of Chat Completions; `test_chat_deltas` has the samples of its deltas."""

from __future__ import annotations

import re

import pytest

from mockllm.core.turn import Text, ToolCall, Turn
from mockllm.play.quirks.chat.envelope import QUIRKS
from mockllm.play.quirks.samples import (
    CALL,
    INTERLEAVED,
    REASONING,
    TEXT,
    TEXT_AND_CALL,
    ZERO,
)
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols.openai_chat.request import Options
from tests.cases import for_all
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
    shortened,
    usage_chunk,
)
from tests.play.quirks.playing import frames, plain, play

BY_NAME = {quirk.name: quirk for quirk in QUIRKS}
EACH = for_all(("quirk", "variant"), laws.each_variant(QUIRKS))

CALLS = chunk("{}", '"tool_calls"')
SAFE = (
    '{"hate":{"filtered":false,"severity":"safe"},"self_harm":{"filtered":false,"severity":"safe"}'
    ',"sexual":{"filtered":false,"severity":"safe"}'
    ',"violence":{"filtered":false,"severity":"safe"}}'
)
NO_IDENTITY = '"created":0,"id":"","model":"","object":""'


def checked(start: int, end: int) -> str:
    """The result of Azure's filter for a range of the text."""
    offsets = f'{{"check_offset":{end},"start_offset":{start},"end_offset":{end}}}'
    return (
        f'{{"choices":[{{"content_filter_offsets":{offsets},"content_filter_results":{SAFE},'
        f'"finish_reason":null,"index":0}}],{NO_IDENTITY}}}'
    )


def second(each: str) -> str:
    """The same chunk for the second choice, which ends for another reason."""
    other = each.replace('"choices":[{"index":0', '"choices":[{"index":1')
    return re.sub('"finish_reason":"[a-z_]+"', '"finish_reason":"length"', other)


BYE = second(chunk('{"content":"Bye"}'))
TAIL = [STOP, USAGE, DONE]
REASONED = [STOP, usage_chunk(11, 4), DONE]
ROLE = '{"role":"assistant","content":null%s}'

SAMPLES = [
    (
        "chat-first-choices-empty",
        [
            f'{{"choices":[],{NO_IDENTITY},"prompt_filter_results":'
            f'[{{"prompt_index":0,"content_filter_results":{SAFE}}}]}}',
            OPENING,
            HEL,
            LO,
            *TAIL,
        ],
    ),
    ("chat-object-empty", [OPENING, HEL, checked(0, 3), LO, checked(3, 5), *TAIL]),
    (
        "chat-choice-index",
        [each.replace('{"index":0,', "{") for each in (OPENING, HEL, LO, *TAIL)],
    ),
    (
        "chat-choice-index:counts",
        [
            OPENING,
            HEL.replace('"index":0', '"index":1'),
            LO.replace('"index":0', '"index":2'),
            STOP.replace('"index":0', '"index":3'),
            USAGE,
            DONE,
        ],
    ),
    (
        "chat-content-parts",
        [
            OPENING,
            chunk('{"content":[{"type":"text","text":"Hel"}]}'),
            chunk('{"content":[{"type":"text","text":"lo"}]}'),
            *TAIL,
        ],
    ),
    (
        "chat-content-parts:several",
        [
            OPENING,
            chunk('{"content":[{"type":"text","text":"H"},{"type":"text","text":"el"}]}'),
            chunk('{"content":[{"type":"text","text":"l"},{"type":"text","text":"o"}]}'),
            *TAIL,
        ],
    ),
    (
        "chat-reasoning-fields",
        [
            chunk(ROLE % ',"reasoning_content":""'),
            chunk('{"content":null,"reasoning_content":"Let me"}'),
            chunk('{"content":null,"reasoning_content":" think."}'),
            chunk('{"content":"Hel","reasoning_content":null}'),
            chunk('{"content":"lo","reasoning_content":null}'),
            *REASONED,
        ],
    ),
    (
        "chat-reasoning-fields:reasoning",
        [
            chunk(ROLE % ',"reasoning":""'),
            chunk('{"content":null,"reasoning":"Let me"}'),
            chunk('{"content":null,"reasoning":" think."}'),
            HEL,
            LO,
            *REASONED,
        ],
    ),
    (
        "chat-reasoning-fields:both",
        [
            chunk(ROLE % ',"reasoning":"","reasoning_content":""'),
            chunk('{"content":null,"reasoning":"Let me","reasoning_content":"Let me"}'),
            chunk('{"content":null,"reasoning":" think.","reasoning_content":" think."}'),
            HEL,
            LO,
            *REASONED,
        ],
    ),
    (
        "chat-reasoning-fields:details",
        [
            chunk('{"role":"assistant","content":"","reasoning":""}'),
            chunk(
                '{"content":"","reasoning":"Let me","reasoning_details":'
                '[{"type":"reasoning.text","text":"Let me","format":"unknown","index":0}]}'
            ),
            chunk(
                '{"content":"","reasoning":" think.","reasoning_details":'
                '[{"type":"reasoning.text","text":" think.","format":"unknown","index":0}]}'
            ),
            HEL,
            LO,
            *REASONED,
        ],
    ),
    (
        "chat-n-choices",
        [OPENING, second(OPENING), HEL, BYE, LO, BYE, STOP, second(STOP), USAGE, DONE],
    ),
    (
        "chat-n-choices:one-first",
        [second(OPENING), OPENING, BYE, HEL, BYE, LO, second(STOP), STOP, USAGE, DONE],
    ),
    (
        "chat-content-key-absent",
        [
            chunk('{"role":"assistant","tool_calls":[%s]}' % (A1 % "")),
            fragment(0, CITY),
            fragment(0, PARIS),
            CALLS,
            USAGE,
            DONE,
        ],
    ),
]


@pytest.mark.parametrize("scenario", [TEXT, REASONING])
def test_thinking_parts(scenario: Scenario) -> None:
    """With `thinking`, reasoning is a part of the content like the text."""
    thoughts = [
        '{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Let me"}]}]}',
        '{"content":[{"type":"thinking","thinking":[{"type":"text","text":" think."}]}]}',
    ]
    texts = [
        '{"content":[{"type":"text","text":"Hel"}]}',
        '{"content":[{"type":"text","text":"lo"}]}',
    ]
    found = sent(BY_NAME["chat-content-parts"], "thinking", scenario)
    if scenario is REASONING:
        opening = chunk('{"role":"assistant","content":""}')
        assert found == [opening, *map(chunk, [*thoughts, *texts]), *REASONED]
    else:
        assert found == [OPENING, *map(chunk, texts), *TAIL]


def test_chunks_without_an_object() -> None:
    """`chat-object-missing` removes the field from every chunk, and nothing else."""
    quirk = BY_NAME["chat-object-missing"]
    found = [frame.data for frame in frames(play(quirk, quirk.variants[0], "chat"))]
    usual = [frame.data or "" for frame in frames(plain(TEXT, "chat"))]
    assert found == [data.replace('"object":"chat.completion.chunk",', "") for data in usual]


def test_an_event_that_is_no_chunk() -> None:
    """It has a name, comes after the first chunk, and changes no other event."""
    quirk = BY_NAME["chat-named-event"]
    first, progress, *rest = play(quirk, quirk.variants[0], "chat").data
    data = b'{"tool":"web_search","label":"Searching","status":"running"}'
    assert progress == b"event: agent.tool.progress\ndata: " + data + b"\n\n"
    assert (first, *rest) == plain(TEXT_AND_CALL, "chat").data


def test_every_chunk_has_another_id() -> None:
    """The ids are `c1`, `c2` and so on, the usage chunk's included; nothing else differs."""
    quirk = BY_NAME["chat-chunk-id-changes"]
    found = [frame for frame in sent(quirk) if frame != DONE]
    assert [frame[:10] for frame in found] == [f'{{"id":"c{n}"' for n in range(1, 6)]
    was = plain(TEXT, "chat").data
    id_ = was[0].split(b'"')[3]
    ids = [f"c{n}".encode() for n in range(1, 6)]
    expected = [data.replace(id_, id) for data, id in zip(was, ids, strict=False)]
    assert play(quirk, quirk.variants[0], "chat").data == (*expected, was[-1])


def test_a_second_choice_calls_with_its_own_ids() -> None:
    """Choice 1 has the same calls as choice 0, with other ids."""
    found = sent(BY_NAME["chat-n-choices"], scenario=TEXT_AND_CALL)
    assert second(calling(A1.replace("call_A1", "call_A1_other") % "")) in found
    assert second(fragment(0, CITY)) in found
    assert second(CALLS) in found


def test_requested_choices_are_unchanged() -> None:
    """A request for several choices gets no further ones."""
    turn = Turn((Text(("Hel", "lo")), ToolCall("f", "call_1")), "tool_calls")
    for name in ("chat-n-choices", "chat-n-choices:one-first"):
        assert laws.streamed(turn, Options(n=2), name) == laws.streamed(turn, Options(n=2))


@for_all(
    ("name", "scenario"),
    [
        ("chat-two-calls-one-chunk", CALL),
        ("chat-two-calls-one-chunk", ZERO),
        ("chat-calls-interleaved", CALL),
        ("chat-calls-interleaved", INTERLEAVED),
        ("chat-type-missing", TEXT),
        ("chat-tool-calls-null", CALL),
        ("chat-object-empty", CALL),
        ("chat-content-parts", CALL),
        ("chat-reasoning-fields", TEXT),
        ("chat-reasoning-fields:reasoning", TEXT),
        ("chat-reasoning-fields:both", CALL),
        ("chat-reasoning-fields:details", TEXT),
        ("chat-content-key-absent", TEXT),
        ("chat-content-key-absent", TEXT_AND_CALL),
        ("chat-content-key-absent", REASONING),
    ],
)
def test_nothing_to_change_changes_nothing(name: str, scenario: Scenario) -> None:
    """A quirk does not change scenarios without its feature."""
    quirk, _, chosen = name.partition(":")
    variant = BY_NAME[quirk].variant(chosen)
    assert variant is not None
    laws.leaves(BY_NAME[quirk], variant, scenario)


def test_plain_samples_are_as_expected_here() -> None:
    """Without quirks the sample has exactly the events that the expectations above are built on."""
    assert shortened(plain(TEXT, "chat")) == [OPENING, HEL, LO, *TAIL]
