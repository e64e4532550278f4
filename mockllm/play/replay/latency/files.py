"""Latency of an option, whose samples are in files: durations in a text, or recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mockllm.core.errors import MockLLMError, UsageError
from mockllm.core.events import Timed
from mockllm.core.timeline import fold
from mockllm.play.tapes.captured import Tape, load_tape
from mockllm.play.tapes.recorded_turn import answer_carrier
from mockllm.play.tapes.socket_tape import is_socket_tape
from mockllm.scenario.latency_model import Latency
from mockllm.scenario.reading.latency import RecordedTimes, read_latency, read_samples
from mockllm.wire.protocols import PROTOCOLS


def read_latency_option(text: str) -> Latency:
    """Latency as `--latency` has it; paths are those of this process.

    Raises:
        UsageError: what is wrong with it, or with a file that it names.
    """
    try:
        return read_latency(text, _samples, _read_times)
    except ValueError as error:
        raise UsageError(f"latency {text!r}: {error}") from None


def _samples(name: str) -> Sequence[float]:
    try:
        return read_samples(Path(name).read_text(encoding="utf-8"), name)
    except OSError as error:
        raise ValueError(f"{name!r} cannot be read: {error.strerror}") from None


def _read_times(name: str) -> RecordedTimes:
    """The times of all recorded streams in a folder, or in one tape."""
    path = Path(name)
    tapes = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    gaps = []
    for tape in tapes:
        try:
            data = tape.read_bytes()
            if not is_socket_tape(data):  # those are no streams of one answer
                gaps.append(_gaps(load_tape(data, str(tape))))
        except OSError as error:
            raise ValueError(f"{str(tape)!r} cannot be read: {error.strerror}") from None
        except MockLLMError as error:
            raise ValueError(f"{str(tape)!r} cannot be used: {error}") from None
    timed = [times for times in gaps if times]
    if not timed:
        raise ValueError(f"{name!r} has no recorded stream with times")
    between = [float(gap) for times in timed for gap in times[1:-1]]
    return RecordedTimes([float(times[0]) for times in timed], between)


def _gaps(tape: Tape) -> tuple[int, ...]:
    """The pauses before the beats of a recorded stream, then before its end; () where it is no
    stream, has an error or no times."""
    protocol = PROTOCOLS.get(tape.api)
    if protocol is None or not tape.streamed or tape.exchange.status >= 400:
        return ()
    plain = tape.exchange.plain()
    carrier = answer_carrier(plain, protocol, streamed=True)
    if carrier is None:
        return ()
    frames, wire = carrier.decoder(), protocol.decoder()
    return fold(
        Timed(chunk.at, event)
        for chunk in plain.chunks
        for frame in frames.decode(chunk.data)
        for event in wire.decode(frame)
    ).gaps
