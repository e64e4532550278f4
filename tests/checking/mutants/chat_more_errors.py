"""Chat Completions: more mistakes with errors in a stream, and with streams that are cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from examples.accumulators import ChatAccumulator
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.altered import failed, with_errors
from tests.checking.mutants.declared import mutant

# Errors in the stream


@mutant("error-ends", api="chat", family="errors")
class ErrorIsGeneric(ChatAccumulator):
    """Replaces the message of the service by its own (jgravelle/jmunch-mcp#5).

    Errors that are swallowed: BerriAI/litellm#40578, diegosouzapw/OmniRoute#8210,
    open-octo/octo-agent#910, bigduu/Bamboo-agent#98, apache/rocketmq-dashboard#2178.
    """

    def outcome(self) -> Outcome:
        return with_errors(super().outcome(), "stream_error", message="Something went wrong.")


@mutant("error-ends", api="chat", family="errors")
class ErrorKeepsCalls(ChatAccumulator):
    """Reports the error, and the staged calls as well."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("error"):
            for call in self._answer.open_calls():
                self._answer.surface(call)
        return super().feed(payload, event)


@mutant("error-ends", api="chat", family="errors")
class GoesOnAfterError(ChatAccumulator):
    """Reports the error, and goes on with the chunks that follow."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        failed, self._answer.failed = self._answer.failed, False
        delta = super().feed(payload, event)
        self._answer.failed = self._answer.failed or failed
        return delta


@mutant("error-ends", api="chat", family="errors")
class ErrorIsText(ChatAccumulator):
    """Adds the message of an error to the text, and reports no error."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        messages = [error.message for error in outcome.errors if error.kind == "stream_error"]
        others = tuple(error for error in outcome.errors if error.kind != "stream_error")
        return replace(outcome, text=outcome.text + "".join(messages), errors=others)


@mutant("error-ends", api="chat", family="errors")
class ErrorErasesText(ChatAccumulator):
    """Drops the text before an error."""

    def outcome(self) -> Outcome:
        return failed(super().outcome(), "stream_error", text="")


@mutant("error-ends", api="chat", family="errors")
class ErrorFinishes(ChatAccumulator):
    """Reports the error, and `stop` as the finish reason (BerriAI/litellm#40578)."""

    def outcome(self) -> Outcome:
        return failed(super().outcome(), "stream_error", finish="stop")


@mutant("error-ends", api="chat", family="errors")
class ObjectErrorUnknown(ChatAccumulator):
    """Does not know errors whose `object` is `error` (`err-object-error`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed({} if payload.get("object") == "error" else payload, event)


@mutant("error-ends", api="chat", family="errors")
class EventNameIgnored(ChatAccumulator):
    """Ignores the name of an event, which alone shows an error (`err-event-line`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed(payload)


@mutant("error-ends", api="chat", family="errors")
class ErrorNeedsNoChoices(ChatAccumulator):
    """Reads errors only of chunks without choices (`err-with-choices`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed(
            {**payload, "error": None} if payload.get("choices") else payload, event
        )


# Streams that are cut


@mutant("truncated-is-not-complete", api="chat", family="cut streams")
class CutIsSilent(ChatAccumulator):
    """Drops the open calls of a stream that is cut, and reports nothing
    (ltmoerdani/opencode-copilot-chat#170, griffinwork40/agent-afk#635, vercel/ai#19165)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        errors = tuple(error for error in outcome.errors if error.kind != "truncated")
        return replace(outcome, errors=errors)


@mutant("truncated-is-not-complete", api="chat", family="cut streams")
class CutIsStop(ChatAccumulator):
    """Reports `stop` as the finish reason of a stream that is cut
    (NVIDIA/TensorRT-LLM#18289)."""

    def outcome(self) -> Outcome:
        return failed(super().outcome(), "truncated", finish="stop", errors=())


@mutant("truncated-is-not-complete", api="chat", family="cut streams")
class CutSurfacesCalls(ChatAccumulator):
    """Reports a stream that is cut, and its open calls as complete (earendil-works/pi#6284)."""

    def close(self) -> None:
        if not self._answer.complete:
            for call in self._answer.open_calls():
                self._answer.surface(call)
        super().close()


@mutant("truncated-is-not-complete", api="chat", family="cut streams")
class CutErasesText(ChatAccumulator):
    """Drops the text of a stream that is cut."""

    def outcome(self) -> Outcome:
        return failed(super().outcome(), "truncated", text="")


@mutant("truncated-is-not-complete", api="chat", family="cut streams")
class UsageIsTheEnd(ChatAccumulator):
    """Treats an answer with usage as complete (`chat-finish-never`)."""

    def close(self) -> None:
        self._answer.complete = self._answer.complete or self._answer.usage is not None
        super().close()
