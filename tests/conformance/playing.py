"""Plays a case to a client: a server of its own for each case, so that no client has to say
which scenario it means."""

from __future__ import annotations

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Outcome
from mockllm.protocols import PROTOCOLS
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread
from tests.conformance.client import Client

__all__ = ["SESSION", "ask"]

SESSION = "conformance"


def ask(client: Client, case: Case) -> Outcome:
    """What a client makes of a case; what it raises is the error that it reports."""
    with ServerThread([case.scenario], ServerOptions(speed=0)) as server:
        base_url = f"{server.url}/s/{SESSION}{PROTOCOLS[case.api].base_path}"
        try:
            outcome = client.run(base_url, case)
        except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
            outcome = Outcome.of(errors=[error])
        session = server.server.sessions.find(SESSION)
        exchanges = list(session.journal) if session is not None else []
    assert [exchange.outcome for exchange in exchanges] == ["played"], (
        f"{client.name} made {len(exchanges)} requests; one was to be played: "
        f"{[(e.outcome, e.problems) for e in exchanges]}; it made of it {outcome}"
    )
    return outcome
