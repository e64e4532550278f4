"""Slots for the requests that a server works on at the same time. Others wait, or get the error of
a service that is overloaded.

A request holds its slot until its answer is over. Each process has its own slots.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic

from aiohttp import web

from mockllm.core.record import record
from mockllm.core.seeded import derive
from mockllm.core.text import quantity
from mockllm.play.replay.call import Answered
from mockllm.play.replay.compilation.http_answer import error_answer
from mockllm.play.replay.sessions.exchange import Played
from mockllm.scenario.durations import duration
from mockllm.serve.server.http.aiohttp_internals import leaves_at_end
from mockllm.wire.protocols.base import WireProtocol, service_error

RETRY_AFTER = 1.0
"""When a request that was refused is to come again, in seconds."""


@record
class Capacity:
    """The requests that a server process works on at the same time.

    Args:
        concurrent: requests for answers, from 1.
        queue: how many further ones wait for a place; others are refused.
        longest_wait: of one that waits, in microseconds; None: as long as it takes.
    """

    concurrent: int
    queue: int = 0
    longest_wait: int | None = None


class Slot:
    """The slot of one request, or where it stands in the queue.

    Attributes:
        taken: whether it is a slot; otherwise it waits for one, or has left.
        since: when it was taken after a wait, as `time.monotonic` has it; 0 without a wait.
    """

    __slots__ = ("_slots", "_turn", "since", "taken")

    def __init__(self, slots: Slots, turn: asyncio.Future[None] | None = None) -> None:
        self._slots, self._turn = slots, turn
        self.taken, self.since = turn is None, 0.0

    def take(self) -> bool:
        """Takes the slot that another request left; returns whether this one still waits."""
        if self._turn is None or self._turn.done():
            return False
        self._turn.set_result(None)
        self.taken, self.since = True, monotonic()
        return True

    async def wait(self, request: web.BaseRequest) -> str:
        """Waits until it is taken; returns why it is not, or "". A client that leaves meanwhile
        cancels its request."""
        return "" if self._turn is None else await self._slots.wait(request, self, self._turn)

    def leave(self) -> None:
        """Leaves it to the next request."""
        self._slots.release(self)


class Slots:
    """The slots of one server process, and the queue for them.

    Args:
        streaming: the tasks whose answers take time; those that wait are among them.
    """

    def __init__(self, capacity: Capacity, streaming: set[asyncio.Task[object]]) -> None:
        self._capacity, self._streaming = capacity, streaming
        self._free = capacity.concurrent
        self._queue: deque[Slot] = deque()

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return len(self._queue)

    @property
    def full(self) -> str:
        """The message to a request for which there is no slot."""
        queue = self._capacity.queue
        waiting = f", and {quantity(queue, 'request')} may wait" if queue else ""
        slots = quantity(self._capacity.concurrent, "answer")
        return f"the server works on {slots} at the same time{waiting} (--max-concurrent)"

    def refusal(self, protocol: WireProtocol, why: str) -> Answered:
        """The error of a service that has no slot for a request."""
        error = service_error(protocol, "overloaded", RETRY_AFTER)
        seed = derive("refused", error.message)
        answer = error_answer(protocol, error, seed)
        played = Played(
            "error",
            answer.status,
            (why,),
            protocol.name,
            cause="capacity",
            retry_after=RETRY_AFTER,
        )
        return Answered(answer, played)

    def enter(self) -> Slot | None:
        """A slot, or one in the queue; None where both are full."""
        if self._free:
            self._free -= 1
            return Slot(self)
        if len(self._queue) >= self._capacity.queue:
            return None
        slot = Slot(self, asyncio.get_running_loop().create_future())
        self._queue.append(slot)
        return slot

    async def wait(self, request: web.BaseRequest, slot: Slot, turn: asyncio.Future[None]) -> str:
        task, longest = asyncio.current_task(), self._capacity.longest_wait
        assert task is not None
        self._streaming.add(task)
        leaves_at_end(request, True)
        try:
            async with asyncio.timeout(None if longest is None else longest / 1_000_000):
                await turn
        except TimeoutError:
            self.release(slot)
            return f"{self.full}, each for at most {duration(longest or 0)} (queue-timeout)"
        finally:
            self._streaming.discard(task)
            leaves_at_end(request, False)
        return ""

    def release(self, slot: Slot) -> None:
        """Gives a slot to the request that has waited longest; one in the queue is removed."""
        if not slot.taken:
            if slot in self._queue:
                self._queue.remove(slot)
            return
        slot.taken = False
        while self._queue:
            if self._queue.popleft().take():
                return
        self._free += 1
