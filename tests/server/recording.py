"""A recording server in front of an odd upstream, and what it has written."""

import json
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from mockllm import ServerOptions, ServerThread
from mockllm.replay.loading import load
from mockllm.scenario.model import APIS
from mockllm.server.options import RecordOptions
from mockllm.tapes.load import load_tape
from tests.server.odd_upstream import OddUpstream

PATH = "/v1/chat/completions"


def chat(text="hello", *history, stream=True, **more):
    """A request of Chat Completions."""
    messages = [*history, {"role": "user", "content": text}]
    return {"model": "odd-1", "messages": messages, "stream": stream, **more}


def assistant(text=None, *calls):
    """A message of the model in a history; calls are (id, name, arguments)."""
    made = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, name, arguments in calls
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def result(id, content):
    return {"role": "tool", "tool_call_id": id, "content": content}


class Recording:
    """The three of them; `lines` is what was told of each exchange."""

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
        record = RecordOptions(self.folder, upstreams, mode, told=self.lines.append, **options)
        with ExitStack() as stack:
            thread = stack.enter_context(ServerThread(scenarios, ServerOptions(record=record)))
            self.thread = thread
            self.url = thread.url
            self.http = stack.enter_context(httpx.Client(base_url=thread.url, timeout=20))
            yield self

    @contextmanager
    def replaying(self, **options):
        """A server that plays what was recorded."""
        with ExitStack() as stack:
            thread = stack.enter_context(
                ServerThread(load([self.folder]), ServerOptions(**options))
            )
            yield stack.enter_context(httpx.Client(base_url=thread.url, timeout=20))

    def post(self, body, **headers):
        return self.http.post(PATH, json=body, headers=headers)

    def scenarios(self):
        return {one.name: one for one in load([self.folder])}

    def tape(self, name, turn=1):
        file = self.folder / f"{name}.{turn}.jsonl"
        return load_tape(file.read_bytes(), str(file))

    @property
    def words(self):
        return [line.words for line in self.lines]


def exchanges(client, session="default"):
    answer = client.get("/_mockllm/journal", params={"session": session})
    return json.loads(answer.content)["exchanges"]
