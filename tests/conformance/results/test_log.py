"""The log of the requests of a case: when, on which connection, and who closed it."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.conformance.results import log_line, request_log
from tests.entries import journal_entry


@pytest.mark.parametrize(
    ("fields", "closed_by"),
    [
        ({}, "kept open"),
        ({"client_gone": True}, "client"),
        ({"stopped": True}, "still sending"),
        ({"complete": False}, "server"),
        ({"complete": False, "fault": "cut:after=3 events"}, "server"),
        ({"complete": False, "fault": "cut:after=3 events,end=orderly"}, "kept open"),
        ({"complete": False, "fault": "stall:after=3 events"}, "kept open"),
    ],
)
def test_who_ended_the_connection(fields: dict[str, Any], closed_by: str) -> None:
    """The server, where an answer broke off; not where a fault only delays it or ends in order."""
    (request,) = request_log([journal_entry(path="/v1/x", in_use=False, **fields)])
    assert request.closed_by == closed_by


def test_connections_are_numbered_and_times_begin_with_the_first_request() -> None:
    """A client that tries again on the same connection has one of them."""
    entries = [
        journal_entry(
            path="/v1/x",
            clock=clock,
            connection=port,
            in_use=False,
            bytes_sent=1200,
            outcome="played",
            status=200,
        )
        for clock, port in ((100.0, 5001), (100.5, 5002), (101.25, 5001))
    ]
    log = request_log(entries)
    assert [(one.number, one.connection, one.at) for one in log] == [
        (1, 1, 0.0),
        (2, 2, 0.5),
        (3, 1, 1.25),
    ]
    assert log_line(log[1]).startswith(
        "2. at 0.500 s, connection 2: POST /v1/x -> 200, 1,200 bytes"
    )
    assert request_log([]) == ()
