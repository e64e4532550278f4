"""How a stream of the Echo API is put together: right, and with one mistake."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from examples.accumulators.answer import Answer, Malformed, MissingId, StagedCall
from examples.accumulators.values import error_message, mapping, string
from mockllm.checking import Delta, Outcome, Usage
from mockllm.checking.outcome import TroubleKind


class EchoAccumulator:
    """Puts the acts of one stream together."""

    def __init__(
        self,
        *,
        tools: Collection[str] | None = None,
        malformed: Malformed = "error",
        missing_id: MissingId = "synthesise",
    ) -> None:
        self._answer = Answer(tools, malformed, missing_id, "a bow")
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

    def outcome(self) -> Outcome:
        """The answer so far."""
        return self._answer.outcome()

    def pending(self) -> int:
        """How many calls have begun and not surfaced."""
        return len(self._answer.open_calls())

    def fail(self, message: str, kind: TroubleKind = "stream_error") -> None:
        """The stream broke underneath."""
        self._answer.fail(message, kind)

    def close(self) -> None:
        """Nothing more comes."""
        self._answer.close()


_KINDS = {"line": "text", "musing": "reasoning", "balk": "refusal"}
_COUNTS = ("heard", "spoken", "mused", "remembered")


class LastFragment(EchoAccumulator):
    """Takes each fragment of arguments for all of them."""

    def _argue(self, call: StagedCall, bit: str) -> None:
        call.arguments = bit
