"""Group E: where and how Chat Completions streams tell usage.

Servers with these quirks send usage whether or not the request asked for it. Streams that end
in an error, and turns that know no usage, are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mockllm.core.turn import TokenUsage
from mockllm.protocols.openai_chat.fields import write_usage
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import finishes, spots
from mockllm.quirks.samples import TEXT

__all__ = ["QUIRKS", "tells_only_usage"]


def tells_only_usage(item: Item) -> bool:
    """Whether a chunk has usage and no choices."""
    return isinstance(item.data, dict) and bool(item.data.get("usage")) and _empty(item)


def _empty(item: Item) -> bool:
    choices = item.data.get("choices")
    return isinstance(choices, list) and not choices


def _usage(context: Context) -> TokenUsage | None:
    """The usage to tell; none where the stream ends in an error and so tells none."""
    return None if context.turn.error is not None else context.turn.usage


def _with_usage(items: list[Item], context: Context) -> tuple[list[Item], Item | None]:
    """The items, the chunk of usage among them, and that chunk; None where there is none to
    tell, or no chunk that it could be like."""
    told = [item for item in items if tells_only_usage(item)]
    if told:
        return items, told[-1]
    usage, like = _usage(context), next(spots(items), None)
    if usage is None or like is None:
        return items, None
    place = _end(items)
    at = items[max(place - 1, 0)].at
    chunk = Item(at, {**like.item.data, "choices": [], "usage": write_usage(usage)}).copy()
    return [*items[:place], chunk, *items[place:]], chunk


def _end(items: Sequence[Item]) -> int:
    """The place behind the last frame before `[DONE]`."""
    return next((i for i, item in enumerate(items) if item.data == "[DONE]"), len(items))


def _without_nulls(items: list[Item]) -> list[Item]:
    for item in items:
        if isinstance(item.data, dict) and "usage" in item.data and item.data["usage"] is None:
            del item.data["usage"]
    return items


def _empty_choices(items: list[Item], context: Context) -> list[Item]:
    items, chunk = _with_usage(items, context)
    return items if chunk is None else _without_nulls(items)


def _no_choices(*, null: bool) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        items, chunk = _with_usage(items, context)
        if chunk is not None and null:
            chunk.data["choices"] = None
        elif chunk is not None:
            del chunk.data["choices"]
        return items

    return change


def _in_finish_chunk(items: list[Item], context: Context) -> list[Item]:
    told = finishes(items)
    if not told:
        return items
    items, chunk = _with_usage(items, context)
    if chunk is not None:
        told[-1].item.data["usage"] = chunk.data["usage"]
    return [item for item in items if not tells_only_usage(item)]


def _cumulative(items: list[Item], context: Context) -> list[Item]:
    usage = _usage(context)
    told = list({id(spot.item): spot.item for spot in spots(items)}.values())
    if usage is None or not told:
        return items
    for count, item in enumerate(told, 1):
        output = usage.output * count // len(told)
        so_far = replace(usage, output=output, reasoning=min(usage.reasoning, output))
        if count == len(told):
            so_far = usage
        item.data["usage"] = write_usage(so_far)
    return [item for item in items if not tells_only_usage(item)]


def _wiped(*, null: bool) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        items, chunk = _with_usage(items, context)
        if chunk is None:
            return items
        trailing = chunk.copy()
        if null:
            trailing.data["usage"] = None
        else:
            del trailing.data["usage"]
        place = _end(items)
        return [*items[:place], trailing, *items[place:]]

    return change


QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        name="usage-empty-choices",
        group="E",
        title="Usage comes in a chunk without any choice",
        only=("chat",),
        servers="OpenAI",
        right="same",
        correct="read the usage; there is no content in it",
        faults="reads `choices[0]` and crashes",
        invariant="finish-and-usage",
        sample=TEXT,
        variants=(
            Variant(
                says='`{"choices":[],"usage":{…}}` comes last; no other chunk has `usage`',
                frames=_empty_choices,
            ),
        ),
        sources=(
            "awslabs/llmeter#34",
            "Lambdua/openai4j#60",
            "Portkey-AI/gateway#1629",
            "BerriAI/litellm#8450",
        ),
    ),
    Quirk(
        name="usage-no-choices",
        group="E",
        title="The chunk with the usage has no `choices`, or null",
        only=("chat",),
        servers="ROCm ATOM, proxies",
        right="same",
        correct="take it as an empty list",
        faults="iterates over what is not there",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant(
                "absent",
                "the chunk with the usage has no key `choices`",
                frames=_no_choices(null=False),
            ),
            Variant("null", "`choices` is null beside the usage", frames=_no_choices(null=True)),
        ),
        sources=("ROCm/ATOM#1711",),
    ),
    Quirk(
        name="usage-in-finish-chunk",
        group="E",
        title="Usage comes in the chunk with the finish reason",
        only=("chat",),
        servers="DeepSeek, Groq, Mistral",
        right="same",
        correct="read it there",
        faults="looks for usage only in a chunk without choices",
        invariant="finish-and-usage",
        sample=TEXT,
        variants=(
            Variant(
                says="the chunk with `finish_reason` has `usage`, and none of its own follows",
                frames=_in_finish_chunk,
            ),
        ),
    ),
    Quirk(
        name="usage-cumulative",
        group="E",
        title="Every chunk has the usage so far",
        only=("chat",),
        servers="Perplexity, Gemini's compatible endpoint, GLM on Fireworks, Databricks",
        right="same",
        correct="the last one counts",
        faults="adds them up",
        invariant="finish-and-usage",
        sample=TEXT,
        variants=(
            Variant(
                says="`usage` in every chunk, growing; the finish has the final one",
                frames=_cumulative,
            ),
        ),
        sources=(
            "agno-agi/agno#6058",
            "pydantic/pydantic-ai#1736",
            "langchain-ai/langchain#30429",
            "langchain-ai/langchainjs#8694",
            "open-webui/open-webui#29064",
        ),
    ),
    Quirk(
        name="usage-wiped-by-trailing-chunk",
        group="E",
        title="An empty chunk without usage follows the one with it",
        only=("chat",),
        servers="proxies that end with a chunk of their own",
        right="same",
        correct="keep the last usage that was told",
        faults="takes over the missing usage of the last chunk",
        invariant="finish-and-usage",
        sample=TEXT,
        variants=(
            Variant(
                "absent",
                '`{"choices":[]}` without `usage` follows the usage',
                frames=_wiped(null=False),
            ),
            Variant(
                "null",
                '`{"choices":[],"usage":null}` follows the usage',
                frames=_wiped(null=True),
            ),
        ),
    ),
)
