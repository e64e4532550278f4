"""Chat Completions: more mistakes with fragments of arguments, and with arguments as text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from examples.accumulators import ChatAccumulator
from examples.accumulators.answer import StagedCall, parsed
from mockllm.checking.outcome import NOT_KEPT, Call, Outcome
from mockllm.checking.policy import Policy
from tests.checking.mutants.altered import failed, with_errors
from tests.checking.mutants.chat_more_base import ChangedCalls, Object, function, with_arguments
from tests.checking.mutants.declared import mutant

_MOST_CHARACTERS = 2048

# Fragments


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class NameOrArguments(ChatAccumulator):
    """Reads either the name of an entry or its arguments (`chat-args-whole`).

    Fragments lost or changed: cita-777/metapi#494, spacedriveapp/spacebot#413,
    lidge-jun/opencodex#361, sgl-project/sglang#36339.
    """

    def _fragment(self, entry: Object) -> None:
        named = bool(function(entry).get("name"))
        super()._fragment(with_arguments(entry, lambda text: "" if named else text))


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class TrimsArguments(ChatAccumulator):
    """Trims each fragment of arguments (cita-777/metapi#494)."""

    def _fragment(self, entry: Object) -> None:
        super()._fragment(with_arguments(entry, str.strip))


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class BlankFragmentsLost(ChatAccumulator):
    """Drops fragments of arguments that are white space (spacedriveapp/spacebot#413)."""

    def _fragment(self, entry: Object) -> None:
        super()._fragment(with_arguments(entry, lambda text: text if text.strip() else ""))


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class EqualFragmentLost(ChatAccumulator):
    """Drops a fragment of arguments that equals the one before (`chat-dedupe-by-overlap`)."""

    def _fragment(self, entry: Object) -> None:
        fragment = function(entry).get("arguments")
        same = fragment is not None and fragment == self.__dict__.get("before")
        self.__dict__["before"] = fragment
        super()._fragment(with_arguments(entry, lambda text: "" if same else text))


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class LongerFragmentReplaces(ChatAccumulator):
    """Takes a fragment that begins with the arguments so far for all of them
    (QwenLM/qwen-code#3896)."""

    def _fragment(self, entry: Object) -> None:
        call = self._find_call(entry.get("index"), entry.get("id") or "", "")
        fragment = function(entry).get("arguments")
        known = call.arguments if call is not None else ""
        if call is not None and known and isinstance(fragment, str) and fragment.startswith(known):
            call.arguments = ""
        super()._fragment(entry)


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class LongArgumentsCut(ChatAccumulator):
    """Cuts arguments off that are longer than its buffer; seen in clients written in C."""

    def _fragment(self, entry: Object) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.arguments = self._last.arguments[:_MOST_CHARACTERS]


@mutant("null-tolerant", api="chat", family="argument fragments")
class NullIsText(ChatAccumulator):
    """Converts arguments to text: "None" where they are null (`chat-args-null-first`)."""

    def _fragment(self, entry: Object) -> None:
        super()._fragment(entry)
        assert self._last is not None
        if "arguments" in function(entry) and function(entry)["arguments"] is None:
            self._last.arguments += str(None)


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class ObjectArgumentsLost(ChatAccumulator):
    """Reads arguments that are not text as none at all (`chat-args-object`)."""

    def _fragment(self, entry: Object) -> None:
        fields = dict(function(entry))
        if not isinstance(fields.get("arguments"), str):
            fields["arguments"] = ""
        super()._fragment({**entry, "function": fields})


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class UnescapesFragments(ChatAccumulator):
    """Replaces escaped line ends and quotes before it parses."""

    def _fragment(self, entry: Object) -> None:
        super()._fragment(
            with_arguments(entry, lambda text: text.replace("\\n", "\n").replace('\\"', '"'))
        )


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class EscapesDecodedEarly(ChatAccumulator):
    """Decodes each escaped UTF-16 unit alone, so that pairs of surrogates stay apart."""

    def _surface(self) -> None:
        for call in self._calls:
            unit = re.compile(r"\\u([0-9a-f]{4})", re.IGNORECASE)
            call.arguments = unit.sub(lambda found: chr(int(found[1], 16)), call.arguments)
        super()._surface()


# Calls without arguments


@mutant("zero-arguments", api="chat", family="zero arguments")
class EmptyObjectLost(ChangedCalls):
    """Drops calls whose arguments are `{}`, which is falsy (NVIDIA/TensorRT-LLM#17574).

    Empty arguments that break clients: langchain-ai/langchainjs#11319, Kilo-Org/cloud#4753,
    brave/brave-browser#56601.
    """

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        kept = tuple(call for call in outcome.tool_calls if call.arguments)
        return replace(outcome, tool_calls=kept)


@mutant("zero-arguments", api="chat", family="zero arguments")
class EmptyObjectIsAList(ChangedCalls):
    """Reports `[]` for `{}`, as PHP's json_decode does."""

    def changed(self, call: Call) -> Call:
        return call if call.arguments else replace(call, arguments=[])


@mutant("zero-arguments", api="chat", family="zero arguments")
class EmptyArgumentsAsText(ChangedCalls):
    """Reports the text "null" for arguments that are empty."""

    def changed(self, call: Call) -> Call:
        return call if call.arguments else replace(call, arguments="null")


# Arguments as text


class _RawArguments(ChangedCalls):
    """Keeps the arguments as text, and changes the text."""

    def raw(self, call: Call, sent: str) -> str | None:
        """The text that the mutant keeps for arguments that were sent as `sent`."""
        raise NotImplementedError

    def changed(self, call: Call) -> Call:
        known = call.raw_arguments
        if known is not NOT_KEPT and isinstance(known, str):
            return replace(call, raw_arguments=self.raw(call, known))
        return call


@mutant("raw-arguments-kept", api="chat", family="raw arguments")
class RawSerialisedAgain(_RawArguments):
    """Keeps the parsed arguments, serialised with the spaces of Python's json.

    Texts that are not those sent: tetsuo-ai/AgenC#1283, leookun/cursor-byok#386.
    """

    def raw(self, call: Call, sent: str) -> str | None:
        return json.dumps(call.arguments)


@mutant("raw-arguments-kept", api="chat", family="raw arguments")
class RawCanonical(_RawArguments):
    """Keeps the parsed arguments, serialised compactly with sorted keys."""

    def raw(self, call: Call, sent: str) -> str | None:
        return json.dumps(call.arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@mutant("raw-arguments-kept", api="chat", family="raw arguments")
class RawNullForEmpty(_RawArguments):
    """Keeps None where the arguments were empty text."""

    def raw(self, call: Call, sent: str) -> str | None:
        return sent or None


@mutant("raw-arguments-kept", api="chat", family="raw arguments")
class RawObjectForEmpty(_RawArguments):
    """Keeps `{}` where the arguments were empty text."""

    def raw(self, call: Call, sent: str) -> str | None:
        return sent or "{}"


@mutant("raw-arguments-kept", api="chat", family="raw arguments")
class RawTrimmed(_RawArguments):
    """Trims the text of the arguments."""

    def raw(self, call: Call, sent: str) -> str | None:
        return sent.strip()


@mutant("raw-arguments-kept", api="chat", family="raw arguments")
class RawNullIsText(ChangedCalls):
    """Keeps the text "null" for arguments that are null or absent (1jehuang/jcode#225)."""

    def changed(self, call: Call) -> Call:
        return replace(call, raw_arguments="null") if call.arguments == {} else call


# Arguments that do not parse


@mutant("malformed-contained", api="chat", family="malformed arguments")
class MalformedIsEmpty(ChatAccumulator):
    """Reports `{}` for arguments that do not parse (anthropics/claude-code#67765,
    strands-agents/harness-sdk#4195)."""

    def close(self) -> None:
        for call in self._answer.open_calls():
            call.arguments = call.arguments if parsed(call.arguments) is not None else "{}"
        super().close()


@mutant("malformed-contained", api="chat", family="malformed arguments")
class MalformedKept(ChatAccumulator):
    """Promises an error for arguments that do not parse, and keeps them as text."""

    def __init__(self) -> None:
        super().__init__(malformed="keep")


@mutant("malformed-contained", api="chat", family="malformed arguments")
class MalformedWrapped(ChatAccumulator):
    """Wraps arguments that do not parse into an object."""

    def close(self) -> None:
        for call in self._answer.open_calls():
            if parsed(call.arguments) is None:
                call.arguments = json.dumps({"input": call.arguments})
        super().close()


@mutant("malformed-contained", api="chat", family="malformed arguments")
class MalformedLosesText(ChatAccumulator):
    """Drops the text of an answer with arguments that do not parse."""

    def outcome(self) -> Outcome:
        return failed(super().outcome(), "malformed_arguments", text="")


@mutant("malformed-contained", api="chat", family="malformed arguments")
class MalformedEndsTheLoop(ChatAccumulator):
    """Drops the calls after one whose arguments do not parse."""

    def _surface(self) -> None:
        for call in self._answer.open_calls():
            if call.arguments and parsed(call.arguments) is None:
                self._drop_after(call)
        super()._surface()

    def _drop_after(self, malformed: StagedCall) -> None:
        for call in self._answer.open_calls():
            call.closed = call.position > malformed.position


@mutant("malformed-contained", api="chat", family="malformed arguments")
class MalformedUnnamed(ChatAccumulator):
    """Reports arguments that do not parse by an error that does not name the call."""

    def outcome(self) -> Outcome:
        return with_errors(
            super().outcome(), "malformed_arguments", message="invalid JSON", tool=None
        )


@mutant("malformed-contained", api="chat", family="malformed arguments")
class AnyJsonIsArguments(ChangedCalls):
    """Accepts arguments that are a list, a text or a number."""

    def close(self) -> None:
        self.__dict__["others"] = [
            (call.id, call.name, json.loads(call.arguments))
            for call in self._answer.open_calls()
            if _is_other_json(call.arguments)
        ]
        for call in self._answer.open_calls():
            call.closed = _is_other_json(call.arguments)
        super().close()

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        others = self.__dict__.get("others", ())
        calls = tuple(Call(name, arguments, id) for id, name, arguments in others)
        return replace(outcome, tool_calls=(*outcome.tool_calls, *calls))


def _is_other_json(text: str) -> bool:
    """Whether a text is JSON, and no object."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return False
    return not isinstance(value, dict)


@mutant(
    "malformed-contained",
    api="chat",
    policy=Policy(malformed="fail"),
    family="malformed arguments",
)
class MalformedDoesNotFail(ChatAccumulator):
    """Promises to fail where arguments do not parse, and finishes with the other calls."""
