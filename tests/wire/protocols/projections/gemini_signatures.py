"""Where the signatures of an answer are sent.

https://ai.google.dev/gemini-api/docs/thought-signatures

The service signs a call in its part, a text in its first part, or in an empty part after it. It
never signs thoughts: the signature of reasoning is sent with the next call that has none, else at
the end. Only that may live here.
"""

from __future__ import annotations

from mockllm.core import events as ev
from mockllm.core.turn import Media, Part, Text, ToolCall
from mockllm.wire.protocols.gemini.runs import Runs
from mockllm.wire.protocols.gemini_common import signature_of


class Signatures:
    """The signatures of one turn that are still to be sent; `runs` is what a client has read.

    `late` ends the text that was sent last, and is due before anything else; `pending` is that of
    reasoning.
    """

    def __init__(self) -> None:
        self.runs = Runs()
        self.late: str | None = None
        self.pending: str | None = None
        self._seen: dict[int, int] = {}
        self._placed: set[int] = set()

    def of_fragment(self, index: int, part: Part, text: str) -> str:
        """The signature to send with a fragment of a part; "" for none.

        A signature on an empty last fragment is kept until something else is sent.
        """
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
        if self.late is None and self.runs.ends_signed():
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

    def flush(self) -> tuple[str, list[ev.Event]]:
        """The signature that is due before anything else, "" for none, and what a client reads."""
        signature, self.late = self.late, None
        return signature or "", list(self.runs.empty(signature)) if signature else []

    def last(self) -> list[str]:
        """The signatures that are sent at the end."""
        return [one for one in (self.late, self.pending) if one is not None]
