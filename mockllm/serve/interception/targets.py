"""The server that a request to a forward proxy is for, and who sends it. Pure."""

from __future__ import annotations

import base64
from ipaddress import ip_address
from typing import Literal
from urllib.parse import unquote, urlsplit

from mockllm.core.errors import RequestError
from mockllm.core.http import PORTS, is_this_machine, netloc
from mockllm.core.record import record
from mockllm.core.text import shorten
from mockllm.serve.interception.hosts import is_host, is_host_name

_SCHEMES: dict[str, Literal["http"]] = {"http": "http", "ws": "http"}
"""The schemes without TLS. A WebSocket begins as HTTP (RFC 6455, section 4.1)."""


@record
class ProxyTarget:
    """The server that a request to a proxy is for.

    Args:
        tunnels: whether the client wants a connection to it (CONNECT; RFC 9110, section 9.3.6).
            Otherwise the request itself names its URL (RFC 9112, section 3.2.2).
        host: in lower case, an IPv6 address without brackets.
    """

    tunnels: bool
    host: str
    port: int

    def origin(self, scheme: Literal["http", "https"] = "http") -> str:
        """Its origin, such as `https://api.openai.com`."""
        return f"{scheme}://{netloc(scheme, self.host, self.port)}"


def read_target(method: str, target: str) -> ProxyTarget:
    """The server that a request to a proxy is for, from its method and its target.

    Raises:
        RequestError: the target names none, or not as the specifications have it.
    """
    if method.upper() == "CONNECT":
        return _place(f"//{target}", PORTS["https"], tunnels=True)
    scheme, mark, _ = target.partition("://")
    if not mark or scheme.lower() not in _SCHEMES:
        raise RequestError("This is a proxy: it takes CONNECT, and targets such as http://HOST/.")
    return _place(target, PORTS["http"], tunnels=False)


def _place(url: str, default: int, *, tunnels: bool) -> ProxyTarget:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or default
    except ValueError:
        parts, host, port = urlsplit(""), "", default
    if not host or (tunnels and parts.path):
        raise RequestError(f"The target {shorten(url, 80)!r} has no host, or no port that exists.")
    if "@" in parts.netloc:
        raise RequestError("The target has a user name; send it in the header authorization.")
    check_host(host)
    return ProxyTarget(tunnels, host, port)


def check_host(host: str) -> None:
    """Checks that a host is a name or an address in its usual form: each rule about hosts compares
    these. Resolvers take more (`127.1`, `0x7f000001`, `0.0.0.0` and `::ffff:127.0.0.1` are all this
    machine).

    Raises:
        RequestError: it is neither.
    """
    if not is_host(host):
        raise RequestError(f"{shorten(host, 80)!r} is neither the name nor the address of a host.")
    if is_this_machine(host) and not is_host_name(host):
        address = ip_address(host)
        if not address.is_loopback:  # unspecified, or an IPv4 address in IPv6
            raise RequestError(
                f"{host} is no address to connect to. This machine is 127.0.0.1 or ::1."
            )


def read_credentials(header: str) -> tuple[str, str]:
    """User name and password of `Proxy-Authorization` (RFC 7617); both are "" without any."""
    scheme, _, encoded = header.strip().partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, _, password = base64.b64decode(encoded).decode().partition(":")
    except ValueError:
        return "", ""
    return unquote(user), unquote(password)
