"""kill -9 of server processes at random moments, and what their clients really did beside it."""

from __future__ import annotations

import http.client
import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mockllm.play.replay.sessions.shared_session import ENDED_EARLY
from tests.deployment.balancer.processes import Process, free_ports
from tests.serve.server.shared_state.replicas import redis_server
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

SERVED = """
scenario: numbers
match: {user: numbers}
turns:
  - attempts: [{http: 503}]
    reply: [{tool: number, arguments: {of: alice}}, {tool: number, arguments: {of: bob}}]
  - reply: {tool: add, arguments: {of: both}}
  - reply: {text: Done.}
---
scenario: paced
match: {user: paced}
turns: [{reply: {text: one two three, split: words, every: 50m}}]
"""
_PROCESSES = 3
_SESSIONS = 12
_KILLS = 4

Client = Generator[tuple[str, dict[str, Any]], tuple[int, Any], None]
"""A right client: it yields requests, and is sent the status and the body of the answer."""


def chat() -> Client:
    """Runs the tools, with the whole history in each request."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "numbers"}]
    while True:
        body = {"model": "m", "messages": messages}
        status, answer = yield "/v1/chat/completions", body
        if status == 503:
            continue
        message = answer["choices"][0]["message"]
        calls = message.get("tool_calls") or ()
        if not calls:
            return
        messages = [*messages, message]
        messages += [{"role": "tool", "tool_call_id": one["id"], "content": "1"} for one in calls]


def responses() -> Client:
    """Runs the tools, with the id of the answer before; gives up where that is gone."""
    body: dict[str, Any] = {"model": "m", "input": "numbers"}
    while True:
        status, answer = yield "/v1/responses", body
        if status == 503:
            continue
        if status != 200:
            return
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        if not calls:
            return
        results = [
            {"type": "function_call_output", "call_id": one["call_id"], "output": "1"}
            for one in calls
        ]
        body = {"model": "m", "previous_response_id": answer["id"], "input": results}


class Workers:
    """Server processes with one store; those that are killed are started again."""

    def __init__(self, folder: Path, state: str) -> None:
        (folder / "served.yaml").write_text(SERVED)
        self._folder, self._state = folder, state
        self._ports = free_ports(_PROCESSES)
        self._processes = [self._start(port) for port in self._ports]

    def wait_until_ready(self) -> None:
        for process in self._processes:
            process.wait_until_ready()

    def _start(self, port: int) -> Process:
        command = [sys.executable, "-m", "mockllm", "serve", "served.yaml"]
        command += ["--port", str(port), "--state", self._state]
        return Process(command, self._folder, "mockllm listening on ")

    def kill(self, index: int) -> None:
        """Ends a process at once, and starts another one in its place."""
        self._processes[index].kill()
        self._processes[index] = self._start(self._ports[index]).wait_until_ready()

    def connect(self, index: int) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._ports[index], timeout=GIVE_UP)

    def send(self, index: int, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of an answer; on a connection of its own."""
        connection = self.connect(index)
        try:
            data = None if body is None else json.dumps(body)
            kind = {"content-type": "application/json"}
            connection.request("GET" if body is None else "POST", path, data, kind)
            answer = connection.getresponse()
            return answer.status, json.load(answer)
        finally:
            connection.close()

    def stop(self) -> None:
        for process in self._processes:
            process.stop()


@contextmanager
def running(kind: str, folder: Path) -> Iterator[Workers]:
    with ExitStack() as stack:
        if kind == "redis":
            (folder / "redis").mkdir()
            state = stack.enter_context(redis_server(folder / "redis")).url
        else:
            state = f"sqlite:{folder / 'state.db'}"
        workers = Workers(folder, state)
        stack.callback(workers.stop)
        workers.wait_until_ready()
        yield workers


def verdict(workers: Workers, session: str) -> tuple[Any, int]:
    """The verdict on a session, and the number of its requests in the journal whose process did not
    end before the answer did."""
    status, found = workers.send(0, f"/_mockllm/verify?session={session}")
    assert status == 200, found
    _, journal = workers.send(0, f"/_mockllm/journal?session={session}")
    return found, sum(ENDED_EARLY not in entry["problems"] for entry in journal["exchanges"])


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_no_kill_makes_a_right_client_bad(tmp_path: Path, kind: str) -> None:
    """The verdict on a session that lost requests is `unknown`, on every other one `good`."""
    rng = random.Random(f"{kind} 0")
    clients = {f"s{at}": (chat, responses)[at % 2]() for at in range(_SESSIONS)}
    waiting = {session: next(client) for session, client in clients.items()}
    sent: Counter[str] = Counter()
    kills = sorted(rng.sample(range(1, 3 * _SESSIONS), _KILLS))
    with running(kind, tmp_path) as workers:
        while waiting:
            session = rng.choice(sorted(waiting))
            index = rng.randrange(_PROCESSES)
            path, body = waiting[session]
            answer = workers.send(index, f"/s/{session}{path}", body)
            sent[session] += 1
            if sent.total() in kills:
                workers.kill(index)
            try:
                waiting[session] = clients[session].send(answer)
            except StopIteration:
                del waiting[session]
        verdicts = {session: verdict(workers, session) for session in clients}
    lost = {session: sent[session] - count for session, (_, count) in verdicts.items()}
    wanted = {session: "unknown" if lost[session] else "good" for session in clients}
    assert {session: found["verdict"] for session, (found, _) in verdicts.items()} == wanted, (
        lost,
        {session: found for session, (found, _) in verdicts.items() if found["verdict"] != "good"},
    )
    assert any(lost.values()), "nothing was lost: the kills came too late"
    assert not all(lost.values())


class Crowd:
    """Clients that send their requests at the same time, and again where a connection breaks.

    Args:
        answered, broken: how many requests of each session were, and had no answer.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.answered: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self._changed = threading.Condition()

    def run(self, session: str, client: Client, rng: random.Random) -> None:
        """What one client does."""
        path, body = next(client)
        while True:
            try:
                answer = self._workers.send(rng.randrange(_PROCESSES), f"/s/{session}{path}", body)
            except (OSError, http.client.HTTPException):
                self._count(self.broken, session)
                continue
            self._count(self.answered, session)
            try:
                path, body = client.send(answer)
            except StopIteration:
                return

    def _count(self, counter: Counter[str], session: str) -> None:
        with self._changed:
            counter[session] += 1
            self._changed.notify_all()

    def wait_for(self, answers: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.answered.total() >= answers, GIVE_UP)


def test_kills_in_the_middle_of_requests(tmp_path: Path) -> None:
    """No right client is bad, none is good of which an answered request is missing, and none is
    unknown of which all is there."""
    rng = random.Random("crowd")
    names = [f"s{at}" for at in range(3 * _SESSIONS)]
    with running("sqlite", tmp_path) as workers, ThreadPoolExecutor(6) as pool:
        crowd = Crowd(workers)
        futures = [
            pool.submit(crowd.run, name, (chat, responses)[at % 2](), random.Random(at))
            for at, name in enumerate(names)
        ]
        for answers in (12, 50, 90):
            crowd.wait_for(answers)
            workers.kill(rng.randrange(_PROCESSES))
        for future in futures:
            future.result(GIVE_UP)
        verdicts = {name: verdict(workers, name) for name in names}
    for name, (found, count) in verdicts.items():
        answered, sent = crowd.answered[name], crowd.answered[name] + crowd.broken[name]
        assert found["verdict"] != "bad", (name, found)
        assert count >= answered if found["verdict"] == "good" else count < sent, (name, found)
    assert {found["verdict"] for found, _ in verdicts.values()} == {"good", "unknown"}


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_a_stream_of_a_killed_process(tmp_path: Path, kind: str) -> None:
    """How it ended is not known, although its request is in the journal. A session without one
    keeps its verdict."""
    with running(kind, tmp_path) as workers:
        client = chat()
        path, body = next(client)
        while True:
            try:
                path, body = client.send(workers.send(1, f"/s/whole{path}", body))
            except StopIteration:
                break
        connection = workers.connect(1)
        asked = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "paced"}]}
        connection.request("POST", "/s/cut/v1/chat/completions", json.dumps(asked))
        answer = connection.getresponse()
        assert answer.read1().startswith(b"data: ")
        before, count = verdict(workers, "cut")
        assert (before["verdict"], count) == ("good", 1)
        workers.kill(1)
        connection.close()
        cut, count = verdict(workers, "cut")
        assert (cut["verdict"], count, len(cut["gaps"])) == ("unknown", 0, 1)
        whole, _ = verdict(workers, "whole")
        assert (whole["verdict"], whole["gaps"]) == ("good", [])
