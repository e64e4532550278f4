"""Group B: quirks of the arguments of tool calls; `broken` has those that make them malformed."""

from __future__ import annotations

import json
from typing import Any

from mockllm.quirks.base import Context, Item, Quirk, Variant
from mockllm.quirks.chat import broken
from mockllm.quirks.chat.broken import object_of, text_of
from mockllm.quirks.chat.chunks import Fragment, calls, removed, whole
from mockllm.quirks.samples import CALL, ZERO

__all__ = ["QUIRKS"]


def _is_json(value: dict[str, Any]) -> bool:
    """Whether a value can be encoded as JSON again.

    Numbers beyond the range of floats and escaped lone surrogates can be read but not written.
    """
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def _null_first(items: list[Item], _: Context) -> list[Item]:
    for opening, *_others in calls(items):
        if opening.function.get("arguments") == "":
            opening.function["arguments"] = None
    return items


def _zero_calls(items: list[Item]) -> list[list[Fragment]]:
    return [call for call in calls(items) if text_of(call) in ("", "{}")]


def _bare(items: list[Item], found: list[list[Fragment]]) -> list[Item]:
    """The items without any but the opening fragments of some calls."""
    return removed(items, [fragment for _opening, *others in found for fragment in others])


def _null_only(items: list[Item], _: Context) -> list[Item]:
    found = _zero_calls(items)
    for opening, *_others in found:
        opening.function["arguments"] = None
    return _bare(items, found)


def _absent(items: list[Item], _: Context) -> list[Item]:
    found = _zero_calls(items)
    for opening, *_others in found:
        opening.function.pop("arguments", None)
    return _bare(items, found)


def _empty_only(items: list[Item], _: Context) -> list[Item]:
    found = _zero_calls(items)
    for opening, *_others in found:
        opening.function["arguments"] = ""
    return _bare(items, found)


def _whole(items: list[Item], _: Context) -> list[Item]:
    return whole(items)


def _as_object(items: list[Item], _: Context) -> list[Item]:
    gone: list[Fragment] = []
    for call in calls(items):
        value = object_of(text_of(call))
        if value is not None and _is_json(value):
            call[0].function["arguments"] = value
            gone += call[1:]
    return removed(items, gone)


def _before_name(items: list[Item], _: Context) -> list[Item]:
    """Moves the first character of the arguments to the opening, and the name to the fragment
    that the character comes from."""
    for opening, *others in calls(items):
        first = next((fragment for fragment in others if fragment.arguments), None)
        if first is None or opening.arguments or not opening.function.get("name"):
            continue
        name = opening.function.pop("name")
        text = first.arguments
        opening.function["arguments"] = text[0]
        rest = {**first.function, "arguments": text[1:]}
        first.function.clear()
        first.function.update({"name": name, **rest})
    return items


_NULL_FIRST = Quirk(
    name="chat-args-null-first",
    group="B",
    topic="arguments",
    title="The arguments are null in the opening entry",
    only=("chat",),
    servers="gateways to Bedrock",
    right="same",
    correct="treat null as an empty fragment",
    faults="fails to append to null, and loses other calls of the answer",
    invariant="null-tolerant",
    sample=CALL,
    variants=(Variant(description="null, then fragments", frames=_null_first),),
    sources=("agentgateway/agentgateway#1988", "agentgateway/agentgateway#1989"),
)

_NULL_ONLY = Quirk(
    name="chat-args-null-only",
    group="B",
    topic="arguments",
    title="A call without arguments has null or no `arguments`, not even an empty string",
    only=("chat",),
    servers="parsers in vLLM, proxies",
    right="same",
    correct="make the call with the arguments {}",
    faults='parses null or an empty string, or sends "null" back',
    invariant="zero-arguments",
    sample=ZERO,
    variants=(
        Variant(description="the arguments are null", frames=_null_only),
        Variant("absent", "there is no arguments field", _absent),
    ),
    sources=("vllm-project/vllm#21046", "vllm-project/vllm#19419"),
)

_EMPTY_ZERO = Quirk(
    name="chat-args-empty-zero",
    group="B",
    topic="arguments",
    title="The arguments of a call without arguments are an empty string",
    only=("chat",),
    servers="vLLM, converters from Anthropic",
    right="same",
    correct="make the call with the arguments {}",
    faults="parses the empty string as JSON, or drops the call because the string is falsy",
    invariant="zero-arguments",
    sample=ZERO,
    variants=(
        Variant(description='"" in the opening entry, and no further fragment', frames=_empty_only),
    ),
    sources=(
        "vllm-project/vllm#28806",
        "vllm-project/vllm#47901",
        "vllm-project/vllm#21365",
        "open-webui/open-webui#22189",
        "ogx-ai/ogx#5464",
    ),
)

_ALL_AT_ONCE = Quirk(
    name="chat-args-whole",
    group="B",
    topic="arguments",
    title="The opening entry has all the arguments",
    only=("chat",),
    servers="Groq, Mistral, Ollama, Gemini's OpenAI-compatible endpoint",
    right="same",
    correct="make one call; it is complete with its opening entry",
    faults="waits for fragments that never come",
    invariant="arguments-concatenate",
    sample=CALL,
    variants=(Variant(description="one entry for each call", frames=_whole),),
)

_OBJECT = Quirk(
    name="chat-args-object",
    group="B",
    topic="arguments",
    title="The arguments are a JSON object, not a string",
    only=("chat",),
    servers="servers built on Ollama, gateways",
    right="either",
    correct="accept the object, or report it",
    faults='turns it into the text "[object Object]", or raises a TypeError',
    invariant="arguments-concatenate",
    sample=CALL,
    variants=(Variant(description="the complete object in the opening entry", frames=_as_object),),
    sources=("BerriAI/litellm#37792",),
)

_BEFORE_NAME = Quirk(
    name="chat-args-before-name",
    group="B",
    topic="arguments",
    title="The arguments begin before the name is sent",
    only=("chat",),
    servers="parsers in self-hosted servers",
    right="same",
    correct="buffer the fragments, and announce the call once its name is known",
    faults="rejects a call that opens without a name",
    invariant="surface-complete",
    sample=CALL,
    variants=(
        Variant(description="{ without a name, then the name and the rest", frames=_before_name),
    ),
    sources=("jjang-ai/vmlx#244",),
)

QUIRKS: tuple[Quirk, ...] = (
    _NULL_FIRST,
    _NULL_ONLY,
    _EMPTY_ZERO,
    _ALL_AT_ONCE,
    _OBJECT,
    _BEFORE_NAME,
    *broken.QUIRKS,
)
