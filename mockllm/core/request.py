"""The protocol-neutral request, which matching, checking and automatic answers read.

Every protocol's parser returns one. Only data may live here, and what it says by itself: which
messages are the user's, and which results are new. `play/matching/conversation` reads its turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from mockllm.core.record import record

Role = Literal["system", "user", "assistant", "tool"]


@record
class CallEcho:
    """A tool call that the client sends back in the history. `id` is "" if the protocol or the
    client has none; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@record
class SentFile:
    """An image, a recording or another file in a message.

    Args:
        media_type: `image/png`; `image/*` or `*/*` for what the request does not say.
        data: its bytes as base64, as it was sent; "" for one that is only referred to.
        reference: the URL or the id that it is referred to by.
    """

    media_type: str
    data: str = ""
    reference: str = ""


@record
class Message:
    """One message of the history.

    A tool message has `call_id` (or `name`, if the protocol has no ids), the result as `text`, and
    `error` if the protocol can report a failed tool. `ref` is the id of an item that the service
    stores and the client only names (Responses `item_reference`). `files` are those of a user.
    """

    role: Role
    text: str = ""
    calls: tuple[CallEcho, ...] = ()
    call_id: str = ""
    name: str = ""
    error: bool = False
    ref: str = ""
    files: tuple[SentFile, ...] = ()


@record
class OfferedTool:
    """A tool that the client offers.

    Args:
        parameters: its JSON Schema.
        custom: whether its input is free text and no JSON.
        grammar: what the text of a custom tool must satisfy; "" for any text.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    custom: bool = False
    grammar: str = ""


@record
class Parameters:
    """The options of an answer: what a request says beside its history and its tools. None, like
    an empty tuple, leaves it to the service.

    Args:
        stop: texts before which the answer ends.
        min_tokens: how many tokens the answer has at least.
        ignore_eos: whether only `max_tokens` and `stop` end the answer.
        parallel_calls: whether the model may make several calls in one answer.
        cache_marks: how many parts of the request are marked to be cached.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    parallel_calls: bool | None = None
    cache_marks: int = 0
    min_tokens: int | None = None
    ignore_eos: bool | None = None


@record
class Request:
    """One request for an answer.

    Args:
        api: the protocol's name (`chat`, `responses`, ...).
        model: as in the request; it may contain the name of a scenario.
        body: the parsed JSON body, not to be changed.
        stream: whether the answer is to be streamed.
        messages: the history in order, system messages included.
        system: the system prompt.
        tool_choice: `auto`, `none`, `required`, or the name of the tool that must be called.
        previous: the token of the earlier answer of mockllm that this request continues.
        conversation: the service-side conversation that the client names, if any.
        scenario: the scenario in the path, if any (`/agui/<scenario>`).
        output_schema: the JSON Schema that the answer's text must satisfy; {} for any JSON
            object, None for text without a schema.
        wants_reasoning: whether the request enables reasoning.
        traits: further facts from path and query that the answer's bytes depend on, as strings
            that the protocol defines.
        query: the parameters of the query, the last value of each name; for conditions.
    """

    api: str
    model: str
    body: Mapping[str, Any]
    stream: bool = False
    messages: tuple[Message, ...] = ()
    system: str = ""
    tools: tuple[OfferedTool, ...] = ()
    tool_choice: str = "auto"
    previous: str | None = None
    conversation: str | None = None
    scenario: str | None = None
    output_schema: Mapping[str, Any] | None = None
    wants_reasoning: bool = False
    traits: frozenset[str] = frozenset()
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def users(self) -> list[Message]:
        """The messages of the user, in order."""
        return [message for message in self.messages if message.role == "user"]

    @property
    def user_positions(self) -> list[int]:
        """The indices of `users` in the history."""
        return [at for at, message in enumerate(self.messages) if message.role == "user"]

    @property
    def last_user(self) -> Message:
        """The last message of the user; an empty one where there is none."""
        users = (message for message in reversed(self.messages) if message.role == "user")
        return next(users, Message("user"))

    @property
    def results(self) -> list[Message]:
        """The results of tools, in order."""
        return [message for message in self.messages if message.role == "tool"]

    @property
    def new_results(self) -> list[Message]:
        """The last results in a row, unless the user wrote a text after them."""
        results: list[Message] = []
        for message in reversed(self.messages):
            if message.role == "tool":
                results.insert(0, message)
            elif results or (message.role == "user" and message.text):
                break
        return results


def system_text(messages: Sequence[Message]) -> str:
    """The system prompt: the texts of the system messages in a history, as lines."""
    return "\n".join([message.text for message in messages if message.role == "system"])
