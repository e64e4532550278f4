"""The reference accumulators on every quirk: each variant, over each of its protocols."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mockllm.checking import reference
from mockllm.checking.outcome import Outcome
from mockllm.core.turn import Turn
from mockllm.protocols import PROTOCOLS
from mockllm.quirks import QUIRKS, Quirk, Variant
from mockllm.replay.resolve import resolve
from tests.checking.reference_playing import (
    Record,
    by_bytes,
    by_events,
    cut_at,
    expected,
    payloads,
    wrong,
)
from tests.quirks.playing import play

PREFIXES = ("chat", "usage", "sse", "err", "anth", "resp", "gem", "agui")
MISTAKES = {"anth-parse-each-fragment", "chat-dedupe-by-overlap", "sse-trim"}
"""Mistakes of clients, which no server can send."""

CASES = [
    pytest.param(quirk, variant, api, id=f"{quirk.name}-{variant.name or 'usual'}-{api}")
    for quirk in QUIRKS.values()
    for variant in quirk.variants
    for api in quirk.apis
]


def _in_events(variant: Variant) -> bool:
    """Whether a variant shows in decoded events."""
    return variant.bytes is None and variant.content_type is None


every_case = pytest.mark.parametrize(("quirk", "variant", "api"), CASES)


def meant(quirk: Quirk, variant: Variant, api: str) -> Turn:
    """What the sample of a quirk says with it."""
    protocol = PROTOCOLS[api]
    plain = resolve(quirk.sample, 0, api, protocol.call_prefix)
    said = variant.meaning(plain) if variant.meaning else plain
    back = protocol.project(said)
    # A quirk may send words that the protocol does not have, and leave out what it has to tell.
    word = said.finish_raw if said.finish is not None and api == "chat" else back.finish_raw
    return replace(back, finish_raw=word, usage=said.usage and back.usage)


def problems(quirk: Quirk, variant: Variant, api: str, record: Record) -> list[str]:
    """What is wrong with what the reference makes of a quirk."""
    outcome, right = record.outcome, variant.right or quirk.right
    turn = meant(quirk, variant, api)
    if right == "error" or (right == "either" and outcome.errors):
        plain = resolve(quirk.sample, 0, api, PROTOCOLS[api].call_prefix)
        sent = [*expected(plain, api).tool_calls, *expected(turn, api).tool_calls]
        return _reported(outcome, [(call.name, call.arguments) for call in sent])
    found = wrong(turn, api, outcome, ids=variant.ids)
    return [words for words in found if turn.usage or not words.startswith("usage")]


def _reported(outcome: Outcome, sent: list[tuple[str, Any]]) -> list[str]:
    found = [] if outcome.errors else ["no error"]
    found += [f"a crash: {trouble.message}" for trouble in outcome.errors if trouble.crash]
    made_up = [c for c in outcome.tool_calls if (c.name, c.arguments) not in sent]
    return found + [f"not complete, or never sent: {call}" for call in made_up]


@pytest.mark.slow
@every_case
def test_a_quirk_in_bytes_comes_out_right(quirk, variant, api):
    """As the table of quirks says it is right, whole and in small pieces."""
    data = b"".join(play(quirk, variant, api).data)
    record = by_bytes(api, [data])
    assert not problems(quirk, variant, api, record)
    assert record.pending == 0
    size = max(1, len(data) // 997)
    assert by_bytes(api, cut_at(data, range(0, len(data), size))).outcome == record.outcome


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quirk", "variant", "api"),
    [case for case in CASES if _in_events(case.values[1])],
)
def test_a_quirk_in_events_comes_out_right(quirk, variant, api):
    """As the table says, too; an event that is no JSON can only be found in bytes."""
    data = b"".join(play(quirk, variant, api).data)
    try:
        events = payloads(data, api)
    except ValueError:
        assert by_bytes(api, [data]).outcome.errors
        return
    record = by_events(api, events)
    assert not problems(quirk, variant, api, record)
    assert record.pending == 0


@pytest.mark.skipif(not QUIRKS, reason="there are no quirks")
def test_every_protocol_has_quirks():
    """The tests above are of something, over each of them."""
    assert {api for quirk in QUIRKS.values() for api in quirk.apis} == set(PROTOCOLS)


def test_every_quirk_is_named_where_its_rule_is():
    """The references say which quirk teaches what, and name none that there is not."""
    folder = Path(reference.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    named = set(re.findall(rf"`((?:{'|'.join(PREFIXES)})-[a-z0-9-]+)`", source))
    assert named == set(QUIRKS) | MISTAKES
