"""Fixtures of pytest-recording in tests that are recorded here: `vcr` has the requests of the test,
in place of the cassette; and `--block-network` does not block mockllm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlsplit

import pytest

if TYPE_CHECKING:
    from mockllm.play.replay.sessions.exchange import Exchange
    from mockllm_pytest.sessions import MockSession


@pytest.fixture
def vcr() -> None:
    """In a recorded test, its requests; for runs without pytest-recording."""


class SentRequest(NamedTuple):
    """A request, under the names that vcrpy's `Request` has.

    Args:
        uri: with the address of the service where the request was intercepted.
        headers: names in lower case; credentials are masked.
    """

    method: str
    uri: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def url(self) -> str:
        return self.uri

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.uri)

    @property
    def scheme(self) -> str:
        return self._parts.scheme

    @property
    def host(self) -> str | None:
        return self._parts.hostname

    @property
    def path(self) -> str:
        return self._parts.path

    @property
    def query(self) -> list[tuple[str, str]]:
        return sorted(parse_qsl(self._parts.query))


class SentRequests:
    """The part of a vcrpy cassette that tests read: the requests. There are no `responses`."""

    def __init__(self, node: pytest.Item, key: pytest.StashKey[MockSession]) -> None:
        self._node = node
        self._key = key

    @property
    def requests(self) -> list[SentRequest]:
        session = self._node.stash.get(self._key, None)
        return [] if session is None else [_sent_request(exchange) for exchange in session.journal]

    @property
    def play_count(self) -> int:
        return len(self)

    def __len__(self) -> int:
        return len(self.requests)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"the fixture vcr has no {name!r} in a test that mockllm recorded, but `requests` and "
            "`play_count`; mockllm_session.journal has more"
        )


def with_this_machine(hosts: object) -> list[str]:
    """The hosts that `--block-network` and its mark let pass, as regular expressions, and the
    server of mockllm."""
    given = hosts if isinstance(hosts, list | tuple) else []
    return [*given, r"127\.0\.0\.1\Z"]


def _sent_request(exchange: Exchange) -> SentRequest:
    from mockllm.serve.interception.headers import ORIGIN_HEADER

    headers = {name: value for name, value in exchange.headers.items() if name != ORIGIN_HEADER}
    origin = exchange.headers.get(ORIGIN_HEADER, "")
    return SentRequest(exchange.received.method, origin + exchange.path, headers, exchange.body)
