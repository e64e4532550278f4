"""Latency: the times of an answer are drawn once for each request, and its bytes stay."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from mockllm.core.distributions import Distribution
from mockllm.core.errors import UsageError
from mockllm.core.http import NO_TARGET
from mockllm.core.tokens_and_fragments import tokens
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.fault_plan import read_plan
from mockllm.play.replay.latency.files import read_latency_option
from mockllm.play.replay.latency.schedule import Draw, LatencyPlan, Pace
from mockllm.play.replay.loading import load, loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import dump_tape
from mockllm.scenario.reading.latency import read_latency
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.entries import played_entry
from tests.play.tapes.making import Sent, taped

SCENARIO = """
scenario: words
match: any
DEFAULTS
turns:
  - reply: REPLY
    repeat: true
    TIMING
"""
TEXT = "{text: one two three four, split: words}"


class Client:
    """Sends requests to one player, in one session."""

    def __init__(
        self,
        served: str | None = None,
        *,
        reply: str = TEXT,
        timing: str = "",
        defaults: str = "{usage: none}",
        seed: str = "0",
        session: str = "s",
        **options: Any,
    ) -> None:
        text = SCENARIO.replace("REPLY", reply)
        text = text.replace("TIMING", timing and f"timing: {timing}")
        text = text.replace("DEFAULTS", f"defaults: {defaults}")
        plan = LatencyPlan(None if served is None else read_latency(served), seed)
        self.player = Player(loads(text), latency=plan, strict=False, **options)
        self.session = Session(session)

    def ask(self, api: str = "chat", user: str = "Hello", *, stream: bool = True) -> HttpAnswer:
        """The answer to the next request."""
        protocol = PROTOCOLS[api]
        fields = {**first_body(protocol, "mock-model", user), "stream": stream}
        body = json.dumps(fields).encode()
        call = ApiCall(protocol, NO_TARGET, {}, body, self.session)
        answered = self.player.play(call)
        self.session.record(played_entry(answered.played, body))
        return answered.answer


def beats(answer: HttpAnswer) -> list[int]:
    """The different times of an answer, in milliseconds."""
    return [at // 1000 for at in dict.fromkeys(answer.times)]


def test_times_of_a_stream() -> None:
    """The first beat after `ttft`, then one after each `itl`; the end comes with the last one."""
    answer = Client("ttft=300ms itl=20ms").ask()
    assert beats(answer) == [300, 320, 340, 360]
    assert answer.timed
    assert answer.ends[-1] == len(answer.encoded)


def test_times_of_a_plain_answer() -> None:
    """It comes when the last of its tokens would."""
    answer = Client("ttft=300ms itl=20ms", reply="{text: 8 bytes.}").ask(stream=False)
    assert beats(answer) == [300 + 2 * 20]


@for_all("api", sorted(PROTOCOLS))
def test_the_bytes_stay(api: str) -> None:
    """Only the times are those of latency, over each API."""
    plain, drawn = Client().ask(api), Client("ttft=lognormal(1s, p99=3s) itl=5ms").ask(api)
    assert plain.encoded == drawn.encoded
    assert plain.data == drawn.data
    assert not any(plain.times)
    assert len(drawn.times) == len(drawn.data)
    assert list(drawn.times) == sorted(drawn.times)
    assert drawn.times[0] > 0


def test_the_prompt_takes_time() -> None:
    """For each token of the messages, by the rule that counts them everywhere."""
    client = Client("ttft=100ms prefill=1ms/token")
    for user in ("Hello", "x" * 4000):
        assert beats(client.ask(user=user)) == [100 + tokens(user)]


def test_requests_differ_and_runs_repeat() -> None:
    """Seed, session and number of the request decide, and nothing else does."""
    latency = "ttft=uniform(0, 10s) itl=exponential(1s)"
    client, again = Client(latency), Client(latency)
    first, second = client.ask().times, client.ask().times
    assert first != second
    assert (again.ask().times, again.ask().times) == (first, second)
    assert Client(latency, seed="1").ask().times != first
    assert Client(latency, session="other").ask().times != first


def test_load_makes_tokens_slower() -> None:
    """The factor holds for the answers on their way when the request is played."""
    running = [0, 64, 32]
    client = Client("ttft=100ms itl=20ms load-factor=1.5@64", running=lambda: running.pop(0))
    assert beats(client.ask())[:2] == [100, 120]
    assert beats(client.ask())[:2] == [100, 130]
    assert beats(client.ask())[:2] == [100, 125]


@for_all(
    ("timing", "defaults", "expected"),
    [
        ("", "{usage: none}", [1000, 1100, 1200, 1300]),
        ("", "{latency: ttft=2s}", [2000, 2100, 2200, 2300]),
        ("{latency: itl=1ms}", "{latency: ttft=2s}", [2000, 2001, 2002, 2003]),
        ("{latency: itl=1ms}", "{ttft: 5s, every: 1s}", [1000, 1001, 1002, 1003]),
        ("{ttft: 5s}", "{latency: ttft=2s}", [5000]),
        ("{ttft: 0}", "{usage: none}", [0]),
        ("{at: [10ms, 20ms]}", "{latency: ttft=2s}", [10, 20]),
        ("", "{every: 1s}", [0, 1000, 2000, 3000]),
    ],
)
def test_the_nearest_place_decides(timing: str, defaults: str, expected: list[int]) -> None:
    """The turn, then its scenario, then the server; what latency leaves out comes from the next
    place with latency."""
    client = Client("ttft=1s itl=100ms", timing=timing, defaults=defaults)
    assert beats(client.ask()) == expected


def test_written_pauses() -> None:
    """A reply with pauses keeps its own times; with latency of its turn, the pauses are added."""
    reply = "[{text: one}, {pause: 5s}, {text: two}, {pause: 1s}]"
    assert beats(Client("ttft=1s itl=100ms", reply=reply).ask()) == [0, 5000, 6000]
    own = Client(reply=reply, timing="{latency: ttft=1s itl=100ms}")
    assert beats(own.ask()) == [1000, 6100, 7200]
    assert beats(own.ask(stream=False)) == [1000 + 2 * 100 + 6000]


def test_errors_come_at_once() -> None:
    """A service refuses a request before its model begins."""
    text = "scenario: busy\nmatch: any\nturns:\n  - http: 429\n"
    player = Player(loads(text), latency=LatencyPlan(read_latency("ttft=1s")), strict=False)
    body = json.dumps({**first_body(PROTOCOLS["chat"], "m", "Hello")}).encode()
    answered = player.play(ApiCall(PROTOCOLS["chat"], NO_TARGET, {}, body, Session("s")))
    assert answered.answer.status == 429
    assert not answered.answer.timed


def test_no_speed_no_latency() -> None:
    """With speed 0 nothing is drawn; what a fault says of times stays."""
    answer = Client("ttft=1s", speed=0.0, faults=read_plan(["stall:before=finish,for=1s"])).ask()
    assert set(answer.times) == {0, 1_000_000}


@for_all("place", ["own", "drawn"])
def test_faults_strike_at_drawn_times(place: str) -> None:
    """Those of a turn and those of a plan: the cut is 325 ms after the request, whatever the
    draw, and each request has times of its own."""
    fault = "cut:after=325ms"
    latency = "ttft=300ms itl=uniform(10ms, 40ms)"
    if place == "drawn":
        client = Client(latency, faults=read_plan([fault]))
    else:
        client = Client(timing=f"{{latency: '{latency}'}}\n    fault: {{cut: {{after: 325ms}}}}")
    first, second = client.ask(), client.ask()
    assert first.times != second.times
    for answer in (first, second):
        assert answer.fault is not None
        assert not answer.fault.missed
        assert 300_000 <= max(answer.times) <= 325_000


def test_automatic_replies_have_latency() -> None:
    """The server's, word by word."""
    player = Player((), fallback=True, latency=LatencyPlan(read_latency("ttft=1s itl=10ms")))
    body = json.dumps(
        {**first_body(PROTOCOLS["chat"], "m", "One two three"), "stream": True}
    ).encode()
    answer = player.play(ApiCall(PROTOCOLS["chat"], NO_TARGET, {}, body, Session("s"))).answer
    assert beats(answer)[:3] == [1000, 1010, 1020]


def recorded(folder: Path, times: str, *, stream: bool = True) -> Path:
    """A folder with a scenario whose answer was recorded, at exact times."""
    answer = Client(timing=times).ask(stream=stream)
    body = json.dumps({**first_body(PROTOCOLS["chat"], "mock-model", "Hello"), "stream": stream})
    sent = Sent("POST", "https://api.openai.com/v1/chat/completions", (), body.encode())
    tape = taped("chat", stream, 200, answer.headers, answer.chunks, request=sent)
    (folder / "words.1.jsonl").write_bytes(dump_tape(tape))
    text = SCENARIO.replace("REPLY", TEXT).replace("TIMING", "recorded: words.1.jsonl")
    (folder / "words.yaml").write_text(text.replace("DEFAULTS", "defaults: {usage: none}"))
    return folder


def replayed(folder: Path, served: str, *, stream: bool = True, timing: str = "") -> HttpAnswer:
    file = folder / "words.yaml"
    if timing:
        file.write_text(file.read_text() + f"    timing: {timing}\n")
    client = Client(served)
    client.player = Player(load([file]), latency=LatencyPlan(read_latency(served)), strict=False)
    answer = client.ask(stream=stream)
    assert client.session.journal[-1].played.recorded == "exact"
    return answer


def test_a_recording_keeps_its_times(tmp_path: Path) -> None:
    """Unless its own turn has latency: then each recorded part is a beat."""
    recorded(tmp_path, "{ttft: 70ms, every: 10ms}")
    assert beats(replayed(tmp_path, "ttft=1s itl=1s")) == [70, 80, 90, 100]
    answer = replayed(tmp_path, "ttft=1s", timing="{latency: itl=100ms}")
    assert beats(answer) == [1000 + 100 * number for number in range(len(answer.data))]


def test_a_recording_without_times_has_latency(tmp_path: Path) -> None:
    """As cassettes have none; a plain answer, too."""
    answer = replayed(recorded(tmp_path, "{ttft: 0}"), "ttft=1s itl=100ms")
    assert beats(answer) == [1000 + 100 * number for number in range(len(answer.data))]
    answer = replayed(
        recorded(tmp_path, "{ttft: 0}", stream=False), "ttft=1s itl=100ms", stream=False
    )
    assert beats(answer) == [1000 + 5 * 100]
    assert answer.ends == (len(answer.encoded),)


def test_times_from_recordings(tmp_path: Path) -> None:
    """The time to the first beat, and those between two beats; the wait for the end is none."""
    folder = recorded(tmp_path, "{at: [70ms, 80ms, 80ms, 110ms]}")
    for name in (folder, folder / "words.1.jsonl"):
        latency = read_latency_option(f"from={name}")
        assert latency.ttft == Distribution("samples", (70_000,))
        assert latency.itl == Distribution("samples", (0, 10_000, 30_000))


def test_samples_of_an_option(tmp_path: Path) -> None:
    """A file with one duration a line."""
    (tmp_path / "ttft.txt").write_text("2s\n1s\n")
    latency = read_latency_option(f"ttft=samples({tmp_path / 'ttft.txt'})")
    assert latency.ttft == Distribution("samples", (1_000_000, 2_000_000))


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    """The message names the file."""
    with pytest.raises(UsageError, match=r"ttft: '.*none.txt' cannot be read: No such file"):
        read_latency_option(f"ttft=samples({tmp_path / 'none.txt'})")
    with pytest.raises(UsageError, match=r"'.*none' cannot be read: No such file"):
        read_latency_option(f"from={tmp_path / 'none'}")
    with pytest.raises(UsageError, match="has no recorded stream with times"):
        read_latency_option(f"from={tmp_path}")
    recorded(tmp_path, "{ttft: 0}")
    with pytest.raises(UsageError, match="has no recorded stream with times"):
        read_latency_option(f"from={tmp_path}")
    (tmp_path / "words.1.jsonl").write_text("no tape")
    with pytest.raises(UsageError, match=r"'.*words.1.jsonl' cannot be used"):
        read_latency_option(f"from={tmp_path}")


def test_one_schedule() -> None:
    """What stands before the first beat is due at once; a written pause moves all after it."""
    pace = Pace(read_latency("ttft=1s itl=10ms"), (0, 5_000, 5_000))
    assert pace.due(Draw(), 0) == [0, 1_000_000, 1_015_000, 1_025_000]
    assert Pace(read_latency("ttft=1s"), (0,), tokens=3).due(Draw(), 0) == [0, 1_000_000]


REQUESTS = 10_000


@pytest.mark.slow
def test_ten_thousand_requests_have_the_distribution() -> None:
    """Kolmogorov-Smirnov over the first events of 10,000 requests, and over the pauses of all of
    them, against the definitions of the distributions."""
    client = Client("ttft=lognormal(300ms, p99=2s) itl=normal(20ms, 5ms)")
    first: list[float] = []
    pauses: list[float] = []
    for _ in range(REQUESTS):
        times = list(dict.fromkeys(client.ask().times))
        first.append(times[0])
        pauses += [later - one for one, later in pairwise(times)]
    deviation = math.log(2_000_000 / 300_000) / NormalDist().inv_cdf(0.99)

    def lognormal(x: float) -> float:
        return NormalDist().cdf(math.log(x / 300_000) / deviation)

    # The quantile of Kolmogorov's distribution for a level of 1 %: 1.63 / sqrt(n). The seed is
    # fixed, so the test passes always, or never.
    assert _distance(first, lognormal) < 1.63 / math.sqrt(len(first))
    assert len(pauses) == 3 * REQUESTS
    assert _distance(pauses, NormalDist(20_000, 5_000).cdf) < 1.63 / math.sqrt(len(pauses))


def _distance(values: list[float], function: Callable[[float], float]) -> float:
    """The largest distance between the shares of values and a distribution function."""
    count = len(values)
    return max(
        max(abs(function(x) - n / count), abs(function(x) - (n + 1) / count))
        for n, x in enumerate(sorted(values))
    )
