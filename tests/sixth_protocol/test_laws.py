"""The laws of docs/architecture.md hold for a protocol that mockllm has never heard of."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.events import Frame, Timed
from mockllm.core.timeline import expand, fold, normal
from mockllm.core.turn import Opaque, TokenUsage
from mockllm.scenario.part_model import ErrorPart
from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols.base import Reply
from tests import test_laws as laws
from tests.cases import for_all
from tests.sixth_protocol import echo_projection
from tests.sixth_protocol.echo.acts import API, act_of, frame_of
from tests.sixth_protocol.echo.protocol import PROTOCOL
from tests.sixth_protocol.echo.request import Options
from tests.strategies import parts, texts, turns

CASES = [
    laws.Case(PROTOCOL, scenario, position)
    for scenario in laws.SHIPPED
    for position, spec in enumerate(scenario.turns)
    if scenario.plays_over(API) and spec.for_api(API).http is None
]
WHOLE = [
    case
    for case in CASES
    if not any(isinstance(part, ErrorPart) for part in case.scenario.turns[case.position].reply)
]

REPLY = Reply("seed", "0" * 40, "narrator-1", Options("act-1"), TokenUsage(1, 2))

OWN_FRAMES = st.sampled_from(
    [frame_of("applause", loud=True), frame_of("setting", part="x", bit="y"), Frame(comment="hm")]
).map(lambda frame: Opaque(API, frame))
ANY_FRAMES = st.builds(Opaque, st.sampled_from(["chat", "gemini"]), st.builds(Frame, texts))


@for_all("case", CASES, ids=lambda case: case.id)
def test_a_stream_decodes_to_its_turn(case):
    """Law 2, over every shipped scenario that plays over every protocol."""
    laws.test_a_stream_decodes_to_its_turn.check(case)


@for_all("case", WHOLE, ids=lambda case: case.id)
def test_stream_and_body_have_the_same_turn(case):
    """Law 4."""
    laws.test_stream_and_body_have_the_same_turn.check(case)


@given(turns(parts | OWN_FRAMES | ANY_FRAMES))
def test_any_turn_comes_back(turn):
    """Laws 1 and 2 with times, for any turn, frames of this API and of others among its parts."""
    assert fold(expand(turn)) == turn
    encoder, decoder = PROTOCOL.encoder(turn, REPLY), PROTOCOL.decoder()
    timed = []
    for item in expand(turn):
        for frame in encoder.encode(item.event):
            timed += [Timed(item.at, event) for event in decoder.decode(frame)]
    assert fold(timed) == normal(PROTOCOL.project(turn)) == normal(echo_projection.project(turn))
    assert decoder.complete == (turn.finish is not None or turn.error is not None)


@given(st.sampled_from(CASES), st.data())
def test_any_splitting_gives_the_same_turn(case, data):
    """Law 3: any number of cuts anywhere."""
    whole = case.stream()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=20)))
    segments = [whole[a:b] for a, b in pairwise([0, *cuts, len(whole)])]
    assert laws.decoded(PROTOCOL, segments) == laws.decoded(PROTOCOL, [whole])


def fingerprint() -> str:
    """A digest of every byte that the shipped scenarios can send over this protocol."""
    digest = hashlib.sha256()
    for case in CASES:
        digest.update(case.stream())
        digest.update(repr(PROTOCOL.encode_body(case.turn, case.reply)).encode())
    return digest.hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "4242"])
def test_the_bytes_are_the_same_in_every_process(seed):
    """Law 5."""
    code = (
        "from mockllm.wire.protocols import PROTOCOLS; "
        "from tests.sixth_protocol import test_laws as laws; "
        "PROTOCOLS[laws.API] = laws.PROTOCOL; print(laws.fingerprint())"
    )
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": seed},
        check=True,
        capture_output=True,
        text=True,
    )
    assert process.stdout.strip() == fingerprint()


@pytest.mark.parametrize("case", CASES[:5], ids=lambda case: case.id)
def test_events_are_read_alone(case):
    """What changes streams without decoding them finds text and end where the decoder does."""
    ends = [PROTOCOL.events.is_end(value) for value in map(act_of, decode(case.stream())) if value]
    assert ends.count(True) == (case.turn.finish is not None or case.turn.error is not None)
    assert not any(ends[:-1])
    found = []
    for frame in decode(case.stream()):
        PROTOCOL.events.map_text(act_of(frame), lambda text: found.append(text) or text)
    turn = PROTOCOL.project(case.turn)
    assert sorted("".join(found)) == sorted(turn.text + turn.reasoning + turn.refusal)
