"""A request tells which of its messages are the user's, and which results of tools are new."""

from __future__ import annotations

import pytest

from mockllm.core.request import Message, Request, system_text

OLD, NEW, NEXT = (Message("tool", text, call_id=text) for text in ("old", "new", "next"))
HELLO, PICTURE = Message("user", "hello"), Message("user")
MODEL, RULES = Message("assistant", "I see."), Message("system", "Be brief.")


def request(*messages: Message) -> Request:
    return Request("chat", "m", {}, messages=messages)


def test_messages_of_the_user() -> None:
    """They come in order, with their positions; without any the last one is empty."""
    asked = request(RULES, HELLO, MODEL, PICTURE, NEW)
    assert (asked.users, asked.user_positions) == ([HELLO, PICTURE], [1, 3])
    assert (asked.last_user, request(MODEL).last_user) == (PICTURE, Message("user"))
    assert asked.results == [NEW]
    assert system_text([RULES, HELLO, RULES]) == "Be brief.\nBe brief."


@pytest.mark.parametrize(
    ("messages", "results"),
    [
        ((HELLO, OLD, MODEL, NEW, NEXT), (NEW, NEXT)),
        ((HELLO, NEW, PICTURE), (NEW,)),
        ((HELLO, NEW, MODEL), (NEW,)),
        ((OLD, HELLO), ()),
        ((OLD, HELLO, MODEL), ()),
        ((), ()),
    ],
)
def test_results_are_new_until_the_user_writes(
    messages: tuple[Message, ...], results: tuple[Message, ...]
) -> None:
    """A text of the user ends them, a message with nothing but files does not."""
    assert request(*messages).new_results == list(results)
