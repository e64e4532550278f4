"""Mistakes with the response, its usage, its ends and policies in Responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import ResponsesAccumulator
from examples.accumulators.responses import _Item
from examples.accumulators.values import mapping, sequence, string
from mockllm.checking import Policy
from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta, Fragment
from tests.checking.mutants.altered import answer_of, rewriting_errors
from tests.checking.mutants.common import Skips
from tests.checking.mutants.responses_items import AppendsFinalArguments, LastItemGetsAll


class HandsOnArgumentsSoFar(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if payload.get("type") != "response.function_call_arguments.delta":
            return delta
        call = self._item("function_call", payload).call
        if call is None:
            return delta
        fragment = Fragment(call.arguments, call.id, call.name, call.number)
        return replace(delta or Delta(), tool=(fragment,))


class HandsOnFinalArguments(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        type = string(payload.get("type"))
        if not type.startswith("response.function_call_arguments."):
            return delta
        call = self._item("function_call", payload).call
        text = string(payload.get("delta")) or string(payload.get("arguments"))
        if call is None or not text:
            return delta
        return replace(delta or Delta(), tool=(Fragment(text, call.id, call.name, call.number),))


class HandsOnFinalReasoning(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        item = mapping(payload.get("item"))
        ended = payload.get("type") == "response.output_item.done"
        if not ended or item.get("type") != "reasoning":
            return delta
        parts = [mapping(part).get("text") for part in sequence(item.get("summary"))]
        return Delta(reasoning="".join(map(string, parts)))


class HandsOnCallsTwice(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        item = mapping(payload.get("item"))
        if payload.get("type") != "response.output_item.done" or delta is not None:
            return delta
        calls = [call for call in self.outcome().tool_calls if call.id == item.get("call_id")]
        return Delta(tool_calls=tuple(calls)) if calls else None


Object = Mapping[str, Any]


# Opaque values


class _Encrypted(ResponsesAccumulator):
    """Keeps the encrypted content of reasoning by `output_index`; mutants derive from it."""

    events = ("response.output_item.added", "response.output_item.done")

    def __init__(self) -> None:
        super().__init__()
        self.opaque: dict[Any, str] = {}

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        item = mapping(payload.get("item"))
        value = string(item.get("encrypted_content"))
        if value and payload.get("type") in self.events:
            self.opaque[payload.get("output_index"), item.get("type")] = value
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque.values()))


class EncryptedContentLost(_Encrypted):
    events = ("", "")


class EncryptedContentOfTheStart(_Encrypted):
    events = ("response.output_item.added", "")


class LastEncryptedContentOnly(_Encrypted):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque.values())[-1:])


class EncryptedContentOrSummary(_Encrypted):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, opaque=()) if outcome.reasoning else outcome


# The response


class RolesJoined(ResponsesAccumulator):
    def __init__(self) -> None:
        super().__init__()
        self.role = ""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.role += string(mapping(payload.get("item")).get("role"))
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), role=self.role or "assistant")


class IdOfTheLastItem(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        ids = [id for item in self._items for id in sorted(item.ids)]
        return replace(super().outcome(), response_id=ids[-1] if ids else None)


class ModelNotRead(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.model = payload.get("model")
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), model=self.__dict__.get("model"))


# Usage and finish


class UsageOfCompletedOnly(ResponsesAccumulator):
    def _end(self, status: str, response: Object) -> None:
        super()._end(status, response if status == "completed" else {**response, "usage": None})


class DetailsOfUsageNotRead(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        usage = outcome.usage
        return replace(outcome, usage=usage and replace(usage, reasoning=0, cached=0))


class CachedTokensTakenOff(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        usage = outcome.usage
        if usage is None:
            return outcome
        changed = Usage(
            (usage.input or 0) - (usage.cached or 0), usage.output, usage.reasoning, usage.cached
        )
        return replace(outcome, usage=changed)


class NoFinishIfIncomplete(ResponsesAccumulator):
    def _end(self, status: str, response: Object) -> None:
        super()._end(status, response)
        if status == "incomplete":
            self._answer.finish = None


class EveryLimitIsTheTokenLimit(ResponsesAccumulator):
    def _end(self, status: str, response: Object) -> None:
        super()._end(status, response)
        if status == "incomplete" and self._answer.finish:
            self._answer.finish = "length"


# Errors, cut streams, unknown events


class MessageOfTheErrorLost(ResponsesAccumulator):
    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_errors(lambda _: "the response failed"))


class FailedWithoutAnErrorRaises(ResponsesAccumulator):
    def _end(self, status: str, response: Object) -> None:
        if status == "failed":
            response["error"]["message"] + response["error"]["code"]
        super()._end(status, response)


class ErrorEventIgnored(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        ignored = payload.get("type", "error") == "error"
        return None if ignored else super().feed(payload, event)


class EndOfItemsIsTheEnd(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        ended = self.__dict__.setdefault("ended", [])
        if payload.get("type") == "response.output_item.done":
            ended.append(payload.get("output_index"))
        return super().feed(payload, event)

    def close(self) -> None:
        if len(self.__dict__.get("ended", ())) >= len(self._items) > 0:
            self._answer.complete = True
        super().close()


class PrefixOfTheTypeDecides(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        type = string(payload.get("type"))
        if type.startswith("response.output_text.") and not type.endswith(".done"):
            payload["delta"]
        return super().feed(payload, event)


class UnknownPartRaises(ResponsesAccumulator):
    def _item_done(self, value: Object) -> None:
        item = mapping(value.get("item"))
        for part in sequence(item.get("content")):
            {"output_text": 0, "refusal": 1, "reasoning_text": 2}[part["type"]]
        super()._item_done(value)


class UnknownToolRaises(ResponsesAccumulator):
    def offer(self, tools: tuple[str, ...]) -> None:
        """The tools of the request."""
        self.offered = {str(tool): tool for tool in tools}

    def _surface(self, item: _Item) -> None:
        if self.offered and item.call is not None and not item.call.closed:
            self.offered[item.call.name]
        super()._surface(item)


# Input and other streams


class ArgumentsTakenOut(ResponsesAccumulator):
    def _item_done(self, value: Object) -> None:
        super()._item_done(value)
        item = value.get("item")
        if isinstance(item, dict) and item.get("type") == "function_call":
            item.pop("arguments", None)


class SharesItsItems(ResponsesAccumulator):
    _all: list[_Item] = []  # noqa: RUF012 - the mistake

    def __init__(self) -> None:
        super().__init__()
        self._all.clear()
        self._items = self._all


class EncryptedContentOfTheEnd(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        output = sequence(mapping(payload.get("response")).get("output"))
        found = [string(mapping(item).get("encrypted_content")) for item in output]
        self.opaque = tuple(filter(None, found))
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=self.__dict__.get("opaque", ()))


class SequenceNumbersGrow(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        number = payload.get("sequence_number") or 0
        last = self.__dict__.get("last", -1)
        if number <= last and "sequence_number" not in payload:
            return None
        self.last = max(number, last)
        return super().feed(payload, event)


SKIP = Policy(malformed="skip")


class SkipsArgumentsByPosition(Skips, LastItemGetsAll):
    pass


class SkipsDoubledArguments(Skips, AppendsFinalArguments):
    pass


class ReportsOnlyTheCall(ResponsesAccumulator):
    pass


class UnknownToolEndsTheCalls(ResponsesAccumulator):
    def offer(self, tools: tuple[str, ...]) -> None:
        """The tools of the request."""
        self.offered = set(map(str, tools))

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        names = [call.name in self.offered for call in outcome.tool_calls]
        known = names.index(False) if self.offered and False in names else len(names)
        return replace(outcome, tool_calls=outcome.tool_calls[:known])


class IdOfTheItemInstead(ResponsesAccumulator):
    def __init__(self) -> None:
        super().__init__(missing_id="error")

    def _surface(self, item: _Item) -> None:
        if item.call is not None and not item.call.id:
            item.call.id = min(item.ids, default="")
        super()._surface(item)


# Events that may be missing, and events that add nothing


class CreatedRequired(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        type = string(payload.get("type"))
        self.__dict__["created"] = self.__dict__.get("created") or type == "response.created"
        if not self.__dict__["created"] and type.endswith((".delta", ".added")):
            raise ValueError(f"{type} came before response.created")
        return super().feed(payload, event)


class AnnotationsBreak(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if "annotation" in string(payload.get("type")):
            raise ValueError(f"unexpected event {payload['type']}")
        return super().feed(payload, event)


class AppendsFinalRefusal(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if payload.get("type") == "response.refusal.done":
            self.__dict__["again"] = self.__dict__.get("again", "") + string(payload["refusal"])
        return delta

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, refusal=outcome.refusal + self.__dict__.get("again", ""))


class SummariesJoinedByLines(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        slots = self._answer._texts["reasoning"]
        parts = ["".join(slots[slot]) for slot in sorted(slots)]
        return replace(super().outcome(), reasoning="\n\n".join(parts))


class CompletedItemsOnly(ResponsesAccumulator):
    def _item_done(self, value: Mapping[str, Any]) -> None:
        if mapping(value.get("item"))["status"] == "completed":
            super()._item_done(value)


class IdOfTheEndOnly(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "response.completed":
            self.__dict__["id"] = mapping(payload.get("response")).get("id")
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), response_id=self.__dict__.get("id"))


class DetailsExchanged(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        usage = outcome.usage
        if usage is None:
            return outcome
        exchanged = replace(usage, reasoning=usage.cached, cached=usage.reasoning)
        return replace(outcome, usage=exchanged)


class LimitErasesText(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        limited = outcome.finish == "max_output_tokens"
        return replace(outcome, text="") if limited else outcome


class ErrorFinishes(ResponsesAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        failed = any(error.kind == "stream_error" for error in outcome.errors)
        return replace(outcome, finish="completed") if failed else outcome


class IdsOfTheStartOnly(ResponsesAccumulator):
    def _item_done(self, value: Mapping[str, Any]) -> None:
        item = {**mapping(value.get("item")), "call_id": None}
        super()._item_done({**value, "item": item})

    def _fill_from_response(self, output: list[Any]) -> None:
        pass


class TextPassedOnAtTheEnd(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        held = self.__dict__.pop("held", "") + (delta.text if delta else "")
        if payload.get("type") == "response.output_item.done":
            return replace(delta or Delta(), text=held)
        self.__dict__["held"] = held
        return delta and replace(delta, text="")


class FinalTextIgnored(ResponsesAccumulator):
    def _fill_from_response(self, output: list[Any]) -> None:
        super()._fill_from_response([one for one in output if one.get("type") != "message"])


class FinalCallsIgnored(ResponsesAccumulator):
    def _fill_from_response(self, output: list[Any]) -> None:
        super()._fill_from_response([one for one in output if one.get("type") != "function_call"])
