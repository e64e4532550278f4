"""Traffic of a protocol that is registered is recorded, imported and exported as its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import yaml

from mockllm import ServerOptions, ServerThread
from mockllm.cli.options.recording import services
from mockllm.play.replay.loading import load
from mockllm.play.tapes.captured import detect_api, load_tape
from mockllm.record.importers import har, sse_dump, vcr
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.serve.server.options import RecordOptions
from tests.sixth_protocol.conftest import CUES, GADGETS, KEY, NUMBERS, Hall, heard, spoken
from tests.sixth_protocol.echo.protocol import PROTOCOL

ROOT = Path(__file__).parents[2]
URL = "https://gateway.example/tenant-7/echo/v2/speak"
RESULTS = (heard("call_a", "42"), heard("call_b", "7"))


class Recorder:
    """A server between a client and a service; `lines` has what became of each exchange."""

    def __init__(self, folder: Path, service: Hall) -> None:
        self.folder = folder
        self.lines = []
        self._upstreams = services([f"echo={service.url}"], {})

    @contextmanager
    def recording(self):
        record = RecordOptions(self.folder, self._upstreams, report=self.lines.append)
        with (
            ServerThread((), ServerOptions(record=record)) as thread,
            httpx.Client(base_url=thread.url, headers=KEY, timeout=60) as http,
        ):
            yield Hall(http, thread)

    @property
    def outcomes(self):
        return [line.outcome for line in self.lines]


@pytest.fixture
def recorder(hall, tmp_path):
    """A recorder in front of a server that speaks the Echo API."""
    return Recorder(tmp_path / "recorded", hall(NUMBERS, speed=0))


def lead(one: Hall) -> list[httpx.Response]:
    """A conversation of two turns; the first try of the first one fails."""
    return [
        one.speak("numbers", gadgets=GADGETS),
        one.speak("numbers", gadgets=GADGETS),
        one.speak("numbers", CUES, *RESULTS, gadgets=GADGETS),
    ]


def test_recorded_and_replayed(recorder, hall):
    """What was recorded is a scenario of the API that plays the very bytes."""
    with recorder.recording() as one:
        first = lead(one)
    assert recorder.outcomes == ["neutral"] * 3
    (scenario,) = load([recorder.folder])
    assert len(scenario.turns) == 2
    assert {load_tape(path.read_bytes(), "x").api for path in recorder.folder.glob("*.jsonl")} == {
        "echo"
    }
    replay = hall([recorder.folder], speed=0)
    second = lead(replay)
    assert [answer.status_code for answer in second] == [429, 200, 200]
    assert [answer.content for answer in second] == [answer.content for answer in first]
    assert [each["recorded"] for each in replay.journal()][1:] == ["exact", "exact"]
    assert replay.verify()["good"]


def test_the_neutral_reply_is_what_was_spoken(recorder):
    """The YAML holds text, reasoning, calls, finish and usage, not frames of the API."""
    with recorder.recording() as one:
        lead(one)
    (path,) = recorder.folder.glob("*.yaml")
    first, second = yaml.safe_load(path.read_text())["turns"]
    kinds = [kind for part in first["reply"] for kind in part if kind in _KINDS]
    assert kinds[:2] == ["reasoning", "text"]
    assert "frame" not in kinds
    assert first["usage"] == {"input": 12, "output": 9, "reasoning": 4, "cached": 2}
    assert first["attempts"][0]["http"] == 429
    assert "It is 42." in json.dumps(second["reply"])


_KINDS = {"reasoning", "text", "parallel", "tool", "frame"}


def test_a_body_and_a_stream_of_the_same_words(recorder, hall):
    """Answers to the same words, streamed and not, are distinguished by the field of this API."""
    with recorder.recording() as one:
        one.speak("numbers", gadgets=GADGETS)
        first = [one.speak("numbers", gadgets=GADGETS, live=live).content for live in (True, False)]
    replay = hall([recorder.folder], speed=0)
    replay.speak("numbers", gadgets=GADGETS)
    second = [replay.speak("numbers", gadgets=GADGETS, live=live).content for live in (True, False)]
    assert second == first


def test_a_secret_in_fragments(hall, tmp_path):
    """A secret that travels in several acts is not in the recording."""
    secret = "sk-proj-Zx81Qm4vT7bLw92KdPfRs6Ya"
    reply = f"{{text: 'It is {secret}', split: 5}}"
    text = f"scenario: s\nmatch: {{user: key}}\nturns: [{{reply: {reply}}}]"
    recorder = Recorder(tmp_path / "recorded", hall(text, speed=0))
    with recorder.recording() as one:
        assert secret in spoken(one.speak("key").text)
    written = b"".join(path.read_bytes() for path in recorder.folder.iterdir())
    assert KEY["x-echo-key"].encode() not in written
    replay = spoken(hall([recorder.folder], speed=0).speak("key").text)
    assert replay.startswith("It is ")
    assert secret not in replay


def test_an_error_of_the_service(hall, tmp_path):
    """An error in the shape of the API is understood as one."""
    error = "{message: Whisper, type: too_loud, code: e1}"
    text = f"scenario: s\nmatch: {{user: hi}}\nturns: [{{http: {{status: 429, error: {error}}}}}]"
    recorder = Recorder(tmp_path / "recorded", hall(text))
    with recorder.recording() as one:
        one.speak("hi")
    assert recorder.outcomes == ["neutral"]
    (scenario,) = load([recorder.folder])
    error = scenario.turns[0].http.error
    assert (error.message, error.type, error.code) == ("Whisper", "too_loud", "e1")


# Other tools' recordings


@pytest.fixture
def exchange(hall):
    """Body and answer of one exchange, as other tools record it."""
    one = hall(
        "scenario: hi\nmatch: {user: hi}\nturns: [{reply: {text: Hello there, split: words}}]"
    )
    answer = one.speak("hi")
    return json.loads(answer.request.content), answer.text


def imported(mockllm, hall, path, folder):
    """A server of the scenarios of `mockllm import`, whose replies must be neutral."""
    result = mockllm("import", path, "-o", folder)
    assert result.exit_code == 0, result.output
    assert ": neutral" in result.output
    return hall([folder], speed=0)


def test_a_cassette(mockllm, hall, exchange, tmp_path):
    """A cassette of VCR, with the API behind a prefix."""
    sent, stream = exchange
    request = {"method": "POST", "uri": URL, "body": json.dumps(sent), "headers": {}}
    headers = {"Content-Type": ["text/event-stream"]}
    response = {"headers": headers, "body": {"string": stream}, "status": {"code": 200}}
    path = tmp_path / "cassette.yaml"
    path.write_text(yaml.dump({"interactions": [{"request": request, "response": response}]}))
    (found,) = vcr.read(ForeignFile(path))
    assert detect_api(found).protocol is PROTOCOL
    assert imported(mockllm, hall, path, tmp_path / "out").speak("hi").text == stream


def test_an_archive(mockllm, hall, exchange, tmp_path):
    """An HTTP archive."""
    sent, stream = exchange
    kind = [{"name": "content-type", "value": "text/event-stream"}]
    entry = {
        "request": {
            "method": "POST",
            "url": URL,
            "headers": [],
            "postData": {"mimeType": "application/json", "text": json.dumps(sent)},
        },
        "response": {"status": 200, "headers": kind, "content": {"text": stream}},
    }
    path = tmp_path / "a.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": [entry]}}))
    (found,) = har.read(ForeignFile(path))
    assert detect_api(found).protocol is PROTOCOL
    assert imported(mockllm, hall, path, tmp_path / "out").speak("hi").text == stream


@pytest.mark.parametrize("beside", [True, False], ids=["request", "alone"])
def test_a_dump(mockllm, hall, exchange, tmp_path, beside):
    """A dump of curl is known by its acts alone; without a request, the least one stands in."""
    sent, stream = exchange
    path = tmp_path / "hi.sse"
    path.write_text(stream)
    if beside:
        (tmp_path / "hi.request.json").write_text(json.dumps(sent))
    (found,) = sse_dump.read(ForeignFile(path))
    assert detect_api(found).protocol is PROTOCOL
    assert json.loads(found.request_body) == sent
    assert imported(mockllm, hall, path, tmp_path / "out").speak("hi").text == stream


def test_a_dump_of_a_body(exchange, hall, tmp_path):
    """An answer that is not streamed is known by its fields; the request asks for no stream."""
    body = hall("scenario: hi\nmatch: {user: hi}\nturns: [{reply: {text: Hello}}]")
    path = tmp_path / "hi.txt"
    path.write_text(body.speak("hi", live=False).text)
    (found,) = sse_dump.read(ForeignFile(path))
    assert json.loads(found.request_body) == {**exchange[0], "live": False}


def test_export_and_import(mockllm, hall, folder, tmp_path):
    """A scenario goes out as a cassette and comes back as the same conversation."""
    path = tmp_path / "cassette.yaml"
    result = mockllm(
        "export", "numbers", "--scenarios", folder, "--to", "vcr", "--api", "echo", "-o", path
    )
    assert result.exit_code == 0, result.output
    found = vcr.read(ForeignFile(path))
    assert [one.status for one in found] == [429, 200, 200, 200]
    assert all(detect_api(one).protocol is PROTOCOL for one in found)
    assert not any("key" in name for one in found for name, _ in one.request_headers)
    bodies = [json.loads(one.request_body) for one in found]
    assert [len(body["dialogue"]) for body in bodies] == [1, 1, 4, 6]
    mine = hall([folder], speed=0)
    result = mockllm("import", path, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    theirs = hall([tmp_path / "out"], speed=0)
    for body in bodies:
        left, right = (one.http.post("/echo/v2/speak", json=body) for one in (mine, theirs))
        assert left.status_code == right.status_code
        assert spoken(left.text) == spoken(right.text)
        assert spoken(left.text, "setting") == spoken(right.text, "setting")
    again = tmp_path / "again.yaml"
    mockllm("export", "cassette", "--scenarios", tmp_path / "out", "--to", "vcr", "-o", again)
    # Of a try that failed, only the error is kept, and of headers those that are known harmless.
    kept = [replace(one, source="", headers=()) for one in found[1:]]
    assert [replace(one, source="", headers=()) for one in vcr.read(ForeignFile(again))[1:]] == kept


# As programs


class Program:
    """`mockllm` with the Echo API in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.sixth_protocol.program", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )

    def lines_to(self, word: str) -> list[str]:
        """The next lines of its output, to one that has a word in it."""
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if word in line:
                return lines
        raise AssertionError(f"no {word!r} in {lines}")

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()


def served_at(lines: list[str]) -> str:
    (found,) = (re.search(r"http://[\d.:]+", line) for line in lines if "listening on" in line)
    return found[0]


@pytest.mark.slow
def test_as_programs(folder, tmp_path):
    """`serve`, `record` before it, and `serve` of what was recorded."""
    recorded = tmp_path / "recorded"
    answers = []
    with Program("serve", folder, "--port", "0") as service:
        first = service.lines_to("listening on")
        upstream = f"echo={served_at(first)}"
        with Program("record", "--upstream", upstream, "-o", recorded, "--port", "0") as proxy:
            lines = proxy.lines_to("into ")
            assert any("ECHO_BASE_URL=" in line and "# echo" in line for line in lines)
            answers.append(_answer(served_at(lines)))
            proxy.lines_to("recorded: turn 1 of numbers")
    with Program("serve", recorded, "--port", "0") as replay:
        answers.append(_answer(served_at(replay.lines_to("listening on"))))
    assert answers[0] == answers[1]
    assert answers[0][0] == 429


def _answer(url: str) -> tuple[int, str]:
    with httpx.Client(base_url=url, headers=KEY, timeout=60) as http:
        answer = Hall(http).speak("numbers", gadgets=GADGETS)
    return answer.status_code, answer.text
