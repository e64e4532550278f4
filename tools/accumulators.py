"""Runs the official client libraries on a stream, and reads what each one accumulates.

A library is imported when it is first used, so that the others work without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mockllm.core.errors import UsageError

BREAKS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""How a client crashes on JSON shapes that it does not know. The errors that it reports are of
other classes."""

_MESSAGES = [{"role": "user", "content": "?"}]


@dataclass(frozen=True, slots=True)
class ClientOutcome:
    """What a client ends up with after one answer.

    Args:
        calls: (id, name, arguments as JSON text, or as a value if the client parses them).
        finish: the value on the wire; None if there was none.
        usage: input (cached included), output (reasoning included), reasoning and cached
            tokens; None for a count that the client does not have, or for all of them.
        error: the message of an error in the stream.
    """

    text: str = ""
    calls: tuple[tuple[str, str, object], ...] = ()
    finish: str | None = None
    usage: tuple[int | None, ...] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One way to call a client: its name, and a function from a base URL to the outcome."""

    name: str
    run: Callable[[str], ClientOutcome]


def _client(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(f"{package} is not installed: pip install {package}") from error


def _openai(ask: Callable[[Any, Any], ClientOutcome]) -> Callable[[str], ClientOutcome]:
    def run(url: str) -> ClientOutcome:
        openai = _client("openai", "openai")
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            return ask(openai, client)

    return run


def _anthropic(url: str) -> ClientOutcome:
    anthropic = _client("anthropic", "anthropic")
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
        return _messages(anthropic, client)


def _gemini(url: str) -> ClientOutcome:
    genai = _client("google.genai", "google-genai")
    options = genai.types.HttpOptions(base_url=url)
    with closing(genai.Client(api_key="none", http_options=options, vertexai=False)) as client:
        return _contents(genai, client)


# OpenAI Chat Completions


def _chat(openai: Any, client: Any) -> ClientOutcome:
    error, stream = None, None
    try:
        with client.chat.completions.stream(model="m", messages=_MESSAGES) as stream:
            for _ in stream:
                pass
    except openai.APIError as raised:
        error = str(raised)
    try:
        snapshot = stream.current_completion_snapshot if stream else None
    except AssertionError:  # no chunk came
        snapshot = None
    if snapshot is None or not snapshot.choices:
        return ClientOutcome(error=error, usage=_chat_usage(snapshot and snapshot.usage))
    choice = snapshot.choices[0]
    message = choice.message
    if message.content is not None and not isinstance(message.content, str):
        raise TypeError(f"content is a {type(message.content).__name__}, not a string")
    calls = [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or []]
    usage = _chat_usage(snapshot.usage)
    return ClientOutcome(
        message.content or "", tuple(calls), choice.finish_reason or None, usage, error
    )


def _chat_chunks(openai: Any, client: Any) -> ClientOutcome:
    text, finish, usage, error = "", None, None, None
    calls: dict[int, list[str]] = {}
    try:
        for chunk in client.chat.completions.create(model="m", messages=_MESSAGES, stream=True):
            usage = chunk.usage or usage
            for choice in [c for c in chunk.choices or [] if not c.index]:
                finish = finish or choice.finish_reason
                text += _text(choice.delta.content)
                for entry in choice.delta.tool_calls or []:
                    _add(calls.setdefault(entry.index, ["", "", ""]), entry)
    except openai.APIError as raised:
        error = str(raised)
    complete = tuple((id, name, arguments) for _, (id, name, arguments) in sorted(calls.items()))
    return ClientOutcome(text, complete, finish, _chat_usage(usage), error)


def _text(content: Any) -> str:
    """The text of a content. Mistral sends lists of parts, which openai passes on unchanged."""
    if not isinstance(content, list):
        return str(content or "")
    return "".join(part.get("text") or "" for part in content)


def _add(call: list[str], entry: Any) -> None:
    call[0] = call[0] or entry.id or ""
    call[1] = call[1] or entry.function.name or ""
    call[2] += entry.function.arguments or ""


def _chat_usage(usage: Any) -> tuple[int | None, ...] | None:
    if usage is None:
        return None
    completion, prompt = usage.completion_tokens_details, usage.prompt_tokens_details
    reasoning = completion.reasoning_tokens if completion else None
    cached = prompt.cached_tokens if prompt else None
    return usage.prompt_tokens, usage.completion_tokens, reasoning, cached


# OpenAI Responses


def _responses(openai: Any, client: Any) -> ClientOutcome:
    try:
        with client.responses.stream(model="m", input="?") as stream:
            return _response(stream)
    except openai.APIError as raised:
        return ClientOutcome(error=str(raised))


def _responses_events(openai: Any, client: Any) -> ClientOutcome:
    try:
        with client.responses.create(model="m", input="?", stream=True) as stream:
            return _response(stream)
    except openai.APIError as raised:
        return ClientOutcome(error=str(raised))


def _response(events: Iterable[Any]) -> ClientOutcome:
    """The outcome in the response at the end of a stream."""
    response = None
    for event in events:
        if event.type in ("response.completed", "response.incomplete", "response.failed"):
            response = event.response
    if response is None:
        raise ValueError("the stream has no final response")
    calls = [(c.call_id, c.name, c.arguments) for c in response.output if c.type == _CALL]
    details = response.incomplete_details
    usage = response.usage
    return ClientOutcome(
        response.output_text,
        tuple(calls),
        details.reason if details else response.status,
        usage
        and (
            usage.input_tokens,
            usage.output_tokens,
            usage.output_tokens_details and usage.output_tokens_details.reasoning_tokens,
            usage.input_tokens_details and usage.input_tokens_details.cached_tokens,
        ),
        response.error.message if response.error else None,
    )


_CALL = "function_call"


# Anthropic Messages


def _messages(anthropic: Any, client: Any) -> ClientOutcome:
    error, stream = None, None
    try:
        with client.messages.stream(model="m", max_tokens=1, messages=_MESSAGES) as stream:
            for _ in stream:
                pass
    except anthropic.APIError as raised:
        error = str(raised)
    try:
        message = stream.current_message_snapshot if stream else None
    except AssertionError:  # no event came
        message = None
    if message is None:
        return ClientOutcome(error=error)
    usage = message.usage
    cached = usage.cache_read_input_tokens or 0
    input_tokens = usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0)
    details = usage.output_tokens_details
    return ClientOutcome(
        "".join(block.text for block in message.content if block.type == "text"),
        tuple((b.id, b.name, b.input) for b in message.content if b.type == "tool_use"),
        message.stop_reason,
        (input_tokens, usage.output_tokens, details and details.thinking_tokens, cached),
        error,
    )


# Google Gemini


def _contents(genai: Any, client: Any) -> ClientOutcome:
    text, finish, usage, error = "", None, None, None
    calls: list[tuple[str, str, object]] = []
    try:
        for chunk in client.models.generate_content_stream(model="m", contents="?"):
            usage = chunk.usage_metadata or usage
            for candidate in (chunk.candidates or [])[:1]:
                finish = candidate.finish_reason or finish
                for part in (candidate.content and candidate.content.parts) or []:
                    text += (not part.thought and part.text) or ""
                    if part.function_call is not None:
                        called = part.function_call
                        calls.append((called.id or "", called.name, called.args or {}))
    except genai.errors.APIError as raised:
        error = str(raised)
    return ClientOutcome(text, tuple(calls), finish and finish.value, _gemini_usage(usage), error)


def _gemini_usage(usage: Any) -> tuple[int | None, ...] | None:
    if usage is None:
        return None
    thoughts = usage.thoughts_token_count or 0
    input_tokens = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
    output_tokens = (usage.candidates_token_count or 0) + thoughts
    return input_tokens, output_tokens, thoughts, usage.cached_content_token_count or 0


CLIENT_CALLS: dict[str, tuple[ClientCall, ...]] = {
    "chat": (
        ClientCall("openai chat.completions.stream()", _openai(_chat)),
        ClientCall(
            "openai chat.completions.create(stream=True), chunks added up", _openai(_chat_chunks)
        ),
    ),
    "responses": (
        ClientCall("openai responses.stream()", _openai(_responses)),
        ClientCall(
            "openai responses.create(stream=True), final response", _openai(_responses_events)
        ),
    ),
    "anthropic": (ClientCall("anthropic messages.stream()", _anthropic),),
    "gemini": (ClientCall("google-genai generate_content_stream(), chunks added up", _gemini),),
}
"""The ways to call the official client of each API, the client's own helper first."""
