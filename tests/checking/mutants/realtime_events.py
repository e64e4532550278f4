"""Mistakes with the events of Realtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators import RealtimeAccumulator
from examples.accumulators.values import mapping, string


class DeltasOfLatestItem(RealtimeAccumulator):
    def _arguments(self, id: str, text: str) -> None:
        super()._arguments(next(reversed(self._calls), id), text)


class ArgumentsTwice(RealtimeAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        value = mapping(payload)
        if value.get("type") == "response.function_call_arguments.done":
            self._arguments(string(value.get("item_id")), string(value.get("arguments")))
        return super().feed(payload, event)


class ItemIdIsTheCallId(RealtimeAccumulator):
    def _start(self, item: Mapping[str, Any]) -> None:
        super()._start({**item, "call_id": item.get("id")})


class WholeTextAppended(RealtimeAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        value = mapping(payload)
        if value.get("type") == "response.output_text.done":
            self._answer.add(
                "text", string(value.get("text")), self._slot(string(value.get("item_id")))
            )
        return super().feed(payload, event)


class FailedIsDone(RealtimeAccumulator):
    def _done(self, response: Mapping[str, Any]) -> None:
        done = "completed" if response.get("status") == "failed" else response.get("status")
        super()._done({**response, "status": done})


class IncompleteIsDone(RealtimeAccumulator):
    def _done(self, response: Mapping[str, Any]) -> None:
        super()._done({**response, "status_details": None, "status": "completed"})


class UsageIgnored(RealtimeAccumulator):
    def _usage(self, usage: Mapping[str, Any]) -> None:
        pass


class AnyEventMustBeKnown(RealtimeAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        if not string(mapping(payload).get("type")).startswith(("response.", "error")):
            raise ValueError("unknown event")
        return super().feed(payload, event)
