"""A recorder in front of a service, and the replay of what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from mockllm.recording.drafting.drafts import Line
from mockllm.replay.session import Exchange
from mockllm.replay.loading import load
from mockllm.scenario.model import Api, Scenario
from mockllm.server.options import RecordOptions, ServerOptions
from mockllm.server.thread import ServerThread
from mockllm.tapes.load import load_tape
from mockllm.tapes.model import Tape

__all__ = ["Runs"]

Given = TypeVar("Given")

APIS: tuple[Api, ...] = ("chat", "responses", "anthropic", "gemini")


class Runs:
    """Records to a folder, and replays from it.

    Attributes:
        lines: what was told of each exchange.
        exchanges: what the latest server noted, oldest first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[Line] = []
        self.exchanges: list[Exchange] = []

    @contextmanager
    def recording(self, service: str) -> Iterator[str]:
        """The URL of a recorder in front of a service."""
        record = RecordOptions(self.folder, dict.fromkeys(APIS, service), told=self.lines.append)
        with ServerThread((), ServerOptions(record=record)) as thread:
            yield thread.url
            self._note(thread)

    @contextmanager
    def replaying(self) -> Iterator[str]:
        """The URL of a server that knows of no service."""
        with ServerThread(load([self.folder]), ServerOptions(speed=0)) as thread:
            yield thread.url
            self._note(thread)

    def _note(self, thread: ServerThread) -> None:
        self.exchanges = thread.ask(lambda: list(thread.server.sessions.get("default").journal))

    def both(self, service: str, run: Callable[[str], Given]) -> tuple[Given, Given]:
        """What `run` gives with the URL of the recorder, and with that of the replay, each of
        whose answers has to be the recorded bytes."""
        with self.recording(service) as url:
            recorded = run(url)
        with self.replaying() as url:
            replayed = run(url)
        assert {one.recorded for one in self.exchanges} == {"exact"}
        return recorded, replayed

    @property
    def scenarios(self) -> dict[str, Scenario]:
        return {scenario.name: scenario for scenario in load([self.folder])}

    def tapes(self) -> list[Tape]:
        """All of them, by the names of their files."""
        files = sorted(self.folder.glob("*.jsonl"))
        return [load_tape(file.read_bytes(), str(file)) for file in files]
