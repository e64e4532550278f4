"""A WebSocket service that says what it was asked, and sends back what it is told."""

import json
import socket
import threading
from contextlib import contextmanager, suppress

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

from tests.timeouts import GIVE_UP


def echo(connection, ended=None):
    """Tells a client what it asked for, and sends back what it says until it says how to end.

    Args:
        ended: gets the code and the reason of the end.
    """
    request = connection.request
    asked = {"path": request.path, "key": request.headers.get("Authorization")}
    connection.send(json.dumps({**asked, "subprotocol": connection.subprotocol}))
    with suppress(ConnectionClosed):
        for message in connection:
            if isinstance(message, str) and message.startswith("close "):
                connection.close(int(message.removeprefix("close ")), "as you say")
            elif message == "break off":
                connection.socket.shutdown(socket.SHUT_RDWR)
            elif message == "ping":
                connection.send("pong" if connection.ping().wait(GIVE_UP) else "nothing")
            else:
                connection.send(message)
    if ended is not None:
        ended.put((connection.close_code, connection.close_reason))


@contextmanager
def service(handler=echo, **options):
    """A WebSocket service; its URL begins with `http`."""

    def chosen(connection, offered):
        return "realtime" if "realtime" in offered else None

    with serve(handler, "127.0.0.1", 0, select_subprotocol=chosen, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        scheme = "https" if "ssl" in options else "http"
        yield f"{scheme}://localhost:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()
