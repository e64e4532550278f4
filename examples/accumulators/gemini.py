"""How to put together a stream of Gemini.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse

Every chunk has the shape of a whole response, with only what is new in it. No field is required.
Calls have no index and usually no id, so only their order identifies them. A name in backquotes is
the quirk that a rule is there for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Unpack

from examples.accumulators.answer import StagedCall
from examples.accumulators.base import Accumulator, Options
from examples.accumulators.values import (
    count,
    error_message,
    json_text,
    mapping,
    sequence,
    string,
)
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta

__all__ = ["GeminiAccumulator"]


class GeminiAccumulator(Accumulator):
    """Puts the chunks of one stream together (a `Probe`).

    Without a finish reason the stream was cut (`gem-no-finish`).
    """

    end = "a finishReason"
    has_ids = False  # or seldom (`gem-same-name-no-id`)
    text_arguments = False

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self._partial_call: tuple[StagedCall, _PartialArguments] | None = None

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one chunk adds: text, thoughts, and the calls that surface. Calls have no raw
        arguments, because the service sends a value and no text.

        The payload may also be an array of chunks: without `alt=sse` the whole stream is an
        array, and errors come in one (`gem-array-form`).
        """
        for chunk in payload if isinstance(payload, list) else [payload]:
            if not self._answer.failed:
                self._chunk(mapping(chunk))
        return self._answer.delta()

    # Chunks

    def _chunk(self, chunk: Mapping[str, Any]) -> None:
        if chunk.get("error"):
            self._answer.fail(error_message(chunk["error"]))
            return
        self._answer.identify(string(chunk.get("responseId")), string(chunk.get("modelVersion")))
        self._usage(mapping(chunk.get("usageMetadata")))
        for candidate in map(mapping, sequence(chunk.get("candidates"))):
            # Only the first candidate: the request does not ask for several.
            if not candidate.get("index"):
                self._candidate(candidate)
        # A blocked prompt has no candidate, only this reason (`gem-empty-candidate`).
        blocked = string(mapping(chunk.get("promptFeedback")).get("blockReason"))
        if blocked:
            self._finish(blocked)

    def _candidate(self, candidate: Mapping[str, Any]) -> None:
        # The parts, or the content, may be missing (`gem-empty-candidate`).
        for part in map(mapping, sequence(mapping(candidate.get("content")).get("parts"))):
            self._part(part)
            if self._answer.failed:
                return
        # The parts come first, since the last of them are in the chunk with the finish reason.
        # STOP also ends answers with calls (`gem-stop-for-tools`).
        reason = string(candidate.get("finishReason"))
        if reason and reason != "FINISH_REASON_UNSPECIFIED":
            self._finish(reason)

    def _finish(self, reason: str) -> None:
        self._answer.finish = reason
        self._answer.complete = True
        if self._partial_call is not None:
            call, _ = self._partial_call
            self._partial_call = None
            self._answer.reject(call, f"was cut off by {reason}, with arguments still to come")

    def _part(self, part: Mapping[str, Any]) -> None:
        # On thoughts, texts (also empty ones) and calls alike.
        self._answer.keep(string(part.get("thoughtSignature")))
        call = part.get("functionCall")
        if isinstance(call, Mapping):
            self._call(call)
        # The chunk with the finish reason often has empty text (`gem-stop-for-tools`).
        self._answer.add("reasoning" if part.get("thought") else "text", string(part.get("text")))

    # Calls

    def _call(self, value: Mapping[str, Any]) -> None:
        """A whole call; or one fragment of a call, if `willContinue` says so."""
        name = string(value.get("name"))
        if name:
            self._end_call()
            call = self._answer.open(id=string(value.get("id")), name=name)
            self._partial_call = call, _PartialArguments()
        if self._partial_call is None:
            return
        call, arguments = self._partial_call
        if value.get("args") is not None:
            # A string instead of an object is malformed (`gem-args-string`). A call without
            # `args` has no arguments (`gem-args-absent`).
            call.arguments = json_text(value["args"])
        for partial in map(mapping, sequence(value.get("partialArgs"))):
            arguments.add(partial)
        if value.get("willContinue") is not True:
            self._end_call()

    def _end_call(self) -> None:
        if self._partial_call is None:
            return
        call, arguments = self._partial_call
        self._partial_call = None
        if not call.arguments:
            call.arguments = arguments.text()
        self._answer.surface(call)

    # Usage

    def _usage(self, usage: Mapping[str, Any]) -> None:
        """Takes the counts of a chunk.

        Each is the total so far, so the last ones count (`usage-cumulative`). The service leaves
        out counts of zero.
        """
        prompt = count(usage.get("promptTokenCount"))
        candidates = count(usage.get("candidatesTokenCount"))
        if prompt is None and candidates is None:
            return
        tools = count(usage.get("toolUsePromptTokenCount")) or 0
        thoughts = count(usage.get("thoughtsTokenCount")) or 0
        cached = count(usage.get("cachedContentTokenCount")) or 0
        self._answer.usage = Usage(
            (prompt or 0) + tools, (candidates or 0) + thoughts, thoughts, cached
        )


# Partial arguments (`gem-partial-args`)

_PATH_KEY = re.compile(
    r"""\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]"""
    r"""|\['(?P<single>[^']*)'\]"""
)
_VALUE_FIELDS = ("stringValue", "numberValue", "boolValue", "nullValue")


class _PartialArguments:
    """The arguments of a call while `partialArgs` arrive, each a value and its JSON path.

    Both objects and arrays are dictionaries here; a dictionary with integer keys is an array.
    """

    def __init__(self) -> None:
        self._root: dict[str | int, Any] = {}
        self._unusable_path = ""

    def add(self, partial: Mapping[str, Any]) -> None:
        """Sets the value at its path; a string continues the string that is there."""
        path = string(partial.get("jsonPath"))
        keys = _path_keys(path)
        fields = [name for name in _VALUE_FIELDS if name in partial]
        if not keys or not fields:
            self._unusable_path = self._unusable_path or path or "no path"
            return
        node: Any = self._root
        for key in keys[:-1]:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                self._unusable_path = self._unusable_path or path
                return
        value = None if fields[0] == "nullValue" else partial[fields[0]]
        before = node.get(keys[-1])
        both = isinstance(before, str) and isinstance(value, str)
        node[keys[-1]] = f"{before}{value}" if both else value

    def text(self) -> str:
        """The arguments as JSON text; after a partial argument with an unusable path, a message
        that is not JSON, so that the call is malformed."""
        if self._unusable_path:
            return f"a partial argument has an unusable path: {self._unusable_path}"
        return json_text(_json_value(self._root))


def _path_keys(path: str) -> list[str | int]:
    """The keys and indexes of a JSON path such as `$.stops[0].city`; empty if it is not one."""
    keys: list[str | int] = []
    position = 1
    while path.startswith("$") and position < len(path):
        match = _PATH_KEY.match(path, position)
        if match is None:
            return []
        position = match.end()
        name, index, quoted, single = match.groups()
        if index is not None:
            keys.append(int(index))
        else:
            keys.append(json.loads(quoted) if quoted else name or single or "")
    return keys


def _json_value(node: Any) -> Any:
    """The JSON value of a tree of dictionaries."""
    if not isinstance(node, dict):
        return node
    if node and all(isinstance(key, int) for key in node):
        return [_json_value(node[key]) for key in sorted(node)]
    return {key: _json_value(value) for key, value in node.items()}
