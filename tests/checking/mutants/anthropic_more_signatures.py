"""Messages: more mistakes with opaque values: signatures and redacted thinking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AnthropicAccumulator
from examples.accumulators.values import string
from mockllm.checking.outcome import Outcome
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]


class _Signatures(AnthropicAccumulator):
    """Keeps opaque values by block, correctly; mutants derive from it."""

    def __init__(self) -> None:
        super().__init__()
        self.opaque: dict[int, str] = {}

    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, block)
        self._append(string(block.get("signature")) or string(block.get("data")))

    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, delta)
        if delta.get("type") == "signature_delta" and index in self._blocks:
            self._append(string(delta.get("signature")), self._blocks[index].slot[1])

    def _append(self, value: str, block: int | None = None) -> None:
        if value:
            key = self._count - 1 if block is None else block
            self.opaque[key] = self.opaque.get(key, "") + value

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque.values()))


@mutant("opaque-kept", api="anthropic", family="opaque values")
class SignatureAssigned(_Signatures):
    """Assigns `signature_delta` instead of appending it (pensarai/apex#534)."""

    def _append(self, value: str, block: int | None = None) -> None:
        if value and block is not None:
            self.opaque.pop(block, None)
        super()._append(value, block)


@mutant("opaque-kept", api="anthropic", family="opaque values")
class SignaturesLost(_Signatures):
    """Ignores `signature_delta` (turnstonelabs/turnstone#214, can1357/oh-my-pi#6046)."""

    def _append(self, value: str, block: int | None = None) -> None:
        if block is None:
            super()._append(value, block)


@mutant("opaque-kept", api="anthropic", family="opaque values")
class LastSignatureOnly(_Signatures):
    """Has one variable for the signature of a message that may have several
    (0xPlaygrounds/rig#1391, openai/openai-agents-python#4175)."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque.values())[-1:])


@mutant("opaque-kept", api="anthropic", family="opaque values")
class SignaturesJoined(_Signatures):
    """Joins the signatures of all blocks to one."""

    def outcome(self) -> Outcome:
        joined = "".join(self.opaque.values())
        return replace(super().outcome(), opaque=(joined,) if joined else ())


@mutant("opaque-kept", api="anthropic", family="opaque values")
class RedactedThinkingDropped(_Signatures):
    """Drops redacted thinking, without which the service refuses the history
    (zotero-rag/zotero-rag#293)."""

    def _append(self, value: str, block: int | None = None) -> None:
        if block is not None:
            super()._append(value, block)


@mutant("opaque-kept", api="anthropic", family="opaque values")
class SignatureWithoutThinkingDropped(_Signatures):
    """Drops the signature of a block whose thinking is empty
    (OpenRouterTeam/ai-sdk-provider#427)."""

    def outcome(self) -> Outcome:
        thinking = {slot[1] for slot in self._answer._texts["reasoning"] if len(slot) > 1}
        redacted = {key for key in self.opaque if self._type(key) == "redacted_thinking"}
        kept = (self.opaque[key] for key in self.opaque if key in thinking | redacted)
        return replace(super().outcome(), opaque=tuple(kept))

    def _type(self, number: int) -> str:
        return next((b.type for b in self._blocks.values() if b.slot[1] == number), "")


@mutant("opaque-kept", api="anthropic", family="opaque values")
class SignatureStripped(_Signatures):
    """Strips the padding from signatures, as from base64 for an address."""

    def outcome(self) -> Outcome:
        values = tuple(value.rstrip("=") for value in self.opaque.values())
        return replace(super().outcome(), opaque=values)
