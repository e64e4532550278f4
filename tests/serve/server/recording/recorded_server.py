"""A recording server in front of an `OddUpstream`, and the folder that it writes."""

import json
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from mockllm import ServerOptions, ServerThread
from mockllm.play.replay.loading import load
from mockllm.play.tapes.captured import load_tape
from mockllm.serve.server.options import RecordOptions
from mockllm.wire.protocols import PROTOCOLS
from tests.serve.server.recording.odd_upstream import OddUpstream
from tests.timeouts import GIVE_UP

APIS = tuple(PROTOCOLS)

PATH = "/v1/chat/completions"


def chat(text="hello", *history, stream=True, **more):
    """The body of a Chat Completions request."""
    messages = [*history, {"role": "user", "content": text}]
    return {"model": "odd-1", "messages": messages, "stream": stream, **more}


class Recording:
    """An upstream, a recorder and its folder; `lines` are the reports about the exchanges."""

    def __init__(self, folder: Path, upstream: OddUpstream) -> None:
        self.folder = folder
        self.upstream = upstream
        self.lines = []
        self.url = ""
        self.http = httpx.Client()

    @contextmanager
    def recording(self, mode="add", scenarios=(), upstreams=None, **options):
        """A server that records while the block lasts."""
        if upstreams is None:
            upstreams = dict.fromkeys(APIS, self.upstream.url)
        record = RecordOptions(self.folder, upstreams, mode, report=self.lines.append, **options)
        with ExitStack() as stack:
            thread = stack.enter_context(ServerThread(scenarios, ServerOptions(record=record)))
            self.thread = thread
            self.url = thread.url
            self.http = stack.enter_context(httpx.Client(base_url=thread.url, timeout=GIVE_UP))
            yield self

    @contextmanager
    def replaying(self, **options):
        """A server that plays the recordings of the folder; gives a client of it."""
        with ExitStack() as stack:
            thread = stack.enter_context(
                ServerThread(load([self.folder]), ServerOptions(**options))
            )
            yield stack.enter_context(httpx.Client(base_url=thread.url, timeout=GIVE_UP))

    def post(self, body, **headers):
        return self.http.post(PATH, json=body, headers=headers)

    def scenarios(self):
        return {scenario.name: scenario for scenario in load([self.folder])}

    def tape(self, name, turn=1):
        file = self.folder / f"{name}.{turn}.jsonl"
        return load_tape(file.read_bytes(), str(file))

    @property
    def descriptions(self):
        return [line.description for line in self.lines]


def exchanges(client, session="default"):
    answer = client.get("/_mockllm/journal", params={"session": session})
    return json.loads(answer.content)["exchanges"]
