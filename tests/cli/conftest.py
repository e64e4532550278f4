"""Runs the command line, in this process or as a program."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from mockllm.cli import main
from mockllm.play.replay.loading import shipped_scenarios

GIVE_UP = 120.0
"""Seconds after which a program that hangs is killed, and a request without an answer fails."""

HELLO = """\
scenario: hello
description: Says hello.
match: {user: hello}
turns:
  - reply: {text: Hello there, split: words}
"""


class Program:
    """`mockllm` in a process of its own, which is killed after GIVE_UP seconds."""

    def __init__(self, arguments, environment):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mockllm", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, **environment},
        )
        self.watchdog = threading.Timer(GIVE_UP, self.process.kill)
        self.watchdog.start()
        self.url = ""

    def line(self):
        """The next line of its output, without the line end."""
        line = self.process.stdout.readline()
        assert line, f"no more output; on standard error: {self.process.stderr.read()}"
        return line.rstrip("\n")

    def line_with(self, text):
        """The next line that contains a text; skips the lines before it."""
        while text not in (line := self.line()):
            pass
        return line

    def listening(self):
        """Reads the first line, which has the address, and returns the program."""
        self.url = self.line().removeprefix("mockllm listening on ")
        return self

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def end(self):
        """Waits for the end; returns the exit code, the rest of the output, and standard error."""
        rest, errors = self.process.communicate()
        return self.process.returncode, rest, errors


@pytest.fixture
def program():
    """Starts programs, and kills those that are still running after the test."""
    started = []

    def start(*arguments, **environment):
        started.append(Program(arguments, environment))
        return started[-1]

    yield start
    for one in started:
        one.watchdog.cancel()
        one.process.kill()
        one.process.communicate()


@pytest.fixture
def mockllm():
    """Runs a command in this process and returns click's `Result`."""

    def invoke(*arguments, stdin=None):
        return CliRunner().invoke(
            main, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False
        )

    return invoke


@pytest.fixture
def shipped():
    return shipped_scenarios()


@pytest.fixture
def folder(tmp_path):
    """A folder with one scenario."""
    (tmp_path / "hello.yaml").write_text(HELLO)
    return tmp_path


@contextmanager
def post(url, path, body, headers=None):
    """The response to a POST; `body` is bytes."""
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname, where.port, timeout=GIVE_UP)
    try:
        connection.request("POST", path, body, headers or {"content-type": "application/json"})
        yield connection.getresponse()
    finally:
        connection.close()


def chat(url, text):
    """Status and body of the answer to a chat request without `stream`."""
    body = b'{"model": "gpt", "messages": [{"role": "user", "content": "%b"}]}' % text.encode()
    with post(url, "/v1/chat/completions", body) as response:
        return response.status, response.read()


def write(folder: Path, name: str, text: str) -> Path:
    """Replaces a file atomically, as editors do."""
    path = folder / name
    draft = folder.parent / f"{folder.name}-{name}.draft"
    draft.write_text(text)
    draft.replace(path)
    return path
