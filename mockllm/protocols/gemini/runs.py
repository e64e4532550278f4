"""The keys of the parts of a stream: texts and thoughts have no boundaries on the wire.

Consecutive texts are one part, and so are consecutive thoughts. A signature on a text that is not
empty begins a part, one on an empty text ends the part before it.

Decoder, encoder and projection share this, so that they agree on what belongs together. Only that
may live here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from mockllm.core import events as ev

__all__ = ["Kind", "Runs"]

Kind = Literal["text", "thought"]


class Runs:
    """The parts of one stream so far, and the run of text or thoughts that is open.

    `text` is the key of the last text; None before the first one.
    """

    def __init__(self) -> None:
        self.text: int | None = None
        self.last = -1
        self._kind: Kind | None = None
        self._key = -1
        self._signed = False

    def key(self) -> int:
        """The key of a new part."""
        self.last += 1
        return self.last

    def end(self) -> list[ev.Event]:
        """The end of the open run."""
        kind, self._kind = self._kind, None
        return [] if kind is None else [ev.PartEnd(self._key)]

    def delta(self, kind: Kind, text: str, signature: str = "") -> Iterator[ev.Event]:
        """The events of a text that is not empty."""
        if self._kind != kind or signature:
            yield from self._begin(kind)
        if kind == "text":
            self.text = self._key
            yield ev.TextDelta(self._key, text)
        else:
            yield ev.ReasoningDelta(self._key, text)
        if signature:
            yield from self._sign(signature)

    def ends_signed(self) -> bool:
        """Whether an empty text with a signature belongs to the text before it."""
        return self._kind == "text" and not self._signed

    def empty(self, signature: str) -> Iterator[ev.Event]:
        """The events of an empty text with a signature: that of the open run, which ends, or of
        hidden thoughts."""
        if self.ends_signed():
            yield ev.TextDelta(self._key, "")
        if self._kind is None or self._signed:
            yield from self._begin("thought")
        yield from self._sign(signature)
        yield from self.end()

    def _begin(self, kind: Kind) -> Iterator[ev.Event]:
        yield from self.end()
        self._kind, self._key, self._signed = kind, self.key(), False

    def _sign(self, signature: str) -> Iterator[ev.Event]:
        self._signed = True
        yield ev.Signature(self._key, signature)
