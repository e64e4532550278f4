"""Where a recorded request is sent again, and with which key. Pure.

A key goes to the service that defines the API, or to one that the user names for it: never to the
host of a recording because it is in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from mockllm.conformance.drift.selection import without_secrets
from mockllm.core.errors import RequestError
from mockllm.core.http import is_this_machine
from mockllm.core.record import record
from mockllm.play.tapes.captured import Captured, detect_api
from mockllm.record.redaction.placeholders import placeholder_spans
from mockllm.serve.server.recording.services import Services
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.environment import MOCK_KEY

Pairs = tuple[tuple[str, str], ...]


@record
class Destination:
    """Where a request goes, with the headers it has there."""

    url: str
    headers: Pairs


class Destinations:
    """The services of recordings.

    Args:
        upstreams: the base URLs that the user names, by API.
        environment: has the keys.
        headers: further headers for those, by name, each with the variable that has its value; they
            take the place of the key.
    """

    def __init__(
        self,
        upstreams: Mapping[str, str],
        environment: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> None:
        self._services = Services(upstreams, "--upstream")
        self._environment = environment
        self._headers = headers

    def of(self, exchange: Captured) -> Destination:
        """Where the request of an exchange goes.

        Raises:
            RequestError: nowhere, and why.
        """
        url = without_secrets(exchange.url)
        protocol = self._protocol(exchange)
        if protocol is None:
            raise RequestError(
                f"no service is known at {exchange.host}; name it: --upstream API=URL"
            )
        kept = tuple(
            (name, value)
            for name, value in exchange.request_headers
            if name not in _OF_CONNECTION and not placeholder_spans(value)
        )
        if self._services.serves(protocol):
            parts = urlsplit(url)
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            url = self._services.url(protocol, target)
            if self._headers:
                return Destination(url, _merge_headers(self._own_headers(), kept))
        required = tuple(protocol.client.headers.items())
        return Destination(url, _merge_headers(self._key(protocol, url), kept, required))

    def _protocol(self, exchange: Captured) -> WireProtocol | None:
        protocol = detect_api(exchange).protocol
        if protocol is not None and self._services.serves(protocol):
            return protocol
        if protocol is None:
            names = dict(exchange.request_headers)
            protocol = self._services.find(exchange.path, names)
            if protocol is not None:
                return protocol
        known = PROTOCOLS.values() if protocol is None else (protocol,)
        return next((api for api in known if defines(api, exchange.url)), None)

    def _own_headers(self) -> Pairs:
        missing = [name for name in self._headers.values() if not self._environment.get(name)]
        if missing:
            raise RequestError(f"the variable {missing[0]} is not set")
        return tuple((name, self._environment[key]) for name, key in self._headers.items())

    def _key(self, protocol: WireProtocol, url: str) -> Pairs:
        """The header for the key, with that of the environment; () for an API without keys."""
        places = [pair for pair in protocol.client.headers.items() if MOCK_KEY in pair[1]]
        names = protocol.address.env.keys
        keys = (self._environment.get(name) for name in names)
        key = next((key for key in keys if key and key != MOCK_KEY), MOCK_KEY)
        if places and key == MOCK_KEY and not is_this_machine(urlsplit(url).hostname or ""):
            raise RequestError(f"there is no key for {protocol.name}: set {' or '.join(names)}")
        return tuple((name, value.replace(MOCK_KEY, key)) for name, value in places)


_OF_CONNECTION = frozenset({"host", "content-length", "accept-encoding", "content-encoding"})


def _merge_headers(*headers: Pairs) -> Pairs:
    """All headers; of one name those that come first."""
    found: dict[str, Pairs] = {}
    for pairs in headers:
        new: dict[str, Pairs] = {}
        for name, value in pairs:
            new[name] = (*new.get(name, ()), (name, value))
        found = new | found
    return tuple(pair for same in found.values() for pair in same)


def defines(protocol: WireProtocol, url: str) -> bool:
    """Whether a URL is one of the service that defines an API. That of AWS has one for each
    region."""
    service, other = urlsplit(protocol.client.service), urlsplit(url)
    if service.scheme != other.scheme:
        return False
    return service.netloc == other.netloc or _without_region(service.netloc) == _without_region(
        other.netloc
    )


def _without_region(host: str) -> str:
    labels = host.split(".")
    is_regional = host.endswith(".amazonaws.com") and len(labels) == 4
    return ".".join((labels[0], *labels[2:])) if is_regional else host
