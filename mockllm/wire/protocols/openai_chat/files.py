"""The routes of OpenAI's files: those that were uploaded, and those that batches make.

https://platform.openai.com/docs/api-reference/files
"""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.wire.protocols.base import Operation
from mockllm.wire.protocols.jobs import JobCall, JobHandler, JobReply, Jobs
from mockllm.wire.protocols.openai_chat.batches import output_file, output_files
from mockllm.wire.protocols.openai_chat.uploads import (
    OpenAIFile,
    file_in_parts,
    files_in_parts,
    find_upload,
    read_upload,
)
from mockllm.wire.protocols.openai_common import list_page, not_found, page_size

_KIND = "file"
_MOST = 10_000
"""How many files a page may have; the service has the same bound."""


def _id(token: str) -> str:
    return f"file-{token}"


def _create(call: JobCall) -> JobReply:
    read_upload("", call.headers, call.body)  # before anything is counted
    id = _id(call.jobs.new(_KIND))
    return JobReply(read_upload(id, call.headers, call.body).as_json(), id)


def _file_in_path(call: JobCall) -> OpenAIFile:
    id = call.target.segments["file_id"]
    file = find_file(call.jobs, id)
    if file is None:
        raise not_found("File", id)
    return file


def find_file(jobs: Jobs, id: str) -> OpenAIFile | None:
    """The file with an id, that a batch made, or that was uploaded at once or in parts; None where
    there is none."""
    return output_file(jobs, id) or find_upload(jobs, id) or file_in_parts(jobs, id)


def _delete(call: JobCall) -> JobReply:
    id = _file_in_path(call).id
    call.jobs.delete(id)
    return JobReply({"id": id, "object": "file", "deleted": True})


def _list(call: JobCall) -> JobReply:
    """The files that batches made, then those that were uploaded, each the latest first."""
    ids = [_id(token) for token in call.jobs.tokens(_KIND)]
    call.jobs.expect(ids)
    uploads = (find_upload(call.jobs, id) for id in ids)
    files = [*output_files(call.jobs), *filter(None, uploads), *files_in_parts(call.jobs)]
    query = call.target.query
    purpose = query.get("purpose")
    found = [file.as_json() for file in files if purpose in (None, file.purpose)]
    if query.get("order") == "asc":
        found.reverse()
    return JobReply(list_page(found, query.get("after"), page_size(call.target, _MOST, _MOST)))


def _content(call: JobCall) -> JobReply:
    file = _file_in_path(call)
    if file.settles:
        call.jobs.settle(file.settles)
    return JobReply(file.content, content_type="application/octet-stream")


FILES: Mapping[Operation, JobHandler] = {
    "create_file": _create,
    "files": _list,
    "file": lambda call: JobReply(_file_in_path(call).as_json()),
    "file_content": _content,
    "delete_file": _delete,
}
"""The routes of files."""
