"""docs/clients.md agrees with the behaviour of the clients."""

from __future__ import annotations

import pytest

from mockllm.checking.cases.compile import quirk_cases
from mockllm.quirks import QUIRKS
from tests.clients_page import measured, written
from tests.conformance.clients import CLIENTS, PYTHON_CLIENTS

pytestmark = pytest.mark.slow

AGAIN = ("openai", "anthropic")
"""The packages that are measured here; `python -m tests.clients_page` measures all, in minutes."""


def test_every_quirk_is_on_the_page() -> None:
    """No quirk is left out of the tables."""
    assert {quirk.partition(":")[0] for _, quirk in written()} == set(QUIRKS)


def test_the_page_has_the_forms_that_are_played() -> None:
    """Each row is of a form that the kit plays over that API, and each such form has a row."""
    for client in CLIENTS:
        rows = {quirk for name, quirk in written() if name == client.name}
        played = {case.quirk for case in quirk_cases(client.api)}
        left_out = played - rows
        assert rows <= played, client.name
        assert {QUIRKS[name.partition(":")[0]].group for name in left_out} <= {"F", "G"}, left_out


def test_the_table_agrees_with_a_new_measurement() -> None:
    """The official Python clients handle each quirk as the tables show."""
    marks = written()
    here = [client for client in PYTHON_CLIENTS if client.package in AGAIN]
    assert len(here) == 3
    for client, case, cell in measured(here):
        assert marks[client.name, case.quirk].mark == cell.mark, (
            client.name,
            case.quirk,
            cell.description,
        )
