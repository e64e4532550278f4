"""AG-UI over HTTP, validated by a small client that is built with the official Python types."""

from __future__ import annotations

import ag_ui.core
import pytest

from mockllm.play.replay.loading import load
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.ag_ui_client import RunError, events, run_input, send
from tests.clients.conftest import Run
from tests.clients.conversation import (
    LONGER,
    PLAIN,
    SCENARIOS,
    converse,
    drive,
    first,
    opening,
    plays,
    whole_history,
)
from tests.clients.dialects import Json
from tests.clients.oracle import Answer, expected

API = "agui"

every_plain = pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)


@pytest.mark.slow
@every_plain
def test_conversation(http, run, scenario):
    """Every event is valid, the client reads every answer, and the server reads its history."""
    drive(converse(scenario, API), lambda request: send(http, f"{run.root}/agui", request))
    run.expects_plays(plays(scenario, API))


# Automatic answers repeat the user message, which differs here.
WRITTEN = [scenario for scenario in LONGER if scenario.name != "auto"]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", WRITTEN, ids=lambda s: s.name)
def test_conversation_named_by_path(http, run, scenario):
    """A scenario in the path is played for any user message."""

    def send_with_other_text(request: Json) -> Answer:
        other = {"role": "user", "content": "No scenario matches this."}
        messages = [other, *request["messages"][1:]]
        return send(http, f"{run.root}/agui/{scenario.name}", {**request, "messages": messages})

    drive(converse(scenario, API), send_with_other_text)
    run.expects_plays(plays(scenario, API))


def without_reasoning(request: Json, answer: Answer, new: list[Json]) -> Json:
    kept = [message for message in answer.echo if message.role != "reasoning"]
    return whole_history(request, Answer(answer.seen, kept, answer.id), new)


def one_message_a_call(request: Json, answer: Answer, new: list[Json]) -> Json:
    """The history of clients that write each call as a separate message."""
    split = []
    for message in answer.echo:
        calls = getattr(message, "tool_calls", None) or ()
        if message.role != "assistant" or len(calls) < 2:
            split.append(message)
            continue
        split += [
            ag_ui.core.AssistantMessage(id=f"{message.id}-{i}", tool_calls=[call])
            for i, call in enumerate(calls)
        ]
    return whole_history(request, Answer(answer.seen, split, answer.id), new)


@pytest.mark.parametrize("carry", [without_reasoning, one_message_a_call])
@pytest.mark.parametrize("name", ["secret-numbers", "parallel-tools", "text-and-tools"])
def test_histories_of_other_clients(http, run, name, carry):
    """Histories without reasoning, or with one message for each call, are read as well."""
    conversation = converse(SCENARIOS[name], API, carry=carry)
    drive(conversation, lambda request: send(http, f"{run.root}/agui", request))
    run.expects_plays(plays(SCENARIOS[name], API))


def test_message_ids_differ_in_each_run(http, run):
    """Message ids differ in each run, since clients append to a message whose id they know."""
    request = first(SCENARIOS["tick-tock"], API)
    ids: set[str] = set()
    for number in range(3):
        message = {"role": "user", "content": opening(SCENARIOS["tick-tock"])}
        later = {**request, "messages": [message] * (number + 1)}
        (message,) = send(http, f"{run.root}/agui/tick-tock", later).echo
        assert message.id not in ids
        ids.add(message.id)


FRAMES = """
scenario: agent
match: any
turns:
  - reply:
      - frame: {data: {type: STEP_STARTED, stepName: look}}
        api: agui
      - text: Done.
      - frame: {data: {type: STATE_SNAPSHOT, snapshot: {done: 1}}}
        api: agui
      - frame: {data: {type: STATE_DELTA, delta: [{op: replace, path: /done, value: 2}]}}
        api: agui
      - frame: {data: {type: STEP_FINISHED, stepName: look}}
        api: agui
      - frame:
          data:
            type: MESSAGES_SNAPSHOT
            messages: [{id: m, role: assistant, content: Done.}]
        api: agui
      - frame: {data: {type: CUSTOM, name: note, value: [1]}}
        api: agui
"""


def test_frames_are_sent_in_position(http, tmp_path):
    """Frames of AG-UI events are sent in their position in the reply."""
    (tmp_path / "agent.yaml").write_text(FRAMES)
    body = run_input(first(SCENARIOS["auto"], API)).model_dump(by_alias=True, exclude_none=True)
    with ServerThread(load([tmp_path]), ServerOptions(speed=0)) as server:
        answer = http.post(f"{server.url}/agui", json=body)
    seen = [event.type.value for event in events(answer.text)]
    assert seen == [
        "RUN_STARTED",
        "STEP_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "STATE_SNAPSHOT",
        "STATE_DELTA",
        "STEP_FINISHED",
        "MESSAGES_SNAPSHOT",
        "CUSTOM",
        "RUN_FINISHED",
    ]


# Errors


def test_error_inside_the_stream(http, run):
    """A failing run has its text, and then the error."""
    with pytest.raises(RunError, match="The model stopped unexpectedly") as caught:
        send(http, f"{run.root}/agui", first(SCENARIOS["stream-error"], API))
    assert caught.value.text == "The first half of the answer is"


def test_rate_limit(http, run):
    """A run that was refused with status 429 can be retried."""
    run.expects("error", "error", "played")
    request = first(SCENARIOS["rate-limited"], API)
    with pytest.raises(RunError) as caught:
        send(http, f"{run.root}/agui", request, retries=0)
    assert caught.value.status == 429
    assert send(http, f"{run.root}/agui", request).seen.text == "Third time lucky."


def test_continuation_error(http, run):
    """An HTTP error after tool results fails the next run."""
    run.expects("played", "error")
    conversation = converse(SCENARIOS["continuation-error"], API, failing=True)
    url = f"{run.root}/agui"
    following = conversation.send(send(http, url, next(conversation)))
    with pytest.raises(RunError, match="had an error while processing") as caught:
        send(http, url, following)
    assert caught.value.status == 500


def test_nothing_matches(http, run):
    """The error for an unknown scenario suggests the nearest."""
    run.expects("unmatched")
    with pytest.raises(RunError, match="did you mean 'secret-numbers'") as caught:
        send(http, f"{run.root}/agui/secret-numberz", first(SCENARIOS["auto"], API))
    assert caught.value.status == 404


@pytest.mark.parametrize("field", ["threadId", "runId", "messages"])
def test_a_missing_field_is_refused(http, run, field):
    """A missing required field is refused, and the error names it."""
    run.expects("invalid")
    body = run_input(first(SCENARIOS["auto"], API)).model_dump(by_alias=True, exclude_none=True)
    del body[field]
    answer = http.post(f"{run.root}/agui", json=body)
    assert answer.status_code == 422
    assert field in answer.text


def test_missing_results_are_refused(http, run):
    """A run with a result for only one of two calls is refused."""
    run.expects("played", "invalid")
    url = f"{run.root}/agui"
    conversation = converse(SCENARIOS["secret-numbers"], API)
    following = conversation.send(send(http, url, next(conversation)))
    following["messages"].pop()
    with pytest.raises(RunError, match="call_bob"):
        send(http, url, following)


def test_sessions_count_attempts_separately(http, server, run):
    """Each session counts its own attempts."""
    run.expects("error", "error", "played")
    other = Run(server, f"{run.name}-other")
    other.expects("error", "error", "played")
    request = first(SCENARIOS["rate-limited"], API)
    for _ in range(2):
        for each in (run, other):
            with pytest.raises(RunError):
                send(http, f"{each.root}/agui", request, retries=0)
    for each in (run, other):
        seen = send(http, f"{each.root}/agui", request).seen
        assert seen == expected(SCENARIOS["rate-limited"], 0, API)
    other.judge()
