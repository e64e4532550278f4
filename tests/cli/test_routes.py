"""Commands with scenarios that have a route."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import write

ROUTE = """
scenario: embed
description: An embedding.
route: POST /v1/embeddings
match: {body: {input: hi}}
turns:
  - answer: {json: {data: [1]}}
  - answer: {status: 503, headers: {retry-after: "1"}, text: busy}
"""


@pytest.fixture
def routes(folder):
    """The folder with a scenario that has a route."""
    write(folder, "embed.yaml", ROUTE)
    return folder


def test_list(mockllm, routes):
    """The table has the route in the column of the APIs, and the JSON has it in a key."""
    rows = mockllm("list", routes).stdout.splitlines()
    assert rows[1].split("  ")[0] == "embed"
    assert "POST /v1/embeddings" in rows[1]
    listed = json.loads(mockllm("list", "--json", routes).stdout)
    assert (listed[0]["route"], listed[0]["apis"]) == ("POST /v1/embeddings", [])


def test_show(mockllm, routes):
    """The body of a turn is printed; another status than 200 has its head before it."""
    assert mockllm("show", "embed", "--scenarios", routes).stdout == '{"data":[1]}'
    busy = mockllm("show", "embed", "--scenarios", routes, "--turn", "2").stdout_bytes
    assert busy.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nretry-after: 1\r\n" in busy
    assert busy.endswith(b"\r\n\r\nbusy")


def test_show_refuses_what_a_route_has_not(mockllm, routes):
    """There is neither a third turn nor an API."""
    third = mockllm("show", "embed", "--scenarios", routes, "--turn", "3")
    assert third.exit_code == 2
    assert "scenario 'embed' has 2 turns, not 3" in third.stderr
    api = mockllm("show", "embed", "--scenarios", routes, "--api", "chat")
    assert api.exit_code == 2
    assert "answers POST /v1/embeddings; leave --api out" in api.stderr


def test_validate(mockllm, routes):
    """Routes are validated; they lose nothing over any protocol."""
    result = mockllm("validate", "--losses", routes)
    assert (result.exit_code, result.stdout) == (0, "2 scenarios, no problems\n")
    write(routes, "bad.yaml", ROUTE.replace("embed\n", "bad\n", 1).replace("json:", "jsn:"))
    result = mockllm("validate", routes)
    assert result.exit_code == 1
    problem = "bad.yaml:7:14: turns[0].answer: unknown key 'jsn'; did you mean 'json'?"
    assert problem in result.stdout


def test_export_refuses_what_was_not_recorded(mockllm, routes, tmp_path):
    """A cassette needs requests, which an authored route does not have."""
    out = tmp_path / "out.yaml"
    result = mockllm("export", "embed", "--scenarios", routes, "--to", "vcr", "-o", out)
    assert result.exit_code == 2
    assert "has the route POST /v1/embeddings and a turn that was not recorded" in result.stderr
