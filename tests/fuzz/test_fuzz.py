"""No request, whatever its bytes, breaks the server: each gets an answer in the form of an API, and
everything that shows what was received can be read afterwards.

`python -m tests.fuzz --count 14000 --seed 1` sends more.
"""

import json
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from mockllm.play.replay.player import Player
from mockllm.serve.server.control.control_routes import Control
from mockllm.wire.protocols import PROTOCOLS
from tests.fuzz.hostile import hostile_requests
from tests.fuzz.playing import play
from tests.fuzz.valid import control_routes, requests
from tests.sixth_protocol.echo.protocol import PROTOCOL


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12])
def test_no_request_breaks_the_server(seed: int) -> None:
    """No 5xx, no traceback, no plain text, no connection without an answer."""
    figures = play(600, seed)
    assert figures.problems == {}
    assert figures.requests == 600
    assert {200, 400, 404} <= figures.statuses.keys()


@pytest.mark.slow
def test_no_request_of_a_sixth_protocol_breaks_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a protocol that the server has never heard of."""
    monkeypatch.setitem(PROTOCOLS, PROTOCOL.name, PROTOCOL)
    figures = play(180, 13, apis=[PROTOCOL.name])
    assert figures.problems == {}
    assert {200, 400, 404} <= figures.statuses.keys()


@pytest.mark.slow
def test_no_request_breaks_servers_that_share_their_state(tmp_path: Path) -> None:
    """The same for several servers with one store."""
    figures = play(210, 14, state=f"sqlite:{tmp_path / 'state.db'}")
    assert figures.problems == {}
    assert {200, 400, 404} <= figures.statuses.keys()


def test_what_breaks_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that fails is found by the same rules."""

    def fail(*_: object) -> None:
        raise KeyError("broken")

    monkeypatch.setattr(Control, "_list", fail)
    monkeypatch.setattr(Player, "play", fail)
    figures = play(12, 1)
    assert {"5xx", "failed", "not readable"} <= figures.problems.keys()
    assert figures.statuses[500] > 0


def test_the_same_seed_makes_the_same_requests() -> None:
    """A problem that was found is found again."""
    first, again, other = (
        [one.data for one in islice(hostile_requests(Random(seed), requests()), 50)]
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_the_valid_requests_reach_every_route() -> None:
    """What the hostile requests are made from is JSON that can be sent, for all routes."""
    valid = [*requests(), *control_routes("s")]
    assert all(json.dumps(one.body) for one in valid)
    assert len({(one.method, one.target) for one in valid}) > 100
