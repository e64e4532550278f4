"""The services behind a recording server: which of them gets a request, and at which URL."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from urllib.parse import urlsplit

from cachetools import LRUCache

from mockllm.core.errors import RequestError
from mockllm.play.replay.compilation.http_answer import origin_of, points_to
from mockllm.record.redaction.credentials import masked_url
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol

_VERSION = re.compile(r"v\d\w*")
_SHARED_HEADERS = frozenset(["authorization"])
"""The headers for credentials that clients of several APIs send."""

_MOST_MOVED = 1024
"""How many paths are remembered that services named in URLs."""


class Services:
    """The real services of a recorder.

    Args:
        upstreams: the base URL of the service of each API.
        option: the option that names a service, for messages.
    """

    def __init__(self, upstreams: Mapping[str, str], option: str) -> None:
        self._upstreams = upstreams
        self._option = option
        self._moved: LRUCache[str, WireProtocol] = LRUCache(_MOST_MOVED)

    def serves(self, protocol: WireProtocol) -> bool:
        """Whether an API has a service."""
        return protocol.name in self._upstreams

    def url(self, protocol: WireProtocol, target: str) -> str:
        """Where a request goes.

        Args:
            protocol: an API that has a service.
            target: path and query.
        """
        base = self._upstreams[protocol.name].rstrip("/")
        path = protocol.client.path
        if protocol.address.any_path and (target + "/").startswith((path + "/", path + "?")):
            return base + target.removeprefix(path)  # an agent has one address, which is the base
        return _join(base, target)

    def rebase(self, url: str, protocol: WireProtocol, base: str) -> str:
        """A URL of a service at a base URL of the recorder, which sends requests for its path to
        this service from then on; the same URL where they would not come to it.

        Args:
            protocol: an API that has a service.
        """
        origin = origin_of(self._upstreams[protocol.name])
        target = url.removeprefix(origin)
        if not points_to(url, origin) or self.url(protocol, target) != url:
            return url
        self._moved[urlsplit(url).path] = protocol
        return base + target

    def find(self, path: str, headers: Container[str]) -> WireProtocol | None:
        """An API whose service gets a request that belongs to no API; None without services.

        With several services it is the one that named the path in a URL (`moved`), or whose base
        URL has the beginning of the path, or whose API has a header or a beginning of paths that
        the others do not have.

        Args:
            headers: the names of the request's headers, in lower case.

        Raises:
            RequestError: several services remain.
        """
        if path in self._moved:
            return self._moved[path]
        known = [PROTOCOLS[name] for name in self._upstreams]
        if self._count(known) > 1:
            known = [service for service in known if not service.address.any_path]
            for fitting in (
                [service for service in known if self._is_below(service, path)],
                [service for service in known if _sends(service, headers, shared=False)],
                _by_first_segment(known, path),
                [service for service in known if _sends(service, headers, shared=True)],
            ):
                if self._count(fitting) == 1:
                    return fitting[0]
            raise RequestError(self._ambiguous(path), status=502, code="upstream_unknown")
        return known[0] if known else None

    def missing(self, protocol: WireProtocol) -> str:
        """The message for an API without a service."""
        return (
            f"There is no service to ask for {protocol.name!r}. Give its address with "
            f"{self.option_for(protocol)}."
        )

    def option_for(self, protocol: WireProtocol) -> str:
        """The option that names the service of an API."""
        return f"{self._option} {protocol.name}=URL"

    def _count(self, protocols: list[WireProtocol]) -> int:
        return len({self._upstreams[protocol.name] for protocol in protocols})

    def _is_below(self, protocol: WireProtocol, path: str) -> bool:
        """Whether a path begins with that of a base URL, which is more than a version."""
        base = urlsplit(self._upstreams[protocol.name]).path.rstrip("/")
        more = any(_VERSION.fullmatch(segment) is None for segment in base.split("/") if segment)
        return more and path.startswith(f"{base}/")

    def _ambiguous(self, path: str) -> str:
        urls = ", ".join(sorted({shown_url(url) for url in self._upstreams.values()}))
        return (
            f"{path} belongs to none of the APIs here, and neither the path nor a header shows "
            f"which of the services gets it: {urls}. Record it with one service only "
            f"({self._option} URL), or send a header of the service's API."
        )


def shown_url(url: str) -> str:
    """A URL for messages: without secrets, and without its query."""
    return masked_url(url).partition("?")[0]


def _join(base: str, target: str) -> str:
    """A target at a base URL. What is in both counts once: clients add a version to an address
    that may have one, and a client's own base URL may have the whole path of the service's."""
    parts = urlsplit(base)
    if parts.path and target.startswith(f"{parts.path}/"):
        return base.removesuffix(parts.path) + target
    last = parts.path.rpartition("/")[2]
    if _VERSION.fullmatch(last) is not None and target.startswith(f"/{last}/"):
        return base.removesuffix(f"/{last}") + target
    return base + target


def _sends(protocol: WireProtocol, headers: Container[str], *, shared: bool) -> bool:
    """Whether there is a header that clients of an API send, alone or as those of others do."""
    required = protocol.client.headers
    return any(name in headers for name in required if (name in _SHARED_HEADERS) == shared)


def _by_first_segment(protocols: list[WireProtocol], path: str) -> list[WireProtocol]:
    """The APIs whose usual path has the same first segment."""
    first = path.split("/")[1:2]
    return [protocol for protocol in protocols if protocol.client.path.split("/")[1:2] == first]
