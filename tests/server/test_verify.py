"""`GET /_mockllm/verify`: what it says of clients over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from mockllm.checking.conversations.judge import CONVERSATION_INVARIANTS
from mockllm.protocols.client_requests import ASKING
from mockllm.replay.loading import loads
from mockllm.scenario.model import APIS
from tests.checking.bad_clients import (
    BAD,
    BOTH,
    HOPS,
    RESULTS,
    TWO,
    goes_on_after_leaving,
    one_round_only,
    other_arguments,
    results_before_leaving,
    results_too_early,
    results_while_open,
)
from tests.checking.talking import MODELS, body, call, called, gave

FOLDER = Path(__file__).parents[2]
TIMED = (goes_on_after_leaving, results_before_leaving, results_too_early, results_while_open)
TOOLS = ("number", "weather", "find", "book", "read", "list", "delete", "search")
LONG = TWO.replace("arguments: {of: bob}}", "arguments: {of: bob}}\n      - pause: 10m", 1)
"""Two calls, and then nothing for a long time."""

every_api = pytest.mark.parametrize("api", APIS)


class HttpTalk:
    """A client that says over HTTP what it is told to say."""

    def __init__(self, served, api: str, session: str = "default") -> None:
        self.player = served.server.player
        self.api = api
        self._served, self._asking = served, ASKING[api]
        self._path = self._asking.path.format(model=MODELS.get(api, "mock"))
        self._headers = {**self._asking.headers, "x-mockllm-session": session}

    def ask(self, *items) -> httpx.Response:
        given = body(self.api, *items, tools=TOOLS)
        return self._served.http.post(self._path, json=given, headers=self._headers)

    def listen(self, *items):
        """A stream that is read piece by piece."""
        given = body(self.api, *items, tools=TOOLS)
        return self._served.http.stream("POST", self._path, json=given, headers=self._headers)


def verified(served, **query) -> dict:
    answer = served.http.get("/_mockllm/verify", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def blamed(served, **query) -> set[str]:
    return {one["invariant"] for one in verified(served, **query)["violations"]}


@pytest.mark.slow
@pytest.mark.parametrize("bad", [one for one in BAD if one not in TIMED], ids=lambda o: o.__name__)
def test_a_bad_client(serve, bad):
    """A client that gets one thing wrong is told by the name of that, and by no other."""
    text, invariant = BAD[bad]
    served = serve(text)
    for api in APIS:
        bad(HttpTalk(served, api, api))
        assert blamed(served, session=api, depth=4) == {invariant}, api
        assert blamed(served, session=api, depth=4, leave_out=invariant) == set()


def until(pieces: Iterator[bytes], word: bytes) -> None:
    """Reads a stream up to a word in it."""
    read = b""
    for piece in pieces:
        read += piece
        if word in read:
            return


@every_api
def test_results_before_the_end_of_the_stream(serve, api):
    """A client that answers calls as soon as it has them does not wait for more of them."""
    served = serve(LONG)
    talk = HttpTalk(served, api)
    with talk.listen("numbers") as answer:
        pieces = answer.iter_raw()  # when it is forgotten, the stream is closed
        until(pieces, b"call_b")
        assert talk.ask("numbers", BOTH, *RESULTS).status_code == 200
        assert blamed(served) == {"tools-after-end"}
    assert blamed(served) == {"tools-after-end"}


@every_api
def test_results_after_a_cancellation(serve, api):
    """A client that leaves a stream and sends results all the same does not stop."""
    gone = threading.Event()
    served = serve(LONG, log=lambda exchange: gone.set())
    talk = HttpTalk(served, api)
    with talk.listen("numbers") as answer:
        until(answer.iter_raw(), b"call_b")
    assert gone.wait(20)
    assert blamed(served) == set()
    assert talk.ask("numbers", BOTH, *RESULTS).status_code == 200
    assert blamed(served) == {"cancel-stops"}


@pytest.mark.slow
@every_api
@pytest.mark.parametrize("flush", ["answer", "event"])
def test_a_client_that_waits_for_the_end(serve, api, flush):
    """A stream that takes its time, read to its end, is followed by nothing to blame."""
    text = LONG.replace("10m", "20ms").replace("- {tool", "- {every: 1ms, split: 3, tool")
    for segmented in (text, text + "    wire: {segments: 7}\n"):
        served = serve(segmented, flush=flush)
        talk = HttpTalk(served, api)
        for items in (["numbers"], ["numbers", BOTH, *RESULTS]):
            assert talk.ask(*items).status_code == 200
        expected = {"violations": [], "unplayed": [], "unmatched": [], "invalid": []}
        assert verified(served) == {"session": "default", "good": True, **expected}


def test_the_journal_tells_when_a_stream_ended(serve):
    """`ended` is there as soon as nothing is left to wait for, never where a client left."""
    gone = threading.Event()
    served = serve(LONG, log=lambda exchange: gone.set())
    talk = HttpTalk(served, "chat")
    with talk.listen("numbers") as answer:
        until(answer.iter_raw(), b"call_b")
    assert gone.wait(20)
    talk.ask("numbers", BOTH, *RESULTS)
    left, whole = served.journal()
    assert (left["ended"], left["client_gone"]) == (None, True)
    assert (whole["ended"], whole["client_gone"]) == (0.0, False)
    assert not {"clock", "params"} & left.keys()


def test_sessions_are_judged_apart(serve):
    """What one session does wrong is not told of another, and `default` is what is meant."""
    served = serve(TWO)
    HttpTalk(served, "chat").ask("numbers")
    HttpTalk(served, "chat", "mine").ask("numbers", BOTH, RESULTS[0])
    assert blamed(served) == set()
    assert verified(served)["unplayed"] == [{"scenario": "two", "turn": 1}]
    assert blamed(served, session="mine") == {"tools-after-end"}
    assert verified(served, session="mine")["invalid"] == [1]


def test_a_session_with_scenarios_of_its_own(serve):
    """It is judged by those, not by what the server serves to others."""
    served = serve(TWO)
    served.server.assign("mine", loads(HOPS))
    one_round_only(HttpTalk(served, "chat", "mine"))
    assert blamed(served, session="mine") == {"multi-hop"}


def test_quirks_of_the_server_are_not_blamed_on_the_client(serve):
    """What a client made of a stream that was changed on its way out is not compared."""
    served = serve(TWO, quirks=("chat-index-missing",))
    other_arguments(HttpTalk(served, "chat"))
    assert blamed(served) == set()
    assert [entry["quirks"] for entry in served.journal()] == [["chat-index-missing"]] * 2


def test_the_example_in_the_documentation(serve):
    """What docs/server.md shows is what comes."""
    page = (FOLDER / "docs" / "server.md").read_text()
    shown = json.loads(page.partition("```json\n")[2].partition("```")[0])
    served = serve((FOLDER / "scenarios" / "secret-numbers.yaml").read_text(), speed=0)
    talk, name = HttpTalk(served, "chat"), "get_secret_number"
    alice = call(name, "call_alice", '{"name":"alice"}')
    bob = call(name, "call_bob", '{"name":"alice"}')
    talk.ask("secret numbers")
    talk.ask("secret numbers", called(alice, bob), gave(alice, "42"), gave(bob, "7"))
    assert verified(served) == shown


def test_wrong_use(serve):
    """An unknown session is 404, an unknown name or a depth that is no number 400."""
    served = serve(TWO)
    missing = served.http.get("/_mockllm/verify")
    assert (missing.status_code, missing.json()["error"]["message"]) == (
        404,
        "There is no session 'default'; there are: none.",
    )
    HttpTalk(served, "chat").ask("numbers")
    for query in ({"depth": "many"}, {"leave_out": "multi-hop,depth"}):
        answer = served.http.get("/_mockllm/verify", params=query)
        assert answer.status_code == 400
        assert next(iter(query)) in answer.json()["error"]["message"]
    assert blamed(served, leave_out=",".join(CONVERSATION_INVARIANTS)) == set()
