"""Counts how often one request, one recorded exchange and one check change the file they run in.

`python -m tools.walk` prints, for each walk, the files of mockllm that it enters, the changes from
one of them to another (calls and returns), and the calls. A request is followed from the connection
that is accepted until it is closed, a recorded exchange until it is written. A walk that enters a
file many times for a small thing is a place to look at, not a verdict. docs/architecture.md says
how many files there are at most, and tests/tools/test_walk.py compares.
"""

from __future__ import annotations

import json
import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import FrameType

from examples.accumulators import REFERENCES
from mockllm import ServerOptions, ServerThread
from mockllm.checking import examine
from mockllm.checking.cases.compile import plain_cases
from mockllm.play.replay.loading import load, shipped_scenarios
from mockllm.serve.server.options import RecordOptions

_PACKAGE = f"{Path(__file__).parent.parent / 'mockllm'}/"
_OWN = f"{_PACKAGE}serve/server/thread.py"
"""The thread in which a server runs here; one that `mockllm serve` starts has none."""


@dataclass(slots=True)
class Walk:
    """The files of mockllm that some work enters."""

    hops: int = 0
    calls: int = 0
    files: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        most = ", ".join(f"{file} {count}" for file, count in self.files.most_common(4))
        return f"{len(self.files)} files, {self.hops} hops, {self.calls} calls ({most})"


class _Follower:
    """A profile function (`threading.setprofile`) that writes down the walk of all threads.

    Imports do not count: the first request needs modules that nothing needed before.
    """

    def __init__(self) -> None:
        self.walk = Walk()
        self._files: dict[int, str] = {}
        self._imports: Counter[int] = Counter()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        thread = threading.get_ident()
        if frame.f_code.co_name == "<module>":
            self._imports[thread] += {"call": 1, "return": -1}.get(event, 0)
        elif not self._imports[thread] and event in ("call", "return") and _is_followed(frame):
            self.walk.calls += event == "call"
            now: FrameType | None = frame
            while event == "return" and (now := now and now.f_back) and not _is_followed(now):
                pass
            if now is not None and now.f_code.co_filename != self._files.get(thread):
                file = self._files[thread] = now.f_code.co_filename
                self.walk.hops += 1
                self.walk.files[file.removeprefix(_PACKAGE)] += 1


def _is_followed(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(_PACKAGE) and file != _OWN


def walks() -> dict[str, Walk]:
    """Each walk by its name."""
    follower, found = _Follower(), {}

    @contextmanager
    def follow(name: str) -> Iterator[None]:
        follower.walk = found[name] = Walk()
        yield
        follower.walk = Walk()

    threading.setprofile(follower)
    try:
        scenarios = load(shipped_scenarios() / "secret-numbers.yaml")
        with ServerThread(scenarios, ServerOptions(speed=0)) as served:
            for name, text in _REQUESTS.items():
                with follow(name):
                    answer = _exchange(served, text)
        with _service(answer) as url, tempfile.TemporaryDirectory() as folder:
            written = threading.Event()
            record = RecordOptions(Path(folder), {"chat": url}, report=lambda _: written.set())
            with (
                ServerThread((), ServerOptions(record=record)) as served,
                follow("recorded exchange"),
            ):
                _exchange(served, "secret numbers please")
                written.wait()
        cases = list(plain_cases(scenarios, "chat"))[:1]
        with follow("check"):
            _run_apart(lambda: examine(REFERENCES["chat"], cases))
    finally:
        threading.setprofile(None)
    return found


_REQUESTS = {
    "first request": "secret numbers please",
    "second request": "the secret numbers, please",
    "repeated request": "the secret numbers, please",
}


def _exchange(served: ServerThread, text: str) -> bytes:
    """The answer to a request on a connection of its own, which is closed then."""
    messages = [{"role": "user", "content": text}]
    body = json.dumps({"model": "gpt-4o", "stream": True, "messages": messages}).encode()
    host, _, port = served.url.removeprefix("http://").partition(":")
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}:{port}\r\n"
        "authorization: Bearer key\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    served.ask(int)  # the server has nothing left to do for the connection
    return answer


@contextmanager
def _service(answer: bytes) -> Iterator[str]:
    """The URL of a service that answers everything with some bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Nothing to say."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def _run_apart(work: Callable[[], object]) -> None:
    """Runs work in a thread, where it is followed."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


if __name__ == "__main__":
    for name, walk in walks().items():
        print(f"{name}: {walk}")
