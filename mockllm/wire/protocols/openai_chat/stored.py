"""Objects of clients at OpenAI besides files and batches: answers with `store`, and vector stores,
in which the words of files are searched.

https://platform.openai.com/docs/api-reference/chat/list and
https://platform.openai.com/docs/api-reference/vector-stores; the fields are those of OpenAI's
Python SDK.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.wire.protocols.base import created_at
from mockllm.wire.protocols.jobs import JobCall, ObjectKind, ObjectRoute, public_fields
from mockllm.wire.protocols.openai_chat.files import find_file
from mockllm.wire.protocols.openai_common import list_page, missing, not_found, page_size
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, mapping, objects, string, utf8_text, whole


def _page(items: list[Json], target: Target, order: str = "desc") -> Json:
    """A page of objects, the latest first, or by `order` the earliest."""
    if target.query.get("order", order) == "asc":
        items.reverse()
    return list_page(items, target.query.get("after"), page_size(target, 20, 100))


def _with_fields(*names: str) -> Callable[[Json, JobCall], Json]:
    """A change of those of some fields that the request has."""
    return lambda state, call: {
        **state,
        **{name: call.fields[name] for name in names if name in call.fields},
    }


# Stored answers


def _completion(call: JobCall) -> Json | None:
    request = call.fields
    if not _is_stored(request) or not call.made:
        return None
    fields = {name: request.get(name) for name in ("metadata", "tool_choice", "tools", "user")}
    return {**call.made, **fields, "_messages": objects(request.get("messages"))}


def _is_stored(body: Fields) -> bool:
    return body.get("store") is True


def _completions(found: list[Json], call: JobCall) -> Json:
    """Those of a `model`, and with `metadata[NAME]`, the earliest first unless it is asked else."""
    query = call.target.query
    wanted = {
        name[9:-1]: value for name, value in query.items() if re.fullmatch(r"metadata\[.+\]", name)
    }
    kept = [
        public_fields(one, call)
        for one in found
        if query.get("model") in (None, one["model"])
        and wanted.items() <= mapping(one["metadata"]).items()
    ]
    return _page(kept, call.target, "asc")


def _messages(state: Json, call: JobCall) -> Json:
    named = [
        {**message, "id": f"{call.id}-{index}"} for index, message in enumerate(state["_messages"])
    ]
    return _page(named[::-1], call.target, "asc")


_COMPLETION = "/chat/completions/{id}"

COMPLETIONS = ObjectKind(
    "stored completion",
    "chatcmpl-",
    _completion,
    lambda other: not_found("ChatCompletion", other, param="completion_id"),
    (
        ObjectRoute("GET /chat/completions", "list", _completions),
        ObjectRoute(f"GET {_COMPLETION}"),
        ObjectRoute(f"POST {_COMPLETION}", change=_with_fields("metadata")),
        ObjectRoute(
            f"DELETE {_COMPLETION}",
            "delete",
            lambda _, call: {"id": call.id, "object": "chat.completion.deleted", "deleted": True},
        ),
        ObjectRoute(f"GET {_COMPLETION}/messages", answer=_messages),
    ),
    is_answer=_is_stored,
)


# Vector stores

_CHUNKS = {"max_chunk_size_tokens": 800, "chunk_overlap_tokens": 400}
"""How files are cut where the request does not say it (`auto`)."""


def _store(call: JobCall) -> Json:
    fields, begin = call.fields, created_at(call.id)
    state: Json = {
        "id": call.id,
        "object": "vector_store",
        "created_at": begin,
        "name": fields.get("name"),
        "expires_after": fields.get("expires_after"),
        "expires_at": None,
        "last_active_at": begin,
        "metadata": fields.get("metadata"),
        "status": "completed",
        "_files": {},
        "_batches": {},
    }
    return _with_files(state, call, [{"file_id": id} for id in array(fields.get("file_ids"))])


def _with_files(store: Json, call: JobCall, given: list[Json]) -> Json:
    """A store with more files; each has what the request says of it, or else of all of them."""
    files = dict(store["_files"])
    for one in given:
        id = string(one.get("file_id"))
        if not id:
            raise missing("file_id")
        file = find_file(call.jobs, id)
        if file is None and not call.is_kept:
            raise not_found("File", id, param="file_id")
        size = 0 if file is None else len(file.content)
        said = {**call.fields, **one}
        chunks = mapping(mapping(said.get("chunking_strategy")).get("static")) or _CHUNKS
        files[id] = {
            "id": id,
            "object": "vector_store.file",
            "created_at": created_at(f"{call.id} {id}"),
            "last_error": None,
            "status": "completed",
            "usage_bytes": size,
            "vector_store_id": call.id,
            "attributes": mapping(said.get("attributes")),
            "chunking_strategy": {"type": "static", "static": dict(chunks)},
        }
    return {**store, "_files": files}


def _counts(number: int) -> Json:
    states = ("in_progress", "completed", "failed", "cancelled", "total")
    return {state: number if state in ("completed", "total") else 0 for state in states}


def _store_object(store: Json, call: JobCall) -> Json:
    files = store["_files"].values()
    sizes = sum(file["usage_bytes"] for file in files)
    return {**public_fields(store, call), "usage_bytes": sizes, "file_counts": _counts(len(files))}


# Its files


def _file_in_path(store: Json, call: JobCall) -> Json:
    id = call.target.segments["file_id"]
    file: Json | None = store["_files"].get(id)
    if file is None:
        raise not_found("VectorStoreFile", id, param="file_id")
    return file


def _with_attributes(store: Json, call: JobCall) -> Json:
    file = _file_in_path(store, call)
    changed = {**file, "attributes": mapping(call.fields.get("attributes"))}
    return {**store, "_files": {**store["_files"], file["id"]: changed}}


def _without_file(store: Json, call: JobCall) -> Json:
    id = _file_in_path(store, call)["id"]
    return {**store, "_files": {key: one for key, one in store["_files"].items() if key != id}}


def _files(store: Json, call: JobCall) -> Json:
    batch = call.target.segments.get("batch_id")
    ids = store["_files"] if batch is None else _batch_in_path(store, call)["_ids"]
    files = [store["_files"][id] for id in reversed(list(ids)) if id in store["_files"]]
    wanted = call.target.query.get("filter")
    return _page([one for one in files if wanted in (None, one["status"])], call.target)


def _batch_id(call: JobCall) -> str:
    return f"vsfb_{call.id.removeprefix(STORES.prefix)}{call.number:04x}"


def _with_batch(store: Json, call: JobCall) -> Json:
    ids = [{"file_id": id} for id in array(call.fields.get("file_ids"))]
    given = ids or objects(call.fields.get("files"))
    if not given:
        raise missing("file_ids")
    id = _batch_id(call)
    batch = {
        "id": id,
        "object": "vector_store.file_batch",
        "created_at": created_at(id),
        "file_counts": _counts(len(given)),
        "status": "completed",
        "vector_store_id": call.id,
        "_ids": [string(one.get("file_id")) for one in given],
    }
    return {**_with_files(store, call, given), "_batches": {**store["_batches"], id: batch}}


def _batch_in_path(store: Json, call: JobCall) -> Json:
    id = call.target.segments["batch_id"]
    batch: Json | None = store["_batches"].get(id)
    if batch is None:
        raise not_found("VectorStoreFileBatch", id, param="batch_id")
    return batch


def _batch_object(store: Json, call: JobCall) -> Json:
    """A batch, which is done at once."""
    return public_fields(_batch_in_path(store, call), call)


def _text(id: str, call: JobCall) -> tuple[str, str]:
    """The name and the text of a file; no text of one that is none."""
    file = find_file(call.jobs, id)
    return ("", "") if file is None else (file.filename, utf8_text(file.content) or "")


def _content(store: Json, call: JobCall) -> Json:
    text = _text(_file_in_path(store, call)["id"], call)[1]
    data = [{"type": "text", "text": text}]
    page = {"object": "vector_store.file_content.page", "data": data}
    return {**page, "has_more": False, "next_page": None}


# Search

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda value, several: value in array(several),
    "nin": lambda value, several: value not in array(several),
}


def _passes(attributes: Fields, condition: Fields) -> bool:
    """Whether a file with these attributes passes a filter."""
    kind = string(condition.get("type"))
    if kind in ("and", "or"):
        parts = (_passes(attributes, part) for part in objects(condition.get("filters")))
        return all(parts) if kind == "and" else any(parts)
    if kind not in _COMPARISONS:
        raise RequestError(f"Invalid filter type: '{kind}'.", param="filters.type")
    value = attributes.get(string(condition.get("key")))
    try:
        return _COMPARISONS[kind](value, condition.get("value"))
    except TypeError:  # a text is no larger than a number, nor what is absent
        return False


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def _chunks(text: str, strategy: Fields) -> Iterator[str]:
    """Pieces of a text, of as many words as the strategy has tokens."""
    words = list(re.finditer(r"\S+", text))
    size = max(1, whole(strategy.get("max_chunk_size_tokens")) or 1)
    step = max(1, size - (whole(strategy.get("chunk_overlap_tokens")) or 0))
    for start in range(0, len(words), step):
        yield text[words[start].start() : words[min(start + size, len(words)) - 1].end()]
        if start + size >= len(words):
            return


def _search(store: Json, call: JobCall) -> Json:
    """The pieces of files that have words of the query, those with most of them first."""
    given = call.fields.get("query")
    queries = [given] if isinstance(given, str) else [string(one) for one in array(given)]
    wanted = _words(" ".join(queries))
    if not wanted:
        raise missing("query")
    condition = mapping(call.fields.get("filters"))
    threshold = mapping(call.fields.get("ranking_options")).get("score_threshold")
    least = threshold if isinstance(threshold, int | float) else 0
    found = []
    for id, file in store["_files"].items():
        if condition and not _passes(file["attributes"], condition):
            continue
        filename, text = _text(id, call)
        for piece in _chunks(text, file["chunking_strategy"]["static"]):
            score = len(wanted & _words(piece)) / len(wanted)
            if score and score >= least:
                content = [{"type": "text", "text": piece}]
                named = {"file_id": id, "filename": filename, "score": score}
                found.append({**named, "attributes": file["attributes"], "content": content})
    found.sort(key=lambda result: -result["score"])
    return {
        "object": "vector_store.search_results.page",
        "search_query": queries,
        "data": found[: whole(call.fields.get("max_num_results")) or 10],
        "has_more": False,
        "next_page": None,
    }


_STORE = "/vector_stores/{id}"
_FILE, _BATCH = f"{_STORE}/files/{{file_id}}", f"{_STORE}/file_batches/{{batch_id}}"

STORES = ObjectKind(
    "vector store",
    "vs_",
    _store,
    lambda other: not_found("VectorStore", other, param="vector_store_id"),
    (
        ObjectRoute("POST /vector_stores", "make", _store_object),
        ObjectRoute(
            "GET /vector_stores",
            "list",
            lambda found, call: _page([_store_object(one, call) for one in found], call.target),
        ),
        ObjectRoute(f"GET {_STORE}", answer=_store_object),
        ObjectRoute(
            f"POST {_STORE}",
            "show",
            _store_object,
            _with_fields("name", "metadata", "expires_after"),
        ),
        ObjectRoute(
            f"DELETE {_STORE}",
            "delete",
            lambda _, call: {"id": call.id, "object": "vector_store.deleted", "deleted": True},
        ),
        ObjectRoute(f"POST {_STORE}/search", answer=_search),
        ObjectRoute(
            f"POST {_STORE}/files",
            answer=lambda store, call: store["_files"][call.fields["file_id"]],
            change=lambda store, call: _with_files(store, call, [call.fields]),
        ),
        ObjectRoute(f"GET {_STORE}/files", answer=_files),
        ObjectRoute(f"GET {_FILE}", answer=_file_in_path),
        ObjectRoute(f"POST {_FILE}", answer=_file_in_path, change=_with_attributes),
        ObjectRoute(
            f"DELETE {_FILE}",
            answer=lambda _, call: {
                "id": call.target.segments["file_id"],
                "object": "vector_store.file.deleted",
                "deleted": True,
            },
            change=_without_file,
        ),
        ObjectRoute(f"GET {_FILE}/content", answer=_content),
        ObjectRoute(
            f"POST {_STORE}/file_batches",
            answer=lambda store, call: public_fields(store["_batches"][_batch_id(call)], call),
            change=_with_batch,
        ),
        ObjectRoute(f"GET {_BATCH}", answer=_batch_object),
        ObjectRoute(f"POST {_BATCH}/cancel", answer=_batch_object),
        ObjectRoute(f"GET {_BATCH}/files", answer=_files),
    ),
)
