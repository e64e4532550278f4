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
    """`reply` accepts the keys of a turn, except those for several protocols or recordings."""
    given = set(inspect.signature(MockSession.reply).parameters)
    others = {"reply", "expect", "when", "fault", "recorded", "answer"}
    others |= {"name", "go_to", "one_of", "choices", "job"}
    assert TABLES["turn"].readers.keys() - given == others


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
    """The error names the location in the turn, and earlier turns are kept."""
    run(
        """
        import pytest
        from client import reply_to
        from mockllm import ScenarioError
        from mockllm_pytest import text, tool

        def test_it(mockllm_session):
            mockllm_session.reply("Hi")
            with pytest.raises(ScenarioError, match=r"turns\\[1\\].reply\\[0\\].split"):
                mockllm_session.reply(text("Hi", split="letters"))
            with pytest.raises(ScenarioError, match="a tool name"):
                mockllm_session.reply(tool("not a name"))
            assert reply_to("Hello") == "Hi"
        """
    ).assert_outcomes(passed=1)
