"""Conversations with the official SDKs: their transcripts, event by event.

A `Conversation` begins with a user message, takes tool results from a table, and ends when the
model makes no more calls. An exception of the SDK is part of the transcript.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Self

import anthropic
import httpx
import httpx2
import openai
from google import genai
from google.genai import errors as google_errors
from google.genai import types

from tests.upstreams.raw import TIMEOUT

Json = dict[str, Any]

CITY = {"type": "object", "properties": {"city": {"enum": ["Rome", "Zürich", "Bern"]}}}
TOOLS: dict[str, Json] = {
    "get_weather": {**CITY, "required": ["city"], "additionalProperties": False},
    "get_time": {"type": "object", "properties": {}},
}
RESULTS = {"Rome": "warm", "Zürich": "rain", "Bern": "snow"}

_FAILURES = (
    openai.OpenAIError,
    anthropic.AnthropicError,
    google_errors.APIError,
    httpx.HTTPError,
    httpx2.HTTPError,
)
"""The SDKs' own errors, and the errors of broken connections that two SDKs do not wrap."""
_MAX_REQUESTS = 4


def transcript(
    conversation: Conversation, prompt: str, *, stream: bool, attempts: int = 1
) -> list[Any]:
    """For each request of a conversation the events and the answer that the SDK returned.

    Args:
        conversation: begins again with the prompt.
        attempts: how many failing requests end the conversation.
    """
    conversation.begin(prompt)
    results_of_requests: list[Any] = []
    for _ in range(_MAX_REQUESTS):
        seen: list[Json] = []
        results_of_requests.append(seen)
        try:
            seen.extend(conversation.events(stream=stream))
        except _FAILURES as error:
            seen.append(_failure(error))
            attempts -= 1
            if not attempts:
                break
            continue
        seen.append(conversation.answer)
        if not conversation.go_on():
            break
    return results_of_requests


def _failure(error: Exception) -> Json:
    response = getattr(error, "response", None)
    headers = getattr(response, "headers", {})
    return {
        "raised": type(error).__name__,
        "message": str(error),
        "status": getattr(error, "status_code", getattr(error, "code", None)),
        "retry-after": headers.get("retry-after"),
    }


def _result(name: str, arguments: Json) -> str:
    return "noon" if name == "get_time" else RESULTS[arguments["city"]]


def _dump(model: Any) -> Json:
    # The SDKs' parsed types differ from the declared types of their fields, which would warn.
    dumped: Json = model.model_dump(mode="json", warnings=False)
    return dumped


class Conversation:
    """A conversation over one API.

    Args:
        options: further arguments of each request.

    Attributes:
        answer: the latest answer as a whole, as JSON.
    """

    api: str

    def __init__(self, url: str, **options: Any) -> None:
        self.client = self.connect(url)
        self.options = options
        self.answer: Json = {}

    def connect(self, url: str) -> Any:
        raise NotImplementedError

    def begin(self, prompt: str) -> None:
        """Starts a new history with a user message."""
        self.history: list[Any] = [{"role": "user", "content": prompt}]

    def events(self, *, stream: bool) -> Iterator[Json]:
        """Sends one request; yields the events of a stream, and sets `answer`."""
        raise NotImplementedError

    def gist(self) -> tuple[str, list[tuple[str, Json]]]:
        """The text of the answer, and its calls with their arguments."""
        raise NotImplementedError

    def go_on(self) -> bool:
        """Adds the answer and the results of its calls to the history, if it has any."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()


class _OpenAI(Conversation):
    def connect(self, url: str) -> openai.OpenAI:
        return openai.OpenAI(
            base_url=f"{url}/v1", api_key="sk-test", max_retries=0, timeout=TIMEOUT
        )


class Chat(_OpenAI):
    """Chat Completions with the SDK of OpenAI."""

    api = "chat"

    def events(self, *, stream: bool) -> Iterator[Json]:
        request = {
            "model": "gpt-4o",
            "messages": self.history,
            "tools": [
                {"type": "function", "function": {"name": name, "parameters": schema}}
                for name, schema in TOOLS.items()
            ],
            **self.options,
        }
        if not stream:
            self.answer = _dump(self.client.chat.completions.create(**request))
            return
        usage = {"include_usage": True}
        with self.client.chat.completions.stream(stream_options=usage, **request) as events:
            yield from map(_dump, events)
            # `get_final_completion` raises for the finish reason `length`.
            self.answer = _dump(events.current_completion_snapshot)

    def gist(self) -> tuple[str, list[tuple[str, Json]]]:
        message = self.answer["choices"][0]["message"]
        functions = [call["function"] for call in message["tool_calls"] or ()]
        calls = [(function["name"], json.loads(function["arguments"])) for function in functions]
        return message["content"] or "", calls

    def go_on(self) -> bool:
        message = self.answer["choices"][0]["message"]
        kept = {key: message[key] for key in ("role", "content", "tool_calls") if message[key]}
        self.history.append(kept)
        for call in message["tool_calls"] or ():
            function = call["function"]
            content = _result(function["name"], json.loads(function["arguments"]))
            self.history.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        return bool(message["tool_calls"])


class Responses(_OpenAI):
    """Responses with the SDK of OpenAI, and the history in the request."""

    api = "responses"

    def events(self, *, stream: bool) -> Iterator[Json]:
        request = {
            "model": "gpt-4o",
            "input": self.history,
            "tools": [
                {"type": "function", "strict": False, "name": name, "parameters": schema}
                for name, schema in TOOLS.items()
            ],
            **self.options,
        }
        if not stream:
            self.answer = _dump(self.client.responses.create(**request))
            return
        # `responses.stream` requires numbered events, which not every service sends.
        with self.client.responses.create(stream=True, **request) as events:
            for event in events:
                yield _dump(event)
                if event.type in ("response.completed", "response.incomplete"):
                    self.answer = _dump(event.response)

    def gist(self) -> tuple[str, list[tuple[str, Json]]]:
        output = self.answer["output"]
        contents = [part for item in output for part in item.get("content") or ()]
        calls = [(i["name"], json.loads(i["arguments"])) for i in output if "arguments" in i]
        return "".join(part["text"] for part in contents), calls

    def go_on(self) -> bool:
        output = self.answer["output"]
        calls = [item for item in output if item["type"] == "function_call"]
        self.history += [
            {key: value for key, value in item.items() if value is not None} for item in output
        ]
        self.history += [
            {
                "type": "function_call_output",
                "call_id": call["call_id"],
                "output": _result(call["name"], json.loads(call["arguments"])),
            }
            for call in calls
        ]
        return bool(calls)


class Messages(Conversation):
    """Messages with the SDK of Anthropic."""

    api = "anthropic"

    def connect(self, url: str) -> anthropic.Anthropic:
        return anthropic.Anthropic(base_url=url, api_key="sk-test", max_retries=0, timeout=TIMEOUT)

    def events(self, *, stream: bool) -> Iterator[Json]:
        request = {
            "model": "claude-mock",
            "max_tokens": 100,
            "messages": self.history,
            "tools": [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()],
            **self.options,
        }
        if not stream:
            self.answer = _dump(self.client.messages.create(**request))
            return
        with self.client.messages.stream(**request) as events:
            yield from map(_dump, events)
            self.answer = _dump(events.get_final_message())

    def gist(self) -> tuple[str, list[tuple[str, Json]]]:
        blocks = self.answer["content"]
        calls = [(b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"]
        return "".join(b["text"] for b in blocks if b["type"] == "text"), calls

    def go_on(self) -> bool:
        blocks = self.answer["content"]
        calls = [block for block in blocks if block["type"] == "tool_use"]
        content = [{k: v for k, v in block.items() if v is not None} for block in blocks]
        self.history.append({"role": "assistant", "content": content})
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call["id"],
                "content": _result(call["name"], call["input"]),
            }
            for call in calls
        ]
        if results:
            self.history.append({"role": "user", "content": results})
        return bool(calls)


class Gemini(Conversation):
    """Gemini with the SDK of Google, whose events are partial answers."""

    api = "gemini"

    def connect(self, url: str) -> genai.Client:
        return genai.Client(api_key="test", http_options={"base_url": url, "api_version": "v1beta"})

    def begin(self, prompt: str) -> None:
        self.history = [types.UserContent(prompt)]

    def events(self, *, stream: bool) -> Iterator[Json]:
        declarations = [
            types.FunctionDeclaration(name=name, parameters_json_schema=schema)
            for name, schema in TOOLS.items()
        ]
        config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=declarations)], **self.options
        )
        request = {"model": "gemini-2.5-flash", "contents": self.history, "config": config}
        models = self.client.models
        self._parts: list[types.Part] = []
        answers = (
            models.generate_content_stream(**request)
            if stream
            else iter([models.generate_content(**request)])
        )
        for answer in answers:
            self._parts += answer.candidates[0].content.parts or []
            yield _dump(answer)
        self.answer = {"parts": [_dump(part) for part in self._parts]}

    def gist(self) -> tuple[str, list[tuple[str, Json]]]:
        calls = [part.function_call for part in self._parts if part.function_call]
        texts = [part.text or "" for part in self._parts if not part.thought]
        return "".join(texts), [(call.name, call.args) for call in calls]

    def go_on(self) -> bool:
        calls = [part.function_call for part in self._parts if part.function_call]
        self.history.append(types.ModelContent(self._parts))
        results = [
            types.Part.from_function_response(
                name=call.name, response={"result": _result(call.name, call.args)}
            )
            for call in calls
        ]
        if results:
            self.history.append(types.UserContent(results))
        return bool(calls)


CONVERSATIONS: dict[str, type[Conversation]] = {
    one.api: one for one in (Chat, Responses, Messages, Gemini)
}
"""By API."""
