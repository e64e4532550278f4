"""A request that a client is to send, and what adapters need to write it. Standard library only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["API_KEY", "Job", "as_text", "joined", "parsed"]

API_KEY = "mock-key"


@dataclass(frozen=True)
class Job:
    """One case, as the protocol of runners has it.

    Args:
        base_url: for the client, as its documentation has it: of OpenAI's APIs it ends in `/v1`.
        tools: each with `name`, and maybe `description` and `parameters` (a JSON Schema).
        deadline: seconds after which the client must have given up.
        tries, idle_timeout: the settings that a case with a fault wants; other cases have neither
            retries nor an idle timeout.
        requests, together, cancel: as the protocol of runners has them, of cases with a fault.
        run: of cases with a fault: what this request shares with others, and what its user saw.
    """

    api: str
    base_url: str
    prompt: str
    model: str = "mock-model"
    tools: list[dict[str, Any]] = field(default_factory=list)
    deadline: float = 30.0
    tries: int = 1
    idle_timeout: float | None = None
    requests: int = 1
    together: bool = False
    cancel: dict[str, Any] | None = None
    run: Any = None

    @property
    def retries(self) -> int:
        """How often a failed request may be repeated."""
        return self.tries - 1

    @property
    def seconds(self) -> float:
        """The timeout of clients that take one number."""
        return self.deadline if self.idle_timeout is None else self.idle_timeout

    def timeout(self, kind: Callable[..., Any]) -> Any:
        """The timeout of clients that take one of httpx, whose class their package exports."""
        if self.idle_timeout is None:
            return self.deadline
        return kind(self.deadline, read=self.idle_timeout)

    @contextmanager
    def using(self, make: Callable[[], Any]) -> Iterator[Any]:
        """The client; all requests of a case with a fault have the same, which is closed at the
        end of the case."""
        if self.run is not None:
            yield self.run.case.client(make)
            return
        client = make()
        try:
            yield client
        finally:
            close = getattr(client, "close", None)
            if close is not None:
                close()

    @asynccontextmanager
    async def ausing(self, make: Callable[[], Any]) -> AsyncIterator[Any]:
        """The same of an asynchronous client."""
        if self.run is not None:
            yield self.run.case.client(make)
            return
        async with make() as client:
            yield client

    def kept(self, make: Callable[[], Any]) -> Any:
        """The client, which its users do not close."""
        return make() if self.run is None else self.run.case.client(make)

    @contextmanager
    def entered(self, manager: Any) -> Iterator[Any]:
        """A stream that its users enter; one that they drop is not left."""
        with ExitStack() as stack:
            try:
                yield stack.enter_context(manager)
            finally:
                if self._drops:
                    stack.pop_all()

    @asynccontextmanager
    async def aentered(self, manager: Any) -> AsyncIterator[Any]:
        """The same of an asynchronous stream."""
        async with AsyncExitStack() as stack:
            try:
                yield await stack.enter_async_context(manager)
            finally:
                if self._drops:
                    stack.pop_all()

    @property
    def _drops(self) -> bool:
        return self.run is not None and self.run.way == "drop"

    def watched(self, stream: Any, text: Callable[[Any], Any], cancel: Any = None) -> Any:
        """The stream; in cases with a fault, the text of each piece is what the user sees.

        Args:
            cancel: what the client has to cancel, if it has anything.
        """
        return stream if self.run is None else self._seen(stream, text, cancel)

    def _seen(self, stream: Any, text: Callable[[Any], Any], cancel: Any) -> Iterator[Any]:
        self.run.watches = True
        for piece in stream:
            if self.run.cancels(stream, text(piece)):
                if self.run.way == "call" and cancel is not None:
                    cancel()
                    self.run.hold()
                raise self.run.cancelled
            yield piece

    def awatched(self, stream: Any, text: Callable[[Any], Any], cancel: Any = None) -> Any:
        """The same of an asynchronous stream, whose `cancel` is a coroutine function."""
        return stream if self.run is None else self._aseen(stream, text, cancel)

    async def _aseen(
        self, stream: Any, text: Callable[[Any], Any], cancel: Any
    ) -> AsyncIterator[Any]:
        self.run.watches = True
        async for piece in stream:
            if self.run.cancels(stream, text(piece)):
                if self.run.way == "call" and cancel is not None:
                    await cancel()
                    await asyncio.to_thread(self.run.hold)
                raise self.run.cancelled
            yield piece

    def wait(self, work: Any) -> Any:
        """The result of a coroutine."""
        return asyncio.run(work) if self.run is None else self.run.case.wait(work)

    @property
    def functions(self) -> list[dict[str, Any]]:
        """The tools with all three fields."""
        empty = {"type": "object", "properties": {}}
        return [
            {
                "name": tool["name"],
                "description": tool.get("description") or tool["name"],
                "parameters": tool.get("parameters") or empty,
            }
            for tool in self.tools
        ]

    @property
    def chat_tools(self) -> list[dict[str, Any]]:
        """The tools in the form of Chat Completions."""
        return [{"type": "function", "function": function} for function in self.functions]


def as_text(value: Any) -> str:
    """A value of a text field as a user would print it; None is empty text."""
    return "" if value is None else str(value)


def joined(values: Any) -> str:
    """The texts, joined; None counts as no text."""
    return "".join(map(as_text, values))


def parsed(arguments: Any) -> Any:
    """The arguments of a call as a value, where a client writes their JSON text anew.

    A text counts as what was sent, character by character. A client that parses the arguments and
    serializes them again does not promise that; its value alone can be compared.
    """
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
