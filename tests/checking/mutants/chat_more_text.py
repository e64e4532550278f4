"""Chat Completions: more mistakes with text, reasoning and refusals."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from examples.accumulators import ChatAccumulator
from mockllm.checking.outcome import Outcome
from tests.checking.mutants.chat_more_base import Object, entries
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import mutant

_MOST_TEXT = 4096

common(
    __name__,
    "chat",
    TextTrimmed="Trims the whole text.",
    CallErasesText="Reports no text where there are calls.",
    ReasoningIsText="""Adds reasoning to the text.

    Reasoning lost or mixed: aaif-goose/goose#7869, langchain-ai/langchain#37420,
    spring-projects/spring-ai#5898, vllm-project/vllm#32997.
    """,
    CallErasesReasoning=(
        "Reports no reasoning where there are calls (langchain-ai/langchain#37420)."
    ),
    RefusalIsText="Adds a refusal to the text.",
)


def _with_content(delta: Object, change: Callable[[str], str | None]) -> Object:
    """The delta with changed content, if that is text."""
    content = delta.get("content")
    return {**delta, "content": change(content)} if isinstance(content, str) else delta


# Text


@mutant("text-accumulates", api="chat", family="text")
class BlankTextLost(ChatAccumulator):
    """Drops fragments of text that are white space (spacedriveapp/spacebot#413,
    microsoft/Agents-for-js#997, diegosouzapw/OmniRoute#9189)."""

    def _delta(self, delta: Object) -> None:
        super()._delta(_with_content(delta, lambda text: text if text.strip() else ""))


@mutant("text-accumulates", api="chat", family="text")
class FirstSpacesLost(ChatAccumulator):
    """Trims the beginning of the text (jundot/omlx#2492)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.text.lstrip())


@mutant("text-accumulates", api="chat", family="text")
class LineEndsLost(ChatAccumulator):
    """Replaces line ends in the text by spaces (hydall/Glaze#247)."""

    def _delta(self, delta: Object) -> None:
        super()._delta(_with_content(delta, lambda text: text.replace("\n", " ")))


@mutant("text-accumulates", api="chat", family="text")
class EqualTextLost(ChatAccumulator):
    """Drops a fragment of text that equals the one before (bytedance/deer-flow#4085)."""

    def _delta(self, delta: Object) -> None:
        content = delta.get("content")
        same = bool(content) and content == self.__dict__.get("before")
        self.__dict__["before"] = content or self.__dict__.get("before")
        super()._delta(_with_content(delta, lambda text: "" if same else text))


@mutant("text-accumulates", api="chat", family="text")
class OverlapsMerged(ChatAccumulator):
    """Merges the end of the text with an equal beginning of the fragment (Porabuild/Poracode#205,
    charannyk06/conductor-oss#618)."""

    def _delta(self, delta: Object) -> None:
        text = self.outcome().text

        def merged(fragment: str) -> str:
            lengths = range(min(len(text), len(fragment) - 1), 0, -1)
            overlap = next((n for n in lengths if text.endswith(fragment[:n])), 0)
            return fragment[overlap:]

        super()._delta(_with_content(delta, merged))


@mutant("text-accumulates", api="chat", family="text")
class LongerTextReplaces(ChatAccumulator):
    """Takes a fragment that begins with the text so far for all of it (QwenLM/qwen-code#3896)."""

    def _delta(self, delta: Object) -> None:
        text = self.outcome().text
        super()._delta(
            _with_content(delta, lambda fragment: fragment.removeprefix(text) if text else fragment)
        )


@mutant("text-accumulates", api="chat", family="text")
class NullWordLost(ChatAccumulator):
    """Drops fragments of text that read "null" or "None"."""

    def _delta(self, delta: Object) -> None:
        super()._delta(
            _with_content(delta, lambda text: "" if text.strip() in ("null", "None") else text)
        )


@mutant("text-accumulates", api="chat", family="text")
class ZeroIsEmpty(ChatAccumulator):
    """Drops a fragment "0", which is empty for PHP."""

    def _delta(self, delta: Object) -> None:
        super()._delta(_with_content(delta, lambda text: "" if text == "0" else text))


@mutant("text-accumulates", api="chat", family="text")
class DoneInTextEnds(ChatAccumulator):
    """Ends the answer at a fragment of text with `[DONE]` (smg-project/smg#1878)."""

    def feed(self, payload: Any, event: str | None = None) -> Any:
        ended = self.__dict__.get("ended", False)
        self.__dict__["ended"] = ended or "[DONE]" in str(payload)
        return None if self.__dict__["ended"] else super().feed(payload, event)


@mutant("text-accumulates", api="chat", family="text")
class EntitiesInText(ChatAccumulator):
    """Escapes text for HTML."""

    def _delta(self, delta: Object) -> None:
        super()._delta(
            _with_content(delta, lambda text: text.replace("&", "&amp;").replace("<", "&lt;"))
        )


@mutant("text-accumulates", api="chat", family="text")
class FirstPartOnly(ChatAccumulator):
    """Reads the first part of a content alone (`chat-content-parts`)."""

    def _delta(self, delta: Object) -> None:
        content = delta.get("content")
        first = content[:1] if isinstance(content, list) else content
        super()._delta({**delta, "content": first})


@mutant("text-accumulates", api="chat", family="text")
class TextIsAList(ChatAccumulator):
    """Reports the text as a list of its fragments."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        fragments = list(outcome.text) if outcome.text else ""
        return replace(outcome, text=cast("str", fragments))


@mutant("text-accumulates", api="chat", family="text")
class LongTextCut(ChatAccumulator):
    """Cuts off text that is longer than its buffer; seen in clients written in C."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.text[:_MOST_TEXT])


@mutant("text-accumulates", api="chat", family="text")
class AsciiOnly(ChatAccumulator):
    """Drops characters that are not ASCII from the text."""

    def _delta(self, delta: Object) -> None:
        super()._delta(
            _with_content(delta, lambda text: text.encode("ascii", "ignore").decode("ascii"))
        )


@mutant("text-accumulates", api="chat", family="text")
class TextNormalised(ChatAccumulator):
    """Converts the text to Unicode's compatible form, which changes some characters."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=unicodedata.normalize("NFKC", outcome.text))


# Text and calls in one answer


@mutant("text-accumulates", api="chat", family="text")
class TextAfterCallLost(ChatAccumulator):
    """Drops the text that follows a call (Blaizzy/mlx-vlm#2027, sgl-project/sglang#33186)."""

    def _delta(self, delta: Object) -> None:
        super()._delta(_with_content(delta, lambda text: "" if self._calls else text))


@mutant("text-accumulates", api="chat", family="text")
class CallHidesText(ChatAccumulator):
    """Drops the text of a delta that has calls as well (waybarrios/vllm-mlx#690)."""

    def _delta(self, delta: Object) -> None:
        super()._delta(_with_content(delta, lambda text: "" if entries(delta) else text))


@mutant("arguments-concatenate", api="chat", family="text")
class TextHidesCall(ChatAccumulator):
    """Drops the calls of a delta whose content is text, even empty text
    (altic-dev/FluidVoice#830)."""

    def _delta(self, delta: Object) -> None:
        has_text = isinstance(delta.get("content"), str)
        super()._delta({**delta, "tool_calls": None} if has_text else delta)


# Reasoning


@mutant("text-accumulates", api="chat", family="reasoning")
class ReasoningAfterTextLost(ChatAccumulator):
    """Drops reasoning that follows text."""

    def _delta(self, delta: Object) -> None:
        fields = ("reasoning", "reasoning_content", "reasoning_details")
        thoughtless = {key: value for key, value in delta.items() if key not in fields}
        super()._delta(thoughtless if self._answer.has("text") else delta)


@mutant("text-accumulates", api="chat", family="reasoning")
class ReasoningHidesText(ChatAccumulator):
    """Drops the text of a delta that has a field for reasoning (`chat-reasoning-fields`)."""

    def _delta(self, delta: Object) -> None:
        fields = ("reasoning", "reasoning_content")
        thinking = any(isinstance(delta.get(name), str) for name in fields)
        super()._delta(_with_content(delta, lambda text: "" if thinking else text))


@mutant("text-accumulates", api="chat", family="reasoning")
class ReasoningContentUnknown(ChatAccumulator):
    """Does not know the field `reasoning_content` (`chat-reasoning-fields`)."""

    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "reasoning_content": None})


@mutant("text-accumulates", api="chat", family="reasoning")
class ReasoningUnknown(ChatAccumulator):
    """Does not know the field `reasoning` (`chat-reasoning-fields`)."""

    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "reasoning": None})


@mutant("text-accumulates", api="chat", family="reasoning")
class ReasoningDetailsUnknown(ChatAccumulator):
    """Does not know the field `reasoning_details` (`chat-reasoning-fields`)."""

    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "reasoning_details": None})


@mutant("text-accumulates", api="chat", family="reasoning")
class ReasoningOverwritten(ChatAccumulator):
    """Keeps the last fragment of reasoning alone."""

    def _delta(self, delta: Object) -> None:
        if delta.get("reasoning") or delta.get("reasoning_content"):
            self._answer._texts["reasoning"].clear()
        super()._delta(delta)


@mutant("text-accumulates", api="chat", family="reasoning")
class ReasoningTrimmed(ChatAccumulator):
    """Trims each fragment of reasoning."""

    def _delta(self, delta: Object) -> None:
        trimmed = {
            name: text.strip()
            for name in ("reasoning", "reasoning_content")
            if isinstance(text := delta.get(name), str)
        }
        super()._delta({**delta, **trimmed})


# Refusals


@mutant("text-accumulates", api="chat", family="text")
class RefusalOverwritten(ChatAccumulator):
    """Keeps the last fragment of a refusal alone."""

    def _delta(self, delta: Object) -> None:
        if delta.get("refusal"):
            self._answer._texts["refusal"].clear()
        super()._delta(delta)
