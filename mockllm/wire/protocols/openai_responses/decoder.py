"""Reads streams of the Responses API, from OpenAI and from compatible servers.

https://platform.openai.com/docs/api-reference/responses-streaming

Events are read by their JSON `type`; `event:` lines, sequence numbers and most identifiers may be
missing or wrong. A `done` event adds only what its deltas lacked, because servers omit deltas
(LM Studio) and proxies repeat `done` events; a value that contradicts its deltas replaces them.
Events without a neutral form are kept as `Raw`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import no_body
from mockllm.wire.protocols.openai_responses.assembly import Assembly
from mockllm.wire.protocols.openai_responses.citations import ANNOTATIONS
from mockllm.wire.protocols.openai_responses.items import (
    add_content,
    add_fragment,
    add_rest,
    arguments_of,
)
from mockllm.wire.protocols.openai_responses.objects import INCOMPLETE
from mockllm.wire.protocols.openai_responses.parts import (
    CALLS,
    CONTENT_PARTS,
    EVENT_PARTS,
    KINDS,
    PartType,
)
from mockllm.wire.protocols.openai_responses.server_tools import PROGRESS, SERVER_TOOLS
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import count, mapping, string, typed_event

_REASONS = {value: reason for reason, value in INCOMPLETE.items()}
_SILENT = frozenset({"queued", "in_progress", "cancelled"})


class Decoder:
    """Turns the frames of one Responses stream into events. `complete` is true once the response is
    completed, incomplete or failed, or an error was reported. Everything after that is ignored
    (`resp-after-completed`)."""

    def __init__(self) -> None:
        self.complete = False
        self.started = False
        self.failed = False
        self.assembly = Assembly()

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame; none for comments and for `[DONE]`, which some servers add."""
        if frame.data is None or frame.data.strip() == "[DONE]":
            return []
        value = typed_event(frame)
        # OpenAI sends `response.failed` after `error`; it has the usage.
        if self.complete and not (self.failed and value["type"] == "response.failed"):
            return []
        if _is_known(value):
            return list(_HANDLERS[value["type"]](self, value))
        return [self.assembly.raw(frame, value)]

    def close(self) -> list[ev.Event]:
        """The ends of parts that are still open when the stream ends."""
        if self.complete:
            return []
        return [event for item in self.assembly.items for event in item.finish()]


def decode_body(body: Fields) -> Turn:
    """The turn of a response object, or of an error body; raises `WireError` if it is neither."""
    if not isinstance(body.get("output"), list) and not body.get("error"):
        raise no_body("a Responses body", "`output` (an array) or `error`", body)
    decoder = Decoder()
    value = {"type": "", "response": body}
    events = [*_begin(decoder, value)]
    if string(body.get("status")) in _SILENT:
        events += decoder.assembly.read_output(body.get("output"))
    else:
        events += _end(decoder, value)
    return fold(ev.Timed(0, event) for event in events)


def _is_known(value: Fields) -> bool:
    type = value["type"]
    if type not in _HANDLERS:
        return False
    if type.startswith("response.output_item."):
        return string(mapping(value.get("item")).get("type")) in KINDS
    if "_part." in type:
        return string(mapping(value.get("part")).get("type")) in CONTENT_PARTS
    if type == _ANNOTATION:
        return mapping(value.get("annotation")).get("type") in ANNOTATIONS
    return True


# The beginning and the end


def _begin(decoder: Decoder, value: Fields) -> Iterable[ev.Event]:
    if not decoder.started:
        decoder.started = True
        response = mapping(value.get("response"))
        yield ev.Start(string(response.get("id")), string(response.get("model")))


def _end(decoder: Decoder, value: Fields) -> Iterable[ev.Event]:
    response = mapping(value.get("response"))
    yield from decoder.assembly.read_output(response.get("output"))
    usage = _usage(response.get("usage"))
    if usage is not None:
        yield usage
    decoder.complete = True
    if decoder.failed:  # the `error` before it was the end
        decoder.failed = False
        return
    status = string(response.get("status"))
    outcome = status if status in ("incomplete", "failed") else value["type"]
    if outcome.endswith("failed") or response.get("error"):
        yield _error(response.get("error"), "the response failed")
    elif outcome.endswith("incomplete"):
        yield _incomplete(mapping(response.get("incomplete_details")))
    else:
        yield ev.Finish(_reason(decoder))


def _incomplete(details: Fields) -> ev.Finish:
    raw = string(details.get("reason")) or INCOMPLETE["length"]
    reason = _REASONS.get(raw)
    return ev.Finish(reason) if reason else ev.Finish("length", raw)


def _reason(decoder: Decoder) -> ev.FinishReason:
    items = decoder.assembly.items
    if any(item.kind in CALLS for item in items):
        return "tool_calls"
    parts = (part for item in items for part in item.parts.values())
    return "refusal" if any(part.kind == "refusal" for part in parts) else "stop"


def _failure(decoder: Decoder, value: Fields) -> Iterable[ev.Event]:
    for item in decoder.assembly.items:
        yield from item.finish()
    decoder.complete = decoder.failed = True
    # The service nests the error; the API reference has its fields in the event itself, and
    # servers written from it send that (`resp-error-shape`).
    nested = value.get("error")
    flat = {"message": value.get("message"), "code": value.get("code")}
    yield _error(nested or flat, "the stream reports an error")


def _error(value: object, otherwise: str) -> ev.StreamError:
    if isinstance(value, str):
        return ev.StreamError(value)
    error = mapping(value)
    message, type, code = (string(error.get(key)) for key in ("message", "type", "code"))
    return ev.StreamError(message or otherwise, type or None, code or None)


def _usage(value: object) -> ev.Usage | None:
    if not isinstance(value, Mapping):
        return None
    details = mapping(value.get("input_tokens_details"))
    caches = details.get("cached_tokens"), details.get("cache_write_tokens")
    reasoning = mapping(value.get("output_tokens_details")).get("reasoning_tokens")
    counts = value.get("input_tokens"), value.get("output_tokens"), reasoning, *caches
    return ev.Usage(*map(count, counts))


# Items and their parts


def _open_item(decoder: Decoder, value: Fields) -> Iterable[ev.Event]:
    item = decoder.assembly.open(value, done=False)
    item.added = True
    early = arguments_of(mapping(value.get("item")), item.kind)
    item.early_arguments = item.early_arguments or early
    if item.name or item.kind in SERVER_TOOLS:
        yield from item.announce()


def _complete_item(decoder: Decoder, value: Fields) -> Iterable[ev.Event]:
    yield from decoder.assembly.open(value, done=True).complete(mapping(value.get("item")))


def _part_added(decoder: Decoder, value: Fields) -> Iterable[ev.Event]:
    # A part opens with its first delta, since servers leave this out (`resp-missing-openers`).
    # Where events have no index (`resp-required-missing`), only this says that another one begins.
    part_type = CONTENT_PARTS[mapping(value["part"])["type"]]
    if value.get(part_type.index) is None:
        decoder.assembly.find(value, part_type.item).unnumbered[part_type.index] += 1
    return ()


def _part_done(decoder: Decoder, value: Fields) -> Iterable[ev.Event]:
    content = mapping(value.get("part"))
    part_type = CONTENT_PARTS[content["type"]]
    item, part = decoder.assembly.part(value, part_type)
    yield from add_content(item, part, content, part_type)


def _add_annotation(decoder: Decoder, value: Fields) -> Iterable[ev.Event]:
    _, part = decoder.assembly.part(value, EVENT_PARTS["output_text"])
    part.annotations.append(value["annotation"])
    return ()


def _progress(decoder: Decoder, value: Fields) -> Iterable[ev.Event]:
    decoder.assembly.find(value, PROGRESS[value["type"]])
    return ()


_Handler = Callable[[Decoder, Fields], Iterable[ev.Event]]


def _delta(decoder: Decoder, value: Fields, part_type: PartType) -> Iterable[ev.Event]:
    item, part = decoder.assembly.part(value, part_type)
    text = value.get("delta")
    if isinstance(text, str) and not part.done and not item.closed:
        yield from add_fragment(item, part, text, bool(value.get("logprobs")))


def _whole(decoder: Decoder, value: Fields, part_type: PartType) -> Iterable[ev.Event]:
    item, part = decoder.assembly.part(value, part_type)
    yield from add_rest(item, part, value.get(part_type.value), bool(value.get("logprobs")))


def _arguments_done(decoder: Decoder, value: Fields) -> Iterable[ev.Event]:
    item, part = decoder.assembly.part(value, EVENT_PARTS["function_call_arguments"])
    item.identify({"name": value.get("name")})
    if item.name:
        yield from item.announce()
    yield from add_rest(item, part, arguments_of(value))


_ANNOTATION = "response.output_text.annotation.added"
_HANDLERS: dict[str, _Handler] = {
    "response.created": _begin,
    "response.queued": _begin,
    "response.in_progress": _begin,
    "response.output_item.added": _open_item,
    "response.output_item.done": _complete_item,
    "response.content_part.added": _part_added,
    "response.content_part.done": _part_done,
    "response.reasoning_summary_part.added": _part_added,
    "response.reasoning_summary_part.done": _part_done,
    _ANNOTATION: _add_annotation,
    **{f"response.{stem}.delta": partial(_delta, part_type=p) for stem, p in EVENT_PARTS.items()},
    **{f"response.{stem}.done": partial(_whole, part_type=p) for stem, p in EVENT_PARTS.items()},
    "response.function_call_arguments.done": _arguments_done,
    **dict.fromkeys(PROGRESS, _progress),
    "response.completed": _end,
    "response.incomplete": _end,
    "response.failed": _end,
    "error": _failure,
}
