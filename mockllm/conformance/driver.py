"""The one loop that plays cases to a program: several at a time, until the run is interrupted.

Streams, cuts, faults and gateways have each their way to submit a case, say how many are played
side by side, and play again what they want to be sure of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from typing import Protocol, TypeVar


class _Named(Protocol):
    @property
    def name(self) -> str: ...


C = TypeVar("C")
N = TypeVar("N", bound=_Named)
R = TypeVar("R")

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Driver:
    """Plays cases for a caller who watches, and may end the run.

    Args:
        progress: gets what is played, how many are over, and how many there are.
        goes_on: asked before each case; once it is false, no further case is played.
    """

    progress: Progress = lambda what, done, total: None
    goes_on: Callable[[], bool] = lambda: True

    def each(
        self,
        cases: Iterable[C],
        submit: Callable[[C], Future[R]],
        side_by_side: int,
        what: str = "cases",
        *,
        in_order: bool = True,
    ) -> Iterator[tuple[C, R]]:
        """The cases that are played with their results, in their order or as they end."""
        remaining = deque(cases)
        total, done = len(remaining), 0
        waiting: dict[Future[R], C] = {}
        while True:
            while remaining and len(waiting) < side_by_side and self.goes_on():
                case = remaining.popleft()
                waiting[submit(case)] = case
            if not waiting:
                return
            future = next(iter(waiting) if in_order else as_completed(waiting))
            result = future.result()
            done += 1
            self.progress(what, done, total)
            yield waiting.pop(future), result

    def play(
        self,
        cases: Iterable[N],
        submit: Callable[[N], Future[R]],
        side_by_side: int,
        what: str = "cases",
    ) -> dict[str, R]:
        """The results of the cases that are played, by their names."""
        played = self.each(cases, submit, side_by_side, what, in_order=False)
        return {case.name: result for case, result in played}


UNWATCHED = Driver()
"""The driver of a caller who waits for the results."""


def interruption(done: int, total: int) -> str:
    """The reason why results are not of all cases; "" where they are."""
    return f"interrupted after {done} of {total} cases" if done < total else ""
