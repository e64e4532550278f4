"""Faults in front of a real service: the client gets a broken answer, the recording is whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.play.faults.live import LiveFault, is_live
from mockllm.play.faults.strikes import Strike
from mockllm.play.replay.broken_answer import circumstances
from mockllm.play.replay.client_requests import first_request
from mockllm.play.replay.fault_plan import read_plan
from mockllm.play.replay.loading import load
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.reading.faults import parse_faults
from mockllm.serve.server.options import RecordOptions, ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols import PROTOCOLS
from tests.play.faults.playing import SCENARIO, ask, journal, served
from tests.play.faults.test_laws import APIS, answer, broken
from tests.scenario.strategies import all_faults, places


@given(st.sampled_from(APIS), all_faults(places), st.data())
def test_a_live_fault_does_what_a_static_one_does(
    api: str, fault: Fault, data: st.DataObject
) -> None:
    """However the bytes of the stream arrive."""
    if not is_live((fault,)) or (fault.place is not None and fault.place.kind == "time"):
        return
    body, static = answer(api).body, broken(api, fault)
    request = first_request(PROTOCOLS[api], SCENARIO, "Hello", "mock-model")
    live = LiveFault(fault, circumstances(PROTOCOLS[api], request, "/path"))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    steps: list[Any] = []
    for begin, stop in zip([0, *cuts], [*cuts, len(body)], strict=True):
        if not live.over:
            steps += live.feed(body[begin:stop])
    steps += live.close()
    sent = b"".join(step if isinstance(step, bytes) else step.data for step in steps)
    assert sent == static.body
    strikes = [step for step in steps if isinstance(step, Strike)]
    endings = [strike.ending for strike in strikes if strike.ending is not None]
    ending = static.ending
    assert endings == ([ending] if fault.name in ("cut", "error") or ending == "open" else []) or (
        static.missed and not endings
    )
    if fault.name != "drip":
        assert bool(live.missed) == bool(static.missed)
        assert bool(strikes) != bool(static.missed)
        assert any(strike.pause for strike in strikes) == (
            fault.name == "stall" and not static.missed and isinstance(fault.get("for"), int)
        )


@contextmanager
def recording(folder: Path, upstream: ServerThread, *faults: str) -> Iterator[ServerThread]:
    """A recording server in front of another one."""
    record = RecordOptions(folder, dict.fromkeys(PROTOCOLS, upstream.url), "add")
    options = ServerOptions(record=record, faults=read_plan(faults) if faults else read_plan(()))
    with ServerThread((), options) as thread:
        yield thread


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "ended"),
    [
        ("cut:after=3 events", "closed"),
        ("cut:inside=call_1 arguments,end=reset", "reset"),
        ("cut:after=200 bytes,end=chunk", "closed"),
        ("error:after=2 events", "complete"),
        ("stall:after=2 events,for=20ms", "complete"),
        ("duplicate:event=2", "complete"),
        ("garble:what=html", "complete"),
        ("status:status=503", "complete"),
        ("refuse", "closed"),
    ],
)
@pytest.mark.parametrize("header", [True, False], ids=["header", "plan"])
def test_what_is_recorded_is_whole(tmp_path: Path, fault: str, ended: str, header: bool) -> None:
    """The client gets what it gets in replay, the folder the answer of the service."""
    with served() as upstream:
        plain = ask(upstream, "chat")
        expected = ask(upstream, "chat", fault)
        plan = () if header else (fault,)
        with recording(tmp_path, upstream, *plan) as recorder:
            got = ask(recorder, "chat", fault if header else "")
            assert (got.ended, got.body) == (ended, expected.body)
            assert got.status == expected.status
            (entry,) = journal(recorder)
            assert entry.fault
            assert entry.sent.struck is not None
    (scenario,) = load(tmp_path)
    assert scenario.turns[0].reply
    with ServerThread([scenario]) as replay:
        assert ask(replay, "chat").body == plain.body


@pytest.mark.parametrize(("every", "status"), [("1us", 503), ("1440m", 200)])
def test_bursts(tmp_path: Path, every: str, status: int) -> None:
    """They are those of the recording server."""
    plan = read_plan(["status:status=503"], burst=f"rate=100% every={every} for=1440m")
    with served() as upstream:
        record = RecordOptions(tmp_path, dict.fromkeys(PROTOCOLS, upstream.url), "add")
        with ServerThread((), ServerOptions(record=record, faults=plan)) as recorder:
            assert ask(recorder, "chat").status == status


def test_a_wrong_header_reaches_no_service(tmp_path: Path) -> None:
    """It is refused."""
    with served() as upstream:
        with recording(tmp_path, upstream) as recorder:
            answered = ask(recorder, "chat", "cutt")
            assert (answered.status, b"did you mean 'cut'" in answered.body) == (400, True)
        assert not journal(upstream)


def test_faults_that_can_strike_while_an_answer_arrives() -> None:
    """The others need the whole answer."""
    assert is_live(parse_faults("cut:after=3 events"))
    assert is_live(parse_faults("stall:after=1s"))
    assert not is_live(parse_faults("stall"))
    assert not is_live(parse_faults("duplicate:event=2"))
    assert not is_live(parse_faults("cut:after=3 events; refuse"))
