"""The JSON of answers on the live page, from answers as they are kept."""

from __future__ import annotations

import gzip
import json

import pytest

from mockllm.core.events import Frame
from mockllm.core.http import TimedBytes
from mockllm.play.replay.compilation.http_answer import bytes_answer
from mockllm.play.replay.sessions.exchange import PassedAnswer
from mockllm.serve.ui.shown_answers import ShownAnswer, sent_of, stream_json
from mockllm.wire.protocols import PROTOCOLS
from tests.entries import journal_entry

SSE = (("content-type", "text/event-stream"),)
TEXT = b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'


def shown(passed: PassedAnswer, **values):
    """The answer of a service, as the page shows it."""
    exchange = journal_entry(passed=passed, **values)
    answer, why = sent_of(exchange, None, None, 0)
    assert answer is not None, why
    return answer


def passed(body: bytes, *headers: tuple[str, str], **values) -> PassedAnswer:
    return PassedAnswer(200, (*SSE, *headers), [TimedBytes(0, body)], len(body), **values)


def test_a_long_value_of_an_event_is_shortened() -> None:
    """Its summary to a line, the value itself to what a page can show."""
    view = stream_json(shown(passed(TEXT % (b"x" * 5000))), PROTOCOLS["chat"])
    (event,) = [one for one in view["parts"][0]["events"] if one["kind"] == "TextDelta"]
    assert event["summary"] == f"{'x' * 120}…"
    assert event["fields"]["text"] == f"{'x' * 2000}…"


def test_an_answer_is_shown_without_its_coding() -> None:
    """The page says so, or why it is not decoded, and what was not kept."""
    whole = passed(gzip.compress(TEXT % b"Hi"), ("content-encoding", "gzip"), left_out=1234)
    answer = shown(whole)
    assert b"".join(answer.answer.data) == TEXT % b"Hi"
    assert answer.note == (
        "Shown without the gzip of the service. 1,234 more bytes came, and are not kept here."
    )
    broken = shown(passed(b"no gzip", ("content-encoding", "gzip")))
    assert broken.note.startswith("Not decoded: ")
    assert broken.note == broken.note.strip()
    assert shown(passed(TEXT % b"Hi")).note == ""


@pytest.mark.parametrize("gone", [True, False])
def test_a_client_that_left_is_shown_with_the_bytes_that_it_got(gone: bool) -> None:
    """Only where it left."""
    answer = shown(passed(TEXT % b"Hi"), client_gone=gone, complete=not gone, bytes_sent=7)
    assert answer.gone_after == (7 if gone else None)


def test_the_carrier_is_that_of_the_content_type() -> None:
    """Anthropic's events also travel in the messages of Bedrock."""
    protocol = PROTOCOLS["anthropic"]
    delta = {"type": "text_delta", "text": "Hi"}
    event = {"type": "content_block_delta", "index": 0, "delta": delta}
    frame = Frame(json.dumps(event), event["type"])
    for carrier in protocol.carriers:
        headers = (("content-type", carrier.content_type),)
        data = TimedBytes(0, carrier.encode(frame, "lf"))
        answer = ShownAnswer(bytes_answer(200, headers, [data], streamed=True))
        view = stream_json(answer, protocol)
        assert [event["summary"] for event in view["parts"][0]["events"]] == ["Hi"], carrier.name
