"""Quirks of framing: where bytes, events and the stream are cut."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.events import StreamError
from mockllm.core.turn import Turn
from mockllm.quirks.base import Quirk, Variant
from mockllm.quirks.framing import changes as change
from mockllm.quirks.samples import TEXT, UNICODE

__all__ = ["CUTS"]


def _cut(turn: Turn) -> Turn:
    """All that the turn says, but not that it is over."""
    return replace(turn, finish=None, finish_raw=None, usage=None, error=None)


def _broken(turn: Turn) -> Turn:
    return replace(_cut(turn), error=StreamError("an event of the stream is not JSON"))


CUTS = (
    Quirk(
        name="sse-utf8-split",
        group="F",
        title="A character cut in two by the network",
        servers="any",
        right="same",
        correct="Decode UTF-8 incrementally, or after the lines are cut",
        faults="U+FFFD in the text, or the stream is given up",
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
        title="One event is far longer than a buffer",
        servers="KoboldCpp with log probabilities, any with large tool results",
        right="same",
        correct="Take it, up to a bound that is documented and told when it is passed",
        faults="A line reader with a bound stops, and the rest is lost, at times in silence",
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
        title="What is read at once is not an event",
        servers="all",
        right="same",
        correct="Buffer until the blank line",
        faults="Half an event is parsed, or only the first of several",
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
        title="The last event is not followed by a blank line",
        servers="gateways that close early",
        right="either",
        correct="The rules discard it; a robust client takes an event that is complete JSON",
        faults="Usage or finish are lost",
        invariant="finish-and-usage",
        sample=TEXT,
        sources=(
            "openai/openai-node#2725",
            "openai/openai-node#2726",
            "google-gemini/gemini-cli#29059",
            "nansen-ai/nansen-cli#618",
        ),
        variants=(Variant("", "the stream ends after one line end", bytes=change.no_final_blank),),
    ),
    Quirk(
        name="sse-done-variants",
        group="F",
        title="[DONE] in other spellings",
        only=("chat",),
        servers="various",
        right="same",
        correct="Strip one space before it and any behind it; pass over repetitions",
        faults='"[DONE] " is parsed as JSON',
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
                "the event comes twice",
                bytes=change.done(lambda line, rest: (line + rest) * 2),
            ),
            Variant(
                "unterminated",
                "the stream ends behind it, without a line end",
                bytes=change.done(lambda line, _: line),
            ),
        ),
    ),
    Quirk(
        name="sse-cut",
        group="F",
        title="The stream ends in the middle of an event",
        servers="networks",
        right="error",
        correct="Report that the answer was cut, in whichever way it ends",
        faults="An answer that ends cleanly is taken for complete",
        invariant="truncated-is-not-complete",
        sample=TEXT,
        sources=("can1357/oh-my-pi#9433", "ag-ui-protocol/ag-ui#2300"),
        variants=(
            Variant(
                "eof", "the answer ends as HTTP wants it", bytes=change.cut_short, meaning=_cut
            ),
            Variant(
                "closed",
                "the connection is closed before the last chunk",
                bytes=change.cut_short,
                ending="closed",
                meaning=_cut,
            ),
            Variant(
                "reset",
                "the connection is reset",
                bytes=change.cut_short,
                ending="reset",
                meaning=_cut,
            ),
        ),
    ),
    Quirk(
        name="sse-malformed-json",
        group="F",
        title="One event holds broken JSON",
        servers="proxies",
        right="error",
        correct="Report it",
        faults="The event is passed over in silence, and its text is lost",
        invariant="error-ends",
        sample=TEXT,
        sources=("agentic-os-org/ANOLISA#2209",),
        variants=(
            Variant("", "closing braces are missing", bytes=change.break_json, meaning=_broken),
        ),
    ),
    Quirk(
        name="sse-content-type",
        group="F",
        title="A stream under another content type, or none",
        servers="proxies",
        right="same",
        correct="Take it when the body is a stream of events",
        faults="The answer is refused",
        invariant="chunking-free",
        sample=TEXT,
        variants=(
            Variant("json", "content-type: application/json", content_type="application/json"),
            Variant("none", "no content type", content_type=""),
        ),
    ),
)
