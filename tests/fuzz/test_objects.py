"""No value of a request for a stored object breaks the server, and none breaks what is read of the
object afterwards: each look-up reads the requests that made and changed it again."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from mockllm import ServerOptions, ServerThread, loads
from mockllm.wire.protocols import PROTOCOLS
from tests.fuzz.hostile import _paths, _replaced
from tests.fuzz.playing import _port
from tests.fuzz.valid import SCENARIOS
from tests.fuzz.values import VALUES, Raw
from tests.timeouts import GIVE_UP

_TEXT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}
BODIES: dict[tuple[str, str], tuple[tuple[str, str, Any], ...]] = {
    ("chat", "stored completion"): (
        ("POST", "/v1/chat/completions/{id}", {"metadata": {"a": "b"}}),
        ("GET", "/v1/chat/completions/{id}/messages?limit=2", None),
    ),
    ("chat", "vector store"): (
        (
            "POST",
            "/v1/vector_stores",
            {"name": "n", "file_ids": ["{file}"], "metadata": {"a": "b"}},
        ),
        ("POST", "/v1/vector_stores/{id}", {"name": "m", "expires_after": {"days": 1}}),
        (
            "POST",
            "/v1/vector_stores/{id}/files",
            {
                "file_id": "{file}",
                "attributes": {"year": 2026},
                "chunking_strategy": {
                    "type": "static",
                    "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 10},
                },
            },
        ),
        ("POST", "/v1/vector_stores/{id}/files/{file}", {"attributes": {"year": 2025}}),
        (
            "POST",
            "/v1/vector_stores/{id}/file_batches",
            {"files": [{"file_id": "{file}", "attributes": {"a": 1}}]},
        ),
        ("POST", "/v1/vector_stores/{id}/file_batches", {"file_ids": ["{file}"]}),
        (
            "POST",
            "/v1/vector_stores/{id}/search",
            {
                "query": ["some", "words"],
                "max_num_results": 3,
                "ranking_options": {"score_threshold": 0.1},
                "filters": {
                    "type": "and",
                    "filters": [
                        {"type": "gte", "key": "year", "value": 2020},
                        {"type": "in", "key": "year", "value": [2025, 2026]},
                    ],
                },
            },
        ),
        ("GET", "/v1/vector_stores/{id}/files?limit=2&order=asc", None),
        ("GET", "/v1/vector_stores/{id}/files/{file}/content", None),
    ),
    ("chat", "upload"): (
        (
            "POST",
            "/v1/uploads",
            {"bytes": 3, "filename": "a", "mime_type": "text/plain", "purpose": "assistants"},
        ),
        ("POST", "/v1/uploads/{id}/complete", {"part_ids": ["part_1"], "md5": "x"}),
        ("POST", "/v1/uploads/{id}/cancel", None),
    ),
    ("responses", "conversation"): (
        ("POST", "/v1/conversations", {"metadata": {"a": "b"}, "items": [_TEXT]}),
        ("POST", "/v1/conversations/{id}", {"metadata": {"a": "c"}}),
        ("POST", "/v1/conversations/{id}/items", {"items": [_TEXT]}),
        ("GET", "/v1/conversations/{id}/items?limit=2&order=asc", None),
    ),
    ("gemini", "cached content"): (
        (
            "POST",
            "/v1beta/cachedContents",
            {
                "model": "models/m",
                "displayName": "d",
                "contents": [{"role": "user", "parts": [{"text": "a"}]}],
                "ttl": "300s",
            },
        ),
        ("PATCH", "/v1beta/{id}", {"ttl": "600s", "expireTime": "2026-01-01T00:00:00Z"}),
        ("GET", "/v1beta/cachedContents?pageSize=2", None),
    ),
    ("gemini", "file"): (
        ("POST", "/upload/v1beta/files", {"file": {"displayName": "d", "mimeType": "text/plain"}}),
        ("GET", "/v1beta/files?pageSize=2", None),
    ),
    ("gemini", "operation"): (
        (
            "POST",
            "/v1beta/models/veo:predictLongRunning",
            {"instances": [{"prompt": "a"}], "parameters": {"sampleCount": 2}},
        ),
        ("GET", "/v1beta/models/veo/operations/{id}", None),
        ("GET", "/v1beta/models/veo/operations/{id}?again", None),  # done at the second poll
        (
            "POST",
            "/v1beta/models/veo:fetchPredictOperation",
            {"operationName": "projects/p/operations/{id}"},
        ),
    ),
    ("ollama", "model"): (
        ("POST", "/api/pull", {"model": "one", "stream": False}),
        ("POST", "/api/create", {"model": "two", "from": "one", "system": "s"}),
        ("POST", "/api/copy", {"source": "one", "destination": "three"}),
        ("POST", "/api/push", {"model": "one"}),
        ("POST", "/api/blobs/sha256:abc", None),
        ("GET", "/api/tags", None),
        ("POST", "/api/show", {"model": "one"}),
        ("DELETE", "/api/delete", {"model": "one"}),
    ),
    ("cohere", "chat"): (
        (
            "POST",
            "/v1/chat",
            {
                "message": "hello",
                "preamble": "p",
                "stream": True,
                "chat_history": [
                    {"role": "USER", "message": "a"},
                    {
                        "role": "CHATBOT",
                        "message": "b",
                        "tool_calls": [{"name": "f", "parameters": {"a": 1}}],
                    },
                    {
                        "role": "TOOL",
                        "tool_results": [{"call": {"name": "f"}, "outputs": [{"a": 1}]}],
                    },
                ],
                "tools": [
                    {
                        "name": "f",
                        "description": "d",
                        "parameter_definitions": {
                            "a": {"type": "str", "description": "d", "required": True}
                        },
                    }
                ],
            },
        ),
    ),
}
"""By API and kind of objects, the requests with a body of JSON: the first one makes an object."""

_OF_FORMS = {("anthropic", "file"), ("anthropic", "skill")}
"""Kinds whose requests are forms, or have no body."""

KINDS = [(protocol.name, kind) for protocol in PROTOCOLS.values() for kind in protocol.objects]


def test_every_kind_of_objects_is_tried() -> None:
    kinds = {(api, kind.name) for api, kind in KINDS}
    assert kinds == BODIES.keys() | _OF_FORMS


@pytest.mark.slow
@pytest.mark.parametrize(("api", "name"), BODIES)
def test_no_value_breaks_the_server_or_what_is_read_afterwards(api: str, name: str) -> None:
    with ServerThread(list(loads(SCENARIOS)), ServerOptions(fallback=True)) as server:
        client = http.client.HTTPConnection("127.0.0.1", _port(server), timeout=GIVE_UP)
        headers = {"content-type": "application/json", **PROTOCOLS[api].client.headers}
        requests, failed, named = BODIES[api, name], [], {}
        first = _BEGIN if name == "stored completion" else requests[0]
        for request in requests:
            for number, (what, changed) in enumerate(_changed(request)):
                if number % _OF_ONE == 0:  # the journal, which has the objects, is bounded
                    file = _send(client, "POST", "/v1/files", _FORM, {"content-type": _FORM_TYPE})
                    named = {"file": json.loads(file[1])["id"]}
                    named["id"] = _id(_send(client, *_filled(first, named), headers)[1])
                method, target, body = _filled(changed, named)
                status, data = _send(client, method, target, body, headers)
                assert status < 400 or what or request in _UNKNOWN, data
                made = _id(data) if request is first else ""
                seen = {**named, "id": made or named["id"]}
                after = [
                    (path, _send(client, "GET", *_filled(("", path, None), seen)[1:], headers))
                    for verb, path, _ in requests
                    if verb == "GET"
                ]
                failed += [
                    f"{method} {target} {what}, then {path}: {status} {data[:200]!r}"
                    for path, (status, data) in [("itself", (status, data)), *after]
                    if status >= 500
                ]
        client.close()
        assert not failed, "\n".join(failed[:10])


@pytest.mark.parametrize(("api", "name"), BODIES)
def test_an_object_is_there_that_was_made_with_a_slash_at_the_end(api: str, name: str) -> None:
    first, *later = (
        BODIES[api, name] if name != "stored completion" else (_BEGIN, *BODIES[api, name])
    )

    def statuses(end: str) -> list[int]:
        file = _send(client, "POST", "/v1/files", _FORM, {"content-type": _FORM_TYPE})
        named = {"file": json.loads(file[1])["id"]}
        method, target, body = _filled((first[0], first[1] + end, first[2]), named)
        status, data = _send(client, method, target, body, headers)
        named["id"] = _id(data)
        return [status, *(_send(client, *_filled(each, named), headers)[0] for each in later)]

    with ServerThread(list(loads(SCENARIOS)), ServerOptions(fallback=True)) as server:
        client = http.client.HTTPConnection("127.0.0.1", _port(server), timeout=GIVE_UP)
        headers = {"content-type": "application/json", **PROTOCOLS[api].client.headers}
        assert statuses("/") == statuses("")
        client.close()


_UNKNOWN = (("POST", "/v1/uploads/{id}/complete", BODIES["chat", "upload"][1][2]),)
"""Those that name what is not there."""

_BEGIN = (
    "POST",
    "/v1/chat/completions",
    {"model": "m", "store": True, "messages": [{"role": "user", "content": "a"}]},
)
_OF_ONE = 50
"""Requests that are about one object."""

_FORM_TYPE = "multipart/form-data; boundary=B"
_FORM = (
    b'--B\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nassistants\r\n--B\r\n'
    b'content-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nsome words\r\n--B--\r\n'
)


def _id(data: bytes) -> str:
    """The id of what was made; "" where the answer has none."""
    try:
        made = json.loads(data)
    except ValueError:
        return ""
    return str(made.get("id") or made.get("name", "").removeprefix("models/veo/operations/"))


def _changed(request: tuple[str, str, Any]) -> Iterator[tuple[str, tuple[str, str, Any]]]:
    """A request, and the same with each hostile value in each place of its body."""
    method, target, body = request
    yield "", request
    for path in _paths(body) if body is not None else ():
        for value in VALUES:
            if not isinstance(value, Raw):
                where = ".".join(map(str, path))
                yield f"{where}: {value!r:.60}", (method, target, _replaced(body, path, value))


def _filled(request: tuple[str, str, Any], named: dict[str, str]) -> tuple[str, str, bytes | None]:
    """A request with the ids of what was made."""
    method, target, body = request
    text = "" if body is None else json.dumps(body)
    for key, value in named.items():
        target, text = target.replace(f"{{{key}}}", value), text.replace(f"{{{key}}}", value)
    return method, target, text.encode() if text else None


def _send(
    client: http.client.HTTPConnection,
    method: str,
    target: str,
    body: bytes | None,
    headers: dict[str, str],
) -> tuple[int, bytes]:
    client.request(method, target, body, headers)
    answer = client.getresponse()
    return answer.status, answer.read()
