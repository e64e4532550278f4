"""Replies that are composed in a test, with the keys of scenario files."""

from __future__ import annotations

import inspect

import pytest

import mockllm_pytest
from mockllm.scenario.reading.tables import TABLES
from mockllm_pytest import parts
from mockllm_pytest.sessions import MockSession
from tests.cases import for_all


@for_all("kind", [name for name in TABLES if name.endswith("_part")])
def test_every_part_has_a_function_with_its_keys(kind: str) -> None:
    """The function of a part accepts every key that the part has in a file."""
    name = kind.removesuffix("_part")
    given = set(inspect.signature(getattr(mockllm_pytest, name)).parameters)
    keys = set(TABLES[kind].readers) - {name}
    # These keys are inside the first argument, or under the key of the part itself.
    keys |= {"frame": set(TABLES["frame"].readers), "error": set(TABLES["error"].readers)}.get(
        name, set()
    )
    # The recorder writes what is long into files.
    assert {key for key in keys if not key.endswith("_file")} <= given


def test_a_reply_has_the_keys_of_a_turn() -> None:
    """`reply` accepts the keys of a turn, except those of recordings, routes and their sockets."""
    given = set(inspect.signature(MockSession.reply).parameters)
    assert TABLES["turn"].readers.keys() - given == {
        "reply",
        "recorded",
        "answer",
        "client",
        "service",
    }


def test_parts_have_only_the_given_keys() -> None:
    """A function returns the mapping that a file would have, without unset keys."""
    assert parts.text("Hi", split=3) == {"text": "Hi", "split": 3}
    assert parts.text("Hi", split=0) == {"text": "Hi", "split": 0}
    assert parts.tool("f", {}, id="call_1") == {"tool": "f", "arguments": {}, "id": "call_1"}
    assert parts.frame({"a": 1}, api="chat") == {"frame": {"data": {"a": 1}}, "api": "chat"}
    assert parts.auto() == {"auto": True}
    assert parts.auto(tokens=200) == {"auto": {"tokens": 200}}
    with pytest.raises(AttributeError, match="no attribute 'texts'"):
        mockllm_pytest.texts  # noqa: B018


def test_a_reply_is_composed_turn_by_turn(run):
    """Each call of `reply` adds one turn, also in the middle of a test."""
    run(
        """
        from client import message, post, results, user
        from mockllm_pytest import parallel, reasoning, text, tool

        def test_it(mockllm_session):
            mockllm_session.reply(
                reasoning("Hm."),
                parallel(
                    tool("f", {"a": 1}, id="call_1"),
                    tool("g", {"b": 2}, id="call_2", split=['{"b"', ":2}"]),
                    order=[1, 0, 1],
                ),
                usage={"input": 3, "output": 4},
            )
            question = user("What?")
            first = post(question)
            assert first.json()["usage"]["completion_tokens"] == 4
            call_message = message(first)
            assert [call["id"] for call in call_message["tool_calls"]] == ["call_1", "call_2"]
            mockllm_session.reply(text("Done.", split="words"), finish="length")
            last = post(question, *results(call_message, "1", "2"))
            assert message(last)["content"] == "Done."
            assert last.json()["choices"][0]["finish_reason"] == "length"
        """
    ).assert_outcomes(passed=1)


def test_replies_may_be_errors(run):
    """HTTP errors, earlier attempts and errors in the stream can be composed."""
    run(
        """
        from client import post, reply_to, user
        from mockllm_pytest import error, text

        def test_http(mockllm_session):
            mockllm_session.reply(http={"status": 503, "error": {"message": "Busy."}})
            answer = post(user("Hello"))
            assert answer.status_code == 503 and "Busy." in answer.text

        def test_attempts(mockllm_session):
            mockllm_session.reply("Hi", attempts=[{"http": 429, "retry_after": "1s"}])
            assert post(user("Hello")).status_code == 429
            assert reply_to("Hello") == "Hi"

        def test_stream(mockllm_session):
            mockllm_session.reply("Hi", error("Broken.", type="server_error"))
            assert "Broken." in post(user("Hello"), stream=True).text

        def test_condition(mockllm_session):
            mockllm_session.reply("Hi", request={"user": "Hello"}, repeat=True)
            assert reply_to("Hello") == "Hi"
        """
    ).assert_outcomes(passed=4)


def test_a_wrong_reply_is_a_scenario_error(run):
    """The error names the location in the turn, and no place in a text that nobody wrote; earlier
    turns are kept."""
    run(
        """
        import pytest
        from client import reply_to
        from mockllm import ScenarioError
        from mockllm_pytest import text, tool

        def test_it(mockllm_session):
            mockllm_session.reply("Hi")
            with pytest.raises(ScenarioError, match=r"^reply\\(\\): reply\\[0\\].split: "):
                mockllm_session.reply(text("Hi", split="letters"))
            with pytest.raises(ScenarioError, match="a tool name"):
                mockllm_session.reply(tool("not a name"))
            assert reply_to("Hello") == "Hi"
        """
    ).assert_outcomes(passed=1)


def test_a_wrong_reply_shows_the_line_of_the_test(run):
    result = run(
        """
        def test_it(mockllm_session):
            mockllm_session.reply("Hi", finish="stopp")
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ['>*mockllm_session.reply("Hi", finish="stopp")', "*reply(): finish: must be one of *"]
    )
    shown = result.stdout.str()
    assert "replies.py" not in shown
    assert "load.py" not in shown


QUESTIONS = """
    import asyncio

    import pytest
    from client import message, post, reply_to, results, user
    from mockllm_pytest import tool

    def test_two_questions(mockllm_session):
        mockllm_session.reply("summary of A")
        mockllm_session.reply("summary of B")
        assert reply_to("Summarise A") == "summary of A"
        assert reply_to("Summarise B") == "summary of B"

    def test_the_same_question_twice(mockllm_session):
        mockllm_session.reply("1")
        mockllm_session.reply("2")
        assert [reply_to("Which?"), reply_to("Which?")] == ["1", "2"]

    def test_a_conversation_between_questions(mockllm_session):
        mockllm_session.reply(tool("add", {"a": 1}))
        mockllm_session.reply(tool("add", {"a": 2}))
        mockllm_session.reply("Two.")
        mockllm_session.reply("One.")
        first, second = message(post(user("First"))), message(post(user("Second")))
        assert [one["tool_calls"][0]["function"]["arguments"] for one in (first, second)] == [
            '{"a":1}', '{"a":2}'
        ]
        last = message(post(user("Second"), *results(second, "2")))
        assert last["content"] == "Two."
        last = message(post(user("First"), *results(first, "1")))
        assert last["content"] == "One."

    def test_an_error_and_then_an_answer(mockllm_session):
        mockllm_session.reply(http=503)
        mockllm_session.reply("Cut", fault={"cut": {"after": "1 event"}})
        mockllm_session.reply("Hi")
        assert post(user("Hello")).status_code == 503
        with pytest.raises(Exception):
            post(user("Hello"), stream=True).text
        assert reply_to("Hello") == "Hi"

    def test_several_times(mockllm_session):
        mockllm_session.reply("Hi", times=2)
        mockllm_session.reply("Bye")
        assert [reply_to(text) for text in "abc"] == ["Hi", "Hi", "Bye"]

    def test_two_conversations(mockllm_session):
        mockllm_session.reply("Rain.", match={"user": "weather"})
        mockllm_session.reply("Sun.")
        mockllm_session.reply("Noon.", match={"user": "time"})
        assert reply_to("weather?") == "Rain."
        assert reply_to("time?") == "Noon."
        assert reply_to("weather again?") == "Sun."

    def test_which_is_next(mockllm_session):
        mockllm_session.reply("Again?", name="ask")
        mockllm_session.reply("Yes.", go_to="ask")
        first = message(post(user("a")))
        second = message(post(user("a"), first, user("b")))
        third = message(post(user("a"), first, user("b"), second, user("c")))
        assert [one["content"] for one in (first, second, third)] == ["Again?", "Yes.", "Again?"]
"""


def test_each_reply_is_given_once_and_in_order(run):
    """Also to requests that begin a new conversation."""
    run(QUESTIONS).assert_outcomes(passed=7)
