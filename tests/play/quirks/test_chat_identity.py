"""Group A: how a Chat Completions fragment is assigned to its tool call."""

from __future__ import annotations

import re

import pytest

from mockllm.core.turn import Text, ToolCall, Turn
from mockllm.play.quirks.chat.identity import QUIRKS
from mockllm.play.quirks.samples import CALL, INTERLEAVED
from mockllm.wire.protocols.openai_chat.request import Options
from tests.cases import for_all
from tests.play.quirks import chat_calls as calls
from tests.play.quirks import chat_laws as laws
from tests.play.quirks.chat_calls import END, ROLE, first, then
from tests.play.quirks.meaning import MEANINGS
from tests.play.quirks.playing import decoded_turn, plain, play

BY_NAME = {quirk.name: quirk for quirk in QUIRKS}
EACH = for_all(("quirk", "variant"), laws.each_variant(QUIRKS))

A1 = r'"id":"call_A1","type":"function","function":{"name":"get_weather","arguments":""}'
B2 = r'"id":"call_B2","type":"function","function":{"name":"get_time","arguments":""}'
CITY, PARIS = r'"function":{"arguments":"{\"city\":"}', r'"function":{"arguments":"\"Paris\"}"}'
TZ, CET = r'"function":{"arguments":"{\"tz\":"}', r'"function":{"arguments":"\"CET\"}"}'
WHOLE_A1 = A1.replace('""', r'"{\"city\":\"Paris\"}"')
WHOLE_B2 = B2.replace('""', r'"{\"tz\":\"CET\"}"')
LATER = [then(f'{{"index":0,{CITY}}}'), then(f'{{"index":0,{PARIS}}}')]


def entries(*texts: str) -> list[str]:
    """A chunk for each entry; the first is the opening one."""
    opening, *others = (f"{{{text}}}" for text in texts)
    return [first(opening), *map(then, others), *END]


def two(*texts: str) -> list[str]:
    """A chunk for the role, and one for each entry."""
    return [ROLE, *(then(f"{{{text}}}") for text in texts), *END]


def two_calls(one: int, other: int) -> list[str]:
    """Two calls in fragments, with these indexes."""
    own = [f'"index":{one},{text}' for text in (A1, CITY, PARIS)]
    return two(*own, *(f'"index":{other},{text}' for text in (B2, TZ, CET)))


SAMPLES = [
    ("chat-index-missing", entries(WHOLE_A1.replace('"type":"function",', ""))),
    ("chat-index-missing:fragments", entries(A1, CITY, PARIS)),
    ("chat-index-missing:empty-id", entries(WHOLE_A1.replace("call_A1", ""))),
    (
        "chat-index-first-only",
        entries(f'"index":0,{A1}', f'"id":"call_A1",{CITY}', f'"id":"call_A1",{PARIS}'),
    ),
    ("chat-index-all-zero", two(f'"index":0,{WHOLE_A1}', f'"index":0,{WHOLE_B2}')),
    ("chat-index-all-zero:fragments", two_calls(0, 0)),
    (
        "chat-index-same-one-chunk",
        [ROLE, then(f'{{"index":0,{WHOLE_A1}}}', f'{{"index":0,{WHOLE_B2}}}'), *END],
    ),
    (
        "chat-index-duplicate-fragments",
        [
            first(
                '{"index":0,' + A1.replace('""', r'"{\"city\":"') + "}",
                f'{{"index":0,{PARIS}}}',
            ),
            *END,
        ],
    ),
    ("chat-index-from-one", two_calls(1, 2)),
    ("chat-index-from-one:gap", two_calls(0, 2)),
    ("chat-index-from-one:negative", two_calls(-1, 0)),
    (
        "chat-index-reversed",
        two(
            *(f'"index":1,{text}' for text in (B2, TZ, CET)),
            *(f'"index":0,{text}' for text in (A1, CITY, PARIS)),
        ),
    ),
    (
        "chat-id-repeated",
        entries(
            *(f'"index":0,{t}' for t in (A1, f'"id":"call_A1",{CITY}', f'"id":"call_A1",{PARIS}'))
        ),
    ),
    (
        "chat-id-new-every-chunk",
        entries(
            '"index":0,' + A1.replace("call_A1", "1"),
            f'"index":0,"id":"2",{CITY}',
            f'"index":0,"id":"3",{PARIS}',
        ),
    ),
    (
        "chat-id-empty-later",
        entries(
            f'"index":0,{A1}',
            r'"index":0,"id":"","type":"function","function":{"name":"","arguments":"{\"city\":"}',
            r'"index":0,"id":"","type":"function","function":{"name":"","arguments":"\"Paris\"}"}',
        ),
    ),
    (
        "chat-id-empty-later:id-only",
        entries(f'"index":0,{A1}', f'"index":0,"id":"",{CITY}', f'"index":0,"id":"",{PARIS}'),
    ),
    (
        "chat-id-null-later",
        entries(
            f'"index":0,{A1}',
            r'"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"{\"city\":"}',
            r'"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"\"Paris\"}"}',
        ),
    ),
    (
        "chat-placeholder-null-string",
        [first('{"index":0,' + A1.replace("call_A1", "null") + "}"), *LATER, *END],
    ),
    (
        "chat-placeholder-null-string:name",
        [first('{"index":0,' + A1.replace("get_weather", "null") + "}"), *LATER, *END],
    ),
    (
        "chat-id-never",
        [first('{"index":0,' + A1.replace('"id":"call_A1",', "") + "}"), *LATER, *END],
    ),
    (
        "chat-id-never:null",
        [first('{"index":0,' + A1.replace('"call_A1"', "null") + "}"), *LATER, *END],
    ),
    (
        "chat-id-never:empty",
        [first('{"index":0,' + A1.replace("call_A1", "") + "}"), *LATER, *END],
    ),
    (
        "chat-id-shared",
        [text.replace("call_B2", "call_A1") for text in two_calls(0, 1)],
    ),
    (
        "chat-name-repeated",
        entries(
            f'"index":0,{A1}',
            r'"index":0,"function":{"name":"get_weather","arguments":"{\"city\":"}',
            r'"index":0,"function":{"name":"get_weather","arguments":"\"Paris\"}"}',
        ),
    ),
    (
        "chat-name-split",
        entries(
            '"index":0,' + A1.replace("get_weather", "get_"),
            '"index":0,"function":{"name":"weather","arguments":""}',
            f'"index":0,{CITY}',
            f'"index":0,{PARIS}',
        ),
    ),
    (
        "chat-name-split:before-arguments",
        entries(
            '"index":0,"id":"call_A1","type":"function","function":{"name":"get_"}',
            '"index":0,"function":{"name":"weather","arguments":""}',
            f'"index":0,{CITY}',
            f'"index":0,{PARIS}',
        ),
    ),
    (
        "chat-name-empty-first",
        entries(
            '"index":0,' + A1.replace("get_weather", ""),
            '"index":0,"function":{"name":"get_weather","arguments":""}',
            f'"index":0,{CITY}',
            f'"index":0,{PARIS}',
        ),
    ),
]


@pytest.mark.parametrize(
    "name",
    [
        "chat-index-all-zero",
        "chat-index-all-zero:fragments",
        "chat-index-same-one-chunk",
        "chat-index-from-one:gap",
        "chat-index-reversed",
        "chat-id-shared",
    ],
)
def test_one_call_alone_is_unchanged(name: str) -> None:
    """Quirks that need two calls leave one unchanged."""
    quirk, _, wanted = name.partition(":")
    variant = BY_NAME[quirk].variant(wanted)
    assert variant is not None
    laws.leaves(BY_NAME[quirk], variant, CALL)


ANNOUNCED = ("chat-name-split:",)
"""Our decoder announces a call with the first fragment that has id, name and arguments."""


@pytest.mark.parametrize("name", ["fragments", ""])
def test_calls_without_index_are_never_interleaved(name: str) -> None:
    """Without an index a fragment belongs to the call before it, so the stream is not
    interleaved."""
    quirk = BY_NAME["chat-index-missing"]
    variant = quirk.variant(name)
    assert variant is not None
    timed = play(quirk, variant, "chat", INTERLEAVED)
    expected = decoded_turn(plain(INTERLEAVED, "chat"), "chat").whole()
    assert decoded_turn(timed, "chat").whole().tool_calls == expected.tool_calls


@pytest.mark.parametrize("name", [name for name, _ in SAMPLES[:7] if "first-only" not in name])
def test_calls_without_an_index_of_their_own_come_in_the_order_of_arrival(name: str) -> None:
    """Where the second call opens first and nothing numbers them, it is the first."""
    turn = Turn((ToolCall("f", "call_1"), ToolCall("g", "call_2")), "tool_calls", order=(1, 0))
    assert [call.name for call in MEANINGS[name](turn).tool_calls] == ["g", "f"]
    decoded = calls.read(laws.streamed(turn, Options(), name))
    assert [call.name for call in decoded.tool_calls] == ["g", "f"]


def test_new_ids_of_several_calls_are_all_different() -> None:
    """Openings are numbered from 1, and no two fragments share an id."""
    turn = Turn(
        (
            ToolCall("f", "call_1", ('{"a":', "1}")),
            Text(("and",)),
            ToolCall("f", "call_2", ('{"a":', "2}")),
        ),
        "tool_calls",
        order=(0, 2, 1, 2, 0, 2, 0),
    )
    timed = laws.streamed(turn, Options(), "chat-id-new-every-chunk")
    ids = re.findall(rb'"id":"(\d+)"', b"".join(part.data for part in timed))
    assert ids == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert [call.id for call in calls.read(timed).tool_calls] == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "fragments"),
    [
        ("get_weather", ("get_", "weather")),
        ("web-search", ("web-", "search")),
        ("abcd", ("ab", "cd")),
        ("abab", ("a", "bab")),
        ("x_", ("x", "_")),
        ("a_a_", ("a", "_a_")),
        ("aa", ("aa",)),
        ("f", ("f",)),
    ],
)
def test_fragments_of_a_name_differ(name: str, fragments: tuple[str, ...]) -> None:
    """A second fragment that equals the first would look like a repeated name."""
    turn = Turn((ToolCall(name, "call_1"),), "tool_calls")
    timed = laws.streamed(turn, Options(), "chat-name-split")
    found = re.findall(rb'"name":"([^"]*)"', b"".join(part.data for part in timed))
    assert tuple(fragment.decode() for fragment in found) == fragments
