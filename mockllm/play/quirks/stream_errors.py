"""Group G: errors in the body of an answer with status 200.

The error replaces the whole answer (`first`), or its finish reason and usage (`later`), or stands
before them (`followed`). `[DONE]` still follows, except for servers that are known to omit it.
"""

from __future__ import annotations

from collections.abc import Callable

from mockllm.core.events import StreamError
from mockllm.core.http import TimedBytes
from mockllm.core.turn import Turn
from mockllm.play.quirks.base import (
    STREAMS,
    Context,
    Item,
    Quirk,
    Variant,
    quirks_of,
    with_parameters,
)
from mockllm.play.quirks.samples import TEXT
from mockllm.play.quirks.streams import DONE, end_in_error, end_position, time_at
from mockllm.scenario.model import Api
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Json

UPSTREAM: Json = {"message": "The upstream provider failed", "code": 502}
REFUSED: Json = {
    "message": "A tool call was demanded, but the model made none",
    "type": "invalid_request_error",
    "code": "tool_use_failed",
    "status_code": 400,
}
PLAIN: Json = {"object": "error", "message": "boom", "code": 400}
TEXTUAL = "Stream error: error decoding response body"
BARE: Json = {"code": 503, "details": "The model is loading"}
BODY: Json = {
    "error": {"message": "The upstream provider failed", "type": "server_error", "code": 502}
}


def _stream_error(error: Json) -> StreamError:
    code = error.get("code")
    message = error.get("message") or error["details"]
    return StreamError(message, error.get("type"), None if code is None else str(code))


def _before_end(items: list[Item], api: Api) -> int:
    position = end_position((item.data for item in items), api)
    return sum(item.data != DONE for item in items) if position is None else position


_Make = Callable[[list[Item], int], Item]
"""Makes the frame of an error, from all frames and the number of frames before it."""


@with_parameters
def _instead(
    items: list[Item], context: Context, make: _Make, *, at_end: bool, done: bool
) -> list[Item]:
    """Replaces the frames of a stream by an error.

    Args:
        make: makes the frame of the error.
        at_end: replace only the frames that end the answer.
        done: keep one `[DONE]` after the error.
    """

    sentinels = [item for item in items if item.data == DONE]
    events = [item for item in items if item.data != DONE]
    position = _before_end(events, context.api) if at_end else 0
    return [*events[:position], make(events, position), *sentinels[: int(done)]]


@with_parameters
def _insert_before_end(items: list[Item], context: Context, make: _Make) -> list[Item]:
    position = _before_end(items, context.api)
    return [*items[:position], make(items, position), *items[position:]]


def _event(data: Json, name: str | None = None) -> _Make:
    def make(items: list[Item], position: int) -> Item:
        return Item(time_at(items, position), data, event=name).copy()

    return make


def _with_choices(items: list[Item], position: int) -> Item:
    chunks = (item.data for item in items if isinstance(item.data, dict))
    first = next((chunk for chunk in chunks if "choices" in chunk), {})
    own = {key: value for key, value in first.items() if key not in ("choices", "error", "usage")}
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    return Item(time_at(items, position), {**own, "choices": [choice], "error": UPSTREAM}).copy()


def _both(make: _Make, *, usual: str = "first", done: bool = True) -> tuple[Variant, ...]:
    """The error as the first event, and as a later one; the usual one comes first."""
    variants = (
        Variant("first", frames=_instead(make, at_end=False, done=done), as_sent=True),
        Variant("later", frames=_instead(make, at_end=True, done=done), as_sent=True),
    )
    return variants if usual == "first" else variants[::-1]


quirk_of_chat = quirks_of("chat")
quirk_of_chunks = quirks_of("chat", "completions")

QUIRKS: tuple[Quirk, ...] = (
    quirks_of("chat", "completions", "responses", "anthropic")(
        "err-in-stream",
        TEXT,
        *_both(_event({"error": UPSTREAM})),
        Variant(
            "followed",
            frames=_insert_before_end(_event({"error": UPSTREAM})),
            expected=end_in_error(_stream_error(UPSTREAM)),
        ),
        Variant(
            "text",
            frames=_instead(_event({"error": TEXTUAL}), at_end=True, done=True),
            as_sent=True,
        ),
    ),
    quirks_of(carriers=STREAMS)(
        "err-json-200",
        TEXT,
        Variant(
            bytes=lambda stream, _context: [
                TimedBytes(stream[0].at if stream else 0, dumps(BODY).encode())
            ],
            content_type="application/json",
            expected=lambda _: Turn(error=_stream_error(BODY["error"])),
        ),
    ),
    quirk_of_chat("err-with-choices", TEXT, *_both(_with_choices, usual="later")),
    quirk_of_chunks(
        "err-event-line",
        TEXT,
        *_both(_event({"error": REFUSED}, "error"), usual="later", done=False),
        Variant(
            "bare",
            frames=_instead(_event(BARE, "error"), at_end=True, done=True),
            expected=end_in_error(_stream_error(BARE)),
        ),
    ),
    quirk_of_chunks("err-object-error", TEXT, *_both(_event(PLAIN))),
)
