"""Gemini: more mistakes with signatures, the role, and ids of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import GeminiAccumulator
from examples.accumulators.values import mapping, string
from mockllm.checking.outcome import Outcome
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]


class _Signatures(GeminiAccumulator):
    """Keeps the signatures of all parts in order; mutants derive from it."""

    def __init__(self) -> None:
        super().__init__()
        self.opaque: list[str] = []

    def _part(self, part: Object) -> None:
        if part.get("thoughtSignature"):
            self.signature(string(part["thoughtSignature"]), part)
        super()._part(part)

    def signature(self, value: str, part: Object) -> None:
        """Keeps the signature of a part."""
        self.opaque.append(value)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque))


@mutant("opaque-kept", api="gemini", family="opaque values")
class SignaturesLost(_Signatures):
    """Does not read `thoughtSignature`, without which the next request is refused
    (vellum-ai/vellum-assistant#28241, allenhutchison/obsidian-gemini#1269)."""

    def signature(self, value: str, part: Object) -> None:
        """Keeps nothing."""


@mutant("opaque-kept", api="gemini", family="opaque values")
class SignatureOfTextLost(_Signatures):
    """Drops a part with empty text, and its signature with it (google/adk-go#442)."""

    def signature(self, value: str, part: Object) -> None:
        """Keeps the signatures of calls and of text that is not empty."""
        if part.get("text") or part.get("functionCall"):
            super().signature(value, part)


@mutant("opaque-kept", api="gemini", family="opaque values")
class SignatureOfCallsLost(_Signatures):
    """Reads the signatures of thoughts and text alone."""

    def signature(self, value: str, part: Object) -> None:
        """Keeps the signatures of text."""
        if "functionCall" not in part:
            super().signature(value, part)


@mutant("opaque-kept", api="gemini", family="opaque values")
class LastSignatureOnly(_Signatures):
    """Has one variable for the signatures of all parts."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque[-1:]))


@mutant("opaque-kept", api="gemini", family="opaque values")
class FirstSignatureForAllCalls(_Signatures):
    """Gives the signature of the first call to all calls (prism-php/prism#856)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        repeated = tuple(self.opaque[:1]) * max(1, len(outcome.tool_calls))
        return replace(outcome, opaque=repeated)


@mutant("opaque-kept", api="gemini", family="opaque values")
class SignatureForAddresses(_Signatures):
    """Changes signatures to the alphabet of base64 for addresses, without padding."""

    def signature(self, value: str, part: Object) -> None:
        """Keeps the signature in another alphabet."""
        super().signature(value.replace("+", "-").replace("/", "_").rstrip("="), part)


# The answer


@mutant("role-kept", api="gemini", family="role and ids of the answer")
class RoleOfTheLastChunk(GeminiAccumulator):
    """Overwrites the role with that of each chunk; the last one may have no content."""

    def _candidate(self, candidate: Object) -> None:
        self.role = "assistant" if mapping(candidate.get("content")).get("role") else None
        super()._candidate(candidate)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), role=self.__dict__.get("role", "assistant"))


@mutant("answer-id-kept", api="gemini", family="role and ids of the answer")
class ModelNotRead(GeminiAccumulator):
    """Looks for `model`, which is `modelVersion` here, and has none."""

    def _chunk(self, chunk: Object) -> None:
        self.model = chunk.get("model")
        super()._chunk(chunk)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), model=self.__dict__.get("model"))


@mutant("answer-id-kept", api="gemini", family="role and ids of the answer")
class IdNotRead(GeminiAccumulator):
    """Looks for `id`, which is `responseId` here, and has none."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), response_id=None)
