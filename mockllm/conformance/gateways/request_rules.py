"""Judges what a gateway sent to its upstream against what its client sent. Pure.

What both APIs can express is computed: the client's request is parsed, written for the upstream's
API, and parsed again. What is lost on that way, no gateway has to hand on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from mockllm.checking.judging.difference import canonical_text, format_value
from mockllm.checking.resilience.rule_verdicts import Finding
from mockllm.conformance.gateways.answer_rules import Mistakes, Observed, findings, signatures
from mockllm.core.request import CallEcho, Message, OfferedTool, Parameters, Request
from mockllm.play.matching.conditions import check_partial
from mockllm.play.replay.client_requests import client_target
from mockllm.play.replay.sessions.exchange import Exchange


def request_findings(seen: Observed) -> Iterator[Finding]:
    """The findings about the last request that reached the upstream."""
    exchange = seen.exchanges[-1]
    if exchange.outcome not in ("played", "error"):
        reason = "; ".join(exchange.problems) or exchange.outcome
        text = f"the upstream refuses the request: {reason}"
        yield Finding("request-kept", "wrong", text, "request changed")
        return
    yield from findings(_rules(seen, exchange))


def upstream_refuses(seen: Observed) -> bool:
    """Whether the upstream could not answer a request as the case says, so that what came out says
    nothing about answers."""
    return any(exchange.outcome not in ("played", "error") for exchange in seen.exchanges)


def _rules(seen: Observed, exchange: Exchange) -> Iterator[tuple[str, Mistakes]]:
    """The rules that a request can be judged by."""
    down, up = seen.case.pair.protocols
    sent = down.parse(seen.body, client_target(down, "model"), False)
    parameters = down.client.parameters(seen.body)
    body = up.client.write(replace(sent, model="model"), parameters)
    want, got = up.parse(body, client_target(up, "model"), False), exchange.request
    if got is None:
        yield "request-kept", iter([("the request cannot be read", None)])
        return
    changes = [
        *_system(sent, got),
        *_messages(want.messages, got.messages, alike=down is up),
        *_tools(want.tools, got.tools),
        *_choice(want, got),
        *_output(want, got),
        *_features(seen, exchange),
    ]
    if seen.case.about_request:  # otherwise one lost parameter would be wrong in every case
        changes += _parameters(
            parameters, up.client.parameters(body), up.client.parameters(exchange.json)
        )
    yield "request-kept", ((text, None) for text in changes)
    if want.results:
        of_answer = seen.case.goes_on == "previous"
        wrong = _unknown_ids(seen, got) if of_answer else _results(want.messages, got.messages)
        yield "ids-kept", ((text, None) for text in wrong)
    if seen.case.goes_on and "signatures" in up.client.features:
        yield "reasoning-kept", ((text, None) for text in _signatures(seen, exchange))


def _features(seen: Observed, exchange: Exchange) -> Iterator[str]:
    """Differences of what a request says beside its neutral form."""
    down, up = seen.case.pair.protocols
    if seen.case.with_headers:
        for name, value in down.client.further_headers.items():
            got = exchange.received.headers.get(name)
            if got is None or value not in got:
                yield f"the header {name} is {format_value(got)}, not {format_value(value)}"
    for name in seen.case.features:
        feature, other = down.client.features[name], up.client.features.get(name)
        if other is not None and feature.origin == other.origin:
            want, found = feature.find(seen.body), other.find(exchange.json or {})
            if want != found:
                yield f"{name}: {format_value(found)}, not {format_value(want)}"


def _signatures(seen: Observed, exchange: Exchange) -> Iterator[str]:
    """The signatures of the first answer that the client sent back, and that do not reach the
    upstream, which made them."""
    down, up = (protocol.client.features.get("signatures") for protocol in seen.case.pair.protocols)
    if down is None or up is None or not down.find(seen.body):
        return
    found = [signature.rstrip("=") for *_, signature in up.find(exchange.json or {}) or []]
    made = set(signatures(seen.case.answered))
    for signature in signatures(seen.case.expected):
        if signature in made and signature.rstrip("=") not in found:
            yield f"the signature {format_value(signature)} is sent back as {format_value(found)}"


def _system(sent: Request, got: Request) -> Iterator[str]:
    """Texts that the system prompt lacks; how several are joined is the gateway's choice."""
    at = 0
    for message in sent.messages:
        if message.role == "system":
            at = got.system.find(message.text.strip(), at)
            if at < 0:
                wanted = format_value(sent.system)
                yield f"the system prompt is {format_value(got.system)}, not {wanted}"
                return


# Messages


def _messages(want: Sequence[Message], got: Sequence[Message], *, alike: bool) -> Iterator[str]:
    """Differences of the histories; texts that stand next to each other may be joined.

    Args:
        alike: whether both APIs are one: some have no empty results.
    """
    expected, received = _join_messages(want), _join_messages(got)
    if [message.role for message in expected] != [message.role for message in received]:
        yield f"the messages are {_roles(received)}, not {_roles(expected)}"
        return
    for message, other in zip(expected, received, strict=True):
        yield from _message(message, other, alike=alike)


def _unknown_ids(seen: Observed, got: Request) -> Iterator[str]:
    """Ids that a service does not know, which has the history and needs them."""
    if got.previous is None:
        yield "the id of the earlier answer is lost"
    ids = [call.id for call in seen.case.answered.tool_calls]
    for message in got.results:
        if message.call_id not in ids:
            yield f"a result names the call {message.call_id!r}, not one of {', '.join(ids)}"


def _results(want: Sequence[Message], got: Sequence[Message]) -> Iterator[str]:
    """Results of a history that name a call which is not in it."""
    known = {call.id for message in want for call in message.calls}
    calls = {call.id for message in got for call in message.calls}
    if known:  # otherwise the service has the history
        for message in got:
            if message.role == "tool" and message.call_id and message.call_id not in calls:
                yield f"a result names the call {message.call_id!r}, which no message has"


def _join_messages(messages: Sequence[Message]) -> list[Message]:
    """The messages without the system's, those of one role that follow each other as one; each
    result stays one."""
    joined: list[Message] = []
    for message in messages:
        if message.role == "system":
            continue
        last = joined[-1] if joined else None
        if last is None or last.role != message.role or message.role == "tool":
            joined.append(message)
            continue
        joined[-1] = replace(
            last,
            text=last.text + message.text,
            calls=(*last.calls, *message.calls),
            files=(*last.files, *message.files),
        )
    return _sort_results(joined)


def _sort_results(messages: Sequence[Message]) -> list[Message]:
    """The messages with each run of results in the order of their calls, in which gateways may
    send them. A result without an id is that of the next call."""
    calls: list[str] = []
    ordered: list[Message] = []
    for role, run in groupby(messages, attrgetter("role")):
        given = list(run)
        if role == "tool" and all(message.call_id in calls for message in given):
            given.sort(key=lambda message: calls.index(message.call_id))
        ordered += given
        calls += [call.id for message in given for call in message.calls]
    return ordered


def _roles(messages: Sequence[Message]) -> str:
    return ", ".join(message.role for message in messages) or "none"


def _message(want: Message, got: Message, *, alike: bool) -> Iterator[str]:
    who = {"user": "the user's text", "assistant": "the model's text", "tool": "the result"}
    if not _same_text(want, got, alike=alike):
        yield f"{who[want.role]} is {format_value(got.text)}, not {format_value(want.text)}"
    if list(map(_call, want.calls)) != list(map(_call, got.calls)):
        shown = "; ".join(map(_call, got.calls)) or "none"
        yield f"the calls in the history are {shown}, not {'; '.join(map(_call, want.calls))}"
    if want.error and not got.error:
        yield "the result of a tool that failed is sent as that of one that did not"
    lost = [file for file in want.files if file not in got.files]
    if lost:
        yield f"a file ({lost[0].media_type}) is lost"


def _same_text(want: Message, got: Message, *, alike: bool) -> bool:
    """Whether texts are equal; a result that is JSON may be written anew."""
    if want.text.strip() == got.text.strip():
        return True
    if want.role != "tool" or (alike and not want.text):
        return False
    return canonical_text(want.text) == canonical_text(got.text) or want.text in got.text


def _call(call: CallEcho) -> str:
    return f"{call.name} {canonical_text(call.arguments or '{}')}"


# What the model may do


def _tools(want: Sequence[OfferedTool], got: Sequence[OfferedTool]) -> Iterator[str]:
    received = {tool.name: tool for tool in got}
    for tool in want:
        other = received.get(tool.name)
        if other is None:
            yield f"the tool {tool.name} is not offered"
            continue
        if tool.description != other.description:
            yield f"the description of {tool.name} is {format_value(other.description)}"
        problem = check_partial(f"{tool.name}.parameters", _plain(tool), _plain(other))
        if problem is not None:
            yield problem


def _plain(tool: OfferedTool) -> Any:
    """The schema as a JSON value with its definitions in their places, at its top without what says
    nothing: Gemini refuses an empty `properties`."""
    schema = json.loads(json.dumps(tool.parameters, default=dict))
    schema = _resolve(schema, schema.get("$defs", {}))
    return {name: value for name, value in schema.items() if value not in ({}, [])}


def _resolve(value: Any, definitions: Mapping[str, Any], depth: int = 0) -> Any:
    """A schema with its definitions in the places that refer to them: gateways may put them there
    where the API of the upstream has none."""
    if isinstance(value, list):
        return [_resolve(item, definitions, depth) for item in value]
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    name = str(value.get("$ref", "")).removeprefix("#/$defs/")
    if name in definitions:
        return _resolve(definitions[name], definitions, depth + 1)
    return {
        key: _resolve(item, definitions, depth + 1) for key, item in value.items() if key != "$defs"
    }


_DEEPEST = 12
"""The levels of a schema that are compared; one may refer to itself."""


def _choice(want: Request, got: Request) -> Iterator[str]:
    if want.wants_reasoning and not got.wants_reasoning:
        yield "reasoning is not requested"
    if want.tool_choice != got.tool_choice and want.tools:
        yield f"the choice of tools is {got.tool_choice!r}, not {want.tool_choice!r}"


def _output(want: Request, got: Request) -> Iterator[str]:
    if want.output_schema is None:
        return
    if got.output_schema is None:
        yield "the schema of the answer is lost"
        return
    problem = check_partial("the schema of the answer", want.output_schema, got.output_schema)
    if problem is not None:
        yield problem


def _parameters(sent: Parameters, want: Parameters, got: Parameters) -> Iterator[str]:
    """Differences of the parameters that the client sent. What it leaves to the service, a gateway
    may have to set: Messages needs a limit of tokens."""
    unset = Parameters()
    for name in (field.name for field in fields(Parameters)):
        value, other = getattr(want, name), getattr(got, name)
        if getattr(sent, name) != getattr(unset, name) and value not in (None, (), other):
            yield f"{name} is {format_value(other)}, not {format_value(value)}"
