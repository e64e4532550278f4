"""Gemini's batches of inline requests, which the scenarios answer.

https://ai.google.dev/gemini-api/docs/batch-api; the fields are those that `google-genai` reads into
a `BatchJob`. A batch is an operation; it is the request that created it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.jsontext import parse_object
from mockllm.core.record import record
from mockllm.wire.protocols.base import Operation, created_at, rfc3339
from mockllm.wire.protocols.gemini.errors import HTTP_STATUSES
from mockllm.wire.protocols.gemini.request import model_of
from mockllm.wire.protocols.gemini_common import get
from mockllm.wire.protocols.jobs import JobCall, JobHandler, JobReply, Work, WorkItem, WorkOutcome
from mockllm.wire.protocols.records import Fields, JobState, Json
from mockllm.wire.protocols.values import array, digits, mapping, string

_KIND = "batch"
_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch"
_MOST = 1000
"""How many batches a page has."""

_CODES = {name: number for number, name in enumerate(HTTP_STATUSES, 1)}
"""The numbers of the codes of google.rpc, which the errors of operations have."""

_STATES: Mapping[JobState, str] = {
    "created": "BATCH_STATE_PENDING",
    "pending": "BATCH_STATE_RUNNING",
    "done": "BATCH_STATE_SUCCEEDED",
    "cancelled": "BATCH_STATE_CANCELLED",
}


@record
class _Batch:
    """A batch: what its creation says of it, and its requests."""

    name: str
    model: str
    given: Fields
    requests: Sequence[Fields]


def _name(token: str) -> str:
    return f"batches/{token}"


def _read(body: bytes) -> tuple[Fields, Sequence[Fields]]:
    """A batch as a request describes it, and its requests.

    Raises:
        RequestError: there are none, or they are in a file.
    """
    given = mapping(get(parse_object(body), "batch"))
    source = mapping(get(given, "inputConfig"))
    if get(source, "fileName"):
        raise RequestError(
            "batch.input_config.file_name: mockllm plays batches of inline requests, and none of "
            "files; answer this one with a scenario that has a 'route' and a 'job'."
        )
    requests = [mapping(one) for one in array(get(mapping(get(source, "requests")), "requests"))]
    if not requests:
        raise RequestError("batch.input_config.requests.requests: must have at least one request")
    return given, requests


def _find_batch(call: JobCall, name: str) -> tuple[_Batch, Work] | None:
    """The batch of that name, and what its requests get; None where there is none."""
    kept = call.jobs.find(name)
    if kept is None:
        return None
    given, requests = _read(kept.body)
    model = kept.path.rpartition("/models/")[2].rpartition(":")[0]
    path = f"/v1beta/models/{model}:generateContent"
    items = [WorkItem(path, _body(mapping(get(request, "request")))) for request in requests]
    return _Batch(name, model, given, requests), call.jobs.work(name, items)


def _body(request: Fields) -> Json:
    return {name: value for name, value in request.items() if name != "model"}


def _batch_in_path(call: JobCall) -> tuple[_Batch, Work]:
    name = _name(call.target.segments["batch_id"])
    found = _find_batch(call, name)
    if found is None:
        raise RequestError(f"Requested entity was not found: {name}.", status=404)
    return found


def _object(batch: _Batch, state: JobState, work: Work | None = None) -> Json:
    """The operation; at its creation there is no work yet."""
    begin = created_at(batch.name)
    is_over = state in ("done", "cancelled")
    total = len(batch.requests)
    outcomes = work.outcomes if work is not None and state == "done" else ()
    expired = any(outcome.expired for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    stats = {"requestCount": total, "pendingRequestCount": 0 if is_over else total}
    if outcomes and not expired:
        stats |= {"successfulRequestCount": total - failed, "failedRequestCount": failed}
    metadata: dict[str, Any] = {
        "@type": _TYPE,
        "model": f"models/{batch.model}",
        "displayName": get(batch.given, "displayName") or "",
        "createTime": rfc3339(begin),
        "updateTime": rfc3339(begin + 2 if is_over else begin),
        # The service writes 64-bit numbers as text.
        "batchStats": {name: str(count) for name, count in stats.items() if count},
        "state": "BATCH_STATE_EXPIRED" if expired else _STATES[state],
        "name": batch.name,
    }
    if is_over:
        metadata["endTime"] = rfc3339(begin + 2)
    operation = {"name": batch.name, "metadata": metadata}
    if state == "cancelled" or expired:
        code = "DEADLINE_EXCEEDED" if expired else "CANCELLED"
        message = "The operation has expired." if expired else "The operation was cancelled."
        return operation | {"done": True, "error": {"code": _CODES[code], "message": message}}
    if state != "done":
        return operation
    pairs = zip(batch.requests, outcomes, strict=True)
    responses = [_response(request, outcome) for request, outcome in pairs]
    output = {"inlinedResponses": {"inlinedResponses": responses}}
    metadata["output"] = output
    return operation | {"done": True, "response": {"@type": _TYPE} | output}


def _response(request: Fields, outcome: WorkOutcome) -> Json:
    kept = {"metadata": request["metadata"]} if request.get("metadata") else {}
    if outcome.status >= 400:
        error = mapping(mapping(outcome.body).get("error"))
        code = _CODES.get(string(error.get("status")), _CODES["UNKNOWN"])
        return {"error": {"code": code, "message": string(error.get("message"))}, **kept}
    return {"response": outcome.body, **kept}


def _create(call: JobCall) -> JobReply:
    given, requests = _read(call.body)
    name = _name(call.jobs.new(_KIND))
    batch = _Batch(name, model_of(call.target), given, requests)
    return JobReply(_object(batch, "created"), name)


def _show(call: JobCall) -> JobReply:
    batch, work = _batch_in_path(call)
    return JobReply(_show_operation(call, batch, work.state(polled=True), work))


def _show_operation(call: JobCall, batch: _Batch, state: JobState, work: Work) -> Json:
    """The operation, which has the answers when it is done."""
    if state == "done":
        call.jobs.settle(batch.name)
    return _object(batch, state, work)


def _cancel(call: JobCall) -> JobReply:
    """Nothing; the next poll says what became of it."""
    _batch_in_path(call)[1].cancel()
    return JobReply({})


def _delete(call: JobCall) -> JobReply:
    call.jobs.delete(_batch_in_path(call)[0].name)
    return JobReply({})


def _list(call: JobCall) -> JobReply:
    """A page of the batches, the latest first; its token is the number of the first one."""
    names = [_name(token) for token in call.jobs.tokens(_KIND)]
    call.jobs.expect(names)
    batches = [name for name in names if call.jobs.find(name) is not None]
    start, size = _place(call.target, _MOST)
    found = [_find_batch(call, name) for name in batches[start : start + size]]
    shown = [
        _show_operation(call, batch, work.state(), work) for batch, work in filter(None, found)
    ]
    return JobReply({"operations": shown, **_next(start + size, len(batches))})


def page_of(name: str, found: Sequence[Json], target: Target, most: int) -> Json:
    """A page of objects; its token is the number of the first one.

    Args:
        most: how many it has where the request does not say it.
    """
    start, size = _place(target, most)
    return {name: list(found[start : start + size]), **_next(start + size, len(found))}


def _place(target: Target, most: int) -> tuple[int, int]:
    return _number(target, "pageToken", 0), _number(target, "pageSize", most)


def _next(end: int, count: int) -> Json:
    return {"nextPageToken": str(end)} if end < count else {}


def _number(target: Target, name: str, default: int) -> int:
    text = target.query.get(name) or str(default)
    number = digits(text)
    if number is None:
        raise RequestError(f"{name}: must be a whole number, got {text!r}")
    return number


BATCHES: Mapping[Operation, JobHandler] = {
    "create_batch": _create,
    "batches": _list,
    "batch": _show,
    "cancel_batch": _cancel,
    "delete_batch": _delete,
}
"""The routes of batches."""
