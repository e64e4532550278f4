"""Recorders that are killed: nothing is broken, and nothing is lost that a client had whole."""

import json
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from mockllm.recording.drafting.conversations import text_of
from mockllm.replay.loading import load
from tests.server.odd_upstream import CHUNKED, EVENTS, OddUpstream, says
from tests.server.recording import PATH, assistant, chat

pytestmark = pytest.mark.slow

RECORD = (sys.executable, "-m", "mockllm", "record", "--quiet", "--port", "0", "--upstream")
KILLS = 50
RECORDERS = 2


async def echo(request, wire):
    """Answers with the last message, in words."""
    said = request.json["messages"][-1]["content"]
    await wire.head(EVENTS, CHUNKED)
    for event in says(*f"you said {said}".split(" ")):
        await wire.chunk(event)
    await wire.end()


class Recorder:
    """`mockllm record` in a process of its own."""

    def __init__(self, folder, upstream):
        self.process = subprocess.Popen(
            [*RECORD, upstream, "-o", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        first = self.process.stdout.readline()
        if not first:
            raise AssertionError(self.end(signal.SIGKILL))
        self.url = first.strip().removeprefix("mockllm listening on ")

    def end(self, number):
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=30)
        return errors


def converse(url, name, whole):
    """Talks until the recorder is gone; notes what came to its end."""
    history = []
    with httpx.Client(base_url=url, timeout=10) as client:
        for turn in range(1000):
            said = f"{name} says {turn}"
            try:
                answer = client.post(PATH, json=chat(said, *history)).text
            except httpx.TransportError:
                return
            assert "[DONE]" in answer
            whole.append(f"yousaid{said}".replace(" ", ""))
            history += [{"role": "user", "content": said}, assistant(_text(answer))]
            if turn % 4 == 3:
                history = []


def _text(stream):
    chunks = [json.loads(line[6:]) for line in stream.split("\n\n") if line.startswith("data: {")]
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)


def talk_and_kill(folder, upstream, number, delays, whole):
    """One recorder after the other on a folder, each killed while two clients talk. None starts
    in a folder that cannot be loaded."""
    for round_, delay in enumerate(delays):
        recorder = Recorder(folder, upstream)
        with ThreadPoolExecutor() as pool:
            names = [f"{number}-{round_}-{n}" for n in range(2)]
            clients = [pool.submit(converse, recorder.url, name, whole) for name in names]
            time.sleep(delay)
            recorder.end(signal.SIGKILL)
        for client in clients:
            client.result()


def said_in(folder):
    scenarios = load([folder])
    return {text_of(turn.reply) for one in scenarios for turn in one.turns}


def test_killed_fifty_times(tmp_path):
    """Two recorders write to one folder, and both are killed again and again at random moments
    while clients talk. At each moment the folder can be loaded, and in the end there is a turn
    for every answer that a client had read to its end."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    dice = random.Random(5)
    whole = []
    with OddUpstream(echo) as upstream:
        delays = [
            [dice.uniform(0, 0.35) for _ in range(KILLS // RECORDERS)] for _ in range(RECORDERS)
        ]
        with ThreadPoolExecutor() as pool:
            recorders = [
                pool.submit(talk_and_kill, folder, upstream.url, number, delays[number], whole)
                for number in range(RECORDERS)
            ]
        for recorder in recorders:
            recorder.result()
        last = Recorder(folder, upstream.url)
        assert last.end(signal.SIGTERM) == ""
    assert len(whole) > KILLS // 2
    assert set(whole) - said_in(folder) == set()
    left = {file.name for file in folder.iterdir() if file.suffix not in (".yaml", ".jsonl")}
    assert left == {".recording.lock"}
