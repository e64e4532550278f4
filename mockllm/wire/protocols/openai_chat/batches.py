"""OpenAI's batches, whose requests the scenarios answer, and the files that they make.

https://platform.openai.com/docs/api-reference/batch; the fields are those of `Batch` in OpenAI's
Python SDK. A batch is the request that created it, so it is worked out anew for each look-up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.jsontext import json_bytes, parse_object
from mockllm.core.record import record
from mockllm.core.seeded import derive
from mockllm.wire.protocols.base import Operation, created_at, dumps
from mockllm.wire.protocols.jobs import (
    JobCall,
    JobHandler,
    JobReply,
    Jobs,
    Work,
    WorkItem,
    WorkOutcome,
)
from mockllm.wire.protocols.openai_chat.uploads import OpenAIFile, find_upload
from mockllm.wire.protocols.openai_common import bad_value, list_page, missing, not_found, page_size
from mockllm.wire.protocols.records import Fields, JobState, Json
from mockllm.wire.protocols.values import json_object, mapping, string

_KIND = "batch"
_DAY = 86400  # `completion_window`, which can only be 24h
_ENDPOINTS = (
    "/v1/responses",
    "/v1/chat/completions",
    "/v1/embeddings",
    "/v1/completions",
    "/v1/moderations",
)
_OUTPUT = re.compile(r"file-([0-9A-Za-z]{24})([oe])")
"""The id of a file that a batch made: the batch's token, and `o` for output, `e` for errors."""


@record
class _Line:
    """A line of an input file: the id that the client gave the request, and the request."""

    custom_id: str
    item: WorkItem


@record
class _LineError:
    """Why a line is no request of a batch; lines count from 1."""

    line: int
    code: str
    message: str


@record
class _Batch:
    """A batch, from the request that created it.

    Args:
        work: None where the input file has mistakes.
    """

    token: str
    request: Fields
    lines: Sequence[_Line]
    errors: Sequence[_LineError]
    work: Work | None

    @property
    def id(self) -> str:
        return _id(self.token)


def _id(token: str) -> str:
    return f"batch_{token}"


# The input file


def _lines(content: bytes, endpoint: str) -> Iterator[_Line | _LineError]:
    seen: set[str] = set()
    for number, text in enumerate(content.splitlines(), 1):
        if not text.strip():
            continue
        value = json_object(text)
        if value is None:
            yield _LineError(
                number, "invalid_json_line", "This line is not parseable as valid JSON."
            )
            continue
        custom_id, path = string(value.get("custom_id")), string(value.get("url"))
        mistake = _mistake(value, endpoint)
        if mistake is not None:
            yield _LineError(number, *mistake)
        elif custom_id in seen:
            message = f"The custom_id '{custom_id}' stands in an earlier line, too."
            yield _LineError(number, "duplicate_custom_id", message)
        else:
            seen.add(custom_id)
            yield _Line(custom_id, WorkItem(path, dict(mapping(value.get("body")))))


def _mistake(line: Fields, endpoint: str) -> tuple[str, str] | None:
    """The code and the message for a line that is no request of a batch."""
    for name in ("custom_id", "method", "url", "body"):
        if not line.get(name):
            return "missing_required_parameter", f"Missing required parameter: '{name}'."
    if line["method"] != "POST":
        return "invalid_method", f"The method must be POST, got {line['method']}."
    if line["url"] != endpoint:
        return "invalid_url", (
            f"The url must be the endpoint of the batch, {endpoint}, got {line['url']}."
        )
    if mapping(line["body"]).get("stream"):
        return "invalid_request", "Requests of a batch cannot be streamed."
    return None


def _find_batch(jobs: Jobs, token: str) -> _Batch | None:
    """The batch with a token; None where there is none."""
    kept = jobs.find(_id(token))
    if kept is None:
        return None
    request = parse_object(kept.body)
    upload = find_upload(jobs, string(request.get("input_file_id")), even_deleted=True)
    if upload is None:
        error = "The input file has left the journal of the session."
        return _Batch(token, request, (), [_LineError(1, "file_not_found", error)], None)
    read = list(_lines(upload.content, string(request.get("endpoint"))))
    lines = [line for line in read if isinstance(line, _Line)]
    errors = [line for line in read if isinstance(line, _LineError)]
    if not read:
        errors = [_LineError(1, "empty_file", "The input file has no requests.")]
    work = None if errors else jobs.work(_id(token), [line.item for line in lines])
    return _Batch(token, request, lines, errors, work)


# Output


def _outcome_lines(batch: _Batch, *, failed: bool) -> Iterator[Json]:
    assert batch.work is not None
    for line, outcome in zip(batch.lines, batch.work.outcomes, strict=True):
        if outcome.failed is failed:
            yield _outcome_line(batch.token, line.custom_id, outcome)


def _outcome_line(token: str, custom_id: str, outcome: WorkOutcome) -> Json:
    id = derive(token, "request", custom_id, length=32, hex=True)
    named = {"id": f"batch_req_{id}", "custom_id": custom_id}
    if outcome.expired:
        return {**named, "response": None, "error": _EXPIRED}
    response = {
        "status_code": outcome.status,
        "request_id": f"req_{derive(id, 'answer', length=32, hex=True)}",
        "body": outcome.body,
    }
    return {**named, "response": response, "error": None}


_EXPIRED = {
    "code": "batch_expired",
    "message": "This request could not be executed before the completion window expired.",
}


def _outputs(jobs: Jobs, token: str) -> Iterator[OpenAIFile]:
    """The files that a batch has made which is done: output and errors, where there are any."""
    batch = _find_batch(jobs, token)
    if batch is None or batch.work is None or batch.work.state() != "done":
        return
    for letter in "oe":
        file = _output(batch, letter)
        if file is not None and not jobs.is_deleted(file.id):
            yield file


def _output(batch: _Batch, letter: str) -> OpenAIFile | None:
    """The output (`o`) or the errors (`e`) of a batch that is done; None where there are none."""
    lines = list(_outcome_lines(batch, failed=letter == "e"))
    if not lines:
        return None
    content = json_bytes("".join(dumps(line) + "\n" for line in lines))
    kind = "error" if letter == "e" else "output"
    id = _output_id(batch, letter)
    settles = batch.id if letter == "o" else ""
    return OpenAIFile(id, f"{batch.id}_{kind}.jsonl", "batch_output", content, settles)


def _output_id(batch: _Batch, letter: str) -> str:
    return f"file-{batch.token}{letter}"


def output_file(jobs: Jobs, id: str) -> OpenAIFile | None:
    """The file with this id, if a batch that is done has made it."""
    named = _OUTPUT.fullmatch(id)
    files = () if named is None else _outputs(jobs, named[1])
    return next((file for file in files if file.id == id), None)


def output_files(jobs: Jobs) -> Iterator[OpenAIFile]:
    """All files that batches have made, those of the latest batch first."""
    for token in _batch_tokens(jobs):
        yield from _outputs(jobs, token)


def _batch_tokens(jobs: Jobs) -> Sequence[str]:
    """The tokens of all batches, which will be looked up."""
    tokens = jobs.tokens(_KIND)
    jobs.expect([_id(token) for token in tokens])
    return tokens


# The object

_STATUSES: Mapping[JobState, str] = {
    "created": "validating",
    "pending": "in_progress",
    "done": "completed",
    "cancelled": "cancelled",
}


_WITHOUT_OUTPUT = ("completed", "failed", "expired")
"""The statuses of a batch that may have made no output."""


def _object(batch: _Batch, state: JobState) -> Json:
    begin = created_at(batch.id)
    is_failed = batch.work is None and state != "created"
    is_done = state == "done" and not is_failed
    outcomes = [] if batch.work is None or not is_done else batch.work.outcomes
    failed = sum(outcome.failed for outcome in outcomes)
    expired = any(outcome.expired for outcome in outcomes)
    started = begin + 1 if state != "created" and not is_failed else None
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.request.get("endpoint"),
        "errors": _errors(batch.errors) if is_failed else None,
        "input_file_id": batch.request.get("input_file_id"),
        "completion_window": batch.request.get("completion_window"),
        "status": "failed" if is_failed else "expired" if expired else _STATUSES[state],
        "output_file_id": _output_id(batch, "o") if len(outcomes) > failed else None,
        "error_file_id": _output_id(batch, "e") if failed else None,
        "created_at": begin,
        "in_progress_at": started,
        "expires_at": begin + _DAY,
        "finalizing_at": begin + 3 if is_done else None,
        "completed_at": begin + 4 if is_done and not expired else None,
        "failed_at": begin + 1 if is_failed else None,
        "expired_at": begin + _DAY if expired else None,
        "cancelling_at": begin + 2 if state == "cancelled" else None,
        "cancelled_at": begin + 3 if state == "cancelled" else None,
        "request_counts": {
            "total": len(batch.lines) if state != "created" else 0,
            "completed": len(outcomes) - failed,
            "failed": failed,
        },
        "metadata": batch.request.get("metadata"),
    }


def _errors(errors: Sequence[_LineError]) -> Json:
    data = [
        {"code": error.code, "line": error.line, "message": error.message, "param": None}
        for error in errors
    ]
    return {"object": "list", "data": data}


# Routes


def _create(call: JobCall) -> JobReply:
    request = parse_object(call.body)
    for name in ("input_file_id", "endpoint", "completion_window"):
        if not request.get(name):
            raise missing(name)
    if request["endpoint"] not in _ENDPOINTS:
        raise bad_value("endpoint", request["endpoint"], _ENDPOINTS)
    if request["completion_window"] != "24h":
        raise bad_value("completion_window", request["completion_window"], ("24h",))
    upload = find_upload(call.jobs, string(request["input_file_id"]))
    if upload is None:
        raise not_found("File", string(request["input_file_id"]), param="input_file_id")
    if upload.purpose != "batch":
        raise RequestError(
            f"Invalid 'input_file_id': the file must have the purpose 'batch', got "
            f"'{upload.purpose}'.",
            param="input_file_id",
        )
    token = call.jobs.new(_KIND)
    batch = _Batch(token, request, (), (), None)
    return JobReply(_object(batch, "created"), batch.id)


def _batch_in_path(call: JobCall) -> _Batch:
    id = call.target.segments["batch_id"]
    batch = _find_batch(call.jobs, id.removeprefix("batch_")) if id.startswith("batch_") else None
    if batch is None:
        raise not_found("Batch", id)
    return batch


def _state(batch: _Batch, *, polled: bool = False) -> JobState:
    return "done" if batch.work is None else batch.work.state(polled=polled)


def _show(call: JobCall) -> JobReply:
    batch = _batch_in_path(call)
    shown = _object(batch, _state(batch, polled=True))
    if shown["status"] in _WITHOUT_OUTPUT and not shown["output_file_id"]:
        call.jobs.settle(batch.id)
    return JobReply(shown)


def _cancel(call: JobCall) -> JobReply:
    batch = _batch_in_path(call)
    before = _state(batch)
    if batch.work is None or before == "done" or batch.work.cancel() == "done":
        status = "failed" if batch.work is None else _STATUSES["done"]
        raise RequestError(
            f"Cannot cancel a batch with status '{status}'.", status=409, param="batch_id"
        )
    shown: dict[str, Any] = _object(batch, "cancelled")
    if before == "pending":
        shown |= {"status": "cancelling", "cancelled_at": None}
    return JobReply(shown)


def _list(call: JobCall) -> JobReply:
    """The batches, the latest first."""
    batches = [_find_batch(call.jobs, token) for token in _batch_tokens(call.jobs)]
    found = [_object(batch, _state(batch)) for batch in batches if batch is not None]
    return JobReply(
        list_page(found, call.target.query.get("after"), page_size(call.target, 20, 100))
    )


BATCHES: Mapping[Operation, JobHandler] = {
    "create_batch": _create,
    "batches": _list,
    "batch": _show,
    "cancel_batch": _cancel,
}
"""The routes of batches."""
