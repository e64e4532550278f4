"""How a stream of the Echo API is put together: right, and with one mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from examples.accumulators.answer import StagedCall
from examples.accumulators.base import Accumulator, Options
from examples.accumulators.values import error_message, mapping, string
from mockllm.checking import Delta, Usage


class EchoAccumulator(Accumulator):
    """Puts the acts of one stream together."""

    end = "a bow"

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self._calls: dict[str, StagedCall] = {}
        self._parts: dict[str, int] = {}

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one act adds."""
        act = mapping(payload)
        part = string(act.get("part"))
        number = self._parts.setdefault(part, len(self._parts))
        match act.get("act"):
            case "curtain":
                self._answer.identify(string(act.get("show")), string(act.get("speaker")))
            case "line" | "musing" | "balk" as kind:
                self._answer.add(_KINDS[kind], string(act.get("bit")), (number,))
            case "cue":
                id, name = string(act.get("cue")), string(act.get("gadget"))
                self._calls[part] = self._answer.open(number, key=part, id=id, name=name)
            case "setting" if part in self._calls:
                self._argue(self._calls[part], string(act.get("bit")))
            case "seal":
                self._answer.keep(string(act.get("seal")))
            case "hush" if part in self._calls:
                self._answer.surface(self._calls[part])
            case "bow":
                self._bow(act)
            case _ if act.get("mishap") or act.get("error"):
                mishap = mapping(act.get("mishap"))
                self._answer.fail(string(mishap.get("words")) or error_message(act.get("error")))
        return self._answer.delta()

    def _argue(self, call: StagedCall, bit: str) -> None:
        call.argue(bit)

    def _bow(self, act: Mapping[str, Any]) -> None:
        tally = mapping(act.get("tally"))
        self._answer.finish = string(act.get("why"))
        self._answer.complete = True
        if tally:
            self._answer.usage = Usage(*(tally.get(name) for name in _COUNTS))


_KINDS = {"line": "text", "musing": "reasoning", "balk": "refusal"}
_COUNTS = ("heard", "spoken", "mused", "remembered")


class LastFragment(EchoAccumulator):
    """Takes each fragment of arguments for all of them."""

    def _argue(self, call: StagedCall, bit: str) -> None:
        call.arguments = bit
