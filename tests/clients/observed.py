"""Objects of the `openai` SDK as `Answer`; streams are accumulated by hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from tests.clients.dialects import Json
from tests.clients.oracle import Answer, Seen, read_arguments


def of_completion(completion: ChatCompletion) -> Answer:
    """Reads the first choice of a chat completion."""
    choice = completion.choices[0]
    message = choice.message
    extra = message.model_extra or {}
    logprobs = choice.logprobs.content if choice.logprobs else None
    seen = Seen(
        text=message.content or "",
        refusal=message.refusal or "",
        reasoning=extra.get("reasoning_content") or "",
        calls=tuple(
            (call.id, call.function.name, read_arguments(call.function.arguments))
            for call in message.tool_calls or ()
            if call.type == "function"
        ),
        finish=choice.finish_reason,
        usage=_chat_usage(completion),
        cites=tuple(
            (cite.url_citation.url, cite.url_citation.title) for cite in message.annotations or ()
        ),
        tokens="".join(token.token for token in logprobs or ()),
    )
    return Answer(seen, [message], completion.id)


def _chat_usage(source: ChatCompletion | ChatCompletionChunk) -> tuple[int, int, int, int]:
    usage = source.usage
    assert usage is not None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    output_details, input_details = usage.completion_tokens_details, usage.prompt_tokens_details
    assert output_details is not None
    assert input_details is not None
    return (
        usage.prompt_tokens,
        usage.completion_tokens,
        output_details.reasoning_tokens or 0,
        input_details.cached_tokens or 0,
    )


def of_chunks(chunks: Sequence[ChatCompletionChunk]) -> Answer:
    """Accumulates the first choice of a stream with usage by hand."""
    texts: dict[str, str] = defaultdict(str)
    calls: dict[int, Json] = {}
    cites: list[tuple[str, str]] = []
    finishes = []
    for chunk in chunks:
        for choice in chunk.choices:
            if choice.index != 0:
                continue
            delta = choice.delta
            extra = delta.model_extra or {}
            texts["text"] += delta.content or ""
            texts["refusal"] += delta.refusal or ""
            texts["reasoning"] += extra.get("reasoning_content") or ""
            cites += [_cited(annotation) for annotation in extra.get("annotations") or ()]
            _gather(calls, delta.tool_calls or ())
            if choice.logprobs is not None:
                texts["tokens"] += "".join(t.token for t in choice.logprobs.content or ())
            if choice.finish_reason is not None:
                finishes.append(choice.finish_reason)
    (finish,) = finishes
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].choices == []
    seen = Seen(
        text=texts["text"],
        refusal=texts["refusal"],
        reasoning=texts["reasoning"],
        calls=tuple(
            (call["id"], call["function"]["name"], read_arguments(call["function"]["arguments"]))
            for _, call in sorted(calls.items())
        ),
        finish=finish,
        usage=_chat_usage(chunks[-1]),
        cites=tuple(cites),
        tokens=texts["tokens"],
    )
    tool_calls = {"tool_calls": [call for _, call in sorted(calls.items())]} if calls else {}
    refusal = {"refusal": texts["refusal"]} if texts["refusal"] else {}
    echo = {"role": "assistant", "content": texts["text"] or None, **refusal, **tool_calls}
    return Answer(seen, [echo], chunks[0].id)


def _cited(annotation: Any) -> tuple[str, str]:
    return annotation["url_citation"]["url"], annotation["url_citation"]["title"]


def _gather(calls: dict[int, Json], fragments: Sequence[Any]) -> None:
    for fragment in fragments:
        if fragment.index not in calls:
            calls[fragment.index] = {
                "id": fragment.id,
                "type": "function",
                "function": {"name": fragment.function.name, "arguments": ""},
            }
        calls[fragment.index]["function"]["arguments"] += fragment.function.arguments or ""


def of_response(response: Response) -> Answer:
    """Reads a whole response."""
    texts: dict[str, str] = defaultdict(str)
    calls = []
    cites: list[tuple[str, str]] = []
    for item in response.output:
        match item.type:
            case "message":
                for content in item.content:
                    if content.type == "refusal":
                        texts["refusal"] += content.refusal
                        continue
                    cites += [(cite.url, cite.title) for cite in content.annotations]
                    texts["tokens"] += "".join(t.token for t in content.logprobs or ())
            case "reasoning":
                for part in [*item.summary, *(item.content or ())]:
                    texts["reasoning"] += part.text
            case "function_call":
                calls.append((item.call_id, item.name, read_arguments(item.arguments)))
    seen = Seen(
        text=response.output_text,
        refusal=texts["refusal"],
        reasoning=texts["reasoning"],
        calls=tuple(calls),
        finish=_ending(response),
        usage=_response_usage(response),
        cites=tuple(cites),
        tokens=texts["tokens"],
    )
    return Answer(seen, list(response.output), response.id)


def _ending(response: Response) -> str:
    details = response.incomplete_details
    return (details and details.reason) or response.status or ""


def _response_usage(response: Response) -> tuple[int, int, int, int]:
    usage = response.usage
    assert usage is not None
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.output_tokens_details.reasoning_tokens,
        usage.input_tokens_details.cached_tokens,
    )


_KINDS = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning_summary_text": "reasoning",
    "response.reasoning_text": "reasoning",
    "response.function_call_arguments": "arguments",
}
ENDINGS = ("response.completed", "response.incomplete")


def of_events(events: Sequence[ResponseStreamEvent]) -> Answer:
    """Accumulates the deltas of a Responses stream by hand.

    `done` events, finished items and the last event must have the same content.
    """
    assert [event.sequence_number for event in events] == list(range(len(events)))
    fragments: dict[tuple[str, int, int], str] = defaultdict(str)
    opened: dict[int, Any] = {}
    items: dict[int, Any] = {}
    cites: list[tuple[str, str]] = []
    tokens = ""
    for event in events:
        kind, _, step = event.type.rpartition(".")
        if kind in _KINDS:
            key = (_KINDS[kind], event.output_index, _index(event))
            if step == "delta":
                fragments[key] += event.delta
                tokens += "".join(token.token for token in getattr(event, "logprobs", None) or ())
            else:
                assert fragments[key] == _whole(event)
        elif event.type == "response.output_item.added":
            opened[event.output_index] = event.item
        elif event.type == "response.output_item.done":
            items[event.output_index] = event.item
        elif event.type == "response.output_text.annotation.added":
            assert event.annotation.type == "url_citation"
            cites.append((event.annotation.url, event.annotation.title))
    last = events[-1]
    assert last.type in ENDINGS
    assert last.response.output == [item for _, item in sorted(items.items())]

    def joined(kind: str) -> str:
        return "".join(text for key, text in sorted(fragments.items()) if key[0] == kind)

    calls = tuple(
        (item.call_id, item.name, read_arguments(fragments["arguments", index, 0]))
        for index, item in sorted(opened.items())
        if item.type == "function_call"
    )
    seen = Seen(
        text=joined("text"),
        refusal=joined("refusal"),
        reasoning=joined("reasoning"),
        calls=calls,
        finish=_ending(last.response),
        usage=_response_usage(last.response),
        cites=tuple(cites),
        tokens=tokens,
    )
    assert of_response(last.response).seen == seen
    return Answer(seen, [item for _, item in sorted(items.items())], last.response.id)


def _index(event: Any) -> int:
    for name in ("content_index", "summary_index"):
        if hasattr(event, name):
            index: int = getattr(event, name)
            return index
    return 0


def _whole(event: Any) -> Any:
    for name in ("text", "refusal", "arguments"):
        if hasattr(event, name):
            return getattr(event, name)
    raise AssertionError(f"{event.type} has no value")
