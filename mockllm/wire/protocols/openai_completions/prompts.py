"""Prompts, and the conversation that one may have as its text. Pure.

The API has no roles. Clients that have a conversation write it into the prompt, as LangChain does:

    System: Answer in one word.
    Human: What is the capital of France?
    AI: Paris.
    Human: And of Italy?
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mockllm.core.request import Message, Role

_ROLES: dict[str, Role] = {
    "System": "system",
    "Human": "user",
    "User": "user",
    "AI": "assistant",
    "Assistant": "assistant",
}
_LINE = re.compile(rf"^({'|'.join(_ROLES)}):[^\S\n]*", re.MULTILINE)


def is_tokens(value: object) -> bool:
    """Whether a value is a list of tokens."""
    return isinstance(value, list) and bool(value) and all(type(token) is int for token in value)


def read_prompts(value: object) -> tuple[str, ...]:
    """The texts of `prompt`: a text, a list of tokens, or a list of these. Tokens stand for the
    text of their numbers, and what is neither for no text."""
    if isinstance(value, str):
        return (value,)
    if is_tokens(value):
        return (_of_tokens(value),)
    items = value if isinstance(value, list) else []
    return tuple(
        item if isinstance(item, str) else _of_tokens(item)
        for item in items
        if isinstance(item, str) or is_tokens(item)
    )


def _of_tokens(tokens: object) -> str:
    return " ".join(map(str, tokens)) if isinstance(tokens, list) else ""


def read_conversation(prompts: tuple[str, ...]) -> tuple[Message, ...]:
    """The messages of a request. A single prompt that begins with a role is a conversation; every
    other prompt is a message of the user. Whose turn it is (`AI:` at the end) is no message."""
    if len(prompts) != 1 or not _LINE.match(prompts[0]):
        return tuple(Message("user", prompt) for prompt in prompts)
    _, *pieces = _LINE.split(prompts[0])
    pairs = [
        (_ROLES[name], text.rstrip()) for name, text in zip(pieces[::2], pieces[1::2], strict=True)
    ]
    if pairs[-1] == ("assistant", ""):
        pairs.pop()
    return tuple(Message(role, text) for role, text in pairs)


def written_conversation(messages: Sequence[Message]) -> str:
    """The prompt for a conversation, the inverse of `read_conversation`. A single message of the
    user is the prompt itself, unless it begins like a conversation. Answers have no calls; what
    another API would have as their results is said by the user."""
    match messages:
        case [Message(role="user", text=text)] if not _LINE.match(text):
            return text
    return "\n".join(f"{_NAMES[message.role]}: {message.text}" for message in messages)


_NAMES: dict[Role, str] = {
    "system": "System",
    "user": "Human",
    "assistant": "AI",
    "tool": "Human",
}


def next_prompt(prompt: str, text: str, user: str) -> str:
    """The prompt of the next request of a conversation, from an answer and the next user text."""
    opening = prompt if _LINE.match(prompt) else f"Human: {prompt}"
    return f"{opening}\nAI: {text}\nHuman: {user}"
