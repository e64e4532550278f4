"""When timed answers were due, and when they were written: as figures, and in the journal."""

from dataclasses import replace

import httpx
import pytest

from mockllm import loads
from mockllm.core.http import TimedBytes
from mockllm.core.request import Message
from mockllm.core.turn import TokenUsage
from mockllm.play.replay.compilation.http_answer import Generated, HttpAnswer
from mockllm.play.replay.compilation.tape_player import Recordings
from mockllm.play.replay.sessions.exchange import Sent, Times
from mockllm.scenario.model import Recorded
from mockllm.serve.server.metrics.figures import Figures, content_writes, times_of
from mockllm.wire.protocols import PROTOCOLS
from tests.entries import journal_entry
from tests.play.replay.talking import Talk
from tests.play.tapes.making import taped
from tests.serve.server.test_metrics import figures, send

TEXT = "one two three four five"
PACED = f"""
scenario: paced
match: {{user: paced}}
turns:
  - reply: {{text: {TEXT}, split: words}}
    timing: {{ttft: 30ms, every: 2ms}}
    repeat: true
"""
OTHERS = f"""
---
scenario: instant
match: {{user: instant}}
turns:
  - reply: {{text: {TEXT}, split: words}}
    repeat: true
---
scenario: cut
match: {{user: cut}}
turns:
  - reply: {{text: {TEXT}, split: words}}
    timing: {{ttft: 1ms, every: 1ms}}
    fault: {{cut: {{after: 2 events}}}}
    repeat: true
"""


DRAWN = PACED.replace("ttft: 30ms, every: 2ms", "latency: ttft=30ms itl=2ms")


def asked(api: str, scenarios: str = PACED) -> HttpAnswer:
    """The paced answer of an API."""
    talk = Talk(scenarios, api)
    talk.messages.append(Message("user", "paced"))
    return talk.ask().answer


def marked(*writes: tuple[int, float], **fields: object) -> Sent:
    """What was sent with these writes: the bytes so far, and when."""
    sent = Sent(ended=writes[-1][1])
    sent.note_marks()
    before = 0
    for size, at in writes:
        sent.wrote(size - before, at)
        before = size
    for name, value in fields.items():
        setattr(sent, name, value)
    return sent


@pytest.mark.parametrize("api", PROTOCOLS)
def test_the_plan_is_what_the_scenario_says(api: str) -> None:
    """Over every API the first event with content is due after `ttft`, whatever stands before it,
    and `itl` is `every`."""
    answer = asked(api)
    planned, _ = times_of(answer, [0.0], 1.0)
    assert planned == (pytest.approx(0.038), pytest.approx(0.03), pytest.approx(0.002))
    drawn, _ = times_of(asked(api, DRAWN), [0.0], 1.0)
    assert drawn == planned
    halved, _ = times_of(answer, [0.0], 2.0)
    assert halved.ttft == pytest.approx(0.015)


@pytest.mark.parametrize("api", PROTOCOLS)
def test_writes_count_from_the_first_content(api: str) -> None:
    """What stands before the first word is written earlier, and is no content; a write that has the
    first word among others is the first."""
    answer = asked(api)
    made = answer.generated
    assert made is not None
    before = sum(map(len, answer.data[: made.first]))
    through = before + len(answer.data[made.first])
    assert b"one" not in b"".join(answer.data[: made.first])
    early = [(before, 0.001)] if before else []
    sent = marked(*early, (through, 0.031), (answer.size, 0.05))
    assert list(content_writes(answer, sent)) == [0.031, 0.05]
    assert list(content_writes(answer, marked((answer.size, 0.2)))) == [0.2]


@pytest.mark.parametrize("fields", [{"client_gone": True}, {"ended": None}, {"complete": False}])
def test_only_whole_answers_count(fields: dict[str, object]) -> None:
    """An answer that was not sent whole has no times: they would be those of another answer."""
    answer = asked("chat")
    assert content_writes(answer, marked((answer.size, 0.2), **fields)) == ()


def test_the_figures_are_those_of_the_exchange() -> None:
    """Planned and delivered times are counted once each, and stand in the exchange."""
    answer, counted = asked("chat"), Figures()
    exchange = journal_entry("POST", "/", api="chat")
    exchange.sent = marked((answer.size, 0.2))
    counted.note_sent(exchange, answer, 1.0)
    assert exchange.sent.times == (
        (pytest.approx(0.038), pytest.approx(0.03), pytest.approx(0.002)),
        Times(0.2, 0.2, 0.0),
    )
    totals = {figure: (own.count, own.total) for figure, own in counted.times.items()}
    assert totals == {
        ("planned", "ttft"): (1, pytest.approx(0.03)),
        ("planned", "itl"): (1, pytest.approx(0.002)),
        ("planned", "duration"): (1, pytest.approx(0.038)),
        ("delivered", "ttft"): (1, 0.2),
        ("delivered", "itl"): (1, 0.0),
        ("delivered", "duration"): (1, 0.2),
    }
    assert Figures.from_json(counted.as_json()) == counted


def test_a_recording_has_its_own_times() -> None:
    """The plan of a recorded stream is when its first content came, and when its last."""
    made = asked("anthropic")
    chunks = tuple(TimedBytes(at + 7, data) for at, data in zip(made.times, made.data, strict=True))
    tape = taped("anthropic", True, 200, (("content-type", "text/event-stream"),), chunks)
    recordings, (scenario,) = Recordings(), loads(PACED)
    turn = replace(scenario.turns[0], recorded=Recorded("x.jsonl"), timing=None)
    scenario = replace(scenario, turns=(turn,))
    recordings.know(scenario, 0, tape)
    played = recordings.play(scenario, 0, PROTOCOLS["anthropic"], stream=True).answer
    assert played is not None
    planned, _ = times_of(played, [0.0], 1.0)
    assert planned == (pytest.approx(0.038007), pytest.approx(0.030007), pytest.approx(0.002))


def test_an_answer_with_one_event_has_no_itl() -> None:
    """There is no time between the events of a stream that has only one."""
    made = Generated(TokenUsage(1, 1), beats=1, first=0, finish="stop")
    answer = HttpAnswer(200, (), (b"a",), (5000,), True, b"", timed=True, generated=made)
    assert times_of(answer, [0.006], 1.0) == (Times(0.005, 0.005), Times(0.006, 0.006))


def test_a_server_counts_its_timed_answers(serve) -> None:
    """Of a stream all three times are counted, of a plain answer its duration; instant answers and
    those with a fault are left out. Nothing is written before it is due."""
    served = serve(PACED + OTHERS)
    send(served, "paced", stream=True)
    send(served, "paced")
    send(served, "instant", stream=True)
    with pytest.raises(httpx.RemoteProtocolError):
        send(served, "cut", stream=True)
    _, found = figures(served)
    for when in ("planned", "delivered"):
        counts = [found[f"mockllm_{when}_{time}_seconds_count",] for time in ("ttft", "itl")]
        assert (*counts, found[f"mockllm_{when}_duration_seconds_count",]) == (1, 1, 2)
    planned, delivered = (found[f"mockllm_{w}_ttft_seconds_sum",] for w in ("planned", "delivered"))
    assert planned == pytest.approx(0.03)
    assert delivered >= planned
    entries = served.http.get("/_mockllm/journal").json()["exchanges"]
    assert [entry["times"] is None for entry in entries] == [False, False, True, True]
    assert entries[0]["times"]["planned"] == {"duration": 0.038, "ttft": 0.03, "itl": 0.002}
    assert entries[1]["times"]["planned"] == {"duration": 0.038, "ttft": None, "itl": None}
