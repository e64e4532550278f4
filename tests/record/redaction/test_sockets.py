"""Sessions over WebSockets without their secrets."""

import base64
import json
import random
from dataclasses import replace

import pytest

from mockllm.play.tapes.socket_session import SocketMessage, SocketSession
from mockllm.play.tapes.socket_tape import dump_session, load_session
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.scrub import scrub

KEY = "ek_68af296e8e408191a1120ab6383263c2"
API_KEY = "sk-proj-abcdefgh12345678ijkl"
HANDLES = "Cihyd2tlbjEyMzQ1Njc4OTBhYmNk", "Chx4d2tlbjEyMzQ1Njc4OTBhYmNk"


def text(side, value, connection=0):
    return SocketMessage(0, connection, side, "text", json.dumps(value).encode())


SESSION = SocketSession(
    f"https://api.openai.com/v1/realtime?model=gpt-realtime&key={API_KEY}",
    (
        ("authorization", f"Bearer {API_KEY}"),
        ("sec-websocket-protocol", f"realtime, openai-insecure-api-key.{KEY}, openai-beta.v1"),
        ("openai-beta", "realtime=v1"),
    ),
    101,
    (("sec-websocket-protocol", "realtime"), ("openai-organization", "acme-4711-corp")),
    (
        text("client", {"type": "session.update", "session": {"note": f"of {KEY}"}}),
        text("service", {"type": "session.updated", "session": {"user": "anna@holm-mail.com"}}),
        text("service", {"type": "response.text.delta", "item_id": "i", "delta": "to bob@hol"}),
        text("service", {"type": "response.text.delta", "item_id": "i", "delta": "m-mail.com."}),
        SocketMessage(0, 0, "service", "binary", b"\xff\x00 " + API_KEY.encode() + b" \xfe"),
        SocketMessage(0, 0, "client", "ping", API_KEY.encode()),
        SocketMessage(0, 0, "service", "close", code=1008, reason=f"{API_KEY} is over"),
    ),
)
PLANTED = (KEY, API_KEY, "anna@", "bob@", "holm-mail", "acme-4711")


def test_no_planted_secret_survives():
    """In the handshake, in messages of either side and of any kind, cut over several, in a ping, in
    the reason of a close."""
    clean = Redactor().socket(SESSION)
    tape = dump_session(clean).decode()
    plain = b"".join(message.data for message in clean.messages).decode("latin-1")
    assert not [secret for secret in PLANTED if secret in tape or secret in plain]
    assert dict(clean.request_headers)["openai-beta"] == "realtime=v1"
    protocols = dict(clean.request_headers)["sec-websocket-protocol"].split(", ")
    assert protocols[0] == "realtime"
    assert protocols[1].startswith("openai-insecure-api-key.ek_REDACTED-")
    assert protocols[2] == "openai-beta.v1"
    assert dict(clean.headers)["sec-websocket-protocol"] == "realtime"
    note = json.loads(clean.messages[0].data)["session"]["note"]
    assert protocols[1] == f"openai-insecure-api-key.{note.removeprefix('of ')}"


@pytest.mark.parametrize(
    ("protocol", "stays"),
    [
        ("realtime", True),
        ("openai-beta.realtime-v1", True),
        ("graphql-transport-ws", True),
        ("header28-value", False),
        ("4f9a1c7e0b2d4f9a1c7e0b2d4f9a1c7e", False),
    ],
)
def test_names_of_protocols(protocol, stays):
    """A page has no other place for a key; what does not read like a name is one."""
    headers = (("sec-websocket-protocol", f"token, {protocol}"),)
    clean = Redactor().socket(replace(SESSION, request_headers=headers))
    assert (clean.request_headers == headers) is stays


def test_messages_stay_apart():
    """There are as many, each JSON that was JSON; one without a secret keeps its bytes."""
    clean = Redactor().socket(SESSION)
    assert len(clean.messages) == len(SESSION.messages)
    for before, after in zip(SESSION.messages, clean.messages, strict=True):
        assert replace(after, data=b"", reason="") == replace(before, data=b"", reason="")
        if before.data.startswith(b"{"):
            assert json.loads(after.data)
    pretty = SocketMessage(0, 0, "service", "text", b'{\n  "type": "x",\r\n  "n": 1\n}')
    assert Redactor().socket(replace(SESSION, messages=(pretty,))).messages == (pretty,)


def test_handles_of_resumed_sessions_tell_apart():
    """Each has its placeholder, and the client's is that of the service."""
    messages = [
        *(
            text("service", {"sessionResumptionUpdate": {"newHandle": handle}})
            for handle in HANDLES
        ),
        text("client", {"setup": {"sessionResumption": {"handle": HANDLES[1]}}}, 1),
    ]
    clean = Redactor().socket(replace(SESSION, messages=tuple(messages)))
    first, second, sent = (json.loads(message.data) for message in clean.messages)
    first, second = (one["sessionResumptionUpdate"]["newHandle"] for one in (first, second))
    assert first != second
    assert sent["setup"]["sessionResumption"]["handle"] == second
    assert not {first, second} & set(HANDLES)


def test_settings_of_the_service():
    """Addresses and names from within xAI's service go, with all below them."""
    settings = {
        "xvad_settings": {"address": "grpc://vad.prod:50051", "models": ["vad-large"]},
        "model_address": "10.1.2.3:99",
        "turn_detection": {"type": "server_vad"},
    }
    message = text("service", {"type": "session.updated", "session": settings})
    (clean,) = Redactor().socket(replace(SESSION, messages=(message,))).messages
    session = json.loads(clean.data)["session"]
    assert "vad.prod" not in str(session)
    assert "vad-large" not in str(session)
    assert "10.1.2.3" not in str(session)
    assert session["turn_detection"] == {"type": "server_vad"}


@pytest.mark.parametrize("silent", [True, False])
def test_sound_stays(silent):
    """What looks like a key in megabytes of it is none."""
    sound = bytes(60_000) if silent else random.Random(7).randbytes(60_000)
    audio = base64.b64encode(sound).decode()
    message = text("service", {"type": "response.output_audio.delta", "delta": audio})
    clean = Redactor().socket(replace(SESSION, messages=(message,)))
    assert clean.messages == (message,)


def test_fragments_of_a_message_with_a_secret():
    """They are as long as what is left, also where the last one was shorter than the secret."""
    data = f"{API_KEY} {API_KEY} end".encode()
    for fragments in ((10, len(data) - 10), (len(data) - 2, 2)):
        message = SocketMessage(0, 0, "client", "text", data, fragments=fragments)
        (clean,) = Redactor().socket(replace(SESSION, messages=(message,))).messages
        assert sum(clean.fragments) == len(clean.data)
        assert min(clean.fragments) >= 0


def test_a_tape_is_scrubbed():
    """Its lines with secrets are named, and it is one afterwards."""
    (scrubbed,) = scrub({"a.1.jsonl": dump_session(SESSION)}, Redactor())
    assert scrubbed.content is not None
    assert not [secret for secret in PLANTED if secret.encode() in scrubbed.content]
    assert {finding.line for finding in scrubbed.findings} == {1, 2, 3, 4, 5, 6, 7, 8}
    clean = load_session(scrubbed.content, "a.1.jsonl")
    assert scrub({"a.1.jsonl": dump_session(clean)}, Redactor()) == []
