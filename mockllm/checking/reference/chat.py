"""How a stream of Chat Completions is put together.

https://platform.openai.com/docs/api-reference/chat-streaming

Compatible servers leave out, repeat and renew almost everything that identifies a call. A name
in backquotes is that of the quirk that a rule comes from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mockllm.checking.outcome import Outcome, TroubleKind, Usage
from mockllm.checking.probes import Delta
from mockllm.checking.reference.answer import Answer, Malformed, MissingId, StagedCall, parsed
from mockllm.checking.reference.values import (
    count,
    error_words,
    json_text,
    mapping,
    sequence,
    string,
)

__all__ = ["ChatAccumulator"]


class ChatAccumulator:
    """Puts the chunks of one stream together (`Probe`).

    Args:
        tools: the names of the tools that were offered; None: a call of any tool will do.
        malformed: what becomes of a call whose arguments never parse.
        missing_id: what becomes of a call that never gets an id.
    """

    def __init__(
        self,
        *,
        tools: Collection[str] | None = None,
        malformed: Malformed = "error",
        missing_id: MissingId = "synthesise",
    ) -> None:
        self._answer = Answer(tools, malformed, missing_id, "a finish_reason")
        self._calls: list[StagedCall] = []
        self._last: StagedCall | None = None

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one chunk adds: its text and reasoning, and the calls that surface with it."""
        if self._answer.failed:
            return None
        # The chunk's own `id` and `object` are not looked at (`chat-chunk-id-changes`,
        # `chat-object-empty`).
        chunk = mapping(payload)
        # `err-event-line`; `err-object-error`; and the usual form (`err-in-stream`).
        bare = event == "error" or chunk.get("object") == "error"
        error = chunk.get("error") or (payload if bare else None)
        # No choices in the first chunk of Azure (`chat-first-choices-empty`) and in those of
        # usage, which some send without the key (`usage-empty-choices`, `usage-no-choices`).
        for choice in map(mapping, sequence(chunk.get("choices"))):
            # `chat-n-choices`: one answer was asked for. More than one would have to be kept
            # apart by this index, each in an accumulator of its own.
            if not choice.get("index"):
                self._choice(choice, failing=error is not None)
        self._usage(chunk)
        if error is not None:
            self._answer.fail(error_words(error))
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
        """Nothing more comes; a finish reason has to have come (`chat-finish-never`), while
        `[DONE]` may be missing (`chat-no-done`)."""
        self._answer.close()

    # Choices

    def _choice(self, choice: Mapping[str, Any], *, failing: bool) -> None:
        # Before the finish reason, which may be in the same chunk (`chat-finish-with-last-delta`);
        # and after it, for proxies change the order (`chat-delta-after-finish`). The delta may
        # be null (`chat-delta-null`), as may everything in it.
        self._delta(mapping(choice.get("delta")))
        # `chat-finish-key-absent`: absent, null and "" all say that it goes on.
        # `chat-finish-foreign-value`: any other word is an end, known or not; but not one that
        # comes with an error (`err-with-choices`), which completes nothing.
        word = string(choice.get("finish_reason"))
        if word and not failing:
            # `chat-finish-twice`: the first one counts. It does not tell whether there are
            # calls (`chat-finish-stop-with-tools`); calls do.
            self._answer.finish = self._answer.finish or word
            self._answer.complete = True
            self._surface()

    def _delta(self, delta: Mapping[str, Any]) -> None:
        # Each may be missing or null, whatever else there is (`chat-content-key-absent`).
        # The role is not looked at: it is the assistant's, however often or seldom it is said
        # (`chat-role-every-chunk`, `chat-role-null-empty-never`).
        reasoning, text = _contents(delta.get("content"))
        self._answer.add("reasoning", reasoning or _reasoning(delta))
        self._answer.add("text", text)
        self._answer.add("refusal", string(delta.get("refusal")))
        # `chat-two-calls-one-chunk`: all entries count, and none where the list is null
        # (`chat-tool-calls-null`).
        for entry in sequence(delta.get("tool_calls")):
            self._fragment(mapping(entry))

    # Calls

    def _fragment(self, entry: Mapping[str, Any]) -> None:
        # The `type` is not looked at (`chat-type-missing`), and null or "" are as good as
        # absent everywhere (`chat-id-null-later`, `chat-id-empty-later`).
        function = mapping(entry.get("function"))
        index = count(entry.get("index"))
        id, name = string(entry.get("id")), string(function.get("name"))
        call = self._call_of(index, id, name)
        if call is None:
            place = len(self._calls) if index is None else index
            call = self._answer.open(place, key=index)
            self._calls.append(call)
        self._last = call
        if call.settled:
            return
        # `chat-id-repeated`, `chat-id-new-every-chunk`: the first id is kept as it is.
        call.id = call.id or id
        # `chat-name-repeated`: the same name again is no piece of it; another one is
        # (`chat-name-split`). The first one may be empty (`chat-name-empty-first`), and come
        # behind arguments (`chat-args-before-name`).
        if name != call.name:
            call.name += name
        # In pieces, or all of them at once (`chat-args-whole`).
        call.arguments += _arguments(function.get("arguments"))

    def _call_of(self, index: int | None, id: str, name: str) -> StagedCall | None:
        """The call that a fragment goes on with; None if it begins one.

        An index is a key (`chat-index-from-one`, `chat-index-reversed`,
        `chat-calls-interleaved`), but not one to rely on alone.
        """
        alike = [call for call in self._calls if index is None or call.key == index]
        if not alike:
            return None
        # `chat-index-first-only`: an id that was seen joins.
        known = [call for call in alike if id and call.id == id]
        if known:
            return known[-1]
        last = alike[-1] if index is not None else self._last
        assert last is not None
        return None if _is_another(last, index, id, name) else last

    def _surface(self) -> None:
        """Lets calls out that are complete as far as a finish reason can tell.

        That an index is followed by the next is no sign that its call is complete
        (`chat-calls-interleaved`), and neither are arguments that parse so far. Even now a
        fragment may follow (`chat-delta-after-finish`): calls that lack one wait for the end.
        """
        for call in self._answer.staged():
            if call.name and call.arguments and parsed(call.arguments) is not None:
                self._answer.surface(call)

    # Usage

    def _usage(self, chunk: Mapping[str, Any]) -> None:
        """Takes usage from wherever it comes (`usage-in-finish-chunk`). The last one counts: it
        is a sum already (`usage-cumulative`), and null or none after it takes nothing back
        (`usage-wiped-by-trailing-chunk`)."""
        usage = mapping(chunk.get("usage") or mapping(chunk.get("x_groq")).get("usage"))
        given, made = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
        if given is None and made is None:
            return
        reasoning = mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")
        cached = mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
        self._answer.usage = Usage(given, made, count(reasoning), count(cached))


def _is_another(last: StagedCall, index: int | None, id: str, name: str) -> bool:
    """Whether a fragment begins another call, although by its index it would go on with `last`.

    Args:
        index: None where the fragment has none.
        id: one that no call with this index has.
    """
    if id and last.id:
        # `chat-index-all-zero`, `chat-index-same-one-chunk`: a new id with a name is a new call.
        # Without a name it is one only where there is no index to speak against it
        # (`chat-index-missing`); otherwise the server makes ids up (`chat-id-new-every-chunk`).
        return bool(name) or index is None
    if not (name and last.name):
        # `chat-index-duplicate-fragments`: neither a new id nor a new name.
        return False
    # `chat-index-missing` without ids: the name is all there is to tell calls by. With an index
    # it may be repeated or in pieces, but no piece of a name follows the arguments.
    return index is None or bool(name != last.name and last.arguments)


def _arguments(value: object) -> str:
    """A fragment of arguments as text: null is "" (`chat-args-null-first`,
    `chat-args-null-only`), and an object is written out (`chat-args-object`)."""
    if value is None or isinstance(value, str):
        return value or ""
    return json_text(value)


def _contents(content: object) -> tuple[str, str]:
    """Reasoning and text of a content, which may be a list of parts (`chat-content-parts`)."""
    if isinstance(content, str):
        return "", content
    thoughts, texts = [], []
    for part in map(mapping, sequence(content)):
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            thoughts.append(inner if isinstance(inner, str) else _contents(inner)[1])
        else:
            texts.append(string(part.get("text")))
    return "".join(thoughts), "".join(texts)


def _reasoning(delta: Mapping[str, Any]) -> str:
    """Reasoning, once: where several fields have it, they all say the same
    (`chat-reasoning-fields`)."""
    for words in _reasonings(delta):
        if words:
            return words
    return ""


def _reasonings(delta: Mapping[str, Any]) -> Iterator[str]:
    yield string(delta.get("reasoning_content"))
    yield string(delta.get("reasoning"))
    details = map(mapping, sequence(delta.get("reasoning_details")))
    yield "".join(string(each.get("text")) or string(each.get("summary")) for each in details)
