"""Answers that are composed in the test, in the words of the scenario files."""

from __future__ import annotations

import inspect

import pytest

import mockllm_pytest
from mockllm.scenario.document import TABLES
from mockllm_pytest import parts
from mockllm_pytest.sessions import MockSession


@pytest.mark.parametrize("kind", [name for name in TABLES if name.endswith("_part")])
def test_every_part_has_a_function_with_its_keys(kind: str) -> None:
    """Nothing that a file can say of a part is missing."""
    name = kind.removesuffix("_part")
    given = set(inspect.signature(getattr(mockllm_pytest, name)).parameters)
    keys = set(TABLES[kind]) - {name}
    # These are said by the first argument, or stand under the part's own key.
    keys |= {"frame": set(TABLES["frame"]), "error": set(TABLES["error"])}.get(name, set())
    assert keys <= given


def test_a_reply_has_the_keys_of_a_turn() -> None:
    """A turn can be told but for what belongs to several protocols or to recordings."""
    given = set(inspect.signature(MockSession.reply).parameters)
    assert set(TABLES["turn"]) - given == {"reply", "expect", "when", "fault", "recorded"}


def test_parts_say_only_what_was_given() -> None:
    """A function gives the mapping that a file would have."""
    assert parts.text("Hi", split=3) == {"text": "Hi", "split": 3}
    assert parts.text("Hi", split=0) == {"text": "Hi", "split": 0}
    assert parts.tool("f", {}, id="call_1") == {"tool": "f", "arguments": {}, "id": "call_1"}
    assert parts.frame({"a": 1}, api="chat") == {"frame": {"data": {"a": 1}}, "api": "chat"}
    assert parts.auto() == {"auto": True}
    with pytest.raises(AttributeError, match="no attribute 'texts'"):
        mockllm_pytest.texts  # noqa: B018


def test_an_answer_is_composed_turn_by_turn(run):
    """Each call of `reply` is one turn; later ones may be added while the test goes on."""
    run(
        """
        from client import post, results, said, user
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
            asked = said(first)
            assert [call["id"] for call in asked["tool_calls"]] == ["call_1", "call_2"]
            mockllm_session.reply(text("Done.", split="words"), finish="length")
            last = post(question, *results(asked, "1", "2"))
            assert said(last)["content"] == "Done."
            assert last.json()["choices"][0]["finish_reason"] == "length"
        """
    ).assert_outcomes(passed=1)


def test_errors_are_replies_too(run):
    """HTTP errors, earlier attempts and errors in the stream can be composed."""
    run(
        """
        from client import post, say, user
        from mockllm_pytest import error, text

        def test_http(mockllm_session):
            mockllm_session.reply(http={"status": 503, "error": {"message": "Busy."}})
            answer = post(user("Hello"))
            assert answer.status_code == 503 and "Busy." in answer.text

        def test_attempts(mockllm_session):
            mockllm_session.reply("Hi", attempts=[{"http": 429, "retry_after": "1s"}])
            assert post(user("Hello")).status_code == 429
            assert say("Hello") == "Hi"

        def test_stream(mockllm_session):
            mockllm_session.reply("Hi", error("Broken.", type="server_error"))
            assert "Broken." in post(user("Hello"), stream=True).text

        def test_condition(mockllm_session):
            mockllm_session.reply("Hi", request={"user": "Hello"}, repeat=True)
            assert say("Hello") == "Hi"
        """
    ).assert_outcomes(passed=4)


def test_a_wrong_reply_is_refused_as_a_file_would_be(run):
    """The error names the place; the turns before it stay."""
    run(
        """
        import pytest
        from client import say
        from mockllm import ScenarioError
        from mockllm_pytest import text, tool

        def test_it(mockllm_session):
            mockllm_session.reply("Hi")
            with pytest.raises(ScenarioError, match=r"turns\\[1\\].reply\\[0\\].split"):
                mockllm_session.reply(text("Hi", split="letters"))
            with pytest.raises(ScenarioError, match="a tool name"):
                mockllm_session.reply(tool("not a name"))
            assert say("Hello") == "Hi"
        """
    ).assert_outcomes(passed=1)
