"""Recorded answers as turns of the YAML: what they are without the tape."""

import json
from dataclasses import replace

import pytest

from mockllm.core.turn import Opaque, TokenUsage, ToolCall
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.http_answer import http_error_answer
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.compilation.tape_player import is_unedited
from mockllm.play.replay.loading import loads
from mockllm.play.tapes.captured import detect_api, request_of
from mockllm.play.tapes.recorded_turn import recorded_turn
from mockllm.record.importers.file_formats import files
from mockllm.record.importers.reading import Unread
from mockllm.record.recording.drafting.draft import with_files
from mockllm.record.recording.drafting.drafts import Drafting
from mockllm.record.recording.drafting.turns import draft_turn
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Match, Recorded, Scenario
from mockllm.scenario.part_model import NativePart, PausePart
from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.decoding import decode_turn
from tests.cases import for_all
from tests.corpus import CORPUS, needs_corpus, read, recorded_files
from tests.record.recording.exchanging import JSON, asks, exchange, user

CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "odd-1"}


def drafted(one):
    """The protocol, the request and the drafted turn of an exchange."""
    found = detect_api(one)
    request = request_of(one, found)
    return found.protocol, request, draft_turn(one, found, request)


def written(spec):
    """The turn, written as YAML and loaded again."""
    scenario = Scenario("one", (spec,), match=Match(anything=True))
    (loaded,) = loads(dump(scenario), "one.yaml")
    return loaded


def chunks(*values):
    return [b"data: %b\n\n" % json.dumps({**CHUNK, **value}).encode() for value in values]


def delta(delta, finish=None, **more):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def cited(url):
    cited = {"url": url, "title": "A", "start_index": 0, "end_index": 0, "content": "B"}
    return {"type": "url_citation", "url_citation": cited}


def body(message, finish="stop", **more):
    """An answer of Chat Completions that is not streamed, with further fields."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    value = {"id": "c", "object": "chat.completion", "created": 1, "model": "odd-1"}
    value |= {"choices": [choice], "usage": usage, **more}
    return exchange(asks(user("hi"), stream=False), [json.dumps(value).encode()], headers=JSON)


STREAMS = {
    "fields of a provider": [
        delta({"role": "assistant", "content": ""}, provider="P", x_groq={"id": "r"}),
        delta({"content": "Hel"}, provider="P"),
        delta({"content": "lo"}, provider="P"),
        delta({}, "stop", provider="P", x_groq={"usage": None}),
    ],
    "text with the role": [
        delta({"role": "assistant", "content": "Hel"}),
        delta({"content": "lo"}),
        delta({}, "stop"),
    ],
    "usage that was not requested, with the finish": [
        delta({"role": "assistant", "content": ""}),
        delta({"content": "Hello"}),
        delta({}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}),
    ],
    "finish with the last text": [
        delta({"role": "assistant", "content": ""}),
        delta({"content": "Hel"}),
        delta({"content": "lo"}, "stop"),
    ],
    "a whole call in one chunk": [
        delta({"role": "assistant", "content": ""}),
        delta({"content": "Hm"}),
        delta(
            {
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "a",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a":1}'},
                    }
                ]
            }
        ),
        delta({}, "tool_calls"),
    ],
    "a chunk without content": [
        delta({"role": "assistant", "content": "Hel", "refusal": ""}),
        delta({"role": "assistant", "content": "", "refusal": ""}),
        delta({"role": "assistant", "content": "lo", "refusal": ""}),
        delta({}, "stop"),
    ],
    "moderation after the usage": [
        delta({"role": "assistant", "content": ""}),
        delta({"content": "Hello"}),
        delta({}, "stop"),
        {"choices": [], "usage": USAGE},
        {"choices": [], "moderation": {"flagged": False, "scores": {"violence": 0.25}}},
    ],
    "a stream without a finish": [
        delta({"role": "assistant", "content": "Hel", "refusal": ""}),
        delta({"role": "assistant", "content": "", "refusal": ""}),
        {"choices": [], "usage": USAGE},
    ],
    "a finish that is repeated with the usage": [
        delta({"role": "assistant", "content": "Hello"}),
        delta({"role": "assistant", "content": ""}, "stop"),
        delta({"role": "assistant", "content": ""}, "stop", usage=USAGE),
    ],
    "usage that was not requested, in its own chunk": [
        delta({"role": "assistant", "content": ""}),
        delta({"content": "Hello"}),
        delta({}, "stop", sla={"ms": 1}),
        {"choices": [], "usage": USAGE, "sla": {"ms": 2}},
    ],
    "the number of each token": [
        delta({"role": "assistant", "content": ""}),
        *(delta({"content": "x" * n, "token_id": 1000 + n}) for n in range(1, 9)),
        delta({}, "stop"),
    ],
    "citations before the text": [
        delta({"role": "assistant", "content": "", "annotations": [cited("https://a.example/")]}),
        delta({"role": "assistant", "content": "", "annotations": [cited("https://b.example/")]}),
        delta({"role": "assistant", "content": "Hello"}),
        delta({}, "stop"),
    ],
    "reasoning under other names": [
        delta({"role": "assistant", "content": ""}),
        delta({"content": "", "reasoning": "Hm"}),
        delta({"content": "", "reasoning": " so", "reasoning_details": [{"text": " so"}]}),
        delta({"content": "Hello"}),
        delta({}, "stop"),
    ],
}


def content(turn):
    """What a client reads of a turn, without what the recorded answer alone has: frames and a
    usage that was not requested."""
    parts = tuple(part for part in turn.whole().parts if not isinstance(part, Opaque))
    parts = tuple(replace(p, id="") if isinstance(p, ToolCall) else p for p in parts)
    return replace(turn.whole(), parts=parts, usage=None)


def played(protocol, request, spec):
    """What a client reads of a turn as the YAML plays it."""
    answer = Replayer().answer(Selection(written(spec), 0, 0), request, protocol)
    body = b"".join(answer.data)
    if answer.streamed:
        carrier = protocol.carrier(protocol.options(request))
        return content(decode_turn(protocol, carrier.decode(body))[0])
    return content(protocol.decode_body(json.loads(body)))


def recorded(protocol, one):
    """What a client reads of a recorded answer."""
    streamed = b'"stream": true' in one.request_body or b"stream" in one.url.encode()
    return content(recorded_turn(one.plain(), protocol, streamed=streamed).turn)


EXTRA = {
    "fields of a provider": {"event": {"provider": "P", "x_groq": {"id": "r"}}},
    "reasoning under other names": {"reasoning": {"field": "reasoning"}},
    "the number of each token": {},
}


@for_all("name", STREAMS)
def test_the_yaml_alone_plays_the_content(name):
    """Without the tape a client reads the same text, calls and finish, however the service cuts and
    orders its events; fields of the service are `extra`."""
    one = exchange(asks(user("hi")), [*chunks(*STREAMS[name]), b"data: [DONE]\n\n"])
    protocol, request, draft = drafted(one)
    assert draft.decoded.problem == ""
    if name in EXTRA:
        assert dict(draft.spec.extra).get("chat", {}) == EXTRA[name]
    assert played(protocol, request, draft.spec) == recorded(protocol, one)
    scenario = written(replace(draft.spec, recorded=Recorded("one.1.jsonl")))
    assert is_unedited(scenario, 0, draft.tape)


def responses_stream(order):
    """A stream of Responses with reasoning and a text, with its events in another order.

    Args:
        order: the numbers of the events; a number that is missing is an event that is not sent.
    """
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "status": "completed"}
    thought["content"] = [{"type": "reasoning_text", "text": "Hm"}]
    said = {"type": "output_text", "text": "Hi", "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    message["content"] = [said]
    answer = {"id": "resp_1", "object": "response", "created_at": 1, "model": "odd-1"}
    first = {"item_id": "rs_1", "output_index": 0, "content_index": 0}
    second = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    begun = {"status": "in_progress"}
    values = [
        ("created", {"response": {**answer, "status": "in_progress", "output": []}}),
        ("in_progress", {"response": {**answer, "status": "in_progress", "output": []}}),
        ("output_item.added", {"output_index": 0, "item": {**thought, **begun, "content": []}}),
        ("content_part.added", {**first, "part": {"type": "reasoning_text", "text": ""}}),
        ("reasoning_text.delta", {**first, "delta": "Hm"}),
        ("reasoning_text.done", {**first, "text": "Hm"}),
        ("content_part.done", {**first, "part": {"type": "reasoning_text", "text": "Hm"}}),
        ("output_item.done", {"output_index": 0, "item": thought}),
        ("output_item.added", {"output_index": 1, "item": {**message, **begun, "content": []}}),
        ("content_part.added", {**second, "part": {**said, "text": ""}}),
        ("output_text.delta", {**second, "delta": "Hi", "logprobs": []}),
        ("output_text.done", {**second, "text": "Hi", "logprobs": []}),
        ("content_part.done", {**second, "part": said}),
        ("output_item.done", {"output_index": 1, "item": message}),
        (
            "completed",
            {"response": {**answer, "status": "completed", "output": [thought, message]}},
        ),
    ]
    chunks = []
    for count, number in enumerate(order):
        name, value = values[number]
        event = {"type": f"response.{name}", "sequence_number": count, **value}
        text = json.dumps(event)
        chunks.append(f"event: {event['type']}\ndata: {text}\n\n".encode())
    request = {"model": "odd-1", "input": "hi", "stream": True}
    url = "https://api.openai.com/v1/responses"
    return exchange(json.dumps(request).encode(), chunks, url=url)


ORDERS = {
    "usual": range(15),
    "reasoning closed after the message": [0, 1, 2, 3, 4, *range(8, 14), 5, 6, 7, 14],
    "parts that are not closed": [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 13, 14],
    "without progress": [0, *range(2, 15)],
}


@for_all("name", ORDERS)
def test_events_in_another_order_are_read_whole(name):
    """A service that sends events later or not at all says the same."""
    one = responses_stream(ORDERS[name])
    protocol, request, draft = drafted(one)
    assert draft.decoded.problem == ""
    assert played(protocol, request, draft.spec) == recorded(protocol, one)


BODIES = {
    "no annotations": body({"content": "Hello", "refusal": None}),
    "reasoning": body({"content": "Hello", "reasoning": "Hm"}, provider="P"),
    "details": body({"content": "Hi", "reasoning_details": [{"type": "t", "text": "Hm"}]}),
    "both": body({"content": "Hi", "reasoning": "H", "reasoning_details": [{"text": "H"}]}),
    "empty calls": body({"content": "Hello", "tool_calls": []}),
    "index": body(
        {
            "content": None,
            "tool_calls": [
                {
                    "index": 0,
                    "id": "a",
                    "type": "function",
                    "function": {"name": "f", "arguments": "{}"},
                }
            ],
        },
        "tool_calls",
    ),
}


@for_all("name", BODIES)
def test_the_yaml_alone_plays_the_body(name):
    """An answer that is not streamed, with fields of its service, as well."""
    protocol, request, draft = drafted(BODIES[name])
    assert draft.decoded.problem == ""
    assert played(protocol, request, draft.spec) == recorded(protocol, BODIES[name])
    assert is_unedited(written(draft.spec), 0, draft.tape)


THINKING = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]


@for_all("streamed", [True, False])
def test_edited_reasoning_goes_out_in_the_form_of_its_service(streamed):
    """Mistral's reasoning is a list of parts in `content`; so it is without the tape, too."""
    one = body({"content": [*THINKING, {"type": "text", "text": "Hi"}]})
    if streamed:
        deltas = ({"role": "assistant", "content": ""}, {"content": THINKING}, {"content": "Hi"})
        events = [*map(delta, deltas), delta({}, "stop")]
        one = exchange(asks(user("hi")), [*chunks(*events), b"data: [DONE]\n\n"])
    protocol, request, draft = drafted(one)
    assert dict(draft.spec.extra)["chat"] == {"reasoning": {"field": "content"}}
    text = dump(Scenario("one", (draft.spec,), match=Match(anything=True)))
    (scenario,) = loads(text.replace("reasoning: Hm\n", "reasoning: Think\n"), "one.yaml")
    answer = Replayer().answer(Selection(scenario, 0, 0), request, protocol)
    sent = b"".join(answer.data)
    assert b"reasoning_content" not in sent
    part = b'{"type":"thinking","thinking":[{"type":"text","text":"Think"}]}'
    assert sent.count(part) == 1
    read = played(protocol, request, scenario.turns[0])
    assert [type(part).__name__ for part in read.parts] == ["Reasoning", "Text"]


def test_an_edited_text_keeps_the_fields_of_the_service():
    """Where the text is edited, the fields of the service are still sent, and none that repeats the
    old text; also in a stream of the same turn."""
    protocol, request, draft = drafted(BODIES["reasoning"])
    text = dump(Scenario("one", (draft.spec,), match=Match(anything=True)))
    (scenario,) = loads(text.replace("reasoning: Hm\n", "reasoning: Think\n"), "one.yaml")
    assert not is_unedited(scenario, 0, draft.tape)
    answer = Replayer().answer(Selection(scenario, 0, 0), request, protocol)
    value = json.loads(answer.data[0])
    assert value["provider"] == "P"
    assert value["choices"][0]["message"]["reasoning"] == "Think"
    assert "Hm" not in text.partition("extra:")[2]
    streamed = replace(request, stream=True)
    answer = Replayer().answer(Selection(scenario, 0, 0), streamed, protocol)
    assert all(json.loads(f.data)["provider"] == "P" for f in decode(b"".join(answer.data))[:-1])


ERRORS = {
    "further fields": {
        "error": {
            "message": "No",
            "type": "invalid_request_error",
            "code": "tool_use_failed",
            "failed_generation": "{}",
        },
        "request": "r",
    },
    "a message alone": {"message": "No"},
    "FastAPI": {"detail": "No"},
    "pydantic": {
        "detail": [{"loc": ["body", "model"], "msg": "Field required", "type": "missing"}]
    },
    "a text": {"error": "No"},
    "vLLM": {"object": "error", "message": "No", "type": "BadRequestError", "code": 400},
    "a code that is a number": {"error": {"message": "No", "code": 400, "metadata": {"raw": "x"}}},
}


@for_all("form", ERRORS)
def test_an_error_of_any_form_is_written(form):
    """Its message, and the fields of its service; the tape has its form."""
    value = ERRORS[form]
    one = exchange(asks(user("hi")), [json.dumps(value).encode()], 400, JSON)
    protocol, _, draft = drafted(one)
    assert draft.decoded is None
    scenario = written(draft.spec)
    assert is_unedited(scenario, 0, draft.tape)
    http = scenario.turns[0].http
    assert http.error.message
    answer = http_error_answer(protocol, scenario.turns[0], Selection(scenario, 0, 0), 1)
    sent = json.loads(answer.data[0])
    assert sent["error"]["message"] == http.error.message
    assert sent["error"].get("metadata") == ({"raw": "x"} if "number" in form else None)
    assert sent.get("request") == ("r" if form == "further fields" else None)


def test_a_call_without_an_id_is_no_edit():
    """A call may lack an id though the YAML derives one."""
    part = {"functionCall": {"name": "look", "args": {"a": 1}}}
    candidate = {"content": {"parts": [part], "role": "model"}, "finishReason": "STOP", "index": 0}
    value = {"candidates": [candidate], "modelVersion": "g", "responseId": "r"}
    request = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).encode()
    url = "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent"
    one = exchange(request, [json.dumps(value).encode()], headers=JSON, url=url)
    _, _, draft = drafted(one)
    assert draft.decoded.problem == ""
    assert is_unedited(written(draft.spec), 0, draft.tape)


def test_a_failed_try_keeps_the_fields_of_its_service():
    """An HTTP error before the answer has them, too."""
    body = {"error": {"message": "Slow down", "code": 429, "metadata": {"provider": "P"}}}
    failed = exchange(asks(user("hi")), [json.dumps(body).encode()], 429, JSON)
    after = exchange(
        asks(user("hi")), [*chunks(*STREAMS["text with the role"]), b"data: [DONE]\n\n"]
    )
    drafting = Drafting()
    (first,) = drafting.add(failed)
    (second,) = drafting.add(after)
    assert [first.report[0].outcome, second.report[0].outcome] == ["neutral", "neutral"]
    (scenario,) = loads(dump(second.scenario), "one.yaml")
    ((tried,),) = [turn.attempts for turn in scenario.turns]
    answer = http_error_answer(detect_api(failed).protocol, tried, Selection(scenario, 0, 0), 1)
    assert json.loads(answer.data[0])["error"]["metadata"] == {"provider": "P"}


# The corpus


SUITE = CORPUS / "suite"


def answers(paths):
    """The answers of models in files, with their drafts."""
    for path in paths:
        for one in read(path):
            if isinstance(one, Unread) or one.status >= 400:
                continue
            found = detect_api(one)
            if found.protocol is not None:
                request = request_of(one, found)
                yield one, found.protocol, draft_turn(one, found, request)


@needs_corpus
@pytest.mark.slow
@for_all("kind", ["recordings", "suite"])
def test_every_turn_is_what_its_tape_decodes_to(kind):
    """The drafted YAML of each recorded answer loads, is unedited, and has no times."""
    paths = recorded_files() if kind == "recordings" else list(files([SUITE]))
    count = 0
    for answer, protocol, draft in answers(paths):
        scenario = written(draft.spec)
        assert is_unedited(scenario, 0, draft.tape), answer.source
        assert draft.spec.timing is None, answer.source
        assert not any(isinstance(p, PausePart) and p.duration for p in draft.spec.reply)
        resolved = resolve(scenario, 0, protocol.name)
        taped = recorded_turn(answer.plain(), protocol, streamed=draft.tape.streamed).turn
        assert content(resolved) == content(taped), answer.source
        count += 1
    assert count > 80


RUN = {"threadId": "t", "runId": "r"}
WITH_STATE = [
    {"type": "RUN_STARTED", **RUN},
    {"type": "STATE_SNAPSHOT", "snapshot": {"todos": []}},
    {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "May I?"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
    {"type": "CUSTOM", "name": "pixels", "value": "A" * 600},
    {
        "type": "RUN_FINISHED",
        **RUN,
        "outcome": {"type": "interrupt", "interrupts": [{"id": "i1", "reason": "approval"}]},
    },
]


def test_events_of_a_recorded_agent_are_native_parts():
    """They are written as a person would write them, a long value in a file; loaded again and
    played without the tape, they are the events that were recorded."""
    request = {**RUN, "messages": [{"id": "u1", "role": "user", "content": "Hi"}]}
    chunks = [b"data: %b\n\n" % json.dumps(event).encode() for event in WITH_STATE]
    asked = json.dumps(request).encode()
    recorded = exchange(asked, chunks, url="http://agents.test/agui")
    protocol, _, turn = drafted(recorded)
    spec, stored = with_files(turn.spec, lambda ending: f"one.1{ending}")
    native = [part.value for part in spec.reply if isinstance(part, NativePart)]
    assert native[::2] == [
        {"type": "STATE_SNAPSHOT", "snapshot": {"todos": []}},
        {"type": "RUN_FINISHED", "outcome": WITH_STATE[-1]["outcome"]},
    ]
    text = dump(Scenario("one", (replace(spec, recorded=None),), match=Match(anything=True)))
    assert "      - native:\n          file: one.1.txt\n        api: agui\n" in text
    (scenario,) = loads(text, "one.yaml", stored.__getitem__)
    options = protocol.options(request_of(recorded, detect_api(recorded)))
    reply = Reply("seed", "0" * 40, "m", options, TokenUsage(0, 0))
    played = protocol.encode_body(resolve(scenario, 0, "agui"), reply)["events"]
    for event in played:
        if "messageId" in event:
            event["messageId"] = "m1"
    assert played == WITH_STATE


def anthropic_event(type, **fields):
    text = json.dumps({"type": type, **fields})
    return f"event: {type}\ndata: {text}\n\n".encode()


def test_blocks_of_a_recorded_message_are_native_parts():
    """So are those of a stream with a summary, whose other fields are an extra."""
    block = {"type": "compaction", "content": None}
    delta = {"type": "compaction_delta", "content": "So far."}
    edits = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 2}]}
    usage = {"input_tokens": 3, "output_tokens": 5}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage}
    chunks = [
        anthropic_event("message_start", message={**message, "model": "claude-9"}),
        anthropic_event("content_block_start", index=0, content_block=block),
        anthropic_event("content_block_delta", index=0, delta=delta),
        anthropic_event("content_block_stop", index=0),
        anthropic_event(
            "message_delta",
            delta={"stop_reason": "compaction", "container": {"id": "c1"}},
            usage={**usage, "iterations": [{"type": "message", "input_tokens": 1}]},
            context_management=edits,
        ),
        anthropic_event("message_stop"),
    ]
    asked = {"model": "claude-9", "max_tokens": 9, "stream": True, "messages": [user("Hi")]}
    url = "https://api.anthropic.com/v1/messages"
    _, _, turn = drafted(exchange(json.dumps(asked).encode(), chunks, url=url))
    assert turn.spec.reply == (
        NativePart("anthropic", {"type": "compaction", "content": "So far."}),
    )
    assert (turn.spec.finish, turn.spec.finish_raw) == (None, "compaction")
    assert turn.spec.extra_for("anthropic") == {
        "finish": {"container": {"id": "c1"}},
        "end": {"context_management": edits},
        "usage": {"iterations": [{"type": "message", "input_tokens": 1}]},
    }
    assert written(turn.spec).turns[0].reply == turn.spec.reply
