"""Plays a case to a client.

Each case has its own server, so that clients need not name the scenario.
"""

from __future__ import annotations

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Outcome
from mockllm.protocols import PROTOCOLS
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread
from tests.conformance.client import Client

__all__ = ["SESSION", "play"]

SESSION = "conformance"


def play(client: Client, case: Case) -> Outcome:
    """The outcome of a client for a case; an exception of the client is an error in it."""
    with ServerThread([case.scenario], ServerOptions(speed=0)) as server:
        base_url = f"{server.url}/s/{SESSION}{PROTOCOLS[case.api].base_path}"
        try:
            outcome = client.run(base_url, case)
        except Exception as error:  # noqa: BLE001 - any exception of a client is its outcome
            outcome = Outcome.of(errors=[error])
        session = server.server.sessions.find(SESSION)
        exchanges = list(session.journal) if session is not None else []
    assert [exchange.outcome for exchange in exchanges] == ["played"], (
        f"{client.name} sent {len(exchanges)} requests instead of one that is played: "
        f"{[(e.outcome, e.problems) for e in exchanges]}; outcome: {outcome}"
    )
    return outcome
