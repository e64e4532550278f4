"""Mistakes with ends, usage, errors and missing fields in Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import ChatAccumulator
from examples.accumulators.answer import StagedCall
from examples.accumulators.values import mapping
from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta
from tests.checking.mutants.altered import SHARED, failed, with_errors
from tests.checking.mutants.chat_arguments import entries, function

Object = Mapping[str, Any]


class StopsAtFinish(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return None if self._answer.complete else super().feed(payload, event)


class NoDeltaAfterFinish(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        if not self._answer.complete:
            super()._delta(delta)


class FinishBeforeDelta(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        delta = {} if choice.get("finish_reason") else choice.get("delta")
        super()._choice({**choice, "delta": delta}, failing=failing)


class LastFinishWins(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(choice, failing=failing)
        self._answer.finish = choice.get("finish_reason")


class AppendsTheFinish(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        before = self._answer.finish
        super()._choice(choice, failing=failing)
        if before and choice.get("finish_reason"):
            self._answer.finish = before + choice["finish_reason"]


class FinishFromAList(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        known = (None, "", "stop", "length", "tool_calls", "content_filter")
        if choice.get("finish_reason") not in known:
            raise ValueError(f"unknown finish_reason {choice['finish_reason']!r}")
        super()._choice(choice, failing=failing)


class CallsByFinish(ChatAccumulator):
    def _surface(self) -> None:
        if self._answer.finish == "stop":
            self._answer._abandon()
        super()._surface()


class FinishKeyRequired(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        choice["finish_reason"]
        super()._choice(choice, failing=failing)


class SumsUsage(ChatAccumulator):
    def _usage(self, chunk: Object) -> None:
        before, self._answer.usage = self._answer.usage, None
        super()._usage(chunk)
        now = self._answer.usage
        if before is not None and now is not None:
            self._answer.usage = Usage(before.input, (before.output or 0) + (now.output or 0))
        else:
            self._answer.usage = now or before


class NullWipesUsage(ChatAccumulator):
    def _usage(self, chunk: Object) -> None:
        self._answer.usage = None
        super()._usage(chunk)


class UsageWithoutChoices(ChatAccumulator):
    def _usage(self, chunk: Object) -> None:
        if not chunk.get("choices"):
            super()._usage(chunk)


class EndOfInputIsTheEnd(ChatAccumulator):
    def close(self) -> None:
        self._answer.complete = True
        super().close()


class ErrorPassedOver(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed({**payload, "error": None}, None)


class ErrorNeedsItsEventLine(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed(payload if event == "error" else {**payload, "error": None}, event)


class ErrorSurfacesCalls(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("error"):
            self._answer.complete = True
            return None
        return super().feed(payload, event)


_STAGE: list[StagedCall] = []

_SHARED: list[StagedCall] = []


SHARED += [_STAGE, _SHARED]


class SharesTheStage(ChatAccumulator):
    def __init__(self) -> None:
        super().__init__()
        self._calls = _STAGE


class ClearsTheStageAtTheEnd(ChatAccumulator):
    def __init__(self) -> None:
        super().__init__()
        self._calls = _SHARED

    def close(self) -> None:
        super().close()
        _SHARED.clear()


# Finish


class LengthIsStop(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, finish="stop") if outcome.finish == "length" else outcome


class FilterRaises(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(choice, failing=failing)
        if choice.get("finish_reason") == "content_filter":
            raise ValueError("the answer was filtered")


class CallsDecideTheFinish(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, finish="tool_calls") if outcome.tool_calls else outcome


class CallsOfUnusualFinishLost(ChatAccumulator):
    def _surface(self) -> None:
        if self._answer.finish not in ("stop", "tool_calls"):
            self._answer._abandon()
        super()._surface()


class EmptyFinishCounts(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(choice, failing=failing)
        reason = choice.get("finish_reason")
        if reason is not None and not failing:
            self._answer.finish = self.__dict__.setdefault("first", reason)


class AnyChoiceFinishes(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        finished = self.__dict__.get("finished", False)
        delta = None if finished else super().feed(payload, event)
        choices = map(mapping, payload.get("choices") or [])
        if any(choice.get("index") and choice.get("finish_reason") for choice in choices):
            self.__dict__["finished"] = self._answer.complete = True
        return delta


class FinishInCapitals(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, finish=outcome.finish and outcome.finish.upper())


class FinishLost(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, finish=outcome.finish and self.__dict__.get("finish"))

    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(choice, failing=failing)
        if not any((choice.get("delta") or {}).values()):
            self.__dict__["finish"] = choice.get("finish_reason") or self.__dict__.get("finish")


# Usage


class FirstUsageWins(ChatAccumulator):
    def _usage(self, chunk: Object) -> None:
        if self._answer.usage is None:
            super()._usage(chunk)


class UsageEndsTheAnswer(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return None if self._answer.usage is not None else super().feed(payload, event)


class UsageNeedsChoices(ChatAccumulator):
    def _usage(self, chunk: Object) -> None:
        if chunk.get("choices"):
            super()._usage(chunk)


class _ChangedUsage(ChatAccumulator):
    """Reports its usage changed by a subclass."""

    def changed(self, usage: Usage) -> Usage:
        """The usage as the mutant reports it."""
        raise NotImplementedError

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, usage=outcome.usage and self.changed(outcome.usage))


class DetailsAreZero(_ChangedUsage):
    def changed(self, usage: Usage) -> Usage:
        return replace(usage, reasoning=0, cached=0)


class UsageSwapped(_ChangedUsage):
    def changed(self, usage: Usage) -> Usage:
        return replace(usage, input=usage.output, output=usage.input)


class TotalIsOutput(_ChangedUsage):
    def changed(self, usage: Usage) -> Usage:
        return replace(usage, output=(usage.input or 0) + (usage.output or 0))


class ReasoningCountsTwice(_ChangedUsage):
    def changed(self, usage: Usage) -> Usage:
        return replace(usage, output=(usage.output or 0) + (usage.reasoning or 0))


class CachedSubtracted(_ChangedUsage):
    def changed(self, usage: Usage) -> Usage:
        return replace(usage, input=(usage.input or 0) - (usage.cached or 0))


class DetailsExchanged(_ChangedUsage):
    def changed(self, usage: Usage) -> Usage:
        return replace(usage, reasoning=usage.cached, cached=usage.reasoning)


# Errors in the stream


class ErrorIsGeneric(ChatAccumulator):
    def outcome(self) -> Outcome:
        return with_errors(super().outcome(), "stream_error", message="Something went wrong.")


class ErrorKeepsCalls(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("error"):
            for call in self._answer.open_calls():
                self._answer.surface(call)
        return super().feed(payload, event)


class GoesOnAfterError(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        failed, self._answer.failed = self._answer.failed, False
        delta = super().feed(payload, event)
        self._answer.failed = self._answer.failed or failed
        return delta


class ErrorIsText(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        messages = [error.message for error in outcome.errors if error.kind == "stream_error"]
        others = tuple(error for error in outcome.errors if error.kind != "stream_error")
        return replace(outcome, text=outcome.text + "".join(messages), errors=others)


class ErrorErasesText(ChatAccumulator):
    def outcome(self) -> Outcome:
        return failed(super().outcome(), "stream_error", text="")


class ErrorFinishes(ChatAccumulator):
    def outcome(self) -> Outcome:
        return failed(super().outcome(), "stream_error", finish="stop")


class ObjectErrorUnknown(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed({} if payload.get("object") == "error" else payload, event)


class EventNameIgnored(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed(payload)


class ErrorNeedsNoChoices(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed(
            {**payload, "error": None} if payload.get("choices") else payload, event
        )


# Streams that are cut


class CutIsSilent(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        errors = tuple(error for error in outcome.errors if error.kind != "truncated")
        return replace(outcome, errors=errors)


class CutIsStop(ChatAccumulator):
    def outcome(self) -> Outcome:
        return failed(super().outcome(), "truncated", finish="stop", errors=())


class CutSurfacesCalls(ChatAccumulator):
    def close(self) -> None:
        if not self._answer.complete:
            for call in self._answer.open_calls():
                self._answer.surface(call)
        super().close()


class CutErasesText(ChatAccumulator):
    def outcome(self) -> Outcome:
        return failed(super().outcome(), "truncated", text="")


class UsageIsTheEnd(ChatAccumulator):
    def close(self) -> None:
        self._answer.complete = self._answer.complete or self._answer.usage is not None
        super().close()


# Fields that are null or absent


class UsageIsAnObject(ChatAccumulator):
    def _usage(self, chunk: Object) -> None:
        if "usage" in chunk:
            chunk["usage"]["prompt_tokens"]
        super()._usage(chunk)


class ChoicesAreAList(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if "error" not in payload and payload.get("object") != "error":
            list(payload["choices"])
        return super().feed(payload, event)


class IdIsText(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        entry.get("id", "").strip()
        super()._fragment(entry)


class NameIsText(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        function(entry).get("name", "").strip()
        super()._fragment(entry)


class ArgumentsRequired(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        function(entry)["arguments"]
        super()._fragment(entry)


class ContentRequired(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        if delta:
            delta["content"]
        super()._delta(delta)


class IdOfEveryFragment(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        entry["id"]
        super()._fragment(entry)


class ChunkIdRequired(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("choices") and not payload["id"]:
            raise ValueError("a chunk has no id")
        return super().feed(payload, event)


class ObjectChecked(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("choices") and payload.get("object") != "chat.completion.chunk":
            raise ValueError(f"unknown object {payload.get('object')!r}")
        return super().feed(payload, event)


class ChoicesNotEmpty(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if not (payload.get("choices") or payload.get("usage") or payload.get("error")):
            self._answer.fail("a chunk has no choices")
        return super().feed(payload, event)


class NullDeltaEndsTheAnswer(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        if choice.get("delta") is not None:
            super()._choice(choice, failing=failing)


class TypeOfEveryFragment(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        known = [entry for entry in entries(delta) if entry.get("type", "function") == "function"]
        super()._delta({**delta, "tool_calls": known})


class DeltaFieldsChecked(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        documented = {"role", "content", "refusal", "tool_calls", "function_call"}
        unknown = sorted(delta.keys() - documented)
        if unknown:
            raise ValueError(f"unknown fields {unknown}")
        super()._delta(delta)


class ChunkFieldsChecked(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        documented = {"id", "object", "created", "model", "choices", "usage", "error"}
        documented |= {"service_tier", "system_fingerprint", "obfuscation", "moderation"}
        unknown = sorted(payload.keys() - documented)
        if unknown and payload.get("object") != "error" and event != "error":
            raise ValueError(f"unknown fields {unknown}")
        return super().feed(payload, event)


# The role of the message, and the model and the id of the answer


class _Seen(ChatAccumulator):
    """Collects the roles, models and ids of all chunks, null where they are absent."""

    def __init__(self) -> None:
        super().__init__()
        self.roles: list[str | None] = []
        self.models: list[str | None] = []
        self.ids: list[str | None] = []

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.models.append(payload.get("model"))
        self.ids.append(payload.get("id"))
        return super().feed(payload, event)

    def _delta(self, delta: Object) -> None:
        self.roles.append(delta.get("role"))
        super()._delta(delta)


class RolesJoined(_Seen):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), role="".join(role or "" for role in self.roles))


class LastRole(_Seen):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), role=next(reversed(self.roles), None))


class FirstRole(_Seen):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), role=next(iter(self.roles), None))


class RoleOfUser(_Seen):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), role="user")


class ModelsJoined(_Seen):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), model="".join(model or "" for model in self.models))


class LastModel(_Seen):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), model=next(reversed(self.models), None))


class NoModel(_Seen):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), model=None)


class IdsJoined(_Seen):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), response_id="".join(id or "" for id in self.ids))


class IdMadeUp(_Seen):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), response_id="chatcmpl-0")


class GroqUsageUnknown(ChatAccumulator):
    def _usage(self, chunk: Object) -> None:
        super()._usage({key: value for key, value in chunk.items() if key != "x_groq"})


class FinishOfAnyChoice(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        delta = super().feed(payload, event)
        for choice in mapping(payload).get("choices") or []:
            if choice.get("finish_reason") and not self._answer.failed:
                self._answer.finish = choice["finish_reason"]
        return delta


class LastIdCounts(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        delta = super().feed(payload, event)
        self._answer.id = mapping(payload).get("id", self._answer.id)
        return delta


class CachedAreWritten(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        usage = outcome.usage
        written = usage and replace(usage, cache_written=usage.cached)
        return replace(outcome, usage=written)
