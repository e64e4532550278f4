"""Quirks of framing: blocks without data, and fields besides the data."""

from __future__ import annotations

from mockllm.quirks.base import Quirk, Variant
from mockllm.quirks.framing import changes as change
from mockllm.quirks.framing import comments
from mockllm.quirks.samples import TEXT

__all__ = ["BLOCKS"]

BLOCKS = (
    Quirk(
        name="sse-comments",
        group="F",
        topic="framing",
        title="Comments between the events, or inside of them",
        servers="OpenRouter, proxies that keep connections alive",
        right="same",
        correct="ignore lines that begin with a colon",
        faults="parses the comment as JSON",
        invariant="unknown-event",
        sample=TEXT,
        sources=(
            "deepnoodle-ai/dive#206",
            "Lambdua/openai4j#90",
            "justlovemaki/AIClient2API#695",
            "theopenco/llmgateway#2334",
            "PrimeIntellect-ai/verifiers#2056",
        ),
        variants=(
            Variant(
                "keep-alive",
                "`: keep-alive` between the events",
                bytes=change.between(b": keep-alive"),
            ),
            Variant(
                "processing",
                "`: OPENROUTER PROCESSING` before the first event",
                bytes=change.first(b": OPENROUTER PROCESSING"),
            ),
            Variant(
                "no-blank",
                "`: ping` before the lines of an event, without a blank line between them",
                bytes=comments.before(b": ping"),
            ),
            Variant(
                "inside",
                "`: ping` between the data lines of an event, and before its blank line",
                bytes=comments.inside(b": ping"),
            ),
        ),
    ),
    Quirk(
        name="sse-bare-colon",
        group="F",
        topic="framing",
        title="Lines that consist of a colon",
        servers="llama.cpp's server",
        right="same",
        correct="treat it as an empty comment",
        faults="fails in the parser",
        invariant="unknown-event",
        sample=TEXT,
        sources=("coder/coder#28185",),
        variants=(Variant("", "`:` between the events", bytes=change.between(b":")),),
    ),
    Quirk(
        name="sse-keepalive-as-data",
        group="F",
        topic="framing",
        title="A keep-alive comment sent as data",
        servers="partner models on Vertex (xAI), gateways",
        right="either",
        correct="report the server's mistake clearly, or skip the event with a warning",
        faults="raises a JSON error that does not name the data received",
        invariant="unknown-event",
        sample=TEXT,
        sources=("anomalyco/opencode#50871", "mnfst/llm-gateway#2053"),
        variants=(
            Variant(
                "",
                "`data: : keepalive` between the events",
                bytes=change.between(b"data: : keepalive"),
            ),
        ),
    ),
    Quirk(
        name="sse-id-then-comment",
        group="F",
        topic="framing",
        title="Events have ids, and comments stand between them",
        servers="sse-starlette and other EventSource servers, llmgateway",
        right="same",
        correct="dispatch no event for a block without data, whatever the last id was",
        faults=(
            "dispatches an empty event for the comment because of the remembered id, and "
            "parses it as JSON"
        ),
        invariant="unknown-event",
        sample=TEXT,
        sources=("openai/openai-python#2722", "theopenco/llmgateway#2334"),
        variants=(
            Variant(
                "",
                "an `id:` line in each event, `: ping` between the events",
                bytes=lambda stream, context: change.between(b": ping")(
                    change.with_lines(b"id", lambda number: b"%d" % number)(stream, context),
                    context,
                ),
            ),
        ),
    ),
    Quirk(
        name="sse-event-without-data",
        group="F",
        topic="framing",
        title="Blocks with an event name and no data",
        servers="gateways",
        right="same",
        correct="dispatch no event for a block without data",
        faults="parses an empty string as JSON",
        invariant="unknown-event",
        sample=TEXT,
        sources=(
            "diegosouzapw/OmniRoute#1146",
            "anthropics/anthropic-sdk-typescript#861",
            "anthropics/anthropic-sdk-typescript#292",
        ),
        variants=(
            Variant("", "`event: ping` between the events", bytes=change.between(b"event: ping")),
        ),
    ),
    Quirk(
        name="sse-empty-data",
        group="F",
        topic="framing",
        title="Events whose data are empty",
        servers="gateways",
        right="same",
        correct="ignore an event with empty data",
        faults="parses an empty string as JSON",
        invariant="unknown-event",
        sample=TEXT,
        variants=(Variant("", "`data: ` between the events", bytes=change.between(b"data: ")),),
    ),
    Quirk(
        name="sse-retry-field",
        group="F",
        topic="framing",
        title="The stream begins with a reconnection time",
        servers="general SSE frameworks",
        right="same",
        correct="dispatch no event for a block without data",
        faults="dispatches an empty event, and parses it as JSON",
        invariant="unknown-event",
        sample=TEXT,
        sources=("openai/openai-python#2722",),
        variants=(Variant("", "`retry: 3000` first", bytes=change.first(b"retry: 3000")),),
    ),
    Quirk(
        name="sse-other-fields",
        group="F",
        topic="framing",
        title="Other fields before the data",
        servers="Baidu Qianfan and many other servers",
        right="same",
        correct="read the data lines only",
        faults="parses the whole block as JSON",
        invariant="unknown-event",
        sample=TEXT,
        sources=("modelscope/evalscope#1474",),
        variants=(
            Variant(
                "id",
                "`id: as-1`, then the data",
                bytes=change.with_lines(b"id", lambda number: b"as-%d" % number),
            ),
            Variant(
                "event",
                "`event: message`, then the data",
                bytes=change.with_lines(b"event", lambda _: b"message"),
                only=("chat", "gemini", "agui"),  # the events of the others have names
            ),
        ),
    ),
)
