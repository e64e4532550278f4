"""What the streams of quirks mean, written by hand: a second reading of the wire.

The checking kit takes from our own decoder what a stream with a quirk says (`Variant.as_sent`). So
that a mistake of the decoder is never the standard for clients, the laws compare it with these
functions, for any turn: each changes the turn without the quirk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.events import FinishReason, StreamError
from mockllm.core.timeline import expand, fold, normal
from mockllm.core.turn import Part, Reasoning, Refusal, Text, ToolCall, Turn
from mockllm.play.quirks.base import Variant
from mockllm.play.quirks.streams import without_finish
from mockllm.wire.protocols.gemini.fields import BLOCKED
from mockllm.wire.protocols.gemini_common import arguments_of
from mockllm.wire.protocols.openai_chat.fields import read_finish, write_finish
from mockllm.wire.protocols.values import json_object

Meaning = Callable[[Turn], Turn]


def expected_turn(name: str, variant: Variant, turn: Turn) -> Turn:
    """The turn that a correct client gets with a quirk, from the turn without it.

    Args:
        name: of the quirk, with that of the variant.
    """
    turn = sent_turn(name, variant, turn)
    return variant.expected(turn) if variant.expected else turn


# Bedrock


def _too_many(type: str) -> StreamError:
    return StreamError("Too many tokens, please wait before trying again.", type)


_TOO_MANY = _too_many("throttlingException")


def without_usage_at_end(turn: Turn) -> Turn:
    """Without usage, which no error has."""
    return turn if turn.finish is None else replace(turn, usage=None)


def without_finish_alone(turn: Turn) -> Turn:
    """Without a finish, but with usage."""
    return replace(turn, finish=None, finish_raw=None)


def without_blocks(turn: Turn) -> Turn:
    """Without any content."""
    return replace(turn, parts=(), order=(), gaps=())


def stopped_for(finish: FinishReason, raw: str | None = None, *, called: bool) -> Meaning:
    """Another finish of turns with calls, or of those without."""
    return lambda turn: (
        replace(turn, finish=finish, finish_raw=raw)
        if turn.finish is not None and bool(turn.tool_calls) == called
        else turn
    )


def sent_turn(name: str, variant: Variant, turn: Turn) -> Turn:
    """The same as far as the stream has it: without an error that a client has to report."""
    return MEANINGS[name.rstrip(":")](turn) if variant.as_sent else turn


def unfinished(turn: Turn) -> Turn:
    """Without finish and usage; a turn that ended in an error stays as it is."""
    return turn if turn.finish is None else without_finish(turn)


def failed(error: StreamError, sent: Meaning) -> Meaning:
    """The turn that ends in an error after what `sent` leaves of it."""
    return lambda turn: replace(without_finish(sent(turn)), error=error)


def only(error: StreamError) -> Meaning:
    """Nothing but an error, except for turns that ended in one."""
    return lambda turn: turn if turn.error is not None else Turn(error=error)


def nothing(_: Turn) -> Turn:
    """An empty turn."""
    return Turn()


def same(turn: Turn) -> Turn:
    """The turn as it is."""
    return turn


def finished(finish: FinishReason) -> Meaning:
    """The turn with another finish reason."""
    return lambda turn: (
        turn if turn.finish is None else replace(turn, finish=finish, finish_raw=None)
    )


def ended_in(error: StreamError) -> Meaning:
    """The turn with an error in place of its finish reason; one that was cut stays as it is."""

    def changed(turn: Turn) -> Turn:
        return (
            turn
            if turn.finish is None
            else replace(turn, finish=None, finish_raw=None, error=error)
        )

    return changed


def without_usage(turn: Turn) -> Turn:
    """The turn without its usage."""
    return replace(turn, usage=None)


# Chat Completions


def in_order_of_arrival(turn: Turn) -> Turn:
    """The turn with its calls in the order of their openings; without indexes no other is known."""
    calls = [i for i, part in enumerate(turn.parts) if isinstance(part, ToolCall)]
    arrival = [i for i in dict.fromkeys(turn.order) if i in calls]
    if arrival in ([], calls):
        return turn
    moved = dict(zip(arrival, calls, strict=True))
    parts = list(turn.parts)
    for old, new in moved.items():
        parts[new] = turn.parts[old]
    order = tuple(moved.get(i, i) for i in turn.order)
    return normal(replace(turn, parts=tuple(parts), order=order))


def numbered(turn: Turn) -> Turn:
    """The turn with the ids 1, 2, 3... of its calls."""
    parts = list(turn.parts)
    number = 0
    for i, part in enumerate(parts):
        if isinstance(part, ToolCall):
            number += 1
            parts[i] = replace(part, id=str(number))
    return replace(turn, parts=tuple(parts))


def called_null(turn: Turn) -> Turn:
    """The turn with calls of a tool `null`."""
    parts = tuple(
        replace(part, name="null") if isinstance(part, ToolCall) else part for part in turn.parts
    )
    return replace(turn, parts=parts)


def prefix_lost(turn: Turn) -> Turn:
    """The turn whose calls lack two characters, where the rest is malformed."""
    return _with_fragments(
        turn, {i: _malformed(call.fragments, slice(2, None)) for i, call in _calls(turn)}
    )


def cut_short(turn: Turn) -> Turn:
    """The turn with about two thirds of the arguments of its last call."""
    own = _calls(turn)
    if not own or turn.finish is None or turn.error is not None:
        return turn
    index, call = own[-1]
    texts = call.fragments or ("{}",)
    size = len("".join(texts))
    end = max(1, size * 7 // 10)
    front = None if end >= size else _malformed(texts, slice(0, end))
    return _with_fragments(turn, {index: front})


def cut_at_limit(turn: Turn) -> Turn:
    """The same, ended by the limit of tokens."""
    cut = cut_short(turn)
    return turn if cut is turn else replace(cut, finish="length", finish_raw=None)


def _malformed(texts: Sequence[str], piece: slice) -> list[str] | None:
    whole = "".join(texts)[piece]
    if not whole.strip() or json_object(whole) is not None:
        return None
    pieces, start = [], 0
    for fragment in texts:
        first, last, _ = piece.indices(start + len(fragment))
        pieces.append(fragment[max(0, first - start) : max(0, last - start)])
        start += len(fragment)
    return pieces


def _calls(turn: Turn) -> list[tuple[int, ToolCall]]:
    return [(i, part) for i, part in enumerate(turn.parts) if isinstance(part, ToolCall)]


def _with_fragments(turn: Turn, changes: Mapping[int, Sequence[str] | None]) -> Turn:
    parts = list(turn.parts)
    for index, call in _calls(turn):
        fragments = changes.get(index)
        if fragments is not None:
            parts[index] = replace(call, fragments=tuple(fragments))
    if tuple(parts) == turn.parts:
        return turn
    return replace(turn, parts=tuple(parts), order=(), gaps=())


def finish_read(values: Mapping[str, str]) -> Meaning:
    """The turn with other values of its finish reason on the wire."""

    def meaning(turn: Turn) -> Turn:
        value = turn.finish and values.get(write_finish(turn.finish, turn.finish_raw))
        if not value:
            return turn
        finish = read_finish(value, calls=bool(turn.tool_calls), refused=bool(turn.refusal))
        return replace(turn, finish=finish.reason, finish_raw=finish.raw)

    return meaning


def stopped_with_tools(turn: Turn) -> Turn:
    """The turn whose calls end with `stop`."""
    return finish_read({"tool_calls": "stop"})(turn) if turn.tool_calls else turn


def usage_without_finish(turn: Turn) -> Turn:
    """The turn with its usage, and without a finish."""
    return replace(turn, finish=None, finish_raw=None)


# Anthropic Messages


def until_first_fragment(turn: Turn, *, call: bool = False) -> Turn:
    """The turn cut after its first fragment that is not empty; the same turn where all are empty.

    Args:
        call: look for a fragment of a call's arguments.
    """
    output = (ev.TextDelta, ev.ReasoningDelta, ev.RefusalDelta, ev.ToolArgs)
    sent = expand(turn)
    for number, timed in enumerate(sent, 1):
        if isinstance(timed.event, ev.ToolArgs if call else output) and timed.event.text:
            return replace(fold(sent[:number]), order=(), gaps=())
    return turn


def call_incomplete(turn: Turn) -> Turn:
    """The turn with two thirds of the arguments of its last call, and nothing after it."""
    calls = [(i, call) for i, call in _calls(turn) if json_object(call.arguments)]
    if not calls or turn.finish is None:
        return turn
    position, call = calls[-1]
    size = len(call.arguments.rstrip())
    limit = min(size - 1, -(-2 * size // 3))
    call = replace(call, fragments=(call.arguments[:limit],))
    parts = (*turn.parts[:position], call)
    return replace(turn, parts=parts, order=(), gaps=(), finish="length", finish_raw=None)


def thinking_in_text(turn: Turn) -> Turn:
    """The turn with its reasoning in the text, tags before and after it."""
    kinds = (ev.ReasoningDelta, ev.TextDelta)
    deltas = [timed.event for timed in expand(turn) if isinstance(timed.event, kinds)]
    texts = [delta.text for delta in deltas if delta.text]
    thinking = [
        place
        for place, delta in enumerate(delta for delta in deltas if delta.text)
        if isinstance(delta, ev.ReasoningDelta)
    ]
    if not thinking:
        return turn
    texts[thinking[0]] = f"<think>{texts[thinking[0]]}"
    texts[thinking[-1]] += "</think>"
    others = (part for part in turn.parts if not isinstance(part, Reasoning | Text))
    return replace(turn, parts=(Text(("".join(texts),)), *others), order=(), gaps=())


def call_empty(turn: Turn) -> Turn:
    """The turn with none of the arguments of its last call, and nothing after it."""
    cut = call_incomplete(turn)
    if cut is turn:
        return turn
    return replace(cut, parts=(*cut.parts[:-1], replace(cut.parts[-1], fragments=())))


def turn_ended(turn: Turn) -> Turn:
    """The turn whose calls end with `end_turn`."""
    return finished("stop")(turn) if turn.finish == "tool_calls" else turn


def without_signatures(turn: Turn) -> Turn:
    """The turn without the signatures of its reasoning."""
    parts = (replace(p, signature=None) if isinstance(p, Reasoning) else p for p in turn.parts)
    return replace(turn, parts=tuple(parts))


# Gemini


def until_first_output(turn: Turn) -> Turn:
    """The turn cut after its first fragment of text or its first call, which Gemini sends in one
    chunk; the same turn where there is neither."""
    for timed in expand(turn):
        match timed.event:
            case ev.TextDelta(text=text) | ev.RefusalDelta(text=text) if text:
                first: Part = Text((text,))
            case ev.ReasoningDelta(text=text) if text:
                first = Reasoning((text,))
            case ev.PartEnd(part=part) if _is_sent_call(turn.parts[part]):
                first = turn.parts[part]
            case _:
                continue
        return replace(without_finish(turn), parts=(first,), order=(), gaps=())
    return turn


def _is_sent_call(part: Part) -> bool:
    return isinstance(part, ToolCall) and arguments_of(part) is not None


def empty(reason: FinishReason, raw: str | None = None) -> Meaning:
    """The turn with nothing but its finish; of a blocked prompt (`raw`), without output tokens."""

    def meaning(turn: Turn) -> Turn:
        if turn.finish is None or (turn.finish_raw or "").startswith(BLOCKED):
            return turn
        usage = turn.usage
        if usage is not None and raw is not None:
            usage = replace(usage, output=0, reasoning=0)
        return Turn(finish=reason, finish_raw=raw, usage=usage)

    return meaning


# Every API


def separated(separators: str) -> Meaning:
    """The turn with separators after every character of the model's text."""

    def text(value: str) -> str:
        return "".join(character + separators for character in value)

    def changed(part: Part) -> Part:
        match part:
            case Text() | Reasoning() | Refusal():
                return replace(part, fragments=tuple(map(text, part.fragments)))
        return part

    return lambda turn: replace(turn, parts=tuple(map(changed, turn.parts)))


# Ollama


def thinking_in_tags(turn: Turn) -> Turn:
    """The turn with its reasoning in the text, tags before it and before what follows."""
    parts: list[Part] = []
    opened = False

    def say(text: str) -> None:
        before = parts.pop() if parts and isinstance(parts[-1], Text) else Text(("",))
        assert isinstance(before, Text)
        parts.append(Text((before.text + text,)))

    for part in turn.parts:
        if isinstance(part, Reasoning):
            say(("" if opened else "<think>\n") + part.text)
            opened = True
            continue
        if opened:
            say("\n</think>\n\n")
            opened = False
        if isinstance(part, Text):
            say(part.text)
        else:
            parts.append(part)
    if opened and turn.finish is not None:
        say("\n</think>\n\n")
    return replace(turn, parts=tuple(parts), order=(), gaps=())


def called_by_reason(turn: Turn) -> Turn:
    """The turn whose calls end with a reason of their own."""
    if turn.finish is None or not turn.tool_calls:
        return turn
    return replace(turn, finish="tool_calls", finish_raw="tool_calls")


def without_prompt_count(turn: Turn) -> Turn:
    """The turn without the tokens of its prompt."""
    usage = turn.usage
    if usage is None or not (usage.output or usage.cached):
        return without_usage(turn)
    return replace(turn, usage=replace(usage, input=0))


def if_ended(meaning: Meaning) -> Meaning:
    """The meaning for turns that end; others stay as they are."""
    return lambda turn: turn if turn.finish is None else meaning(turn)


_OVERLOADED = StreamError("Overloaded", "overloaded_error")
_SERVER = StreamError("The server had an error.", "server_error", "server_error")
_UPSTREAM = StreamError("The upstream provider failed", None, "502")
_DEMANDED = StreamError(
    "A tool call was demanded, but the model made none", "invalid_request_error", "tool_use_failed"
)
_TEXTUAL = StreamError("Stream error: error decoding response body")
_BOOM = StreamError("boom", None, "400")
_RUNNER = StreamError("llama runner process has terminated: exit status 2")

_FOREIGN = {
    "end-turn": {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"},
    "eos": {"stop": "eos"},
    "guardrail": {"stop": "guardrail_intervened", "content_filter": "guardrail_intervened"},
}
_SEPARATORS = {
    "all": "\u2028\u2029\u0085",
    "line-separator": "\u2028",
    "paragraph-separator": "\u2029",
    "next-line": "\u0085",
    "controls": "\x0b\x0c\x1c\x1d\x1e",
}
_INDEXES = (
    "chat-index-missing",
    "chat-index-missing:fragments",
    "chat-index-missing:empty-id",
    "chat-index-all-zero",
    "chat-index-all-zero:fragments",
    "chat-index-same-one-chunk",
)
_ERRORS = {
    "err-in-stream": _UPSTREAM,
    "err-with-choices": _UPSTREAM,
    "err-event-line": _DEMANDED,
    "err-object-error": _BOOM,
}

_NO_MODEL = StreamError("The model is overloaded.", "service_unavailable")
_UNAVAILABLE = StreamError("The service is unavailable.", "UNAVAILABLE", "503")

MEANINGS: Mapping[str, Meaning] = {
    **dict.fromkeys(_INDEXES, in_order_of_arrival),
    "chat-id-new-every-chunk": numbered,
    "chat-placeholder-null-string:name": called_null,
    "chat-think-tags": thinking_in_text,
    "chat-args-lost-prefix": prefix_lost,
    "chat-args-truncated": cut_at_limit,
    "chat-args-truncated:normal-finish": cut_short,
    "chat-finish-stop-with-tools": stopped_with_tools,
    **{
        f"chat-finish-foreign-value:{name}": finish_read(values)
        for name, values in _FOREIGN.items()
    },
    "chat-finish-never:done": unfinished,
    "chat-finish-never:end": unfinished,
    "chat-finish-never:usage": usage_without_finish,
    **{f"{name}:first": failed(error, nothing) for name, error in _ERRORS.items()},
    **{f"{name}:later": failed(error, same) for name, error in _ERRORS.items()},
    "err-in-stream:text": failed(_TEXTUAL, same),
    "anth-tool-cut-by-limit": call_incomplete,
    "anth-tool-cut-by-limit:empty": call_empty,
    "anth-signature:missing": without_signatures,
    "anth-error-event:behind-delta": failed(_OVERLOADED, until_first_fragment),
    "anth-error-event:first": failed(_OVERLOADED, nothing),
    "anth-error-event:at-the-end": failed(_OVERLOADED, same),
    "anth-cut:behind-delta": lambda turn: without_finish(until_first_fragment(turn)),
    "anth-cut:in-call": lambda turn: until_first_fragment(turn, call=True),
    "anth-cut:before-end": without_finish,
    "anth-end-turn-with-tools": turn_ended,
    "anth-usage-missing:message-delta": without_usage,
    "anth-usage-missing:both": without_usage,
    "resp-error-shape:code-null": only(replace(_SERVER, code=None)),
    **{f"resp-error-shape:{name}": only(_SERVER) for name in ("nested", "flat", "failed")},
    "resp-incomplete:max-output-tokens": finished("length"),
    "resp-incomplete:content-filter": finished("content_filter"),
    "resp-incomplete:open-item": finished("length"),
    "resp-no-terminal": unfinished,
    "gem-raw-error-lines:behind-text": lambda turn: without_finish(until_first_output(turn)),
    "gem-raw-error-lines:first": nothing,
    "gem-no-finish:no-last-chunk": unfinished,
    "gem-no-finish:no-word": unfinished,
    "gem-no-finish:cut": lambda turn: without_finish(until_first_output(turn)),
    "gem-empty-candidate:no-parts": empty("length"),
    "gem-empty-candidate:no-content": empty("content_filter"),
    "gem-empty-candidate:no-candidates": empty("content_filter", BLOCKED + "PROHIBITED_CONTENT"),
    "compl-finish-never:done": usage_without_finish,
    "compl-finish-never:end": unfinished,
    "ollama-line-separators": separated("\u2028\u2029\u0085"),
    "ollama-think-tags": thinking_in_tags,
    "ollama-no-done:no-last": unfinished,
    "ollama-no-done:false": unfinished,
    "ollama-done-reason": called_by_reason,
    "ollama-counts-missing:prompt": without_prompt_count,
    "ollama-counts-missing:all": without_usage,
    "ollama-error-line:later": if_ended(failed(_RUNNER, same)),
    "ollama-error-line:first": if_ended(failed(_RUNNER, nothing)),
    "agui-no-run-finished:after-message": without_finish,
    "agui-no-run-finished:inside-message": without_finish,
    "agui-no-run-finished:empty": nothing,
    "cohere-error-finish:error": ended_in(StreamError("the model failed")),
    "cohere-error-finish:bare": ended_in(StreamError("the generation failed")),
    "cohere-error-finish:timeout": ended_in(StreamError("the generation took too long", "TIMEOUT")),
    "ia-error-event:behind-delta": failed(_NO_MODEL, until_first_fragment),
    "ia-error-event:first": failed(_NO_MODEL, nothing),
    "ia-error-event:no-message": failed(StreamError("", "deadline_exceeded"), same),
    "ia-front-end-error:google": failed(_UNAVAILABLE, same),
    "ia-front-end-error:bare": without_finish,
    "ia-cut:behind-delta": lambda turn: without_finish(until_first_fragment(turn)),
    "ia-cut:in-call": lambda turn: until_first_fragment(turn, call=True),
    "ia-cut:before-end": without_finish,
    "ia-cut:done": unfinished,
    "bedrock-exception-frame:throttling": failed(_TOO_MANY, same),
    "bedrock-exception-frame:model": failed(_too_many("modelStreamErrorException"), same),
    "bedrock-throttle-first-frame": lambda _: Turn(error=_TOO_MANY),
    "bedrock-exception-unknown:new": failed(_too_many("somethingNewException"), same),
    "bedrock-exception-unknown:other-operation": failed(_too_many("modelTimeoutException"), same),
    "bedrock-error-frame": failed(_too_many("internalError"), same),
    "bedrock-truncated-frame": unfinished,
    "bedrock-no-metadata": without_usage_at_end,
    "bedrock-no-message-stop:both": unfinished,
    "bedrock-no-message-stop:stop-alone": without_finish_alone,
    "bedrock-empty-end-turn:no-blocks": without_blocks,
    "bedrock-empty-end-turn:no-stop": lambda turn: unfinished(without_blocks(turn)),
    "bedrock-tool-use-without-block": stopped_for("tool_calls", called=False),
    "bedrock-end-turn-with-call": stopped_for("stop", called=True),
    "bedrock-malformed-tool-use": stopped_for("stop", "malformed_tool_use", called=False),
    **{
        f"sse-unicode-line-separators:{name}": separated(characters)
        for name, characters in _SEPARATORS.items()
    },
    **{f"sse-cut:{name}": without_finish for name in ("eof", "closed", "reset")},
}
"""By the name of the variant: all whose streams say something else."""
