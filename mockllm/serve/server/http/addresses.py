"""The addresses at which clients reach a server that listens on all addresses of its machine."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

ALL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - that somebody listens there
"""What listens on all addresses of a machine, and the address for clients on this one."""

_SIOCGIFADDR = 0x8915  # linux/sockios.h
_PROBES = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses for documentation, which nobody has (RFC 5737, RFC 3849)."""


def url_of(host: str, port: int, *, secured: bool = False) -> str:
    """`http://HOST:PORT`, or with TLS `https://HOST:PORT`; an IPv6 address in brackets."""
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if secured else 'http'}://{name}:{port}"


def reachable(host: str) -> str:
    """The address for clients on this machine, for the one that a server listens on: for all
    addresses (`0.0.0.0`, `::`) the loopback address, and else the same one."""
    return ALL_ADDRESSES.get(host, host)


def further_urls(host: str, port: int) -> tuple[str, ...]:
    """Where other machines reach a server that listens on all addresses; () for any other.

    Args:
        host: that the server listens on; "" for IPv4 and IPv6.
    """
    if host and host not in ALL_ADDRESSES:
        return ()
    found = dict.fromkeys(map(str, own_addresses()))
    addresses = [ipaddress.ip_address(own) for own in found]
    if host:
        version = ipaddress.ip_address(host).version
        addresses = [address for address in addresses if address.version == version]
    # A link-local address needs the name of an interface, which most clients do not take.
    shown = [address for address in addresses if not (address.is_loopback or address.is_link_local)]
    return tuple(url_of(str(address), port) for address in shown)


def own_addresses() -> Iterator[str]:
    """The addresses of this machine, without a look-up of its name, which may take seconds."""
    if sys.platform == "linux":
        yield from _of_interfaces()
    for family, target in _PROBES:
        # Connecting a UDP socket sends nothing; it shows from which address packets would go.
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))
            yield probe.getsockname()[0]


def _of_interfaces() -> Iterator[str]:
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            with contextlib.suppress(OSError):  # an interface without an IPv4 address
                found = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)
                yield socket.inet_ntoa(found[20:24])
    with contextlib.suppress(OSError):  # without IPv6
        for line in Path("/proc/net/if_inet6").read_text(encoding="ascii").splitlines():
            yield str(ipaddress.IPv6Address(int(line.split()[0], 16)))
