"""Which texts, thoughts and sounds are one part, as they have no boundaries on the wire.

Consecutive texts are one part, and so are consecutive thoughts, and pieces of sound of one type.
A signature on a text that is not empty begins a part, one on an empty text ends the part before it:
https://ai.google.dev/gemini-api/docs/thought-signatures

`Runs` is how the decoder reads this, `Signatures` how the encoder writes it. The service signs a
call in its part, a text in its first part, or in an empty part after it. It never signs thoughts:
the signature of reasoning is sent with the next call that has none, else at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from mockllm.core import events as ev
from mockllm.core.turn import Media, Part, Text, ToolCall
from mockllm.wire.protocols.gemini.media import is_continued
from mockllm.wire.protocols.gemini_common import signature_of

Kind = Literal["text", "thought"]


class Runs:
    """The parts of one stream so far, and the run of text, thoughts or sound that is open. `text`
    is the key of the last text; None before the first one."""

    def __init__(self) -> None:
        self.text: int | None = None
        self.last = -1
        self._kind: str | None = None
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

    def delta(
        self, kind: Kind, text: str, signature: str = "", *, logprobs: bool = False
    ) -> Iterator[ev.Event]:
        """The events of a text that is not empty."""
        if self._kind != kind or signature:
            yield from self._begin(kind)
        if kind == "text":
            self.text = self._key
            yield ev.TextDelta(self._key, text, logprobs)
        else:
            yield ev.ReasoningDelta(self._key, text)
        if signature:
            yield from self._sign(signature)

    def media(self, media_type: str, data: bytes, signature: str = "") -> Iterator[ev.Event]:
        """The events of an image, or of a piece of sound."""
        if self._kind != media_type or not is_continued(media_type) or signature:
            yield from self._begin(media_type)
        yield ev.MediaDelta(self._key, media_type, data)
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
        if self._kind not in ("text", "thought") or self._signed:
            yield from self._begin("thought")
        yield from self._sign(signature)
        yield from self.end()

    def _begin(self, kind: str) -> Iterator[ev.Event]:
        yield from self.end()
        self._kind, self._key, self._signed = kind, self.key(), False

    def _sign(self, signature: str) -> Iterator[ev.Event]:
        self._signed = True
        yield ev.Signature(self._key, signature)


# Signatures


class Signatures:
    """The signatures of one turn that are still to be sent. `late` ends the text that was sent
    last, and is due before anything else; `pending` is that of reasoning."""

    def __init__(self) -> None:
        self.late: str | None = None
        self.pending: str | None = None
        self._kind: Kind | None = None
        self._signed = False
        self._seen: dict[int, int] = {}
        self._placed: set[int] = set()

    def note(self, kind: Kind | None, signature: str = "") -> None:
        """Notes what was sent: a text, a thought, or something else."""
        if kind != self._kind or signature:
            self._kind, self._signed = kind, bool(signature)

    def of_fragment(self, index: int, part: Part, text: str) -> str:
        """The signature to send with a fragment of a part; "" for none. A signature on an empty
        last fragment is kept until something else is sent."""
        self._seen[index] = self._seen.get(index, 0) + 1
        if not isinstance(part, Text) or part.signature is None or index in self._placed:
            return ""
        ends = not part.fragments[-1]
        if ends and self._seen[index] < len(part.fragments):
            return ""
        if not (text or ends):
            return ""
        self._placed.add(index)
        signature = signature_of(part.signature)
        if not ends:
            return signature
        if self.late is None and self._kind == "text" and not self._signed:
            self.late = signature
        else:
            self.pending = signature
        return ""

    def of_reasoning(self, value: str) -> None:
        """Keeps the signature of reasoning until it can be sent."""
        if value:
            self.pending = signature_of(value)

    def of_media(self, index: int, part: Part) -> str:
        """The signature to send with the next bytes of a part: its own, with the first ones."""
        if not isinstance(part, Media) or not part.signature or index in self._placed:
            return ""
        self._placed.add(index)
        return signature_of(part.signature)

    def of_call(self, call: ToolCall) -> str:
        """The signature to send with a call, its own or that of the reasoning before it."""
        if call.signature:
            return signature_of(call.signature)
        signature, self.pending = self.pending, None
        return signature or ""

    def flush(self) -> str:
        """The signature that is due before anything else; "" for none."""
        signature, self.late = self.late, None
        if signature:
            self.note(None)
        return signature or ""

    def last(self) -> list[str]:
        """The signatures that are sent at the end."""
        return [signature for signature in (self.late, self.pending) if signature is not None]
