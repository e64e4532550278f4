"""Files that were uploaded to OpenAI: each is the request that uploaded it.

https://platform.openai.com/docs/api-reference/files; the fields are those of `FileObject` in
OpenAI's Python SDK.
"""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.core.errors import RequestError
from mockllm.core.forms import MALFORMED, form_parts, is_multipart
from mockllm.core.record import record
from mockllm.wire.protocols.base import created_at
from mockllm.wire.protocols.jobs import Jobs
from mockllm.wire.protocols.openai_common import missing
from mockllm.wire.protocols.records import Json


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
    kind = headers.get("content-type", "")
    parts = form_parts(kind, body)
    if parts is None and is_multipart(kind):
        raise RequestError(MALFORMED)
    if parts is None:
        raise RequestError(
            "A file is uploaded as a form (multipart/form-data) with 'file' and 'purpose', got "
            f"{kind or 'no content type'}."
        )
    fields = {part.name: part for part in parts}
    for name in ("file", "purpose"):
        if name not in fields:
            raise missing(name)
    purpose = fields["purpose"].data.decode("utf-8", "replace")
    return OpenAIFile(id, fields["file"].filename or "", purpose, fields["file"].data)


def find_upload(jobs: Jobs, id: str, *, even_deleted: bool = False) -> OpenAIFile | None:
    """The uploaded file with an id; None where there is none."""
    kept = jobs.find(id, even_deleted=even_deleted)
    return None if kept is None else read_upload(id, kept.headers, kept.body)
