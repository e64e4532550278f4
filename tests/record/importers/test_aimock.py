"""aimock's fixture files, imported as scenarios."""

import json

import pytest

from mockllm.core.errors import UsageError
from mockllm.core.http import NO_TARGET
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.loading import loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.record.importers import aimock
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Match, ResultCondition, TextCondition
from mockllm.wire.protocols import PROTOCOLS


def read(tmp_path, *fixtures, **others):
    path = tmp_path / "fixtures.json"
    path.write_text(json.dumps({"fixtures": fixtures, **others}))
    drafts = aimock.read(ForeignFile(path))
    for draft in drafts:
        if draft.scenario is not None:
            assert loads(dump(draft.scenario)) == (draft.scenario,)
            assert not draft.recorded
    return drafts


def fixture(response, match=None, **others):
    return {"match": match or {"userMessage": "hello"}, "response": response, **others}


def only(drafts):
    (draft,) = drafts
    return draft.scenario


def skipped(drafts):
    return [
        line.description for draft in drafts for line in draft.report if line.outcome == "skipped"
    ]


def answer(scenario, messages, **body):
    """What the scenario answers over Chat Completions."""
    request = {"model": "m", "messages": messages, **body}
    body = json.dumps(request).encode()
    player = Player([scenario])
    found = player.play(ApiCall(PROTOCOLS["chat"], NO_TARGET, {}, body, Session("default"))).answer
    return found.status, json.loads(b"".join(found.data))


def user(text):
    return [{"role": "user", "content": text}]


def test_text_and_its_conditions(tmp_path):
    """A fixture becomes a scenario with its name, conditions and text."""
    first, other = read(
        tmp_path,
        fixture({"content": "Hi!"}),
        fixture({"content": {"a": [1, None]}}, {"userMessage": "Gib mir JSON"}),
    )
    assert first.scenario.name == "hello"
    assert first.scenario.match == Match(user=TextCondition("contains", "hello"))
    assert first.scenario.apis == ("chat", "responses", "anthropic", "gemini")
    status, body = answer(first.scenario, user("oh hello you"))
    assert (status, body["choices"][0]["message"]["content"]) == (200, "Hi!")
    _, body = answer(other.scenario, user("Gib mir JSON."))
    assert body["choices"][0]["message"]["content"] == '{"a":[1,null]}'
    assert [line.source.rpartition("#")[2] for line in (*first.report, *other.report)] == ["1", "2"]


def test_all_conditions(tmp_path):
    """System prompt, model with its date, tools and headers become conditions."""
    match = {
        "userMessage": "a",
        "systemMessage": ["one.", "two"],
        "model": "gpt-4o",
        "toolName": "f",
        "context": "c",
        "responseFormat": "json_object",
    }
    found = only(read(tmp_path, fixture({"content": "x"}, match))).match
    assert found.model == "gpt-4o*"
    assert found.tools == ("f",)
    assert found.headers == (("x-aimock-context", TextCondition("equals", "c")),)
    assert found.body == {"response_format": {"type": "json_object"}}
    assert found.system == TextCondition("regex", r"(?s)\A(?=.*one\.)(?=.*two)")
    one = only(read(tmp_path, fixture({"content": "x"}, {"systemMessage": "one."})))
    assert one.match == Match(system=TextCondition("contains", "one."))
    assert answer(one, [{"role": "system", "content": "one. two"}, *user("b")])[0] == 200


def test_no_condition(tmp_path):
    """A fixture without conditions answers requests that nothing else matches."""
    scenario = only(read(tmp_path, {"match": {}, "response": {"content": "x"}}))
    assert (scenario.match, scenario.name) == (Match(anything=True), "aimock")


def test_calls(tmp_path):
    """Calls keep names, ids and arguments, written as text or as a value."""
    calls = [
        {"name": "f", "arguments": '{"a": 1}', "id": "call_a"},
        {"name": "g", "arguments": {"b": [1]}},
        {"name": "h", "arguments": {}},
        {"name": "i", "arguments": '{"broken'},
    ]
    scenario = only(read(tmp_path, fixture({"toolCalls": calls, "content": "Wait."})))
    message = answer(scenario, user("hello"))[1]["choices"][0]["message"]
    assert message["content"] == "Wait."
    made = [(c["function"]["name"], c["function"]["arguments"]) for c in message["tool_calls"]]
    assert made == [("f", '{"a": 1}'), ("g", '{"b":[1]}'), ("h", "{}"), ("i", '{"broken')]
    assert message["tool_calls"][0]["id"] == "call_a"
    assert [part.malformed for part in scenario.turns[0].reply[1:]] == [False, False, False, True]


@pytest.mark.parametrize(
    ("arguments", "malformed"), [('{"a": NaN}', True), ('{"a": "\\ud800"}', False)]
)
def test_arguments_that_python_reads(tmp_path, arguments, malformed):
    """Arguments that Python reads as JSON but scenarios refuse make a scenario that loads."""
    scenario = only(read(tmp_path, fixture({"toolCalls": [{"name": "f", "arguments": arguments}]})))
    (call,) = scenario.turns[0].reply
    assert (call.arguments, call.malformed) == (arguments, malformed)


def test_blocks_keep_their_order(tmp_path):
    """Blocks go before content and calls, and a call may come before the text."""
    blocks = [{"type": "toolCall", "name": "f", "arguments": "{}"}, {"type": "text", "text": "T"}]
    response = {"blocks": blocks, "content": "other", "reasoning": "Hm", "reasoningSignature": "s"}
    kinds = [type(part).__name__ for part in only(read(tmp_path, fixture(response))).turns[0].reply]
    assert kinds == ["ReasoningPart", "ToolPart", "TextPart"]


def test_usage_finish_and_what_is_lost(tmp_path):
    """Tokens and finish reason are kept; keys without a counterpart are reported by name."""
    response = {
        "content": "x",
        "finishReason": "length",
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 7,
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
        "id": "chatcmpl-1",
        "webSearches": ["q"],
    }
    (draft,) = read(tmp_path, fixture(response, chaos={"dropRate": 1}))
    choice = answer(draft.scenario, user("hello"))[1]
    assert choice["choices"][0]["finish_reason"] == "length"
    assert choice["usage"]["prompt_tokens"] == 5
    assert choice["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2
    assert draft.report[0].description == "turn 1 of hello; not kept: id, webSearches, chaos"


TIMINGS = {
    "profile": (
        {"streamingProfile": {"ttft": 200, "tps": 40, "jitter": 0.1}},
        (200_000, 25_000, 0.1),
    ),
    "latency": ({"latency": 5}, (5_000, 5_000, None)),
    "recorded": (
        {"recordedTimings": {"ttftMs": 100, "interChunkDelaysMs": [10, 30]}, "replaySpeed": 2},
        (50_000, 10_000, None),
    ),
}


@pytest.mark.parametrize("name", TIMINGS)
def test_timing(tmp_path, name):
    """Milliseconds and tokens a second become pauses."""
    entry, expected = TIMINGS[name]
    timing = only(read(tmp_path, fixture({"content": "x"}, **entry))).turns[0].timing
    assert (timing.ttft, timing.every, timing.jitter) == expected


def test_chunks(tmp_path):
    """aimock cuts texts every so many characters, 20 by default."""
    scenario = only(read(tmp_path, fixture({"content": "x" * 45})))
    assert scenario.defaults.split == 20
    scenario = only(read(tmp_path, fixture({"content": "x" * 45}, chunkSize=7)))
    assert scenario.turns[0].reply[0].split == 7


def test_errors(tmp_path):
    """An error is that HTTP error; one before an answer is an attempt at it."""
    error = {"error": {"message": "Slow down", "type": "rate_limit_error"}, "status": 429}
    match = {"userMessage": "hello", "sequenceIndex": 0}
    alone = only(read(tmp_path, fixture({**error, "retryAfter": 3}, match)))
    status, body = answer(alone, user("hello"))
    assert (status, body["error"]["message"]) == (429, "Slow down")
    assert alone.turns[0].http.retry_after == 3_000_000
    later = fixture({"content": "x"}, {**match, "sequenceIndex": 1})
    draft = read(tmp_path, later, fixture(error, match))[0]
    (turn,) = draft.scenario.turns
    assert [attempt.http.status for attempt in turn.attempts] == [429]
    assert [(line.source[-1], line.turn) for line in draft.report] == [("2", 0), ("1", 0)]


def test_turns_of_one_conversation(tmp_path):
    """Fixtures that number their requests become the turns of one scenario, in order."""
    match = {"userMessage": "plan", "model": "gpt-4o"}
    call = {"toolCalls": [{"name": "f", "arguments": "{}", "id": "c"}]}
    scenario = only(
        read(
            tmp_path,
            fixture({"content": "Done"}, {**match, "turnIndex": 1, "hasToolResult": True}),
            fixture(call, {**match, "turnIndex": 0, "hasToolResult": False}),
        )
    )
    assert [type(turn.reply[0]).__name__ for turn in scenario.turns] == ["ToolPart", "TextPart"]


def test_a_result_continues_after_its_call(tmp_path):
    """A fixture for a call's result becomes the turn after that call, found by its id; a call
    without an id gets one."""
    call = {"toolCalls": [{"name": "paint", "arguments": {"colour": "blue"}}]}
    result = {"toolCallId": "call_p", "toolResultContains": "ok"}
    scenario = only(
        read(tmp_path, fixture(call), fixture({"content": "Painted."}, result)),
    )
    assert scenario.turns[0].reply[0].id == "call_p"
    expected = (("call_p", ResultCondition(TextCondition("contains", "ok"))),)
    assert scenario.turns[1].request.results == expected
    echo = {"id": "call_p", "type": "function"}
    made = {**echo, "function": {"name": "paint", "arguments": '{"colour":"blue"}'}}
    tail = [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "call_p", "content": "it is ok"},
    ]
    body = answer(scenario, [*user("hello"), *tail])[1]
    assert body["choices"][0]["message"]["content"] == "Painted."


SKIPPED = {
    "answers with 'embedding'": [fixture({"embedding": [0.1]})],
    "requests of 'image'": [fixture({"content": "x"}, {"endpoint": "image"})],
    "has no 'response'": [{"match": {}}],
    "has no 'match'": ["x"],
    "no 'content', no 'toolCalls'": [fixture({})],
    "a block is neither": [fixture({"blocks": [{"type": "image"}]})],
    "a tool call has no name": [fixture({"toolCalls": [{"arguments": "{}"}]})],
    "the status 200": [fixture({"error": {}, "status": 200})],
    "no fixture before it makes the call 'c'": [fixture({"content": "x"}, {"toolCallId": "c"})],
    "#1 answers the same requests first": [fixture({"content": "x"}), fixture({"content": "y"})],
    "a call that no fixture here makes": [
        fixture({"content": "x"}, {"userMessage": "u", "hasToolResult": True})
    ],
}


@pytest.mark.parametrize("pattern", SKIPPED)
def test_skipped_fixtures(tmp_path, pattern):
    """A fixture that cannot become a turn is reported with its reason."""
    (reason,) = skipped(read(tmp_path, *SKIPPED[pattern]))
    assert pattern in reason


def test_fixtures_for_ag_ui(tmp_path):
    """Text and events for AG-UI become scenarios that play over AG-UI only."""
    events = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TOOL_CALL_START", "toolCallId": "tc", "toolCallName": "f"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "tc", "delta": '{"a":'},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "tc", "delta": "1}"},
        {"type": "TOOL_CALL_END", "toolCallId": "tc"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]

    fixtures = [
        {"match": {"message": "hello"}, "text": "Hi"},
        {"match": {"message": "search"}, "events": events, "delayMs": 3},
        {"match": {"message": "none"}},
        {"match": {"stateKey": "k"}, "text": "x"},
        {"match": {"message": "odd"}, "events": [{"type": "NO_SUCH_EVENT"}]},
    ]
    first, second, *others = read(tmp_path, agui={"fixtures": fixtures})
    assert first.scenario.apis == second.scenario.apis == ("agui",)
    (part,) = second.scenario.turns[0].reply
    assert (part.name, part.id, part.arguments, part.split) == (
        "f",
        "tc",
        '{"a":1}',
        4,
    )
    reasons = skipped(others)
    assert "neither 'text' nor 'events'" in reasons[0]
    assert "the condition 'stateKey'" in reasons[1]


def test_files_without_fixtures(tmp_path):
    """An empty file, or one that only names another, is an error that names the file."""
    path = tmp_path / "aimock.json"
    path.write_text('{"llm": {"fixtures": "other.json"}}')
    with pytest.raises(UsageError, match=r"import 'other\.json'"):
        aimock.read(ForeignFile(path))
    path.write_text('{"fixtures": []}')
    with pytest.raises(UsageError, match="has no fixtures"):
        aimock.read(ForeignFile(path))
