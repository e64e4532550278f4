"""The reference accumulators on every quirk: each variant, over each of its protocols."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from examples import accumulators as reference
from mockllm.checking.outcome import Outcome
from mockllm.core.turn import Turn
from mockllm.play.quirks import QUIRKS, Quirk, Variant
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import OVER_HTTP
from tests.cases import for_all
from tests.checking.reference.playing import (
    Run,
    by_bytes,
    by_events,
    cut_at,
    differences,
    expected,
    payloads,
)
from tests.play.quirks.meaning import expected_turn
from tests.play.quirks.playing import play

PREFIXES = (
    *("chat", "usage", "sse", "err", "anth", "resp", "gem", "agui", "ollama", "compl", "cohere"),
    *("bedrock", "ia"),
)
MISTAKES = {"anth-parse-each-fragment", "chat-dedupe-by-overlap", "sse-trim"}
"""Mistakes of clients, which no server can send."""

CASES = [
    pytest.param(quirk, variant, api, id=f"{quirk.name}-{variant.name or 'usual'}-{api}")
    for quirk in QUIRKS.values()
    for variant in quirk.variants
    for api in quirk.apis
]


every_case = for_all(("quirk", "variant", "api"), CASES)


def sample_turn(quirk: Quirk, variant: Variant, api: str) -> Turn:
    """The turn that a correct client reads in the sample of a quirk."""
    protocol = PROTOCOLS[api]
    plain = resolve(quirk.sample, 0, api)
    turn = expected_turn(f"{quirk.name}:{variant.name}", variant, plain)
    back = protocol.project(turn)
    # A quirk may send a finish reason that the protocol lacks, and leave out the usage.
    finish_raw = turn.finish_raw if turn.finish is not None and api == "chat" else back.finish_raw
    return replace(back, finish_raw=finish_raw, usage=turn.usage and back.usage)


def problems(quirk: Quirk, variant: Variant, api: str, run: Run) -> list[str]:
    """The differences between the reference's outcome and the correct one; empty if none."""
    outcome, reaction = run.outcome, variant.right or quirk.prose.right
    turn = sample_turn(quirk, variant, api)
    if reaction == "error" or (reaction == "either" and outcome.errors):
        plain = resolve(quirk.sample, 0, api)
        sent = [*expected(plain, api).tool_calls, *expected(turn, api).tool_calls]
        return _reported(outcome, [(call.name, call.arguments) for call in sent])
    found = differences(turn, api, outcome, ids=variant.ids)
    others = (tolerance.turn(turn, api) for tolerance in variant.tolerated)
    if found and not all(differences(other, api, outcome) for other in others):
        return []
    return [difference for difference in found if turn.usage or not difference.startswith("usage")]


def _reported(outcome: Outcome, sent: list[tuple[str, Any]]) -> list[str]:
    found = [] if outcome.errors else ["no error"]
    found += [f"a crash: {trouble.message}" for trouble in outcome.errors if trouble.crash]
    not_sent = [c for c in outcome.tool_calls if (c.name, c.arguments) not in sent]
    return found + [f"not complete, or never sent: {call}" for call in not_sent]


@pytest.mark.slow
@every_case
def test_the_outcome_of_a_quirk_in_bytes(quirk, variant, api):
    """The outcome is that of the quirk table, for the whole stream and for small chunks."""
    data = b"".join(play(quirk, variant, api).data)
    run = by_bytes(api, [data])
    assert not problems(quirk, variant, api, run)
    assert run.pending == 0
    size = max(1, len(data) // 997)
    assert by_bytes(api, cut_at(data, range(0, len(data), size))).outcome == run.outcome


@pytest.mark.slow
@for_all(
    ("quirk", "variant", "api"),
    [case for case in CASES if case.values[1].in_events],
)
def test_the_outcome_of_a_quirk_in_events(quirk, variant, api):
    """The outcome is that of the quirk table; broken JSON can only be read as bytes."""
    data = b"".join(play(quirk, variant, api).data)
    try:
        events = payloads(data, api)
    except ValueError:
        assert by_bytes(api, [data]).outcome.errors
        return
    run = by_events(api, events)
    assert not problems(quirk, variant, api, run)
    assert run.pending == 0


@pytest.mark.skipif(not QUIRKS, reason="there are no quirks")
def test_every_protocol_has_quirks():
    """Each protocol has a quirk, so that the tests above cover it."""
    assert {api for quirk in QUIRKS.values() for api in quirk.apis} == set(OVER_HTTP)


def test_the_reference_sources_name_every_quirk():
    """The sources name every quirk, and no quirk that does not exist."""
    folder = Path(reference.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    named = set(re.findall(rf"`((?:{'|'.join(PREFIXES)})-[a-z0-9-]+)`", source))
    assert named == set(QUIRKS) | MISTAKES
