"""Every shipped scenario over every API with every client is equal, except for listed losses."""

from __future__ import annotations

import pytest

from tests.apis import OVER_HTTP
from tests.clients import matrix, vercel_matrix
from tests.clients.conversation import SCENARIOS
from tests.clients.matrix import EQUAL, LISTED, MISREAD, Cell, cells, table
from tests.docs import protocols_page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table_cells() -> dict[Cell, str]:
    """All cells of the table, built once."""
    return cells()


@pytest.fixture(scope="module")
def cells_of_vercel() -> dict[Cell, str]:
    """Those of Vercel's SDK, which runs under Node."""
    if (reason := vercel_matrix.missing()) is not None:
        pytest.skip(reason)
    return protocols_page.cells_under_node()


def test_every_scenario_has_a_cell_for_every_client(table_cells):
    """No cell is missing. An unlisted difference fails the fixture."""
    columns = {(api, client) for _, api, client in table_cells}
    # The others have tests of their own with their SDKs, and so have Realtime and Live.
    assert {api for api, _ in columns} == set(OVER_HTTP) - {"completions", "cohere", "interactions"}
    assert set(table_cells) == {(name, *column) for name in SCENARIOS for column in columns}


def test_losses_are_few_and_real(table_cells):
    """Each listed loss occurs in a cell, and less than a tenth of the cells has one."""
    lossy = {cell: reason for cell, reason in table_cells.items() if reason != EQUAL}
    assert set(lossy.values()) == set(LISTED.values())
    assert set(MISREAD) <= set(lossy)
    assert len(lossy) < len(table_cells) / 10


def test_no_loss_over_the_apis_of_openai(table_cells):
    """Chat Completions and Responses lose nothing of the shipped scenarios."""
    assert {table_cells[cell] for cell in table_cells if cell[1] in ("chat", "responses")} == {
        EQUAL
    }


def test_vercel_loses_what_is_listed(cells_of_vercel):
    """Every scenario has a cell for each API, and exactly the listed losses are not equal."""
    expected = {
        (scenario.name, api, "ai-sdk")
        for scenario in SCENARIOS.values()
        for api in vercel_matrix.MODELS
        if scenario.plays_over(api)
    }
    assert cells_of_vercel.keys() == expected
    lossy = {(name, api) for (name, api, _), cell in cells_of_vercel.items() if cell != EQUAL}
    assert lossy == vercel_matrix.LOSSES.keys()


@pytest.mark.large
def test_the_table_of_the_page_is_measured(table_cells, cells_of_vercel):
    """Every cell of docs/protocols.md is what the clients read."""
    generated = protocols_page.page({**table_cells, **cells_of_vercel})
    assert generated == protocols_page.PAGE.read_text(), "run: python -m tests.docs.protocols_page"


def test_losses_are_on_the_page():
    """A loss that is added or fixed is in docs/protocols.md in the same commit."""
    text = protocols_page.PAGE.read_text()
    assert text.startswith(protocols_page.HEAD)
    assert protocols_page.losses() in text, "run: python -m tests.docs.protocols_page"


def test_extra_clients_are_called(monkeypatch):
    """An entry of EXTRA is called with the URL of the server, and its cells are appended."""
    urls: list[str] = []

    def other(url: str) -> dict[Cell, str]:
        urls.append(url)
        return {("refusal", "chat", "other"): "It cannot."}

    monkeypatch.setattr(matrix, "EXTRA", [other])
    assert list(cells(["refusal"]).items())[-1] == (("refusal", "chat", "other"), "It cannot.")
    assert urls[0].startswith("http://127.0.0.1:")


def test_table():
    """Rows are scenarios and columns clients; reasons are numbered and listed below."""
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
