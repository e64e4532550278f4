"""Group C: quirks of the finish reason of Chat Completions; `ending` has those of the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mockllm.core.turn import Turn
from mockllm.protocols.openai_chat.fields import read_finish, write_finish, write_usage
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import Choice, choices_of, finishes, fragments, inserted, with_delta
from mockllm.quirks.chat.ending import QUIRKS as ENDINGS
from mockllm.quirks.chat.ending import is_finish_chunk
from mockllm.quirks.samples import CALL, TEXT
from mockllm.quirks.usage import is_usage_chunk

__all__ = ["QUIRKS"]


def _stop_with_tools(items: list[Item], context: Context) -> list[Item]:
    calling = {fragment.choice.index for fragment in fragments(items)}
    for choice in finishes(items):
        if choice.index in calling and choice.fields["finish_reason"] == "tool_calls":
            choice.fields["finish_reason"] = "stop"
    return items


def _stopped_with_tools(turn: Turn) -> Turn:
    return _finish_read({"tool_calls": "stop"})(turn) if turn.tool_calls else turn


def _finish_sent(values: Mapping[str, str]) -> FramesChange:
    """Replaces finish reasons, as `values` maps them."""

    def change(items: list[Item], context: Context) -> list[Item]:
        for choice in finishes(items):
            reason = choice.fields["finish_reason"]
            choice.fields["finish_reason"] = values.get(reason, reason)
        return items

    return change


def _finish_read(values: Mapping[str, str]) -> Callable[[Turn], Turn]:
    """The turn that a client reads from a stream whose finish reasons were replaced."""

    def expected(turn: Turn) -> Turn:
        if turn.finish is None:
            return turn
        value = values.get(write_finish(turn.finish, turn.finish_raw))
        if value is None:
            return turn
        finish = read_finish(value, calls=bool(turn.tool_calls), refused=bool(turn.refusal))
        return replace(turn, finish=finish.reason, finish_raw=finish.raw)

    return expected


_ANTHROPIC = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
_EOS = {"stop": "eos"}
_GUARDRAIL = {"stop": "guardrail_intervened", "content_filter": "guardrail_intervened"}


def _with_last_delta(items: list[Item], context: Context) -> list[Item]:
    last: dict[int, Choice] = {}
    gone: set[int] = set()
    for choice in choices_of(items):
        reason = choice.fields.get("finish_reason")
        if not isinstance(reason, str):
            last[choice.index] = choice
            continue
        before = last.pop(choice.index, None)
        if before is not None and is_finish_chunk(choice):
            before.fields["finish_reason"] = reason
            if choice.item.data.get("usage"):
                before.item.data["usage"] = choice.item.data["usage"]
            gone.add(id(choice.item))
    return [item for item in items if id(item) not in gone]


def _key_absent(items: list[Item], context: Context) -> list[Item]:
    for choice in choices_of(items):
        if "finish_reason" in choice.fields and choice.fields["finish_reason"] is None:
            del choice.fields["finish_reason"]
    return items


def _key_empty(items: list[Item], context: Context) -> list[Item]:
    for choice in choices_of(items):
        if "finish_reason" in choice.fields and choice.fields["finish_reason"] is None:
            choice.fields["finish_reason"] = ""
    return items


def _twice(items: list[Item], context: Context) -> list[Item]:
    for choice in finishes(items):
        items = inserted(items, choice.item, [_second_finish(choice)])
    return items


def _second_finish(choice: Choice) -> Item:
    item = with_delta(choice, {})
    item.data["choices"][0]["finish_reason"] = choice.fields["finish_reason"]
    return item


def _twice_with_usage(items: list[Item], context: Context) -> list[Item]:
    finished = finishes(items)
    if not finished:
        return items
    second = _second_finish(finished[-1])
    if context.turn.usage is not None:
        second.data["usage"] = write_usage(context.turn.usage)
        items = [item for item in items if not is_usage_chunk(item)]
    return inserted(items, finished[-1].item, [second])


QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        name="chat-finish-stop-with-tools",
        group="C",
        topic="ends",
        title="An answer with tool calls finishes with `stop`",
        only=("chat",),
        servers="Ollama, vLLM, mlx-vlm; OpenAI if `tool_choice` names the tool",
        right="same",
        correct="run the tools because there are calls, whatever the finish reason",
        faults="ends the agent's loop without running the tools",
        invariant="finish-and-usage",
        sample=CALL,
        variants=(
            Variant(
                description='`finish_reason:"stop"` after the calls',
                frames=_stop_with_tools,
                expected=_stopped_with_tools,
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
        topic="ends",
        title="The finish reason is a value of another API",
        only=("chat",),
        servers="gateways that convert from other APIs",
        right="same",
        correct='keep the raw value, and map an unknown one to "other"',
        faults="fails because the value is not in its enumeration",
        invariant="finish-and-usage",
        sample=TEXT,
        variants=(
            Variant(
                "end-turn",
                "`end_turn`, and for calls `tool_use`: Anthropic's values",
                frames=_finish_sent(_ANTHROPIC),
                expected=_finish_read(_ANTHROPIC),
            ),
            Variant(
                "eos",
                "`eos` in place of `stop`",
                frames=_finish_sent(_EOS),
                expected=_finish_read(_EOS),
            ),
            Variant(
                "guardrail",
                "`guardrail_intervened`: Bedrock's value",
                frames=_finish_sent(_GUARDRAIL),
                expected=_finish_read(_GUARDRAIL),
            ),
        ),
        sources=("BerriAI/litellm#12481",),
    ),
    Quirk(
        name="chat-finish-with-last-delta",
        group="C",
        topic="ends",
        title="The finish reason comes in the chunk with the last fragment",
        only=("chat",),
        servers="Mistral, vLLM, Gemini's compatible endpoint",
        right="same",
        correct="read the delta of a chunk before its finish reason",
        faults="loses the last fragment",
        invariant="delta-first",
        sample=TEXT,
        variants=(
            Variant(
                description=(
                    '`{"delta":{"content":"lo"},"finish_reason":"stop"}`, '
                    "and no separate finish chunk"
                ),
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
        topic="ends",
        title="Chunks before the finish have no `finish_reason`, or an empty one",
        only=("chat",),
        servers="xAI, Cerebras, z.ai, Snowflake (absent); older Ollama (empty)",
        right="same",
        correct="treat absent, null and empty as the same",
        faults="fails on the missing key, or reads the empty value as the end",
        invariant="null-tolerant",
        sample=TEXT,
        variants=(
            Variant("absent", "only the finish chunk has the key", frames=_key_absent),
            Variant("empty", '`"finish_reason":""` before the finish', frames=_key_empty),
        ),
        sources=("ollama/ollama#4357",),
    ),
    Quirk(
        name="chat-finish-twice",
        group="C",
        topic="ends",
        title="The finish chunk is sent twice",
        only=("chat",),
        servers="OpenRouter (the second has the usage), LM Studio",
        right="same",
        correct="use the first finish reason; usage may be in either chunk",
        faults="joins the values to `stopstop`, empties the calls, or shows the answer twice",
        invariant="finish-and-usage",
        sample=CALL,
        variants=(
            Variant("again", "two chunks with the same `finish_reason`", frames=_twice),
            Variant(
                "with-usage",
                "the second one has the usage, and no chunk without choices follows",
                frames=_twice_with_usage,
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
