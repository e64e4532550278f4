"""Quirks of framing: blocks and fields that say nothing."""

from __future__ import annotations

from mockllm.quirks.base import Quirk, Variant
from mockllm.quirks.framing import changes as change
from mockllm.quirks.samples import TEXT

__all__ = ["BLOCKS"]

BLOCKS = (
    Quirk(
        name="sse-comments",
        group="F",
        title="Comments between the events",
        servers="OpenRouter, proxies that keep connections alive",
        right="same",
        correct="Pass over lines that begin with a colon",
        faults="The comment is parsed as JSON",
        invariant="unknown-event",
        sample=TEXT,
        sources=(
            "deepnoodle-ai/dive#206",
            "Lambdua/openai4j#90",
            "justlovemaki/AIClient2API#695",
        ),
        variants=(
            Variant("keep-alive", "`: keep-alive` between", bytes=change.between(b": keep-alive")),
            Variant(
                "processing",
                "`: OPENROUTER PROCESSING` before the first event",
                bytes=change.first(b": OPENROUTER PROCESSING"),
            ),
        ),
    ),
    Quirk(
        name="sse-bare-colon",
        group="F",
        title="Lines that are a colon and nothing else",
        servers="llama.cpp's server",
        right="same",
        correct="It is an empty comment",
        faults="The parser fails",
        invariant="unknown-event",
        sample=TEXT,
        sources=("coder/coder#28185",),
        variants=(Variant("", "`:` between the events", bytes=change.between(b":")),),
    ),
    Quirk(
        name="sse-keepalive-as-data",
        group="F",
        title="A keep-alive comment sent as data",
        servers="partner models on Vertex (xAI), gateways",
        right="either",
        correct="The server is wrong: report it clearly, or pass over it with a warning",
        faults="An error about JSON that does not say what came",
        invariant="unknown-event",
        sample=TEXT,
        sources=("anomalyco/opencode#50871", "mnfst/llm-gateway#2053"),
        variants=(
            Variant("", "`data: : keepalive` between", bytes=change.between(b"data: : keepalive")),
        ),
    ),
    Quirk(
        name="sse-id-then-comment",
        group="F",
        title="Events with ids, and comments between them",
        servers="sse-starlette and other EventSource servers, llmgateway",
        right="same",
        correct="A block without data is no event, whatever the last id was",
        faults="The remembered id makes an empty event of the comment, which is no JSON",
        invariant="unknown-event",
        sample=TEXT,
        sources=("openai/openai-python#2722", "theopenco/llmgateway#2334"),
        variants=(
            Variant(
                "",
                "an `id:` line in each event, `: ping` between",
                bytes=lambda pieces, context: change.between(b": ping")(
                    change.with_lines(b"id", lambda number: b"%d" % number)(pieces, context),
                    context,
                ),
            ),
        ),
    ),
    Quirk(
        name="sse-event-without-data",
        group="F",
        title="Blocks with an event name and no data",
        servers="gateways",
        right="same",
        correct="A block without data is no event",
        faults="An empty text is parsed as JSON",
        invariant="unknown-event",
        sample=TEXT,
        sources=(
            "diegosouzapw/OmniRoute#1146",
            "anthropics/anthropic-sdk-typescript#861",
            "anthropics/anthropic-sdk-typescript#292",
        ),
        variants=(Variant("", "`event: ping` between", bytes=change.between(b"event: ping")),),
    ),
    Quirk(
        name="sse-empty-data",
        group="F",
        title="Events whose data are empty",
        servers="gateways",
        right="same",
        correct="There is nothing to parse: pass over it",
        faults="An empty text is parsed as JSON",
        invariant="unknown-event",
        sample=TEXT,
        variants=(Variant("", "`data: ` between the events", bytes=change.between(b"data: ")),),
    ),
    Quirk(
        name="sse-retry-field",
        group="F",
        title="The stream begins with the time after which to connect again",
        servers="general SSE frameworks",
        right="same",
        correct="A block without data is no event",
        faults="An empty event is made of it, which is no JSON",
        invariant="unknown-event",
        sample=TEXT,
        sources=("openai/openai-python#2722",),
        variants=(Variant("", "`retry: 3000` first", bytes=change.first(b"retry: 3000")),),
    ),
    Quirk(
        name="sse-other-fields",
        group="F",
        title="Other fields before the data",
        servers="Baidu Qianfan and many others",
        right="same",
        correct="Take the data lines for the data, and nothing else",
        faults="The whole block is parsed as JSON",
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
            ),
        ),
    ),
)
