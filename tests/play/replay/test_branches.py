"""Branches of a turn (`when` with conditions, `go_to`, `repeat`): which way a conversation goes is
read from its history, by any process, over every API."""

from __future__ import annotations

import pytest

from mockllm.core.request import Message
from mockllm.play.replay.sessions.session import Session
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.play.replay.talking import WITH_TOOLS, Talk

WEATHER = """
scenario: weather
match: {user: weather}
turns:
  - reply: {tool: get_weather, id: call_w, arguments: {city: Oslo}}
  - when:
      - results: {call_w: {contains: rain}}
        reply: {text: Take an umbrella.}
      - user: {regex: "^stop"}
        reply: {text: As you wish.}
        go_to: goodbye
      - results: {0: {error: true}}
        reply: {tool: get_weather, id: call_again, arguments: {city: Bergen}}
        go_to: answer
    reply: {text: Enjoy the sun.}
  - name: answer
    reply: {text: Anything else?}
  - name: goodbye
    reply: {text: Bye.}
"""


def texts(talk: Talk, *says: str) -> list[str]:
    return [talk.says(text).text for text in says]


@for_all("api", WITH_TOOLS)
def test_a_result_decides(api: str) -> None:
    """The first branch whose conditions hold answers; where none holds, the turn itself does."""
    for result, answer, form in (
        ("much rain", "Take an umbrella.", 1),
        ("sunny", "Enjoy the sun.", 0),
    ):
        talk = Talk(WEATHER, api)
        talk.says("the weather, please")
        assert talk.returns(result).text == answer
        facts = talk.facts
        assert (facts["turn"], facts["position"], facts["form"]) == (1, 1, form)
        assert texts(talk, "fine", "no") == ["Anything else?", "Bye."]


@for_all("api", WITH_TOOLS)
def test_a_branch_jumps(api: str) -> None:
    """`go_to` names the turn that comes next, and the conversation goes on from there."""
    talk = Talk(WEATHER, api)
    talk.says("the weather, please")
    call = talk.messages[-1].calls[0]
    talk.messages.append(Message("tool", "sunny", call_id=call.id, name=call.name))
    assert texts(talk, "stop it", "well") == ["As you wish.", "Bye."]
    assert talk.facts["turn"] == 3
    talk.messages.append(Message("user", "more?"))
    assert "past its end" in str(talk.ask().played.problems)


@for_all("api", WITH_TOOLS)
def test_a_branch_may_call_again(api: str) -> None:
    """The calls of the branch that was taken are those which the history must have."""
    talk = Talk(WEATHER, api)
    talk.says("the weather, please")
    assert [call.arguments for call in talk.returns("an error").tool_calls] == ['{"city":"Bergen"}']
    assert talk.returns("fine").text == "Anything else?"


LOOP = """
scenario: quiz
match: {user: quiz}
turns:
  - name: ask
    reply: {text: What is two and two?}
  - when:
      - {user: "4", reply: {text: Right.}, go_to: end}
    reply: {text: No. Try again.}
    go_to: check
  - name: check
    when:
      - {user: "4", reply: {text: At last.}, go_to: end}
    reply: {text: "Still no."}
    go_to: check
  - name: end
    reply: {text: The end.}
    repeat: true
"""


@for_all("api", list(PROTOCOLS))
def test_a_conversation_loops(api: str) -> None:
    """A turn may go to itself or to an earlier one, as long as no branch leaves the loop."""
    if api == "completions":
        pytest.skip("a prompt has no history")
    talk = Talk(LOOP, api)
    answers = texts(talk, "a quiz", "5", "3", "6", "it is 4", "ok", "bye")
    assert answers == [
        *("What is two and two?", "No. Try again.", "Still no.", "Still no.", "At last."),
        *("The end.", "The end."),
    ]


REPEATED = """
scenario: steps
match: {user: go}
turns:
  - {reply: {text: one}, times: 2}
  - reply: {text: two}
  - {reply: {text: three}, times: 2}
then: restart
"""


def test_a_turn_repeats_so_many_times() -> None:
    """`times: N` answers N times in a row, at any place; `then: restart` begins anew after it."""
    talk = Talk(REPEATED, "chat")
    assert texts(talk, "go", *"abcdef") == ["one", "one", "two", "three", "three", "one", "one"]


@pytest.mark.parametrize("branch", ["", ", when: {user: never, reply: {text: no}}"])
def test_a_turn_may_answer_so_many_times_and_go_on(branch: str) -> None:
    """`times` says how many requests must come, `repeat` that more may, with and without
    branches."""
    turn = f"{{reply: {{text: again}}, times: 2, repeat: true{branch}}}"
    turns = f"turns:\n  - reply: {{text: one}}\n  - {turn}\n"
    talk = Talk(f"scenario: a\nmatch: {{user: a}}\n{turns}", "chat")
    assert texts(talk, *"abcde") == ["one", *["again"] * 4]


VARIED_REPEAT = """
scenario: steps
match: {user: go}
turns:
  - reply: {text: one}
    times: 3
    when: {user: skip, reply: {text: skipped}, go_to: last}
  - reply: {text: two}
  - {name: last, reply: {text: last}}
"""


def test_a_repeated_turn_may_branch() -> None:
    """A jump leaves the repetition only where it is over."""
    assert texts(Talk(VARIED_REPEAT, "chat"), "go", *"abc") == ["one", "one", "one", "two"]
    jumped = texts(Talk(VARIED_REPEAT, "chat"), "go", "a", "skip", "x")
    assert jumped == ["one", "one", "skipped", "last"]


def test_an_answer_is_continued_by_its_id() -> None:
    """The id says which branch answered, so that what follows needs no history."""
    for user, after in (("stop", "Bye."), ("go on", "Anything else?")):
        talk = Talk(WEATHER, "responses", session=Session("s"))
        for input in ("weather", user, "well"):
            talk.messages = [Message("user", input)]
            if input == user:
                talk.messages.insert(0, Message("tool", "sunny", call_id="call_w"))
            answered = talk.ask()
            talk.fields = {"previous_response_id": answered.answer.id}
        assert after.encode() in b"".join(answered.answer.data)


CONDITIONS = """
scenario: conditions
turns:
  - when:
      - {offers: [search], reply: {text: You offer search.}}
      - {body: {temperature: 0}, reply: {text: You are cold.}}
      - {api: chat, user: hello, reply: {text: Hello over chat.}}
      - {api: chat, reply: {text: Over chat.}}
      - {user: hello, http: 503}
    reply: {text: By default.}
"""


def test_entries_combine_api_and_conditions() -> None:
    """Entries are tried in their order; each may have an API, conditions, or both."""
    chat = Talk(CONDITIONS, "chat", model="mock/conditions")
    assert chat.says("hello").text == "Hello over chat."
    chat = Talk(CONDITIONS, "chat", model="mock/conditions")
    assert chat.says("else").text == "Over chat."
    chat.messages.pop()
    chat.fields = {"temperature": 0}
    assert chat.turn().text == "You are cold."
    other = Talk(CONDITIONS, "anthropic", model="mock/conditions")
    assert other.says("else").text == "By default."
    other = Talk(CONDITIONS, "anthropic", model="mock/conditions")
    other.messages.append(Message("user", "hello"))
    assert other.ask().answer.status == 503


def test_the_request_of_a_turn_holds_for_its_branches() -> None:
    """A branch has the `request` of its turn, unless it has one of its own."""
    talk = Talk(
        "scenario: a\nturns:\n  - request: {user: please}\n    reply: {text: fine}\n"
        "    when: [{body: {temperature: 1}, reply: {text: warm}}]\n",
        "chat",
        model="mock/a",
    )
    talk.fields = {"temperature": 1}
    talk.messages.append(Message("user", "now"))
    assert talk.ask().answer.status == 400
    assert (talk.facts["turn"], talk.facts["form"]) == (0, 1)
    assert talk.says("please").text == "warm"
