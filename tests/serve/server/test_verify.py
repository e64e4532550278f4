"""`GET /_mockllm/verify`: its reports on clients over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from mockllm.checking.conversations.invariants import ON_REQUEST
from mockllm.checking.rules import CONVERSATION_INVARIANTS
from mockllm.play.replay.loading import loads
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import CALLING, OVER_HTTP
from tests.checking.conversations.bad_clients import (
    BAD,
    BOTH,
    EXCEPT,
    HOPS,
    RESULTS,
    TWO,
    goes_on_after_leaving,
    one_round_only,
    other_arguments,
    reads_on,
    results_before_leaving,
    results_too_early,
    results_while_open,
)
from tests.checking.conversations.request_bodies import (
    MODELS,
    body,
    call,
    called,
    result,
    results_of_responses,
)
from tests.timeouts import GIVE_UP

APIS = tuple(api for api in CALLING if api in OVER_HTTP)

FOLDER = Path(__file__).parents[3]
TIMED = (
    goes_on_after_leaving,
    reads_on,
    results_before_leaving,
    results_too_early,
    results_while_open,
)
TOOLS = ("number", "weather", "find", "book", "read", "list", "delete", "search")
LONG = TWO.replace("arguments: {of: bob}}", "arguments: {of: bob}}\n      - pause: 10m", 1)
"""Two calls, and then nothing for a long time."""
HELLO = """
---
scenario: hello
match: {user: hello}
turns: [{reply: {text: Hello.}}]
"""

every_api = pytest.mark.parametrize("api", APIS)


class HttpConversation:
    """A client that sends these conversations over HTTP."""

    def __init__(self, served, api: str, session: str = "default") -> None:
        self.player = served.server.player
        self.api = api
        self._served, client = served, PROTOCOLS[api].client
        self._path = client.path_of(MODELS.get(api, "mock"))
        self._headers = {**client.headers, "x-mockllm-session": session}

    def request(self, *items) -> httpx.Response:
        return self.send(body(self.api, *items, tools=TOOLS))

    def send(self, given: dict) -> httpx.Response:
        return self._served.http.post(self._path, json=given, headers=self._headers)

    def listen(self, *items):
        """A stream that is read part by part."""
        given = body(self.api, *items, tools=TOOLS)
        return self._served.http.stream("POST", self._path, json=given, headers=self._headers)


def verified(served, **query) -> dict:
    answer = served.http.get("/_mockllm/verify", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def violated(served, **query) -> set[str]:
    return {violation["invariant"] for violation in verified(served, **query)["violations"]}


@pytest.mark.slow
@pytest.mark.parametrize("bad", [one for one in BAD if one not in TIMED], ids=lambda o: o.__name__)
def test_a_bad_client(serve, bad):
    """A client with one mistake violates the invariant of that mistake, and no other."""
    text, invariant = BAD[bad]
    served = serve(text)
    for api in APIS:
        bad(HttpConversation(served, api, api))
        options = {"session": api, "depth": 4}
        if invariant in ON_REQUEST:
            options["require"] = invariant
        if api in EXCEPT.get(bad, ()):
            assert violated(served, **options) <= {"request-valid"}, api
            continue
        assert violated(served, **options) == {invariant}, api
        assert violated(served, **options, leave_out=invariant) == set()


def until(parts: Iterator[bytes], mark: bytes) -> None:
    """Reads a stream until it has had these bytes."""
    read = b""
    for part in parts:
        read += part
        if mark in read:
            return


@every_api
def test_results_before_the_end_of_the_stream(serve, api):
    """A client that sends results during the stream does not wait for further calls."""
    served = serve(LONG)
    conversation = HttpConversation(served, api)
    with conversation.listen("numbers") as answer:
        parts = answer.iter_raw()  # when it is forgotten, the stream is closed
        until(parts, b"call_b")
        assert conversation.request("numbers", BOTH, *RESULTS).status_code == 200
        assert violated(served) == {"tools-after-end"}
    assert violated(served) == {"tools-after-end"}


@every_api
def test_results_after_a_cancellation(serve, api):
    """A client that leaves a stream and sends results nevertheless has not stopped."""
    gone = threading.Event()
    served = serve(LONG, log=lambda exchange: gone.set())
    conversation = HttpConversation(served, api)
    with conversation.listen("numbers") as answer:
        until(answer.iter_raw(), b"call_b")
    assert gone.wait(GIVE_UP)
    assert violated(served) == set()
    assert conversation.request("numbers", BOTH, *RESULTS).status_code == 200
    assert violated(served) == {"cancel-stops"}


def test_a_stream_that_the_client_left_may_be_requested_again(serve):
    """With `once`, a client that leaves a slow stream and tries again requests nothing extra."""
    gone = threading.Semaphore(0)
    served = serve(LONG, log=lambda exchange: gone.release())
    conversation = HttpConversation(served, "chat")
    for _ in range(3):
        with conversation.listen("numbers") as answer:
            until(answer.iter_raw(), b"call_b")
        assert gone.acquire(timeout=GIVE_UP)
    assert violated(served, once="true") == set()


@pytest.mark.slow
@every_api
def test_a_client_that_waits_for_the_end(serve, api):
    """After a slow stream that was read to its end there are no violations."""
    text = LONG.replace("10m", "20ms").replace("- {tool", "- {every: 1ms, split: 3, tool")
    for segmented in (text, text + "    wire: {segments: 7}\n"):
        served = serve(segmented)
        conversation = HttpConversation(served, api)
        for items in (["numbers"], ["numbers", BOTH, *RESULTS]):
            assert conversation.request(*items).status_code == 200
        expected = {"violations": [], "unplayed": [], "unmatched": [], "invalid": []}
        expected |= {"missed_faults": [], "gaps": [], "failed": [], "remarks": []}
        whole = {"not_judged": [], "dropped": 0, "forgotten": 0, "evicted": False}
        verdict = {"session": "default", "good": True, "verdict": "good"}
        assert verified(served) == {**verdict, **expected, **whole}


def test_the_journal_has_the_end_of_a_stream(serve):
    """`ended` is set as soon as everything is sent, never where a client left."""
    gone = threading.Event()
    served = serve(LONG, log=lambda exchange: gone.set())
    conversation = HttpConversation(served, "chat")
    with conversation.listen("numbers") as answer:
        until(answer.iter_raw(), b"call_b")
    assert gone.wait(GIVE_UP)
    conversation.request("numbers", BOTH, *RESULTS)
    left, whole = served.journal()
    assert (left["ended"], left["client_gone"]) == (None, True)
    assert (whole["ended"], whole["client_gone"]) == (0.0, False)
    assert not {"clock", "params"} & left.keys()


def test_sessions_are_judged_separately(serve):
    """A violation of one session is not reported for another; without a name `default` is
    judged."""
    served = serve(TWO)
    HttpConversation(served, "chat").request("numbers")
    HttpConversation(served, "chat", "mine").request("numbers", BOTH, RESULTS[0])
    assert violated(served) == set()
    assert verified(served)["unplayed"] == [{"scenario": "two", "turn": 1}]
    assert verified(served, allow_unplayed="true")["good"]
    assert violated(served, session="mine") == {"tools-after-end"}
    assert verified(served, session="mine")["invalid"] == [1]


@pytest.mark.slow
def test_a_session_that_was_evicted(serve):
    """Its verdict is `unknown`, before and after it comes back, until it is deleted."""
    served = serve(TWO)
    for number in range(1001):
        assert served.http.get("/v1/models", headers={"x-mockllm-session": f"s{number}"}).is_success
    sessions = served.http.get("/_mockllm/sessions").json()
    assert (len(sessions["sessions"]), sessions["evicted"]) == (1000, ["s0"])
    assert verified(served, session="s0")["verdict"] == "unknown"
    conversation = HttpConversation(served, "chat", "s0")
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS)
    found = verified(served, session="s0")
    assert (found["verdict"], found["good"], found["evicted"]) == ("unknown", False, True)
    assert found["violations"] == found["unplayed"] == []
    summary = served.http.get("/_mockllm/sessions/s0").json()
    assert (summary["evicted"], summary["requests"]) == (True, 2)
    served.http.delete("/_mockllm/sessions/s0")
    made = served.http.post("/_mockllm/sessions", json={"session": "s1"}).json()
    assert (made["session"], made["evicted"]) == ("s1", True)
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS)
    assert verified(served, session="s0")["verdict"] == "good"


@pytest.mark.slow
def test_a_verdict_after_the_journal_dropped_entries(serve):
    """A violation of the first requests is reported after a thousand others."""
    served = serve(TWO + HELLO)
    other_arguments(HttpConversation(served, "chat"))
    conversation = HttpConversation(served, "chat")
    for _ in range(1000):
        conversation.request("hello")
    found = verified(served)
    assert [violation["exchange"] for violation in found["violations"]] == [2]
    assert (found["dropped"], found["forgotten"]) == (2, 0)
    summary = served.http.get("/_mockllm/sessions/default").json()
    assert summary["outcomes"] == {"played": 1002}
    assert served.http.get("/_mockllm/journal").json()["dropped"] == 2


def test_an_answer_whose_request_was_too_large(serve):
    """It cannot be given again: the error names the size that is kept. It can be continued."""
    served = serve(TWO)
    conversation = HttpConversation(served, "responses")
    sent = {**body("responses", "numbers" + "A" * 2_000_000), "store": True, "stream": False}
    answer = conversation.send(sent).json()
    got = served.http.get(f"/v1/responses/{answer['id']}")
    assert (got.status_code, got.json()["error"]["code"]) == (404, "request_not_kept")
    assert "a session keeps 1048576 bytes" in got.json()["error"]["message"]
    results = {"input": results_of_responses(RESULTS), "previous_response_id": answer["id"]}
    assert conversation.send({"model": "gpt-4o", **results}).status_code == 200


def test_a_session_with_scenarios_of_its_own(serve):
    """It is judged by its own scenarios, not by the server's."""
    served = serve(TWO)
    served.server.assign("mine", loads(HOPS))
    one_round_only(HttpConversation(served, "chat", "mine"))
    assert violated(served, session="mine") == {"multi-hop"}


def test_quirks_of_the_server_are_no_violations_of_the_client(serve):
    """Calls that a quirk changed are not compared with the client's."""
    served = serve(TWO, quirks=("chat-index-missing",))
    other_arguments(HttpConversation(served, "chat"))
    assert violated(served) == set()
    assert [entry["quirks"] for entry in served.journal()] == [["chat-index-missing"]] * 2


def test_the_example_in_the_documentation(serve):
    """The example in docs/verify.md is the real answer."""
    page = (FOLDER / "docs" / "verify.md").read_text()
    example = json.loads(page.partition("```json\n")[2].partition("```")[0])
    served = serve((FOLDER / "scenarios" / "secret-numbers.yaml").read_text(), speed=0)
    conversation, name = HttpConversation(served, "chat"), "get_secret_number"
    alice = call(name, "call_alice", '{"name":"alice"}')
    bob = call(name, "call_bob", '{"name":"alice"}')
    for items in ([], [called(alice, bob), result(alice, "42"), result(bob, "7")]):
        conversation.send(body("chat", "secret numbers", *items, tools=[name]))
    assert verified(served) == example


def test_wrong_use(serve):
    """An unknown session is 404, an unknown name or a depth that is no number 400."""
    served = serve(TWO)
    missing = served.http.get("/_mockllm/verify")
    assert (missing.status_code, missing.json()["error"]["message"]) == (
        404,
        "There is no session 'default'; there are: none.",
    )
    HttpConversation(served, "chat").request("numbers")
    wrong = ({"depth": "many"}, {"leave_out": "multi-hop,depth"}, {"once": "1"})
    for query in (*wrong, {"allow_unplayed": "yes"}):
        answer = served.http.get("/_mockllm/verify", params=query)
        assert answer.status_code == 400
        assert next(iter(query)) in answer.json()["error"]["message"]
    assert violated(served, leave_out=",".join(CONVERSATION_INVARIANTS)) == set()
