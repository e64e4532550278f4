"""The Echo API over other carriers: what is served, recorded and imported stays frames."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
import yaml

from mockllm import ServerOptions, ServerThread
from mockllm.play.replay.loading import load
from mockllm.play.tapes.captured import load_tape
from mockllm.serve.server.options import RecordOptions
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.eventstream import EVENTSTREAM
from mockllm.wire.framing.ndjson import NDJSON
from mockllm.wire.protocols import PROTOCOLS
from tests.sixth_protocol.conftest import KEY, NUMBERS, Hall
from tests.sixth_protocol.echo.protocol import PROTOCOL

SECRET = "sk-proj-Ab3dEfGh1jKlMn0pQrStUv"
SPLIT = f"""\
scenario: leak
match: {{user: leak}}
turns:
- reply: {{text: "my key {SECRET} is long", split: 5}}
"""


@pytest.fixture(params=[EVENTSTREAM, NDJSON], ids=lambda carrier: carrier.name)
def carrier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Carrier:
    """How the frames of the Echo API travel."""
    given: Carrier = request.param

    def headers(reply: Any, stream: bool) -> dict[str, str]:
        own = PROTOCOL.headers(reply, stream)
        return own | {"content-type": given.content_type} if stream else own

    changed = replace(PROTOCOL, carriers=(given,), carrier=lambda _: given, headers=headers)
    monkeypatch.setitem(PROTOCOLS, "echo", replace(changed, end_data=None))
    return given


def spoken(carrier: Carrier, body: bytes) -> str:
    """The bits of all lines of a stream."""
    acts = [json.loads(frame.data) for frame in carrier.decode(body) if frame.data[:1] == "{"]
    return "".join(act["bit"] for act in acts if act["act"] == "line")


def test_what_is_recorded_has_the_bytes_of_the_service(carrier, hall, tmp_path):
    """The client gets them, the tape has them (those that are no text as base64), and the replay
    sends them; the YAML has the turn that is in them."""
    service = hall(
        NUMBERS.replace("  - attempts: [{http: 429, retry_after: 2s}]\n    reply:", "  - reply:"),
        speed=0,
    )
    expected = service.speak("numbers", gadgets=[]).content
    folder, lines = tmp_path / "recorded", []
    record = RecordOptions(folder, {"echo": f"{service.url}/echo"}, report=lines.append)
    with (
        ServerThread((), ServerOptions(record=record)) as thread,
        httpx.Client(base_url=thread.url, headers=KEY, timeout=60) as http,
    ):
        first = Hall(http, thread).speak("numbers", gadgets=[])
    assert first.content == expected
    assert first.headers["content-type"] == carrier.content_type
    assert [(line.outcome, line.not_found) for line in lines] == [("neutral", "")]
    (file,) = folder.glob("*.jsonl")
    assert (b'{"base64":' in file.read_bytes()) == (carrier is EVENTSTREAM)
    assert load_tape(file.read_bytes(), "x").exchange.body == expected
    (scenario,) = load([folder])
    assert "One moment." in str(scenario.turns[0])
    replay = hall([folder], speed=0)
    assert replay.speak("numbers", gadgets=[]).content == expected
    assert [entry["recorded"] for entry in replay.journal()] == ["exact"]


def test_a_secret_across_frames_is_not_recorded(carrier, hall, tmp_path):
    """Neither on the tape nor in the YAML; what is replayed decodes."""
    service = hall(SPLIT, speed=0)
    assert SECRET in spoken(carrier, service.speak("leak").content)
    folder = tmp_path / "recorded"
    record = RecordOptions(folder, {"echo": f"{service.url}/echo"})
    with (
        ServerThread((), ServerOptions(record=record)) as thread,
        httpx.Client(base_url=thread.url, headers=KEY, timeout=60) as http,
    ):
        Hall(http, thread).speak("leak")
    replay = hall([folder], speed=0)
    text = spoken(carrier, replay.speak("leak").content)
    assert text == "my key sk-proj-REDACTED-1xxxxxxxxxxxxxx is long"
    assert [entry["recorded"] for entry in replay.journal()] == ["exact"]


def test_cassettes_are_written_and_read(carrier, folder, mockllm, tmp_path):
    """As VCR writes them: bytes that are no text are `!!binary`."""
    cassette = tmp_path / "cassette.yaml"
    result = mockllm("export", "numbers", "--scenarios", folder, "--to", "vcr", "--api", "echo",
                     "-o", cassette)  # fmt: skip
    assert result.exit_code == 0, result.output
    bodies = [
        one["response"]["body"]["string"]
        for one in yaml.safe_load(cassette.read_text())["interactions"]
    ]
    whole = [body if isinstance(body, bytes) else body.encode() for body in bodies]
    assert any("One moment." in spoken(carrier, body) for body in whole[1:])
    out = tmp_path / "imported"
    result = mockllm("import", cassette, "-o", out)
    assert result.exit_code == 0, result.output
    (scenario,) = load([out])
    assert scenario.turns[0].recorded is not None
    assert "One moment." in str(scenario.turns[0])


def test_a_fault_strikes_inside_a_frame_on_its_way(carrier, hall):
    """Over HTTP, and with a reason where there is no such part."""
    service = hall(SPLIT, speed=0, fallback=False)
    whole = service.speak("leak").content
    fault = {"x-mockllm-fault": "cut:inside=event 3 checksum,end=orderly"}
    body = {"speaker": "narrator-1", "live": True, "dialogue": [{"who": "human", "line": "leak"}]}
    came = service.http.post("/echo/v2/speak", json=body, headers=fault).content
    struck = service.journal()[-1]
    if carrier is EVENTSTREAM:
        assert whole.startswith(came)
        assert len(carrier.decode(came)) == 2
        assert "problems" not in struck or not struck["problems"]
    else:
        assert came == whole
        assert "frames over ndjson have no such part" in json.dumps(struck)
