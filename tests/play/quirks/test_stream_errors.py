"""Group G: errors inside an answer whose status is 200."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.events import Frame
from mockllm.core.turn import Opaque, Text, TokenUsage, ToolCall, Turn
from mockllm.play.quirks.samples import TEXT
from mockllm.play.quirks.stream_errors import QUIRKS
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.compilation.encoding import stream
from mockllm.scenario.model import Wire
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply
from tests.cases import for_all
from tests.play.quirks.meaning import expected_turn
from tests.play.quirks.playing import decoded_turn, events, frames, plain, play
from tests.strategies import opaques, parts, turns

NAMED = {quirk.name: quirk for quirk in QUIRKS}
CELLS = [
    pytest.param(quirk, variant, api, id=f"{quirk.name}:{variant.name}-{api}")
    for quirk in QUIRKS
    for variant in quirk.variants
    for api in quirk.apis
]


def answer(name, api="chat"):
    plain, _, variant = name.partition(":")
    return play(NAMED[plain], NAMED[plain].variant(variant), api)


def test_the_error_alone():
    """The first event is the error; only `[DONE]` follows."""
    error = b'data: {"error":{"message":"The upstream provider failed","code":502}}\n\n'
    assert answer("err-in-stream").data == (error, b"data: [DONE]\n\n")
    assert answer("err-in-stream", "responses").data == (error,)
    assert answer("err-in-stream", "anthropic").data == (error,)


@pytest.mark.parametrize(("api", "last"), [("chat", 3), ("responses", 9), ("anthropic", 6)])
def test_the_error_after_the_text(api, last):
    """The error replaces the end of the answer."""
    writes = answer("err-in-stream:later", api).data
    assert writes[:last] == plain(TEXT, api).data[:last]
    assert writes[last].startswith(b'data: {"error":{"message":"')
    assert writes[last + 1 :] == ((b"data: [DONE]\n\n",) if api == "chat" else ())


@pytest.mark.parametrize(("api", "last"), [("chat", 3), ("responses", 9), ("anthropic", 6)])
def test_the_error_before_the_end(api, last):
    """The error stands before the end of the answer, which is complete."""
    writes = answer("err-in-stream:followed", api).data
    assert writes[last].startswith(b'data: {"error":{"message":"')
    assert writes[:last] + writes[last + 1 :] == plain(TEXT, api).data


def test_the_error_as_the_body():
    """The whole body is one JSON object, with the content type of JSON."""
    found = answer("err-json-200")
    assert found.status == 200
    assert dict(found.headers)["content-type"] == "application/json"
    assert len(found.data) == 1
    assert found.data[0].startswith(b'{"error":{')
    assert json.loads(found.data[0]).keys() == {"error"}


def test_the_error_with_choices():
    """A chunk has an empty choice with the finish reason `error`, and the error beside it."""
    *before, chunk, done = events(answer("err-with-choices"))
    assert [event["choices"][0]["delta"] for event in before][1:] == [
        {"content": "Hel"},
        {"content": "lo"},
    ]
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    assert list(chunk)[-2:] == ["choices", "error"]
    assert chunk["choices"] == [choice]
    assert chunk["error"]["code"] == 502
    assert (chunk["id"], done) == (before[0]["id"], "[DONE]")
    assert events(answer("err-with-choices:first")) == [chunk, done]


def test_the_error_with_an_event_line():
    """The event has a name, its error has a status, and nothing follows."""
    writes = answer("err-event-line").data
    assert writes[:3] == plain(TEXT, "chat").data[:3]
    assert writes[3].startswith(b'event: error\ndata: {"error":{"message":')
    assert writes[3].endswith(b'"status_code":400}}\n\n')
    assert len(writes) == 4
    assert answer("err-event-line:first").data == writes[3:]


def test_the_name_of_the_event_alone_shows_the_error():
    """The data have neither the key `error` nor `object`."""
    error = b'event: error\ndata: {"code":503,"details":"The model is loading"}\n\n'
    text = plain(TEXT, "chat").data[:3]
    assert answer("err-event-line:bare").data == (*text, error, b"data: [DONE]\n\n")


def test_the_error_object():
    """The event itself is the error; there is no `error` key."""
    error = b'data: {"object":"error","message":"boom","code":400}\n\n'
    assert answer("err-object-error").data == (error, b"data: [DONE]\n\n")
    assert answer("err-object-error:later").data[3:] == (error, b"data: [DONE]\n\n")


def test_every_quirk_of_the_group_is_there():
    """All are errors; the usual form is the first variant."""
    assert len(NAMED) == len(QUIRKS) == 5
    assert {(quirk.prose.group, quirk.prose.right) for quirk in QUIRKS} == {("G", "error")}
    usual = {quirk.name: quirk.variants[0].name for quirk in QUIRKS}
    assert usual == {
        "err-in-stream": "first",
        "err-json-200": "",
        "err-with-choices": "later",
        "err-event-line": "later",
        "err-object-error": "first",
    }


@for_all(("quirk", "variant", "api"), CELLS)
def test_every_variant_decodes_to_the_declared_turn(quirk, variant, api):
    """A lenient decoder reads the error and the text before it; it keeps an error of an unknown
    shape whole."""
    found = play(quirk, variant, api)
    assert found.data != plain(quirk.sample, api).data
    name = f"{quirk.name}:{variant.name}"
    wanted = expected_turn(name, variant, decoded_turn(plain(quirk.sample, api), api))
    assert (wanted.finish, wanted.usage) == (None, None)
    if quirk.name == "err-json-200":
        assert frames(found) == []
        return
    turn = decoded_turn(found, api)
    assert (turn.text, turn.finish) == (wanted.text, None)
    if variant.name == "bare":
        assert wanted.error.message in turn.error.message
        return
    assert turn.error.message == wanted.error.message
    if api == "chat":
        assert turn.error == wanted.error


def test_an_error_keeps_the_parts_before_it():
    """At the end, all parts were sent; instead of the answer, none was."""
    parts = (Text(("Hel", "lo")), ToolCall("f", "call_1", ('{"a":', "1}")))
    turn = Turn(parts, "stop", TokenUsage(1, 2), order=(1, 0, 1, 0, 1), finish_raw="eos")
    for quirk in QUIRKS:
        for variant in quirk.variants:
            wanted = expected_turn(f"{quirk.name}:{variant.name}", variant, turn)
            kept = variant.name in ("later", "followed", "text", "bare")
            assert (wanted.parts, wanted.order) == ((parts, turn.order) if kept else ((), ()))
            assert (wanted.finish, wanted.finish_raw, wanted.usage) == (None, None, None)
            assert wanted.error is not None


odd_frames = st.sampled_from(
    [
        Frame(comment="words"),
        Frame(raw="data: {\n"),
        Frame("[]"),
        Frame('{"choices":null,"error":[],"type":7}'),
        Frame('{"choices":[],"error":"broken"}'),
        Frame(retry=5),
    ]
)


@pytest.mark.slow
@for_all(("quirk", "variant", "api"), CELLS)
@settings(max_examples=15)
@given(data=st.data())
def test_every_turn_can_be_played(quirk, variant, api, data):
    """The error is the last event of the stream of any turn, unless the answer goes on."""
    protocol = PROTOCOLS[api]
    target = client_target(protocol, "m")
    request = protocol.parse(first_body(protocol, "m", "Hello"), target, True)
    frame = st.builds(Opaque, st.just(api), odd_frames)
    turn = data.draw(turns(st.one_of(parts, opaques, frame)))
    reply = Reply("seed", "0" * 40, "m", protocol.options(request), turn.usage or TokenUsage(0, 0))
    name = f"{quirk.name}:{variant.name}".rstrip(":")
    writes = stream((turn,), protocol, reply, Wire(quirks=(name,)))
    *before, last = (write.data for write in writes if b"data: [DONE]" not in write.data)
    message = expected_turn(name, variant, turn).error.message.encode()
    assert any(
        message in data for data in ([*before, last] if variant.name == "followed" else [last])
    )
    assert all(a.at <= b.at for a, b in pairwise(writes))
