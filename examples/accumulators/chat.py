"""How to put together a stream of OpenAI Chat Completions.

https://platform.openai.com/docs/api-reference/chat-streaming

Compatible servers leave out, repeat or change almost every field that identifies a call. A name in
backquotes is the quirk that a rule is there for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from examples.accumulators.answer import StagedCall, parsed
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

__all__ = ["ChatAccumulator"]


class ChatAccumulator(Accumulator):
    """Puts the chunks of one stream together (a `Probe`).

    Without a finish reason the stream was cut (`chat-finish-never`); a missing `[DONE]` is accepted
    (`chat-no-done`).
    """

    end = "a finish_reason"

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self._calls: list[StagedCall] = []
        self._last: StagedCall | None = None

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one chunk adds: text, reasoning, and the calls that surface."""
        if self._answer.failed:
            return None
        # The `object` is ignored (`chat-object-empty`, `chat-object-missing`).
        chunk = mapping(payload)
        self._answer.identify(string(chunk.get("id")), string(chunk.get("model")))
        # An error is below the key `error` (`err-in-stream`), or the chunk itself is one
        # (`err-event-line`, `err-object-error`).
        bare = event == "error" or chunk.get("object") == "error"
        error = chunk.get("error") or (payload if bare else None)
        # Azure's first chunk has no choices (`chat-first-choices-empty`). Chunks with usage have
        # an empty list or no key (`usage-empty-choices`, `usage-no-choices`), and events of other
        # kinds have neither (`chat-named-event`).
        for choice in map(mapping, sequence(chunk.get("choices"))):
            # Only the first choice, since the request has `n=1` (`chat-n-choices`); its index may
            # be missing (`chat-choice-index`). Several choices need one accumulator each.
            if not choice.get("index"):
                self._choice(choice, failing=error is not None)
        self._usage(chunk)
        if error is not None:
            self._answer.fail(error_message(error))
        return self._answer.delta()

    # Choices

    def _choice(self, choice: Mapping[str, Any], *, failing: bool) -> None:
        # The delta comes first: the chunk with the finish reason may have one, too
        # (`chat-finish-with-last-delta`). Proxies also send deltas after the finish reason
        # (`chat-delta-after-finish`). The delta and all of its fields may be null
        # (`chat-delta-null`).
        self._delta(mapping(choice.get("delta")))
        # Absent, null and "" mean that the answer goes on (`chat-finish-key-absent`). Every other
        # value ends it, also an unknown one (`chat-finish-foreign-value`), unless it comes with an
        # error (`err-with-choices`).
        finish = string(choice.get("finish_reason"))
        if finish and not failing:
            # The first one counts (`chat-finish-twice`). It does not say whether there are calls:
            # some servers send `stop` after calls (`chat-finish-stop-with-tools`).
            self._answer.finish = self._answer.finish or finish
            self._answer.complete = True
            self._surface()

    def _delta(self, delta: Mapping[str, Any]) -> None:
        # Every field may be missing or null (`chat-content-key-absent`). The role is ignored: it
        # is always the assistant's, sent with every chunk or never (`chat-role-every-chunk`,
        # `chat-role-null-empty-never`).
        reasoning, text = _reasoning_and_text(delta.get("content"))
        self._answer.add("reasoning", reasoning or _reasoning(delta))
        for detail in map(mapping, sequence(delta.get("reasoning_details"))):
            # OpenRouter sends signatures of reasoning, and encrypted reasoning as `data`.
            self._answer.keep(string(detail.get("signature")))
            self._answer.keep(string(detail.get("data")))
        self._answer.add("text", text)
        self._answer.add("refusal", string(delta.get("refusal")))
        # A chunk may have several entries (`chat-two-calls-one-chunk`), or null instead of a list
        # (`chat-tool-calls-null`).
        for entry in map(mapping, sequence(delta.get("tool_calls"))):
            # A call of a custom tool has free text, which no outcome has a field for.
            if "custom" not in entry or "function" in entry:
                self._fragment(entry)

    # Calls

    def _fragment(self, entry: Mapping[str, Any]) -> None:
        # The `type` is ignored (`chat-type-missing`). Null and "" mean absent, in every field
        # (`chat-id-null-later`, `chat-id-empty-later`, `chat-function-null`).
        function = mapping(entry.get("function"))
        index = count(entry.get("index"))
        id, name = string(entry.get("id")), string(function.get("name"))
        call = self._find_call(index, id, name)
        if call is None:
            position = len(self._calls) if index is None else index
            call = self._answer.open(position, key=index)
            self._calls.append(call)
        self._last = call
        if call.closed:
            return
        # The first id stays (`chat-id-repeated`, `chat-id-new-every-chunk`), also where another
        # call has it (`chat-id-shared`).
        call.id = call.id or id
        # The same name again is a repetition (`chat-name-repeated`); another one is the next
        # fragment of the name (`chat-name-split`). The first one may be empty
        # (`chat-name-empty-first`) or follow the arguments (`chat-args-before-name`).
        if name != call.name:
            call.name += name
        # In fragments, or all at once (`chat-args-whole`).
        call.argue(_arguments(function.get("arguments")))
        # Gemini's compatible endpoint signs calls.
        google = mapping(mapping(entry.get("extra_content")).get("google"))
        self._answer.keep(string(google.get("thought_signature")))

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        """The call that a fragment continues; None if it begins a new one.

        The index identifies the call; it may start at 1, go down, or alternate
        (`chat-index-from-one`, `chat-index-reversed`, `chat-calls-interleaved`). It is not
        sufficient, since servers also leave it out or reuse it.
        """
        candidates = [call for call in self._calls if index is None or call.key == index]
        if not candidates:
            return None
        # Only the first fragment had an index, but the id is known (`chat-index-first-only`).
        known = [call for call in candidates if id and call.id == id]
        if known:
            return known[-1]
        last = candidates[-1] if index is not None else self._last
        assert last is not None
        return None if _begins_new_call(last, index, id, name) else last

    def _surface(self) -> None:
        """After a finish reason, surfaces the calls that are complete.

        Nothing earlier shows that a call is complete: neither that the next index begins
        (`chat-calls-interleaved`), nor that the arguments parse so far. Even now a fragment may
        follow (`chat-delta-after-finish`), so calls that lack one stay open until `close`.
        """
        for call in self._answer.open_calls():
            if call.name and call.arguments and parsed(call.arguments) is not None:
                self._answer.surface(call)

    # Usage

    def _usage(self, chunk: Mapping[str, Any]) -> None:
        """Takes usage from any chunk (`usage-in-finish-chunk`, `usage-in-x-groq`).

        The last one counts, since each is a total (`usage-cumulative`). A later chunk with null or
        without usage does not erase it (`usage-wiped-by-trailing-chunk`).
        """
        usage = mapping(chunk.get("usage") or mapping(chunk.get("x_groq")).get("usage"))
        prompt = count(usage.get("prompt_tokens"))
        completion = count(usage.get("completion_tokens"))
        if prompt is None and completion is None:
            return
        reasoning = mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")
        cached = mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
        self._answer.usage = Usage(prompt, completion, count(reasoning), count(cached))


def _begins_new_call(last: StagedCall, index: int | None, id: str, name: str) -> bool:
    """Whether a fragment begins a new call, although its index is that of `last`.

    Args:
        index: None if the fragment has none.
        id: an id that no call with this index has, or "".
    """
    if id and last.id:
        # A new id with a name is a new call (`chat-index-all-zero`, `chat-index-same-one-chunk`).
        # Without a name it is one only if there is no index (`chat-index-missing`): some servers
        # invent a new id for every chunk (`chat-id-new-every-chunk`).
        return bool(name) or index is None
    if not (name and last.name):
        # Neither a new id nor a new name (`chat-index-duplicate-fragments`).
        return False
    # Without index and ids, only the name separates calls (`chat-index-missing`). With an index, a
    # name may be repeated or continued, but never after the arguments have begun.
    return index is None or bool(name != last.name and last.arguments)


def _arguments(value: object) -> str:
    """A fragment of arguments as text. Null is empty (`chat-args-null-first`,
    `chat-args-null-only`), and an object becomes JSON text (`chat-args-object`)."""
    if value is None or isinstance(value, str):
        return value or ""
    return json_text(value)


def _reasoning_and_text(content: object) -> tuple[str, str]:
    """The reasoning and the text of a content, which may be a list of parts
    (`chat-content-parts`). Tags in a text are text (`chat-think-tags`): only its user knows whether
    the model writes them or means them."""
    if isinstance(content, str):
        return "", content
    thoughts, texts = [], []
    for part in map(mapping, sequence(content)):
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            thoughts.append(inner if isinstance(inner, str) else _reasoning_and_text(inner)[1])
        else:
            texts.append(string(part.get("text")))
    return "".join(thoughts), "".join(texts)


def _reasoning(delta: Mapping[str, Any]) -> str:
    """The reasoning of a delta, once: if several fields have it, they repeat each other
    (`chat-reasoning-fields`)."""
    return next(filter(None, _reasoning_fields(delta)), "")


def _reasoning_fields(delta: Mapping[str, Any]) -> Iterator[str]:
    yield string(delta.get("reasoning_content"))
    yield string(delta.get("reasoning"))
    details = map(mapping, sequence(delta.get("reasoning_details")))
    yield "".join(string(one.get("text")) or string(one.get("summary")) for one in details)
