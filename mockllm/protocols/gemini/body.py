"""The body of an answer that is not streamed.

https://ai.google.dev/api/generate-content#method:-models.generatecontent

Only pure functions may live here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mockllm.core.timeline import expand
from mockllm.core.turn import Turn
from mockllm.protocols.base import Reply, logprob
from mockllm.protocols.custom_calls import with_functions
from mockllm.protocols.gemini.encoder import Encoder
from mockllm.protocols.gemini.fields import CALLS_MESSAGE, Options, arguments_of, json_value
from mockllm.protocols.values import mapping

__all__ = ["encode_body"]

_Json = dict[str, Any]


def encode_body(turn: Turn, reply: Reply) -> dict[str, Any]:
    """The body of an answer that is not streamed: all chunks of the stream joined.

    The body of a turn with an error is the error.
    """
    options = replace(reply.options, array=False, partial=False)
    encoder = Encoder(turn, replace(reply, options=options))
    values = [
        json_value(frame.data or "")
        for item in expand(turn)
        for frame in encoder.encode(item.event)
    ]
    body = _joined([value for value in values if isinstance(value, dict)])
    if "candidates" in body:
        first = {**body["candidates"][0], **_only_in_bodies(turn, options)}
        more = [{**first, "index": index} for index in range(1, options.candidates)]
        body["candidates"] = [first, *more]
    return body


def _only_in_bodies(turn: Turn, options: Options) -> _Json:
    """The fields of a candidate that streams do not have."""
    if options.vertex:
        return {"avgLogprobs": logprob(turn.text + "".join(map(str, turn.tool_calls)))}
    calls = any(arguments_of(call) is not None for call in with_functions(turn).tool_calls)
    return {"finishMessage": CALLS_MESSAGE} if calls and turn.finish == "tool_calls" else {}


def _joined(chunks: Iterable[_Json]) -> _Json:
    candidate: _Json = {}
    parts: list[_Json] = []
    body: _Json = {}
    for chunk in chunks:
        if "error" in chunk:
            return {"error": chunk["error"]}
        candidates = chunk.pop("candidates", None)
        if isinstance(candidates, list) and candidates:
            fields = dict(mapping(candidates[0]))
            content = mapping(fields.pop("content", None))
            _append(parts, content.get("parts"))
            candidate |= {"content": {"parts": parts, "role": "model"}} if content else {}
            candidate |= fields
        body |= chunk
    if not candidate:
        return body
    filled = [part for part in parts if part != {"text": ""}]
    if "content" in candidate:
        # An empty answer has one empty text, unless the limit ended it.
        keep_empty = parts and candidate.get("finishReason") != "MAX_TOKENS"
        own = {"parts": filled or parts} if filled or keep_empty else {}
        candidate["content"] = {**own, "role": "model"}
    return {"candidates": [candidate], **body}


def _append(parts: list[_Json], more: object) -> None:
    """Adds parts, joining text to the text of the same kind before it."""
    for part in more if isinstance(more, list) else ():
        last = parts[-1] if parts else {}
        if _plain(part) and _plain(last) and part.get("thought") == last.get("thought"):
            parts[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            parts.append(part)


def _plain(part: object) -> bool:
    """Whether a part has a text and nothing else but `thought`."""
    fields = mapping(part)
    return isinstance(fields.get("text"), str) and fields.keys() <= {"text", "thought"}
