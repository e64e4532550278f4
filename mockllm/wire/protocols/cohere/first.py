"""Cohere's first chat API, in words of the second one: scenarios answer it.

https://docs.cohere.com/v1/reference/chat and https://docs.cohere.com/docs/migrating-v1-to-v2. A
stream is one line of JSON for each event. Calls have no ids there: results belong to the calls
before them, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.core.errors import RequestError
from mockllm.core.jsontext import json_bytes
from mockllm.core.tokens_and_fragments import fragments
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.cohere.errors import CHECKS, TEXT, missing
from mockllm.wire.protocols.cohere.request import TRANSLATED
from mockllm.wire.protocols.jobs import JobCall, JobReply, ObjectKind, ObjectRoute
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import json_object, mapping, objects, string

_SAME = (
    *("documents", "frequency_penalty", "k", "max_tokens", "p", "presence_penalty", "safety_mode"),
    *("response_format", "seed", "stop_sequences", "temperature"),
)
"""The fields of both versions."""

_ROLES = {"USER": "user", "CHATBOT": "assistant", "SYSTEM": "system"}
_CHECK = CHECKS.fields({"message": TEXT}, {"chat_history": CHECKS.list_of(CHECKS.mapping)})
_USUAL_MODEL = "command-r"
_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array"}
_TYPES |= {"dict": "object"}
"""The types of parameters, which are those of Python, in JSON Schema."""


def _second(body: Fields) -> Json:
    """The body of a request of the second version."""
    messages: list[Json] = []
    if body.get("preamble"):
        messages.append({"role": "system", "content": string(body["preamble"])})
    for entry in objects(body.get("chat_history")):
        if entry.get("role") == "TOOL":
            _add_results(messages, objects(entry.get("tool_results")))
        else:
            role = _ROLES.get(string(entry.get("role")).upper(), "user")
            calls = _calls(objects(entry.get("tool_calls")))
            message: Json = {"role": role, "content": string(entry.get("message"))}
            plan = {"role": role, "tool_plan": message["content"], "tool_calls": calls}
            messages.append(plan if calls else message)
    results = objects(body.get("tool_results"))
    if body["message"] or not results:
        message = {"role": "user", "content": body["message"]}
        # With results the message is the one that was answered by the calls.
        if not (results and message in messages):
            messages.append(message)
    _add_results(messages, results)
    tools = [_tool(tool) for tool in objects(body.get("tools"))]
    return {
        "model": body.get("model") or _USUAL_MODEL,
        "messages": messages,
        **({"tools": tools} if tools else {}),
        **{name: body[name] for name in _SAME if body.get(name) is not None},
    }


def _calls(calls: list[Json]) -> list[Json]:
    functions = (
        {"name": string(call.get("name")), "arguments": dumps(call.get("parameters") or {})}
        for call in calls
    )
    return [{"type": "function", "function": function} for function in functions]


def _add_results(messages: list[Json], results: list[Json]) -> None:
    """Adds results of tools, after the calls that they name where these are not there yet."""
    if results and not (messages and messages[-1].get("tool_calls")):
        called = _calls([dict(mapping(result.get("call"))) for result in results])
        messages.append({"role": "assistant", "tool_calls": called})
    messages += [{"role": "tool", "content": dumps(result.get("outputs"))} for result in results]


def _tool(tool: Fields) -> Json:
    given = mapping(tool.get("parameter_definitions"))
    properties, required = {}, []
    for name, definition in given.items():
        said = mapping(definition)
        kind = string(said.get("type")) or "string"
        properties[name] = {"type": _TYPES.get(kind.partition("[")[0].lower(), kind)}
        if said.get("description"):
            properties[name]["description"] = string(said["description"])
        if said.get("required"):
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required}
    described = {"name": tool.get("name"), "description": string(tool.get("description"))}
    return {"type": "function", "function": {**described, "parameters": schema}}


def _first(body: Fields, answer: Fields) -> Json:
    """The body of an answer of the first version, from that of the second one."""
    message = mapping(answer.get("message"))
    text = "".join(string(part.get("text")) for part in objects(message.get("content")))
    calls = [
        {
            "name": string(mapping(call.get("function")).get("name")),
            "parameters": json_object(string(mapping(call.get("function")).get("arguments"))) or {},
        }
        for call in objects(message.get("tool_calls"))
    ]
    said: Json = {"role": "CHATBOT", "message": text or string(message.get("tool_plan"))}
    asked = {"role": "USER", "message": body["message"]}
    finish, usage = answer.get("finish_reason"), mapping(answer.get("usage"))
    called = {"tool_calls": calls} if calls else {}
    return {
        "response_id": answer.get("id"),
        "generation_id": answer.get("id"),
        "text": said["message"],
        "chat_history": [*objects(body.get("chat_history")), asked, {**said, **called}],
        "finish_reason": "COMPLETE" if finish == "TOOL_CALL" else finish,
        "meta": {"api_version": {"version": "1"}, **usage},
        **called,
    }


def _events(answer: Json) -> Iterator[Json]:
    yield {"event_type": "stream-start", "generation_id": answer["generation_id"]}
    for piece in fragments(answer["text"], "words", ""):
        yield {"event_type": "text-generation", "text": piece}
    if answer.get("tool_calls"):
        calls = {"tool_calls": answer["tool_calls"], "text": answer["text"]}
        yield {"event_type": "tool-calls-generation", **calls}
    ended = {"finish_reason": answer["finish_reason"], "response": answer}
    yield {"event_type": "stream-end", **ended}


def _chat(_: object, call: JobCall) -> Json | JobReply:
    body = call.fields
    _CHECK("", body)
    if not body["message"] and not body.get("tool_results"):
        raise missing("message")
    outcome = call.jobs.play(_second(body), TRANSLATED)
    if outcome.failed or not isinstance(outcome.body, dict):
        message = string(mapping(outcome.body).get("message")) or "The answer broke off."
        raise RequestError(message, status=max(outcome.status, 400))
    answer = _first(body, outcome.body)
    if not body.get("stream"):
        return answer
    lines = (
        dumps({"is_finished": event["event_type"] == "stream-end", **event}) + "\n"
        for event in _events(answer)
    )
    return JobReply(json_bytes("".join(lines)), content_type="application/stream+json")


FIRST_CHAT = ObjectKind(
    "chat",
    "",
    lambda _: None,
    lambda other: RequestError(f"not found: {other}", status=404),
    (ObjectRoute("POST /v1/chat", "call", _chat),),
)
