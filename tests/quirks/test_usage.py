"""Group E: where and how Chat Completions streams tell usage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given

from mockllm.core.events import StreamError
from mockllm.core.turn import Text, TokenUsage, Turn
from mockllm.protocols.openai_chat import Options
from mockllm.quirks.base import Quirk, Variant
from mockllm.quirks.samples import TEXT
from mockllm.quirks.usage import QUIRKS
from tests.quirks import chat_laws as laws
from tests.quirks.chat_laws import DONE, HEL, LO, OPENING, STOP, USAGE, sent, usage
from tests.quirks.playing import plain, play
from tests.strategies import opaques, parts, turns

BY_NAME = {quirk.name: quirk for quirk in QUIRKS}
EACH = pytest.mark.parametrize(("quirk", "variant"), laws.each_variant(QUIRKS))


def spent(each: str, output: int) -> str:
    """A chunk with usage."""
    return each.replace('"usage":null', f'"usage":{usage(output)}')


BARE = [each.replace(',"usage":null', "") for each in (OPENING, HEL, LO, STOP)]
TOLD = [OPENING, HEL, LO, STOP]

SAMPLES = [
    ("usage-empty-choices", [*BARE, USAGE, DONE]),
    ("usage-no-choices", [*TOLD, USAGE.replace('"choices":[],', ""), DONE]),
    ("usage-no-choices:null", [*TOLD, USAGE.replace('"choices":[]', '"choices":null'), DONE]),
    ("usage-in-finish-chunk", [OPENING, HEL, LO, spent(STOP, 7), DONE]),
    ("usage-cumulative", [spent(OPENING, 1), spent(HEL, 3), spent(LO, 5), spent(STOP, 7), DONE]),
    ("usage-wiped-by-trailing-chunk", [*TOLD, USAGE, '{<E>,"choices":[]}', DONE]),
    ("usage-wiped-by-trailing-chunk:null", [*TOLD, USAGE, '{<E>,"choices":[],"usage":null}', DONE]),
]


@pytest.fixture(scope="module", autouse=True)
def _table() -> Iterator[None]:
    with laws.known(QUIRKS):
        yield


@pytest.mark.parametrize(("name", "expected"), SAMPLES, ids=[name for name, _ in SAMPLES])
def test_sample_has_the_bytes_that_servers_send(name: str, expected: list[str]) -> None:
    """Each variant turns its sample into exactly these events."""
    quirk, _, variant = name.partition(":")
    assert sent(BY_NAME[quirk], variant) == expected


HELLO = Turn((Text(("Hel", "lo")),), "stop", TokenUsage(12, 7))


@EACH
def test_usage_is_told_although_nobody_asked(quirk: Quirk, variant: Variant) -> None:
    """Servers with these quirks tell usage without `stream_options`, before `[DONE]`."""
    told = laws.pieces(HELLO, Options(), f"{quirk.name}:{variant.name}")
    assert told[-1].data == b"data: [DONE]\n\n"
    assert usage().encode() in b"".join(piece.data for piece in told)
    assert not any(b'"usage"' in piece.data for piece in laws.pieces(HELLO, Options()))


@pytest.mark.parametrize(
    "turn",
    [
        Turn((Text(("Hel", "lo")),), "stop"),
        Turn((Text(("Hel", "lo")),), None, TokenUsage(12, 7), error=StreamError("boom")),
    ],
    ids=["unknown", "error"],
)
@EACH
def test_without_usage_nothing_changes(quirk: Quirk, variant: Variant, turn: Turn) -> None:
    """Where usage is not known, or an error comes in its place, bytes stay as they are."""
    for options in (Options(), Options(stream_usage=True)):
        told = laws.pieces(turn, options, f"{quirk.name}:{variant.name}")
        assert told == laws.pieces(turn, options)


def test_cumulative_usage_never_shrinks() -> None:
    """It grows up to the final one, and reasoning is never more than all output."""
    turn = Turn((Text(tuple("abcdefghij")),), "stop", TokenUsage(3, 7, 5, 2))
    told = laws.pieces(turn, Options(n=2), "usage-cumulative")
    counts = [
        int(piece.data.split(b'"completion_tokens":')[1].split(b",")[0]) for piece in told[:-1]
    ]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 7)
    assert b'"reasoning_tokens":5' in told[-2].data
    assert b'"reasoning_tokens":0' in told[0].data


@EACH
def test_every_variant_changes_its_sample(quirk: Quirk, variant: Variant) -> None:
    """No variant leaves its own sample as it is."""
    assert play(quirk, variant, "chat").data != plain(TEXT, "chat").data


@given(turn=turns(parts | opaques))
def test_every_turn_plays(turn: Turn) -> None:
    """Whatever the turn and the request, the stream stays in order and well-formed."""
    laws.plays(QUIRKS, turn, Options(stream_usage=True))
    laws.plays(QUIRKS, turn, Options(n=2, obfuscation=True))


@given(turn=turns())
def test_our_decoder_reads_it(turn: Turn) -> None:
    """The decoder, which is lenient, comes to what the variant means."""
    laws.reads_back(QUIRKS, turn)


@given(told=laws.odd_streams)
def test_odd_chunks_do_no_harm(told: list[str]) -> None:
    """Chunks that a scenario gives as raw frames may have any shape."""
    laws.stands(QUIRKS, told)


@EACH
def test_what_is_no_chunk_stays(quirk: Quirk, variant: Variant) -> None:
    """Frames that a quirk does not understand keep their bytes."""
    laws.leaves_the_unknown(variant)
