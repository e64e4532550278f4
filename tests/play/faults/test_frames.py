"""Faults inside the frames of an AWS event stream, and what they are over other carriers."""

from __future__ import annotations

import json
import struct
import zlib

import pytest

from mockllm.checking.resilience.cases import fault_cases
from mockllm.core.errors import WireError
from mockllm.core.events import Frame
from mockllm.core.http import TimedBytes
from mockllm.play.faults.breaking import break_answer
from mockllm.play.faults.places import EventReader, seen_events
from mockllm.play.faults.transmission import Circumstances, Transmission
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.broken_answer import circumstances
from mockllm.play.replay.client_requests import first_request
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.scenario.reading.faults import parse_faults
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.eventstream import EVENTSTREAM
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.route_matching import CARRIERS
from tests.carried import CARRIED
from tests.cases import for_all
from tests.play.faults.playing import SCENARIO

FRAMED = CARRIED["chat-eventstream"]


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, protocol in CARRIED.items():
        monkeypatch.setitem(PROTOCOLS, name, protocol)


def played(protocol: WireProtocol) -> tuple[Transmission, Circumstances]:
    """The whole answer, and what a fault needs to know besides it."""
    request = first_request(protocol, SCENARIO, "Hello", "mock-model")
    answer = Replayer().answer(Selection(SCENARIO, 0, 0), request, protocol)
    parts = tuple(TimedBytes(10_000 * at, data) for at, data in enumerate(answer.data))
    whole = Transmission(answer.status, answer.headers, parts, True)
    return whole, circumstances(protocol, request, "/path")


def broken(fault: str, protocol: WireProtocol = FRAMED) -> Transmission:
    whole, around = played(protocol)
    return break_answer(whole, parse_faults(fault), around)


@for_all("at", ["prelude", "headers", "payload", "checksum"])
def test_cuts_in_the_parts_of_a_frame(at: str) -> None:
    """After its lengths, in the middle of headers and payload, before its checksum."""
    *before, frame = (part.data for part in played(FRAMED)[0].parts[:3])
    size, headers = struct.unpack_from(">II", frame)
    came = broken(f"cut:inside=event 3 {at}").body
    inside = len(came) - sum(map(len, before))
    assert came == b"".join([*before, frame])[: len(came)]
    begin, end = 12 + headers, size - 4
    places = {"prelude": (12, 12), "headers": (13, begin - 1)}
    places |= {"payload": (begin + 1, end - 1), "checksum": (end, end)}
    least, most = places[at]
    assert least <= inside <= most


@for_all("api", (*PROTOCOLS, "chat-ndjson"))
@for_all("part", ["prelude", "headers", "checksum"])
def test_frames_that_are_text_have_no_such_part(api: str, part: str) -> None:
    """The fault does not strike, and says so; a payload they have."""
    protocol = PROTOCOLS[api]
    if protocol.usual.name == "eventstream":
        return
    missed = broken(f"cut:inside=event 2 {part}", protocol)
    name = protocol.usual.name
    why = f"nothing is inside event 2 {part}: frames over {name} have no such part"
    assert missed.missed == f"cut:inside=event 2 {part}: {why}"
    assert missed.body == played(protocol)[0].body
    assert broken("cut:inside=event 2 payload", protocol).body == (
        broken("cut:inside=event 2", protocol).body
    )


def test_a_number_that_does_not_come() -> None:
    assert "the answer has" in broken("cut:inside=event 999 checksum").missed


@for_all("api", list(CARRIED))
@for_all("fault", ["garble", "garble:event=2"])
def test_an_event_that_is_no_json_has_a_right_frame(api: str, fault: str) -> None:
    """Only its JSON is broken: lengths and checksums fit."""
    protocol = CARRIED[api]
    whole, changed = played(protocol)[0], broken(fault, protocol)
    before = protocol.usual.decode(whole.body)
    after = protocol.usual.decode(changed.body)
    assert len(before) == len(after)
    ((old, new),) = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert len(old.data or "") == len(new.data or "") + 1
    with pytest.raises(ValueError):
        json.loads(new.data or "")
    assert [part.at for part in changed.parts] == [part.at for part in whole.parts]


@for_all(
    ("what", "message"), [("checksum", "checksum of the frame"), ("prelude-checksum", "lengths")]
)
@for_all(("event", "number"), [("", 1), (",event=3", 3)])
def test_a_wrong_checksum(what: str, message: str, event: str, number: int) -> None:
    """One bit of it, in the first frame or in the one that is named; the rest is as it was."""
    whole, changed = played(FRAMED)[0].body, broken(f"garble:what={what}{event}").body
    (at,) = [at for at, pair in enumerate(zip(whole, changed, strict=True)) if pair[0] != pair[1]]
    seen = seen_events(FRAMED, whole, EVENTSTREAM)[number - 1]
    assert at == (seen.end - 1 if what == "checksum" else seen.begin + 11)
    assert whole[at] ^ changed[at] == 1
    decoder = EVENTSTREAM.decoder()
    with pytest.raises(WireError, match=message):
        list(decoder.decode(changed))


def test_only_frames_have_checksums() -> None:
    for what in ("checksum", "prelude-checksum"):
        missed = broken(f"garble:what={what}", CARRIED["chat-ndjson"]).missed
        assert missed == f"garble:what={what}: frames over ndjson have no checksum"


@for_all("what", ["checksum", "prelude-checksum"])
def test_nothing_is_seen_behind_a_broken_frame(what: str) -> None:
    """However the bytes arrive: who reads a stream cannot go on there."""
    body = broken(f"garble:what={what},event=3").body
    for size in (1, 7, 100, len(body)):
        reader = EventReader(FRAMED, EVENTSTREAM)
        seen = [
            event for at in range(0, len(body), size) for event in reader.read(body[at : at + size])
        ]
        assert len(seen + reader.close()) == 2
    again = broken(f"garble:what={what},event=3; cut:after=4 events")
    assert again.missed.endswith("and 2 events")


def test_an_exception_begins_the_end_and_keeps_its_name() -> None:
    """What a decoder reads of a frame is not in its payload alone."""
    frames = [
        Frame('{"message":"slow down"}', "throttlingException", kind="exception"),
        Frame('{"delta":{}}', "contentBlockDelta"),
    ]
    body = b"".join(EVENTSTREAM.encode(frame, "lf") for frame in frames)
    seen = seen_events(FRAMED, body, EVENTSTREAM)
    assert [(event.frame, event.finishes) for event in seen] == [
        (frames[0], True),
        (frames[1], False),
    ]


@for_all("api", list(CARRIED))
def test_an_error_of_the_service_comes_as_a_frame(api: str) -> None:
    """Between two events, whole, with the numbers and items of the events so far."""
    protocol = CARRIED[api]
    whole, changed = played(protocol)[0], broken("error:after=3 events", protocol)
    frames = protocol.usual.decode(changed.body)
    assert frames[:3] == protocol.usual.decode(whole.body)[:3]
    assert json.loads(frames[3].data or "")["error"]["message"]
    assert changed.ending == "complete"


@for_all("carrier", CARRIERS)
def test_parts_cover_a_block_and_repairing_a_right_one_changes_nothing(carrier: Carrier) -> None:
    block = carrier.encode(Frame('{"text": "é"}', "name" if carrier is EVENTSTREAM else None), "lf")
    spans = sorted(carrier.parts(block).values())
    assert [end for _, end in spans[:-1]] == [begin for begin, _ in spans[1:]]
    assert (spans[0][0], spans[-1][1]) == (0, len(block))
    assert carrier.repair(block) == block
    if carrier is EVENTSTREAM:
        begin, end = carrier.parts(block)["payload"]
        repaired = carrier.repair(block[:begin] + b'{"other": 1}' + block[end:])
        assert carrier.decode(repaired) == [Frame('{"other": 1}', "name")]
        assert struct.unpack(">I", repaired[-4:])[0] == zlib.crc32(repaired[:-4])


@for_all("api", list(CARRIED))
def test_the_faults_of_the_kit_strike_in_frames(api: str) -> None:
    """Every one of its cases; those with wrong checksums are for frames that have checksums."""
    cases = [case for case in fault_cases(api) if case.fault is not None and case.fault.texts]
    names = {case.name.partition("/")[2] for case in cases}
    checksums = {"body-checksum", "body-prelude-checksum"}
    assert names & checksums == (checksums if api == "chat-eventstream" else set())
    for case in cases:
        _, around = played(CARRIED[api])
        answer = case.answer
        parts = tuple(map(TimedBytes, answer.times, answer.data))
        whole = Transmission(answer.status, answer.headers, parts, answer.streamed)
        for text in case.fault.texts if case.fault else ():
            assert break_answer(whole, parse_faults(text), around).missed == ""
