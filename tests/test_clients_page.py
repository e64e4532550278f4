"""docs/clients.md agrees with the behaviour of the clients."""

from __future__ import annotations

import pytest

from mockllm.quirks import QUIRKS
from tests.clients_page import PAGE, measured
from tests.conformance.clients import PYTHON_CLIENTS

pytestmark = pytest.mark.slow

AGAIN = ("openai", "anthropic")
"""The packages that are measured here; `python -m tests.clients_page` measures all, in minutes."""


def written() -> dict[tuple[str, str], str]:
    """The marks of the tables by client and quirk."""
    marks: dict[tuple[str, str], str] = {}
    clients: list[str] = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| quirk | right |"):
            clients = cells[2:]
        elif line.startswith("| `") and clients:
            quirk = cells[0].strip("`")
            marks |= {(c, quirk): mark for c, mark in zip(clients, cells[2:], strict=True)}
    return marks


def test_every_quirk_is_on_the_page() -> None:
    """No quirk is left out of the tables."""
    assert {quirk.partition(":")[0] for _, quirk in written()} == set(QUIRKS)


def test_the_table_agrees_with_a_new_measurement() -> None:
    """The official Python clients handle each quirk as the tables show."""
    marks = written()
    here = [client for client in PYTHON_CLIENTS if client.package in AGAIN]
    assert len(here) == 3
    for client, case, cell in measured(here):
        assert marks[client.name, case.quirk] == cell.mark, (
            client.name,
            case.quirk,
            cell.description,
        )
