"""Quirks of framing: how lines end, and what an event's lines look like."""

from __future__ import annotations

from mockllm.quirks.base import Quirk, Variant
from mockllm.quirks.framing import changes as change
from mockllm.quirks.samples import CALL, TEXT

__all__ = ["LINES"]

LINES = (
    Quirk(
        name="sse-crlf",
        group="F",
        topic="framing",
        title="Lines end in CRLF or CR instead of LF",
        servers="Gemini and Vertex, sse-starlette by default, Azure",
        right="same",
        correct="accept CRLF, CR and LF as line ends, also if CR and LF arrive in different reads",
        faults='splits at "\\n\\n" and finds no event',
        invariant="chunking-free",
        sample=TEXT,
        sources=(
            "nyroway/nyro#265",
            "hey-api/hey-api#3054",
            "openai/openai-node#2309",
            "withastro/flue#215",
            "Continuum-AI-Corp/OrcaRouter-Lite#98",
        ),
        variants=(
            Variant(
                "crlf",
                "every line ends in CRLF",
                bytes=change.line_ends(b"\r\n"),
                # Gemini's own streams have CRLF; `agui-crlf` plays it in AG-UI.
                only=("chat", "responses", "anthropic"),
            ),
            Variant("split", "CR and LF in different writes", bytes=change.split_crlf, writes=True),
            Variant("cr", "every line ends in CR alone", bytes=change.line_ends(b"\r")),
            Variant(
                "mixed",
                "CRLF, LF and CR alternate",
                # CR before LF would be CRLF. Five of them, so that each event ends differently,
                # whether it has two lines or three.
                bytes=change.line_ends(b"\n", b"\r", b"\r\n", b"\r", b"\r\n"),
            ),
        ),
    ),
    Quirk(
        name="sse-no-space",
        group="F",
        topic="framing",
        title="No space after the colon of a field",
        servers="Kimi Code, servers made with Spring",
        right="same",
        correct="treat the space as optional",
        faults="ignores the event, or cuts off its first character",
        invariant="chunking-free",
        sample=TEXT,
        sources=(
            "nullclaw/nullclaw#509",
            "genkit-ai/genkit#3728",
            "genkit-ai/genkit#5306",
            "openclaw/openclaw#130047",
            "SamSaffron/term-llm#487",
        ),
        variants=(Variant("", "data:{…}", bytes=change.no_space),),
    ),
    Quirk(
        name="sse-multiline-data",
        group="F",
        topic="framing",
        title="The JSON of an event spans several data lines",
        servers="servers that pretty-print JSON",
        right="same",
        correct="join the data lines of an event with line feeds",
        faults="keeps only the last line, or parses each line by itself",
        invariant="chunking-free",
        sample=TEXT,
        sources=(
            "SamSaffron/term-llm#454",
            "SamSaffron/term-llm#456",
            "open-metadata/OpenMetadata#28945",
            "milady-ai/milady#1653",
            "stalwartlabs/jmap-client#19",
        ),
        variants=(Variant("", "a data line for each field", bytes=change.several_lines),),
    ),
    Quirk(
        name="sse-single-newline",
        group="F",
        topic="framing",
        title="One line end between events instead of two",
        servers="hosts of GLM-4.7 and Kimi-K2.5",
        right="either",
        correct="report it; a lenient client may treat each data line as an event",
        faults="joins all data into one text that is not JSON, or silently finds nothing",
        invariant="truncated-is-not-complete",
        sample=TEXT,
        sources=("rexxars/eventsource-parser#31",),
        variants=(Variant("", "no blank line anywhere", bytes=change.one_newline),),
    ),
    Quirk(
        name="sse-bom",
        group="F",
        topic="framing",
        title="A byte order mark before the first event",
        servers="servers and proxies built with .NET",
        right="same",
        correct="strip one byte order mark at the beginning of the stream",
        faults="silently loses the first event",
        invariant="chunking-free",
        sample=CALL,
        sources=(
            "openai/openai-python#3819",
            "assistant-ui/assistant-ui#6954",
            "vm0-ai/vm0#24687",
            "Effect-TS/effect#6976",
            "a2aproject/a2a-python#1259",
        ),
        variants=(Variant("", "EF BB BF, then the stream", bytes=change.mark),),
    ),
)
