"""Writes the exchanges of a recording server into its folder, in threads: the event loop waits
for no disk and drafts no scenario.

One thread redacts exchanges and saves them, so that they cannot be lost; another turns them into
scenarios, in the same order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mockllm.errors import MockLLMError
from mockllm.recording.drafting.answers import complete
from mockllm.recording.drafting.drafts import Draft, Drafting, Line, MatchRule
from mockllm.recording.store.folder import Folder
from mockllm.recording.store.pending import Pending
from mockllm.redaction.redact import Redactor
from mockllm.scenario.model import Scenario
from mockllm.tapes.captured import Captured
from mockllm.tapes.conversion import detected

if TYPE_CHECKING:
    from mockllm.server.options import RecordOptions

__all__ = ["Recorder"]

Written = Callable[[tuple[Scenario, ...]], Callable[[], None]]


class Recorder:
    """Writes exchanges as scenarios, one after the other, in the order in which they ended.

    Args:
        options: the folder, and what is secret.
        written: called in the thread with all scenarios of the folder after each change; the
            function that it returns is called in the event loop.
        reserved: the names of the scenarios that are served beside those of the folder.

    Raises:
        ScenarioError: the folder has scenarios that cannot be loaded.
    """

    def __init__(
        self,
        options: RecordOptions,
        written: Written | None = None,
        reserved: Iterable[str] = (),
    ) -> None:
        self._folder = Folder(options.folder)
        self._redactor = Redactor() if options.rules is None else Redactor(options.rules)
        self._report = options.report
        self._written = written
        known = self._folder.scenarios()
        self.was_empty = not known
        self._scenarios = {scenario.name: scenario for scenario in known}
        self._drafting = Drafting(
            match=options.match or MatchRule(),
            known=known,
            tape=self._folder.tape,
            pattern=self._redactor.pattern,
            overwrite=options.mode == "all",
            reserved={*reserved} - self._scenarios.keys(),
        )
        self._pending = Pending(options.folder)
        self._loop = asyncio.get_running_loop()
        self._saving = ThreadPoolExecutor(1, thread_name_prefix="mockllm-saving")
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="mockllm-writing")
        for captured, file in self._pending.left():
            self._submit(captured, file)

    def put(self, captured: Captured) -> asyncio.Future[None]:
        """Hands over an exchange; once the future is done, the exchange cannot be lost."""
        saved = self._loop.run_in_executor(self._saving, self._save, captured)
        saved.add_done_callback(partial(self._check, captured.source))
        return saved

    async def close(self) -> None:
        """Waits until every exchange that was handed over has been written."""
        await asyncio.to_thread(self._finish)

    def _finish(self) -> None:
        self._saving.shutdown()
        self._writing.shutdown()
        self._pending.close()

    def _save(self, captured: Captured) -> None:
        try:
            plain = self._redactor.captured(_completed(captured))
            file = self._pending.put(plain)
        except (MockLLMError, OSError) as error:
            self._report_soon([Line(captured.source, "skipped", str(error))])
            return
        self._submit(plain, file)

    def _submit(self, captured: Captured, file: Path) -> None:
        def check(done: Future[None]) -> None:
            self._loop.call_soon_threadsafe(self._check, captured.source, done)

        self._writing.submit(self._write, captured, file).add_done_callback(check)

    def _check(self, source: str, done: Future[None] | asyncio.Future[None]) -> None:
        """Reports a fault of mockllm; the stream to the client goes on."""
        error = done.exception()
        if error is not None:
            reason = f"a fault of mockllm: {type(error).__name__}: {error}"
            self._report_lines([Line(source, "skipped", reason)])

    def _write(self, captured: Captured, file: Path) -> None:
        try:
            lines = list(self._lines(captured))
        except (MockLLMError, OSError) as error:
            lines = [Line(captured.source, "skipped", str(error))]
        file.unlink(missing_ok=True)
        self._report_soon(lines)

    def _report_soon(self, lines: list[Line]) -> None:
        self._loop.call_soon_threadsafe(self._report_lines, lines)

    def _lines(self, captured: Captured) -> Iterable[Line]:
        changed = False
        for draft in self._drafting.add(captured):
            written = self._folder.write(draft)
            self._drafting.written(draft, written)
            changed = changed or written.scenario is not None
            yield from self._keep(draft, written)
        if changed and self._written is not None:
            swap = self._written(tuple(self._scenarios.values()))
            self._loop.call_soon_threadsafe(swap)

    def _keep(self, draft: Draft, written: Draft) -> Iterable[Line]:
        if written.scenario is not None:
            self._scenarios[written.scenario.name] = written.scenario
        for line in draft.report:
            if draft.scenario is None or written.scenario is None:
                yield line
            else:
                name, old = written.scenario.name, draft.scenario.name
                description = line.description.replace(f" of {old}", f" of {name}", 1)
                yield replace(line, scenario=name, description=description)

    def _report_lines(self, lines: Iterable[Line]) -> None:
        if self._report is not None:
            for line in lines:
                self._report(line)


def _completed(captured: Captured) -> Captured:
    """The exchange; not cut where the client left after the end marker of the stream."""
    if captured.cut != "client":
        return captured
    protocol = detected(captured).protocol
    if protocol is not None and complete(captured, protocol):
        return replace(captured, cut="")
    return captured
