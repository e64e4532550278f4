"""What clients of WebSockets do wrong in their conversations, by the names of the invariants."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from mockllm.checking.conversations.invariants import REMARKS
from mockllm.checking.rules import CONVERSATION_INVARIANTS, table
from mockllm.serve.server import sockets as server_sockets
from mockllm.wire import protocols
from tests.serve.server.sockets import test_live as live
from tests.serve.server.sockets import test_realtime as realtime
from tests.serve.server.sockets.test_sockets import opened
from tests.timeouts import GIVE_UP

WIRE = Path(protocols.__file__).parent
SOCKETS = Path(server_sockets.__file__)
RESPONSES = "/v1/responses"
SPOKEN = """
scenario: spoken
match: any
turns:
  - reply: {text: one two three four five, split: words, every: 10m}
  - reply: {text: six}
  - reply: {text: seven}
"""


def verdict(served, **parameters):
    query = {"allow_unplayed": "true", **parameters}
    return httpx.get(f"{served.url}/_mockllm/verify", params=query, timeout=GIVE_UP).json()


def speak_to(served):
    return opened(served.url, realtime.PATH)


def nonsense(serve):
    served = serve(realtime.TALK)
    with speak_to(served) as socket:
        client = realtime.Client(socket)
        client.refused("response.make")
        client.say()
        client.answer()
    return served


def nonsense_over_responses(serve):
    served = serve(realtime.TALK)
    with opened(served.url, RESPONSES) as socket:
        for text in ('{"type": "response.make"}', "[1]", "{"):
            socket.send(text)
            assert json.loads(socket.recv(GIVE_UP))["type"] == "error"
    return served


def no_setup(serve):
    served = serve(live.TALK)
    with live.opened(served.url) as socket:
        live.say(socket)
        live.closes(socket)
    return served


def asks_twice(serve):
    served = serve(realtime.SLOW)
    with speak_to(served) as socket:
        client = realtime.Client(socket)
        client.say()
        client.ask("response.output_text.delta")
        assert client.refused("response.create")[0] == "conversation_already_has_active_response"
    return served


def result_after_a_reconnection(serve):
    served = serve(live.TOOLS)
    with live.opened(served.url) as socket:
        live.begin(socket)
        live.say(socket)
        assert "toolCall" in live.receive(socket)
    with live.opened(served.url) as socket:
        live.begin(socket)
        live.send(socket, toolResponse={"functionResponses": [{"id": "c1", "response": {}}]})
        live.closes(socket)
    return served


def result_after_a_reconnection_to_realtime(serve):
    served = serve(live.TOOLS)
    output = {"type": "function_call_output", "call_id": "c1", "output": "12"}
    with speak_to(served) as socket:
        client = realtime.Client(socket)
        client.say()
        client.ask("response.done")
    with speak_to(served) as socket:
        client = realtime.Client(socket)
        client.refused("conversation.item.create", item=output)
    return served


def chain_of_another_connection(serve):
    served = serve(realtime.TALK)
    previous = {}
    for _ in range(2):
        with opened(served.url, RESPONSES) as socket:
            asked = {"model": "gpt-5", "input": "hi", "store": False, **previous}
            socket.send(json.dumps({"type": "response.create", **asked}))
            while (event := json.loads(socket.recv(GIVE_UP)))["type"] not in (
                "response.completed",
                "error",
            ):
                pass
        if event["type"] == "response.completed":
            previous = {"previous_response_id": event["response"]["id"]}
    assert event["error"]["code"] == "previous_response_not_found"
    return served


def sound_without_a_turn(serve):
    served = serve(live.SPOKEN)
    with live.opened(served.url) as socket:
        manual = {"automaticActivityDetection": {"disabled": True}}
        live.begin(socket, realtimeInputConfig=manual)
        live.speak(socket, 100)
        live.send(socket, realtimeInput={"activityEnd": {}})
        live.rest(socket)
    return served


def interrupts(served, *, heard):
    """Cancels a spoken answer, says how much of it was heard, and goes on."""
    with speak_to(served) as socket:
        client = realtime.Client(socket, "audio")
        client.say()
        added = client.ask("response.output_audio.delta")
        item = next(e["item"]["id"] for e in added if e["type"] == "response.output_item.added")
        client.send("response.cancel")
        client.until("response.done")
        if heard is not None:
            client.send(
                "conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=heard
            )
            client.until("conversation.item.truncated", "error")
        client.say("And?")
        client.ask("response.done")
    return served


def truncates_beyond(serve):
    return interrupts(serve(SPOKEN), heard=10**6)


def does_not_truncate(serve):
    return interrupts(serve(SPOKEN), heard=None)


def answers_what_was_cancelled(serve):
    served = serve(live.GIVEN_UP)
    with live.opened(served.url) as socket:
        live.begin(socket)
        live.say(socket)
        assert "toolCall" in live.receive(socket)
        live.say(socket, "Never mind")
        live.rest(socket)
        live.rest(socket)
        live.send(socket, toolResponse={"functionResponses": [{"id": "c1", "response": {}}]})
    return served


def brings_no_results(serve):
    served = serve(live.GIVEN_UP)
    with speak_to(served) as socket:
        client = realtime.Client(socket)
        client.say()
        client.ask("rate_limits.updated")
        client.say("And?")
        assert client.answer() == "Never mind."
    return served


def answers_again(serve):
    served = serve(live.TOOLS)
    results = [{"id": id, "response": {"output": "12 9"}} for id in ("c1", "c2")]
    with live.opened(served.url) as socket:
        live.begin(socket)
        live.say(socket)
        assert "toolCall" in live.receive(socket)
        live.send(socket, toolResponse={"functionResponses": results[:1]})
        live.send(socket, toolResponse={"functionResponses": results[:1]})
        with pytest.raises(ConnectionClosed):
            live.rest(socket)
    return served


BAD = {
    brings_no_results: "results-come",
    nonsense: "message-known",
    nonsense_over_responses: "message-known",
    no_setup: "message-known",
    asks_twice: "one-response",
    result_after_a_reconnection: "context-kept",
    result_after_a_reconnection_to_realtime: "context-kept",
    chain_of_another_connection: "context-kept",
    sound_without_a_turn: "sound-in-turn",
    truncates_beyond: "truncation-heard",
    does_not_truncate: "truncation-sent",
    answers_what_was_cancelled: "cancelled-unanswered",
    answers_again: "answer-each-once",
}


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
def test_a_mistake_has_a_name(serve, bad):
    """The verdict names it, in a sentence with what the service says; a remark makes no verdict
    bad, unless it is required."""
    served = bad(serve)
    name = BAD[bad]
    found = verdict(served)
    kind = "remarks" if name in REMARKS else "violations"
    assert {one["invariant"] for one in found[kind]} == {name}, found
    assert found["good"] is (name in REMARKS)
    required = verdict(served, require=name)
    assert {one["invariant"] for one in required["violations"]} == {name}
    journal = {entry["number"]: entry for entry in served.journal()}
    for one in found[kind]:
        (*problems,) = journal[one["exchange"]]["problems"]
        assert one["message"].startswith(tuple(problems)) or name == "results-come"


def test_who_truncates_what_was_heard_is_right(serve):
    served = interrupts(serve(SPOKEN), heard=20)
    found = verdict(served)
    assert (found["verdict"], found["remarks"]) == ("good", [])


def test_a_result_before_the_end_of_an_answer_is_right(serve):
    """Clients run a tool as soon as its call is whole; the item of the call comes before it."""
    served = serve(live.TOOLS)
    with speak_to(served) as socket:
        client = realtime.Client(socket)
        client.say()
        client.send("response.create")
        for id, output in (("c1", "12"), ("c2", "9")):
            client.until("response.function_call_arguments.done")
            item = {"type": "function_call_output", "call_id": id, "output": output}
            client.send("conversation.item.create", item=item)
        client.until("rate_limits.updated")
        assert client.answer() == "It is twelve."
    assert verdict(served)["verdict"] == "good"


def test_who_lets_a_tool_run_on_is_right(serve):
    """The result may come after the next answer, which the user's voice may ask for."""
    served = serve(live.GIVEN_UP + "  - reply: {text: Twelve.}\n")
    with speak_to(served) as socket:
        client = realtime.Client(socket)
        client.say()
        client.ask("rate_limits.updated")
        client.say("And?")
        assert client.answer() == "Never mind."
        for id in ("c1", "c2"):
            item = {"type": "function_call_output", "call_id": id, "output": "12"}
            client.send("conversation.item.create", item=item)
        assert client.answer() == "Twelve."
    assert verdict(served)["verdict"] == "good"


def test_each_mistake_of_the_conversations_has_its_sentence():
    """What they name is in the table of the judge, and each has a bad client."""
    rules = table("conversations/violations.yaml")
    sentences = {name: next(iter(rule.items())) for name, rule in rules.items()}
    told = {name for name, (_, sentence) in sentences.items() if "{problem}" in sentence}
    told.remove("goes-round")  # over HTTP, too
    named = re.compile(r'mistake = "([\w-]+)|mistake="([\w-]+)"|Breach\("([\w-]+)"| "([\w-]+)" if ')
    sources = "".join(path.read_text() for path in WIRE.rglob("*.py")) + SOCKETS.read_text()
    found = {name for names in named.findall(sources) for name in names if name in rules}
    assert found == told
    assert {sentences[name][0] for name in told} | {"results-come"} == set(BAD.values())
    assert set(BAD.values()) <= set(CONVERSATION_INVARIANTS)
