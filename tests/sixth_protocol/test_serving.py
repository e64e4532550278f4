"""A server answers requests of a protocol that it has never heard of."""

from __future__ import annotations

import threading

import pytest

from tests.sixth_protocol.conftest import (
    CUES,
    GADGETS,
    acts,
    heard,
    machine,
    spoken,
)

SILENCE = "data: *silence*\n\n"


def test_a_conversation(hall):
    """Streams, calls with arguments in fragments, their results, and the next turn."""
    one = hall()
    failed = one.speak("numbers", gadgets=GADGETS)
    assert failed.status_code == 429
    assert failed.headers["retry-after"] == "2"
    first = one.speak("numbers", gadgets=GADGETS)
    assert first.headers["content-type"] == "text/event-stream"
    assert first.text.startswith("event: curtain\n")
    assert first.text.endswith(SILENCE)
    assert spoken(first.text, "musing") == "Let me look."
    assert spoken(first.text) == "One moment."
    opened = {act["part"]: act["cue"] for act in acts(first.text) if act["act"] == "cue"}
    settings = {
        cue: "".join(act["bit"] for act in acts(first.text) if _is_setting(act, part))
        for part, cue in opened.items()
    }
    assert settings == {"call_a": '{"name":"a"}', "call_b": '{"name":"b"}'}
    bow = acts(first.text)[-1]
    assert bow["why"] == "awaiting_gadgets"
    assert bow["tally"] == {"heard": 12, "spoken": 9, "mused": 4, "remembered": 2}
    results = (heard("call_a", "42"), heard("call_b", "7"))
    second = one.speak("numbers", CUES, *results, gadgets=GADGETS)
    assert spoken(second.text) == "It is 42."
    third = one.speak("numbers", CUES, *results, machine("It is 42."), "And?", gadgets=GADGETS)
    assert spoken(third.text, "balk") == "Not that again."
    assert acts(third.text)[-1]["why"] == "declined"


def _is_setting(act, part):
    return act["act"] == "setting" and act["part"] == part


def test_a_body(hall):
    """An answer that is not streamed has the shape of the API."""
    one = hall("scenario: hi\nmatch: {user: hello}\nturns: [{reply: {text: Hello there}}]")
    body = one.speak("hello", live=False).json()
    assert body["script"] == [{"kind": "line", "bit": "Hello there"}]
    assert body["why"] == "finished"
    assert body["speaker"] == "narrator-1"


def test_a_request_that_nothing_answers(hall):
    """The error has the shape of the API, and names the nearest scenario."""
    answer = hall().speak("letters")
    assert answer.status_code == 404
    (mishap,) = answer.json().values()
    assert mishap["kind"] == "unheard"
    assert "numbers" in mishap["words"]
    assert "match.user" in mishap["words"]


def test_an_unknown_path_gets_the_nearest_shape(hall):
    """A path below those of the API is answered as the API would."""
    answer = hall().http.post("/echo/v2/spek", json={})
    assert answer.status_code == 404
    assert "POST /echo/v2/speak" in answer.json()["mishap"]["words"]


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"dialogue": []}, 400, "`dialogue` must be a list"),
        ({"dialogue": [heard("none", "42")]}, 400, "dialogue[0] answers no cue"),
        ({"speaker": 5}, 400, "`speaker` must be a string"),
    ],
)
def test_strict_refusals(hall, change, status, words):
    """What the API refuses is refused, unless the server is lenient."""
    answer = hall().speak("numbers", **change)
    assert answer.status_code == status
    assert words in answer.json()["mishap"]["words"]


def test_a_request_without_a_key(hall):
    """The guard of the protocol sees the headers of the request."""
    one = hall()
    del one.http.headers["x-echo-key"]
    answer = one.speak("numbers")
    assert answer.status_code == 401
    assert answer.json()["mishap"]["kind"] == "stranger"


def test_the_models(hall):
    """Operations besides `generate` are looked up in the protocol."""
    assert hall().http.get("/echo/v2/voices").json() == {"voices": ["mock/numbers"]}


def test_the_base_url_is_known(hall):
    """The server and its sessions name the base URL of the API."""
    one = hall()
    assert one.thread.server.base_urls["echo"] == f"{one.thread.url}/echo"
    session = one.http.post("/_mockllm/sessions", json={"session": "mine"}).json()
    assert session["base_urls"]["echo"] == f"{one.thread.url}/s/mine/echo"


def test_a_further_path_and_a_session_of_its_own(hall):
    """A path of `--path` leads to the API, and so does a session that has its own scenario."""
    one = hall(paths=(("echo", "/halls/{hall}/stage"),))
    body = {"speaker": "narrator-1", "dialogue": [{"who": "human", "line": "anything"}]}
    scenario = {"scenario": "own", "turns": [{"reply": {"text": "Our own."}}]}
    made = one.http.post("/_mockllm/sessions", json={"scenarios": scenario}).json()
    url = f"{made['url']}/halls/red/stage"
    assert made["paths"] == [{"api": "echo", "url": f"{made['url']}/halls/{{hall}}/stage"}]
    assert spoken(one.http.post(url, json={**body, "live": True}).text) == "Our own."
    assert one.http.post(f"{made['base_urls']['echo']}/v2/speak", json=body).status_code == 200


def test_an_error_in_the_stream(hall):
    """An error ends the stream in the shape of the API."""
    error = "{error: {message: The roof fell in, type: collapse, code: e7}}"
    text = f"scenario: falls\nmatch: {{user: hi}}\nturns: [{{reply: [{{text: We}}, {error}]}}]"
    stream = hall(text).speak("hi").text
    mishap = {"words": "The roof fell in", "kind": "collapse", "number": "e7"}
    assert acts(stream)[-1]["mishap"] == mishap
    assert spoken(stream) == "We"


def test_quirks_of_framing(hall):
    """A quirk that is met in every protocol is met in this one."""
    one = hall("scenario: hi\nmatch: {user: hi}\nturns: [{reply: {text: Hello there}}]")
    one.http.headers["x-mockllm-quirk"] = "sse-unicode-line-separators:line-separator"
    assert spoken(one.speak("hi").content.decode()) == "".join(f"{c}\u2028" for c in "Hello there")
    one.http.headers["x-mockllm-quirk"] = "sse-cut:eof"
    cut = one.speak("hi").text
    assert spoken(cut.rpartition("event: bow")[0]) == "Hello there"
    assert "silence" not in cut


def test_an_automatic_answer(hall):
    """Without a scenario, `--fallback auto` makes an answer up from the request."""
    one = hall(fallback=True)
    assert "anything" in spoken(one.speak("anything").text)
    called = one.speak("anything", gadgets=GADGETS, pick={"gadget": "get"})
    assert [act["gadget"] for act in acts(called.text) if act["act"] == "cue"] == ["get"]
    shape = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    assert spoken(one.speak("anything", shape=shape).text).startswith('{"age":')


def test_the_journal_and_the_verdict(hall):
    """The journal names the API, and a right conversation is good."""
    one = hall()
    for _ in range(2):
        one.speak("numbers", gadgets=GADGETS)
    results = (heard("call_a", "42"), heard("call_b", "7"))
    one.speak("numbers", CUES, *results, gadgets=GADGETS)
    one.speak("numbers", CUES, *results, machine("It is 42."), "And?", gadgets=GADGETS)
    assert [each["api"] for each in one.journal()] == ["echo"] * 4
    assert one.verify()["violations"] == []
    assert one.verify()["good"]


@pytest.mark.parametrize(
    ("dialogue", "invariant"),
    [
        (["numbers", CUES, heard("call_a", "42"), heard("call_x", "7")], "answer-each-once"),
        (
            [
                "numbers",
                machine("One moment.", ("call_a", "get", "{}"), ("call_b", "get", "{}")),
                heard("call_a", "42"),
                heard("call_b", "7"),
            ],
            "history-faithful",
        ),
    ],
    ids=["unknown-id", "other-arguments"],
)
def test_a_mistake_in_a_conversation(hall, dialogue, invariant):
    """`verify` names what a client of the API gets wrong over several requests."""
    one = hall(strict=False)
    for _ in range(2):
        one.speak("numbers", gadgets=GADGETS)
    one.speak(*dialogue, gadgets=GADGETS)
    assert {each["invariant"] for each in one.verify()["violations"]} == {invariant}


def test_a_client_that_leaves(hall):
    """A stream that the client leaves is marked so in the journal."""
    gone = threading.Event()
    text = (
        "scenario: hi\nmatch: {user: hi}\nturns: [{reply: [{text: Oh}, {pause: 10m}, {text: hi}]}]"
    )
    one = hall(text, log=lambda exchange: gone.set())
    body = {"speaker": "n", "live": True, "dialogue": [{"who": "human", "line": "hi"}]}
    with one.http.stream("POST", "/echo/v2/speak", json=body) as answer:
        for data in answer.iter_raw():
            if b"Oh" in data:
                break
    assert gone.wait(60)
    (exchange,) = one.journal()
    assert exchange["client_gone"]
