"""Requests of a client that plays a scenario: for `show`, `demo`, exports and the checking kit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from mockllm.core.http import Target
from mockllm.core.request import Message, Parameters, Request
from mockllm.play.matching.conditions import text_holds
from mockllm.scenario.model import AnyText, Match, Scenario, TextCondition, ToolSpec
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.route_matching import target_of


def user_text(scenario: Scenario) -> str:
    """A user message that meets the scenario's `match.user`; "Hello" where it has none, or none is
    found."""
    match = scenario.match or Match()
    return "Hello" if match.user is None else text_meeting(match.user, "Hello")


_SYNTAX = re.compile(r"\(\?[a-zA-Z]*[:)]|\\[AZbB]|[()^$]")
_ESCAPED = re.compile(r"\\(\W)")
"""What is left of a regular expression without these is often a text that it matches."""


def text_meeting(condition: AnyText, otherwise: str) -> str:
    """A text that meets a condition; `otherwise` where none is found: of a regular expression only
    its words are tried."""
    if isinstance(condition, TextCondition) and condition.op in ("contains", "equals"):
        return condition.value
    texts = (otherwise, *_likely_texts(condition))
    return next((text for text in texts if text_holds(condition, text)), otherwise)


def _likely_texts(condition: AnyText) -> list[str]:
    if isinstance(condition, TextCondition):
        if condition.op == "hidden":
            return ["REDACTED-1"]
        if condition.op != "regex":
            return [condition.value]
        words = _SYNTAX.sub("", condition.value).split("|")
        return [_ESCAPED.sub(r"\1", word) for word in words]
    if condition.op == "not":
        return []
    texts = [text for part in condition.conditions for text in _likely_texts(part)]
    return [*texts, " ".join(texts)]


def first_body(
    protocol: WireProtocol, model: str, text: str, tools: Iterable[ToolSpec] = ()
) -> Json:
    """The body of the first request of a conversation, for a streamed answer."""
    messages, offered = (Message("user", text),), tuple(tool.offered_tool() for tool in tools)
    first = Request(protocol.name, model, {}, stream=True, messages=messages, tools=offered)
    return protocol.client.write(first, Parameters())


def client_target(protocol: WireProtocol, model: str, *, stream: bool = True) -> Target:
    """The target of a client's request for an answer of a model."""
    path, _, query = protocol.client.path_of(model, stream=stream).partition("?")
    target = target_of(protocol, path, query)
    assert target is not None, f"no route of {protocol.name} matches {path}"
    return target


def first_request(protocol: WireProtocol, scenario: Scenario, text: str, model: str) -> Request:
    """The first request of a conversation, for a streamed answer with usage."""
    body = {**first_body(protocol, model, text, scenario.tools), **protocol.client.usage}
    return replace(protocol.parse(body, client_target(protocol, model), False), stream=True)
