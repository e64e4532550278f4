"""What is drift, and what two calls of an unchanged service may differ in."""

import json
from dataclasses import replace

from mockllm.conformance.drift.answers import answer_shape
from mockllm.conformance.drift.compare import Comparison, Group
from mockllm.conformance.drift.shapes import Shape
from mockllm.wire.protocols import PROTOCOLS
from tests.conformance.drift.service import exchange, sse

URL = "https://api.openai.com/v1/chat/completions"
CHUNK = {
    "id": "c",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "service_tier": "default",
    "system_fingerprint": "f",
}


def chunk(delta, finish=None, **more):
    """A chunk of Chat."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**CHUNK, "choices": [choice], **more}


TEXT = [
    chunk({"role": "assistant", "content": "", "refusal": None}),
    chunk({"content": "Hi"}),
    chunk({}, "stop"),
]
CALL = [
    chunk({"role": "assistant", "content": None}),
    chunk(
        {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f"}}]}
    ),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}),
    chunk({}, "tool_calls"),
]


def shape(chunks, api="chat", status=200):
    """The shape of a stream of Chat, or of a body."""
    text = sse(*chunks, "[DONE]") if isinstance(chunks, list) else json.dumps(chunks)
    kind = "text/event-stream" if isinstance(chunks, list) else "application/json"
    streamed = isinstance(chunks, list)
    recorded = exchange(URL, {}, (status, kind, text))
    return answer_shape(recorded, PROTOCOLS[api], streamed=streamed)


def compared(before, after, pool=(), api="chat"):
    """The differences as (kind, place), and the comparison."""
    streamed = bool(before.events)
    group = Group(api, "h", "", "m", streamed, error=False)
    comparison = Comparison([(group, one) for one in (before, *pool)])
    comparison.add("greet turn 1", group, before, after)
    found = [(f.difference.kind, f.difference.place) for f in comparison.findings()]
    return sorted(found), comparison


def details(comparison):
    """What is said of each place."""
    return {one.difference.place: one.difference.detail for one in comparison.findings()}


def test_three_fields_and_the_order():
    """A field that is added, removed and retyped, and events in another order, are drift."""
    usage = {**CHUNK, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    before = [*TEXT, usage]
    changed = [
        {**{key: value for key, value in one.items() if key != "service_tier"}, "lane": "x"}
        for one in before
    ]
    for one in changed:
        one["created"] = "2026-01-01"
    changed[2], changed[3] = changed[3], changed[2]
    found, comparison = compared(shape(before), shape(changed))
    fields = [("added", "lane"), ("removed", "service_tier"), ("retyped", "created")]
    assert [one for one in found if one[0] != "order"] == fields
    assert ("order", "Usage") in found
    assert comparison.compared == 1


def test_an_unchanged_service_that_answers_otherwise():
    """A call in place of a text, and the reverse, is counted and no drift; but what nobody knows
    is drift there, too."""
    for before, after in ((TEXT, CALL), (CALL, TEXT)):
        found, comparison = compared(shape(before), shape(after))
        assert found == []
        assert list(comparison.otherwise) == ["greet turn 1"]
    odd = [{**one, "lane": 1} for one in CALL]
    assert compared(shape(TEXT), shape(odd))[0] == [("added", "lane")]


def test_null_is_no_type_and_optional_fields_are_chance():
    """A value in place of null, and a field that the kit knows as one that not all answers have."""
    before, after = [dict(one) for one in TEXT], [dict(one) for one in TEXT]
    before[0]["usage"] = before[1]["usage"] = before[2]["usage"] = None
    for one in after:
        one["usage"] = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    assert compared(shape(before), shape(after))[0] == []
    after = [*TEXT[:1], chunk({"content": "Hi", "reasoning": None}), TEXT[2]]
    found, comparison = compared(shape(TEXT), shape(after))
    assert (found, comparison.chance) == ([], 1)


def body(finish="tool_calls", **call):
    """A body of Chat with a call."""
    called = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, **call}
    calls = [{name: value for name, value in called.items() if value is not None}]
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {**CHUNK, "object": "chat.completion", "choices": [choice], "usage": usage}


def test_a_type_that_calls_lack_in_a_body_is_drift():
    """Objects with and without their `type` are at different places; it is a field of theirs."""
    place = "choices[].message.tool_calls[function].type"
    assert compared(shape(body()), shape(body(type=None)))[0] == [("removed", place)]
    assert compared(shape(body()), shape(body()))[0] == []
    pool = [shape(body(type=None))]  # a service that leaves it out now and then
    assert compared(shape(body()), shape(body(type=None)), pool)[0] == []


def test_a_finish_reason_that_nobody_knows_is_drift():
    """One that a recording, mockllm or the SDK knows is the model's choice."""
    odd = shape(body("ran_away"))
    found, comparison = compared(shape(body()), odd)
    assert found == [("finish", "finish reason")]
    assert details(comparison) == {"finish reason": "ran_away, which nobody knows"}
    assert compared(shape(body()), odd, [odd])[0] == []
    for known in ("stop", "length", "content_filter", "function_call"):
        assert compared(shape(body()), shape(body(known)))[0] == []
    streamed = [*TEXT[:2], chunk({}, "ran_away")]
    assert compared(shape(TEXT), shape(streamed))[0] == [("finish", "finish reason")]


def test_a_new_null_that_the_sdk_knows_is_no_drift():
    """A service may state that there is nothing; a new field with a value is drift, and so is a
    null that no type has."""
    new = {**body(), "moderation": None}
    found, comparison = compared(shape(body()), shape(new))
    assert (found, comparison.chance) == ([], 1)
    assert compared(shape(body()), shape({**body(), "lane": None}))[0] == [("added", "lane")]
    valued = {**body(), "moderation": {"input": []}}
    assert compared(shape(body()), shape(valued))[0] == [("added", "moderation")]


def test_a_field_that_only_some_recordings_have_is_no_drift():
    """The other recordings of the same service and model show what is not always there."""
    tagged = [TEXT[0], chunk({"content": "Hi"}, lane="x"), TEXT[2]]
    assert compared(shape(TEXT), shape(tagged))[0] == [("added", "lane")]
    assert compared(shape(TEXT), shape(tagged), pool=[shape(tagged)])[0] == []
    always = [{**one, "lane": "x"} for one in TEXT]
    assert compared(shape(always), shape(TEXT))[0] == [("removed", "lane")]
    assert compared(shape(always), shape(TEXT), pool=[shape(TEXT)])[0] == []


def test_an_answer_without_any_part_is_compared_whole():
    """A model does not choose to say nothing: what held the text is missed."""
    moved = [chunk({"role": "assistant", "body": "Hi"}), chunk({}, "stop")]
    found, comparison = compared(shape(TEXT), shape(moved))
    assert ("added", "choices[].delta.body") in found
    assert ("event-removed", "TextDelta") in found
    assert not comparison.otherwise


def test_types_of_events():
    """One that is new, one that is gone, and the order of those with names."""
    start = {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    delta = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "a"},
    }
    stop = {"type": "content_block_stop", "index": 0}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
    last = {"type": "message_stop"}
    ping = {"type": "ping"}
    before = shape([start, block, delta, stop, end, last], "anthropic")
    for events, expected in (
        ([start, ping, block, delta, delta, delta, stop, end, last], []),
        ([start, block, delta, stop, {"type": "tally"}, end, last], [("event-added", "tally")]),
        ([start, block, delta, end, last], [("event-removed", "content_block_stop")]),
    ):
        found = compared(before, shape(events, "anthropic"), api="anthropic")[0]
        assert [one for one in found if one[1] != "[DONE]"] == expected
    swapped = shape([start, block, delta, end, stop, last], "anthropic")
    _, comparison = compared(before, swapped, api="anthropic")
    assert details(comparison)["content_block_stop"] == "now comes after message_delta"
    tally = {"type": "tally"}
    usual = [start, tally, block, delta, stop, end, last]
    shapes = [
        answer_shape(
            exchange(URL, {}, (200, "text/event-stream", sse(*events))),
            PROTOCOLS["anthropic"],
            streamed=True,
        )
        for events in (usual, [*usual, tally])
    ]
    _, comparison = compared(*shapes, api="anthropic")
    assert details(comparison) == {
        "tally": "now comes after message_stop",
        "(end)": "now ends with tally",
    }


def test_status_and_content_type():
    """They are drift; of an error in place of an answer no fields are compared."""
    body = {**CHUNK, "object": "chat.completion", "choices": []}
    error = shape({"error": {"message": "gone"}}, status=404)
    assert compared(shape(body), error)[0] == [("status", "status")]
    expected = [("content-type", "content-type"), ("form", "answer")]
    assert compared(shape(TEXT), shape(body))[0] == expected
    assert compared(shape(body), shape(TEXT))[0] == expected
    empty = replace(shape(TEXT), shape=Shape(), events=())
    assert compared(shape(TEXT), empty)[0] == [("form", "answer")]


def test_headers_that_clients_read():
    """One that each recording has and the answer has not; others come and go on the way."""
    before, after = shape(TEXT), shape(TEXT)
    names = {"x-request-id", "x-ratelimit-limit-tokens", "cache-control", "cf-ray"}
    before = replace(before, headers=before.headers | names)
    after = replace(after, headers=after.headers | {"x-ratelimit-limit-tokens"})
    assert compared(before, after)[0] == [("header-removed", "x-request-id")]
    assert compared(before, after, pool=[shape(TEXT)])[0] == []


def test_the_sdk_is_a_witness():
    """A finding about a field says whether the types of the SDK know it."""
    without = [{k: v for k, v in one.items() if k != "service_tier"} for one in TEXT]
    odd = [{**one, "lane": 1} for one in TEXT]
    for before, after, said in ((without, TEXT, "knows it"), (TEXT, odd, "does not know it")):
        comparison = compared(shape(before), shape(after))[1]
        (finding,) = comparison.findings()
        assert finding.witness.startswith("openai ")
        assert finding.witness.endswith(said)


def test_findings_of_a_group_are_together():
    """In whatever order the answers come; and a finding names each answer that has it."""
    groups = [Group("chat", "h", "", model, True, error=False) for model in ("a", "b")]
    before = shape(TEXT)
    comparison = Comparison([(group, before) for group in groups])
    for number, field in ((0, "x"), (1, "x"), (0, "y"), (0, "x")):
        after = shape([{**one, field: 1} for one in TEXT])
        comparison.add(f"{field}{number}", groups[number], before, after)
    found = [(one.group.model, one.difference.place, one.answers) for one in comparison.findings()]
    expected = [("a", "x", ("x0", "x0")), ("a", "y", ("y0",)), ("b", "x", ("x1",))]
    assert found == expected
