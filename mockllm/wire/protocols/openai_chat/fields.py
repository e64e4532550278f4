"""The fields that streams and bodies of Chat Completions share, and the finish reasons.

https://platform.openai.com/docs/api-reference/chat/object

Readers accept what any server sends: a value of the wrong kind counts as absent.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping

from mockllm.core import events as ev
from mockllm.core.seeded import derive
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.openai_common import (
    cache_write,
    function_call,
    is_foreign_finish,
    usage_of,
)
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, base64_bytes, mapping, objects, string

REASONING, TEXT, REFUSAL, AUDIO, CALLS = 0, 1, 2, 3, 4
"""The keys of the parts; the call with index i has `CALLS + i`."""
RAWS = 1 << 30
"""The key of the first frame that is kept as `Raw`; the others follow in order of arrival. The
indexes of calls stay below it (`calls`)."""

_FINISHES: dict[str, ev.FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
}
_FOREIGN: dict[str, ev.FinishReason] = {
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "max_output_tokens": "length",
    "safety": "content_filter",
    "SAFETY": "content_filter",
    "guardrail_intervened": "content_filter",
    "refusal": "refusal",
}


def read_finish(value: str, *, calls: bool, refused: bool) -> ev.Finish:
    """The finish of a `finish_reason`. `stop` means `refusal` after a refusal, and `tool_calls`
    after calls: vLLM and Ollama end calls with it, and OpenAI itself if `tool_choice` names the
    function. Unknown values count as `stop`. `raw` keeps a value that is not the usual one."""
    reason = _FINISHES.get(value)
    if reason is not None and reason != "stop":
        return ev.Finish(reason)
    if reason is None and value in _FOREIGN:
        return ev.Finish(_FOREIGN[value], value)
    raw = None if reason else value
    if refused:
        return ev.Finish("refusal", raw)
    return ev.Finish("tool_calls", value) if calls else ev.Finish("stop", raw)


def write_finish(reason: ev.FinishReason, raw: str | None, *, forced: bool = False) -> str:
    """The `finish_reason` of a finish; the inverse of `read_finish`.

    Args:
        raw: sent as it is, unless it is a value of another protocol.
        forced: `tool_choice` names the function; OpenAI ends such a call with `stop`.
    """
    if raw and not is_foreign_finish(raw):
        return raw
    if reason == "refusal" or (forced and reason == "tool_calls"):
        return "stop"
    return reason


def split_content(content: object) -> tuple[str, str]:
    """Content as (reasoning, text): a string, or Mistral's list of parts."""
    if isinstance(content, str):
        return "", content
    if not content:
        return "", ""
    thought, text = [], []
    for part in array(content):
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, dict) and part.get("type") == "thinking":
            inner = part.get("thinking")
            thought.append(inner if isinstance(inner, str) else split_content(inner)[1])
        elif isinstance(part, dict):
            text.append(string(part.get("text")))
    return "".join(thought), "".join(text)


def reasoning_field(message: Fields) -> str:
    """The only field of a message or delta that has its reasoning: `content` for Mistral's list of
    parts; "" if there is none, or several."""
    fields = [name for name in ("reasoning_content", "reasoning") if string(message.get(name))]
    if split_content(message.get("content"))[0]:
        fields.append("content")
    return fields[0] if len(fields) == 1 else ""


def move_reasoning(message: Json, field: str) -> None:
    """Puts the `reasoning_content` of an encoded message or delta into another field."""
    if "reasoning_content" not in message:
        return
    text, content = message.pop("reasoning_content"), message.get("content")
    if field != "content":
        message[field] = text
    elif text:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
        message["content"] = [thinking, *([{"type": "text", "text": content}] if content else [])]
    else:
        message["content"] = content or ""


def is_empty_thinking(content: object) -> bool:
    """Whether content is Mistral's list of thinking parts that hold no text, which closes one."""
    parts = content if isinstance(content, list) else []
    return bool(parts) and all(
        isinstance(part, dict)
        and part.get("type") == "thinking"
        and not part.get("thinking")
        and part.keys() <= {"type", "thinking", "closed"}
        for part in parts
    )


def reasoning_of(delta: Fields) -> str:
    """The reasoning in a delta or message, once: servers such as StepFun and OpenRouter send the
    same text in several of these fields."""
    for key in ("reasoning_content", "reasoning"):
        value = delta.get(key)
        if isinstance(value, str) and value:
            return value
    details = delta.get("reasoning_details")
    if not details:  # every delta comes here
        return ""
    texts = (string(item.get("text")) or string(item.get("summary")) for item in objects(details))
    return "".join(texts)


def entries_of(delta: Fields) -> Iterator[Fields]:
    """The entries of `tool_calls`, or a legacy `function_call` as one of them. llama-cpp-python
    sends the same call in both; it is read once. Entries without id, name and arguments are left
    out: servers add entries with only fields of their own."""
    entries = array(delta.get("tool_calls"))
    calling = [entry for entry in entries if isinstance(entry, dict) and names_call(entry)]
    legacy = delta.get("function_call")
    # Snowflake sends a `function_call` with empty strings in every answer.
    filled = isinstance(legacy, dict) and any(value != "" for value in legacy.values())
    entry = {"index": 0, "function": legacy}
    yield from calling or ([entry] if filled and names_call(entry) else ())


def function_of(entry: Fields) -> tuple[Fields, bool]:
    """The function that an entry of `tool_calls` calls, and whether that is a custom tool, whose
    input is free text. Snowflake sends an empty `custom` beside each function."""
    function, custom = entry.get("function"), entry.get("custom")
    if not function and isinstance(custom, Mapping):
        return custom, True
    return mapping(function), False


def names_call(entry: Fields) -> bool:
    """Whether an entry of `tool_calls` has an id, a name or a fragment of arguments."""
    function, _ = function_of(entry)
    if any(function.get(key) is not None for key in ("arguments", "input")):
        return True
    return any(
        type(value) in (str, int) and value != ""
        for value in (entry.get("id"), function.get("name"))
    )


def cites_of(annotations: object) -> Iterator[ev.Cite]:
    """The `url_citation` items of `annotations`; OpenRouter's `content` is the cited text."""
    for item in array(annotations):
        cited = item.get("url_citation") if isinstance(item, dict) else None
        if isinstance(cited, dict) and isinstance(cited.get("url"), str):
            yield ev.Cite(
                TEXT, cited["url"], string(cited.get("title")), string(cited.get("content"))
            )


def chunk_usage(chunk: Fields) -> ev.Usage | None:
    """The usage in a chunk: in `usage`, or in `x_groq.usage`, where Groq puts it."""
    groq = chunk.get("x_groq")
    return usage_of(chunk.get("usage")) or usage_of(
        groq.get("usage") if isinstance(groq, dict) else 0
    )


def write_usage(usage: ev.Usage) -> Json:
    """The `usage` object with all its details; the inverse of `usage_of`."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached,
            "audio_tokens": 0,
            **cache_write(usage),
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def write_call(id: str, name: str, custom: bool, text: str = "") -> Json:
    """An entry of `tool_calls`, with the arguments of a function or the input of a custom tool."""
    if custom:
        return {"id": id, "type": "custom", "custom": {"name": name, "input": text}}
    return function_call(id, name, text)


def answer_id(reply: Reply) -> str:
    """The `chatcmpl-` id that all chunks and the body of an answer have."""
    return "chatcmpl-" + derive(reply.seed, "chatcmpl", length=29)


def fingerprint(reply: Reply) -> str:
    """The `system_fingerprint`: that of the scenario, or the same for all answers of a model."""
    return reply.fingerprint or "fp_" + derive(reply.model, "fingerprint", length=10, hex=True)


def write_cite(cite: ev.Cite, start: int, end: int) -> Json:
    """An item of `annotations`; `start` and `end` are offsets in the answer's text."""
    citation: Json = {
        "start_index": start,
        "end_index": end,
        "title": cite.title,
        "url": cite.url,
    }
    if cite.cited_text:
        citation["content"] = cite.cited_text
    return {"type": "url_citation", "url_citation": citation}


def write_logprobs(tokens: Iterable[ev.Token]) -> Json:
    """The log probabilities of tokens."""
    written = [
        {**_write_token(token), "top_logprobs": [_write_token(other) for other in token.top]}
        for token in tokens
    ]
    return {"content": written, "refusal": None}


def _write_token(token: ev.Token) -> Json:
    return {
        "token": token.text,
        "logprob": token.logprob,
        "bytes": list(token.text.encode("utf-8", "surrogatepass")),
    }


# Sound: pieces of it and of its transcript in a stream, one object in a body

# https://platform.openai.com/docs/guides/audio and the type `ChatCompletionAudio` of openai-python.
# An answer has one sound, and no media type: the client asked for one (`audio.format`).

_SOUND = "audio/*"
"""The media type of a sound that was read."""

_KEPT = 3600
"""How long the service keeps a sound, in seconds."""


def sound_begin(reply: Reply) -> Json:
    """The fields of a sound that come first: the id, by which a later request refers to it."""
    return {"id": "audio_" + derive(reply.seed, "audio", length=24, hex=True)}


def sound_end(reply: Reply) -> Json:
    """The fields of a sound that come last: when the service forgets it, in seconds since 1970."""
    return {"expires_at": reply.created + _KEPT}


def sound_piece(event: ev.MediaDelta) -> Json:
    """The fields of a piece of the sound, or of its transcript."""
    return {"transcript": event.text} if event.text else {"data": _base64(event.data)}


def write_sound(pieces: list[ev.MediaDelta], reply: Reply) -> Json:
    """The object of a body, in which several sounds are one."""
    return {
        **sound_begin(reply),
        "data": _base64(b"".join(piece.data for piece in pieces)),
        **sound_end(reply),
        "transcript": "".join(piece.text for piece in pieces),
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def read_sound(audio: Fields) -> Iterator[ev.MediaDelta]:
    """The pieces in the object of a delta or a message; data that are not base64 are left out."""
    if text := string(audio.get("transcript")):
        yield ev.MediaDelta(AUDIO, _SOUND, text=text)
    if data := base64_bytes(audio.get("data")):
        yield ev.MediaDelta(AUDIO, _SOUND, data)


def is_known_sound(audio: Fields) -> bool:
    """Whether the object has fields of a sound, so that no chunk with it is unknown."""
    return bool(audio.keys() & {"id", "expires_at"})
