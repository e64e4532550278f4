"""VCR cassettes, YAML or JSON: https://vcrpy.readthedocs.io/en/latest/.

What vcrpy writes (version 1, of all its clients), pytest-recording with it, and what projects
make of it by serialisers of their own (`parsed_body`, one value for a header). A cassette holds
no times and every answer in one piece.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mockllm.errors import UsageError, WireError
from mockllm.importers.files import contents, json_value, yaml_value
from mockllm.importers.reading import (
    Found,
    Unread,
    captured,
    from_base64,
    header_pairs,
    moment,
    stored,
)

__all__ = ["interactions", "read"]

_KEYS = ("interactions", "http_interactions")


def read(path: Path) -> list[Found]:
    """The exchanges of a cassette, in its order.

    Raises:
        UsageError: the file is no cassette, is of a version that is not known, or has tags that
            name Python objects.
    """
    data = contents(path)
    as_json = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    value = json_value(data, path) if as_json else yaml_value(data, path)
    return [
        _exchange(entry, f"{path}#{number}")
        for number, entry in enumerate(interactions(value, path), 1)
    ]


def interactions(value: Any, path: Path) -> list[Any]:
    """The list of what was recorded, in the value of a cassette's file."""
    found = next((value[key] for key in _KEYS if key in value), None) if _is(value) else None
    if not isinstance(found, list):
        raise UsageError(f"{path} is no cassette: it has no list of 'interactions'")
    if value.get("version", 1) not in (1, 2):
        raise UsageError(
            f"{path} is a cassette of version {value['version']}; 1 is read. Record it again with "
            "a current vcrpy."
        )
    return found


def _is(value: Any) -> bool:
    return isinstance(value, dict)


def _exchange(entry: Any, source: str) -> Found:
    match entry:
        case {"request": dict(request), "response": dict(response)}:
            pass
        case _:
            return Unread(source, "it has no request with its response")
    method = str(request.get("method") or "GET")
    url = str(request.get("uri") or request.get("url") or "")
    try:
        return captured(
            source=source,
            method=method,
            url=url,
            request_headers=header_pairs(request.get("headers")),
            request_body=_body(request),
            status=_status(response),
            headers=header_pairs(response.get("headers")),
            body=_body(response),
            at=moment(entry.get("recorded_at")),
        )
    except WireError as error:
        return Unread(source, str(error), f"{method} {url}")


def _status(response: dict[str, Any]) -> int:
    """Old stubs for httpx write `status_code`, go-vcr writes `code`."""
    status = response.get("status")
    value = status.get("code") if isinstance(status, dict) else None
    for other in (value, response.get("status_code"), response.get("code"), status):
        if isinstance(other, int):
            return other
    raise WireError("the response has no status")


def _body(message: dict[str, Any]) -> bytes:
    """What was sent or received; where a body was parsed, its value as compact JSON."""
    if message.get("parsed_body") is not None:
        return stored(message["parsed_body"])
    body = message.get("body", message.get("content"))
    match body:
        case {"base64_string": str(text)}:
            return from_base64(text)
        case {"base64_string": bytes(data)}:
            return from_base64(data.decode("latin-1"))
        case {"string": value}:
            return stored(value)
        case {"encoding": _}:
            return b""
    return stored(body)
