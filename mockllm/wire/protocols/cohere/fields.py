"""The fields that streams and bodies of Cohere share: finish reasons, usage, citations.

https://docs.cohere.com/reference/chat-stream
"""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.seeded import derive_uuid
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import mapping, objects, string, whole

# https://docs.cohere.com/reference/chat#response.body.finish_reason
_FINISHES: dict[str, ev.FinishReason] = {
    "COMPLETE": "stop",
    "TOOL_CALL": "tool_calls",
    "MAX_TOKENS": "length",
}
_OTHERS: dict[str, ev.FinishReason] = {
    "STOP_SEQUENCE": "stop",
    # Of the first version, which services that imitate the second one still send.
    "USER_CANCEL": "stop",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "content_filter",
}
_WRITTEN = {reason: value for value, reason in _FINISHES.items()}
_FAILURES = {"ERROR": "the generation failed", "TIMEOUT": "the generation took too long"}
"""The finish reasons of an answer that failed, with a message where the service has none."""

_CITED = ("snippet", "text", "content")
"""The fields of a document that may have the text that is cited from it."""


def event_frame(value: Json) -> Frame:
    """The frame of an event: the event line repeats its type."""
    return Frame(dumps(value), event=value["type"])


def answer_id(reply: Reply) -> str:
    """The id of an answer, a UUID."""
    return derive_uuid(reply.seed, "answer")


# How an answer ends


def read_finish(value: str, error: object, *, called: bool) -> ev.Finish | ev.StreamError:
    """The end of an answer. Unknown values count as `stop`; an end without a word about calls means
    `tool_calls` after calls. `raw` keeps a value that is not the usual one.

    Args:
        error: the message of an answer that failed.
        called: whether the answer has calls.
    """
    if value in _FAILURES or string(error):
        message = string(error) or _FAILURES[value]
        return ev.StreamError(message, "TIMEOUT" if value == "TIMEOUT" else None)
    reason = _FINISHES.get(value)
    if called and (reason or _OTHERS.get(value, "stop")) == "stop":
        return ev.Finish("tool_calls", value)
    return ev.Finish(reason) if reason else ev.Finish(_OTHERS.get(value, "stop"), value)


def write_finish(reason: ev.FinishReason, raw: str | None, *, at_sequence: bool = False) -> str:
    """The `finish_reason` of a finish. The API has none for filters and refusals.

    Args:
        at_sequence: whether a stop sequence ended the answer.
    """
    if raw in _FINISHES or raw in _OTHERS:
        return str(raw)
    return "STOP_SEQUENCE" if at_sequence else _WRITTEN.get(reason, "COMPLETE")


def write_failure(error: ev.StreamError) -> Json:
    """The fields of the last event of an answer that failed."""
    failure = "TIMEOUT" if error.type == "TIMEOUT" else "ERROR"
    return {"error": error.message, "finish_reason": failure}


# Usage


def read_usage(value: object) -> ev.Usage | None:
    """The usage of an answer: what the model read and wrote (`tokens`), or else what is billed,
    which leaves out the service's own instructions. None where neither is counted."""
    usage = mapping(value)
    billed, tokens = mapping(usage.get("billed_units")), mapping(usage.get("tokens"))
    names = ("input_tokens", "output_tokens")
    read, written = (
        whole(tokens.get(name)) if whole(tokens.get(name)) is not None else whole(billed.get(name))
        for name in names
    )
    if read is None and written is None:
        return None
    return ev.Usage(read or 0, written or 0, cached=whole(usage.get("cached_tokens")) or 0)


def write_usage(usage: ev.Usage) -> Json:
    """The `usage` object. Everything is billed."""
    counts = {"input_tokens": usage.input, "output_tokens": usage.output}
    return {"billed_units": counts, "tokens": dict(counts), "cached_tokens": usage.cached}


# Citations


def read_cites(citation: Fields, part: int) -> Iterator[ev.Cite]:
    """A citation for each source: a document or the result of a tool, known by its `url` or else by
    its id. Which words of the answer it belongs to has no neutral form."""
    for source in objects(citation.get("sources")):
        source_of = mapping(source.get("document") or source.get("tool_output"))
        url = string(source_of.get("url")) or string(source.get("id"))
        texts = (string(source_of.get(name)) for name in _CITED)
        title = string(source_of.get("title"))
        yield ev.Cite(part, url, title, next(filter(None, texts), ""))


def write_cite(cite: ev.Cite, text: str, number: int, block: int | None) -> Json:
    """A citation of a document, which belongs to a whole text.

    Args:
        text: of the part that cites.
        number: of the citation in its answer; the id of a document has it that is not known by its
            number in the request.
        block: the index of the part among the contents, which the service leaves out where it is
            0; None for the tool plan.
    """
    id = f"doc:{number if cite.passage is None else cite.passage.source}"
    # The service repeats the fields of the document in the request. Providers send `text` (that of
    # the AI SDK refuses an answer without it).
    document = {"id": id, "title": cite.title, "url": cite.url, "text": cite.cited_text}
    index = {"content_index": block} if block else {}
    where = {"type": "PLAN"} if block is None else {**index, "type": "TEXT_CONTENT"}
    source = {"type": "document", "id": id, "document": document}
    return {"start": 0, "end": len(text), "text": text, "sources": [source], **where}
