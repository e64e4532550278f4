"""The declaration of a mutant: its API, its level (payloads or bytes), and what it breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from mockllm.checking import Policy
from mockllm.checking.judging.running import Level
from mockllm.checking.probes import ByteProbe, Probe
from mockllm.scenario.model import Api

__all__ = [
    "ESCAPED",
    "EXACT",
    "FAMILIES",
    "MUTANTS",
    "SHARED",
    "TOLERATED",
    "WATCHED",
    "Mutant",
    "mutant",
]

FAMILIES: dict[str, str] = {
    "call identity": "a fragment is added to the wrong call, or two calls become one",
    "call order": "calls come out in the wrong order",
    "call ids": "the id of a call is lost, joined, replaced or another field",
    "call names": "the name of a call is lost, joined or replaced",
    "argument fragments": "fragments are lost, repeated, changed or put in the wrong order",
    "argument values": "arguments are unescaped, converted, repaired or flattened",
    "raw arguments": "arguments that are kept as text are not the joined fragments",
    "zero arguments": "a call without arguments is dropped, or breaks the client",
    "malformed arguments": "arguments that do not parse harm more than their own call",
    "emission": "a call surfaces early, late, twice or never",
    "unknown tools": "a call of a tool that was not offered harms others",
    "text": "text is lost, repeated, trimmed or mixed with something else",
    "reasoning": "reasoning is lost, repeated or mixed with the text",
    "opaque values": "signatures and encrypted values are lost, joined or changed",
    "role and ids of the answer": "role, model or id of the answer is lost, joined or changed",
    "null and absent": "a field that is null or absent breaks the client",
    "unknown events": "an event, part, block or field that is not known breaks the client",
    "final values": "a value that is final is appended, ignored or treated as a fragment",
    "finish": "the finish reason is lost, changed or decides too much",
    "usage": "usage is lost, summed or read from the wrong event",
    "errors": "an error in the stream is ignored, or its message is lost",
    "cut streams": "a stream that was cut is treated as a complete one",
    "shared state": "streams share something",
    "modified input": "what is handed in is changed",
    "deltas": "what is passed on for an event is not what the event adds",
    "line ends": "an end of a line, or of an event, is not recognised",
    "characters": "bytes become characters wrongly",
    "fields": "a field of an event stream is read wrongly",
    "events": "lines become the wrong event",
    "end marker": "the end marker is missed, or found where there is none",
    "buffers": "reads, lines or events of some length are lost",
}
"""The kinds of mistakes, which group the mutants in tables."""

WATCHED = Policy(intermediate=True)
EXACT = (
    "agui",
    "anthropic",
    "byte_lines",
    "chat_calls",
    "chat_ends",
    "chat_words",
    "gemini",
    "intermediate",
    "responses",
)
"""The modules whose mutants are reported with the declared invariants and no others. The kit has to
catch the mutants of all modules; a mistake of the others may break more than it declares."""

_NO_END_OF_CALLS = (
    "Chat Completions marks the end of an answer and not of each call, so a client may treat a "
    "call whose arguments parse as complete."
)
_NO_TEXT_SO_FAR = "A client may raise at an error without the text so far."
_NOT_JUDGED = "What a client keeps as text where no arguments were sent is not judged."
_MESSAGE_LOST = "Any clear error is accepted, as the stream has no readable message of the service."
_LAST_LINE = "The specification lets a client discard a last event without its blank line."

_EMPTY_FINAL = "An empty final value after fragments contradicts itself; no case plays it."
_ARRIVAL = "Texts that grow at the same time may be joined in the order of arrival."

ESCAPED: dict[str, str] = {
    "chat-payloads-CutErasesText": _NO_TEXT_SO_FAR,
    "chat-payloads-CutSurfacesCalls": _NO_END_OF_CALLS,
    "chat-payloads-ErrorErasesText": _NO_TEXT_SO_FAR,
    "chat-payloads-ErrorKeepsCalls": _NO_END_OF_CALLS,
    "chat-payloads-GoesOnAfterError": "Text that follows an error is accepted beside the error.",
    "chat-payloads-RawNullForEmpty": _NOT_JUDGED,
    "chat-payloads-RawObjectForEmpty": _NOT_JUDGED,
    "chat-payloads-LastModel": "Where the stream has several models, none is judged.",
    "anthropic-payloads-NullTextIsNone": "No server is known to send a text delta of null.",
    "responses-payloads-EmptyFinalArgumentsReplace": _EMPTY_FINAL,
    "responses-payloads-EmptyFinalTextReplaces": _EMPTY_FINAL,
}
"""The mutants that the kit does not catch, by name, each with the reason. A test fails where the
kit catches one of them."""

TOLERATED: dict[str, str] = {
    "chat-bytes-BrokenDataWait": "A clear error about data that do not parse is accepted.",
    "chat-bytes-LastEventDiscarded": _LAST_LINE,
    "chat-bytes-LastReturnWaits": _LAST_LINE,
    "chat-bytes-PlainErrorIgnored": "Without an event, a client may report that the stream is cut.",
    "agui-payloads-FinishAfterAnError": "Events after an error break the protocol; none is played.",
    "agui-payloads-NewestMessageGetsAll": _ARRIVAL,
    "gemini-payloads-ToolUseTokensLeftOut": "Clients differ in whether these tokens are input.",
    "responses-payloads-MessagesByArrival": _ARRIVAL,
    "chat-payloads-MalformedLosesText": "The whole answer may fail where arguments do not parse.",
    "gemini-bytes-LastLineDiscarded": _LAST_LINE,
    "gemini-bytes-MixedEndsUnknown": "Events that are not separated may be a clear error.",
    "gemini-bytes-RawErrorLinesIgnored": _MESSAGE_LOST,
    "gemini-payloads-ErrorInAnArrayIgnored": _MESSAGE_LOST,
}
"""The mutants whose outcomes the kit accepts, by name, each with the reason. A test fails where the
kit catches one of them."""

_M = TypeVar("_M", bound=type[Probe] | type[ByteProbe])


@dataclass(frozen=True, slots=True)
class Mutant:
    """An accumulator with one mistake.

    Args:
        breaks: the invariants that the mistake breaks.
        family: the kind of mistake, one of `FAMILIES`.
    """

    make: type[Probe | ByteProbe]
    breaks: frozenset[str]
    api: Api
    level: Level
    policy: Policy
    family: str = ""

    @property
    def exact(self) -> bool:
        """Whether the kit must report the declared invariants and no others."""
        return self.make.__module__.rpartition(".")[2] in EXACT

    def __str__(self) -> str:
        return f"{self.api}-{self.level}-{self.make.__name__}"


MUTANTS: list[Mutant] = []
"""All mutants; a module adds its own when it is imported."""


SHARED: list[list[Any] | dict[Any, Any]] = []
"""What mutants keep from one stream to the next. `chat_ends.forget_streams` clears it."""


def mutant(
    *breaks: str,
    api: Api,
    level: Level = "payloads",
    policy: Policy | None = None,
    family: str = "",
) -> Callable[[_M], _M]:
    """Declares a class to be a mutant that breaks these invariants."""

    def declare(make: _M) -> _M:
        declared = Mutant(make, frozenset(breaks), api, level, policy or Policy(), family)
        MUTANTS.append(declared)
        return make

    return declare
