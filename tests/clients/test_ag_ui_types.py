"""AG-UI over HTTP, held to the official Python types by a small client made of them."""

from __future__ import annotations

import ag_ui.core
import pytest

from mockllm.replay.loading import load
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread
from tests.clients.ag_ui_client import RunError, ask, events, run_input
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
    """Every event is strictly of the official types, every answer is understood, and the
    history of messages is."""
    drive(converse(scenario, API), lambda request: ask(http, f"{run.root}/agui", request))
    run.expects_plays(plays(scenario, API))


# Automatic answers repeat what was said.
WRITTEN = [scenario for scenario in LONGER if scenario.name != "auto"]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", WRITTEN, ids=lambda s: s.name)
def test_conversation_named_by_path(http, run, scenario):
    """With a scenario in the path, what the user says first does not matter."""

    def asking(request: Json) -> Answer:
        other = {"role": "user", "content": "Nobody matches this."}
        messages = [other, *request["messages"][1:]]
        return ask(http, f"{run.root}/agui/{scenario.name}", {**request, "messages": messages})

    drive(converse(scenario, API), asking)
    run.expects_plays(plays(scenario, API))


def without_reasoning(request: Json, answer: Answer, new: list[Json]) -> Json:
    kept = [message for message in answer.echo if message.role != "reasoning"]
    return whole_history(request, Answer(answer.seen, kept, answer.id), new)


def one_message_a_call(request: Json, answer: Answer, new: list[Json]) -> Json:
    """The history of clients that put each call into a message of its own."""
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
    """Clients that keep less, or cut it otherwise, are understood as well."""
    talk = converse(SCENARIOS[name], API, carry=carry)
    drive(talk, lambda request: ask(http, f"{run.root}/agui", request))
    run.expects_plays(plays(SCENARIOS[name], API))


def test_two_runs_have_messages_of_their_own(http, run):
    """Clients append to messages whose id they know, so another run has other ids."""
    request = first(SCENARIOS["tick-tock"], API)
    ids: set[str] = set()
    for number in range(3):
        said = {"role": "user", "content": opening(SCENARIOS["tick-tock"])}
        later = {**request, "messages": [said] * (number + 1)}
        (message,) = ask(http, f"{run.root}/agui/tick-tock", later).echo
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


def test_steps_and_state(http, tmp_path):
    """What only AG-UI can say is written as frames, and arrives in its place."""
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
    """A run that fails says so, after the text before."""
    with pytest.raises(RunError, match="The model stopped unexpectedly") as caught:
        ask(http, f"{run.root}/agui", first(SCENARIOS["stream-error"], API))
    assert caught.value.text == "The first half of the answer is"


def test_rate_limit(http, run):
    """A refused run can be tried again."""
    run.expects("error", "error", "played")
    request = first(SCENARIOS["rate-limited"], API)
    with pytest.raises(RunError) as caught:
        ask(http, f"{run.root}/agui", request, retries=0)
    assert caught.value.status == 429
    assert ask(http, f"{run.root}/agui", request).seen.text == "Third time lucky."


def test_continuation_error(http, run):
    """An error in answer to tool results is an error of the next run."""
    run.expects("played", "error")
    talk = converse(SCENARIOS["continuation-error"], API, failing=True)
    url = f"{run.root}/agui"
    following = talk.send(ask(http, url, next(talk)))
    with pytest.raises(RunError, match="had an error while processing") as caught:
        ask(http, url, following)
    assert caught.value.status == 500


def test_nothing_matches(http, run):
    """An unknown scenario is told with the one that was perhaps meant."""
    run.expects("unmatched")
    with pytest.raises(RunError, match="Did you mean 'secret-numbers'") as caught:
        ask(http, f"{run.root}/agui/secret-numberz", first(SCENARIOS["auto"], API))
    assert caught.value.status == 404


@pytest.mark.parametrize("field", ["threadId", "runId", "messages"])
def test_input_that_is_not_of_the_types(http, run, field):
    """What the types demand is demanded, with the name of the field."""
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
    talk = converse(SCENARIOS["secret-numbers"], API)
    following = talk.send(ask(http, url, next(talk)))
    following["messages"].pop()
    with pytest.raises(RunError, match="call_bob"):
        ask(http, url, following)


def test_sessions_are_apart(http, server, run):
    """Two sessions count their tries apart."""
    run.expects("error", "error", "played")
    other = Run(server, f"{run.name}-other")
    other.expects("error", "error", "played")
    request = first(SCENARIOS["rate-limited"], API)
    for _ in range(2):
        for each in (run, other):
            with pytest.raises(RunError):
                ask(http, f"{each.root}/agui", request, retries=0)
    for each in (run, other):
        seen = ask(http, f"{each.root}/agui", request).seen
        assert seen == expected(SCENARIOS["rate-limited"], 0, API)
    other.judge()
