"""`one_of`: which reply is drawn, and that the journal and the history know it."""

from __future__ import annotations

from collections import Counter

from mockllm.core.request import Message
from mockllm.play.replay.sessions.session import Session
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.play.replay.talking import WITH_TOOLS, Talk

COIN = """
scenario: coin
match: {user: toss}
turns:
  - one_of:
      - {weight: 3, reply: {text: Heads.}}
      - {text: Tails.}
    repeat: true
"""


def tosses(count: int, said: str = "toss", seed: str = "") -> list[str]:
    talk = Talk(COIN + seed, "chat")
    answers = []
    for _ in range(count):
        talk.messages = [Message("user", said)]
        answers.append(talk.turn().text)
    return answers


def test_each_run_draws_the_same() -> None:
    """A session that sends the same requests gets the same answers in the same order; other texts
    and other seeds give others."""
    first = tosses(40)
    assert first == tosses(40)
    assert first != tosses(40, "toss it")
    assert first != tosses(40, seed="seed: other\n")


def test_weights() -> None:
    """A reply with three times the weight is drawn three times as often."""
    counts = Counter(tosses(2_000))
    # Four standard deviations of a binomial distribution with p = 3/4.
    assert abs(counts["Heads."] - 1_500) < 4 * 19.4
    assert sum(counts.values()) == 2_000


MIXED = """
scenario: mixed
match: {user: go}
turns:
  - one_of:
      - {text: Nothing to do.}
      - {tool: f, id: call_f, arguments: {x: 1}}
      - [{text: Working.}, {tool: g, arguments: {x: 2}}]
  - when: {results: {0: {contains: ok}}, reply: {text: Done.}}
    reply: {text: Well.}
"""


@for_all("api", WITH_TOOLS)
def test_the_history_tells_which(api: str) -> None:
    """The conversation goes on after whichever reply was drawn; the journal has its number."""
    forms = set()
    for number in range(30):
        talk = Talk(MIXED, api, session=Session(f"s{number}"))
        turn = talk.says(f"go {number}")
        form = talk.facts["form"]
        forms.add(form)
        assert (form == 1) is not bool(turn.tool_calls)
        if turn.tool_calls:
            assert talk.returns("ok").text == "Done."
        else:
            assert talk.says("and now?").text == "Well."
        assert talk.facts["position"] == 1
    assert forms == {1, 2, 3}


@for_all("api", list(PROTOCOLS))
def test_every_api_draws(api: str) -> None:
    """Each API gets one of the replies, and all of them in time."""
    seen = set()
    talk = Talk(COIN, api)
    for _ in range(30):
        talk.messages = [Message("user", "toss")]
        seen.add(talk.turn().text)
    assert seen == {"Heads.", "Tails."}


def test_errors_and_tries() -> None:
    """A drawn reply may be an error; earlier tries of the turn come before the draw."""
    yaml = """
scenario: flaky
turns:
  - attempts: [{http: 429}]
    one_of:
      - {http: 503}
      - {reply: {text: Fine.}, headers: {x-drawn: "2"}, finish: length}
    repeat: true
"""
    talk = Talk(yaml, "chat", model="mock/flaky")
    statuses = []
    for number in range(20):
        for _ in range(2):
            answered = talk.ask_with(f"try {number}")
            statuses.append(answered.answer.status)
    assert statuses[::2] == [429] * 20
    assert set(statuses[1::2]) == {503, 200}


def test_a_stored_answer_is_the_drawn_one() -> None:
    """A look-up by id gives the reply that was drawn for it."""
    from mockllm.core.http import Target
    from mockllm.play.replay.call import ApiCall
    from mockllm.play.replay.player import Player

    talk = Talk(COIN, "responses")
    for number in range(10):
        answered = talk.ask_with(f"toss {number}")
        target = Target({"response_id": answered.answer.id or ""})
        call = ApiCall(talk.protocol, target, {}, b"", talk.session)
        found = b"".join(Player(talk.scenarios).look_up(call, "response").answer.data)
        drawn = b"Heads." in b"".join(answered.answer.data)
        assert (b"Heads." in found) is drawn
