"""VCR cassettes, YAML or JSON: https://vcrpy.readthedocs.io/en/latest/.

vcrpy and pytest-recording write version 1, for all their HTTP clients. Some projects have their own
serialisers, with `parsed_body`, one value for a header, or (LangChain's) a list of requests beside
one of responses. cassetter names the type of each body; the test agent of Datadog writes a file for
each exchange; pydantic-ai's tests keep the messages of a WebSocket in this form. A cassette has
each answer whole, without times.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

from mockllm.core.errors import UsageError, WireError
from mockllm.core.jsontext import json_bytes
from mockllm.play.tapes.captured import Captured
from mockllm.record.importers.foreign_files import ForeignFile, Unreadable
from mockllm.record.importers.reading import (
    Entry,
    Unread,
    as_sent,
    body_bytes,
    from_base64,
    from_hex,
    header_pairs,
    reason_of,
    timestamp,
    whole,
)
from mockllm.record.importers.socket_entries import is_message, read_frames, read_messages
from mockllm.record.redaction.credentials import masked_url
from mockllm.wire.protocols.base import dumps

_KEYS = ("interactions", "http_interactions")
_OTHERS = ("grpc_interactions", "ws_interactions")
"""Of cassetter."""
_BASE64 = "base64:"


def read(file: ForeignFile) -> list[Entry]:
    """The entries of a cassette, in order.

    Raises:
        UsageError: the file is no cassette, is of a version that is not known, or has tags that
            name Python objects.
    """
    entries = list(enumerate(_interactions(file), 1))
    messages = [(number, entry) for number, entry in entries if is_message(entry)]
    read: list[Entry] = [
        exchange(entry, f"{file.path}#{number}")
        for number, entry in entries
        if not is_message(entry)
    ]
    if messages:  # they are one session, under the number of the first
        source = f"{file.path}#{messages[0][0]}"
        read.append(read_messages([entry for _, entry in messages], source))
    return read


def _interactions(file: ForeignFile) -> list[Any]:
    match file.value:
        case {"request": dict(), "response": dict()} as alone:
            return [alone]
        case {"requests": list(requests), "responses": list(responses)}:
            pairs = zip_longest(requests, responses)
            return [{"request": request, "response": response} for request, response in pairs]
    fields = file.value if isinstance(file.value, dict) else {}
    found = next((fields[key] for key in _KEYS if key in fields), None)
    if not isinstance(found, list):
        raise UsageError(f"{file.path} is no cassette: it has no list of 'interactions'")
    if fields.get("version", 1) not in (1, 2):
        raise UsageError(
            f"{file.path} is a cassette of version {fields['version']}; 1 is read. Record it again "
            "with a current vcrpy."
        )
    return [*found, *({key: entry} for key in _OTHERS for entry in fields.get(key) or ())]


def exchange(entry: Any, source: str) -> Entry:
    """The entry of one interaction, as a cassette has it."""
    match entry:
        case {"request": dict(request), "response": dict(response)}:
            pass
        case {"ws_interactions": interaction}:
            return read_frames(interaction, source)
        case Unreadable(where, problem):
            return Unread(source, f"line {where} {problem}")
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
        case str(text) if text.startswith(_BASE64):  # Datadog's, of what is no text
            return from_base64(text.removeprefix(_BASE64))
        case {"type": "binary", "content": str(digits), **other} if not other:
            return from_hex(digits)
        case {"type": "json", "content": value, **other} if not other:
            return json_bytes(dumps(value))
        case {"type": "text" | "none", **content} if content.keys() <= {"content"}:
            return body_bytes(content.get("content"))
        case {"base64_string": str(text)}:
            return from_base64(text)
        case {"base64_string": bytes(data)}:
            return from_base64(data.decode("latin-1"))
        case {"string": value}:
            return body_bytes(value)
        case {"encoding": _}:
            return b""
    return body_bytes(body)


_OF_AIOHTTP = ("AsyncStreamReaderMixin", "stream_writer")
"""What vcrpy before 8.2 asks of aiohttp, and aiohttp 3.14 has not (vcrpy's issue 995)."""


def find_remedy(reasons: Iterable[str]) -> str:
    """What helps where tests fail for these reasons because of vcrpy; "" where they do not."""
    if not any(name in reason for reason in reasons for name in _OF_AIOHTTP):
        return ""
    return (
        f"vcrpy {version('vcrpy')} does not know aiohttp {version('aiohttp')}, which mockllm "
        "needs: pip install 'vcrpy>=8.2'"
    )
