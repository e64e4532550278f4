"""Answers of the paths of Responses that call no model.

Answers that are kept: https://platform.openai.com/docs/guides/conversation-state; counts of tokens:
https://platform.openai.com/docs/api-reference/responses/input-tokens; compaction:
https://platform.openai.com/docs/api-reference/responses/compact. The fields are those of
`InputTokenCountResponse` and `CompactedResponse` in OpenAI's Python SDK. Conversations:
https://platform.openai.com/docs/api-reference/conversations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.seeded import derive
from mockllm.core.tokens_and_fragments import tokens
from mockllm.core.turn import TokenUsage
from mockllm.wire.protocols.base import Lookup, Reply, counted_tokens, created_at, dumps
from mockllm.wire.protocols.jobs import JobCall, ObjectKind, ObjectRoute
from mockllm.wire.protocols.openai_common import invalid_type, list_page, missing, page_size
from mockllm.wire.protocols.openai_responses.input import CALLS, item_kind
from mockllm.wire.protocols.openai_responses.objects import (
    response_id,
    token_of,
    tool_usage,
    usage_object,
)
from mockllm.wire.protocols.openai_responses.request import parse
from mockllm.wire.protocols.openai_responses.server_tools import SERVER_TOOLS
from mockllm.wire.protocols.records import (
    Background,
    FallbackRoute,
    Fields,
    JobState,
    Json,
    StoredAnswers,
)
from mockllm.wire.protocols.values import MOST_DIGITS, array, mapping, objects, string

# Answers that are kept

_PREFIX = "resp_"
_FIELD = "previous_response_id"


def _previous_not_found(id: str) -> RequestError:
    if not id.startswith("resp"):
        return RequestError(
            f"Invalid '{_FIELD}': '{id}'. Expected an ID that begins with 'resp'.",
            param=_FIELD,
            code="invalid_value",
        )
    return RequestError(
        f"Previous response with id '{id}' not found. mockllm knows the ids of the answers that it "
        "gave from the scenarios it serves now.",
        param=_FIELD,
        code="previous_response_not_found",
    )


_STATUSES: Mapping[JobState, str] = {
    "created": "queued",
    "pending": "in_progress",
    "cancelled": "cancelled",
}


def _answer_until_done(answer: Fields, state: JobState) -> Json:
    tier = answer.get("service_tier")
    return {
        **answer,
        "status": _STATUSES[state],
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "output": [],
        # Which tier serves it is known when it is over.
        "service_tier": "auto" if tier == "default" else tier,
        "tool_usage": tool_usage([]),
        "usage": None,
    }


def _events_before(target: Target) -> int | None:
    """One more than `starting_after`, as the events count from 0."""
    if target.query.get("stream") != "true":
        return None
    after = target.query.get("starting_after", "-1")
    if not after.removeprefix("-").isdecimal() or len(after) > MOST_DIGITS or int(after) < -1:
        raise RequestError(
            f"Invalid 'starting_after': expected the number of an event, got '{after}'.",
            param="starting_after",
        )
    return int(after) + 1


BACKGROUND = Background(
    is_asked=lambda body: body.get("background") is True,
    until_done=_answer_until_done,
    events_before=_events_before,
    not_cancelled=lambda other: RequestError(
        f"Cannot cancel the response '{other}': only responses that were created with "
        "'background': true can be cancelled."
    ),
)

STORED_ANSWERS = StoredAnswers(
    prefix=_PREFIX,
    segment="response_id",
    field=_FIELD,
    is_stored=lambda body: body.get("store") is not False,
    not_found=lambda unknown: RequestError(
        f"Response with id '{unknown}' not found.", status=404, param="response_id"
    ),
    previous_not_found=_previous_not_found,
    missing_result=lambda call: RequestError(
        f"No tool output found for function call {call}.", param="input"
    ),
    unknown_result=lambda call: RequestError(
        f"No tool call found for function call output with call_id {call}.", param="input"
    ),
    background=BACKGROUND,
)


def stored_answer(lookup: Lookup) -> Json:
    """The body of `GET /v1/responses/{id}`, and of `POST /v1/responses/{id}/cancel`."""
    if lookup.target.query.get("stream") == "true":
        raise RequestError(
            "Only responses that run in the background can be streamed again: create it with "
            "'background': true, or leave out 'stream' to get the whole response.",
            param="stream",
        )
    return dict(lookup.answer)


def deleted_answer(lookup: Lookup) -> Json:
    """The body of `DELETE /v1/responses/{id}`."""
    id = lookup.target.segments["response_id"]
    return {"id": id, "object": "response", "deleted": True}


def listed_input(lookup: Lookup) -> Json:
    """The body of `GET /v1/responses/{id}/input_items`."""
    id = lookup.target.segments["response_id"]
    return _page(_stored_items(lookup.request.get("input"), token_of(id) or id), lookup.target)


def _page(items: list[Json], target: Target) -> Json:
    """A page of items, the oldest first, by the query's `order` (`desc` is the service's default:
    newest first), `limit` and `after`, the id before the first item."""
    limit = page_size(target, 20, 100)
    if target.query.get("order", "desc") != "asc":
        items.reverse()
    return list_page(items, target.query.get("after"), limit)


def _stored_items(value: object, token: str) -> list[Json]:
    """The items of an `input`, with the fields that the service adds; their ids are derived."""
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    items = array(value)
    return [
        _stored_item(dict(x), i, token)
        for i, x in enumerate(items)
        if isinstance(x, Mapping) and x.get("type") != "compaction_trigger"
    ]


_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs", "custom_tool_call": "ctc"}


def _stored_item(item: Json, i: int, token: str) -> Json:
    kind = item_kind(item)
    digits = derive(token, "input", i, length=50, hex=True)
    prefix = SERVER_TOOLS[kind].prefix if kind in SERVER_TOOLS else _PREFIXES.get(kind, "item")
    id = string(item.get("id")) or f"{prefix}_{digits}"
    if kind == "message":
        assistant = item.get("role") == "assistant"
        content = [_stored_part(part, assistant) for part in _parts(item.get("content"))]
        role = item.get("role")
        return {"id": id, "type": kind, "status": "completed", "content": content, "role": role}
    has_status = kind in CALLS or (kind in SERVER_TOOLS and SERVER_TOOLS[kind].has_status)
    status = {"status": "completed"} if has_status else {}
    execution = {"execution": "client"} if kind.startswith("tool_search_") else {}
    sent = {name: value for name, value in item.items() if value is not None and name != "id"}
    return {"id": id, "type": kind, **status, **execution, **sent}


def _parts(content: object) -> list[Any]:
    if isinstance(content, list):
        return [{"text": part} if isinstance(part, str) else part for part in content]
    return [{"text": string(content)}]


def _stored_part(part: object, assistant: bool) -> Json:
    given = dict(mapping(part))
    if assistant:
        if given.get("type") == "refusal":
            return given
        return {"type": "output_text", "annotations": [], "logprobs": [], **given}
    if given.get("type") == "input_image":
        return {"detail": "auto", **given}
    return {"type": "input_text", **given}


# Paths that --fallback auto answers

_MOST_ITEMS = 20
"""The most items that a request may add to a conversation."""


def _conversation(call: JobCall) -> Json:
    return {
        "id": call.id,
        "object": "conversation",
        "created_at": created_at(call.id),
        "metadata": mapping(call.fields.get("metadata")),
        "_items": [(call.at, _new_items(call))] if call.fields.get("items") else [],
    }


def _new_items(call: JobCall) -> list[Json]:
    """The items in a request, with ids."""
    items = call.fields.get("items")
    if not isinstance(items, list):
        raise missing("items") if items is None else invalid_type("items", "an array", items)
    if len(items) > _MOST_ITEMS:
        raise RequestError(
            f"Invalid 'items': array too long. Expected an array with maximum length "
            f"{_MOST_ITEMS}, but got an array with length {len(items)} instead.",
            param="items",
            code="array_above_max_length",
        )
    return _stored_items(items, f"{call.id} {call.number}")


def _with_items(state: Json, call: JobCall) -> Json:
    return {**state, "_items": [*state["_items"], (call.at, _new_items(call))]}


def _all_items(state: Json, call: JobCall) -> list[Json]:
    """The items that were added, and those of the answers that were made in the conversation, with
    what they were asked; in the order of the requests."""
    groups: list[tuple[float, list[Json]]] = list(state["_items"])
    for at, answer, request in call.jobs.answers(call.id):
        asked = _stored_items(request.get("input"), token_of(string(answer.get("id"))) or call.id)
        groups.append((at, [*asked, *map(dict, objects(answer.get("output")))]))
    ordered = sorted(groups, key=lambda group: group[0])
    removed = state.get("_removed", ())
    return [item for _, items in ordered for item in items if item["id"] not in removed]


def _item(state: Json, call: JobCall) -> Json:
    id = call.target.segments["item_id"]
    for item in _all_items(state, call):
        if item["id"] == id:
            return item
    raise _no_item(id)


def _no_item(id: str) -> RequestError:
    return RequestError(f"Item with id '{id}' not found.", status=404, param="item_id")


def _without_item(state: Json, call: JobCall) -> Json:
    if not call.is_kept:
        _item(state, call)
    return {**state, "_removed": [*state.get("_removed", ()), call.target.segments["item_id"]]}


_ITEMS = "/conversations/{id}/items"

CONVERSATIONS = ObjectKind(
    "conversation",
    "conv_",
    _conversation,
    lambda other: RequestError(
        f"Conversation with id '{other}' not found.", status=404, param="conversation_id"
    ),
    (
        ObjectRoute("POST /conversations", "make"),
        ObjectRoute("GET /conversations/{id}"),
        ObjectRoute(
            "POST /conversations/{id}",
            change=lambda state, call: {**state, "metadata": mapping(call.fields.get("metadata"))},
        ),
        ObjectRoute(
            "DELETE /conversations/{id}",
            "delete",
            lambda _, call: {"id": call.id, "object": "conversation.deleted", "deleted": True},
        ),
        ObjectRoute(
            f"POST {_ITEMS}",
            answer=lambda _, call: list_page(_new_items(call), None, _MOST_ITEMS),
            change=_with_items,
        ),
        ObjectRoute(
            f"GET {_ITEMS}",
            answer=lambda state, call: _page(_all_items(state, call), call.target),
        ),
        ObjectRoute(f"GET {_ITEMS}/{{item_id}}", answer=_item),
        ObjectRoute(f"DELETE {_ITEMS}/{{item_id}}", change=_without_item),
    ),
)


def _input_tokens(body: Fields, target: Target) -> Json:
    counted = counted_tokens(parse(body, target, False))
    return {"object": "response.input_tokens", "input_tokens": counted}


def _compact(body: Fields, target: Target) -> Json:
    """The user messages, then one item that stands for everything."""
    request = parse(body, target, True)
    seed = dumps(body)
    token = derive(seed, "token", length=40, hex=True)
    content = "gAAAAA" + derive(seed, "encrypted", length=82)
    users = [message.text for message in request.users]
    reply = Reply(seed, token, request.model, None)
    usage = TokenUsage(counted_tokens(request), tokens(content))
    return {
        "id": response_id(token),
        "object": "response.compaction",
        "created_at": reply.created,
        "output": [
            *(_user(text, f"msg_{token}{i:04x}") for i, text in enumerate(users)),
            {"id": f"cmp_{token}{len(users):04x}", "type": "compaction"}
            | {"encrypted_content": content},
        ],
        "usage": usage_object(usage),
    }


def _user(text: str, id: str) -> Json:
    content = [{"type": "input_text", "text": text}]
    return {"id": id, "type": "message", "status": "completed", "role": "user", "content": content}


FALLBACK_ROUTES = (
    FallbackRoute(re.compile(r"/responses/input_tokens$"), _input_tokens),
    FallbackRoute(re.compile(r"/responses/compact$"), _compact),
)
