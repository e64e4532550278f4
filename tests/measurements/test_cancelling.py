"""The three ways in which the user of a published client cancels: the same for every client."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from measurements.entries import CLIENTS
from tests.cases import for_all

FAULTS = runpy.run_path(str(CLIENTS / "faults.py"))
JOB = runpy.run_path(str(CLIENTS / "job.py"), run_name="job")["Job"]


class Stream:
    """A client's stream: it is entered, read, and may be closed."""

    def __init__(self) -> None:
        self.log: list[str] = []

    @contextmanager
    def opened(self) -> Iterator[Iterator[str]]:
        try:
            yield iter(["", "Hel", "lo"])
        finally:
            self.log.append("left")

    def close(self) -> None:
        self.log.append("closed")


@for_all(
    ("way", "log", "kept"),
    [
        ("leave", ["left"], 1),
        ("call", ["closed", "left"], 0),
        ("drop", [], 0),
    ],
)
def test_a_user_cancels_after_the_first_text(way: str, log: list[str], kept: int) -> None:
    """`leave` leaves the loop and the `with` and keeps the stream, `call` closes it first, and
    `drop` leaves nothing."""
    case = FAULTS["FaultCase"]()
    run = FAULTS["FaultRun"](case, way)
    run.held = True
    job = JOB("chat", "http://127.0.0.1:1", "Hi", run=run)
    stream = Stream()
    manager = stream.opened()
    with pytest.raises(FAULTS["CancelledByUser"]), job.entered(manager) as pieces:
        for _ in job.watched(pieces, lambda text: text, stream.close):
            pass
    assert run.shown == "Hel"
    assert (stream.log, len(case.kept)) == (log, kept)


def test_a_user_who_does_not_cancel_reads_to_the_end() -> None:
    """Nothing is kept, and the stream is left as its documentation has it."""
    case = FAULTS["FaultCase"]()
    job = JOB("chat", "http://127.0.0.1:1", "Hi", run=FAULTS["FaultRun"](case, ""))
    stream = Stream()
    with job.entered(stream.opened()) as pieces:
        assert list(job.watched(pieces, lambda text: text, stream.close)) == ["", "Hel", "lo"]
    assert (stream.log, case.kept) == (["left"], [])
