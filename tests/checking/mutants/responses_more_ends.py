"""Responses: more mistakes with opaque values, the response itself, usage, and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import ResponsesAccumulator
from examples.accumulators.responses import _Item
from examples.accumulators.values import mapping, sequence, string
from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta
from tests.checking.mutants.altered import answer_of, rewriting_errors
from tests.checking.mutants.declared import mutant

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


@mutant("opaque-kept", api="responses", family="opaque values")
class EncryptedContentLost(_Encrypted):
    """Ignores the encrypted content of reasoning (deepset-ai/haystack#11658,
    microsoft/agent-framework-go#683, zendev-sh/goai#134)."""

    events = ("", "")


@mutant("opaque-kept", api="responses", family="opaque values")
class EncryptedContentOfTheStart(_Encrypted):
    """Reads the encrypted content of `output_item.added`, which is not complete
    (langchain-ai/langchainjs#10845, vercel/ai#7029)."""

    events = ("response.output_item.added", "")


@mutant("opaque-kept", api="responses", family="opaque values")
class LastEncryptedContentOnly(_Encrypted):
    """Has one variable for the encrypted content of all reasoning items."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque.values())[-1:])


@mutant("opaque-kept", api="responses", family="opaque values")
class EncryptedContentOrSummary(_Encrypted):
    """Keeps the encrypted content only if there is no summary
    (microsoft/agent-framework#4644)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, opaque=()) if outcome.reasoning else outcome


# The response


@mutant("role-kept", api="responses", family="role and ids of the answer")
class RolesJoined(ResponsesAccumulator):
    """Joins the roles of all events that have one (openinterpreter/openinterpreter#244)."""

    def __init__(self) -> None:
        super().__init__()
        self.role = ""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.role += string(mapping(payload.get("item")).get("role"))
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), role=self.role or "assistant")


@mutant("answer-id-kept", api="responses", family="role and ids of the answer")
class IdOfTheLastItem(ResponsesAccumulator):
    """Takes the id of the last item for that of the response, and continues from it."""

    def outcome(self) -> Outcome:
        ids = [id for item in self._items for id in sorted(item.ids)]
        return replace(super().outcome(), response_id=ids[-1] if ids else None)


@mutant("answer-id-kept", api="responses", family="role and ids of the answer")
class ModelNotRead(ResponsesAccumulator):
    """Has no model, since only chunks of Chat Completions have one at the top."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.model = payload.get("model")
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), model=self.__dict__.get("model"))


# Usage and finish


@mutant("finish-and-usage", api="responses", family="usage")
class UsageOfCompletedOnly(ResponsesAccumulator):
    """Reads the usage of `response.completed`, and not of `response.incomplete`
    (BerriAI/litellm#34352)."""

    def _end(self, status: str, response: Object) -> None:
        super()._end(status, response if status == "completed" else {**response, "usage": None})


@mutant("finish-and-usage", api="responses", family="usage")
class DetailsOfUsageNotRead(ResponsesAccumulator):
    """Looks for reasoning and cached tokens at the top of the usage, and reports 0."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        usage = outcome.usage
        return replace(outcome, usage=usage and replace(usage, reasoning=0, cached=0))


@mutant("finish-and-usage", api="responses", family="usage")
class CachedTokensTakenOff(ResponsesAccumulator):
    """Subtracts cached tokens from the input, as the Messages API counts them."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        usage = outcome.usage
        if usage is None:
            return outcome
        changed = Usage(
            (usage.input or 0) - (usage.cached or 0), usage.output, usage.reasoning, usage.cached
        )
        return replace(outcome, usage=changed)


@mutant("finish-and-usage", api="responses", family="finish")
class NoFinishIfIncomplete(ResponsesAccumulator):
    """Sets the finish for `response.completed` alone (pydantic/pydantic-ai#7911)."""

    def _end(self, status: str, response: Object) -> None:
        super()._end(status, response)
        if status == "incomplete":
            self._answer.finish = None


@mutant("finish-and-usage", api="responses", family="finish")
class EveryLimitIsTheTokenLimit(ResponsesAccumulator):
    """Reports `length` for every incomplete response, also one that was filtered
    (BerriAI/litellm#37710)."""

    def _end(self, status: str, response: Object) -> None:
        super()._end(status, response)
        if status == "incomplete" and self._answer.finish:
            self._answer.finish = "length"


# Errors, cut streams, unknown events


@mutant("error-ends", api="responses", family="errors")
class MessageOfTheErrorLost(ResponsesAccumulator):
    """Reports every error with its own message, without that of the service."""

    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_errors(lambda _: "the response failed"))


@mutant("error-ends", api="responses", family="errors")
class FailedWithoutAnErrorRaises(ResponsesAccumulator):
    """Requires the error of `response.failed`, and raises where it is null."""

    def _end(self, status: str, response: Object) -> None:
        if status == "failed":
            response["error"]["message"] + response["error"]["code"]
        super()._end(status, response)


@mutant("error-ends", api="responses", family="errors")
class ErrorEventIgnored(ResponsesAccumulator):
    """Waits for `response.failed`, and passes over `error` (openai/openai-dotnet#881)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        ignored = payload.get("type", "error") == "error"
        return None if ignored else super().feed(payload, event)


@mutant("truncated-is-not-complete", api="responses", family="cut streams")
class EndOfItemsIsTheEnd(ResponsesAccumulator):
    """Treats a stream as complete if all its items have ended (`resp-no-terminal`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        ended = self.__dict__.setdefault("ended", [])
        if payload.get("type") == "response.output_item.done":
            ended.append(payload.get("output_index"))
        return super().feed(payload, event)

    def close(self) -> None:
        if len(self.__dict__.get("ended", ())) >= len(self._items) > 0:
            self._answer.complete = True
        super().close()


@mutant("unknown-event", api="responses", family="unknown events")
class PrefixOfTheTypeDecides(ResponsesAccumulator):
    """Reads a delta in every event whose type begins with `response.output_text`, also in
    `annotation.added`."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        type = string(payload.get("type"))
        if type.startswith("response.output_text.") and not type.endswith(".done"):
            payload["delta"]
        return super().feed(payload, event)


@mutant("unknown-event", api="responses", family="unknown events")
class UnknownPartRaises(ResponsesAccumulator):
    """Raises on parts of a message that it does not know (vercel/ai#13906 is such a crash)."""

    def _item_done(self, value: Object) -> None:
        item = mapping(value.get("item"))
        for part in sequence(item.get("content")):
            {"output_text": 0, "refusal": 1, "reasoning_text": 2}[part["type"]]
        super()._item_done(value)


@mutant("unknown-tool", api="responses", family="unknown tools")
class UnknownToolRaises(ResponsesAccumulator):
    """Looks up the tool of a call in a dictionary, and raises."""

    def offer(self, tools: tuple[str, ...]) -> None:
        """The tools of the request."""
        self.offered = {str(tool): tool for tool in tools}

    def _surface(self, item: _Item) -> None:
        if self.offered and item.call is not None and not item.call.closed:
            self.offered[item.call.name]
        super()._surface(item)


# Input and other streams


@mutant("input-untouched", api="responses", family="modified input")
class ArgumentsTakenOut(ResponsesAccumulator):
    """Takes the arguments out of the item that it was given."""

    def _item_done(self, value: Object) -> None:
        super()._item_done(value)
        item = value.get("item")
        if isinstance(item, dict) and item.get("type") == "function_call":
            item.pop("arguments", None)


@mutant("stage-empties", api="responses", family="shared state")
class SharesItsItems(ResponsesAccumulator):
    """Keeps items in a list of the class, and clears it when a stream begins."""

    _all: list[_Item] = []  # noqa: RUF012 - the mistake

    def __init__(self) -> None:
        super().__init__()
        self._all.clear()
        self._items = self._all


@mutant("opaque-kept", api="responses", family="opaque values")
class EncryptedContentOfTheEnd(ResponsesAccumulator):
    """Reads the encrypted content of `response.completed` alone, whose output may be empty
    (`resp-completed-output-empty`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        output = sequence(mapping(payload.get("response")).get("output"))
        found = [string(mapping(item).get("encrypted_content")) for item in output]
        self.opaque = tuple(filter(None, found))
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=self.__dict__.get("opaque", ()))


@mutant("null-tolerant", api="responses", family="null and absent")
class SequenceNumbersGrow(ResponsesAccumulator):
    """Drops events whose sequence number is not higher than the last, and reads a missing one as
    0 (`resp-required-missing`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        number = payload.get("sequence_number") or 0
        last = self.__dict__.get("last", -1)
        if number <= last and "sequence_number" not in payload:
            return None
        self.last = max(number, last)
        return super().feed(payload, event)
