"""The laws of docs/architecture.md, over every protocol and every shipped scenario."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.events import Timed
from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.core.timeline import fold, normal
from mockllm.core.turn import TokenUsage, Turn
from mockllm.play.matching.index import mint_token
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.compilation.encoding import stream
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.loading import load
from mockllm.scenario.model import Scenario
from mockllm.scenario.part_model import AutoPart, TextPart
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, WireProtocol
from tests.cases import for_all
from tests.strategies import every_part, turns
from tests.wire.protocols.projections import PROJECTIONS

ROOT = Path(__file__).parents[1]
SHIPPED = load([ROOT / "scenarios"])


@dataclass(frozen=True)
class Case:
    """One turn of a shipped scenario over one protocol."""

    protocol: WireProtocol
    scenario: Scenario
    position: int

    @property
    def id(self) -> str:
        return f"{self.protocol.name}-{self.scenario.name}-{self.position + 1}"

    @property
    def turn(self) -> Turn:
        spec = self.scenario.turns[self.position].for_api(self.protocol.name)
        auto = (TextPart("an echo"),) if AutoPart() in spec.reply else ()
        name = self.protocol.name
        return resolve(self.scenario, self.position, name, auto=auto)

    @property
    def reply(self) -> Reply:
        request = usual_request(self.protocol)
        return Reply(
            seed=derive(self.scenario.seeded, self.position),
            token=mint_token(self.scenario, self.position),
            model="test-model",
            options=self.protocol.options(request),
            usage=self.turn.usage or TokenUsage(0, 0),
        )

    def stream(self) -> bytes:
        wire = self.scenario.turns[self.position].for_api(self.protocol.name).wire
        return b"".join(part.data for part in stream((self.turn,), self.protocol, self.reply, wire))


def usual_request(protocol: WireProtocol) -> Request:
    """The smallest request that clients of the protocol send for a streamed answer with usage."""
    client, target = protocol.client, client_target(protocol, "test-model")
    body = {**first_body(protocol, "test-model", "Hello"), **client.usage}
    return replace(protocol.parse(body, target, True), stream=True)


CASES = [
    Case(protocol, scenario, position)
    for protocol in PROTOCOLS.values()
    for scenario in SHIPPED
    for position, spec in enumerate(scenario.turns)
    if scenario.plays_over(protocol.name) and spec.for_api(protocol.name).http is None
]
# An error inside a stream is an HTTP error where nothing is streamed.
WHOLE = [case for case in CASES if case.protocol.whole_error(case.turn) is None]
every_case = for_all("case", CASES, ids=lambda case: case.id)


def decoded(protocol: WireProtocol, parts: list[bytes]) -> Turn:
    """The turn of a stream that arrives in these parts."""
    carried, decoder = protocol.usual.decoder(), protocol.decoder()
    frames = [frame for part in parts for frame in carried.decode(part)]
    events = [event for frame in frames for event in decoder.decode(frame)]
    events += decoder.close()
    return fold(Timed(0, event) for event in events)


def untimed(turn: Turn) -> Turn:
    return replace(turn, gaps=())


@pytest.mark.slow
@every_case
def test_a_stream_decodes_to_its_turn(case):
    """Law 2: the decoded turn is the projection of the turn."""
    turn = untimed(case.turn)
    wired = case.scenario.turns[case.position].for_api(case.protocol.name).wire
    if wired is not None and wired.comments is not None:
        # Comments come back as parts of their own; the parts around them must be whole.
        assert decoded(case.protocol, [case.stream()]).text == turn.text
        return
    assert decoded(case.protocol, [case.stream()]) == normal(case.protocol.project(turn))


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@settings(deadline=None)
@given(turn=turns(every_part))
def test_every_turn_decodes_to_its_projection(protocol: WireProtocol, turn: Turn) -> None:
    """Law 2 for any turn, with parts that not every API has: server tools, calls with free text;
    what was projected once is not changed again."""
    projected = protocol.project(turn)
    assert protocol.project(projected) == projected
    assert normal(projected) == normal(PROJECTIONS[protocol.name](turn))
    usage = turn.usage or TokenUsage(0, 0)
    options = protocol.options(usual_request(protocol))
    reply = Reply(derive("any"), derive("any", length=40, hex=True), "m", options, usage)
    data = b"".join(part.data for part in stream((turn,), protocol, reply))
    assert decoded(protocol, [data]) == untimed(normal(projected))


@pytest.mark.slow
def test_every_single_cut_gives_the_same_frames():
    """Law 3: an event that is cut at any byte is the same event. Of events of an API that differ in
    their words only, the longest is cut."""
    longest: dict[tuple[str, bytes], bytes] = {}
    for case in CASES:
        data = case.stream()
        for start, end in pairwise([0, *boundaries(data, case.protocol.usual)]):
            event = data[start:end]
            key = case.protocol.name, re.sub(rb"\w+", b"w", event)
            longest[key] = max(longest.get(key, b""), event, key=len)
    for (name, _), event in longest.items():
        carrier = PROTOCOLS[name].usual
        frames = carrier.decode(event)
        assert frames, event
        for cut in range(1, len(event)):
            decoder = carrier.decoder()
            got = [*decoder.decode(event[:cut]), *decoder.decode(event[cut:])]
            assert got == frames, (name, event, cut)


def boundaries(data: bytes, carrier: Carrier) -> list[int]:
    """The ends of the events of a stream, where a decoder's state is as in the beginning."""
    ends = []
    decoder = carrier.decoder()
    for at in range(1, len(data) + 1):
        got = decoder.decode(data[at - 1 : at])
        if any(frame.data is not None for frame in got):
            # CRLF: the LF that belongs to the blank line comes after the event was given.
            ends.append(at + 1 if data[at : at + 1] == b"\n" and data[at - 1 : at] == b"\r" else at)
    return ends


@settings(max_examples=40)
@given(st.sampled_from(CASES), st.data())
def test_any_splitting_gives_the_same_turn(case, data):
    """Law 3: any number of cuts anywhere."""
    whole = case.stream()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=20)))
    edges = [0, *cuts, len(whole)]
    parts = [whole[a:b] for a, b in pairwise(edges)]
    assert decoded(case.protocol, parts) == decoded(case.protocol, [whole])


@pytest.mark.slow
@for_all("case", WHOLE, ids=lambda case: case.id)
def test_stream_and_body_have_the_same_turn(case):
    """Law 4: streamed or not, an answer has the same text, calls, ending and usage."""
    body = case.protocol.decode_body(case.protocol.encode_body(case.turn, case.reply))
    streamed = decoded(case.protocol, [case.stream()])
    for what in ("text", "reasoning", "refusal", "finish", "usage"):
        assert getattr(body, what) == getattr(streamed, what), what
    assert [(c.name, c.id, c.arguments) for c in body.tool_calls] == [
        (c.name, c.id, c.arguments) for c in streamed.tool_calls
    ]


@cache
def fingerprint() -> str:
    """A digest of every byte that the shipped scenarios can send."""
    digest = hashlib.sha256()
    for case in CASES:
        digest.update(case.id.encode() + case.stream())
        digest.update(repr(case.protocol.encode_body(case.turn, case.reply)).encode())
    return digest.hexdigest()


@cache
def in_process(seed: str) -> str:
    code = "from tests.test_laws import fingerprint; print(fingerprint())"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "4242"])
def test_the_bytes_are_the_same_in_every_process(seed):
    """Law 5: neither hash seeds nor the process nor the time zone change a byte."""
    assert in_process(seed) == fingerprint()
