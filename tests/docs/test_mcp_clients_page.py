"""docs/mcp-clients.md has the tables of what was measured, and clients still do what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from measurements.entries import ROOT
from measurements.fault_page import with_table
from measurements.mcp_cases import CASES, RIGHT, scenarios
from measurements.measure_mcp import (
    GROUPS,
    PAGE,
    PROGRAMS,
    accused,
    behaviour,
    cells_of,
    clients,
    measure,
    measure_plain,
    measured,
    tables,
)
from mockllm import loads
from mockllm.checking.rules import table

HERE = Path(sys.prefix)


def test_the_page_is_up_to_date() -> None:
    """`python -m measurements.measure_mcp page` writes it."""
    text = PAGE.read_text("utf-8")
    assert with_table(text, "\n".join(tables(measured()))) == text


def test_the_table_of_programs_is_complete() -> None:
    """Each program is a client's; each client has a program, or is an agent."""
    programs = {client.program for client in clients().values() if client.program}
    beside = {"chat_loop.py", "given.py", "plain_server.py", "clients.toml"}
    files = {path.name for path in PROGRAMS.iterdir() if path.is_file()}
    assert files == programs | beside
    agents = {client.agent for client in clients().values() if client.agent}
    assert agents == table("agents.yaml", "mockllm.conformance.agents").keys()
    for name, client in clients().items():
        assert bool(client.program) != bool(client.agent), name
        assert client.program.rpartition(".")[2] in GROUPS.values(), name
        assert bool(client.packages and client.versions) != bool(client.agent), name


def test_every_client_is_measured_in_every_case() -> None:
    """And whatever says something bad of it was done without mockllm, too."""
    results = measured()
    assert results.keys() == clients().keys()
    for name, one in results.items():
        assert one["cells"].keys() == {":".join(cell) for cell in cells_of(clients()[name])}, name
        assert {*accused(one)} <= one["plain"].keys(), name


def test_no_right_client_is_accused() -> None:
    """Where nothing fails, no verdict over tools is bad."""
    for name, one in measured().items():
        for case in RIGHT:
            for over in ("http", "stdio"):
                broken = one["cells"].get(f"{case}:{over}", {}).get("violations", {})
                over_tools = {"call-reached-tool", "result-returned", "tools-offered"}
                assert not over_tools & broken.keys(), (name, case, over)


@pytest.mark.parametrize("case", CASES)
def test_the_scenarios_can_be_loaded(case: str) -> None:
    """Over each API of a client."""
    for api in {client.api for client in clients().values()}:
        assert loads(scenarios(CASES[case], api))


def test_behaviour_is_read_from_an_outcome() -> None:
    """Bold is what a test has to look out for."""
    good = {
        "exit": 0, "done": True, "offered": True, "returned": True, "tries": 1, "lists": 1,
        "requests": 2,
    }  # fmt: skip
    lost = good | {"returned": False}
    ended = lost | {"exit": 1, "done": False, "requests": 1}
    expected = {
        "result": ("reset", good),
        "error to the model": ("reset", lost),
        "**result lost**": ("progress", lost),
        "**taken for the result**": ("unknown-id", good),
        "result, **called twice**": ("cut", good | {"tries": 2}),
        "error to the model, called 3 times": ("500", lost | {"tries": 3}),
        "ends with an error": ("500", ended),
        "error to the model, ends with an error": ("reset", ended | {"requests": 2}),
        "**exit 0 without an answer**": ("500", ended | {"exit": 0}),
        "**waits**": ("stall", ended | {"exit": None}),
        "**goes on without tools, exit 0**": ("list", lost | {"offered": False, "tries": 0}),
        "result, lists again, new tools in the next request": ("tools", good | {"lists": 2}),
        "result, lists again, old tools in the next request": (
            "tools",
            good | {"lists": 2, "remarks": {"list-change-ignored": "..."}},
        ),
    }
    assert {words: behaviour(*cell) for words, cell in expected.items()} == {
        words: words for words in expected
    }


@pytest.mark.slow
@pytest.mark.parametrize("over", ["http", "stdio"])
@pytest.mark.parametrize("client", ["mcp-v2", "openai-agents"])
def test_a_right_client_is_good(client: str, over: str) -> None:
    """Those that are installed here, over both transports."""
    outcome = measure(client, "calls", over, HERE)
    assert (outcome["exit"], outcome["done"], outcome["verdict"]) == (0, True, "good"), outcome
    assert not outcome["remarks"]
    assert outcome["operations"] == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "over"), [("cut", "http"), ("exit", "stdio"), ("progress", "http")]
)
def test_mockllm_and_the_plain_server_agree(case: str, over: str) -> None:
    """A client does the same under a fault of either."""
    own, plain = (run("mcp-v2", case, over, HERE) for run in (measure, measure_plain))
    assert behaviour(case, own) == behaviour(case, plain)


def test_the_plain_server_is_without_mockllm() -> None:
    """It and the programs import nothing of this project."""
    for path in (ROOT / "measurements" / "mcp_clients").glob("*.py"):
        text = path.read_text("utf-8")
        assert "import mockllm" not in text, path
        assert "from mockllm" not in text, path
