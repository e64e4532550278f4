"""The bytes of the quirks of OpenAI Responses, on their samples."""

from __future__ import annotations

import json
import re
from typing import Any

from mockllm.play.quirks.responses import QUIRKS
from tests.play.quirks.playing import frames, play

ARGS, B_ARGS = '{"city":"Paris"}', '{"tz":"CET"}'
BY_NAME = {quirk.name: quirk for quirk in QUIRKS}
_OWN_ID = re.compile(r"(msg|fc|rs)_[0-9a-f]{40}000([0-9a-f])")
_BEGUN = {"status": "in_progress", "output": []}


def _short(value: Any) -> Any:
    """An event with the essential fields of its response object, without the repeated request."""
    if isinstance(value, dict) and isinstance(value.get("response"), dict):
        response = value["response"]
        shortened = {key: response[key] for key in ("status", "output")}
        shortened |= {
            key: response[key] for key in ("error", "incomplete_details") if response[key]
        }
        return {**value, "response": shortened}
    return value


def played(name: str, variant: str = "") -> list[Any]:
    """The events of a variant on its sample; item ids are `fc_<output_index>` and the like."""
    quirk = BY_NAME[name]
    found = quirk.variant(variant)
    assert found is not None
    events = []
    for frame in frames(play(quirk, found, "responses")):
        data = _OWN_ID.sub(r"\1_\2", frame.data or "")
        value = json.loads(data) if data.startswith("{") else data
        assert frame.event == (value["type"] if isinstance(value, dict) else None)
        events.append(_short(value))
    return events


def ev(type: str, number: int, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{type}", "sequence_number": number, **fields}


OPENERS = [ev("created", 0, response=_BEGUN), ev("in_progress", 1, response=_BEGUN)]


def end(number: int, *items: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    return ev(status, number, response={"status": status, "output": list(items), **more})


def call(arguments: str = ARGS, status: str = "completed", **other: Any) -> dict[str, Any]:
    own = {"id": "fc_0", "call_id": "call_A1", "name": "get_weather"}
    return {"type": "function_call", "status": status, "arguments": arguments, **own, **other}


def call_b(arguments: str = B_ARGS, status: str = "completed") -> dict[str, Any]:
    return call(arguments, status, id="fc_1", call_id="call_B2", name="get_time")


def part(text: str = "Hello") -> dict[str, Any]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def message(*content: Any, status: str = "completed") -> dict[str, Any]:
    own = {"id": "msg_0", "type": "message", "role": "assistant"}
    return {**own, "status": status, "content": list(content)}


def added(number: int, item: Any, index: int = 0) -> dict[str, Any]:
    return ev("output_item.added", number, output_index=index, item=item)


def done(number: int, item: Any, index: int = 0) -> dict[str, Any]:
    return ev("output_item.done", number, output_index=index, item=item)


def args(number: int, delta: str, index: int = 0, id: str | None = None) -> dict[str, Any]:
    at = {"item_id": id or f"fc_{index}", "output_index": index}
    return ev("function_call_arguments.delta", number, **at, delta=delta)


def args_done(number: int, whole: str, index: int = 0, id: str | None = None) -> dict[str, Any]:
    at = {"item_id": id or f"fc_{index}", "output_index": index}
    return ev("function_call_arguments.done", number, **at, arguments=whole)


def text(name: str, number: int, **fields: Any) -> dict[str, Any]:
    at = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
    return ev(name, number, **at, **fields)


def hello(first: int) -> list[dict[str, Any]]:
    """The sample's message from its first delta on, up to the finished item."""
    return [
        text("output_text.delta", first, delta="Hel", logprobs=[]),
        text("output_text.delta", first + 1, delta="lo", logprobs=[]),
        text("output_text.done", first + 2, text="Hello", logprobs=[]),
        text("content_part.done", first + 3, part=part()),
        done(first + 4, message(part())),
    ]


def hello_opened(first: int) -> list[dict[str, Any]]:
    opened = text("content_part.added", first + 1, part=part(""))
    return [added(first, message(status="in_progress")), opened, *hello(first + 2)]


BEGUN_CALL = call("", "in_progress")


# Values


def test_arguments_come_only_when_they_are_done() -> None:
    """resp-args-done-only: added, arguments.done, output_item.done."""
    opened = [*OPENERS, added(2, BEGUN_CALL)]
    assert played("resp-args-done-only") == [
        *opened,
        args_done(3, ARGS),
        done(4, call()),
        end(5, call()),
    ]
    item_only = [*opened, done(3, call()), end(4, call())]
    assert played("resp-args-done-only", "item-done") == item_only


def test_no_arguments_are_an_empty_text() -> None:
    """resp-zero-arg: `arguments` is "" from the added item to the final response."""
    own = {"call_id": "call_Z0", "name": "list_issues"}
    begun, empty, whole = call("", "in_progress", **own), call("", **own), call("{}", **own)
    opened = [*OPENERS, added(2, begun)]
    assert played("resp-zero-arg") == [*opened, args_done(3, ""), done(4, empty), end(5, empty)]
    assert played("resp-zero-arg", "no-done") == [*opened, done(3, whole), end(4, whole)]


def test_the_added_item_has_arguments() -> None:
    """resp-args-in-added: `arguments` is whole in output_item.added; deltas may follow."""
    opened = [*OPENERS, added(2, call(status="in_progress"))]
    deltas = [args(3, '{"city":'), args(4, '"Paris"}')]
    rest = [args_done(5, ARGS), done(6, call()), end(7, call())]
    assert played("resp-args-in-added") == [*opened, *deltas, *rest]
    rest = [args_done(3, ARGS), done(4, call()), end(5, call())]
    assert played("resp-args-in-added", "alone") == [*opened, *rest]


def test_done_is_sent_twice() -> None:
    """resp-dup-done: arguments.done and output_item.done are sent twice."""
    opened = [*OPENERS, added(2, BEGUN_CALL), args(3, '{"city":'), args(4, '"Paris"}')]
    twice = [args_done(5, ARGS), args_done(6, ARGS)]
    assert played("resp-dup-done") == [
        *opened,
        *twice,
        done(7, call()),
        done(8, call()),
        end(9, call()),
    ]
    item = [args_done(5, ARGS), done(6, call()), done(7, call()), end(8, call())]
    assert played("resp-dup-done", "item") == [*opened, *item]
    assert played("resp-dup-done", "arguments") == [
        *opened,
        *twice,
        done(7, call()),
        end(8, call()),
    ]


def test_a_delta_follows_done() -> None:
    """resp-delta-after-done: a delta with the whole value, after its done event."""
    events = played("resp-delta-after-done")
    assert events[4:8] == [
        text("output_text.delta", 4, delta="Hel", logprobs=[]),
        text("output_text.delta", 5, delta="lo", logprobs=[]),
        text("output_text.done", 6, text="Hello", logprobs=[]),
        text("output_text.delta", 7, delta="Hello", logprobs=[]),
    ]
    assert events[13:15] == [args_done(13, ARGS, 1), args(14, ARGS, 1)]


def test_done_is_not_the_sum_of_its_deltas() -> None:
    """resp-delta-after-done: the last delta of a value is missing."""
    events = played("resp-delta-after-done", "different")
    assert events[4:6] == [
        text("output_text.delta", 4, delta="Hel", logprobs=[]),
        text("output_text.done", 5, text="Hello", logprobs=[]),
    ]
    assert events[9:11] == [args(9, '{"city":', 1), args_done(10, ARGS, 1)]


# Items


def test_item_ids_rotate() -> None:
    """resp-item-id-rotates: fc_1, fc_2, ...: another id in every event, or at the end."""
    deltas = [args(3, '{"city":', id="fc_2"), args(4, '"Paris"}', id="fc_3")]
    assert played("resp-item-id-rotates") == [
        *OPENERS,
        added(2, call("", "in_progress", id="fc_1")),
        *deltas,
        args_done(5, ARGS, id="fc_4"),
        done(6, call(id="fc_5")),
        end(7, call(id="fc_6")),
    ]
    opened = [*OPENERS, added(2, BEGUN_CALL), args(3, '{"city":'), args(4, '"Paris"}')]
    same = [*opened, args_done(5, ARGS)]
    late = [*same, done(6, call(id="fc_1")), end(7, call(id="fc_2"))]
    assert played("resp-item-id-rotates", "item-done") == late
    last = [*same, done(6, call()), end(7, call(id="fc_1"))]
    assert played("resp-item-id-rotates", "completed") == last


def test_item_ids_are_null() -> None:
    """resp-item-id-null: `"id":null` in items, and `"item_id":null` in what is inside."""
    events = played("resp-item-id-null")
    items = [events[2]["item"], events[6]["item"], events[7]["response"]["output"][0]]
    assert items == [call("", "in_progress", id=None), call(id=None), call(id=None)]
    assert [event["item_id"] for event in events[3:6]] == [None, None, None]
    inside = played("resp-item-id-null", "in-items")
    assert [event["item_id"] for event in inside[3:6]] == ["fc_0", "fc_0", "fc_0"]
    assert inside[2]["item"]["id"] is None


def test_the_first_delta_is_empty() -> None:
    """resp-empty-delta: `"delta":""` before the first fragment of the text and of the arguments."""
    deltas = [event["delta"] for event in played("resp-empty-delta") if "delta" in event]
    assert deltas == ["", "Hel", "lo", "", '{"city":', '"Paris"}']


def test_calls_have_no_call_id() -> None:
    """resp-call-id-missing: items of calls have no call_id, or an empty one; their id stays."""
    nothing = played("resp-call-id-missing")
    items = [nothing[2]["item"], nothing[6]["item"], nothing[7]["response"]["output"][0]]
    assert ["call_id" in item for item in items] == [False, False, False]
    assert [item["id"] for item in items] == ["fc_0", "fc_0", "fc_0"]
    empty = played("resp-call-id-missing", "empty")
    assert empty[2] == added(2, call("", "in_progress", call_id=""))
    assert empty[6] == done(6, call(call_id=""))


def _two(indexes: tuple[int, int]) -> list[dict[str, Any]]:
    a, b = indexes
    return [
        {**event, "output_index": a if event["output_index"] == 0 else b}
        for event in (
            added(2, BEGUN_CALL),
            args(3, '{"city":'),
            args(4, '"Paris"}'),
            args_done(5, ARGS),
            done(6, call()),
            added(7, call_b("", "in_progress"), 1),
            args(8, '{"tz":', 1),
            args(9, '"CET"}', 1),
            args_done(10, B_ARGS, 1),
            done(11, call_b(), 1),
        )
    ]


def test_output_index_is_shared_or_has_gaps() -> None:
    """resp-output-index: all 0, or 0 and 3; the final output lists both calls."""
    both = end(12, call(), call_b())
    assert played("resp-output-index") == [*OPENERS, *_two((0, 0)), both]
    assert played("resp-output-index", "gaps") == [*OPENERS, *_two((0, 3)), both]


def test_output_index_is_reversed() -> None:
    """resp-output-index: 1 comes before 0; sequence numbers still run."""
    assert played("resp-output-index", "reversed") == [
        *OPENERS,
        added(2, call_b("", "in_progress"), 1),
        args(3, '{"tz":', 1),
        args(4, '"CET"}', 1),
        args_done(5, B_ARGS, 1),
        done(6, call_b(), 1),
        added(7, BEGUN_CALL),
        args(8, '{"city":'),
        args(9, '"Paris"}'),
        args_done(10, ARGS),
        done(11, call()),
        end(12, call(), call_b()),
    ]


def test_items_interleave() -> None:
    """resp-interleaved: added 0, added 1, then deltas of 0 and 1 in turn."""
    assert played("resp-interleaved") == [
        *OPENERS,
        added(2, BEGUN_CALL),
        added(3, call_b("", "in_progress"), 1),
        args(4, '{"city":'),
        args(5, '{"tz":', 1),
        args(6, '"Paris"}'),
        args(7, '"CET"}', 1),
        args_done(8, ARGS),
        done(9, call()),
        args_done(10, B_ARGS, 1),
        done(11, call_b(), 1),
        end(12, call(), call_b()),
    ]


def test_reasoning_names_another_item_each_time() -> None:
    """resp-reasoning-ids: item_id differs in the deltas, or output_index does not."""
    kind = "reasoning_summary_text.delta"
    deltas = [event for event in played("resp-reasoning-ids") if event["type"].endswith(kind)]
    at = {"output_index": 0, "summary_index": 0}
    assert deltas == [
        ev(kind, 4, item_id="rs_1", delta="Let me", **at),
        ev(kind, 5, item_id="rs_2", delta=" think.", **at),
    ]
    shared = played("resp-reasoning-ids", "shared-index")
    assert {event["output_index"] for event in shared if "output_index" in event} == {0}
    assert {event["item_id"] for event in shared if "item_id" in event} == {"rs_0", "msg_1"}
