"""Which hosts are intercepted. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from ipaddress import ip_address
from urllib.parse import urlsplit

from mockllm.core.errors import UsageError
from mockllm.core.http import PORTS, is_this_machine, netloc
from mockllm.core.record import record
from mockllm.wire.protocols import PROTOCOLS

_PATTERN = re.compile(
    r"(?:[a-z0-9_*-]+(?:\.[a-z0-9_*-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?", re.IGNORECASE
)
# 63 octets a label, 255 a name on the wire, which are 253 characters (RFC 1035, section 2.3.4).
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
# https://url.spec.whatwg.org/#ends-in-a-number-checker
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)
_LONGEST_NAME = 253
_PORT = re.compile(r":(?:\d+|\*)\Z")


@record
class Hosts:
    """The hosts whose requests mockllm answers.

    Args:
        named: patterns in lower case, such as `api.cohere.com`, `*.ibm.com`, `localhost:11434` or
            `*`; hosts of this machine only where a pattern names them.
    """

    named: tuple[str, ...] = ()

    def has(self, host: str, port: int) -> bool:
        """Whether a host, without its port, is intercepted."""
        host = host.lower().rstrip(".")
        patterns: tuple[str, ...] = (*self.named, *known_hosts())
        if is_this_machine(host):
            patterns = tuple(filter(self.names_this_machine, self.named))
        name = f"[{host}]" if ":" in host else host
        return any(
            fnmatchcase(text, pattern.replace("[", "[[]"))
            for pattern in patterns
            for text in (name, f"{name}:{port}")
        )

    def has_url(self, url: str) -> bool:
        """Whether requests to a URL are intercepted."""
        place = _place(url)
        return place is not None and self.has(*place)

    @staticmethod
    def names_this_machine(pattern: str) -> bool:
        """Whether a pattern names this machine, and not any."""
        return is_this_machine(_PORT.sub("", pattern))


def is_host_name(text: str) -> bool:
    """Whether a text is the name of a host (RFC 1123, section 2.1), with `_` as services have it.
    Where its last label is a number, it is an address, or none
    (https://url.spec.whatwg.org/#ends-in-a-number-checker)."""
    labels = text.removesuffix(".").split(".")
    is_number = _NUMBER.fullmatch(labels[-1]) is not None
    return len(text) <= _LONGEST_NAME and not is_number and all(map(_LABEL.fullmatch, labels))


def is_host(text: str) -> bool:
    """Whether a text is the name of a host, or an address, of IPv6 without brackets."""
    try:
        ip_address(text)
    except ValueError:
        return is_host_name(text)
    return True


def patterns_of(urls: Iterable[str]) -> tuple[str, ...]:
    """The patterns of the hosts of URLs, with their ports; of what is no URL, none."""
    places = filter(None, map(_place, urls))
    return tuple(f"{netloc('', host, None)}:{port}".lower() for host, port in places if host)


def _place(url: str) -> tuple[str, int] | None:
    """Host and port of a URL; None of what is no URL."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port or PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None


def known_hosts() -> tuple[str, ...]:
    """The patterns of the hosts of all known services."""
    return tuple(host for address in PROTOCOLS.addresses.values() for host in address.hosts)


def hosts_from(names: Iterable[str], option: str) -> Hosts:
    """The hosts that an option names, several with commas between them; `known` is none.

    Raises:
        UsageError: one is no name of a host.
    """
    given = [name.strip() for text in names for name in text.split(",") if name.strip()]
    for name in given:
        if not _PATTERN.fullmatch(name):
            raise UsageError(
                f"{option} takes names of hosts such as api.cohere.com, *.ibm.com or "
                f"localhost:11434, got {name!r}"
            )
    return Hosts(tuple(name.lower() for name in given if name != "known"))
