"""VCR cassettes, YAML or JSON: https://vcrpy.readthedocs.io/en/latest/.

vcrpy and pytest-recording write version 1, for all their HTTP clients. Some projects have their own
serialisers, with `parsed_body` or one value for a header. A cassette has each answer whole, without
times.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mockllm.core.errors import UsageError, WireError
from mockllm.play.tapes.captured import Captured
from mockllm.record.importers.foreign_files import contents, json_value, yaml_value
from mockllm.record.importers.reading import (
    Entry,
    Unread,
    as_sent,
    body_bytes,
    from_base64,
    header_pairs,
    reason_of,
    timestamp,
    whole,
)
from mockllm.record.redaction.credentials import masked_url

_KEYS = ("interactions", "http_interactions")


def read(path: Path) -> list[Entry]:
    """The entries of a cassette, in order.

    Raises:
        UsageError: the file is no cassette, is of a version that is not known, or has tags that
            name Python objects.
    """
    data = contents(path)
    as_json = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    value = json_value(data, path) if as_json else yaml_value(data, path)
    return [
        exchange(entry, f"{path}#{number}")
        for number, entry in enumerate(interactions(value, path), 1)
    ]


def interactions(value: Any, path: Path) -> list[Any]:
    """The list of interactions in the value of a cassette's file.

    Raises:
        UsageError: the value is no cassette, or of a version that is not known.
    """
    fields = value if isinstance(value, dict) else {}
    found = next((fields[key] for key in _KEYS if key in fields), None)
    if not isinstance(found, list):
        raise UsageError(f"{path} is no cassette: it has no list of 'interactions'")
    if fields.get("version", 1) not in (1, 2):
        raise UsageError(
            f"{path} is a cassette of version {fields['version']}; 1 is read. Record it again with "
            "a current vcrpy."
        )
    return found


def exchange(entry: Any, source: str) -> Entry:
    """The entry of one interaction, as a cassette has it."""
    match entry:
        case {"request": dict(request), "response": dict(response)}:
            pass
        case _:
            return Unread(source, _why_none(entry))
    method = str(request.get("method") or "GET")
    url = str(request.get("uri") or request.get("url") or "")
    try:
        status = _status(response)
        captured = Captured(
            method,
            url,
            header_pairs(request.get("headers")),
            _body(request),
            status,
            header_pairs(response.get("headers")),
            whole(_body(response)),
            at=timestamp(entry.get("recorded_at")),
            source=source,
            reason=reason_of(status, _reason(response)),
        )
        return as_sent(captured)
    except WireError as error:
        return Unread(source, str(error), f"{method} {masked_url(url)}")


def _why_none(entry: Any) -> str:
    """Why an entry is no exchange: some projects write other recordings into files of this form."""
    keys = ", ".join(map(repr, entry)) if isinstance(entry, dict) else ""
    if not keys or {"request", "response"} & entry.keys():
        return "it has no request with its response"
    return f"it is no exchange over HTTP: it has {keys} instead of 'request' and 'response'"


def _status(response: dict[str, Any]) -> int:
    """The status; old vcrpy stubs for httpx write `status_code`, go-vcr writes `code`."""
    status = response.get("status")
    value = status.get("code") if isinstance(status, dict) else None
    for other in (value, response.get("status_code"), response.get("code"), status):
        if isinstance(other, int):
            return other
    raise WireError("the response has no status")


def _reason(response: dict[str, Any]) -> Any:
    status = response.get("status")
    return status.get("message") if isinstance(status, dict) else None


def _body(message: dict[str, Any]) -> bytes:
    if message.get("parsed_body") is not None:
        return body_bytes(message["parsed_body"])
    body = message.get("body", message.get("content"))
    match body:
        case {"base64_string": str(text)}:
            return from_base64(text)
        case {"base64_string": bytes(data)}:
            return from_base64(data.decode("latin-1"))
        case {"string": value}:
            return body_bytes(value)
        case {"encoding": _}:
            return b""
    return body_bytes(body)
