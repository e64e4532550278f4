"""Files that were uploaded to OpenAI, at once or in parts: each is the requests that uploaded it.

https://platform.openai.com/docs/api-reference/files and
https://platform.openai.com/docs/api-reference/uploads; the fields are those of `FileObject`,
`Upload` and `UploadPart` in OpenAI's Python SDK.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from mockllm.core.errors import RequestError
from mockllm.core.forms import MALFORMED, FormPart, form_parts, is_multipart
from mockllm.core.record import record
from mockllm.wire.protocols.base import created_at
from mockllm.wire.protocols.jobs import JobCall, Jobs, ObjectKind, ObjectRoute
from mockllm.wire.protocols.openai_common import missing, not_found
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import array, string


@record
class OpenAIFile:
    """A file with its content.

    Args:
        settles: the id of the batch whose answers it has; "" for other files.
    """

    id: str
    filename: str
    purpose: str
    content: bytes
    settles: str = ""

    def as_json(self) -> Json:
        """The `FileObject`."""
        return {
            "object": "file",
            "id": self.id,
            "purpose": self.purpose,
            "filename": self.filename,
            "bytes": len(self.content),
            "created_at": created_at(self.id),
            "expires_at": None,
            "status": "processed",
            "status_details": None,
        }


def read_upload(id: str, headers: Mapping[str, str], body: bytes) -> OpenAIFile:
    """The file in a request, which is to have this id.

    Raises:
        RequestError: there is none.
    """
    fields = _form(headers, body, "file", "purpose")
    purpose = fields["purpose"].data.decode("utf-8", "replace")
    return OpenAIFile(id, fields["file"].filename or "", purpose, fields["file"].data)


def _form(headers: Mapping[str, str], body: bytes, *needed: str) -> Mapping[str, FormPart]:
    kind = headers.get("content-type", "")
    parts = form_parts(kind, body)
    if parts is None and is_multipart(kind):
        raise RequestError(MALFORMED)
    if parts is None:
        raise RequestError(
            "A file is uploaded as a form (multipart/form-data) with "
            f"{' and '.join(map(repr, needed))}, got {kind or 'no content type'}."
        )
    fields = {part.name: part for part in parts}
    for name in needed:
        if name not in fields:
            raise missing(name)
    return fields


def find_upload(jobs: Jobs, id: str, *, even_deleted: bool = False) -> OpenAIFile | None:
    """The uploaded file with an id; None where there is none."""
    kept = jobs.find(id, even_deleted=even_deleted)
    return None if kept is None else read_upload(id, kept.headers, kept.body)


# In parts

_HOUR = 3600
_END = "u"
"""The end of the id of a file that was uploaded in parts, after the token of its upload."""


def file_in_parts(jobs: Jobs, id: str) -> OpenAIFile | None:
    """The file with an id that was uploaded in parts; None where there is none."""
    if not id.endswith(_END) or jobs.is_deleted(id):
        return None
    upload = jobs.find_object(UPLOADS, UPLOADS.prefix + id.removeprefix("file-")[:-1])
    return None if upload is None or upload["status"] != "completed" else _file(upload)


def files_in_parts(jobs: Jobs) -> list[OpenAIFile]:
    """All files that were uploaded in parts, the latest first."""
    files = [_file(one) for one in jobs.objects(UPLOADS) if one["status"] == "completed"]
    jobs.expect([file.id for file in files])
    return [file for file in files if not jobs.is_deleted(file.id)]


def _file(upload: Json) -> OpenAIFile:
    id = f"file-{upload['id'].removeprefix(UPLOADS.prefix)}{_END}"
    return OpenAIFile(id, upload["filename"], upload["purpose"], upload["_content"])


def _upload(call: JobCall) -> Json:
    for name in ("bytes", "filename", "mime_type", "purpose"):
        if not call.fields.get(name):
            raise missing(name)
    begin = created_at(call.id)
    return {
        "id": call.id,
        "object": "upload",
        "bytes": call.fields["bytes"],
        "created_at": begin,
        "filename": call.fields["filename"],
        "purpose": call.fields["purpose"],
        "status": "pending",
        "expires_at": begin + _HOUR,
        "file": None,
        "_parts": {},
    }


def _check_pending(upload: Json) -> Json:
    if upload["status"] != "pending":
        raise RequestError(f"Upload {upload['id']} has status {upload['status']}, not pending.")
    return upload


def _part_id(call: JobCall) -> str:
    return f"part_{call.id.removeprefix(UPLOADS.prefix)}{call.number:04x}"


def _with_part(upload: Json, call: JobCall) -> Json:
    data = _form(call.headers, call.body, "data")["data"].data
    return {**upload, "_parts": {**_check_pending(upload)["_parts"], _part_id(call): data}}


def _part(_: Json, call: JobCall) -> Json:
    id = _part_id(call)
    created = created_at(id)
    return {"id": id, "object": "upload.part", "created_at": created, "upload_id": call.id}


def _complete(upload: Json, call: JobCall) -> Json:
    parts = _check_pending(upload)["_parts"]
    ids = list(map(string, array(call.fields.get("part_ids"))))
    for id in ids:
        if id not in parts:
            raise not_found("Upload Part", id, param="part_ids")
    size = sum(len(parts[id]) for id in ids)  # a part may be named a million times
    if size != upload["bytes"]:
        raise RequestError(
            f"The parts have {size} bytes, and the upload was created for {upload['bytes']}.",
            param="bytes",
        )
    content = b"".join(parts[id] for id in ids)
    checksum = call.fields.get("md5")
    if checksum and checksum != hashlib.md5(content, usedforsecurity=False).hexdigest():
        raise RequestError("The checksum is not that of the parts.", param="md5")
    done = {**upload, "status": "completed", "_content": content}
    return {**done, "file": _file(done).as_json()}


UPLOADS = ObjectKind(
    "upload",
    "upload_",
    _upload,
    lambda other: not_found("Upload", other, param="upload_id"),
    (
        ObjectRoute("POST /uploads", "make"),
        ObjectRoute("POST /uploads/{id}/parts", answer=_part, change=_with_part),
        ObjectRoute("POST /uploads/{id}/complete", change=_complete),
        ObjectRoute(
            "POST /uploads/{id}/cancel",
            change=lambda upload, _: {**_check_pending(upload), "status": "cancelled"},
        ),
    ),
)
"""Files that are uploaded in parts."""
