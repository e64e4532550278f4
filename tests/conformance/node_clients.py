"""Clients under Node: one process, started for the first job, runs many jobs at once.

`make tests/conformance/node/node_modules/.installed` installs them; `run.mjs` describes the lines
that are exchanged.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import threading
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Outcome, Trouble
from mockllm.checking.probes import Run
from mockllm.scenario.model import Api
from tests.conformance.client import Client, NotInstalledError
from tests.conformance.request_body import body, schemas

__all__ = ["NODE_CLIENTS", "Node"]

Json = dict[str, Any]

_FOLDER = Path(__file__).parent / "node"
_GIVE_UP = 180.0
"""Seconds for one job; `run.mjs` ends a client much earlier."""


class Node:
    """A Node process for the clients of a folder; one that ends is started again.

    Several threads may run jobs at once. Whatever happens to the process, each of them gets an
    outcome; if the process failed, it has the failure as an error.
    """

    def __init__(self, folder: Path = _FOLDER) -> None:
        self._folder = folder
        self._process: _Process | None = None
        self._lock = threading.Lock()

    def version(self, package: str) -> str:
        """The version of a package in the folder; raises `NotInstalledError` if it is missing."""
        _executable()
        manifest = self._folder / "node_modules" / package / "package.json"
        if not manifest.is_file():
            raise NotInstalledError(
                f"{package} is not here: "
                "`make tests/conformance/node/node_modules/.installed` installs it"
            )
        version: str = json.loads(manifest.read_text("utf-8"))["version"]
        return version

    def run(self, client: str) -> Run:
        """The client `FILE#FUNCTION`; the file is relative to the folder."""
        return partial(self._run, client)

    def close(self) -> None:
        """Ends the process; a later job starts another."""
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def _run(self, client: str, base_url: str, case: Case) -> Outcome:
        job = {
            "client": client,
            "base_url": base_url,
            "body": body(case),
            "prompt": case.prompt,
            "model": case.model,
            "tools": schemas(case),
        }
        with self._lock:
            if self._process is None or not self._process.alive:
                self._process = _Process(self._folder)
            process = self._process
        result = process.send(job)
        errors = [Trouble(**error) for error in result["errors"]]
        return Outcome.of(**{**result, "errors": errors})


class _Process:
    """One run of `run.mjs`."""

    def __init__(self, folder: Path) -> None:
        node = _executable()
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - see `_close`
        self._popen = subprocess.Popen(
            [node, str(folder / "run.mjs")],
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self.alive = True
        self._end = _failed("it has ended")
        self._ids = count()
        self._waiting: dict[int, Future[Json]] = {}
        self._lock = threading.Lock()  # guards `alive` and `_waiting`
        self._write_lock = threading.Lock()  # guards the pipe to the process
        self._reader = threading.Thread(target=self._read, name="node-answers", daemon=True)
        self._reader.start()
        atexit.register(self.kill)

    def send(self, job: Json) -> Json:
        """The result of a job; if there is none, one with the failure as an error."""
        answer: Future[Json] = Future()
        with self._lock:
            if not self.alive:
                return self._end
            id = next(self._ids)
            self._waiting[id] = answer
        self._write(json.dumps({"id": id, **job}) + "\n")
        try:
            return answer.result(_GIVE_UP)
        except TimeoutError:
            self.kill()
            return _failed(f"there was no answer within {_GIVE_UP:.0f} seconds")

    def kill(self) -> None:
        """Ends the process; waiting jobs get the failure."""
        self._popen.kill()
        self._reader.join()

    def _write(self, line: str) -> None:
        assert self._popen.stdin is not None
        with self._write_lock:
            # If the process has ended, the reader gives waiting jobs the failure.
            if not self._popen.stdin.closed:
                with suppress(BrokenPipeError):
                    self._popen.stdin.write(line.encode())
                    self._popen.stdin.flush()

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            answer = json.loads(line)
            with self._lock:
                waiting = self._waiting.pop(answer["id"])
            waiting.set_result(answer["result"])
        code = self._popen.wait()
        self._errors.seek(0)
        last_errors = self._errors.read()[-2000:]
        with self._lock:
            self.alive = False
            self._end = _failed(f"it ended with {code} {last_errors}".rstrip())
            for waiting in self._waiting.values():
                waiting.set_result(self._end)
        self._close()

    def _close(self) -> None:
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._errors.close()
        self._popen.stdout.close()
        with self._write_lock, suppress(BrokenPipeError):
            self._popen.stdin.close()


def _executable() -> str:
    node = shutil.which("node")
    if node is None:
        raise NotInstalledError("Node is not installed; nodejs.org has it")
    return node


def _failed(reason: str) -> Json:
    return {"errors": [{"message": f"Node failed: {reason}", "crash": True}]}


def _environment() -> dict[str, str]:
    """The variables that Node needs; others may change the behaviour of clients."""
    kept = ("PATH", "HOME", "TMPDIR", "SYSTEMROOT")
    return {name: os.environ[name] for name in kept if name in os.environ}


_NODE = Node()


def _client(
    name: str, packages: str, api: Api, client: str, *unseen: str, notes: str = ""
) -> Client:
    """A client of the folder `node`; `packages` is its own, and those that it is used with."""
    package, *others = packages.split()

    def version() -> str:
        used_with = [f"{other} {_NODE.version(other)}" for other in others]
        return " with ".join([_NODE.version(package), *used_with])

    return Client(name, package, version, api, _NODE.run(client), frozenset(unseen), notes)


_NODE_22 = "It requires Node 22 or newer; under Node 20 npm installs it with a warning."
_NOT_OPENAI = "OpenAI's own API has no reasoning here; the client ignores what other servers add."
_SNAPSHOT = "The outcome is `finalResponse()`, which exists whatever the stream ended with."
_INVALID = (
    "The outcome is the parts of `fullStream`. A call that is flagged `invalid` is kept with its "
    "input as text if the input is not JSON; otherwise it is an error. A stream without a finish "
    "reason ends in `other`, without a `rawFinishReason`."
)
_COMPATIBLE = f"{_INVALID} The test sets `includeUsage`; without it the client requests no usage."
_SUBSCRIBER = (
    "The outcome is the messages after `runAgent()`, and the end that a subscriber receives: "
    "`runAgent()` resolves after `RUN_ERROR` as it does after `RUN_FINISHED`."
)

NODE_CLIENTS: tuple[Client, ...] = (
    _client(
        "openai-node chat.completions.stream()",
        "openai",
        "chat",
        "./openai.mjs#chat",
        "reasoning",
        notes=f"{_NOT_OPENAI} {_NODE_22}",
    ),
    _client(
        "openai-node responses.stream()",
        "openai",
        "responses",
        "./openai.mjs#responses",
        notes=f"{_SNAPSHOT} {_NODE_22}",
    ),
    _client(
        "@anthropic-ai/sdk messages.stream()",
        "@anthropic-ai/sdk",
        "anthropic",
        "./anthropic.mjs#messages",
        "refusal",
    ),
    _client(
        "AI SDK @ai-sdk/openai chat()",
        "@ai-sdk/openai ai",
        "chat",
        "./vercel.mjs#chat",
        "reasoning",
        "refusal",
        notes=f"{_NOT_OPENAI} {_INVALID}",
    ),
    _client(
        "AI SDK @ai-sdk/openai-compatible",
        "@ai-sdk/openai-compatible ai",
        "chat",
        "./vercel.mjs#compatible",
        "refusal",
        notes=_COMPATIBLE,
    ),
    _client(
        "AI SDK @ai-sdk/openai responses()",
        "@ai-sdk/openai ai",
        "responses",
        "./vercel.mjs#responses",
        "refusal",
        notes=_INVALID,
    ),
    _client(
        "AI SDK @ai-sdk/anthropic",
        "@ai-sdk/anthropic ai",
        "anthropic",
        "./vercel.mjs#messages",
        "refusal",
        notes=_INVALID,
    ),
    _client(
        "AI SDK @ai-sdk/google",
        "@ai-sdk/google ai",
        "gemini",
        "./vercel.mjs#contents",
        "refusal",
        notes=_INVALID,
    ),
    _client(
        "@ag-ui/client HttpAgent",
        "@ag-ui/client",
        "agui",
        "./agui.mjs#agent",
        "refusal",
        notes=_SUBSCRIBER,
    ),
)
"""The clients under Node in every way of using them that is tested."""
