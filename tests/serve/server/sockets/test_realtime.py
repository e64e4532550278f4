"""Realtime message by message: errors that leave the session open, interruptions, items, and both
ends of a connection."""

import base64
import json

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols.openai_realtime import errors
from mockllm.wire.protocols.openai_realtime.conversation import RealtimeConversation
from mockllm.wire.protocols.sockets import Close
from tests.serve.server.sockets.test_sockets import opened
from tests.timeouts import GIVE_UP

PATH = "/v1/realtime?model=gpt-realtime"
SOUND = base64.b64encode(bytes(4800)).decode()  # 100 ms

TALK = """
scenario: talk
match: any
turns:
  - {reply: {text: one two, split: words}}
  - {hears: {say: Stop, after: 200ms, barge_in: true}, reply: {text: three}}
  - {reply: {text: four}}
"""
SLOW = TALK.replace("split: words", "split: words, every: 10m")


class Client:
    """A client in a session that answers in text."""

    def __init__(self, socket, modality="text"):
        self.socket = socket
        self.created = self.until("session.created")[-1]
        self.update(type="realtime", output_modalities=[modality])
        self.until("session.updated")

    def send(self, kind, **fields):
        self.socket.send(json.dumps({"type": kind, **fields}))

    def until(self, *ends):
        read = [json.loads(self.socket.recv(GIVE_UP))]
        while read[-1]["type"] not in ends:
            read.append(json.loads(self.socket.recv(GIVE_UP)))
        return read

    def update(self, **session):
        self.send("session.update", session=session)

    def say(self, words="hi", **fields):
        content = [{"type": "input_text", "text": words}]
        self.send(
            "conversation.item.create",
            item={"type": "message", "role": "user", "content": content, **fields},
        )
        return self.until("conversation.item.done")[-1]["item"]

    def ask(self, *ends, **response):
        self.send("response.create", **({"response": response} if response else {}))
        return self.until(*(ends or ("rate_limits.updated", "error")))

    def answer(self, **response):
        """The text of an answer."""
        return "".join(e["delta"] for e in self.ask(**response) if e["type"].endswith("text.delta"))

    def refused(self, kind, **fields):
        """The code of the error that a message gets."""
        self.send(kind, **fields)
        error = self.until("error")[-1]["error"]
        return error["code"], error["event_id"]


@pytest.fixture
def talk(serve):
    with opened(serve(TALK).url, PATH) as socket:
        yield Client(socket)


@pytest.fixture
def slow(serve):
    """A server whose first answer stays on its way after its first word."""
    return serve(SLOW)


def test_a_conversation(talk):
    talk.say()
    assert talk.answer() == "one two"
    talk.say("and?")
    assert talk.answer() == "three"
    talk.say("and?")
    assert talk.answer() == "four"


@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        ("nonsense", {}, "invalid_value"),
        ("session.update", {"session": {"instructions": "x"}}, "missing_required_parameter"),
        ("session.update", {"session": {"type": "realtime", "voice": "a"}}, "unknown_parameter"),
        (
            "session.update",
            {"session": {"type": "realtime", "output_modalities": ["text", "audio"]}},
            "invalid_value",
        ),
        ("conversation.item.create", {}, "missing_required_parameter"),
        ("conversation.item.create", {"item": {"type": "x"}}, "invalid_value"),
        (
            "conversation.item.create",
            {"item": {"type": "function_call_output", "call_id": "c", "output": "1"}},
            "invalid_tool_call_id",
        ),
        (
            "conversation.item.create",
            {
                "item": {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "output_text", "text": "x"}],
                }
            },
            "invalid_value",
        ),
        ("conversation.item.delete", {"item_id": "x"}, "item_delete_invalid_item_id"),
        ("conversation.item.retrieve", {"item_id": "x"}, "item_retrieve_invalid_item_id"),
        ("input_audio_buffer.append", {"audio": "é"}, "invalid_value"),
        ("input_audio_buffer.commit", {}, "input_audio_buffer_commit_empty"),
        ("response.cancel", {}, "response_cancel_not_active"),
        ("response.create", {"response": {"voice": "x"}}, "unknown_parameter"),
    ],
)
def test_errors_leave_the_session_open(talk, kind, fields, code):
    assert talk.refused(kind, event_id="mine", **fields) == (code, "mine")
    talk.say()
    assert talk.answer() == "one two"


def test_no_json_is_an_error(talk):
    talk.socket.send("{")
    assert talk.until("error")[-1]["error"]["code"] == "invalid_json"
    talk.say()
    assert talk.answer() == "one two"


def test_items(talk):
    first, second = talk.say("a"), talk.say("b", id="item_mine")
    assert second["id"] == "item_mine"
    talk.send(
        "conversation.item.create",
        previous_item_id="root",
        item={"type": "message", "role": "system", "content": []},
    )
    assert talk.until("conversation.item.done")[-1]["previous_item_id"] is None
    talk.send("conversation.item.retrieve", item_id=first["id"])
    assert talk.until("conversation.item.retrieved")[-1]["item"] == first
    talk.send("conversation.item.delete", item_id=first["id"])
    talk.until("conversation.item.deleted")
    assert talk.refused("conversation.item.retrieve", item_id=first["id"])[0]
    code, _ = talk.refused("conversation.item.truncate", item_id="item_mine", audio_end_ms=0)
    assert code == "unsupported_content_type"


def test_the_service_refuses_another_answer_until_one_is_over(slow):
    with opened(slow.url, PATH) as socket:
        client = Client(socket)
        client.say()
        client.ask("response.output_text.delta")
        code, id = client.refused("response.create", event_id="two")
        assert (code, id) == ("conversation_already_has_active_response", "two")
    assert {entry["outcome"] for entry in slow.journal()} == {"played", "invalid"}


EARLY = """
scenario: early
match: any
turns:
  - reply: [{tool: get_weather, id: t1, arguments: {city: Oslo}}, {text: wait, every: 10m}]
  - {request: {results: {t1: {contains: rain}}}, reply: {text: Wear boots.}}
"""


def test_a_result_before_the_end_of_its_answer(serve):
    """As openai-agents and Pydantic AI send it: the call is in the conversation when it is done."""
    with opened(serve(EARLY).url, PATH) as socket:
        client = Client(socket)
        client.say()
        client.ask("response.output_item.done")
        item = {"type": "function_call_output", "call_id": "t1", "output": "rain"}
        client.send("conversation.item.create", item=item)
        assert client.until("conversation.item.done", "error")[-1]["item"]["output"] == "rain"
        client.send("response.cancel")
        client.until("response.done")
        assert client.answer() == "Wear boots."


def test_an_answer_is_cancelled(slow):
    with opened(slow.url, PATH) as socket:
        client = Client(socket)
        client.say()
        client.ask("response.output_text.delta")
        client.send("response.cancel")
        done = client.until("response.done")[-1]["response"]
        assert (done["status"], done["status_details"]["reason"]) == (
            "cancelled",
            "client_cancelled",
        )
        (item,) = done["output"]
        assert (item["status"], item["content"][0]["text"]) == ("incomplete", "one")
        client.say("and?")
        assert client.answer() == "three"
    first, second = slow.journal()
    assert (first["interrupted"], first["client_gone"]) == (True, False)
    assert second["turn"] == 1


def test_the_user_interrupts(slow):
    """Sound while the model speaks is not heard, unless the scenario says so."""
    with opened(slow.url, PATH) as socket:
        client = Client(socket, "audio")
        client.say()
        client.ask("response.output_audio.delta")
        client.send("input_audio_buffer.append", audio=SOUND)
        client.send("input_audio_buffer.append", audio=SOUND)
        events = client.until("rate_limits.updated")
        kinds = [event["type"] for event in events]
        assert kinds.index("input_audio_buffer.speech_started") < kinds.index("response.done")
        done = events[kinds.index("response.done")]["response"]
        assert done["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
        words = [e["delta"] for e in events if e["type"].endswith("transcript.delta")]
        assert words == ["three"]
        id = done["output"][0]["id"]
        client.send("conversation.item.truncate", item_id=id, content_index=0, audio_end_ms=50)
        client.until("conversation.item.truncated")
        code, _ = client.refused("conversation.item.truncate", item_id=id, audio_end_ms=9999)
        assert code == "invalid_value"


def test_sound_during_an_answer_is_not_heard_without_barge_in():
    text = SLOW.replace(", barge_in: true", "")
    with ServerThread(loads(text), ServerOptions()) as thread, opened(thread.url, PATH) as socket:
        client = Client(socket)
        client.say()
        client.ask("response.output_text.delta")
        for _ in range(5):
            client.send("input_audio_buffer.append", audio=SOUND)
        client.send("input_audio_buffer.clear")
        assert [e["type"] for e in client.until("input_audio_buffer.cleared")] == [
            "input_audio_buffer.cleared"
        ]


def test_an_answer_outside_of_the_conversation(talk):
    """It has its own input, and leaves no items behind."""
    item = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Classify."}],
    }
    events = talk.ask(conversation="none", input=[item], metadata={"topic": "a"})
    (created,) = [e["response"] for e in events if e["type"] == "response.created"]
    assert (created["conversation_id"], created["metadata"]) == (None, {"topic": "a"})
    talk.say()
    assert talk.answer() == "one two"


def test_the_same_turn_twice_has_other_ids(serve):
    text = "scenario: again\nmatch: any\nturns: [{reply: {text: Hi}, repeat: true}]"
    with opened(serve(text).url, PATH) as socket:
        client, ids = Client(socket), []
        for _ in range(3):
            client.say()
            for event in client.ask():
                if event["type"] == "response.done":
                    ids += [event["response"]["id"], event["response"]["output"][0]["id"]]
                ids.append(event["event_id"])
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("status", [400, 429, 503])
def test_errors_of_a_turn(serve, status):
    """Those of the service are responses that failed, others errors."""
    text = f"scenario: bad\nmatch: any\nturns: [{{http: {status}}}]"
    with opened(serve(text).url, PATH) as socket:
        client = Client(socket)
        client.say()
        last = client.ask("response.done", "error")[-1]
        assert last["type"] == ("error" if status == 400 else "response.done")
        if status != 400:
            details = last["response"]["status_details"]
            assert last["response"]["status"] == details["type"] == "failed"
            assert details["error"]["message"]
        assert client.refused("response.cancel")[0] == "response_cancel_not_active"


def test_endings(serve):
    text = """
scenario: cut
match: any
turns:
  - {reply: {text: a}, finish: length}
  - {reply: [{text: b}, {error: {message: Broken., code: oops}}]}
"""
    with opened(serve(text).url, PATH) as socket:
        client = Client(socket)
        client.say()
        done = next(e for e in client.ask() if e["type"] == "response.done")["response"]
        assert (done["status"], done["status_details"]["reason"]) == (
            "incomplete",
            "max_output_tokens",
        )
        assert done["output"][0]["status"] == "incomplete"
        client.say()
        done = next(e for e in client.ask() if e["type"] == "response.done")["response"]
        assert done["status"] == "failed"
        assert done["status_details"]["error"]["code"] == "oops"


def test_who_is_not_let_in(serve):
    """The upgrade succeeds, and the connection ends with an error."""
    served = serve(TALK)
    for path, headers, reason in (
        ("/v1/realtime", {}, "invalid_request_error.missing_model"),
        (PATH, {"openai-beta": "realtime=v1"}, "invalid_request_error.beta_api_shape_disabled"),
    ):
        with opened(served.url, path, additional_headers=headers) as socket:
            assert json.loads(socket.recv(GIVE_UP))["type"] == "error"
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(GIVE_UP)
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4000, reason)


def test_a_browser_sends_its_key_as_a_subprotocol(serve):
    served = serve(TALK)
    offered = ["realtime", "openai-insecure-api-key.ek_68a1"]
    with opened(served.url, PATH, subprotocols=offered) as socket:
        assert socket.subprotocol == "realtime"
        client = Client(socket)
        client.say()
        assert client.answer() == "one two"
    assert "ek_68a1" not in json.dumps(served.journal())


@pytest.mark.parametrize("query", ["intent=transcription", "call_id=rtc_1"])
def test_other_sessions(serve, query):
    with opened(serve(TALK).url, f"/v1/realtime?{query}") as socket:
        session = json.loads(socket.recv(GIVE_UP))["session"]
        assert session["type"] == ("transcription" if "intent" in query else "realtime")


def test_an_hour_ends_a_session():
    error, end = RealtimeConversation().expire()
    assert json.loads(error)["error"]["code"] == errors.EXPIRED.code
    assert end == Close(1001)


# Paths beside the WebSocket


@pytest.fixture
def http():
    options = ServerOptions(fallback=True)
    with (
        ServerThread([], options) as thread,
        httpx.Client(base_url=thread.url, timeout=GIVE_UP) as client,
    ):
        yield client


def test_keys_for_browsers(http):
    session = {"type": "realtime", "model": "gpt-realtime", "instructions": "Be brief."}
    body = {"session": session, "expires_after": {"anchor": "created_at", "seconds": 60}}
    made = http.post("/v1/realtime/client_secrets", json=body).json()
    assert made["value"].startswith("ek_")
    assert made["session"]["instructions"] == "Be brief."
    assert made["session"]["audio"]["output"]["voice"] == "alloy"
    refused = http.post("/v1/realtime/client_secrets", json={"session": {"type": "x"}})
    assert refused.status_code == 400


def test_calls(http):
    """An offer as a form or alone gets an answer, and the id by which a WebSocket joins."""
    form = {"sdp": (None, "v=0\r\n", "application/sdp"), "session": (None, "{}")}
    for made in (
        http.post("/v1/realtime/calls", files=form),
        http.post(
            "/v1/realtime/calls", content="v=0\r\n", headers={"content-type": "application/sdp"}
        ),
    ):
        assert (made.status_code, made.headers["content-type"]) == (201, "application/sdp")
        assert made.text.startswith("v=0\r\n")
        call = made.headers["location"]
        assert call.startswith("/v1/realtime/calls/rtc_")
        for action in ("accept", "reject", "refer", "hangup"):
            assert http.post(f"{call}/{action}", json={}).status_code == 200
        assert http.post(f"{call}/hangup").status_code == 200
