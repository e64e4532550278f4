"""The endpoints that methods and paths lead to."""

from __future__ import annotations

import re

import pytest

from mockllm.serve.server.routing import Routes
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.route_matching import detect
from tests.cases import for_all

ROUTES = Routes(PROTOCOLS)


@for_all("protocol", PROTOCOLS.values(), ids=lambda one: one.name)
@for_all("prefix", ["", "/api", "/a/b/c"])
def test_a_prefix_changes_nothing(protocol, prefix):
    """Every path of every API leads to the same operation below any prefix, the first time and
    again; but those of files and batches, which end as those of other services, to nothing."""
    for route in protocol.address.routes:
        headers = [route.header] if route.header else []
        path = re.sub(
            r"\{(\w+)(?::([^|}]+)[^}]*)?\}", lambda named: named[2] or named[1], route.path
        )
        plain = ROUTES.find(route.method, path, headers)
        for _ in range(2):
            found = ROUTES.find(route.method, prefix + path, headers)
            if prefix and route.operation in protocol.jobs:
                assert found is None, path
                continue
            assert found is not None, path
            assert (found.protocol, found.operation) == (plain.protocol, plain.operation), path


@pytest.mark.parametrize(
    "path",
    [
        "/v1/embeddings",
        "/v1/threads/t/messages",
        "/v1/threads/t/runs",
        "/v1/fim/completions",
        "/v1/chat/completions/x",
        "/x" * 5000,
    ],
)
def test_other_paths_lead_nowhere(path):
    """A path that only resembles one of an API is unknown, the first time and again."""
    for _ in range(2):
        assert ROUTES.find("POST", path) is None


@pytest.mark.parametrize(
    "path",
    [
        "/compatible-mode/v1/chat/completions",
        "/openai/deployments/d/chat/completions",
        "/x/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
        "/v1/projects/p/locations/l/models/m:streamGenerateContent",
    ],
)
def test_a_path_is_known_as_import_knows_it(path):
    """The server and the importers find the same API and the same names in a path."""
    found = ROUTES.find("POST", path)
    detected = detect("POST", f"https://api.example{path}", b"{}")
    assert found is not None
    assert (found.protocol, found.target.method) == (detected.protocol, detected.target.method)
    named = found.target.segments
    assert {**named, **detected.target.segments} == named
