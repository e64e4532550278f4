"""Processes of one machine ask each other over loopback to write their journals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from mockllm.server.state.store import StoreError

__all__ = ["PeerListener", "flush_peers"]

_WAIT = 5.0
"""For so many seconds a process waits for the others."""

_REQUEST, _DONE, _FAILED = b"flush\n", b"done\n", b"failed\n"


class PeerListener:
    """Waits for other processes; for each of their requests it flushes, then answers."""

    def __init__(self, flush: Callable[[], Awaitable[None]]) -> None:
        self._flush = flush
        self._server: asyncio.Server | None = None

    async def open(self) -> int:
        """Listens; the port."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Listens no more."""
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_WAIT):
                if await reader.readline() == _REQUEST:
                    try:
                        await self._flush()
                        writer.write(_DONE)
                    except StoreError:
                        writer.write(_FAILED)
                    await writer.drain()
        except (TimeoutError, OSError):
            return  # the other one has left, or is no process of ours
        finally:
            writer.close()


async def flush_peers(ports: Mapping[str, int]) -> tuple[str, ...]:
    """Lets processes flush; the names of those that did not.

    Args:
        ports: of their listeners, by their names.
    """
    flushed = await asyncio.gather(*map(_flush, ports.values()))
    return tuple(name for name, done in zip(ports, flushed, strict=True) if not done)


async def _flush(port: int) -> bool:
    try:
        async with asyncio.timeout(_WAIT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(_REQUEST)
                return await reader.readline() == _DONE
            finally:
                writer.close()
    except (TimeoutError, OSError):
        return False
