"""Mistakes with the messages of Gemini Live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators import LiveAccumulator
from examples.accumulators.values import mapping, sequence


class ThoughtsAreText(LiveAccumulator):
    def _message(self, message: Mapping[str, Any]) -> None:
        content = mapping(message.get("serverContent"))
        parts = sequence(mapping(content.get("modelTurn")).get("parts"))
        said = [{**mapping(part), "thought": False} for part in parts]
        if parts:
            message = {**message, "serverContent": {**content, "modelTurn": {"parts": said}}}
        super()._message(message)


class FirstCallOfAMessage(LiveAccumulator):
    def _message(self, message: Mapping[str, Any]) -> None:
        calls = sequence(mapping(message.get("toolCall")).get("functionCalls"))
        if calls:
            message = {**message, "toolCall": {"functionCalls": calls[:1]}}
        super()._message(message)


class CallsNeedAnEnd(LiveAccumulator):
    def _call(self, value: Mapping[str, Any]) -> None:
        super()._call(value)
        self._answer.complete = False


class FirstMessageIsTheSetup(LiveAccumulator):
    """google-genai takes whatever comes first for the answer to its setup."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._is_set_up = False

    def _message(self, message: Mapping[str, Any]) -> None:
        if self._is_set_up:
            super()._message(message)
        self._is_set_up = True


class CloseIsTheEnd(LiveAccumulator):
    def _message(self, message: Mapping[str, Any]) -> None:
        if message.get("close"):
            self._answer.complete = True
            return
        super()._message(message)


class GenerationIsTheEnd(LiveAccumulator):
    def _message(self, message: Mapping[str, Any]) -> None:
        if self._answer.complete:
            return
        super()._message(message)
        if mapping(message.get("serverContent")).get("generationComplete"):
            self._answer.complete, self._answer.finish = True, "stop"


class UsageWithoutThoughts(LiveAccumulator):
    def _usage(self, usage: Mapping[str, Any]) -> None:
        super()._usage({**usage, "thoughtsTokenCount": 0})
