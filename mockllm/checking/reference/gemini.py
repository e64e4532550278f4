"""How a stream of Gemini is put together.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse

Every chunk is a whole response with what is new in it, and nothing in it is required. Calls have
no index and mostly no id: their order is all there is. A name in backquotes is that of the quirk
that a rule comes from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from mockllm.checking.outcome import Outcome, TroubleKind, Usage
from mockllm.checking.probes import Delta
from mockllm.checking.reference.answer import Answer, Malformed, MissingId, StagedCall
from mockllm.checking.reference.values import (
    count,
    error_words,
    json_text,
    mapping,
    sequence,
    string,
)

__all__ = ["GeminiAccumulator"]


class GeminiAccumulator:
    """Puts the chunks of one stream together (`Probe`).

    Args:
        tools: the names of the tools that were offered; None: a call of any tool will do.
        malformed: what becomes of a call whose arguments never parse.
        missing_id: without effect: a call without an id is how this API usually sends it, so
            it is always given one (`gem-same-name-no-id`).
    """

    def __init__(
        self,
        *,
        tools: Collection[str] | None = None,
        malformed: Malformed = "error",
        missing_id: MissingId = "synthesise",
    ) -> None:
        self._answer = Answer(tools, malformed, "synthesise", "a finishReason")
        self._growing: tuple[StagedCall, _Tree] | None = None

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one chunk adds: its text and thoughts, and the calls that surface with it.

        A chunk in an array, as errors come where the stream is one (`gem-array-form`), counts
        as the chunk.
        """
        for chunk in payload if isinstance(payload, list) else [payload]:
            if not self._answer.failed:
                self._chunk(mapping(chunk))
        return self._answer.delta()

    def outcome(self) -> Outcome:
        """The answer so far."""
        return self._answer.outcome()

    def pending(self) -> int:
        """How many calls have begun and not surfaced."""
        return len(self._answer.staged())

    def fail(self, message: str, kind: TroubleKind = "stream_error") -> None:
        """The stream broke underneath, below what an event can tell."""
        self._answer.fail(message, kind)

    def close(self) -> None:
        """Nothing more comes; without a reason for the end it was cut (`gem-no-finish`)."""
        self._answer.close()

    # Chunks

    def _chunk(self, chunk: Mapping[str, Any]) -> None:
        if chunk.get("error"):
            self._answer.fail(error_words(chunk["error"]))
            return
        self._usage(mapping(chunk.get("usageMetadata")))
        for candidate in map(mapping, sequence(chunk.get("candidates"))):
            # One answer was asked for; others would have an index.
            if not candidate.get("index"):
                self._candidate(candidate)
        # `gem-empty-candidate`: a refused prompt has no candidate, only this reason.
        blocked = string(mapping(chunk.get("promptFeedback")).get("blockReason"))
        if blocked:
            self._finish(blocked)

    def _candidate(self, candidate: Mapping[str, Any]) -> None:
        # `gem-empty-candidate`: parts, and content with them, may be missing.
        for part in map(mapping, sequence(mapping(candidate.get("content")).get("parts"))):
            self._part(part)
        # Behind the parts, since it comes with the last of them. STOP is said of calls too: the
        # parts tell whether there are any (`gem-stop-for-tools`).
        word = string(candidate.get("finishReason"))
        if word and word != "FINISH_REASON_UNSPECIFIED":
            self._finish(word)

    def _finish(self, word: str) -> None:
        self._answer.finish = word
        self._answer.complete = True
        if self._growing is not None:
            call, _ = self._growing
            self._growing = None
            self._answer.refuse(call, f"was cut off by {word}, with arguments still to come")

    def _part(self, part: Mapping[str, Any]) -> None:
        call = part.get("functionCall")
        if isinstance(call, Mapping):
            self._call(call)
        # Empty text, as with the finish, adds nothing (`gem-stop-for-tools`).
        kind = part.get("thought")
        self._answer.add("reasoning" if kind else "text", string(part.get("text")))

    # Calls

    def _call(self, value: Mapping[str, Any]) -> None:
        """A call, which comes whole; or, where it says that it will go on, a piece of one."""
        name = string(value.get("name"))
        if name:
            self._end_call()
            call = self._answer.open(id=string(value.get("id")), name=name)
            self._growing = call, _Tree()
        if self._growing is None:
            return
        call, tree = self._growing
        if value.get("args") is not None:
            # `gem-args-string`: a string is not an object and fails as such. Absent: `{}`
            # (`gem-args-absent`).
            call.arguments = json_text(value["args"])
        for piece in map(mapping, sequence(value.get("partialArgs"))):
            tree.add(piece)
        if value.get("willContinue") is not True:
            self._end_call()

    def _end_call(self) -> None:
        if self._growing is None:
            return
        call, tree = self._growing
        self._growing = None
        if not call.arguments:
            call.arguments = tree.text()
        self._answer.surface(call)

    # Usage

    def _usage(self, usage: Mapping[str, Any]) -> None:
        """Takes the tokens so far, of which the last are those of the answer
        (`usage-cumulative`); counts of zero are left out."""
        given, made = count(usage.get("promptTokenCount")), count(usage.get("candidatesTokenCount"))
        if given is None and made is None:
            return
        tools = count(usage.get("toolUsePromptTokenCount")) or 0
        thoughts = count(usage.get("thoughtsTokenCount")) or 0
        cached = count(usage.get("cachedContentTokenCount")) or 0
        self._answer.usage = Usage((given or 0) + tools, (made or 0) + thoughts, thoughts, cached)


# Arguments in pieces (`gem-partial-args`)

_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]"""
    r"""|\['(?P<single>[^']*)'\]"""
)
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class _Tree:
    """Arguments while their pieces come in, each with the path to its place.

    Objects and arrays alike are dictionaries here; those with numbers for keys are arrays.
    """

    def __init__(self) -> None:
        self._root: dict[str | int, Any] = {}
        self._broken = ""

    def add(self, piece: Mapping[str, Any]) -> None:
        """Puts a value at its path; to a string that is there, it adds the next characters."""
        path = string(piece.get("jsonPath"))
        steps = _steps(path)
        told = [name for name in _VALUES if name in piece]
        if not steps or not told:
            self._broken = self._broken or path or "no path"
            return
        node: Any = self._root
        for step in steps[:-1]:
            node = node.setdefault(step, {})
            if not isinstance(node, dict):
                self._broken = self._broken or path
                return
        value = None if told[0] == "nullValue" else piece[told[0]]
        before = node.get(steps[-1])
        both = isinstance(before, str) and isinstance(value, str)
        node[steps[-1]] = f"{before}{value}" if both else value

    def text(self) -> str:
        """The arguments as JSON text; where a piece had no place in them, what is no JSON."""
        if self._broken:
            return f"a piece without a place in the arguments: {self._broken}"
        return json_text(_plain(self._root))


def _steps(path: str) -> list[str | int]:
    """The keys and indexes of a path such as `$.stops[0].city`; empty where it is none."""
    steps: list[str | int] = []
    at = 1
    while path.startswith("$") and at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return []
        at = match.end()
        name, index, quoted, single = match.groups()
        if index is not None:
            steps.append(int(index))
        else:
            steps.append(json.loads(quoted) if quoted else name or single or "")
    return steps


def _plain(node: Any) -> Any:
    """The value that a tree of dictionaries stands for."""
    if not isinstance(node, dict):
        return node
    if node and all(isinstance(key, int) for key in node):
        return [_plain(node[key]) for key in sorted(node)]
    return {key: _plain(value) for key, value in node.items()}
