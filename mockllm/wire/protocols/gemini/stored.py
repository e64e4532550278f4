"""Objects of clients at Gemini: cached contents, files, and videos, which are operations.

https://ai.google.dev/api/caching, https://ai.google.dev/api/files and
https://ai.google.dev/gemini-api/docs/video; the fields are those that `google-genai` reads.
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.wire.protocols.base import counted_tokens, created_at, rfc3339
from mockllm.wire.protocols.gemini.batches import page_of
from mockllm.wire.protocols.gemini.request import parse
from mockllm.wire.protocols.gemini_common import get
from mockllm.wire.protocols.jobs import JobCall, JobReply, ObjectKind, ObjectRoute, public_fields
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import array, mapping, string

_HOUR, _DAY = 3600, 86400


def _not_found(name: str) -> RequestError:
    return RequestError(f"Requested entity was not found: {name}.", status=404)


def _display_name(fields: object) -> Json:
    given = get(fields, "displayName")
    return {"displayName": given} if given else {}


def _delete(_state: Any, _call: JobCall) -> Json:
    return {}


# Cached contents


def _cache(call: JobCall) -> Json:
    fields = call.fields
    model = string(get(fields, "model"))
    if not model:
        raise RequestError("model: must be specified", param="model")
    segments = {"model": model.rpartition("/")[2]}
    asked = {**fields, "contents": get(fields, "contents") or [{"parts": [{"text": ""}]}]}
    begin = created_at(call.id)
    state = {
        "name": call.id,
        "model": model,
        **_display_name(fields),
        "createTime": rfc3339(begin),
        "updateTime": rfc3339(begin),
        "usageMetadata": {"totalTokenCount": counted_tokens(parse(asked, Target(segments), False))},
        "_begin": begin,
    }
    return _expiring(state, call)


def _expiring(cache: Json, call: JobCall) -> Json:
    """A cached content with the end that the request says: a time, or a `ttl` in seconds."""
    ttl, at = string(get(call.fields, "ttl")), string(get(call.fields, "expireTime"))
    if ttl and not re.fullmatch(r"\d{1,9}(\.\d+)?s", ttl):
        raise RequestError(f"ttl: must be seconds such as 300s, got {ttl!r}", param="ttl")
    seconds = int(float(ttl[:-1])) if ttl else _HOUR
    return {**cache, "expireTime": at or rfc3339(cache["_begin"] + seconds)}


_CACHE = "/cachedContents/{id}"

CACHES = ObjectKind(
    "cached content",
    "cachedContents/",
    _cache,
    lambda other: _not_found(f"cachedContents/{other}"),
    (
        ObjectRoute("POST /cachedContents", "make"),
        ObjectRoute(
            "GET /cachedContents",
            "list",
            lambda found, call: page_of(
                "cachedContents", [public_fields(one, call) for one in found], call.target, 50
            ),
        ),
        ObjectRoute(f"GET {_CACHE}"),
        ObjectRoute(f"PATCH {_CACHE}", change=_expiring),
        ObjectRoute(f"DELETE {_CACHE}", "delete", _delete),
    ),
)

# Files

_UPLOAD = "x-goog-upload-"
"""The beginning of the headers of uploads that are made in two steps or more."""


def _file(call: JobCall) -> Json:
    """A file whose bytes are still to come, or which came with its description (`multipart`)."""
    header = call.headers.get
    described = mapping(get(call.fields, "file"))
    kind = header(f"{_UPLOAD}header-content-type") or get(described, "mimeType")
    begin = created_at(call.id)
    name = _named(call)
    if name and not call.is_kept and call.jobs.find_object(FILES, FILES.prefix + name):
        raise RequestError(f"File {name} already exists.", status=409)
    return {
        "name": call.id,
        **_display_name(described),
        "mimeType": kind or "application/octet-stream",
        "createTime": rfc3339(begin),
        "updateTime": rfc3339(begin),
        "expirationTime": rfc3339(begin + 2 * _DAY),
        "uri": f"{call.url}/v1beta/{call.id}",
        "state": "ACTIVE",
        "source": "UPLOADED",
        "_size": 0,
        "_hash": hashlib.sha256(),
        "_active": False,
    }


def _named(call: JobCall) -> str:
    return string(get(mapping(get(call.fields, "file")), "name")).removeprefix(FILES.prefix)


def _with_bytes(file: Json, call: JobCall) -> Json:
    """A file with more bytes; the last ones make it active."""
    size, digest = file["_size"] + call.size, None
    if file["_hash"] is not None and call.size == len(call.body):
        digest = file["_hash"].copy()
        digest.update(call.body)
    done = {**file, "_size": size, "_hash": digest, "sizeBytes": str(size)}
    if digest is not None:
        done["sha256Hash"] = base64.b64encode(digest.digest()).decode()
    return {**done, "_active": "finalize" in call.headers.get(f"{_UPLOAD}command", "finalize")}


def _upload(file: Json, call: JobCall) -> JobReply:
    if not file["_active"]:
        return JobReply({}, headers={f"{_UPLOAD}status": "active"})
    body = {"file": public_fields(file, call)}
    return JobReply(body, headers={f"{_UPLOAD}status": "final"})


def _begin(_: Json, call: JobCall) -> JobReply:
    url = f"{call.url}/upload/v1beta/{call.id}?upload_protocol=resumable"
    return JobReply({}, headers={f"{_UPLOAD}url": url, f"{_UPLOAD}status": "active"})


def _show_file(file: Json, call: JobCall) -> Json:
    if not file["_active"]:
        raise _not_found(call.id)
    return public_fields(file, call)


FILES = ObjectKind(
    "file",
    "files/",
    _file,
    lambda other: RequestError(
        f"You do not have permission to access the File {other} or it may not exist.",
        status=403,
    ),
    (
        ObjectRoute("POST /upload/{version}/files", "make", _begin),
        ObjectRoute(
            "POST /upload/{version}/files/{id}",
            answer=_upload,
            change=_with_bytes,
            takes_any_size=True,
            is_own=True,  # `google-genai` sends no key with the bytes
        ),
        ObjectRoute(
            "GET /files",
            "list",
            lambda found, call: page_of(
                "files",
                [public_fields(one, call) for one in found if one["_active"]],
                call.target,
                10,
            ),
        ),
        ObjectRoute("GET /files/{id}", answer=_show_file),
        ObjectRoute("DELETE /files/{id}", "delete", _delete),
    ),
    is_marked=True,
    named=_named,
)

# Videos

_RESPONSE = "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse"
_OPERATION = "/models/{model}/operations/{id}"
_MOST_VIDEOS = 4
"""Of one request, as the reference of Vertex AI has it."""


def _video(call: JobCall) -> Json:
    prompts = [string(get(one, "prompt")) for one in array(get(call.fields, "instances"))]
    if not prompts:
        raise RequestError("instances: must have at least one", param="instances")
    count = mapping(get(call.fields, "parameters")).get("sampleCount") or 1
    if type(count) is not int or not 1 <= count <= _MOST_VIDEOS:
        message = f"parameters.sampleCount: must be a whole number from 1 to {_MOST_VIDEOS}"
        raise RequestError(message, param="parameters.sampleCount")
    return {"_count": count, "_model": call.target.segments["model"]}


def _operation(video: Json, call: JobCall) -> Json:
    return {"name": f"models/{video['_model']}/operations/{call.id}"}


def _poll(video: Json, call: JobCall) -> Json:
    """The operation, which is done at the second poll."""
    if call.jobs.work(call.id, ()).state(polled=True) != "done":
        return _operation(video, call)
    uris = [f"{call.url}/v1beta/files/{call.id}-{n}" for n in range(video["_count"])]
    samples = [{"video": {"uri": f"{uri}:download?alt=media"}} for uri in uris]
    response = {"@type": _RESPONSE, "generateVideoResponse": {"generatedSamples": samples}}
    return {**_operation(video, call), "done": True, "response": response}


def _poll_on_vertex(video: Json, call: JobCall) -> Json:
    operation = _poll(video, call)
    if "response" in operation:
        data = base64.b64encode(_mp4()).decode()
        made = [{"bytesBase64Encoded": data, "mimeType": "video/mp4"}] * video["_count"]
        operation["response"] = {"videos": made}
    return operation


def _box(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data) + 8) + kind + data


def _mp4() -> bytes:
    """An MP4 file without tracks (ISO/IEC 14496-12): its type, and a header of no duration."""
    unity = struct.pack(">9I", 65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
    head = struct.pack(">IIIII", 0, 0, 0, 1000, 0) + struct.pack(">IH10x", 65536, 256)
    header = _box(b"mvhd", head + unity + bytes(24) + struct.pack(">I", 1))
    return _box(b"ftyp", b"isom" + bytes(4) + b"isommp41") + _box(b"moov", header)


VIDEOS = ObjectKind(
    "operation",
    "",
    _video,
    _not_found,
    (
        ObjectRoute("POST /models/{model}:predictLongRunning", "make", _operation),
        ObjectRoute(f"GET {_OPERATION}", answer=_poll),
        ObjectRoute("POST /models/{model}:fetchPredictOperation", answer=_poll_on_vertex),
        ObjectRoute(
            "GET /files/{video}:download",
            "call",
            lambda _, __: JobReply(_mp4(), content_type="video/mp4"),
        ),
    ),
    id_in_body=lambda call: string(get(call.fields, "operationName")).rpartition("/")[2],
)

OBJECTS = (CACHES, VIDEOS, FILES)
