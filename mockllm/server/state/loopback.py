"""Processes of one machine put questions to each other over loopback: a line, and a line back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from mockllm.server.state.store import StoreError

_WAIT = 5.0
"""For so many seconds a process waits for the others."""

_FAILED = "failed"
_MOST = 1024 * 1024
"""The longest line, in bytes."""


class LoopbackListener:
    """Answers other processes.

    Args:
        answers: what answers each question, with one line of text.
    """

    def __init__(self, answers: Mapping[str, Callable[[], Awaitable[str]]]) -> None:
        self._answers = answers
        self._server: asyncio.Server | None = None

    async def open(self) -> int:
        """Listens; the port."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_WAIT):
                question = (await reader.readline()).decode("ascii", "replace").strip()
                answer = self._answers.get(question)
                if answer is not None:
                    try:
                        text = await answer()
                    except StoreError:
                        text = _FAILED
                    writer.write(text.encode() + b"\n")
                    await writer.drain()
        except (TimeoutError, OSError, ValueError):
            return  # the other one has left, or is no process of ours
        finally:
            writer.close()


async def ask_processes(ports: Mapping[str, int], question: str) -> dict[str, str | None]:
    """What processes answer, by their names; None where one did not, or could not."""
    answers = await asyncio.gather(*(_ask(port, question) for port in ports.values()))
    return dict(zip(ports, answers, strict=True))


async def _ask(port: int, question: str) -> str | None:
    try:
        async with asyncio.timeout(_WAIT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_MOST)
            try:
                writer.write(question.encode() + b"\n")
                line = (await reader.readline()).decode()
            finally:
                writer.close()
    except (TimeoutError, OSError, ValueError):
        return None
    answer = line.removesuffix("\n")
    return None if answer in (line, _FAILED) else answer
