"""Why a server does not start, and what to do."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from mockllm.core.errors import UsageError

if TYPE_CHECKING:
    from mockllm.serve.server.app import MockServer


def not_started(error: OSError, server: MockServer) -> UsageError:
    """The error for a server that cannot listen, or whose forward proxy cannot."""
    options = server.options
    if server.url and options.intercept is not None:  # the server itself listens
        return cannot_listen(error, options.host, options.intercept.proxy_port, "--proxy-port")
    return cannot_listen(error, options.host, options.port)


def cannot_listen(
    error: OSError, host: str, port: int | None, option: str = "--port"
) -> UsageError:
    """The error for an address that a server cannot listen on.

    Args:
        option: by which the port is chosen.
    """
    if error.errno == errno.EADDRINUSE:
        return UsageError(
            f"{host}:{port} is in use; stop what listens there, or choose another port "
            f"({option} 0 picks a free one)"
        )
    if error.errno == errno.EACCES:
        return UsageError(f"not allowed to listen on {host}:{port}; choose a port from 1024 up")
    return UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}")
