"""The Echo API beside the five: registered for each test of this folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from mockllm import ServerOptions, ServerThread
from mockllm.cli import main
from mockllm.play.replay.loading import load, loads
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols import PROTOCOLS
from tests.sixth_protocol.echo.protocol import PROTOCOL

KEY = {"x-echo-key": "sk-echo-0123456789abcdef0123"}

NUMBERS = """\
scenario: numbers
description: Two cues, then a line.
match: {user: numbers}
tools:
  - name: get
    parameters: {type: object, properties: {name: {type: string}}}
turns:
  - attempts: [{http: 429, retry_after: 2s}]
    reply:
      - {reasoning: Let me look., split: words, signature: c2VhbA==}
      - {text: One moment., split: words}
      - parallel:
          - {tool: get, id: call_a, arguments: {name: a}, split: 4}
          - {tool: get, id: call_b, arguments: {name: b}, split: 4}
    usage: {input: 12, output: 9, reasoning: 4, cached: 2}
  - request: {results: {call_a: "42"}}
    reply: {text: "It is 42.", split: words}
  - reply: {refusal: Not that again.}
"""
"""A scenario that plays over every protocol."""

GADGETS = [
    {"title": "get", "settings": {"type": "object", "properties": {"name": {"type": "string"}}}}
]


class Hall:
    """A client of the Echo API, with a server for it."""

    def __init__(self, http: httpx.Client, thread: ServerThread | None = None) -> None:
        self.http = http
        self.thread = thread

    @property
    def url(self) -> str:
        return str(self.http.base_url)

    def speak(self, *dialogue: dict[str, Any] | str, live: bool = True, **more: Any):
        """The answer to a dialogue; a string is a line of the human."""
        entries = [human(one) if isinstance(one, str) else one for one in dialogue]
        body = {"speaker": "narrator-1", "live": live, "dialogue": entries, **more}
        return self.http.post("/echo/v2/speak", json=body)

    def journal(self) -> list[dict[str, Any]]:
        return self.http.get("/_mockllm/journal").json()["exchanges"]

    def verify(self) -> dict[str, Any]:
        return self.http.get("/_mockllm/verify").json()


def human(line: str) -> dict[str, Any]:
    return {"who": "human", "line": line}


def machine(line: str, *cues: tuple[str, str, str]) -> dict[str, Any]:
    """A line of the machine; cues are (id, gadget, settings)."""
    names = ("cue", "gadget", "settings")
    sent = [dict(zip(names, cue, strict=True)) for cue in cues]
    return {"who": "machine", "line": line, **({"cues": sent} if sent else {})}


def heard(cue: str, line: str) -> dict[str, Any]:
    """What a gadget gave for a cue."""
    return {"who": "gadget", "cue": cue, "line": line}


CUES = machine("One moment.", ("call_a", "get", '{"name":"a"}'), ("call_b", "get", '{"name":"b"}'))
"""The first answer of NUMBERS, as a client sends it back."""


def acts(stream: str) -> list[dict[str, Any]]:
    """The acts of a stream."""
    # Not splitlines(): text may hold U+2028, which ends no line of a stream.
    data = [line.removeprefix("data: ") for line in stream.split("\n") if line[:5] == "data:"]
    return [json.loads(text) for text in data if text[:1] == "{"]


def spoken(stream: str, act: str = "line") -> str:
    """The bits of all acts of one kind."""
    return "".join(each["bit"] for each in acts(stream) if each["act"] == act)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a sixth protocol needs: a line in the table."""
    monkeypatch.setitem(PROTOCOLS, PROTOCOL.name, PROTOCOL)


@pytest.fixture
def hall() -> Iterator[Callable[..., Hall]]:
    """Starts servers of scenarios: `hall(text, folders or scenarios, option=value, ...)`."""
    with ExitStack() as stack:

        def start(source: Any = NUMBERS, **options: Any) -> Hall:
            if isinstance(source, str):
                scenarios = loads(source)
            else:
                scenarios = source if isinstance(source[0], Scenario) else load(source)
            thread = stack.enter_context(ServerThread(scenarios, ServerOptions(**options)))
            http = httpx.Client(base_url=thread.url, headers=KEY, timeout=60)
            return Hall(stack.enter_context(http), thread)

        yield start


@pytest.fixture
def mockllm() -> Callable[..., Result]:
    """Runs a command in this process; what came of it."""

    def invoke(*arguments: Any) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture
def folder(tmp_path):
    """A folder with NUMBERS in it."""
    path = tmp_path / "scenarios"
    path.mkdir()
    (path / "numbers.yaml").write_text(NUMBERS)
    return path
