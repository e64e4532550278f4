"""Puts the chunks of Gemini together. A name in brackets is a quirk of servers that a rule is there
for; `mockllm list quirks NAME` describes it.

Every chunk is a whole response with only what is new in it. Calls have no index, most no id."""

import json
import re

from answer import Answer, count, items, message, obj, text, to_json

PATH_KEY = re.compile(
    r"""\.([^.\[\]]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\['([^']*)'\]""",
)
VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class Gemini(Answer):
    raw_arguments = False

    def __init__(self):
        super().__init__("a finishReason")
        self.partial = None  # a call whose arguments go on, and these

    def feed(self, payload, event=None):
        # Without alt=sse the stream is an array, and errors come in one [gem-array-form].
        for chunk in payload if isinstance(payload, list) else [payload]:
            if not self.failed:
                self.chunk(obj(chunk))

    def chunk(self, chunk):
        if chunk.get("error"):
            self.fail(message(chunk["error"]))
            return
        self.identify(chunk.get("responseId"), chunk.get("modelVersion"))
        self.count_tokens(obj(chunk.get("usageMetadata")))
        for candidate in map(obj, items(chunk.get("candidates"))):
            if not candidate.get("index"):
                for part in map(obj, items(obj(candidate.get("content")).get("parts"))):
                    self.part(part)
                # The last parts are in the chunk with the reason; STOP also ends calls.
                self.end_answer(text(candidate.get("finishReason")))
        # A blocked prompt has no candidate [gem-empty-candidate].
        self.end_answer(text(obj(chunk.get("promptFeedback")).get("blockReason")))

    def end_answer(self, reason):
        if not reason or reason == "FINISH_REASON_UNSPECIFIED":
            return
        self.finish = reason
        self.complete = True
        if self.partial:
            self.partial[0].problem = f"was cut off by {reason}, with arguments still to come"
            self.partial = None

    def part(self, part):
        self.keep(part.get("thoughtSignature"))  # of thoughts, texts and calls alike
        if isinstance(part.get("functionCall"), dict):
            self.call(part["functionCall"])
        self.add("reasoning" if part.get("thought") else "text", text(part.get("text")))

    def call(self, value):
        """A whole call, or a part of one if `willContinue` says so [gem-partial-args]."""
        name = text(value.get("name"))
        if name:
            self.end_call()
            self.partial = self.open(0, None, text(value.get("id")), name), PartialArguments()
        if not self.partial:
            return
        call, arguments = self.partial
        if value.get("args") is not None:
            call.arguments = to_json(value["args"])  # a string is malformed [gem-args-string]
        for partial in map(obj, items(value.get("partialArgs"))):
            arguments.add(partial)
        if value.get("willContinue") is not True:
            self.end_call()

    def end_call(self):
        if self.partial:
            call, arguments = self.partial
            call.arguments = call.arguments or arguments.text()
            self.partial = None

    def count_tokens(self, usage):
        """Each count is the total so far. Those of zero are left out by the service."""
        prompt = count(usage.get("promptTokenCount"))
        candidates = count(usage.get("candidatesTokenCount"))
        if prompt is None and candidates is None:
            return
        thoughts = count(usage.get("thoughtsTokenCount")) or 0
        self.usage = {
            "input": (prompt or 0) + (count(usage.get("toolUsePromptTokenCount")) or 0),
            "output": (candidates or 0) + thoughts,
            "reasoning": thoughts,
            "cached": count(usage.get("cachedContentTokenCount")) or 0,
        }


class PartialArguments:
    """Arguments that arrive as values, each with its JSON path. Objects and arrays are both
    dictionaries here; one with numbers as keys is an array."""

    def __init__(self):
        self.root, self.unusable = {}, ""

    def add(self, partial):
        path = text(partial.get("jsonPath"))
        keys = path_keys(path)
        fields = [name for name in VALUES if name in partial]
        node = self.root
        for key in keys[:-1]:
            node = node.setdefault(key, {}) if isinstance(node, dict) else None
        if not keys or not fields or not isinstance(node, dict):
            self.unusable = self.unusable or path or "none"
            return
        value = None if fields[0] == "nullValue" else partial[fields[0]]
        before = node.get(keys[-1])
        both = isinstance(before, str) and isinstance(value, str)
        node[keys[-1]] = before + value if both else value

    def text(self):
        return f"unusable path: {self.unusable}" if self.unusable else to_json(value_of(self.root))


def path_keys(path):
    """The keys of a path such as `$.stops[0].city`; none if it is no path."""
    keys, at = [], 1
    while path.startswith("$") and at < len(path):
        match = PATH_KEY.match(path, at)
        if not match:
            return []
        at = match.end()
        name, index, quoted, single = match.groups()
        keys.append(int(index) if index else json.loads(quoted) if quoted else name or single or "")
    return keys


def value_of(node):
    if not isinstance(node, dict):
        return node
    if node and all(isinstance(key, int) for key in node):
        return [value_of(node[key]) for key in sorted(node)]
    return {key: value_of(value) for key, value in node.items()}
