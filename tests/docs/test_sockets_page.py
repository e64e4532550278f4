"""docs/socket-clients.md has the tables of what was measured, and a client still does what they
say."""

from __future__ import annotations

import pytest

from measurements.fault_page import with_table
from measurements.measure_sockets import (
    CLIENTS,
    PAGE,
    cell,
    faults_of,
    mark,
    measure,
    measured,
    rules_of,
    tables,
)


def test_the_page_is_up_to_date() -> None:
    """`python -m measurements.measure_sockets page` writes it."""
    text = PAGE.read_text("utf-8")
    assert with_table(text, "\n".join(tables(measured()))) == text


def test_every_client_is_measured_under_every_fault() -> None:
    results = measured()
    assert results.keys() == CLIENTS.keys()
    for name, client in CLIENTS.items():
        assert [*results[name]["faults"]] == faults_of(client)


def test_what_the_page_says_of_all_clients_holds() -> None:
    """mockllm and the raw server agree. No call with cut arguments was executed, no request was
    repeated, and a stall is waited for."""
    for name, client in measured().items():
        for fault, both in client["faults"].items():
            place = (name, fault)
            assert not cell(fault, client).endswith("?"), place
            has_result = CLIENTS[name].api == "live" and fault.startswith("call")
            for outcome in both.values():
                assert not (fault.startswith("args") and outcome.get("executed")), place
                if not fault.startswith("again"):
                    assert outcome["requests"] == (2 if has_result else 1), place
        assert client["faults"]["stall"]["raw"]["waits"], name


def test_rules_are_read_from_the_cells() -> None:
    """A rule is broken by one cell; what waits, and what has tries, is said."""
    agents = CLIENTS["agents"]

    def results(**faults):
        return {"faults": {name: {"mockllm": one, "raw": one} for name, one in faults.items()}}

    kept = {fault: {"error": "E: x", "requests": 1} for fault in faults_of(agents)}
    kept |= {f"cancel-{way}": {"requests": 1, "ended": "left"} for way in ("task", "call")}
    assert [*rules_of(agents, results(**kept))] == ["yes", "yes", "closes", "does not"]
    broken = {
        "close-1001": {"requests": 1},
        "reset": {"requests": 1, "waits": True},
        "args-1000": {"requests": 1, "executed": ["Paris"], "error": "E"},
        "cancel-call": {"requests": 1},
        "again-503": {"requests": 3, "error": "E", "pauses": [1.0, 1.0]},
    }
    assert [*rules_of(agents, results(**kept | broken))] == [
        "**no error** after 1001; **waits** after reset",
        "**no**",
        "task: closes; call: **goes on**",
        "2 tries, pauses **do not grow**",
    ]


@pytest.mark.slow
def test_a_client_does_what_is_published() -> None:
    """With the faults of mockllm and with the raw server."""
    own, published = measure("openai")["faults"], measured()["openai"]["faults"]
    for fault, both in own.items():
        for side, outcome in both.items():
            assert mark(fault, outcome) == mark(fault, published[fault][side]), (fault, side)
