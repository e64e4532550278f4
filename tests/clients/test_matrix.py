"""Every shipped scenario over every API with every client: equal, but for listed losses."""

from __future__ import annotations

import pytest

from mockllm.protocols import PROTOCOLS
from tests.clients import matrix
from tests.clients.conversation import SCENARIOS
from tests.clients.matrix import BLIND, EQUAL, LISTED, Cell, cells, table

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made() -> dict[Cell, str]:
    """The whole table, made once."""
    return cells()


def test_every_scenario_meets_every_client(made):
    """No cell is missing, and none differs that is not listed (making them would have failed)."""
    columns = {(api, client) for _, api, client in made}
    assert {api for api, _ in columns} == set(PROTOCOLS)
    assert set(made) == {(name, *column) for name in SCENARIOS for column in columns}


def test_losses_are_few_and_real(made):
    """Each loss that is listed is that of a cell, and most cells have none."""
    lossy = {cell: reason for cell, reason in made.items() if reason != EQUAL}
    assert set(lossy.values()) == set(LISTED.values())
    assert set(BLIND) <= set(lossy)
    assert len(lossy) < len(made) / 10


def test_no_loss_over_the_apis_of_openai(made):
    """Chat Completions and Responses can say everything that the shipped scenarios do."""
    assert {made[cell] for cell in made if cell[1] in ("chat", "responses")} == {EQUAL}


def test_further_clients_are_asked(monkeypatch):
    """A client that is plugged in gets the URL of the server, and its cells come last."""
    urls: list[str] = []

    def other(url: str) -> dict[Cell, str]:
        urls.append(url)
        return {("refusal", "chat", "other"): "It cannot."}

    monkeypatch.setattr(matrix, "EXTRA", [other])
    assert list(cells(["refusal"]).items())[-1] == (("refusal", "chat", "other"), "It cannot.")
    assert urls[0].startswith("http://127.0.0.1:")


def test_table():
    """Rows are scenarios, columns clients, marks are numbered as they come and told below."""
    given = {
        ("b", "chat", "one"): EQUAL,
        ("a", "chat", "one"): EQUAL,
        ("b", "agui", "two"): "It cannot.",
    }
    assert table(given) == (
        "| scenario | chat<br>one | agui<br>two |\n"
        "|---|---|---|\n"
        "| a | ✓ |  |\n"
        "| b | ✓ | ¹ |\n"
        "\n"
        "1. It cannot.\n"
    )
