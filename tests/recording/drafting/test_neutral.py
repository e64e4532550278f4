"""Recorded answers as neutral turns: what the YAML alone plays, without the tape."""

import json
from dataclasses import replace

import pytest

from mockllm.core.frame import Frame
from mockllm.framing.sse import decode
from mockllm.importers import read
from mockllm.importers.file_formats import files
from mockllm.importers.reading import Unread
from mockllm.matching.select import Selection
from mockllm.protocols.normalisation import in_envelope, normalized
from mockllm.recording.drafting.answers import draft_turn
from mockllm.recording.drafting.drafts import Drafting
from mockllm.replay.compilation.compiler import Replayer
from mockllm.replay.compilation.http_answer import http_error_answer
from mockllm.replay.loading import loads
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Match, Scenario, UsageSpec
from mockllm.tapes.conversion import detected, request_of
from mockllm.tapes.model import digest
from tests.cases import for_all
from tests.importers.corpus import CORPUS, needs_corpus, recorded_files
from tests.recording.exchanging import JSON, asks, exchange, user

CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "odd-1"}


def drafted(one):
    """The protocol, the request and the drafted turn of an exchange."""
    found = detected(one)
    request = request_of(one, found)
    return found.protocol, request, draft_turn(one, found, request)


def written(spec):
    """The turn, written as YAML and loaded again."""
    scenario = Scenario("one", (spec,), match=Match(anything=True))
    (loaded,) = loads(dump(scenario), "one.yaml")
    return loaded


def frames(protocol, answer):
    """The frames of an answer; a body in its envelope."""
    body = b"".join(answer.data)
    if answer.streamed:
        return list(decode(body))
    value = json.loads(body)
    if isinstance(value, list):
        return [Frame(json.dumps(item)) for item in value]
    return [Frame(json.dumps(in_envelope(protocol, value)))]


def played(protocol, request, spec):
    """The events of a turn as the YAML plays it."""
    scenario = written(spec)
    answer = Replayer().answer(Selection(scenario, 0, 0), request, protocol)
    return normalized(protocol, frames(protocol, answer))


def recorded(protocol, one):
    """The events of a recorded answer."""
    body = one.plain().body
    if "event-stream" in one.header("content-type") or not body.lstrip().startswith((b"{", b"[")):
        return normalized(protocol, list(decode(body)))
    value = json.loads(body)
    items = value if isinstance(value, list) else [in_envelope(protocol, value)]
    return normalized(protocol, [Frame(json.dumps(item)) for item in items])


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


@for_all("name", STREAMS)
def test_the_yaml_alone_plays_the_stream(name):
    """A stream with fields of its service is neutral, and the YAML without the tape plays it."""
    one = exchange(asks(user("hi")), [*chunks(*STREAMS[name]), b"data: [DONE]\n\n"])
    protocol, request, draft = drafted(one)
    assert (draft.outcome, draft.reason) == ("neutral", "")
    assert played(protocol, request, draft.spec) == recorded(protocol, one)


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


@pytest.mark.parametrize("name", ORDERS)
def test_events_in_another_order_are_neutral(name):
    """A service that sends events later or not at all is played so by the YAML alone, and its
    events are counted and named as usual."""
    one = responses_stream(ORDERS[name])
    protocol, request, draft = drafted(one)
    assert (draft.outcome, draft.reason) == ("neutral", "")
    assert played(protocol, request, draft.spec) == recorded(protocol, one)
    answer = Replayer().answer(Selection(written(draft.spec), 0, 0), request, protocol)
    sent = frames(protocol, answer)
    values = [json.loads(frame.data) for frame in sent]
    assert [value["sequence_number"] for value in values] == list(range(len(sent)))
    assert [frame.event for frame in sent] == [value["type"] for value in values]


def test_an_edited_finish_is_sent_wherever_it_was_repeated():
    """Where a service repeats its finish with the usage, both have the finish and the usage of the
    YAML."""
    stream = STREAMS["a finish that is repeated with the usage"]
    body = json.loads(asks(user("hi")))
    asked = json.dumps({**body, "stream_options": {"include_usage": True}}).encode()
    one = exchange(asked, [*chunks(*stream), b"data: [DONE]\n\n"])
    protocol, request, draft = drafted(one)
    edited = replace(draft.spec, finish="length", usage=UsageSpec(7, 8))
    answer = Replayer().answer(Selection(written(edited), 0, 0), request, protocol)
    values = [json.loads(f.data) for f in frames(protocol, answer) if f.data != "[DONE]"]
    finishes = [choice["finish_reason"] for value in values for choice in value["choices"]]
    assert [one for one in finishes if one] == ["length", "length"]
    assert values[-1]["usage"]["prompt_tokens"] == 7


def test_comments_stay_before_a_joined_event():
    """Comments before a first chunk that has text are sent before it again."""
    values = [delta({"role": "assistant", "content": "Hello"}), delta({}, "stop")]
    first, last = chunks(*values)
    one = exchange(asks(user("hi")), [b": PROCESSING\n\n" * 2, first, last, b"data: [DONE]\n\n"])
    protocol, request, draft = drafted(one)
    assert (draft.outcome, draft.reason) == ("neutral", "")
    answer = Replayer().answer(Selection(written(draft.spec), 0, 0), request, protocol)
    comments = [frame.comment for frame in frames(protocol, answer)]
    assert comments == ["PROCESSING", "PROCESSING", None, None, None]


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


@pytest.mark.parametrize("name", BODIES)
def test_the_yaml_alone_plays_the_body(name):
    """An answer that is not streamed, with fields of its service, is neutral as well."""
    protocol, request, draft = drafted(BODIES[name])
    assert (draft.outcome, draft.reason) == ("neutral", "")
    assert played(protocol, request, draft.spec) == recorded(protocol, BODIES[name])


def test_an_edited_text_keeps_the_fields_of_the_service():
    """Where the text is edited, the fields of the service are still sent, and its other names of
    the text have the edited one."""
    protocol, request, draft = drafted(BODIES["both"])
    text = dump(Scenario("one", (draft.spec,), match=Match(anything=True)))
    (scenario,) = loads(text.replace("reasoning: H\n", "reasoning: Think\n"), "one.yaml")
    answer = Replayer().answer(Selection(scenario, 0, 0), request, protocol)
    message = json.loads(answer.data[0])["choices"][0]["message"]
    assert message["reasoning"] == "Think"
    assert message["reasoning_details"] == [{"text": "Think"}]
    assert "reasoning_content" not in message


def test_a_recorded_body_says_nothing_of_a_stream():
    """The fields of a recorded body are not sent in a stream of the same turn."""
    protocol, request, draft = drafted(BODIES["reasoning"])
    scenario = written(draft.spec)
    answer = Replayer().answer(Selection(scenario, 0, 0), replace(request, stream=True), protocol)
    assert b"provider" not in b"".join(answer.data)
    assert b"Hm" in b"".join(answer.data)


def test_extra_fields_belong_to_the_answer():
    """An edited extra is an edited answer, so that the tape is played no more; the extra of another
    API changes nothing."""
    _, _, draft = drafted(BODIES["reasoning"])
    spec = draft.spec
    other = replace(spec, extra=(*spec.extra, ("gemini", {"body": {"remove": ["/a"]}})))
    assert digest(other, "chat") == digest(spec, "chat")
    edited = replace(spec, extra=(("chat", {"body": {"remove": ["/a"]}}),))
    assert digest(edited, "chat") != digest(spec, "chat")


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


@pytest.mark.parametrize("form", ERRORS)
def test_an_error_of_another_form_is_neutral(form):
    """The body of an HTTP error with fields of its service, or of another form than that of its
    API, is sent again as it was recorded."""
    value = ERRORS[form]
    one = exchange(asks(user("hi")), [json.dumps(value).encode()], 400, JSON)
    protocol, _, draft = drafted(one)
    assert (draft.outcome, draft.reason) == ("neutral", "")
    scenario = written(draft.spec)
    http = scenario.turns[0].http
    answer = http_error_answer(protocol, http, Selection(scenario, 0, 0), 1)
    sent = json.loads(answer.data[0])
    assert normalized(protocol, [Frame(json.dumps(sent))]) == recorded(protocol, one)


def test_a_call_without_an_id_gets_none():
    """A turn is neutral where the YAML plays the recorded answer, in which a call may lack an id
    though the YAML derives one."""
    part = {"functionCall": {"name": "look", "args": {"a": 1}}}
    candidate = {"content": {"parts": [part], "role": "model"}, "finishReason": "STOP", "index": 0}
    value = {"candidates": [candidate], "modelVersion": "g", "responseId": "r"}
    request = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).encode()
    url = "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent"
    one = exchange(request, [json.dumps(value).encode()], headers=JSON, url=url)
    protocol, parsed, draft = drafted(one)
    assert (draft.outcome, draft.reason) == ("neutral", "")
    assert played(protocol, parsed, draft.spec) == recorded(protocol, one)


def test_an_edited_message_is_sent_in_the_form_of_the_service():
    """The message of an error is copied to where the service has it."""
    body = json.dumps({"status": 400, "detail": "No such model"}).encode()
    one = exchange(asks(user("hi")), [body], 400, JSON)
    protocol, _, draft = drafted(one)
    http = replace(draft.spec.http, error=replace(draft.spec.http.error, message="Edited"))
    scenario = written(replace(draft.spec, http=http))
    answer = http_error_answer(protocol, scenario.turns[0].http, Selection(scenario, 0, 0), 1)
    assert json.loads(answer.data[0]) == {"status": 400, "detail": "Edited"}


def test_a_failed_try_keeps_the_fields_of_its_service():
    """An HTTP error before the answer is played as it was recorded from the YAML alone, too."""
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
    protocol = detected(failed).protocol
    answer = http_error_answer(protocol, tried, Selection(scenario, 0, 0), 1)
    assert normalized(protocol, frames(protocol, answer)) == recorded(protocol, failed)


# The corpus


SUITE = CORPUS / "suite"


def neutral_exchanges(paths):
    """The exchanges whose drafts are neutral, with their drafts."""
    for path in paths:
        for one in read(path):
            if isinstance(one, Unread) or one.status >= 400:
                continue
            found = detected(one)
            if found.protocol is None:
                continue
            request = request_of(one, found)
            draft = draft_turn(one, found, request)
            if draft.outcome == "neutral":
                yield one, found.protocol, request, draft


@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["recordings", "suite"])
def test_neutral_is_what_the_yaml_plays(kind):
    """Each recorded answer of the corpus that is reported as neutral is played as recorded from
    the YAML alone."""
    paths = recorded_files() if kind == "recordings" else list(files([SUITE]))
    wrong = [
        one.source
        for one, protocol, request, draft in neutral_exchanges(paths)
        if played(protocol, request, draft.spec) != recorded(protocol, one)
    ]
    assert wrong == []
