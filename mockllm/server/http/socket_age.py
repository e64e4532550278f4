"""When a request came, also where the event loop was busy with others and read it late."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import time

_LAST_RECEIVED = 8 + 4 * 11
"""Where `tcpi_last_data_recv` begins in `struct tcp_info` (linux/tcp.h), in bytes."""

_LENGTH = _LAST_RECEIVED + 4


def age(transport: asyncio.BaseTransport) -> float:
    """For how long at least the last bytes of a connection are there, in seconds.

    Linux keeps that in milliseconds, counted in steps of its timer (4 ms with 250 Hz). One step is
    left out, so that no answer starts before its request came. Other systems do not say it: 0.
    """
    sock = transport.get_extra_info("socket") if sys.platform == "linux" else None
    if sock is None:
        return 0.0
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LENGTH)
    except OSError:  # it is none of TCP, or closed
        return 0.0
    (milliseconds,) = struct.unpack_from("I", info, _LAST_RECEIVED)
    return max(0.0, float(milliseconds) / 1000 - _STEP)


_MONOTONIC_COARSE = 6  # linux/time.h; Python has no name for it
_STEP = time.clock_getres(_MONOTONIC_COARSE) if sys.platform == "linux" else 0.0
