"""Only a library that mockllm redirected may name the service that a request is for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from mockllm.serve.interception.headers import ORIGIN_HEADER
from mockllm.serve.interception.hosts import Hosts
from mockllm.serve.server.options import InterceptOptions, RecordOptions, ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.serve.interception.conftest import ASKED

KEY = "the key of this server"


@pytest.fixture
def service() -> Iterator[ServerThread]:
    """A service on this machine that no recorder may reach unless its host is intercepted."""
    with ServerThread((), ServerOptions(fallback=True, grace=0)) as thread:
        yield thread


CONFIGURATIONS = ("plays", "intercepts", "records", "records what it intercepts")


def options(configuration: str, folder: Path, *hosts: str) -> ServerOptions:
    record = RecordOptions(folder) if "records" in configuration else None
    intercept = InterceptOptions(Hosts(hosts), key=KEY) if "intercepts" in configuration else None
    return ServerOptions(grace=0, record=record, intercept=intercept)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("sent", ["{origin}", "a guess {origin}", f"{KEY}{{origin}}"])
def test_a_forged_origin_is_refused(
    service: ServerThread, tmp_path: Path, configuration: str, sent: str
) -> None:
    """In every configuration; nothing arrives at the service, and the answer names the header."""
    headers = {ORIGIN_HEADER: sent.format(origin=service.url), "origin": "https://evil.example"}
    with ServerThread((), options(configuration, tmp_path, "*", "127.0.0.1")) as thread:
        for method, path in (
            ("GET", "/a"),
            ("GET", "/v1/models"),
            ("POST", "/v1/chat/completions"),
        ):
            answer = httpx.request(method, thread.url + path, headers=headers, json=ASKED)
            assert answer.status_code == 403
            assert ORIGIN_HEADER in answer.text
            assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert service.exchanges("default") == ()


@pytest.mark.parametrize(("hosts", "status"), [((), 403), (("127.0.0.1",), 200)])
def test_an_origin_with_the_key_is_compared(
    service: ServerThread, tmp_path: Path, hosts: tuple[str, ...], status: int
) -> None:
    """The key alone leads nowhere: the host has to be one of those that are intercepted."""
    headers = {ORIGIN_HEADER: f"{KEY} {service.url}", "x-api-key": "any"}
    with ServerThread((), options(CONFIGURATIONS[3], tmp_path, *hosts)) as thread:
        answer = httpx.post(f"{thread.url}/v1/chat/completions", headers=headers, json=ASKED)
        (entry,) = thread.exchanges("default")
    assert answer.status_code == status
    assert KEY not in repr(entry.headers)
    assert len(service.exchanges("default")) == (status == 200)
