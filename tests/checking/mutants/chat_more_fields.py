"""Chat Completions: more mistakes with optional fields, and with role, model and id."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from examples.accumulators import ChatAccumulator
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.chat_more_base import Object, entries, function
from tests.checking.mutants.declared import mutant

# Fields that are null or absent


@mutant("null-tolerant", api="chat", family="null and absent")
class UsageIsAnObject(ChatAccumulator):
    """Raises where the usage is null (strands-agents/harness-sdk#442,
    `usage-wiped-by-trailing-chunk`)."""

    def _usage(self, chunk: Object) -> None:
        if "usage" in chunk:
            chunk["usage"]["prompt_tokens"]
        super()._usage(chunk)


@mutant("null-tolerant", api="chat", family="null and absent")
class ChoicesAreAList(ChatAccumulator):
    """Raises where the choices are null or absent (`usage-no-choices`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if "error" not in payload and payload.get("object") != "error":
            list(payload["choices"])
        return super().feed(payload, event)


@mutant("null-tolerant", api="chat", family="null and absent")
class IdIsText(ChatAccumulator):
    """Raises where the id of an entry is null (`chat-id-null-later`)."""

    def _fragment(self, entry: Object) -> None:
        entry.get("id", "").strip()
        super()._fragment(entry)


@mutant("null-tolerant", api="chat", family="null and absent")
class NameIsText(ChatAccumulator):
    """Raises where the name of an entry is null (`chat-id-null-later`)."""

    def _fragment(self, entry: Object) -> None:
        function(entry).get("name", "").strip()
        super()._fragment(entry)


@mutant("zero-arguments", api="chat", family="null and absent")
class ArgumentsRequired(ChatAccumulator):
    """Raises where an entry has no arguments (`chat-args-null-only`)."""

    def _fragment(self, entry: Object) -> None:
        function(entry)["arguments"]
        super()._fragment(entry)


@mutant("null-tolerant", api="chat", family="null and absent")
class ContentRequired(ChatAccumulator):
    """Raises where a delta has no content (`chat-content-key-absent`)."""

    def _delta(self, delta: Object) -> None:
        if delta:
            delta["content"]
        super()._delta(delta)


@mutant("null-tolerant", api="chat", family="null and absent")
class IdOfEveryFragment(ChatAccumulator):
    """Raises where an entry has no id, which only the first one of a call needs to have."""

    def _fragment(self, entry: Object) -> None:
        entry["id"]
        super()._fragment(entry)


@mutant("null-tolerant", api="chat", family="null and absent")
class ChunkIdRequired(ChatAccumulator):
    """Raises where a chunk has no id (`chat-object-empty`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("choices") and not payload["id"]:
            raise ValueError("a chunk has no id")
        return super().feed(payload, event)


@mutant("null-tolerant", api="chat", family="null and absent")
class ObjectChecked(ChatAccumulator):
    """Raises on a chunk whose `object` is not `chat.completion.chunk` (`chat-object-empty`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("choices") and payload.get("object") != "chat.completion.chunk":
            raise ValueError(f"unknown object {payload.get('object')!r}")
        return super().feed(payload, event)


@mutant("null-tolerant", api="chat", family="null and absent")
class ChoicesNotEmpty(ChatAccumulator):
    """Reports an error for a chunk with neither choices nor usage (`chat-first-choices-empty`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if not (payload.get("choices") or payload.get("usage") or payload.get("error")):
            self._answer.fail("a chunk has no choices")
        return super().feed(payload, event)


@mutant("null-tolerant", api="chat", family="null and absent")
class NullDeltaEndsTheAnswer(ChatAccumulator):
    """Ignores everything from a null delta on, the finish reason there included
    (`chat-delta-null`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        if choice.get("delta") is not None:
            super()._choice(choice, failing=failing)


@mutant("null-tolerant", api="chat", family="null and absent")
class TypeOfEveryFragment(ChatAccumulator):
    """Ignores entries whose `type` is not `function`, null included (`chat-id-null-later`)."""

    def _delta(self, delta: Object) -> None:
        known = [one for one in entries(delta) if one.get("type", "function") == "function"]
        super()._delta({**delta, "tool_calls": known})


@mutant("unknown-event", api="chat", family="unknown events")
class DeltaFieldsChecked(ChatAccumulator):
    """Raises on a delta with fields that OpenAI does not document (`chat-reasoning-fields`)."""

    def _delta(self, delta: Object) -> None:
        documented = {"role", "content", "refusal", "tool_calls", "function_call"}
        unknown = sorted(delta.keys() - documented)
        if unknown:
            raise ValueError(f"unknown fields {unknown}")
        super()._delta(delta)


@mutant("unknown-event", api="chat", family="unknown events")
class ChunkFieldsChecked(ChatAccumulator):
    """Raises on a chunk with fields that OpenAI does not document (`chat-first-choices-empty`)."""

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


@mutant("role-kept", api="chat", family="role and ids of the answer")
class RolesJoined(_Seen):
    """Joins the roles of all deltas (openinterpreter/openinterpreter#244, BerriAI/litellm#9986;
    `chat-role-every-chunk`)."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), role="".join(role or "" for role in self.roles))


@mutant("role-kept", api="chat", family="role and ids of the answer")
class LastRole(_Seen):
    """Keeps the role of the last delta, which has none."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), role=next(reversed(self.roles), None))


@mutant("role-kept", api="chat", family="role and ids of the answer")
class FirstRole(_Seen):
    """Keeps the role of the first delta, even if it is null or empty
    (`chat-role-null-empty-never`)."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), role=next(iter(self.roles), None))


@mutant("role-kept", api="chat", family="role and ids of the answer")
class RoleOfUser(_Seen):
    """Reports `user` as the role (AstraBert/llms-sdk#4)."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), role="user")


@mutant("answer-id-kept", api="chat", family="role and ids of the answer")
class ModelsJoined(_Seen):
    """Joins the models of all chunks, as an accumulator that adds all strings does."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), model="".join(model or "" for model in self.models))


@mutant("answer-id-kept", api="chat", family="role and ids of the answer")
class LastModel(_Seen):
    """Keeps the model of the last chunk, even if it is empty (`chat-object-empty`)."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), model=next(reversed(self.models), None))


@mutant("answer-id-kept", api="chat", family="role and ids of the answer")
class NoModel(_Seen):
    """Reports None as the model of every answer."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), model=None)


@mutant("answer-id-kept", api="chat", family="role and ids of the answer")
class IdsJoined(_Seen):
    """Joins the ids of all chunks, as an accumulator that adds all strings does."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), response_id="".join(id or "" for id in self.ids))


@mutant("answer-id-kept", api="chat", family="role and ids of the answer")
class IdMadeUp(_Seen):
    """Makes an id for the answer, although there is one."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), response_id="chatcmpl-0")
