"""Recorders that are killed: the folder stays loadable, and of the answers that clients have read
to their ends each is in it, or the next recorder says that it is missing."""

import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count

import httpx
import pytest

from mockllm.play.replay.loading import load
from mockllm.scenario.part_model import visible_text
from tests.record.recording.exchanging import model, user
from tests.serve.server.recording.odd_upstream import CHUNKED, EVENTS, OddUpstream, text_events
from tests.serve.server.recording.recorded_server import PATH, chat
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

RECORD = (sys.executable, "-m", "mockllm", "record", "--quiet", "--port", "0", "--upstream")
RECORDERS = 2


@dataclass(frozen=True)
class Moment:
    """When a recorder is killed.

    Args:
        answers: that the clients have read to their ends.
        parts: of further answers that they have read after these.
        pause: seconds to wait then. It spreads the kills over the time in which files are written;
            the test passes with any pause.
    """

    answers: int
    parts: int
    pause: float

    @classmethod
    def draw(cls, dice):
        return cls(dice.randrange(12), dice.randrange(8), dice.uniform(0, 0.02))


class Progress:
    """What the clients of one recorder have read so far."""

    def __init__(self):
        self._changed = threading.Condition()
        self._answers = 0
        self._parts = 0

    def add(self, *, answers=0, parts=0):
        with self._changed:
            self._answers += answers
            self._parts += parts
            self._changed.notify_all()

    def wait_for(self, moment):
        """Returns at that moment, however long the clients take to get there."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._answers >= moment.answers, GIVE_UP)
            parts = self._parts + moment.parts
            assert self._changed.wait_for(lambda: self._parts >= parts, GIVE_UP)
        time.sleep(moment.pause)


async def echo(request, wire):
    """Answers with the text of the last message."""
    text = request.json["messages"][-1]["content"]
    await wire.head(EVENTS, CHUNKED)
    for event in text_events(*f"you said {text}".split(" ")):
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
            raise AssertionError(self.process.communicate(timeout=GIVE_UP)[1])
        self.url = first.strip().removeprefix("mockllm listening on ")

    def end(self, number):
        """Sends a signal; standard error, when the process has ended."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=GIVE_UP)[1]


def converse(url, name, progress, answers):
    """Sends requests until the recorder is gone; appends the text of each answer that was read to
    its end."""
    history = []
    with httpx.Client(base_url=url, timeout=GIVE_UP) as client:
        for turn in count():
            text = f"{name} says {turn}"
            try:
                answer = read(client, chat(text, *history), progress)
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                return
            assert "[DONE]" in answer
            answers.append(f"yousaid{text}".replace(" ", ""))
            progress.add(answers=1)
            history += [user(text), model(text_in(answer))]
            if turn % 4 == 3:
                history = []


def read(client, request, progress):
    """The whole stream that answers a request."""
    parts = []
    with client.stream("POST", PATH, json=request) as response:
        for part in response.iter_text():
            parts.append(part)
            progress.add(parts=1)
    return "".join(parts)


def text_in(stream):
    chunks = [json.loads(line[6:]) for line in stream.split("\n\n") if line.startswith("data: {")]
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)


def record_and_kill(folder, upstream, number, moments, answers):
    """One recorder after the other on a folder, each killed at its moment, while two clients send
    requests. None starts in a folder that cannot be loaded."""
    for round_, moment in enumerate(moments):
        recorder = Recorder(folder, upstream)
        progress = Progress()
        with ThreadPoolExecutor() as pool:
            names = [f"{number}-{round_}-{n}" for n in range(2)]
            clients = [
                pool.submit(converse, recorder.url, name, progress, answers) for name in names
            ]
            try:
                progress.wait_for(moment)
            finally:
                recorder.end(signal.SIGKILL)
        for client in clients:
            client.result()


def texts_in(folder):
    scenarios = load([folder])
    return {visible_text(turn.reply) for scenario in scenarios for turn in scenario.turns}


@pytest.mark.parametrize("kills", [6, pytest.param(24, marks=pytest.mark.heavy)])
def test_killed_many_times(tmp_path, kills):
    """Two recorders write to one folder, and both are killed again and again at random moments
    while clients send requests. The folder can be loaded each time. In the end there is a turn for
    every answer that a client has read to its end, or the last recorder counts it as missing."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    dice = random.Random(5)
    moments = [[Moment.draw(dice) for _ in range(kills // RECORDERS)] for _ in range(RECORDERS)]
    answers = []
    with OddUpstream(echo) as upstream:
        with ThreadPoolExecutor() as pool:
            recorders = [
                pool.submit(record_and_kill, folder, upstream.url, number, each, answers)
                for number, each in enumerate(moments)
            ]
        for recorder in recorders:
            recorder.result()
        last = Recorder(folder, upstream.url)
        summary = last.end(signal.SIGTERM)
    assert len(answers) >= sum(moment.answers for each in moments for moment in each) > kills
    told = re.search(r"(\d+) not recorded", summary)
    assert len(set(answers) - texts_in(folder)) <= int(told[1] if told else 0)
    left = {file.name for file in folder.iterdir() if file.suffix not in (".yaml", ".jsonl")}
    assert left == {".recording.lock"}
