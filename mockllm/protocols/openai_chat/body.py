"""Chat Completions answers that are not streamed: a turn to its body and back.

https://platform.openai.com/docs/api-reference/chat/object
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Turn
from mockllm.errors import WireError
from mockllm.protocols.base import Reply
from mockllm.protocols.openai_chat.calls import Calls
from mockllm.protocols.openai_chat.fields import (
    CALLS,
    REASONING,
    REFUSAL,
    TEXT,
    answer_id,
    cites_of,
    entries_of,
    error_of,
    error_type,
    fingerprint,
    read_finish,
    reasoning_of,
    split_content,
    usage_of,
    write_call,
    write_cite,
    write_finish,
    write_logprobs,
    write_usage,
)
from mockllm.protocols.openai_chat.request import Options
from mockllm.protocols.openai_refusals import kind
from mockllm.protocols.values import string

__all__ = ["decode_body", "encode_body"]


def encode_body(turn: Turn, reply: Reply) -> dict[str, Any]:
    """The body of an answer that is not streamed, equal to what its stream adds up to.

    The body of a turn with an error is the error only.
    """
    if turn.error is not None:
        error = turn.error
        return {
            "error": {
                "message": error.message,
                "type": error_type(error.type),
                "param": None,
                "code": error.code,
            }
        }
    options: Options = reply.options or Options()
    events = [timed.event for timed in expand(turn)]
    texts = [event for event in events if isinstance(event, ev.TextDelta)]
    fragments = [event.text for event in texts]
    logprobs = write_logprobs(fragments) if texts and texts[0].logprobs else None
    usual: ev.FinishReason = "tool_calls" if turn.tool_calls else "stop"
    reason = write_finish(turn.finish or usual, turn.finish_raw, forced=options.forced)
    message = _write_message(turn, events, fragments)
    body: dict[str, Any] = {
        "id": answer_id(reply),
        "object": "chat.completion",
        "created": reply.created,
        "model": reply.model,
        "choices": [
            {"index": i, "message": message, "logprobs": logprobs, "finish_reason": reason}
            for i in range(options.n)
        ],
    }
    if turn.usage is not None:
        body["usage"] = write_usage(turn.usage)
    body["service_tier"] = options.service_tier
    body["system_fingerprint"] = fingerprint(reply)
    return body


def _write_message(turn: Turn, events: list[ev.Event], texts: list[str]) -> dict[str, Any]:
    """The message: the fragments of each kind in order of arrival, as a client joins them."""
    text = "".join(texts)
    thoughts = [event.text for event in events if isinstance(event, ev.ReasoningDelta)]
    refusals = [event.text for event in events if isinstance(event, ev.RefusalDelta)]
    message: dict[str, Any] = {"role": "assistant", "content": text if texts else None}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    message["refusal"] = "".join(refusals) if refusals else None
    message["annotations"] = [
        write_cite(event, 0, len(text)) for event in events if isinstance(event, ev.Cite)
    ]
    if turn.tool_calls:
        message["tool_calls"] = [
            write_call(call.id, call.name, call.custom, call.arguments) for call in turn.tool_calls
        ]
    return message


def decode_body(body: Mapping[str, Any]) -> Turn:
    """The turn of an answer that was not streamed: its choice with index 0.

    Raises:
        WireError: there is neither a choice with a message nor an error.
    """
    if body.get("error"):
        return Turn(error=error_of(body["error"]))
    choices = body.get("choices")
    choices = [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []
    choice = next((c for c in choices if not c.get("index")), choices[0] if choices else {})
    message = choice.get("message")
    if not isinstance(message, dict):
        raise WireError(
            "choices[0].message must be an object in the body of a chat completion, "
            f"got {kind(message)}; is this the answer of /chat/completions, not streamed?"
        )
    events = _read_message(message, choice, string(body.get("id")))
    usage = usage_of(body.get("usage")) or usage_of(choice.get("usage"))
    if usage is not None:
        events.append(usage)
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason:
        calls = any(isinstance(event, ev.ToolStart) for event in events)
        refused = bool(message.get("refusal"))
        events.append(read_finish(reason, calls=calls, refused=refused))
    return fold(ev.Timed(0, event) for event in events)


def _read_message(message: dict[str, Any], choice: dict[str, Any], seed: str) -> list[ev.Event]:
    content, refusal = message.get("content"), message.get("refusal")
    thought, text = split_content(content)
    thought = thought or reasoning_of(message)
    cites = list(cites_of(message.get("annotations")))
    events: list[ev.Event] = []
    if thought or message.get("reasoning_content") == "":
        events.append(ev.ReasoningDelta(REASONING, thought))
    if text or content == "" or cites:
        logprobs = choice.get("logprobs")
        with_logprobs = isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list)
        events += [ev.TextDelta(TEXT, text, with_logprobs), *cites]
    if isinstance(refusal, str):
        events.append(ev.RefusalDelta(REFUSAL, refusal))
    calls = Calls(CALLS)
    for i, entry in enumerate(entries_of(message)):
        events += calls.add({**entry, "index": i}, seed)
    return events + calls.flush(seed, final=True)
