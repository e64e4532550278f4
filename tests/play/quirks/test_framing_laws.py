"""Group F: laws of every quirk of framing, on any stream."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.events import Frame
from mockllm.core.http import Target, TimedBytes
from mockllm.core.turn import Opaque, TokenUsage, Turn
from mockllm.play.quirks import find
from mockllm.play.quirks.base import Context
from mockllm.play.quirks.framing import QUIRKS
from mockllm.play.quirks.framing.changes import MOST_WRITES, bytewise
from mockllm.play.quirks.samples import TEXT
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.compilation.encoding import stream
from mockllm.scenario.model import Wire
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.decoding import decode_turn
from tests.cases import for_all
from tests.play.quirks.meaning import expected_turn
from tests.play.quirks.playing import decoded_turn, frames, plain, play
from tests.strategies import opaques, parts, turns

APIS = find("sse-bom")[0].apis

NAMED = {quirk.name: quirk for quirk in QUIRKS}
VARIANTS = [
    pytest.param(quirk, variant, id=f"{quirk.name}:{variant.name}".rstrip(":"))
    for quirk in QUIRKS
    for variant in quirk.variants
]
CELLS = [
    pytest.param(*variant.values, api, id=f"{variant.id}-{api}")
    for variant in VARIANTS
    for api in variant.values[0].apis
]
SAME = [
    cell
    for cell in CELLS
    if (cell.values[1].right or cell.values[0].prose.right) == "same"
    and not cell.values[1].expected
    and not cell.values[1].as_sent
]


@cache
def reply(api):
    """The settings of an answer to a plain request."""
    protocol = PROTOCOLS[api]
    body = first_body(protocol, "mock-model", "Hello")
    if api == "chat":
        body["stream_options"] = {"include_usage": True}
    request = replace(
        protocol.parse(body, client_target(protocol, "mock-model"), True), stream=True
    )
    return Reply("seed", "0" * 40, "mock-model", protocol.options(request))


def played(turn, api, *names):
    """The timed bytes of a turn with quirks."""
    with_usage = replace(reply(api), usage=turn.usage or TokenUsage(0, 0))
    return stream((turn,), PROTOCOLS[api], with_usage, Wire(quirks=names))


def full_name(quirk, variant):
    return f"{quirk.name}:{variant.name}".rstrip(":")


def of_api(cells, api):
    """The names of the variants for a protocol."""
    return [full_name(*cell.values[:2]) for cell in cells if cell.values[2] == api]


def test_every_quirk_of_the_group_is_there():
    """The names are unique, and so are those of the variants of each."""
    assert len(NAMED) == len(QUIRKS) == 22
    for quirk in QUIRKS:
        assert quirk.prose.group == "F"
        names = [variant.name for variant in quirk.variants]
        assert len(set(names)) == len(names)


OWN = {  # these services send this without the quirk
    ("sse-crlf:crlf", "gemini"),
    ("sse-other-fields:event", "anthropic"),
    ("sse-other-fields:event", "responses"),
    ("sse-other-fields:event", "interactions"),
}


@for_all(("quirk", "variant", "api"), CELLS)
def test_every_variant_changes_its_sample(quirk, variant, api):
    """No variant has the bytes of the plain sample."""
    before, after = plain(quirk.sample, api), play(quirk, variant, api)
    same = (before.data, before.headers, before.ending) == (
        after.data,
        after.headers,
        after.ending,
    )
    assert same == ((full_name(quirk, variant), api) in OWN)


odd_frames = st.sampled_from(
    [
        Frame(comment="words"),
        Frame(raw="data: {\n"),
        Frame(raw="\n"),
        Frame(raw="\r"),
        Frame(raw="data: [DONE]"),
        Frame("[]"),
        Frame('{"a":"\\ud800","text":"x}","content":"y"}'),
        Frame('{"choices":null,"error":[],"type":7}'),
        Frame("[" * 100 + "]" * 100),
        Frame("", event="e", id="7"),
        Frame(retry=5),
    ]
)


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
@settings(max_examples=20)
@given(data=st.data())
def test_every_turn_can_be_played(api, data):
    """Every stream gives bytes, with sorted times."""
    frame = st.builds(Opaque, st.just(api), odd_frames)
    turn = data.draw(turns(st.one_of(parts, opaques, frame)))
    for name in of_api(CELLS, api):
        timed = played(turn, api, name)
        assert all(part.data for part in timed), name
        assert all(a.at <= b.at for a, b in pairwise(timed)), name


@pytest.mark.slow
@settings(max_examples=60)
@given(turn=turns(), names=st.lists(st.sampled_from(of_api(CELLS, "chat")), max_size=3))
def test_quirks_go_together(turn, names):
    """Any two quirks can be combined, in any order."""
    assert all(part.data for part in played(turn, "chat", *names))


def test_the_array_form_stays_json():
    """The array form of Gemini is still JSON, except where the stream is cut."""
    protocol = PROTOCOLS["gemini"]
    request = protocol.parse(
        first_body(protocol, "m", "Hello"), Target({"model": "m"}, "streamGenerateContent"), True
    )
    reply_ = Reply("seed", "0" * 40, "m", protocol.options(request))
    turn = decoded_turn(plain(TEXT, "gemini"), "gemini")
    for quirk in QUIRKS:
        if quirk.prose.right == "same" and "gemini" in quirk.apis:
            for variant in quirk.variants:
                wire = Wire(quirks=(full_name(quirk, variant),))
                timed = stream((turn,), protocol, reply_, wire)
                value = json.loads(b"".join(part.data for part in timed))
                assert value[-1]["candidates"][0]["finishReason"] == "STOP"


def comparable(found):
    """The data of all events, as values where they are JSON."""
    values = []
    for frame in found:
        if frame.data and frame.data.strip() != "[DONE]":
            try:
                values.append(json.loads(frame.data))
            except ValueError:
                values.append(frame.data)
    return values


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
@settings(max_examples=20)
@given(data=st.data())
def test_the_data_stay_the_same(api, data):
    """A decoder by the specification gives the same events, wherever the bytes are cut."""
    turn = data.draw(turns(st.one_of(parts, opaques)))
    carrier = PROTOCOLS[api].usual
    expected = comparable(carrier.decode(b"".join(part.data for part in played(turn, api))))
    cuts = data.draw(st.lists(st.floats(0, 1), max_size=8))
    for name in of_api(SAME, api):
        whole = b"".join(part.data for part in played(turn, api, name))
        edges = [0, *sorted(int(cut * len(whole)) for cut in cuts), len(whole)]
        decoder = carrier.decoder()
        again = [frame for a, b in pairwise(edges) for frame in decoder.decode(whole[a:b])]
        assert comparable(again) == expected, name


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
@settings(max_examples=20)
@given(turn=turns())
def test_separators_are_at_the_declared_positions(api, turn):
    """The stream with separators joins to the text of the declared turn."""
    turn = replace(turn, parts=tuple(map(without_citations, turn.parts)))
    protocol = PROTOCOLS[api]

    def joined(timed):
        data = b"".join(part.data for part in timed)
        return decode_turn(protocol, protocol.usual.decode(data))[0].whole()

    quirk = NAMED["sse-unicode-line-separators"]
    for variant in quirk.variants:
        changed = joined(played(turn, api, full_name(quirk, variant)))
        wanted = joined(played(expected_turn(full_name(quirk, variant), variant, turn), api))
        for name in ("text", "reasoning", "refusal", "tool_calls", "finish", "usage", "error"):
            assert getattr(changed, name) == getattr(wanted, name)


def without_citations(part):
    return replace(part, citations=()) if getattr(part, "citations", ()) else part


@pytest.mark.parametrize("api", APIS)
def test_an_empty_stream_stays_one(api):
    """An empty stream stays empty."""
    context = Context(api, Turn(), reply(api))
    for quirk in QUIRKS:
        for variant in quirk.variants:
            if variant.bytes is not None:
                assert variant.bytes([], context) == []


def test_the_frames_of_the_sample_are_events():
    """The tests of bytes rely on one event in each write."""
    assert len(frames(plain(TEXT, "chat"))) == len(plain(TEXT, "chat").data) == 6


def test_bytewise_is_bounded():
    """A long stream does not become a million writes."""
    context = Context("chat", Turn(), reply("chat"))
    timed = bytewise([TimedBytes(0, b"x" * MOST_WRITES), TimedBytes(7, b"y" * 1_000_000)], context)
    assert len(timed) == MOST_WRITES + 1
    assert timed[-1] == TimedBytes(7, b"y" * 1_000_000)
