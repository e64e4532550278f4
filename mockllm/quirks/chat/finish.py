"""Group C: how Chat Completions streams finish, and (`chat_ending`) how they end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mockllm.core.turn import Turn
from mockllm.protocols.openai_chat.fields import read_finish, write_finish, write_usage
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import Spot, alike, finishes, fragments, inserted, spots
from mockllm.quirks.chat.ending import QUIRKS as ENDINGS
from mockllm.quirks.chat.ending import tells_only_finish
from mockllm.quirks.samples import CALL, TEXT
from mockllm.quirks.usage import tells_only_usage

__all__ = ["QUIRKS"]


def _stop_with_tools(items: list[Item], context: Context) -> list[Item]:
    calling = {fragment.spot.index for fragment in fragments(items)}
    for spot in finishes(items):
        if spot.index in calling and spot.choice["finish_reason"] == "tool_calls":
            spot.choice["finish_reason"] = "stop"
    return items


def _stopped_with_tools(turn: Turn) -> Turn:
    return _told({"tool_calls": "stop"})(turn) if turn.tool_calls else turn


def _reworded(words: Mapping[str, str]) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        for spot in finishes(items):
            word = spot.choice["finish_reason"]
            spot.choice["finish_reason"] = words.get(word, word)
        return items

    return change


def _told(words: Mapping[str, str]) -> Callable[[Turn], Turn]:
    """What a turn means whose finish is said in other words."""

    def meaning(turn: Turn) -> Turn:
        if turn.finish is None:
            return turn
        word = words.get(write_finish(turn.finish, turn.finish_raw))
        if word is None:
            return turn
        finish = read_finish(word, calls=bool(turn.tool_calls), refused=bool(turn.refusal))
        return replace(turn, finish=finish.reason, finish_raw=finish.raw)

    return meaning


_ANTHROPIC = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
_EOS = {"stop": "eos"}
_GUARDRAIL = {"stop": "guardrail_intervened", "content_filter": "guardrail_intervened"}


def _with_last_delta(items: list[Item], context: Context) -> list[Item]:
    last: dict[int, Spot] = {}
    gone: set[int] = set()
    for spot in spots(items):
        word = spot.choice.get("finish_reason")
        if not isinstance(word, str):
            last[spot.index] = spot
            continue
        before = last.pop(spot.index, None)
        if before is not None and tells_only_finish(spot):
            before.choice["finish_reason"] = word
            if spot.item.data.get("usage"):
                before.item.data["usage"] = spot.item.data["usage"]
            gone.add(id(spot.item))
    return [item for item in items if id(item) not in gone]


def _key_absent(items: list[Item], context: Context) -> list[Item]:
    for spot in spots(items):
        if "finish_reason" in spot.choice and spot.choice["finish_reason"] is None:
            del spot.choice["finish_reason"]
    return items


def _key_empty(items: list[Item], context: Context) -> list[Item]:
    for spot in spots(items):
        if "finish_reason" in spot.choice and spot.choice["finish_reason"] is None:
            spot.choice["finish_reason"] = ""
    return items


def _again(items: list[Item], context: Context) -> list[Item]:
    for spot in finishes(items):
        items = inserted(items, spot.item, [_second(spot)])
    return items


def _second(spot: Spot) -> Item:
    item = alike(spot, {})
    item.data["choices"][0]["finish_reason"] = spot.choice["finish_reason"]
    return item


def _again_with_usage(items: list[Item], context: Context) -> list[Item]:
    told = finishes(items)
    if not told:
        return items
    second = _second(told[-1])
    if context.turn.usage is not None:
        second.data["usage"] = write_usage(context.turn.usage)
        items = [item for item in items if not tells_only_usage(item)]
    return inserted(items, told[-1].item, [second])


QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        name="chat-finish-stop-with-tools",
        group="C",
        title="An answer with tool calls finishes with `stop`",
        only=("chat",),
        servers="Ollama, vLLM, mlx-vlm; OpenAI where the tool was demanded by name",
        right="same",
        correct="run the tools because calls are there, whatever the finish reason says",
        faults="ends the agent's loop without running the tools",
        invariant="finish-and-usage",
        sample=CALL,
        variants=(
            Variant(
                says='`finish_reason:"stop"` after the calls',
                frames=_stop_with_tools,
                meaning=_stopped_with_tools,
            ),
        ),
        sources=(
            "vllm-project/vllm#9209",
            "ollama/ollama#7963",
            "BerriAI/litellm#35663",
            "BerriAI/litellm#12249",
            "Blaizzy/mlx-vlm#990",
        ),
    ),
    Quirk(
        name="chat-finish-foreign-value",
        group="C",
        title="The finish reason is a word of another API",
        only=("chat",),
        servers="gateways that convert from other APIs",
        right="same",
        correct="keep the word, and count what is unknown as some other reason",
        faults="fails because the word is not in the list of known ones",
        invariant="finish-and-usage",
        sample=TEXT,
        variants=(
            Variant(
                "end-turn",
                "`end_turn`, and for calls `tool_use`: Anthropic's words",
                frames=_reworded(_ANTHROPIC),
                meaning=_told(_ANTHROPIC),
            ),
            Variant("eos", "`eos` in place of `stop`", frames=_reworded(_EOS), meaning=_told(_EOS)),
            Variant(
                "guardrail",
                "`guardrail_intervened`: Bedrock's word",
                frames=_reworded(_GUARDRAIL),
                meaning=_told(_GUARDRAIL),
            ),
        ),
        sources=("BerriAI/litellm#12481",),
    ),
    Quirk(
        name="chat-finish-with-last-delta",
        group="C",
        title="The finish reason comes in the chunk with the last fragment",
        only=("chat",),
        servers="Mistral, vLLM, Gemini's compatible endpoint",
        right="same",
        correct="take the delta of a chunk before its finish reason",
        faults="loses the last fragment",
        invariant="delta-first",
        sample=TEXT,
        variants=(
            Variant(
                says='`{"delta":{"content":"lo"},"finish_reason":"stop"}`, and no chunk of its own',
                frames=_with_last_delta,
            ),
        ),
        sources=(
            "vllm-project/vllm#35705",
            "vllm-project/vllm#36944",
            "jeremychone/rust-genai#164",
            "livekit/agents#4307",
        ),
    ),
    Quirk(
        name="chat-finish-key-absent",
        group="C",
        title="Chunks that do not finish have no `finish_reason`, or an empty one",
        only=("chat",),
        servers="xAI, Cerebras, z.ai, Snowflake (absent); older Ollama (empty)",
        right="same",
        correct="absent, null and empty are the same",
        faults="fails on the missing key, or takes the empty word for the end",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant("absent", "the key is in the finishing chunk alone", frames=_key_absent),
            Variant("empty", '`"finish_reason":""` until the finish', frames=_key_empty),
        ),
        sources=("ollama/ollama#4357",),
    ),
    Quirk(
        name="chat-finish-twice",
        group="C",
        title="The chunk with the finish reason comes twice",
        only=("chat",),
        servers="OpenRouter (the second has the usage), LM Studio",
        right="same",
        correct="the first finish counts; usage may be in either",
        faults="joins the words to `stopstop`, empties the calls, or tells the answer twice",
        invariant="finish-and-usage",
        sample=CALL,
        variants=(
            Variant("again", "two chunks with the same `finish_reason`", frames=_again),
            Variant(
                "with-usage",
                "the second one has the usage, in place of a chunk without choices",
                frames=_again_with_usage,
            ),
        ),
        sources=(
            "langchain-ai/langchain#38226",
            "langchain-ai/langchain#38349",
            "QwenLM/qwen-code#2402",
            "Oaklight/llm-rosetta#589",
            "Gitlawb/openclaude#21",
        ),
    ),
    *ENDINGS,
)
