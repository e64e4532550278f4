"""Group B: how Chat Completions servers send the arguments of tool calls."""

from __future__ import annotations

import pytest

from mockllm.core.turn import ToolCall, Turn
from mockllm.play.quirks.chat.arguments import QUIRKS
from mockllm.play.quirks.samples import CALL, TWO_CALLS, ZERO
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols.openai_chat.request import Options
from tests.cases import for_all
from tests.play.quirks import chat_calls as calls
from tests.play.quirks import chat_laws as laws
from tests.play.quirks.chat_calls import END, ROLE, first, then
from tests.play.quirks.chat_laws import DONE, USAGE, chunk
from tests.play.quirks.meaning import MEANINGS

BY_NAME = {quirk.name: quirk for quirk in QUIRKS}
EACH = for_all(("quirk", "variant"), laws.each_variant(QUIRKS))


def opened(arguments: str = '""', name: str = "get_weather", id: str = "call_A1") -> str:
    """The opening chunk, with arguments as JSON, or without them where that is empty."""
    field = f',"arguments":{arguments}' if arguments else ""
    return first(
        f'{{"index":0,"id":"{id}","type":"function","function":{{"name":"{name}"{field}}}}}'
    )


def argued(text: str) -> str:
    """A chunk with a fragment of arguments; the text is JSON."""
    return then(f'{{"index":0,"function":{{"arguments":{text}}}}}')


CITY, PARIS = argued(r'"{\"city\":"'), argued(r'"\"Paris\"}"')
WHOLE = r'"{\"city\":\"Paris\"}"'

SAMPLES = [
    ("chat-args-null-first", [opened("null"), CITY, PARIS, *END]),
    ("chat-args-null-first:together", [opened("null"), CITY, PARIS, *END]),
    ("chat-args-null-only", [opened("null", "list_issues", "call_Z0"), *END]),
    ("chat-args-null-only:absent", [opened("", "list_issues", "call_Z0"), *END]),
    ("chat-args-empty-zero", [opened('""', "list_issues", "call_Z0"), *END]),
    ("chat-args-whole", [opened(WHOLE), *END]),
    ("chat-args-object", [opened('{"city":"Paris"}'), *END]),
    (
        "chat-args-before-name",
        [
            first('{"index":0,"id":"call_A1","type":"function","function":{"arguments":"{"}}'),
            then(r'{"index":0,"function":{"name":"get_weather","arguments":"\"city\":"}}'),
            PARIS,
            *END,
        ],
    ),
    ("chat-args-repeated-at-end", [opened(), CITY, PARIS, argued(WHOLE), *END]),
    (
        "chat-args-repeated-at-end:with-finish",
        [
            opened(),
            CITY,
            PARIS,
            then(
                f'{{"index":0,"id":null,"type":null,"function":{{"name":null,"arguments":{WHOLE}}}}}',
                finish='"tool_calls"',
            ),
            USAGE,
            DONE,
        ],
    ),
    ("chat-args-lost-prefix", [opened(), argued(r'"city\":"'), PARIS, *END]),
    (
        "chat-args-truncated",
        [opened(), CITY, argued(r'"\"Pa"'), chunk("{}", '"length"'), USAGE, DONE],
    ),
    ("chat-args-truncated:normal-finish", [opened(), CITY, argued(r'"\"Pa"'), *END]),
]


def test_several_openings_in_one_chunk() -> None:
    """`together` has the openings of all calls in the chunk of the first one."""
    entry = '{"index":%d,"id":"%s","type":"function","function":{"name":"%s","arguments":null}}'
    assert laws.sent(BY_NAME["chat-args-null-first"], "together", TWO_CALLS) == [
        ROLE,
        then(entry % (0, "call_A1", "get_weather"), entry % (1, "call_B2", "get_time")),
        CITY,
        PARIS,
        then(r'{"index":1,"function":{"arguments":"{\"tz\":"}}'),
        then(r'{"index":1,"function":{"arguments":"\"CET\"}"}}'),
        *END,
    ]


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("chat-args-null-only", CALL),
        ("chat-args-null-only:absent", CALL),
        ("chat-args-empty-zero", CALL),
        ("chat-args-lost-prefix", ZERO),
    ],
)
def test_other_calls_stay(name: str, scenario: Scenario) -> None:
    """Quirks of calls without arguments leave the others, and what cannot break does not."""
    quirk, _, wanted = name.partition(":")
    variant = BY_NAME[quirk].variant(wanted)
    assert variant is not None
    laws.leaves(BY_NAME[quirk], variant, scenario)


TWICE = ("chat-args-repeated-at-end:", "chat-args-repeated-at-end:with-finish")


@pytest.mark.parametrize("name", TWICE)
def test_repeated_arguments_are_no_json(name: str) -> None:
    """Each call has its arguments twice, the empty ones too."""
    turn = Turn((ToolCall("f", "call_1", ('{"a":', "1}")), ToolCall("g", "call_2")), "tool_calls")
    got = calls.read(laws.streamed(turn, Options(), name))
    assert [call.arguments for call in got.tool_calls] == ['{"a":1}{"a":1}', "{}{}"]


@pytest.mark.parametrize("name", TWICE)
def test_a_cut_stream_repeats_nothing(name: str) -> None:
    """The repetition comes with the finish, which a stream that is cut does not have."""
    turn = Turn((ToolCall("f", "call_1", ('{"a":', "1}")),))
    assert laws.streamed(turn, Options(), name) == laws.streamed(turn, Options())


@pytest.mark.parametrize(
    "arguments",
    ['{"a":1e999}', "[1]", '{"a":', '{"a":' + "[" * 100_000],
    ids=["infinity", "a list", "malformed", "deep"],
)
def test_only_objects_are_sent_as_objects(arguments: str) -> None:
    """Arguments that are no JSON object stay as they are."""
    turn = Turn((ToolCall("f", "call_1", (arguments,)),), "tool_calls")
    assert laws.streamed(turn, Options(), "chat-args-object") == laws.streamed(turn, Options())


@pytest.mark.parametrize(
    ("fragments", "left"),
    [
        (("{", '"a":1}'), ("", 'a":1}')),
        (("{", '"', 'a":1}'), ("", "", 'a":1}')),
        (('{"a"', ":1}"), ('a"', ":1}")),
        ((' {"a":1}',), ('"a":1}',)),
        (('  {"a":1}',), ('  {"a":1}',)),
        (("{", "}"), ("{", "}")),
        (("{}  ",), ("{}  ",)),
    ],
)
def test_two_characters_are_lost_where_that_breaks_the_rest(
    fragments: tuple[str, ...], left: tuple[str, ...]
) -> None:
    """The call has the fragments that are left; an object stays whole."""
    turn = Turn((ToolCall("f", "call_1", fragments),), "tool_calls")
    assert MEANINGS["chat-args-lost-prefix"](turn).tool_calls == (ToolCall("f", "call_1", left),)


def test_only_the_last_call_is_cut() -> None:
    """Parts before the limit are unchanged; a call without arguments is cut too."""
    whole = ToolCall("f", "call_1", ('{"a":', "1}"))
    turn = Turn((whole, ToolCall("g", "call_2")), "tool_calls")
    got = calls.read(laws.streamed(turn, Options(), "chat-args-truncated"))
    assert got.tool_calls == (whole, ToolCall("g", "call_2", ("{",)))
    assert got.finish == "length"


@pytest.mark.parametrize("name", ["chat-args-truncated", "chat-args-truncated:normal-finish"])
def test_an_answer_that_is_not_cut_keeps_its_finish(name: str) -> None:
    """Without calls, or without a finish, the stream does not change."""
    for turn in [Turn((), "stop"), Turn((ToolCall("f", "call_1", ('{"a":', "1}")),))]:
        assert MEANINGS[name](turn) is turn
        assert laws.streamed(turn, Options(), name) == laws.streamed(turn, Options())
