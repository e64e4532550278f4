"""Requests of the Responses API: the body to the neutral request, with the service's validation.

https://platform.openai.com/docs/api-reference/responses/create

Errors have the service's messages and codes. Only pure functions may live here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.request import Message, OfferedTool, Request, system_text
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.checks import Check
from mockllm.wire.protocols.openai_common import (
    BOOLEAN,
    CHECKS,
    OBJECT,
    OBJECTS,
    TEXT,
    bad_value,
    check_tool,
    invalid_type,
    missing,
    offered_tool,
    output_schema,
)
from mockllm.wire.protocols.openai_responses import API
from mockllm.wire.protocols.openai_responses.input import check_pairs, messages
from mockllm.wire.protocols.openai_responses.objects import Options, token_of
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, encodable, mapping, objects, string


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of a body."""
    if strict:
        _check(body)
    system = string(body.get("instructions"))
    history = messages(body.get("input"), strict)
    shared = shared_names(body)
    if shared:
        items = (item for item in array(body.get("input")) if isinstance(item, Mapping))
        history = [_told_apart(*pair, shared) for pair in zip(history, items, strict=False)]
    if strict:
        check_pairs(body)
    if system:
        history.insert(0, Message("system", system))
    tools = offered_tools(body.get("tools"), strict, shared)
    tools += added_tools(body.get("input"), shared)
    return Request(
        API,
        string(body.get("model")),
        body,
        body.get("stream") is True,
        tuple(history),
        system_text(history),
        tools,
        tool_choice(body.get("tool_choice"), body.get("tools"), strict),
        _previous(body.get("previous_response_id")),
        _conversation(body.get("conversation"), strict),
        output_schema=output_schema(
            mapping(body.get("text")).get("format"), "text.format", strict, SCHEMA
        ),
        wants_reasoning=_wants_reasoning(body.get("reasoning")),
        traits=frozenset({"compacting"} if _is_compacting(body) else ()),
    )


def _is_compacting(body: Fields) -> bool:
    """Whether a request asks for a compaction of its history."""
    return [i.get("type") for i in objects(body.get("input"))][-1:] == ["compaction_trigger"]


# Checks of single fields


_CHECKS: dict[str, Check] = {
    "access_programs": OBJECT,
    "background": BOOLEAN,
    "conversation": CHECKS.of_kind((str, Mapping), "one of a string or an object"),
    "image": OBJECT,
    "include": CHECKS.of_kind(list, "an array of strings"),
    "input": CHECKS.of_kind((str, list), "one of a string or array of input items"),
    "instructions": TEXT,
    "max_output_tokens": CHECKS.number(16, whole=True),
    "max_tool_calls": CHECKS.number(1, whole=True),
    "metadata": OBJECT,
    "model": TEXT,
    "parallel_tool_calls": BOOLEAN,
    "previous_response_id": TEXT,
    "prompt": OBJECT,
    "prompt_cache_key": TEXT,
    "prompt_cache_options": OBJECT,
    "prompt_cache_retention": TEXT,
    "reasoning": OBJECT,
    "safety_identifier": TEXT,
    "service_tier": TEXT,
    "store": BOOLEAN,
    "stream": BOOLEAN,
    "stream_options": OBJECT,
    "temperature": CHECKS.number(0, 2),
    "text": OBJECT,
    "tool_choice": CHECKS.of_kind((str, Mapping), "one of a string or an object"),
    "tools": OBJECTS,
    "top_logprobs": CHECKS.number(0, 20, whole=True),
    "top_p": CHECKS.number(0, 1),
    "truncation": TEXT,
    "user": TEXT,
}
_MOVED = {
    "messages": "input",
    "response_format": "text.format",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
}


def _check(body: Fields) -> None:
    for name, value in body.items():
        if name in _MOVED:
            raise _moved_parameter(name)
        if value is not None and name in _CHECKS:
            _CHECKS[name](name, value)
    if not body.get("model") and not body.get("prompt"):
        raise missing("model")
    if not body.get("input") and body.get("input") != "" and not _continues(body):
        raise RequestError(
            "One of 'input', 'previous_response_id', 'prompt' or 'conversation' must be provided.",
            param="input",
            code="missing_required_parameter",
        )
    if body.get("background") and body.get("store") is False:
        raise RequestError(
            "'background' requires that the response is stored: leave out 'store', or send true.",
            param="background",
        )
    if body.get("previous_response_id") and body.get("conversation"):
        raise RequestError(
            "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. "
            "Provide one of them, not both.",
            param="previous_response_id",
            code="mutually_exclusive_parameters",
        )


def _continues(body: Fields) -> bool:
    return any(body.get(name) for name in ("previous_response_id", "conversation", "prompt"))


def _moved_parameter(name: str) -> RequestError:
    return RequestError(
        f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to "
        f"'{_MOVED[name]}'. Try again with the new parameter.",
        param=name,
        code="unsupported_parameter",
    )


def _previous(id: object) -> str | None:
    if not isinstance(id, str) or not id:
        return None
    # Compatible services have ids of other forms; one that no answer has is refused later.
    return token_of(id) or id.removeprefix("resp_")


def _conversation(value: object, strict: bool = False) -> str | None:
    id = value.get("id") if isinstance(value, Mapping) else value
    if isinstance(id, str) and id:
        return id
    if strict and value is not None:
        raise missing("conversation.id" if isinstance(value, Mapping) else "conversation")
    return None


def _wants_reasoning(value: object) -> bool:
    reasoning = mapping(value)
    if reasoning.get("effort") == "none":
        return False
    return any(reasoning.get(name) for name in ("effort", "summary", "generate_summary"))


# The fields that the answer repeats

_ECHOED = tuple(
    name
    for name in _CHECKS
    if name not in ("include", "input", "model", "stream", "stream_options")
)


def options(request: Request) -> Options:
    """The options for the encoder; never fails, whatever the body holds."""
    body = request.body
    echo = {name: body[name] for name in _ECHOED if _fit(name, body.get(name))}
    for name, echoed in _ECHO_FORMS.items():
        if name in echo:
            echo[name] = echoed(echo[name])
    if not _conversation(body.get("conversation")):
        echo.pop("conversation", None)
    # An answer states the policy that was chosen, and `auto` is none.
    if mapping(body.get("image")).get("context_compression") not in ("enabled", "disabled"):
        echo.pop("image", None)
    include = body.get("include")
    shared, spaces = shared_names(body), namespaces(body)
    return Options(
        encodable(dumps(echo)) if echo else "{}",
        mapping(body.get("stream_options")).get("include_obfuscation") is not False,
        isinstance(include, list) and "reasoning.encrypted_content" in include,
        tuple((_name_in(space, tool, shared), space) for tool, space in spaces),
        _partial_images(body.get("tools")),
        _is_compacting(body),
        tuple((_name_in(space, tool, shared), tool) for tool, space in spaces if tool in shared),
    )


def _partial_images(tools: object) -> int:
    """The number of images wanted before the finished one; the service sends up to 3."""
    counts = [tool.get("partial_images") for tool in objects(tools)]
    asked = [count for count in counts if type(count) is int and 0 <= count <= 3]
    return max(asked, default=0)


def _fit(name: str, value: object) -> bool:
    """Whether a field may be repeated; without strict checks the body may hold anything."""
    if value is None:
        return False
    try:
        _CHECKS[name](name, value)
    except RequestError:
        return False
    return True


_PLACE = {"type": "approximate", "city": None, "country": "US", "region": None, "timezone": None}
_UNSET: Mapping[str, Json] = {
    "function": {"type": "function", "description": None, "name": "", "parameters": None},
    "mcp": {"type": "mcp", "allowed_tools": None, "headers": None, "server_description": None},
    "tool_search": {"type": "tool_search", "description": None, "parameters": None},
    "file_search": {
        "type": "file_search",
        "filters": None,
        "max_num_results": 20,
        "ranking_options": {"ranker": "auto", "score_threshold": 0.0},
    },
    "web_search": {
        "type": "web_search",
        "filters": None,
        "search_context_size": "medium",
        "user_location": _PLACE,
    },
}
"""By the type of a tool, what the service writes where the request leaves it out, as recorded."""


def _echoed_tools(tools: list[Any]) -> list[Any]:
    objects = [tool for tool in tools if isinstance(tool, Mapping)]
    echoed = [{**_UNSET.get(str(tool.get("type")), {}), **tool} for tool in objects]
    for tool in echoed:
        if tool.get("type") == "function":
            tool["strict"] = tool.get("strict", True)
    return echoed


def _without_nulls(value: Fields) -> Json:
    return {name: inner for name, inner in value.items() if inner is not None}


def _echoed_cache_options(value: Fields) -> Json:
    """The options of the cache that an answer states, with those that the request leaves out."""
    usual = {"mode": "implicit", "ttl": "30m"}
    return {**usual, **_without_nulls({k: v for k, v in value.items() if k != "prewarm"})}


_ECHO_FORMS: dict[str, Callable[[Any], Any]] = {
    "conversation": lambda value: {"id": _conversation(value)},
    "prompt_cache_options": _echoed_cache_options,
    "reasoning": _without_nulls,
    "text": _without_nulls,
    "tools": _echoed_tools,
}


# Tools and their choice


_MODES = ("none", "auto", "required")
_ADDING = ("additional_tools", "tool_search_output")


def offered_tools(
    value: object, strict: bool, shared: Collection[str] = ()
) -> tuple[OfferedTool, ...]:
    """The tools that the client runs itself, without those that the service hosts.

    Args:
        shared: names that several namespaces have.
    """
    if not isinstance(value, list) or not value:
        return ()
    if strict:
        for i, offer in enumerate(value):
            _check_offer(f"tools[{i}]", offer)
    return tuple(_offers(value, shared))


def _offers(value: list[Any], shared: Collection[str], space: str = "") -> Iterator[OfferedTool]:
    for offer in value:
        tool = mapping(offer)
        kind, inner = tool.get("type"), array(tool.get("tools"))
        if kind in ("function", "custom"):
            offered = offered_tool(tool, custom=kind == "custom")
            if offered is not None:
                yield replace(offered, name=_name_in(space, offered.name, shared))
        elif kind == "namespace":
            own = [tool for tool in inner if mapping(tool).get("type") != kind]
            yield from _offers(own, shared, string(tool.get("name")))


def _name_in(space: str, name: str, shared: Collection[str]) -> str:
    """The name of a tool, with its namespace before it where others have the same name."""
    return f"{space}__{name}" if space and name in shared else name


def _told_apart(message: Message, item: Fields, shared: Collection[str]) -> Message:
    space = string(item.get("namespace"))
    calls = (replace(call, name=_name_in(space, call.name, shared)) for call in message.calls)
    return replace(message, calls=tuple(calls)) if space else message


def added_tools(value: object, shared: Collection[str] = ()) -> tuple[OfferedTool, ...]:
    """The tools that items of an `input` add: `additional_tools`, and the results of searches."""
    adding = (item for item in objects(value) if item.get("type") in _ADDING)
    return tuple(tool for item in adding for tool in _offers(array(item.get("tools")), shared))


def shared_names(body: Fields) -> frozenset[str]:
    """The names of tools that several namespaces have."""
    counts = Counter(tool for tool, _ in {*namespaces(body)})
    return frozenset(tool for tool, count in counts.items() if count > 1)


def namespaces(body: Fields) -> tuple[tuple[str, str], ...]:
    """The tools that have a namespace, which their calls name: the one that offers them, or their
    own name where only a search loads them."""
    adding = [item for item in objects(body.get("input")) if item.get("type") in _ADDING]
    found = []
    for offer in objects([tool for one in (body, *adding) for tool in array(one.get("tools"))]):
        name = offer.get("name")
        if offer.get("type") == "namespace":
            inner = [tool.get("name") for tool in objects(offer.get("tools"))]
        else:
            inner = [name] if offer.get("defer_loading") is True else []
        found += [(tool, name) for tool in inner if isinstance(tool, str) and isinstance(name, str)]
    return tuple(found)


def _check_offer(where: str, tool: Any) -> None:
    _OFFER(where, tool)
    if tool["type"] in ("function", "custom"):
        parameters = tool.get("parameters") if tool["type"] == "function" else None
        check_tool(tool.get("name"), parameters, where)


_OFFER = CHECKS.fields({"type": TEXT})


def tool_choice(value: object, tools: object, strict: bool) -> str:
    """`auto`, `none`, `required`, or the name of the tool that must be called.

    For `allowed_tools` with mode `required`, it is the first of the allowed tools.

    Args:
        tools: the `tools` of the request, hosted ones included.
    """
    if value is None:
        return "auto"
    offered = list(map(mapping, array(tools)))
    if isinstance(value, str):
        return _mode(value, offered, strict)
    choice = mapping(value)
    kind = choice.get("type")
    if kind in ("function", "custom"):
        return _function_choice(choice, offered, "tool_choice", strict)
    if kind == "allowed_tools":
        return _allowed_choice(choice, offered, strict)
    if strict:
        if not isinstance(kind, str):
            raise missing("tool_choice.type")
        if all(tool.get("type") != kind for tool in offered):
            raise _not_found(kind, "tool_choice")
    return "auto"


def _mode(value: str, offered: list[Fields], strict: bool) -> str:
    if value not in _MODES:
        if strict:
            raise bad_value("tool_choice", value, _MODES)
        return "auto"
    if strict and value == "required" and not offered:
        raise RequestError(
            "Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice"
        )
    return value


def _function_choice(choice: Fields, offered: list[Fields], where: str, strict: bool) -> str:
    if strict:
        _NAMED(where, choice)
    name = string(choice.get("name"))
    if strict and all(tool.get("name") != name for tool in offered):
        raise _not_found(name, where)
    return name or "auto"


def _allowed_choice(choice: Fields, offered: list[Fields], strict: bool) -> str:
    mode, tools = choice.get("mode"), choice.get("tools")
    if strict and mode not in ("auto", "required"):
        raise bad_value("tool_choice.mode", str(mode), ("auto", "required"))
    if strict and not isinstance(tools, list):
        raise invalid_type("tool_choice.tools", "an array of objects", tools)
    names = []
    for i, tool in enumerate(array(tools)):
        if mapping(tool).get("type") in ("function", "custom"):
            names.append(
                _function_choice(mapping(tool), offered, f"tool_choice.tools[{i}]", strict)
            )
    if mode == "required":
        return names[0] if names else "required"
    return "auto"


def _not_found(name: str, where: str) -> RequestError:
    return RequestError(f"Tool choice '{name}' not found in 'tools' parameter.", param=where)


SCHEMA = CHECKS.fields({"name": TEXT, "schema": OBJECT})
"""A check of an output format with a schema."""

_NAMED = CHECKS.fields({"name": TEXT})
