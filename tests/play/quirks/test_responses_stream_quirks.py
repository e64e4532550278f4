"""The bytes of the quirks of OpenAI Responses that are about the stream, on their samples."""

from __future__ import annotations

import pytest

from tests.play.quirks.test_responses_quirks import (
    OPENERS,
    added,
    call,
    done,
    end,
    ev,
    hello,
    hello_opened,
    message,
    part,
    played,
    text,
)

_MESSAGE = "The server had an error."
_FAILED = {"status": "failed", "output": []}
_BROKEN = {"code": "server_error", "message": _MESSAGE}
TEXT_STREAM = [*OPENERS, *hello_opened(2), end(9, message(part()))]


@pytest.mark.parametrize(("variant", "output"), [("empty", []), ("null", None)])
def test_the_final_output_is_empty(variant: str, output: object) -> None:
    """resp-completed-output-empty: `"output":[]` (or null) in response.completed alone."""
    *before, last = played("resp-completed-output-empty", variant)
    assert last == ev("completed", 14, response={"status": "completed", "output": output})
    assert before[8] == done(8, message(part()))
    assert before[13] == done(13, call(id="fc_1"), 1)


def test_the_error_is_nested() -> None:
    """resp-error-shape: the service nests its error, and response.failed follows."""
    error = {"type": "server_error", **_BROKEN, "param": None}
    assert played("resp-error-shape") == [
        *OPENERS,
        {"type": "error", "sequence_number": 2, "error": error},
        ev("failed", 3, response={**_FAILED, "error": _BROKEN}),
    ]


def test_the_error_is_flat() -> None:
    """resp-error-shape: the documented error has its fields beside its type."""
    flat = {"type": "error", **_BROKEN, "param": None, "sequence_number": 2}
    assert played("resp-error-shape", "flat") == [*OPENERS, flat]


def test_the_response_fails_without_an_error_event() -> None:
    """resp-error-shape: response.failed may come alone."""
    failed = ev("failed", 2, response={**_FAILED, "error": _BROKEN})
    assert played("resp-error-shape", "failed") == [*OPENERS, failed]


def test_keepalive() -> None:
    """resp-keepalive: `{"type":"keepalive","sequence_number":n}` takes part in the numbering."""
    alive = {"type": "keepalive", "sequence_number": 2}
    assert played("resp-keepalive") == [
        *OPENERS,
        alive,
        *hello_opened(3),
        end(10, message(part())),
    ]
    everywhere = played("resp-keepalive", "everywhere")
    assert [event["sequence_number"] for event in everywhere] == list(range(19))
    assert {event["type"] for event in everywhere[1::2]} == {"keepalive"}
    assert [event["type"] for event in everywhere[::2]] == [e["type"] for e in TEXT_STREAM]


def test_an_unknown_event() -> None:
    """resp-unknown-event: `response.kit_unknown.event`."""
    assert played("resp-unknown-event") == [
        *OPENERS,
        ev("kit_unknown.event", 2),
        *hello_opened(3),
        end(10, message(part())),
    ]


def test_an_unknown_item() -> None:
    """resp-unknown-event: an item of a new type, streamed and in the final output."""
    item = {"id": "ku_1", "type": "kit_unknown", "status": "completed", "value": "new"}
    begun = {**item, "status": "in_progress", "value": ""}
    assert played("resp-unknown-event", "item") == [
        *OPENERS,
        *hello_opened(2),
        added(9, begun, 1),
        done(10, item, 1),
        end(11, message(part()), item),
    ]


def test_an_unknown_part() -> None:
    """resp-unknown-event: a content part of a new type after the text of the message."""
    new = {"type": "kit_unknown", "value": "new"}
    whole = message(part(), new)
    opened = {**text("content_part.added", 8, part=new), "content_index": 1}
    closed = {**text("content_part.done", 9, part=new), "content_index": 1}
    assert played("resp-unknown-event", "part") == [
        *OPENERS,
        *hello_opened(2)[:-1],
        opened,
        closed,
        done(10, whole),
        end(11, whole),
    ]


def test_required_fields_are_missing() -> None:
    """resp-required-missing: no sequence_number; no logprobs; no arguments when added."""
    events = played("resp-required-missing")
    assert all("sequence_number" not in event for event in events)
    assert events[4]["logprobs"] == []
    events = played("resp-required-missing", "logprobs")
    assert events[4] == text("output_text.delta", 4, delta="Hel")
    assert events[6] == text("output_text.done", 6, text="Hello")
    events = played("resp-required-missing", "arguments")
    opened = call("", "in_progress", id="fc_1")
    del opened["arguments"]
    assert events[9] == added(9, opened, 1)
    assert events[13] == done(13, call(id="fc_1"), 1)


def test_openers_are_missing() -> None:
    """resp-missing-openers: deltas first; or one kind of opener is missing."""
    final = message(part())
    opened = [added(0, message(status="in_progress")), text("content_part.added", 1, part=part(""))]
    assert played("resp-missing-openers") == [*hello(0), end(5, final)]
    assert played("resp-missing-openers", "created") == [*opened, *hello(2), end(7, final)]
    no_item = [*OPENERS, {**opened[1], "sequence_number": 2}, *hello(3), end(8, final)]
    assert played("resp-missing-openers", "item-added") == no_item
    no_part = [*OPENERS, {**opened[0], "sequence_number": 2}, *hello(3), end(8, final)]
    assert played("resp-missing-openers", "part-added") == no_part


@pytest.mark.parametrize(
    ("variant", "reason"),
    [("max-output-tokens", "max_output_tokens"), ("content-filter", "content_filter")],
)
def test_the_response_is_incomplete(variant: str, reason: str) -> None:
    """resp-incomplete: the stream ends in response.incomplete, its last item incomplete."""
    cut = message(part(), status="incomplete")
    assert played("resp-incomplete", variant) == [
        *TEXT_STREAM[:8],
        done(8, cut),
        end(9, cut, status="incomplete", incomplete_details={"reason": reason}),
    ]


def test_the_response_ends_while_an_item_is_open() -> None:
    """resp-incomplete:open-item: response.incomplete follows the last fragment of the text."""
    cut = message(part(), status="incomplete")
    reason = {"reason": "max_output_tokens"}
    assert played("resp-incomplete", "open-item") == [
        *TEXT_STREAM[:6],
        end(6, cut, status="incomplete", incomplete_details=reason),
    ]


def test_the_terminal_event_is_missing() -> None:
    """resp-no-terminal: the last event is response.output_item.done."""
    assert played("resp-no-terminal") == TEXT_STREAM[:-1]


def test_a_delta_follows_the_end() -> None:
    """resp-after-completed: a delta after response.completed."""
    late = text("output_text.delta", 10, delta="lo", logprobs=[])
    assert played("resp-after-completed") == [*TEXT_STREAM, late]


def test_names_of_another_api() -> None:
    """resp-legacy-names: response.text.delta, response.text.done and response.done."""
    names = [event["type"] for event in played("resp-legacy-names")]
    assert names == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.text.delta",
        "response.text.delta",
        "response.text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    assert played("resp-legacy-names", "text")[-1] == TEXT_STREAM[-1]
    assert played("resp-legacy-names", "done")[:-1] == TEXT_STREAM[:-1]
    assert played("resp-legacy-names", "done")[-1]["type"] == "response.done"


def test_done_sentinel() -> None:
    """resp-done-sentinel: `data: [DONE]`, without an event line, after response.completed."""
    assert played("resp-done-sentinel") == [*TEXT_STREAM, "[DONE]"]
