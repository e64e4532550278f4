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
        title="Lines end in CRLF or CR in place of LF",
        servers="Gemini and Vertex, sse-starlette by default, Azure",
        right="same",
        correct="CRLF, CR and LF all end a line, also when CR and LF come apart",
        faults='Who splits at "\\n\\n" finds no event at all',
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
            Variant("crlf", "every line ends in CRLF", bytes=change.line_ends(b"\r\n")),
            Variant(
                "split", "CR and LF leave in different writes", bytes=change.split_crlf, writes=True
            ),
            Variant("cr", "every line ends in CR alone", bytes=change.line_ends(b"\r")),
            Variant(
                "mixed",
                "CRLF, LF and CR take turns",
                bytes=change.line_ends(b"\r\n", b"\n", b"\r"),
            ),
        ),
    ),
    Quirk(
        name="sse-no-space",
        group="F",
        title="No space behind the colon of a field",
        servers="Kimi Code, servers made with Spring",
        right="same",
        correct="The space is optional",
        faults="The event is passed over, or its first character is cut off",
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
        title="The JSON of an event on several data lines",
        servers="servers that print JSON with indentation",
        right="same",
        correct="Join the data lines of an event with line feeds",
        faults="Only the last line is taken, or each is parsed by itself",
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
        title="One line end between events in place of two",
        servers="hosts of GLM-4.7 and Kimi-K2.5",
        right="either",
        correct="Report it; a lenient client may take each data line for an event",
        faults="All data are joined to one text that is no JSON, or nothing is found, in silence",
        invariant="truncated-is-not-complete",
        sample=TEXT,
        sources=("rexxars/eventsource-parser#31",),
        variants=(Variant("", "no blank line anywhere", bytes=change.one_newline),),
    ),
    Quirk(
        name="sse-bom",
        group="F",
        title="A byte order mark before the first event",
        servers="servers and proxies made with .NET",
        right="same",
        correct="Strip one byte order mark at the beginning of the stream",
        faults="The first event is lost in silence",
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
