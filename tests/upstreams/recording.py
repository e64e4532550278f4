"""A recorder in front of a service, and the replay of its recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from mockllm.play.replay.loading import load
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.tapes.captured import Captured, load_tape
from mockllm.record.recording.drafting.draft import Line
from mockllm.scenario.model import Api, Scenario
from mockllm.serve.server.options import RecordOptions, ServerOptions
from mockllm.serve.server.thread import ServerThread

Result = TypeVar("Given")

APIS: tuple[Api, ...] = ("chat", "responses", "anthropic", "gemini")


class Runs:
    """Records to a folder, and replays from it.

    Attributes:
        lines: the reported lines, one for each exchange.
        exchanges: the journal of the last server, oldest first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[Line] = []
        self.exchanges: list[Exchange] = []

    @contextmanager
    def recording(self, service: str) -> Iterator[str]:
        """The URL of a recorder in front of a service."""
        record = RecordOptions(self.folder, dict.fromkeys(APIS, service), report=self.lines.append)
        with ServerThread((), ServerOptions(record=record)) as thread:
            yield thread.url
            self._keep_journal(thread)

    @contextmanager
    def replaying(self) -> Iterator[str]:
        """The URL of a server that replays, without a service."""
        with ServerThread(load([self.folder]), ServerOptions(speed=0)) as thread:
            yield thread.url
            self._keep_journal(thread)

    def _keep_journal(self, thread: ServerThread) -> None:
        self.exchanges = thread.ask(lambda: list(thread.server.sessions.get("default").journal))

    def both(self, service: str, run: Callable[[str], Result]) -> tuple[Result, Result]:
        """The results of `run` with the recorder's URL, and with the replay's; asserts that every
        replayed answer is the exact recording."""
        with self.recording(service) as url:
            recorded = run(url)
        with self.replaying() as url:
            replayed = run(url)
        assert {exchange.played.recorded for exchange in self.exchanges} == {"exact"}
        return recorded, replayed

    @property
    def scenarios(self) -> dict[str, Scenario]:
        return {scenario.name: scenario for scenario in load([self.folder])}

    def tapes(self) -> list[Captured]:
        """What is on all tapes, ordered by file name."""
        files = sorted(self.folder.glob("*.jsonl"))
        return [load_tape(file.read_bytes(), str(file)).exchange for file in files]
