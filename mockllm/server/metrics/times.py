"""When a timed answer was due, and when it was written. Both are known to the server, so that what
a load test measures can be compared with both."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.replay.compilation.http_answer import Generated, HttpAnswer
from mockllm.replay.sessions.exchange import Sent, Times


def content_writes(answer: HttpAnswer, sent: Sent) -> Sequence[float]:
    """When each write of a timed answer was, in seconds after its start, from the first one with
    content on; () for an answer that is not timed, or has a fault, or was not sent whole."""
    made, marks = answer.generated, sent.marks
    if made is None or not marks or answer.fault is not None:
        return ()
    if sent.client_gone or sent.ended is None or not sent.complete:
        return ()
    through = sum(map(len, answer.data[: made.first + 1]))
    first = next((at for at in range(0, len(marks), 2) if marks[at] >= through), len(marks))
    return marks[first + 1 :: 2]


def times_of(answer: HttpAnswer, writes: Sequence[float], speed: float) -> tuple[Times, Times]:
    """When a timed answer was due, and when it was written.

    Args:
        writes: of `content_writes`, at least one.
    """
    made, rate = answer.generated, speed * 1_000_000
    assert made is not None
    return (
        _times(answer, made, answer.times[made.first] / rate, answer.times[-1] / rate),
        _times(answer, made, writes[0], writes[-1]),
    )


def _times(answer: HttpAnswer, made: Generated, first: float, last: float) -> Times:
    if not answer.streamed:
        return Times(last)
    return Times(last, first, (last - first) / (made.beats - 1) if made.beats > 1 else None)
