"""A client that sends what a recorded session's client sent, and compares what it gets."""

from __future__ import annotations

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from mockllm.play.tapes.socket_session import SocketMessage, SocketSession
from tests.timeouts import GIVE_UP


def replay(url: str, session: SocketSession) -> list[str]:
    """How what a server sends differs from the session; [] where it is the same.

    Args:
        url: of the WebSocket.
    """
    differences: list[str] = []
    for number in sorted({message.connection for message in session.messages}):
        messages = [message for message in session.messages if message.connection == number]
        with connect(url, proxy=None, max_size=None, open_timeout=GIVE_UP) as socket:
            for message in messages:
                if not _goes_on(socket, message, differences):
                    break
    return differences


def _goes_on(socket: ClientConnection, message: SocketMessage, differences: list[str]) -> bool:
    """Sends or expects a message; whether the connection goes on."""
    data: str | bytes = message.data
    if message.kind == "text":
        data = message.data.decode()
    if message.kind in ("ping", "pong"):
        return True
    if message.side == "client":
        if message.kind == "close":
            socket.close(message.code or 1000, message.reason)
            return False
        socket.send(data)
        return True
    try:
        got = socket.recv(GIVE_UP)
    except ConnectionClosed as closed:
        frame = closed.rcvd
        got_close = None if frame is None else (frame.code, frame.reason)
        if message.kind != "close" or got_close != (message.code, message.reason):
            differences.append(f"{message}: closed with {got_close}")
        return False
    if message.kind == "close" or got != data:
        differences.append(f"{message}: got {got!r}")
    return True
