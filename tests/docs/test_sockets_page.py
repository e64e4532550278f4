"""docs/websockets.md has the table of what was measured, and a client still does what it says."""

import asyncio

import pytest

from measurements.fault_page import with_table
from measurements.measure_sockets import (
    CLIENTS,
    FAULTS,
    PAGE,
    SHOWN,
    mark,
    measure,
    measured,
    table,
)


def test_the_page_is_up_to_date() -> None:
    """`python -m measurements.measure_sockets page` writes it."""
    text = PAGE.read_text("utf-8")
    assert with_table(text, "\n".join(table(measured()))) == text


def test_every_client_is_measured_under_every_fault() -> None:
    assert SHOWN.keys() == FAULTS.keys()
    results = measured()
    assert results.keys() == CLIENTS.keys()
    for client in results.values():
        assert client["faults"].keys() == FAULTS.keys()


def test_what_the_page_says_of_all_clients_holds() -> None:
    """No call of a broken answer was executed, with mockllm or without."""
    for client in measured().values():
        for both in client["faults"].values():
            assert both["mockllm"]["executed"] == both["raw"]["executed"] == []
        assert client["faults"]["stall"]["raw"]["waits"]


@pytest.mark.slow
def test_a_client_does_what_is_published() -> None:
    """With the faults of mockllm and with the raw server."""
    own = asyncio.run(measure(["openai"]))["openai"]["faults"]
    published = measured()["openai"]["faults"]
    for fault, both in own.items():
        for side, outcome in both.items():
            assert mark(fault, outcome) == mark(fault, published[fault][side]), (fault, side)
