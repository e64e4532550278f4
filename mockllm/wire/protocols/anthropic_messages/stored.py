"""Objects of clients at Anthropic: files and skills.

https://docs.claude.com/en/api/files-create and https://docs.claude.com/en/api/skills; the fields
are those of Anthropic's Python SDK.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mockllm.core.errors import RequestError
from mockllm.core.forms import FormPart, form_parts
from mockllm.core.seeded import derive
from mockllm.wire.protocols.anthropic_messages.service import page
from mockllm.wire.protocols.base import created_at, rfc3339
from mockllm.wire.protocols.jobs import JobCall, JobReply, ObjectKind, ObjectRoute, public_fields
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import digits


def _not_found(kind: str, id: str) -> RequestError:
    return RequestError(f"{kind} not found: {id}", status=404)


def _page(found: Iterable[Json], call: JobCall) -> Json:
    """A page of objects like one of models, or by the query's `page`, the number of the first
    object; SDKs before 2.0 read it by `after_id`."""
    objects = {value["id"]: public_fields(value, call) for value in found}
    ids = list(objects)
    first = digits(call.target.query.get("page", "0")) or 0
    shown = page(ids[first:], call.target, objects.__getitem__)
    end = ids.index(shown["last_id"]) + 1 if shown["has_more"] else len(ids)
    return {**shown, "next_page": str(end) if end < len(ids) else None}


def _parts(call: JobCall, needed: str) -> list[FormPart]:
    """The parts of a form with this name, of which there must be one."""
    parts = form_parts(call.headers.get("content-type", ""), call.body) or []
    found = [part for part in parts if part.name == needed or part.name == f"{needed}[]"]
    if not found:
        raise RequestError(f"{needed}: Field required", param=needed)
    return found


# Files


def _file(call: JobCall) -> Json:
    part = _parts(call, "file")[0]
    return {
        "id": call.id,
        "type": "file",
        "filename": part.filename or "",
        "mime_type": part.content_type,
        "size_bytes": len(part.data),
        "created_at": rfc3339(created_at(call.id)),
        "downloadable": False,
    }


def _content(file: Json, _: JobCall) -> JobReply:
    raise RequestError(f"File is not downloadable: {file['id']}")


_FILE = "/files/{id}"

FILES = ObjectKind(
    "file",
    "file_",
    _file,
    lambda other: _not_found("File", other),
    (
        ObjectRoute("POST /files", "make"),
        ObjectRoute("GET /files", "list", _page),
        ObjectRoute(f"GET {_FILE}"),
        ObjectRoute(f"GET {_FILE}/content", answer=_content),
        ObjectRoute(
            f"DELETE {_FILE}", "delete", lambda _, call: {"id": call.id, "type": "file_deleted"}
        ),
    ),
    is_marked=True,
)

# Skills

_KEY = re.compile(r"^(name|description):[ \t]*(.*?)[ \t]*$", re.MULTILINE)


def _skill(call: JobCall) -> Json:
    moment = rfc3339(created_at(call.id))
    titles = [
        part.data.decode("utf-8", "replace")
        for part in form_parts(call.headers.get("content-type", ""), call.body) or []
        if part.name in ("display_name", "display_title")
    ]
    skill = _with_version({"id": call.id, "_versions": {}, "created_at": moment}, call)
    title = titles[0] if titles else skill["_versions"][skill["latest_version_id"]]["name"]
    source = {"type": "custom"}
    return {**skill, "type": "skill", "display_name": title, "source": source}


def _with_version(skill: Json, call: JobCall) -> Json:
    files = _parts(call, "files")
    texts = [one.data for one in files if (one.filename or "").rpartition("/")[2] == "SKILL.md"]
    if not texts:
        raise RequestError("files: A SKILL.md file is required at the root", param="files")
    said = dict(_KEY.findall(texts[0].decode("utf-8", "replace")))
    id = "skillver_" + derive(f"{call.id} {call.number}", "version")
    moment = rfc3339(created_at(id))
    version = {
        "id": id,
        "type": "skill_version",
        "created_at": moment,
        "name": said.get("name", ""),
        "description": said.get("description", ""),
        "skill_id": call.id,
    }
    versions = {**skill["_versions"], id: version}
    return {**skill, "latest_version_id": id, "updated_at": moment, "_versions": versions}


def _version(skill: Json, call: JobCall) -> Json:
    id = call.target.segments["version"]
    version: Json | None = skill["_versions"].get(id)
    if version is None:
        raise _not_found("Skill version", id)
    return version


def _without_version(skill: Json, call: JobCall) -> Json:
    id = _version(skill, call)["id"]
    return {
        **skill,
        "_versions": {key: one for key, one in skill["_versions"].items() if key != id},
    }


_SKILL = "/skills/{id}"

SKILLS = ObjectKind(
    "skill",
    "skill_",
    _skill,
    lambda other: _not_found("Skill", other),
    (
        ObjectRoute("POST /skills", "make"),
        ObjectRoute("GET /skills", "list", _page),
        ObjectRoute(f"GET {_SKILL}"),
        ObjectRoute(
            f"DELETE {_SKILL}", "delete", lambda _, call: {"id": call.id, "type": "skill_deleted"}
        ),
        ObjectRoute(
            f"POST {_SKILL}/versions",
            answer=lambda skill, _: skill["_versions"][skill["latest_version_id"]],
            change=_with_version,
        ),
        ObjectRoute(
            f"GET {_SKILL}/versions",
            answer=lambda skill, call: _page(reversed(skill["_versions"].values()), call),
        ),
        ObjectRoute(f"GET {_SKILL}/versions/{{version}}", answer=_version),
        ObjectRoute(
            f"DELETE {_SKILL}/versions/{{version}}",
            answer=lambda _, call: {
                "id": call.target.segments["version"],
                "type": "skill_version_deleted",
            },
            change=_without_version,
        ),
    ),
    is_marked=True,
)
