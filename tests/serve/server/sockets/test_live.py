"""Gemini Live, message by message: setup, turns, calls, sound, interruptions, errors, handles."""

import base64
import json
from contextlib import contextmanager

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from mockllm.play.replay.loading import load
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols.gemini_live.socket import LiveConversation
from tests.clients.conversation import FOLDER
from tests.timeouts import GIVE_UP

PATH = "/ws/google.ai.generativelanguage.v1.GenerativeService.BidiGenerateContent"
VERTEX = "/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent"
KEY = {"x-goog-api-key": "k"}
COMPLETE = {"setupComplete": {}}
ENDS = [{"serverContent": {"interrupted": True}}, {"serverContent": {"turnComplete": True}}]

TALK = """
scenario: talk
match: any
turns:
  - reply: [{reasoning: Hm.}, {text: one two, split: words}]
    usage: {input: 11, output: 9, reasoning: 2, cached: 3}
  - reply: {text: three}
"""

TOOLS = """
scenario: tools
match: any
turns:
  - reply:
      parallel:
        - {tool: get_weather, id: c1, arguments: {city: Rome}, split: 4}
        - {tool: get_time, id: c2, arguments: {city: Rome}}
  - request: {results: {c1: "12", c2: {contains: "9"}}}
    reply: {text: It is twelve.}
"""

GIVEN_UP = """
scenario: given-up
match: any
turns:
  - reply:
      - {tool: get_weather, id: c1, arguments: {city: Rome}}
      - {tool: get_time, id: c2, arguments: {city: Rome}}
  - reply: {text: Never mind.}
"""


@contextmanager
def opened(url, path=PATH, headers=KEY, **options):
    """A WebSocket of a client."""
    address = url.replace("http", "ws", 1) + path
    options = {"open_timeout": GIVE_UP, "proxy": None, "max_size": None, **options}
    with connect(address, additional_headers=headers, **options) as socket:
        yield socket


def send(socket, **message):
    socket.send(json.dumps(message))


def receive(socket):
    data = socket.recv(GIVE_UP)
    assert isinstance(data, bytes)
    return json.loads(data)


def receives(socket, *messages):
    for message in messages:
        assert receive(socket) == message


def begin(socket, modality="TEXT", **setup):
    """Sends the setup, and reads the answer to it."""
    config = {"responseModalities": [modality]}
    model = setup.pop("model", "models/kit")
    send(socket, setup={"model": model, "generationConfig": config, **setup})
    receives(socket, COMPLETE)


def say(socket, text="Hi"):
    turns = [{"role": "user", "parts": [{"text": text}]}]
    send(socket, clientContent={"turns": turns, "turnComplete": True})


def rest(socket):
    """The messages up to the end of a turn."""
    messages = [receive(socket)]
    while not messages[-1].get("serverContent", {}).get("turnComplete"):
        messages.append(receive(socket))
    return messages


def text(messages):
    """The visible text of a turn."""
    parts = [
        part
        for message in messages
        for part in message.get("serverContent", {}).get("modelTurn", {}).get("parts", ())
    ]
    return "".join(part.get("text", "") for part in parts if "thought" not in part)


def closes(socket):
    """How the server ends the connection."""
    with pytest.raises(ConnectionClosed) as closed:
        socket.recv(GIVE_UP)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code, closed.value.rcvd.reason


# Turns


def test_turns_of_text(serve):
    """The messages are those of the service, in binary frames: one thing in each."""
    served = serve(TALK)
    with opened(served.url) as socket:
        begin(socket)
        say(socket)
        assert rest(socket) == [
            {"serverContent": {"modelTurn": {"parts": [{"text": "Hm.", "thought": True}]}}},
            {"serverContent": {"modelTurn": {"parts": [{"text": "one"}]}}},
            {"serverContent": {"modelTurn": {"parts": [{"text": " two"}]}}},
            {"serverContent": {"generationComplete": True}},
            {
                "serverContent": {"turnComplete": True},
                "usageMetadata": {
                    "promptTokenCount": 11,
                    "responseTokenCount": 7,
                    "totalTokenCount": 18,
                    "cachedContentTokenCount": 3,
                    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 11}],
                    "responseTokensDetails": [{"modality": "TEXT", "tokenCount": 7}],
                    "thoughtsTokenCount": 2,
                },
            },
        ]
        socket.send(json.dumps({"realtimeInput": {"text": "And then?"}}).encode())
        assert text(rest(socket)) == "three"
    first, second = served.journal()
    assert (first["api"], first["turn"], second["turn"]) == ("live", 0, 1)
    assert json.loads(second["body"])["turns"] == [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"text": "one two"}]},
        {"role": "user", "parts": [{"text": "And then?"}]},
    ]


def test_both_cases_of_names(serve):
    """google-genai for Python mixes them; what clients define themselves keeps its case."""
    served = serve(TOOLS)
    schema = {"type": "OBJECT", "properties": {"to_city": {"type": "STRING"}}}
    tool = {"function_declarations": [{"name": "get_weather", "parameters": schema}]}
    with opened(served.url) as socket:
        config = {"response_modalities": ["TEXT"]}
        send(socket, setup={"model": "models/kit", "generation_config": config, "tools": [tool]})
        receives(socket, COMPLETE)
        turns = {"role": "user", "parts": [{"text": "Hi"}]}
        send(socket, client_content={"turns": turns, "turn_complete": True})
        assert "toolCall" in receive(socket)
        results = [
            {"id": "c1", "name": "get_weather", "response": {"output": "12"}},
            {"id": "c2", "name": "get_time", "response": {"my_time": "9"}},
        ]
        send(socket, tool_response={"function_responses": results})
        assert text(rest(socket)) == "It is twelve."
    first, second = (json.loads(entry["body"]) for entry in served.journal())
    assert first["tools"] == [
        {"functionDeclarations": [{"name": "get_weather", "parameters": schema}]}
    ]
    parts = [part["functionResponse"]["response"] for part in second["turns"][-1]["parts"]]
    assert parts == [{"output": "12"}, {"my_time": "9"}]


@pytest.mark.parametrize(
    "path",
    [
        PATH,
        PATH.replace(".v1.", ".v1beta."),
        PATH.replace(".v1.", ".v1alpha.") + "Constrained",
        "/" + PATH,
        "/s/mine" + PATH,
        VERTEX,
        "/" + VERTEX,
        "/some/proxy/BidiGenerateContent",
    ],
)
def test_paths(serve, path):
    served = serve(TALK)
    with opened(served.url, f"{path}?key=k", {}) as socket:
        begin(socket)
        say(socket)
        assert text(rest(socket)) == "one two"


def test_a_model_names_a_scenario(serve):
    other = TALK.replace("talk", "other").replace("one", "1").replace("any", "{user: never}")
    served = serve(TALK + "---" + other)
    for model in (
        "models/mock/other",
        "projects/p/locations/l/publishers/google/models/mock/other",
    ):
        with opened(served.url) as socket:
            begin(socket, model=model)
            say(socket)
            assert text(rest(socket)) == "1 two"


def test_contents_before_the_first_turn(serve):
    """A client gives a history: the turn is found by it."""
    served = serve(TALK)
    with opened(served.url) as socket:
        begin(socket)
        turns = [{"parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "one two"}]}]
        send(socket, clientContent={"turns": turns})
        say(socket, "And?")
        assert text(rest(socket)) == "three"


# Calls


def test_calls_come_in_one_message_and_wait_for_all_results(serve):
    served = serve(TOOLS)
    with opened(served.url) as socket:
        begin(socket)
        say(socket)
        calls = [
            {"name": "get_weather", "args": {"city": "Rome"}, "id": "c1"},
            {"name": "get_time", "args": {"city": "Rome"}, "id": "c2"},
        ]
        receives(socket, {"toolCall": {"functionCalls": calls}})
        for id, name, value in (("c2", "get_time", "9"), ("c1", "get_weather", "12")):
            result = {"id": id, "name": name, "response": {"result": value}}
            send(socket, toolResponse={"functionResponses": [result]})
        assert text(rest(socket)) == "It is twelve."
    assert [entry["outcome"] for entry in served.journal()] == ["played", "played"]


def test_a_result_without_an_id_belongs_to_the_first_call_of_its_name(serve):
    with opened(serve(TOOLS).url) as socket:
        begin(socket)
        say(socket)
        receive(socket)
        results = [
            {"name": "get_time", "response": {"result": "9"}},
            {"name": "get_weather", "response": {"result": "12"}},
        ]
        send(socket, toolResponse={"functionResponses": results})
        assert text(rest(socket)) == "It is twelve."


def test_who_goes_on_without_results_cancels_the_calls(serve):
    """A late result of a cancelled call changes nothing; one that nobody asked for is an error."""
    with opened(serve(GIVEN_UP).url) as socket:
        begin(socket)
        say(socket)
        receive(socket)
        say(socket, "Stop")
        receives(socket, {"toolCallCancellation": {"ids": ["c1", "c2"]}}, *ENDS)
        late = {"id": "c1", "name": "get_weather", "response": {"result": "12"}}
        send(socket, toolResponse={"functionResponses": [late]})
        assert text(rest(socket)) == "Never mind."
        send(socket, toolResponse={"functionResponses": [{**late, "id": "c9"}]})
        assert closes(socket) == (1007, "No function call waits for the response 'c9'.")


# Speech

SPOKEN = """
scenario: spoken
match: any
turns:
  - hears: {say: Where am I?, after: 200ms}
    reply: {text: In Rome., split: words, every: 10ms}
  - reply: {text: Bye.}
    speech: silence
  - reply: {text: Psst.}
    speech: none
"""


def speak(socket, milliseconds, rate=16_000):
    """Sends so much sound, in pieces of 20 ms."""
    piece = base64.b64encode(bytes(2 * rate // 50)).decode()
    for _ in range(milliseconds // 20):
        audio = {"data": piece, "mimeType": f"audio/pcm;rate={rate}"}
        send(socket, realtime_input={"audio": audio})


def sounds(messages):
    """The bytes of the sound of a turn."""
    parts = [
        part["inlineData"]
        for message in messages
        for part in message.get("serverContent", {}).get("modelTurn", {}).get("parts", ())
    ]
    assert {part["mimeType"] for part in parts} <= {"audio/pcm;rate=24000"}
    return [base64.b64decode(part["data"]) for part in parts]


def words(messages, field="outputTranscription"):
    contents = [message.get("serverContent", {}) for message in messages]
    return [content[field]["text"] for content in contents if field in content]


@pytest.mark.parametrize("rate", [16_000, 24_000])
def test_a_spoken_turn(serve, rate):
    """The user is heard after so much sound; the words of the answer are ahead of their sound."""
    served = serve(SPOKEN)
    with opened(served.url) as socket:
        begin(socket, "AUDIO", inputAudioTranscription={}, outputAudioTranscription={})
        speak(socket, 200, rate)
        heard, first, *sound = answer = rest(socket)
        assert heard == {"serverContent": {"inputTranscription": {"text": "Where am I?"}}}
        assert first == {"serverContent": {"outputTranscription": {"text": "In"}}}
        assert "modelTurn" in sound[0]["serverContent"]
        assert words(answer) == ["In", " Rome."]
        pieces = sounds(answer)
        assert [len(piece) for piece in pieces] == [3840, 4800, 4800, 1920]  # 40 ms a character
        assert len(set(pieces[0])) > 1
        details = answer[-1]["usageMetadata"]["responseTokensDetails"]
        assert [detail["modality"] for detail in details] == ["AUDIO"]
        say(socket, "Thanks")
        assert b"".join(sounds(rest(socket))) == bytes(4 * 1920)
        say(socket, "Pardon?")
        whispered = rest(socket)
        assert (words(whispered), sounds(whispered)) == (["Psst."], [])
    bodies = [json.loads(entry["body"]) for entry in served.journal()]
    assert bodies[0]["turns"] == [{"role": "user", "parts": [{"text": "Where am I?"}]}]
    assert bodies[1]["turns"][1] == {"role": "model", "parts": [{"text": "In Rome."}]}


def test_the_same_words_sound_the_same(serve):
    heard = []
    for _ in range(2):
        with opened(serve(SPOKEN).url) as socket:
            begin(socket, "AUDIO")
            say(socket)
            messages = rest(socket)
            assert words(messages) == []
            heard.append(sounds(messages))
    assert heard[0] == heard[1]


def test_the_end_of_a_stream_ends_a_turn(serve):
    with opened(serve(SPOKEN).url) as socket:
        begin(socket, "AUDIO")
        speak(socket, 40)
        send(socket, realtimeInput={"audioStreamEnd": True})
        assert sounds(rest(socket))


def test_turns_that_the_client_marks(serve):
    """Without automatic detection only the end of the activity counts."""
    manual = {"automaticActivityDetection": {"disabled": True}}
    served = serve(SPOKEN)
    with opened(served.url) as socket:
        begin(socket, realtimeInputConfig=manual, inputAudioTranscription={})
        send(socket, realtimeInput={"activityStart": {}})
        speak(socket, 400)
        send(socket, realtimeInput={"activityEnd": {}})
        messages = rest(socket)
        assert (words(messages, "inputTranscription"), text(messages)) == (
            ["Where am I?"],
            "In Rome.",
        )
        speak(socket, 100)  # nothing says what is spoken
        send(socket, realtimeInput={"activityEnd": {}})
        assert text(rest(socket)) == "Bye."
    (_, noted, second) = served.journal()
    assert noted["problems"] == ["Sound came before activityStart or after activityEnd."]
    last = json.loads(second["body"])["turns"][-1]
    assert last["parts"] == [{"inlineData": {"mimeType": "audio/pcm;rate=16000"}}]


def test_marks_need_manual_detection(serve):
    with opened(serve(SPOKEN).url) as socket:
        begin(socket)
        send(socket, realtimeInput={"activityStart": {}})
        code, reason = closes(socket)
        assert code == 1007
        assert "automatic activity detection" in reason


BARGE_IN = """
scenario: barge-in
match: any
turns:
  - reply: {text: one two three four, split: words, every: 60m}
  - hears: {say: Stop!, after: 100ms, barge_in: true}
    reply: {text: All right.}
"""


@pytest.mark.parametrize("how", ["sound", "text", "realtime text"])
def test_an_interrupted_turn(serve, how):
    """No generation is complete, and the history has what was sent."""
    served = serve(BARGE_IN, speed=1)
    with opened(served.url) as socket:
        begin(socket, inputAudioTranscription={})
        say(socket)
        receives(socket, {"serverContent": {"modelTurn": {"parts": [{"text": "one"}]}}})
        if how == "sound":
            speak(socket, 100)
        elif how == "text":
            say(socket, "Stop!")
        else:
            send(socket, realtimeInput={"text": "Stop!"})
        receives(socket, *ENDS)
        if how == "sound":
            receives(socket, {"serverContent": {"inputTranscription": {"text": "Stop!"}}})
        assert text(rest(socket)) == "All right."
    first, second = served.journal()
    assert first["interrupted"]
    turns = json.loads(second["body"])["turns"]
    assert [turn["parts"][0]["text"] for turn in turns] == ["Hi", "one", "Stop!"]


# Errors


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"clientContent": {}}, "setup is the first message, and no other."),
        ({"setup": [], "x": 1}, "A message has one of setup, clientContent"),
        ({"setup": []}, "setup must be an object."),
        ({"bidi": {}}, "A message has one of setup, clientContent"),
        ({}, "this one has nothing."),
    ],
)
def test_bad_messages_end_the_connection(serve, message, reason):
    with opened(serve(TALK).url) as socket:
        send(socket, **message)
        code, given = closes(socket)
        assert code == 1007
        assert reason in given


def test_no_json(serve):
    with opened(serve(TALK).url) as socket:
        socket.send("no JSON")
        assert closes(socket)[0] == 1007


def test_a_second_setup(serve):
    with opened(serve(TALK).url) as socket:
        begin(socket)
        send(socket, setup={"model": "models/kit"})
        assert closes(socket) == (1007, "setup is the first message, and no other.")


def test_no_key(serve):
    with opened(serve(TALK).url, headers={}) as socket:
        begin(socket)
        say(socket)
        code, reason = closes(socket)
        assert code == 1008
        assert reason.startswith("Method doesn't allow unregistered callers")


def test_an_unknown_field_of_the_setup(serve):
    with opened(serve(TALK).url) as socket:
        begin(socket, temperature=1)
        say(socket)
        code, reason = closes(socket)
        assert code == 1007
        assert "Unknown name \"temperature\" at 'setup'" in reason


@pytest.mark.parametrize(
    ("reply", "close"),
    [
        ("http: {status: 404, error: {message: No such model.}}", (1008, "No such model.")),
        ("http: {status: 429, error: {message: Quota.}}", (1011, "Quota.")),
        ("http: {status: 503, error: {message: Busy.}}", (1011, "Busy.")),
        ("reply: {error: {message: Broken.}}", (1011, "Broken.")),
        ('reply: {error: {message: Policy., code: "1008"}}', (1008, "Policy.")),
    ],
)
def test_errors_are_close_frames(serve, reply, close):
    with opened(serve(f"scenario: e\nmatch: any\nturns:\n  - {reply}\n").url) as socket:
        begin(socket)
        say(socket)
        assert closes(socket) == close


def test_a_long_reason_is_cut_between_characters(serve):
    error = {"http": {"status": 500, "error": {"message": "x" + "é" * 100}}}
    scenario = json.dumps({"scenario": "e", "match": "any", "turns": [error]})
    with opened(serve(scenario).url) as socket:
        begin(socket)
        say(socket)
        assert closes(socket) == (1011, "x" + "é" * 61)


def test_an_error_in_the_middle(serve):
    scenario = (
        "scenario: e\nmatch: any\nturns: [{reply: [{text: one}, {error: {message: Broken.}}]}]\n"
    )
    with opened(serve(scenario).url) as socket:
        begin(socket)
        say(socket)
        receives(socket, {"serverContent": {"modelTurn": {"parts": [{"text": "one"}]}}})
        assert closes(socket) == (1011, "Broken.")


def test_a_breach_of_what_a_turn_requests(serve):
    served = serve(TOOLS)
    with opened(served.url) as socket:
        begin(socket)
        say(socket)
        receive(socket)
        results = [{"id": id, "name": "x", "response": {"result": "no"}} for id in ("c1", "c2")]
        send(socket, toolResponse={"functionResponses": results})
        assert closes(socket)[0] == 1007
    assert served.journal()[-1]["outcome"] == "invalid"


def test_an_error_is_over_in_the_next_try(serve):
    scenario = "scenario: e\nmatch: any\nturns: [{attempts: [{http: 503}], reply: {text: one}}]\n"
    url = serve(scenario).url
    with opened(url) as socket:
        begin(socket)
        say(socket)
        assert closes(socket)[0] == 1011
    with opened(url) as socket:
        begin(socket)
        say(socket)
        assert text(rest(socket)) == "one"


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ("finish: content_filter", "RESPONSE_REJECTED"),
        ("finish_raw: NEED_MORE_INPUT", "NEED_MORE_INPUT"),
        ("finish: length", None),
    ],
)
def test_reasons(serve, turn, reason):
    scenario = f"scenario: e\nmatch: any\nturns: [{{reply: {{text: one}}, {turn}}}]\n"
    with opened(serve(scenario).url) as socket:
        begin(socket)
        say(socket)
        assert rest(socket)[-1]["serverContent"].get("turnCompleteReason") == reason


# The end of a connection, and the next one


def test_a_handle_takes_the_session_up(serve):
    served = serve(TALK)
    with opened(served.url) as socket:
        begin(socket, sessionResumption={})
        say(socket)
        rest(socket)
        update = receive(socket)["sessionResumptionUpdate"]
        assert update["resumable"] is True
    with opened(served.url) as socket:
        begin(socket, sessionResumption={"handle": update["newHandle"]})
        say(socket, "And?")
        assert text(rest(socket)) == "three"
    with opened(served.url) as socket:
        send(socket, setup={"model": "models/kit", "sessionResumption": {"handle": "no"}})
        assert closes(socket) == (1008, "The session resumption handle is not known.")


def test_notice_before_the_end(serve, monkeypatch):
    monkeypatch.setattr(LiveConversation, "lifetime", 2.0)
    monkeypatch.setattr(LiveConversation, "notice", 0.5)
    with opened(serve(TALK).url) as socket:
        begin(socket)
        receives(socket, {"goAway": {"timeLeft": "0.5s"}})
        assert closes(socket)[0] == 1008


def test_the_shipped_call():
    """Speech, a tool and an interruption: the same scenario as over Realtime."""
    with (
        ServerThread(load([FOLDER]), ServerOptions(speed=1)) as thread,
        opened(thread.url) as socket,
    ):
        begin(socket, "AUDIO", inputAudioTranscription={}, outputAudioTranscription={})
        speak(socket, 500)
        assert words(rest(socket)) == ["For", " how", " many", " people?"]
        speak(socket, 200)
        heard, called = receive(socket), receive(socket)
        assert words([heard], "inputTranscription") == ["For four."]
        (call,) = called["toolCall"]["functionCalls"]
        result = {"id": call["id"], "name": call["name"], "response": {"output": "19:30"}}
        send(socket, toolResponse={"functionResponses": [result]})
        assert words([receive(socket)]) == ["There"]
        speak(socket, 200)
        *_, interrupted, over = rest(socket)
        assert [interrupted, over] == ENDS
        assert words(rest(socket)) == ["It is yours."]
