"""Anthropic's Message Batches, whose requests the scenarios answer.

https://docs.claude.com/en/api/creating-message-batches; the fields are those of `MessageBatch` and
`MessageBatchIndividualResponse` in Anthropic's Python SDK. A batch is the request that created it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mockllm.core.errors import RequestError
from mockllm.core.jsontext import json_bytes, parse_object
from mockllm.core.record import record
from mockllm.wire.protocols.anthropic_messages.service import page
from mockllm.wire.protocols.base import Operation, created_at, dumps, rfc3339
from mockllm.wire.protocols.jobs import JobCall, JobHandler, JobReply, Work, WorkItem, WorkOutcome
from mockllm.wire.protocols.records import JobState, Json
from mockllm.wire.protocols.values import mapping, string

_KIND = "batch"
_PATH = "/v1/messages"
_DAY = 86400  # after which a batch expires
_MOST_ID = 64  # characters of a `custom_id`


@record
class _Batch:
    """A batch, and the ids that the client gave its requests."""

    id: str
    custom_ids: Sequence[str]


def _id(token: str) -> str:
    return f"msgbatch_{token}"


def _items(body: bytes) -> dict[str, WorkItem]:
    """The requests of a batch by their ids.

    Raises:
        RequestError: the service refuses the batch as a whole.
    """
    requests = parse_object(body).get("requests")
    if not isinstance(requests, list) or not requests:
        raise RequestError("requests: List should have at least 1 item", param="requests")
    items: dict[str, WorkItem] = {}
    for at, given in enumerate(requests):
        request, where = mapping(given), f"requests.{at}"
        custom_id = string(request.get("custom_id"))
        if not 1 <= len(custom_id) <= _MOST_ID:
            message = f"{where}.custom_id: String should have 1 to {_MOST_ID} characters"
            raise RequestError(message, param=f"{where}.custom_id")
        if custom_id in items:
            message = f"{where}.custom_id: custom_id must be unique, got {custom_id!r} again"
            raise RequestError(message, param=f"{where}.custom_id")
        params = request.get("params")
        if not isinstance(params, Mapping):
            raise RequestError(f"{where}.params: Field required", param=f"{where}.params")
        if params.get("stream"):
            message = f"{where}.params.stream: Requests of a batch cannot be streamed"
            raise RequestError(message, param=f"{where}.params.stream")
        items[custom_id] = WorkItem(_PATH, dict(params))
    return items


def _find_batch(call: JobCall, id: str) -> tuple[_Batch, Work] | None:
    """The batch with an id, and what its requests get; None where there is none."""
    kept = call.jobs.find(id)
    if kept is None:
        return None
    items = _items(kept.body)
    return _Batch(id, tuple(items)), call.jobs.work(id, tuple(items.values()))


def _batch_in_path(call: JobCall) -> tuple[_Batch, Work]:
    id = call.target.segments["batch_id"]
    found = _find_batch(call, id)
    if found is None:
        raise RequestError(f"batch_id: no message batch {id!r}", status=404, param="batch_id")
    return found


def _counts(batch: _Batch, state: JobState, outcomes: Sequence[WorkOutcome] = ()) -> dict[str, int]:
    total = len(batch.custom_ids)
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    if state == "cancelled":
        return counts | {"canceled": total}
    if state != "done":
        return counts | {"processing": total}
    for outcome in outcomes:
        counts[_result(outcome)["type"]] += 1
    return counts


def _object(
    call: JobCall, batch: _Batch, state: JobState, outcomes: Sequence[WorkOutcome] = ()
) -> Json:
    begin = created_at(batch.id)
    is_over = state in ("done", "cancelled")
    results = f"{call.url}/v1/messages/batches/{batch.id}/results"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if is_over else "in_progress",
        "request_counts": _counts(batch, state, outcomes),
        "ended_at": rfc3339(begin + 2) if is_over else None,
        "created_at": rfc3339(begin),
        "expires_at": rfc3339(begin + _DAY),
        "archived_at": None,
        "cancel_initiated_at": rfc3339(begin + 1) if state == "cancelled" else None,
        "results_url": results if is_over else None,
    }


def _create(call: JobCall) -> JobReply:
    items = _items(call.body)
    batch = _Batch(_id(call.jobs.new(_KIND)), tuple(items))
    return JobReply(_object(call, batch, "created"), batch.id)


def _show(call: JobCall) -> JobReply:
    batch, work = _batch_in_path(call)
    return JobReply(_object(call, batch, work.state(polled=True), work.outcomes))


def _cancel(call: JobCall) -> JobReply:
    batch, work = _batch_in_path(call)
    state = work.state()
    if state != "pending":
        return JobReply(_object(call, batch, state, work.outcomes))
    canceling = {"processing_status": "canceling", "ended_at": None, "results_url": None}
    shown = _object(call, batch, work.cancel())
    return JobReply({**shown, **canceling, "request_counts": _counts(batch, "pending")})


def _over(call: JobCall, what: str) -> tuple[_Batch, Work, JobState]:
    batch, work = _batch_in_path(call)
    state = work.state()
    if state == "pending":
        raise RequestError(f"batch_id: {batch.id} is still in progress, and {what}")
    return batch, work, state


def _delete(call: JobCall) -> JobReply:
    batch, _, _ = _over(call, "cannot be deleted before it has ended; cancel it first")
    call.jobs.delete(batch.id)
    return JobReply({"id": batch.id, "type": "message_batch_deleted"})


def _results(call: JobCall) -> JobReply:
    batch, work, state = _over(call, "has no results yet")
    if state == "cancelled":
        results: list[Json] = [{"type": "canceled"} for _ in batch.custom_ids]
    else:
        results = [_result(outcome) for outcome in work.outcomes]
    call.jobs.settle(batch.id)
    named = zip(batch.custom_ids, results, strict=True)
    text = "".join(dumps({"custom_id": id, "result": result}) + "\n" for id, result in named)
    return JobReply(json_bytes(text), content_type="application/x-jsonl")


def _result(outcome: WorkOutcome) -> Json:
    if outcome.expired:
        return {"type": "expired"}
    if outcome.status >= 400:
        return {"type": "errored", "error": outcome.body}
    return {"type": "succeeded", "message": outcome.body}


def _list(call: JobCall) -> JobReply:
    """A page of the batches, the latest first."""
    ids = [_id(token) for token in call.jobs.tokens(_KIND)]
    call.jobs.expect(ids)

    def show(id: str) -> Json:
        found = _find_batch(call, id)
        assert found is not None
        batch, work = found
        return _object(call, batch, work.state(), work.outcomes)

    made = [id for id in ids if call.jobs.find(id) is not None]
    return JobReply(page(made, call.target, show))


BATCHES: Mapping[Operation, JobHandler] = {
    "create_batch": _create,
    "batches": _list,
    "batch": _show,
    "cancel_batch": _cancel,
    "delete_batch": _delete,
    "batch_results": _results,
}
"""The routes of batches."""
