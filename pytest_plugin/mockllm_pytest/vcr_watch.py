"""vcrpy, while it replays: which cassettes are opened, which recordings answer, which requests are
refused. It neither sends nor writes anything then."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True)
class Watcher:
    """What is called, each with the cassette.

    None of these may do what blocks: suites forbid that while an event loop runs.

    Args:
        opened: when it is loaded.
        played: when a recording answers, with its index, the request as the HTTP library sends it,
            and the answer.
        refused: when none does, with the request.
    """

    opened: Callable[[Any], None]
    played: Callable[[Any, int, Any, Any], None]
    refused: Callable[[Any, Any], None]


def watch_vcr(watcher: Watcher) -> None:
    """Watches vcrpy from now on, until the process ends."""
    from vcr.cassette import Cassette  # type: ignore[import-untyped]
    from vcr.errors import (  # type: ignore[import-untyped]
        CannotOverwriteExistingCassetteException,
    )
    from vcr.record_mode import RecordMode  # type: ignore[import-untyped]

    load, play = Cassette.load, Cassette.play_response
    refuse = CannotOverwriteExistingCassetteException.__init__

    def load_for_replay(**options: Any) -> Any:
        cassette = load(**{**options, "record_mode": RecordMode.NONE})
        watcher.opened(cassette)
        return cassette

    @wraps(play)
    def note_response(cassette: Any, request: Any) -> Any:
        before = dict(cassette.play_counts)
        response = play(cassette, request)
        counts = cassette.play_counts.items()
        index = next(index for index, count in counts if count != before.get(index, 0))
        watcher.played(cassette, index, request, response)
        return response

    @wraps(refuse)
    def note_refusal(error: Any, *args: Any, **options: Any) -> None:
        refuse(error, *args, **options)
        watcher.refused(error.cassette, error.failed_request)

    CannotOverwriteExistingCassetteException.__init__ = note_refusal
    Cassette.load, Cassette.play_response = staticmethod(load_for_replay), note_response
    Cassette._save = lambda *_, **__: None  # noqa: SLF001 - nothing may be written
    if find_spec("pytest_recording") is not None:
        _keep_cassettes()


def _keep_cassettes() -> None:
    """Takes the mode from pytest-recording: it removes the cassettes of the mode "rewrite"."""
    from pytest_recording import _vcr as recording

    use = recording.use_cassette

    @wraps(use)
    def use_for_replay(
        name: str, folder: str, _: str, markers: Any, config: Any, *rest: Any
    ) -> Any:
        for mark in markers:
            mark.kwargs.pop("record_mode", None)
        config = {key: value for key, value in config.items() if key != "record_mode"}
        return use(name, folder, "none", markers, config, *rest)

    recording.use_cassette = use_for_replay  # type: ignore[assignment]


def path_of(cassette: Any) -> str:
    """The path of a cassette."""
    return str(cassette._path)  # noqa: SLF001 - vcrpy 4 to 7 have no other name for it


def request_as_written(cassette: Any, request: Any) -> Any:
    """A request as its cassette would have it: serialisers of a suite may change what they write.

    Args:
        request: after the filters of the cassette.
    """
    from vcr.serialize import deserialize, serialize  # type: ignore[import-untyped]

    answer = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": ""}}
    serializer = cassette._serializer  # noqa: SLF001 - there is no other name for it
    try:
        text = serialize({"requests": [request], "responses": [answer]}, serializer)
        return deserialize(text, serializer)[0][0]
    except Exception:  # noqa: BLE001 - of a serialiser of the suite, at an answer that is made up
        return request


def request_as_stored(request: Any, body: bytes | None) -> dict[str, Any]:
    """A request as a cassette has it."""
    return {
        "method": request.method,
        "uri": request.uri,
        "headers": _headers(request.headers),
        "body": _base64(body),
    }


def response_as_stored(response: Mapping[str, Any]) -> dict[str, Any]:
    """A response as a cassette has it."""
    return {
        "status": response.get("status") or {"code": response.get("status_code")},
        "headers": _headers(response.get("headers") or {}),
        "body": _base64(body_bytes(_answer(response))),
    }


def _answer(response: Mapping[str, Any]) -> Any:
    body = response.get("body", response.get("content"))
    return body.get("string") if isinstance(body, Mapping) else body


def _headers(headers: Any) -> list[list[Any]]:
    pairs = (
        (name, value if isinstance(value, list) else [value]) for name, value in headers.items()
    )
    return [[_text(name), [_text(each) for each in values]] for name, values in pairs]


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _base64(body: bytes | None) -> dict[str, str] | None:
    return None if body is None else {"base64_string": base64.b64encode(body).decode()}


def body_bytes(body: Any) -> bytes | None:
    """The bytes of a body; None for one that only its library can write."""
    if hasattr(body, "read"):
        body = body.read()
    elif hasattr(body, "__next__"):
        body = b"".join(body)
    if isinstance(body, dict | list):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode("utf-8", "surrogatepass")
    if body is None:
        body = b""
    return bytes(body) if isinstance(body, bytes | bytearray) else None
