"""Turns exchanges that are put aside into scenarios, in a thread, as many at a time as wait.

The more wait, the less each costs: they share the waiting for the disk.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from mockllm.errors import MockLLMError, WireError
from mockllm.recording.drafting.drafts import Draft, Drafting, Line
from mockllm.recording.finding import Competing, not_found_after_write
from mockllm.recording.store.folder import Folder
from mockllm.redaction.placeholders import placeholder_kinds
from mockllm.redaction.redact import Redactor
from mockllm.scenario.model import Scenario
from mockllm.server.recording.recording_messages import Reported, ScenariosWritten, Setup, Waiting
from mockllm.server.recording.worker import Fault
from mockllm.tapes.captured import Captured

__all__ = ["ScenarioWriting"]

_MOST_TOGETHER = 32
"""Exchanges that are written together. Other recorders of the folder wait that long."""

_MOST_WAITING = 2_000
_MOST_BYTES = 64 * 1024 * 1024
"""If so many exchanges wait, or so many bytes of them, the ends of further answers wait, too."""

_INTERVAL = 1.0


class ScenarioWriting:
    """Writes exchanges as scenarios, in the order in which they are added.

    Args:
        emit: called with `Reported`, `ScenariosWritten`, `Waiting` and `Fault`, from any thread.

    Raises:
        ScenarioError: the folder has scenarios that cannot be loaded.
        OSError: it cannot be written to.
    """

    def __init__(self, setup: Setup, redactor: Redactor, emit: Callable[[Any], None]) -> None:
        self._setup = setup
        self._pattern = redactor.pattern
        self._emit = emit
        self._folder = Folder(setup.folder)
        self._competing = Competing()
        self._drafting: Drafting | None = self._begun()
        self._lock = threading.Lock()
        self._exchanges: deque[tuple[Captured, Path]] = deque()
        self._bytes = 0
        self._held: list[Callable[[], None]] = []
        self._error: OSError | None = None
        """Why nothing can be written at the moment, such as a full disk."""
        self._together = _MOST_TOGETHER
        self._at_fault = ""
        self._written = 0
        self._since = time.monotonic()
        self._closing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mockllm-writing")

    def add(self, captured: Captured, file: Path, saved: Callable[[], None]) -> None:
        """Adds an exchange.

        Args:
            file: where it is put aside; removed when its scenario is written.
            saved: called as soon as the next exchange may end; at once, unless too many wait.
        """
        with self._lock:
            # Those before it count, and not itself: one large answer alone waits for nothing.
            full = len(self._exchanges) >= _MOST_WAITING or self._bytes > _MOST_BYTES
            self._exchanges.append((captured, file))
            self._bytes += _size(captured)
            held = full and self._error is None  # or it would wait until the disk has room
            if held:
                self._held.append(saved)
        if not held:
            saved()
        self._submit()

    def add_left(self, left: Sequence[tuple[Captured, Path]]) -> None:
        """Adds exchanges of a recorder that was killed, except those that it had written and could
        not remove any more."""
        if not left:
            return
        first = min(file.stat().st_mtime_ns for _, file in left)
        written = {_content(one) for one in self._folder.exchanges_since(first)}
        for captured, file in left:
            if _content(captured) in written:
                file.unlink()
            else:
                self.add(captured, file, lambda: None)  # no answer waits for it any more

    def close(self) -> None:
        """Waits until every exchange has been written; reports those that cannot be."""
        self._closing = True
        self._error = None
        while self._exchanges and self._error is None:
            wait([self._submit()])
        self._thread.shutdown()
        error: OSError | None = self._error
        if error is not None:
            why = (
                f"it cannot be written: {error.strerror or error}; it is put aside, and the next "
                f"recording into {self._setup.folder} writes it"
            )
            lines = [lost(captured, why) for captured, _ in self._exchanges]
            self._emit(Reported(tuple(lines)))

    def _begun(self) -> Drafting:
        """What drafts scenarios, with those of the folder."""
        known = self._folder.scenarios()
        self._competing = Competing(known)
        return Drafting(
            match=self._setup.match,
            known=known,
            tape=self._folder.tape,
            pattern=self._pattern,
            overwrite=self._setup.overwrite,
            reserved=self._setup.reserved,
        )

    # The thread

    def _submit(self) -> Future[None]:
        done = self._thread.submit(self._write_all)
        done.add_done_callback(self._check)
        return done

    def _check(self, done: Future[None]) -> None:
        error = done.exception()
        if error is not None and self._at_fault:
            self._emit(Fault(self._at_fault, f"{type(error).__name__}: {error}"))
        if error is not None and not self._closing:
            self._submit()  # for the exchanges beside the one that is at fault

    def _write_all(self) -> None:
        """Writes what waits, until that is not possible."""
        while self._exchanges:
            if self._closing:
                self._emit(Waiting(len(self._exchanges), True))
            with self._lock:
                group = list(islice(self._exchanges, self._together))
            self._error = self._attempted(group)
            if self._error is None:
                self._count(len(group))
            elif len(group) == 1:
                break
            else:
                self._together = 1  # so many as there is room for
        else:
            self._together = _MOST_TOGETHER
        self._let_go()

    def _attempted(self, group: list[tuple[Captured, Path]]) -> OSError | None:
        """Writes exchanges together; the error if that is not possible. After any other exception
        they are written one by one, and the one that is at fault is left out."""
        self._at_fault = ""
        known = False
        try:
            lines = self._lines([captured for captured, _ in group])
            known = True
        except OSError as error:
            self._drafting = None  # what it drafted is not in the folder
            known = True
            return error
        finally:
            if not known:
                self._drafting = None
                self._together = 1
                if len(group) == 1:
                    self._at_fault = group[0][0].source
                    self._remove(group)
        for _, file in group:
            file.unlink(missing_ok=True)
        self._remove(group)
        self._emit(Reported(tuple(lines)))
        return None

    def _remove(self, group: list[tuple[Captured, Path]]) -> None:
        with self._lock:
            for captured, _ in group:
                self._exchanges.popleft()
                self._bytes -= _size(captured)

    def _let_go(self) -> None:
        """Lets answers end that were held back, if there is room or nothing can be written."""
        with self._lock:
            room = len(self._exchanges) <= _MOST_WAITING and self._bytes <= _MOST_BYTES
            held: list[Callable[[], None]] = []
            if room or self._error is not None:
                held, self._held = self._held, held
        for saved in held:
            saved()

    def _count(self, written: int) -> None:
        """Reports how many exchanges wait, if that is more than a second's work."""
        self._let_go()
        self._written += written
        passed = time.monotonic() - self._since
        if passed < _INTERVAL:
            return
        waiting = len(self._exchanges)
        if waiting > self._written / passed and not self._closing:
            self._emit(Waiting(waiting, False))
        self._written, self._since = 0, time.monotonic()

    # The scenarios

    def _lines(self, group: Iterable[Captured]) -> list[Line]:
        """Writes exchanges, and gives the line of each.

        Raises:
            OSError: none is written, or not all of them are.
        """
        changed: dict[str, Scenario] = {}
        found: list[tuple[Line, Captured]] = []
        drafting = self._drafting = self._drafting or self._begun()
        with self._folder.group():
            for captured in group:
                found += [(line, captured) for line in self._drafted(drafting, captured, changed)]
        for scenario in changed.values():
            self._competing.keep(scenario)
        if changed and self._setup.sends_scenarios:
            self._emit(ScenariosWritten(tuple(changed.values())))
        return [
            replace(self._looked_for(line, captured), redacted=_redacted(captured))
            for line, captured in found
        ]

    def _drafted(
        self, drafting: Drafting, captured: Captured, changed: dict[str, Scenario]
    ) -> Iterator[Line]:
        try:
            for draft in drafting.add(captured):
                written = self._folder.write(draft)
                drafting.written(draft, written)
                if written.scenario is not None:
                    changed[written.scenario.name] = written.scenario
                yield from _lines(draft, written)
        except MockLLMError as error:
            yield Line(captured.source, "skipped", str(error))

    def _looked_for(self, line: Line, captured: Captured) -> Line:
        """The line with the reason why the recorded request does not find its recording."""
        written = self._competing.by_name.get(line.scenario)
        if written is None or line.turn is None or line.turn >= len(written.turns):
            return line
        others = self._competing.of(written)
        return replace(line, not_found=not_found_after_write(others, captured, written, line.turn))


def _content(captured: Captured) -> Captured:
    """An exchange as a tape has it, without compression."""
    try:
        return captured.plain()
    except WireError:
        return captured


def _redacted(captured: Captured) -> tuple[tuple[str, int], ...]:
    """How many secrets were replaced in an exchange, by kind."""
    plain = _content(captured)
    body = b"".join(chunk.data for chunk in plain.chunks)
    heads = (value for _, value in (*plain.request_headers, *plain.headers))
    texts = (plain.url, *heads, plain.request_body.decode("latin-1"), body.decode("latin-1"))
    return tuple(sorted(placeholder_kinds(texts).items()))


def _size(captured: Captured) -> int:
    return len(captured.request_body) + sum(len(chunk.data) for chunk in captured.chunks)


def _lines(draft: Draft, written: Draft) -> Iterator[Line]:
    """The lines of a draft, with the name that its scenario was written under."""
    for line in draft.report:
        if draft.scenario is None or written.scenario is None:
            yield line
        else:
            name, old = written.scenario.name, draft.scenario.name
            description = line.description.replace(f" of {old}", f" of {name}", 1)
            yield replace(line, scenario=name, description=description)


def lost(captured: Captured, why: str) -> Line:
    """The line of an exchange that could not be written."""
    return Line(captured.source, "skipped", f"{captured.source}: {why}", lost=True)
