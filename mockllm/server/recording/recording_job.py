"""Redacts exchanges as they arrive, and writes them: the job of a recorder's worker.

One thread redacts exchanges and puts them aside, so that they cannot be lost; another turns them
into scenarios, in the same order (`server/recording/scenario_writing`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import MockLLMError
from mockllm.recording.drafting.answers import complete
from mockllm.recording.drafting.drafts import Line
from mockllm.recording.store.pending import Pending
from mockllm.redaction.incremental import IncrementalRedaction
from mockllm.redaction.redact import Redactor
from mockllm.server.recording.recording_messages import (
    Add,
    Begin,
    Consumed,
    Drop,
    End,
    Reported,
    Saved,
    Setup,
)
from mockllm.server.recording.scenario_writing import ScenarioWriting, lost
from mockllm.tapes.captured import Captured
from mockllm.tapes.conversion import detected

__all__ = ["recording_job"]

Emit = Callable[[Any], None]


class RecordingJob:
    """Writes exchanges as scenarios, one after the other, in the order in which they ended.

    Raises:
        ScenarioError: the folder has scenarios that cannot be loaded.
        OSError: it cannot be written to.
    """

    def __init__(self, setup: Setup, emit: Emit) -> None:
        self._emit = emit
        self._redactor = Redactor(setup.rules)
        self._open: dict[int, IncrementalRedaction | MockLLMError] = {}
        """The exchanges; for one that cannot be recorded, why."""
        self._scenarios = ScenarioWriting(setup, self._redactor, emit)
        self._pending = Pending(setup.folder)
        self._scenarios.add_left(self._pending.left())

    def handle(self, message: Any) -> None:
        """Handles a message."""
        match message:
            case Add():
                self._add(message)
            case Begin():
                self._begin(message)
            case End():
                self._end(message)
            case Drop():
                self._open.pop(message.key, None)

    def close(self) -> None:
        """Waits until every exchange has been written."""
        self._scenarios.close()
        self._pending.close()

    def _begin(self, message: Begin) -> None:
        try:
            self._open[message.key] = self._redactor.incremental(message.head)
        except MockLLMError as error:
            self._open[message.key] = error

    def _add(self, message: Add) -> None:
        began = time.perf_counter()
        sizes: Counter[int] = Counter()
        try:
            for key, at, data in message.chunks:
                sizes[key] += len(data)
                self._search(key, TimedBytes(at, data))
        finally:
            self._emit(Consumed(dict(sizes), time.perf_counter() - began))

    def _search(self, key: int, chunk: TimedBytes) -> None:
        redaction = self._open.get(key)
        if isinstance(redaction, MockLLMError) or redaction is None:
            return
        try:
            redaction.add(chunk)
        except MockLLMError as error:
            self._open[key] = error

    def _end(self, message: End) -> None:
        saved = partial(self._emit, Saved(message.key))
        aside = None
        try:
            aside = self._put_aside(message.key, message.whole)
        finally:
            if aside is None:
                saved()
        if aside is not None:
            self._scenarios.add(*aside, saved)

    def _put_aside(self, key: int, whole: Captured) -> tuple[Captured, Path] | None:
        """The exchange without its secrets, and where it is on the disk; None if it is not
        recorded, which is reported."""
        redaction = self._open.pop(key, None)
        if redaction is None:
            return None
        try:
            if isinstance(redaction, MockLLMError):
                raise redaction
            whole = _completed(replace(whole, chunks=redaction.chunks))
            plain = redaction.finish(whole)
            return plain, self._pending.put(plain)
        except MockLLMError as error:
            self._report(Line(whole.source, "skipped", str(error)))
        except OSError as error:
            self._report(lost(whole, f"it cannot be written: {error.strerror or error}"))
        return None

    def _report(self, line: Line) -> None:
        self._emit(Reported((line,)))


def recording_job(setup: Setup, emit: Emit) -> RecordingJob:
    """A job; a worker calls this."""
    return RecordingJob(setup, emit)


def _completed(captured: Captured) -> Captured:
    """The exchange; not cut where the client left after the end marker of the stream."""
    if captured.cut not in ("client", "stalled"):
        return captured
    protocol = detected(captured).protocol
    if protocol is not None and complete(captured, protocol):
        return replace(captured, cut="")
    return captured
