"""The outside of all accumulators: each gets an `Answer`, and a `feed` of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, ClassVar, TypedDict, Unpack

from examples.accumulators.answer import Answer, Malformed, MissingId
from mockllm.checking.outcome import Outcome, TroubleKind
from mockllm.checking.probes import Delta

__all__ = ["Accumulator", "Options"]


class Options(TypedDict, total=False):
    """The options of an accumulator.

    Args:
        tools: the names of the tools that were offered; None, the default: a call of any tool is
            accepted.
        malformed: what happens to a call whose arguments never parse; default: `error`.
        missing_id: what happens to a call that never gets an id; default: `synthesise`.
    """

    tools: Collection[str] | None
    malformed: Malformed
    missing_id: MissingId


class Accumulator(ABC):
    """Puts one stream together (a `Probe`).

    Args:
        end: what ends a stream of the protocol, for error messages.
        has_ids: whether the protocol always sends calls with ids. Otherwise `missing_id` is
            ignored, and a call without one is given one.
        text_arguments: whether the protocol sends arguments as text, which calls then keep, and no
            values.
    """

    end: ClassVar[str]
    has_ids: ClassVar[bool] = True
    text_arguments: ClassVar[bool] = True

    def __init__(self, **options: Unpack[Options]) -> None:
        self._answer = Answer(
            options.get("tools"),
            options.get("malformed", "error"),
            options.get("missing_id", "synthesise") if self.has_ids else "synthesise",
            self.end,
            text_arguments=self.text_arguments,
        )

    @abstractmethod
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """The text, the reasoning and the calls that one event adds; None: it adds nothing."""

    def outcome(self) -> Outcome:
        """The answer so far."""
        return self._answer.outcome()

    def pending(self) -> int:
        """The number of calls that have begun and not surfaced."""
        return len(self._answer.open_calls())

    def fail(self, message: str, kind: TroubleKind = "stream_error") -> None:
        """Ends the answer with an error of the transport, such as a broken connection."""
        self._answer.fail(message, kind)

    def close(self) -> None:
        """Ends the input. A stream without its end was cut."""
        self._answer.close()
