"""The protocol-neutral request, which matching, checking and automatic answers read.

Every protocol's parser returns one. Only data may live here, and what it says by itself: which
messages are the user's, which results are new, and which texts are those of the client's machine.
`play/matching/conversation` reads its turns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, Literal

from mockllm.core.record import record

Role = Literal["system", "user", "assistant", "tool"]


@record
class CallEcho:
    """A tool call that the client sends back in the history. `id` is "" if the protocol or the
    client has none; `arguments` is JSON text. `replaced`: the client put another call in its place,
    so that its arguments are not those of the model."""

    id: str
    name: str
    arguments: str
    replaced: bool = False


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


# The machine that a client runs on, as far as its requests tell: its folders, its user. A recording
# has placeholders for these values (`<cwd>`), and a replay those of its own machine. A text that
# reads like a placeholder without being one gets a mark (`<!cwd>`).

FILLED = ("cwd", "home", "tmp", "hostname", "user")
"""The values that an answer may have, too."""

WORLD = (*FILLED, "git")
"""The names of all values."""

IN_FOLDER_NAME = "cwd-name"
"""The working directory in the name of a folder: Claude Code keeps what it remembers of
`/work/shop` in `-work-shop`."""

_NAMES = "|".join((*WORLD, IN_FOLDER_NAME))
_PLACEHOLDER = re.compile(rf"<(!*)({_NAMES})>")
PLACEHOLDER_BYTES = re.compile(_PLACEHOLDER.pattern.encode())
_SHORTEST = 3
"""Characters of a value that is looked for: `/` is in all texts."""

# A path ends where no name goes on, and begins where none ended; `\n` may be written as an escape.
_BEFORE = r"(?:(?<![\w.~-])|(?<=\\[nrt]))"
_AFTER = r"(?![\w-]|\.\w)"
_LINE_BEFORE, _LINE_AFTER = r"(?:\A|(?<=\n)|(?<=\\n))", r'(?=\n|\\n|\\?"|\Z)'


@record
class World:
    """The values of a machine, by their names, and what else differs from run to run.

    Args:
        values: none where the request has placeholders already.
        differs: expressions with one group for what is not compared wherever it stands.
        is_recorded: whether the request has placeholders, and so gets none filled in.
    """

    values: tuple[tuple[str, str], ...] = ()
    differs: tuple[re.Pattern[str], ...] = ()
    is_recorded: bool = False

    @property
    def known(self) -> Mapping[str, str]:
        """The values that placeholders stand for."""
        known = dict(self.values)
        if "cwd" in known:
            known[IN_FOLDER_NAME] = in_folder_name(known["cwd"])
        return known

    def expression(self, names: Collection[str] = WORLD) -> str:
        """A regular expression without groups for what `hide` replaces; "" for nothing."""
        return _expression(self.values, frozenset(names))

    def placeholder(self, text: str) -> str:
        """The placeholder for what `expression` found; any other text as it is."""
        if _PLACEHOLDER.fullmatch(text):
            return f"<!{text[1:]}"
        return next((f"<{name}>" for name, value in self.known.items() if value == text), text)

    def hide(self, text: str, names: Collection[str] = WORLD) -> str:
        """A text with placeholders for values; the longest of them first."""
        expression = self.expression(names)
        if not expression:
            return text
        return re.sub(expression, lambda found: self.placeholder(found[0]), text)

    def normal(self, text: str, names: Collection[str] = WORLD) -> str:
        """A text with placeholders for values and for what differs from run to run."""
        text = self.hide(text, names)
        for pattern in self.differs:
            text = pattern.sub(_mark_ignored, text)
        return text

    def normal_value(self, value: Any, names: Collection[str] = WORLD) -> Any:
        """A JSON value whose texts are as `normal` gives them."""
        if isinstance(value, str):
            return self.normal(value, names)
        if isinstance(value, list | tuple):
            return [self.normal_value(item, names) for item in value]
        if isinstance(value, Mapping):
            return {
                self.hide(key, names): self.normal_value(item, names) for key, item in value.items()
            }
        return value

    def fill(self, text: str) -> str:
        """A text with values in place of placeholders: the inverse of `hide`. A placeholder without
        a value stays."""
        known = self.known

        def value(found: re.Match[str]) -> str:
            marks, name = found.groups()
            return f"<{marks[1:]}{name}>" if marks else known.get(name, found[0])

        return _PLACEHOLDER.sub(value, text) if "<" in text else text

    def fill_value(self, value: Any) -> Any:
        """A JSON value whose texts are filled."""
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_value(item) for item in value]
        if isinstance(value, Mapping):
            return {key: self.fill_value(item) for key, item in value.items()}
        return value

    def lacking(self, text: str) -> str:
        """The first name of which a text has a placeholder and the world no value; "" for none."""
        known = self.known
        found = (name for marks, name in _PLACEHOLDER.findall(text) if not marks)
        return next((name for name in found if name not in known), "")


NO_WORLD = World()


class Words(str):
    """A text of a client that says where it runs, which is compared without that.

    Args:
        world: the client's.
    """

    world: World

    @classmethod
    def of(cls, text: str, world: World) -> Words:
        """The text of a client with this world."""
        words = cls(text)
        words.world = world
        return words


def in_folder_name(path: str) -> str:
    """A path as a part of the name of a folder, as Claude Code writes it."""
    return re.sub(r"[^A-Za-z0-9]", "-", path)


def has_placeholder(text: str) -> bool:
    """Whether a text has a placeholder, or what is marked as none."""
    return "<" in text and _PLACEHOLDER.search(text) is not None


@lru_cache(maxsize=256)
def _expression(values: tuple[tuple[str, str], ...], names: frozenset[str]) -> str:
    ways = []
    for name, value in sorted(values, key=lambda pair: -len(pair[1])):
        if name in names and len(value) >= _SHORTEST:
            ways.append(_way(name, re.escape(value)))
            if name == "cwd":
                ways.append(rf"(?<=/){re.escape(in_folder_name(value))}(?=/)")
    return "|".join([*ways, rf"<!*(?:{_NAMES})>"]) if ways else ""


def _way(name: str, value: str) -> str:
    match name:
        case "git":
            return value
        case "user" | "hostname":  # a word of prompts, too: only in `ls -l`, and alone in a line
            owner = rf"(?<=\d ){value}(?= )|(?<= ){value}(?= +\d)"
            return rf"{owner}|{_LINE_BEFORE}{value}{_LINE_AFTER}"
    return f"{_BEFORE}{value}{_AFTER}"


def _mark_ignored(found: re.Match[str]) -> str:
    start, end = (at - found.start() for at in found.span(1))
    mark = "0" if _JSON_VALUE.fullmatch(found[1]) else "<ignored>"
    return f"{found[0][:start]}{mark}{found[0][end:]}"


_JSON_VALUE = re.compile(r"[\d.]+|true|false")
"""Texts that stand in JSON without quotes: what replaces one has to, too."""


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
        agent: the name of the coding agent that sent it; "" for any other client.
        world: what the agent says of the machine that it runs on; None for any other client.
        resumes: where the history begins with a summary that mockllm wrote: the token of the last
            answer that it is about, and the index of the first message after it.
        server_tools: the tools of MCP servers that scenarios name, as `SERVER.TOOL`, each with the
            name that the request offers it under; "" where it offers none.
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
    agent: str = ""
    world: World | None = None
    resumes: tuple[str, int] | None = None
    server_tools: tuple[tuple[str, str], ...] = ()

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
    def new_system(self) -> str:
        """The system prompt, and the texts of the system since the last answer: hooks and reminders
        of agents stand there."""
        roles = [message.role for message in self.messages]
        first = next((at for at, role in enumerate(roles) if role != "system"), len(roles))
        answers = [at for at, role in enumerate(roles) if role == "assistant"]
        since = self.messages[max([first, *answers[-1:]]) :]
        return system_text([*self.messages[:first], *since])

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
