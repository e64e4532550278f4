"""Group C: how Chat Completions streams finish and end."""

from __future__ import annotations

import pytest

from mockllm.core.turn import Text, TokenUsage, ToolCall, Turn
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.play.quirks.chat.finish import QUIRKS
from mockllm.play.quirks.samples import CALL, TEXT, TWO_CALLS
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols.openai_chat.request import Options
from tests.cases import for_all
from tests.play.quirks import chat_laws as laws
from tests.play.quirks.chat_laws import DONE, HEL, LO, OPENING, STOP, USAGE, chunk, usage
from tests.play.quirks.meaning import MEANINGS

BY_NAME = {quirk.name: quirk for quirk in QUIRKS}
EACH = for_all(("quirk", "variant"), laws.each_variant(QUIRKS))
CALLED = [
    chunk(
        '{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_A1",'
        '"type":"function","function":{"name":"get_weather","arguments":""}}],"refusal":null}'
    ),
    chunk('{"tool_calls":[{"index":0,"function":{"arguments":"{\\"city\\":"}}]}'),
    chunk('{"tool_calls":[{"index":0,"function":{"arguments":"\\"Paris\\"}"}}]}'),
]
CALLS = chunk("{}", '"tool_calls"')
LO_STOP = chunk('{"content":"lo"}', '"stop"')

SAMPLES = [
    ("chat-finish-stop-with-tools", [*CALLED, STOP, USAGE, DONE]),
    ("chat-finish-foreign-value", [OPENING, HEL, LO, chunk("{}", '"end_turn"'), USAGE, DONE]),
    ("chat-finish-foreign-value:eos", [OPENING, HEL, LO, chunk("{}", '"eos"'), USAGE, DONE]),
    (
        "chat-finish-foreign-value:guardrail",
        [OPENING, HEL, LO, chunk("{}", '"guardrail_intervened"'), USAGE, DONE],
    ),
    ("chat-finish-with-last-delta", [OPENING, HEL, LO_STOP, USAGE, DONE]),
    (
        "chat-finish-key-absent",
        [
            *(each.replace(',"finish_reason":null', "") for each in (OPENING, HEL, LO)),
            STOP,
            USAGE,
            DONE,
        ],
    ),
    (
        "chat-finish-key-absent:empty",
        [
            *(each.replace('reason":null', 'reason":""') for each in (OPENING, HEL, LO)),
            STOP,
            USAGE,
            DONE,
        ],
    ),
    ("chat-finish-twice", [*CALLED, CALLS, CALLS, USAGE, DONE]),
    (
        "chat-finish-twice:with-usage",
        [*CALLED, CALLS, CALLS.replace('"usage":null', f'"usage":{usage()}'), DONE],
    ),
    ("chat-finish-never", [OPENING, HEL, LO, DONE]),
    ("chat-finish-never:end", [OPENING, HEL, LO]),
    ("chat-finish-never:usage", [OPENING, HEL, LO, USAGE, DONE]),
    ("chat-no-done", [OPENING, HEL, LO, STOP, USAGE]),
    ("chat-data-after-done", [OPENING, HEL, LO, STOP, USAGE, DONE, chunk('{"content":"late"}')]),
    ("chat-delta-after-finish", [OPENING, HEL, STOP, LO, USAGE, DONE]),
]


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("chat-finish-stop-with-tools", TEXT),
        ("chat-finish-foreign-value:eos", CALL),
        ("chat-finish-foreign-value:guardrail", CALL),
        ("chat-delta-after-finish", TWO_CALLS),
    ],
)
def test_nothing_to_change_changes_nothing(name: str, scenario: Scenario) -> None:
    """A quirk of calls does not change texts, and the reverse."""
    quirk, _, chosen = name.partition(":")
    variant = BY_NAME[quirk].variant(chosen)
    assert variant is not None
    laws.leaves(BY_NAME[quirk], variant, scenario)


CUT = Turn((Text(("Hel", "lo")),), usage=TokenUsage(1, 2))


@EACH
def test_a_cut_stream_has_no_finish(quirk: Quirk, variant: Variant) -> None:
    """No quirk adds a finish to a stream without one."""
    options = Options(stream_usage=True)
    if quirk.name != "chat-finish-key-absent":
        found = laws.streamed(CUT, options, f"{quirk.name}:{variant.name}")
        assert found == laws.streamed(CUT, options)


def test_foreign_finish_reasons_follow_the_finish() -> None:
    """Anthropic's reasons differ for text, calls and the limit; with calls `stop` becomes the
    reason for calls."""
    call = ToolCall("f", "call_1")
    anthropic = "chat-finish-foreign-value:end-turn"
    guardrail = "chat-finish-foreign-value:guardrail"
    stopped = "chat-finish-stop-with-tools"
    for name, turn, expected in [
        (anthropic, Turn((), "stop"), ("stop", "end_turn")),
        (anthropic, Turn((call,), "tool_calls"), ("tool_calls", "tool_use")),
        (anthropic, Turn((), "length"), ("length", "max_tokens")),
        (anthropic, Turn((), "content_filter"), ("content_filter", None)),
        (guardrail, Turn((), "stop"), ("content_filter", "guardrail_intervened")),
        (stopped, Turn((call,), "tool_calls"), ("tool_calls", "stop")),
        (stopped, Turn((), "tool_calls"), ("tool_calls", None)),
        (stopped, Turn((call,)), (None, None)),
    ]:
        outcome = MEANINGS[name](turn)
        assert (outcome.finish, outcome.finish_raw) == expected


def test_finish_never_is_an_error() -> None:
    """A stream without a finish must be reported; one without `[DONE]` need not be."""
    assert BY_NAME["chat-finish-never"].prose.right == "error"
    assert BY_NAME["chat-no-done"].prose.right == "same"
