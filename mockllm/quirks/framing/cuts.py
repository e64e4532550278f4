"""Quirks of framing: where bytes, events and the stream are cut."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.events import StreamError
from mockllm.core.turn import Turn
from mockllm.quirks.base import Quirk, Tolerance, Variant
from mockllm.quirks.framing import changes as change
from mockllm.quirks.samples import TEXT, UNICODE
from mockllm.scenario.model import Api

__all__ = ["CUTS"]


def _cut(turn: Turn) -> Turn:
    """The turn without finish, usage and error."""
    return replace(turn, finish=None, finish_raw=None, usage=None, error=None)


def _last_discarded(turn: Turn, api: Api) -> Turn:
    """The turn of a reader that discards the last event, which has no blank line behind it."""
    match api:
        case "chat":
            # The chunk with the usage. The finish came before; servers may leave out `[DONE]`.
            return replace(turn, usage=None)
        case "anthropic":
            return turn  # `message_stop`; `message_delta` has the finish and the usage
        case _:
            return _cut(turn)  # the event with the finish and the usage


def _broken(turn: Turn) -> Turn:
    return replace(_cut(turn), error=StreamError("an event of the stream is not JSON"))


CUTS = (
    Quirk(
        name="sse-utf8-split",
        group="F",
        topic="framing",
        title="A character is cut in two by the network",
        servers="any server",
        right="same",
        correct="decode UTF-8 incrementally, or after splitting into lines",
        faults="puts U+FFFD into the text, or aborts the stream",
        invariant="chunking-free",
        sample=UNICODE,
        sources=(
            "xberg-io/liter-llm#152",
            "danielmiessler/Fabric#2203",
            "musistudio/claude-code-router#1672",
            "librefang/librefang#3448",
            "api7/aisix#111",
            "zeroclaw-labs/zeroclaw#3723",
            "ggml-org/llama.cpp#28926",
        ),
        variants=(
            Variant(
                "",
                "E4 BD in one write, A0 in the next",
                bytes=change.split_characters,
                writes=True,
            ),
        ),
    ),
    Quirk(
        name="sse-huge-event",
        group="F",
        topic="framing",
        title="One event is far longer than a read buffer",
        servers="KoboldCpp with log probabilities, any server with large tool results",
        right="same",
        correct="accept it, up to a documented limit; report a longer one",
        faults="stops at the limit of a line reader, and loses the rest, sometimes silently",
        invariant="chunking-free",
        sample=TEXT,
        sources=(
            "SamSaffron/term-llm#298",
            "SamSaffron/term-llm#347",
            "SamSaffron/term-llm#429",
            "bestruirui/octopus#73",
            "achetronic/magec#62",
            "1667-ai/1667#107",
        ),
        variants=(
            Variant("300-kb", "a data line of 300 kB", bytes=change.padded(300_000)),
            Variant("1-mb", "a data line of more than 1 MB", bytes=change.padded(1_200_000)),
        ),
    ),
    Quirk(
        name="sse-chunk-boundaries",
        group="F",
        topic="framing",
        title="One read is not one event",
        servers="all servers",
        right="same",
        correct="buffer until the blank line",
        faults="parses half an event, or only the first of several",
        invariant="chunking-free",
        sample=TEXT,
        sources=("graniet/llm#90", "vllm-project/aibrix#2653"),
        variants=(
            Variant("glued", "all events in one write", bytes=change.glued),
            Variant("bytewise", "a write for each byte", bytes=change.bytewise, writes=True),
        ),
    ),
    Quirk(
        name="sse-no-final-blank",
        group="F",
        topic="framing",
        title="The last event is not followed by a blank line",
        servers="gateways that close early",
        right="either",
        correct="discard it, as the specification requires, or use it if its JSON is complete",
        faults="loses the usage or the finish reason",
        invariant="finish-and-usage",
        sample=TEXT,
        sources=(
            "openai/openai-node#2725",
            "openai/openai-node#2726",
            "google-gemini/gemini-cli#29059",
            "nansen-ai/nansen-cli#618",
        ),
        variants=(
            Variant(
                "",
                "the stream ends after one line end",
                bytes=change.no_final_blank,
                tolerated=(
                    Tolerance(
                        "the specification discards an event without its blank line (9.2.6)",
                        _last_discarded,
                    ),
                ),
            ),
        ),
    ),
    Quirk(
        name="sse-done-variants",
        group="F",
        topic="framing",
        title="`[DONE]` in unusual forms",
        only=("chat",),
        servers="various servers",
        right="same",
        correct="strip one space before it and any after it; ignore repetitions",
        faults='parses "[DONE] " as JSON',
        invariant="finish-and-usage",
        sample=TEXT,
        variants=(
            Variant(
                "no-space",
                "`data:[DONE]`",
                bytes=change.done(lambda _, rest: b"data:[DONE]" + rest),
            ),
            Variant(
                "trailing-space",
                "`data: [DONE] `",
                bytes=change.done(lambda _, rest: b"data: [DONE] " + rest),
            ),
            Variant(
                "twice",
                "the event is sent twice",
                bytes=change.done(lambda line, rest: (line + rest) * 2),
            ),
            Variant(
                "unterminated",
                "the stream ends after it, without a line end",
                bytes=change.done(lambda line, _: line),
            ),
        ),
    ),
    Quirk(
        name="sse-cut",
        group="F",
        topic="framing",
        title="The stream ends in the middle of an event",
        servers="networks",
        right="error",
        correct="report that the answer was cut, however the connection ends",
        faults="treats an answer that ends cleanly as complete",
        invariant="truncated-is-not-complete",
        sample=TEXT,
        sources=("can1357/oh-my-pi#9433", "ag-ui-protocol/ag-ui#2300"),
        variants=(
            Variant("eof", "the HTTP answer ends properly", bytes=change.cut_short, expected=_cut),
            Variant(
                "closed",
                "the connection is closed before the last chunk",
                bytes=change.cut_short,
                ending="closed",
                expected=_cut,
            ),
            Variant(
                "reset",
                "the connection is reset",
                bytes=change.cut_short,
                ending="reset",
                expected=_cut,
            ),
        ),
    ),
    Quirk(
        name="sse-malformed-json",
        group="F",
        topic="framing",
        title="One event has malformed JSON",
        servers="proxies",
        right="error",
        correct="report it",
        faults="silently skips the event, and loses its text",
        invariant="error-ends",
        sample=TEXT,
        sources=("agentic-os-org/ANOLISA#2209",),
        variants=(
            Variant("", "closing braces are missing", bytes=change.break_json, expected=_broken),
        ),
    ),
    Quirk(
        name="sse-content-type",
        group="F",
        topic="framing",
        title="The stream has another content type, or none",
        servers="proxies",
        right="same",
        correct="accept it if the body is a stream of events",
        faults="refuses the answer",
        invariant="chunking-free",
        sample=TEXT,
        variants=(
            Variant("json", "content-type: application/json", content_type="application/json"),
            Variant("none", "no content type", content_type=""),
        ),
    ),
)
