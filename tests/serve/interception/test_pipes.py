"""Joined connections: no more is kept than buffers hold, and ends pass."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine

from mockllm.serve.interception.pipes import Pipe, hand_over, join, until_lost
from tests.timeouts import GIVE_UP


def joining(
    work: Callable[[socket.socket, socket.socket, tuple[Pipe, Pipe]], Coroutine[None, None, None]],
) -> None:
    """Runs a test with a client, a service, and what joins them; both are lost at the end."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        client, near_end = socket.socketpair()
        far_end, service = socket.socketpair()
        with client, service:
            client.setblocking(False)
            service.setblocking(False)
            near, _ = await loop.create_connection(asyncio.Protocol, sock=near_end)
            far, _ = await loop.create_connection(asyncio.Protocol, sock=far_end)
            pipes = join(near, far)
            hand_over(near, pipes[0], b"")
            hand_over(far, pipes[1], b"early ")
            await work(client, service, pipes)
            await until_lost(*pipes)

    async def bounded() -> None:
        async with asyncio.timeout(GIVE_UP):
            await run()

    asyncio.run(bounded())


async def whole(sock: socket.socket) -> bytes:
    received = b""
    while data := await asyncio.get_running_loop().sock_recv(sock, 65536):
        received += data
    return received


def test_a_side_that_does_not_read() -> None:
    """The other one is not read any more, until it does."""

    async def work(client: socket.socket, service: socket.socket, pipes: tuple[Pipe, Pipe]) -> None:
        sent = 0
        while pipes[1].transport.is_reading():
            try:
                sent += service.send(b"x" * 65536)
            except BlockingIOError:
                await asyncio.sleep(0)
        service.shutdown(socket.SHUT_WR)
        assert len(await whole(client)) == sent + len(b"early ")
        client.close()

    joining(work)


def test_a_side_that_only_ends_its_own() -> None:
    """It still gets what the other one says; the connections are over when both have ended."""

    async def work(client: socket.socket, service: socket.socket, _: tuple[Pipe, Pipe]) -> None:
        client.send(b"that is all")
        client.shutdown(socket.SHUT_WR)
        assert await whole(service) == b"that is all"
        service.send(b"answered")
        service.shutdown(socket.SHUT_WR)
        assert await whole(client) == b"early answered"

    joining(work)


def test_a_side_that_is_gone() -> None:
    """So is the other one."""

    async def work(client: socket.socket, service: socket.socket, _: tuple[Pipe, Pipe]) -> None:
        service.close()
        assert await whole(client) == b"early "
        client.close()

    joining(work)
