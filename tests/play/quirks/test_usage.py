"""Group E: where and how Chat Completions streams report usage."""

from __future__ import annotations

import pytest

from mockllm.core.events import StreamError
from mockllm.core.turn import Text, TokenUsage, Turn
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.play.quirks.chat.finish import USAGE as QUIRKS
from mockllm.wire.protocols.openai_chat.request import Options
from tests.cases import for_all
from tests.play.quirks import chat_laws as laws
from tests.play.quirks.chat_laws import DONE, HEL, LO, OPENING, STOP, USAGE, sent, usage

BY_NAME = {quirk.name: quirk for quirk in QUIRKS}
EACH = for_all(("quirk", "variant"), laws.each_variant(QUIRKS))


def spent(each: str, output: int) -> str:
    """A chunk with usage."""
    return each.replace('"usage":null', f'"usage":{usage(output)}')


BARE = [each.replace(',"usage":null', "") for each in (OPENING, HEL, LO, STOP)]
BEGIN = [OPENING, HEL, LO, STOP]

SAMPLES = [
    ("usage-empty-choices", [*BARE, USAGE, DONE]),
    ("usage-no-choices", [*BEGIN, USAGE.replace('"choices":[],', ""), DONE]),
    (
        "usage-no-choices:null",
        [*BEGIN, USAGE.replace('"choices":[]', '"choices":null'), DONE],
    ),
    ("usage-in-finish-chunk", [OPENING, HEL, LO, spent(STOP, 7), DONE]),
    ("usage-cumulative", [spent(OPENING, 1), spent(HEL, 3), spent(LO, 5), spent(STOP, 7), DONE]),
    ("usage-wiped-by-trailing-chunk", [*BEGIN, USAGE, '{<E>,"choices":[]}', DONE]),
    (
        "usage-wiped-by-trailing-chunk:null",
        [*BEGIN, USAGE, '{<E>,"choices":[],"usage":null}', DONE],
    ),
]


@pytest.mark.parametrize(("name", "expected"), SAMPLES, ids=[name for name, _ in SAMPLES])
def test_sample_has_the_bytes_that_servers_send(name: str, expected: list[str]) -> None:
    """Each variant turns its sample into exactly these events."""
    quirk, _, variant = name.partition(":")
    assert sent(BY_NAME[quirk], variant) == expected


HELLO = Turn((Text(("Hel", "lo")),), "stop", TokenUsage(12, 7))


@EACH
def test_usage_is_reported_without_being_requested(quirk: Quirk, variant: Variant) -> None:
    """Servers with these quirks send usage without `stream_options`, before `[DONE]`."""
    found = laws.streamed(HELLO, Options(), f"{quirk.name}:{variant.name}")
    assert found[-1].data == b"data: [DONE]\n\n"
    assert usage().encode() in b"".join(part.data for part in found)
    assert not any(b'"usage"' in part.data for part in laws.streamed(HELLO, Options()))


@for_all(
    "turn",
    [
        Turn((Text(("Hel", "lo")),), "stop"),
        Turn((Text(("Hel", "lo")),), None, TokenUsage(12, 7), error=StreamError("boom")),
    ],
    ids=["unknown", "error"],
)
@EACH
def test_without_usage_nothing_changes(quirk: Quirk, variant: Variant, turn: Turn) -> None:
    """Where usage is unknown, or an error replaces it, the bytes are unchanged."""
    for options in (Options(), Options(stream_usage=True)):
        found = laws.streamed(turn, options, f"{quirk.name}:{variant.name}")
        assert found == laws.streamed(turn, options)


def test_cumulative_usage_never_shrinks() -> None:
    """It grows up to the final usage, and reasoning never exceeds the output."""
    turn = Turn((Text(tuple("abcdefghij")),), "stop", TokenUsage(3, 7, 5, 2))
    found = laws.streamed(turn, Options(n=2), "usage-cumulative")
    counts = [
        int(part.data.split(b'"completion_tokens":')[1].split(b",")[0]) for part in found[:-1]
    ]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 7)
    assert b'"reasoning_tokens":5' in found[-2].data
    assert b'"reasoning_tokens":0' in found[0].data
