"""Quirks of framing whose frames are no server-sent events."""

import json

import pytest

from mockllm.core.errors import WireError
from mockllm.core.events import Frame
from mockllm.play.quirks import QUIRKS, find
from mockllm.play.quirks.base import Item
from mockllm.wire.protocols import PROTOCOLS
from tests.carried import CARRIED
from tests.cases import for_all
from tests.play.quirks.meaning import expected_turn
from tests.play.quirks.playing import decoded_turn, plain, play

STREAMS = {
    "sse-unicode-line-separators",
    "sse-utf8-split",
    "sse-huge-event",
    "sse-chunk-boundaries",
    "sse-cut",
    "sse-malformed-json",
    "sse-content-type",
    "err-json-200",
}
"""The quirks that need no lines, comments or fields of events."""

VARIANTS = [
    f"{name}:{variant.name}".rstrip(":")
    for name in sorted(STREAMS)
    for variant in find(name)[0].variants
]
CELLS = [(api, name) for api in CARRIED for name in VARIANTS]


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    for name, protocol in CARRIED.items():
        monkeypatch.setitem(PROTOCOLS, name, protocol)


def played(api, name):
    """The answer to the sample of a quirk, without it and with it."""
    quirk, variant = find(name)
    return plain(quirk.sample_of(variant), api), play(quirk, variant, api)


def frames(answer, api):
    return CARRIED[api].usual.decode(b"".join(answer.data))


@for_all("api", list(CARRIED))
def test_the_quirks_of_other_carriers(api):
    """Those that `carriers` names, and no quirk of one API."""
    assert {quirk.name for quirk in QUIRKS.over(api)} == STREAMS


@for_all(("api", "name"), CELLS)
def test_a_variant_changes_its_sample_and_means_what_is_declared(api, name):
    """Our decoder reads the declared turn in its bytes."""
    quirk, variant = find(name)
    before, after = played(api, name)
    assert (before.data, before.headers) != (after.data, after.headers)
    if quirk.name in ("err-json-200", "sse-malformed-json"):
        return
    expected = expected_turn(name, variant, decoded_turn(before, api))
    assert decoded_turn(after, api).whole() == expected.whole()


@for_all("api", list(CARRIED))
@for_all("name", ["sse-huge-event:300-kb", "sse-huge-event:1-mb"])
def test_a_huge_event_has_a_right_frame(api, name):
    """Spaces in the JSON of one frame; lengths and checksums fit."""
    before, after = played(api, name)
    pairs = list(zip(frames(before, api), frames(after, api), strict=True))
    (grown,) = [new for old, new in pairs if old != new]
    assert len(grown.data) > 300_000
    assert [json.loads(old.data) for old, _ in pairs if old.data != "[DONE]"] == [
        json.loads(new.data) for _, new in pairs if new.data != "[DONE]"
    ]


@for_all("api", list(CARRIED))
def test_malformed_json_stands_in_a_right_frame(api):
    before, after = played(api, "sse-malformed-json")
    pairs = zip(frames(before, api), frames(after, api), strict=True)
    (broken,) = [new for old, new in pairs if old != new]
    with pytest.raises(ValueError):
        json.loads(broken.data)


@for_all("api", list(CARRIED))
@for_all("name", ["sse-cut:eof", "sse-cut:closed", "sse-cut:reset"])
def test_a_stream_is_cut_inside_the_frame_with_the_finish(api, name):
    before, after = played(api, name)
    body = b"".join(after.data)
    assert b"".join(before.data).startswith(body)
    found = frames(after, api)
    assert found == frames(before, api)[: len(found)]
    assert not any('"finish_reason":"stop"' in frame.data for frame in found)
    assert len(b"".join(CARRIED[api].usual.encode(frame, "lf") for frame in found)) < len(body)


def test_a_json_body_is_no_frame():
    """As AWS clients see it: the first bytes are no lengths of a frame."""
    _, after = played("chat-eventstream", "err-json-200")
    assert dict(after.headers)["content-type"] == "application/json"
    with pytest.raises(WireError, match="begins no frame"):
        frames(after, "chat-eventstream")


def test_an_item_keeps_the_kind_of_its_frame():
    """An exception in a stream that a quirk changes stays one."""
    frame = Frame('{"message": "slow down"}', "throttlingException", kind="exception")
    assert Item.from_frame(0, frame).frame() == frame
    assert Item.from_frame(0, frame).copy().frame() == frame
