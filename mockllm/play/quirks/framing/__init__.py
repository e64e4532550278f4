"""Group F: how events are framed, and where the bytes are cut.

Most of these quirks keep the data of all events, so they occur in every protocol whose frames
travel so. `changes` has the changes of bytes.
"""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.events import StreamError
from mockllm.core.turn import Turn
from mockllm.play.quirks.base import STREAMS, Quirk, Tolerance, Variant, quirks_of
from mockllm.play.quirks.framing import changes as change
from mockllm.play.quirks.samples import CALL, TEXT, UNICODE
from mockllm.play.quirks.streams import end_in_error, separate_characters, without_finish
from mockllm.scenario.model import Api
from mockllm.wire.protocols import PROTOCOLS

quirk = quirks_of()
"""A quirk of every API with server-sent events."""

quirk_of_streams = quirks_of(carriers=STREAMS)

quirk_of_chat = quirks_of("chat")


_WITH_EVENTS = tuple(api for api in PROTOCOLS if api != "ollama")


def _separators(name: str, characters: str) -> Variant:
    return Variant(name, frames=separate_characters(characters), as_sent=True)


def _last_discarded(turn: Turn, api: Api) -> Turn:
    """The turn of a reader that discards the last event, which has no blank line behind it."""
    match api:
        case "chat" | "completions":
            # The chunk with the usage. The finish came before; servers may leave out `[DONE]`.
            return replace(turn, usage=None)
        case "anthropic":
            return turn  # `message_stop`; `message_delta` has the finish and the usage
        case _:
            return without_finish(turn)  # the event with the finish and the usage


_BROKEN = StreamError("an event of the stream is not JSON")

QUIRKS: tuple[Quirk, ...] = (
    # How lines end, and what the lines of an event look like
    quirk(
        "sse-crlf",
        TEXT,
        # Gemini's own streams have CRLF; `agui-crlf` plays it in AG-UI.
        Variant(
            "crlf",
            bytes=change.line_ends(b"\r\n"),
            only=("chat", "responses", "anthropic", "completions", "cohere", "interactions"),
        ),
        Variant("split", bytes=change.split_crlf, writes=True),
        Variant("cr", bytes=change.line_ends(b"\r")),
        # CR before LF would be CRLF. Five of them, so that each event ends differently,
        # whether it has two lines or three.
        Variant("mixed", bytes=change.line_ends(b"\n", b"\r", b"\r\n", b"\r", b"\r\n")),
    ),
    quirk("sse-no-space", TEXT, Variant(bytes=change.no_space)),
    quirk("sse-multiline-data", TEXT, Variant(bytes=change.several_lines)),
    quirk("sse-single-newline", TEXT, Variant(bytes=change.one_newline)),
    quirk("sse-bom", CALL, Variant(bytes=change.mark)),
    quirk_of_streams(
        "sse-unicode-line-separators",
        TEXT,
        # `ollama-line-separators` plays it over Ollama.
        replace(_separators("all", "\u2028\u2029\u0085"), only=_WITH_EVENTS),
        _separators("line-separator", "\u2028"),
        _separators("paragraph-separator", "\u2029"),
        _separators("next-line", "\u0085"),
        _separators("controls", "\x0b\x0c\x1c\x1d\x1e"),
    ),
    # Blocks without data, and fields besides the data
    quirk(
        "sse-comments",
        TEXT,
        Variant("keep-alive", bytes=change.between(b": keep-alive")),
        Variant("processing", bytes=change.first(b": OPENROUTER PROCESSING")),
        Variant("no-blank", bytes=change.comment_before(b": ping")),
        Variant("inside", bytes=change.comment_inside(b": ping")),
    ),
    quirk("sse-bare-colon", TEXT, Variant(bytes=change.between(b":"))),
    quirk("sse-keepalive-as-data", TEXT, Variant(bytes=change.between(b"data: : keepalive"))),
    quirk(
        "sse-id-then-comment",
        TEXT,
        Variant(
            bytes=lambda stream, context: change.between(b": ping")(
                change.with_lines(b"id", lambda number: b"%d" % number)(stream, context), context
            )
        ),
    ),
    quirk("sse-event-without-data", TEXT, Variant(bytes=change.between(b"event: ping"))),
    quirk("sse-empty-data", TEXT, Variant(bytes=change.between(b"data: "))),
    quirk("sse-retry-field", TEXT, Variant(bytes=change.first(b"retry: 3000"))),
    quirk(
        "sse-other-fields",
        TEXT,
        Variant("id", bytes=change.with_lines(b"id", lambda number: b"as-%d" % number)),
        Variant(
            "event",
            bytes=change.with_lines(b"event", lambda _: b"message"),
            # The events of the others have names; Cohere's `[DONE]` has none.
            only=("chat", "gemini", "agui", "completions", "cohere"),
        ),
    ),
    # Where bytes, events and the stream are cut
    quirk_of_streams(
        "sse-utf8-split", UNICODE, Variant(bytes=change.split_characters, writes=True)
    ),
    quirk_of_streams(
        "sse-huge-event",
        TEXT,
        Variant("300-kb", bytes=change.pad_event(300_000)),
        Variant("1-mb", bytes=change.pad_event(1_200_000)),
    ),
    quirk_of_streams(
        "sse-chunk-boundaries",
        TEXT,
        Variant("glued", bytes=change.join_writes),
        Variant("bytewise", bytes=change.bytewise, writes=True),
    ),
    quirk(
        "sse-no-final-blank",
        TEXT,
        Variant(
            bytes=change.no_final_blank,
            tolerated=(
                Tolerance(
                    "the specification discards an event without its blank line (9.2.6)",
                    _last_discarded,
                ),
            ),
        ),
    ),
    quirk_of_chat(
        "sse-done-variants",
        TEXT,
        Variant("no-space", bytes=change.rewrite_done(lambda _, rest: b"data:[DONE]" + rest)),
        Variant(
            "trailing-space", bytes=change.rewrite_done(lambda _, rest: b"data: [DONE] " + rest)
        ),
        Variant("twice", bytes=change.rewrite_done(lambda line, rest: (line + rest) * 2)),
        Variant("unterminated", bytes=change.rewrite_done(lambda line, _: line)),
    ),
    quirk_of_streams(
        "sse-cut",
        TEXT,
        Variant("eof", bytes=change.cut_short, as_sent=True),
        Variant("closed", bytes=change.cut_short, ending="closed", as_sent=True),
        Variant("reset", bytes=change.cut_short, ending="reset", as_sent=True),
    ),
    quirk_of_streams(
        "sse-malformed-json", TEXT, Variant(bytes=change.break_json, expected=end_in_error(_BROKEN))
    ),
    quirk_of_streams(
        "sse-content-type",
        TEXT,
        Variant("json", content_type="application/json"),
        Variant("none", content_type=""),
    ),
)
