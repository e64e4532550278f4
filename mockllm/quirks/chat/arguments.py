"""Group B: how Chat Completions servers send the arguments of tool calls. Those that nobody can
put right have a file of their own."""

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
    """Whether a value can be sent: a number beyond the range of floats, and half of a
    surrogate pair, read from escaped JSON, are no JSON again."""
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
    """The items with nothing but the opening of some calls."""
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
    """The first character goes into the opening, the name into the fragment that it is from."""
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
    title="The arguments are null in the opening",
    only=("chat",),
    servers="gateways to Bedrock",
    right="same",
    correct="null is an empty fragment",
    faults="fails to append to null, and loses other calls with that",
    invariant="null-tolerant",
    sample=CALL,
    variants=(Variant(says="null, then fragments", frames=_null_first),),
    sources=("agentgateway/agentgateway#1988", "agentgateway/agentgateway#1989"),
)

_NULL_ONLY = Quirk(
    name="chat-args-null-only",
    group="B",
    title="A call without arguments never gets any, not even an empty text",
    only=("chat",),
    servers="parsers in vLLM, proxies",
    right="same",
    correct="a call with the arguments {}",
    faults='parses null or an empty text, or sends "null" back',
    invariant="zero-arguments",
    sample=ZERO,
    variants=(
        Variant(says="the arguments are null", frames=_null_only),
        Variant("absent", "there is no arguments field", _absent),
    ),
    sources=("vllm-project/vllm#21046", "vllm-project/vllm#19419"),
)

_EMPTY_ZERO = Quirk(
    name="chat-args-empty-zero",
    group="B",
    title="The arguments of a call without arguments are an empty text",
    only=("chat",),
    servers="vLLM, converters from Anthropic",
    right="same",
    correct="a call with the arguments {}",
    faults="parses an empty text, or leaves the call out because of it",
    invariant="zero-arguments",
    sample=ZERO,
    variants=(Variant(says='"" in the opening, and no fragment', frames=_empty_only),),
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
    title="The opening has all the arguments",
    only=("chat",),
    servers="Groq, Mistral, Ollama, Gemini's OpenAI-compatible endpoint",
    right="same",
    correct="one call, complete with its opening",
    faults="waits for fragments that never come",
    invariant="arguments-concatenate",
    sample=CALL,
    variants=(Variant(says="one entry for a call", frames=_whole),),
)

_OBJECT = Quirk(
    name="chat-args-object",
    group="B",
    title="The arguments are a JSON object and not a text",
    only=("chat",),
    servers="servers built on Ollama, gateways",
    right="either",
    correct="take the object, or report it",
    faults='makes the text "[object Object]" of it, or fails on the type',
    invariant="arguments-concatenate",
    sample=CALL,
    variants=(Variant(says="an object, whole, in the opening", frames=_as_object),),
    sources=("BerriAI/litellm#37792",),
)

_BEFORE_NAME = Quirk(
    name="chat-args-before-name",
    group="B",
    title="The arguments begin before the name is there",
    only=("chat",),
    servers="parsers in self-hosted servers",
    right="same",
    correct="keep the fragments, and announce the call once its name is known",
    faults="rejects a call that opens without a name",
    invariant="surface-complete",
    sample=CALL,
    variants=(Variant(says="{ without a name, then name and rest", frames=_before_name),),
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
