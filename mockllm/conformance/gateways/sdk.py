"""The reading of an answer by the official SDK of an API: a second judge, in a process of its own.

`python -m mockllm.conformance.gateways.sdk` gets an answer as JSON on its standard input, serves it
on loopback to the SDK that is installed, and prints what a user of the SDK gets, as one line.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from typing import Any

from mockllm.conformance.gateways.answer_rules import Observed

_LIMIT = 60.0
"""Seconds; some SDKs import for ten."""


def sdk_line(seen: Observed) -> str:
    """The reading of an answer by the SDK, as a line; why it is not known, in the same form."""
    reply = seen.reading.reply
    question = {
        "api": seen.case.pair.down,
        "body": seen.body,
        "stream": seen.case.request.stream,
        "status": reply.status,
        "headers": reply.headers,
        "data": base64.b64encode(reply.body).decode(),
        "whole": reply.transfer == "whole",
    }
    try:
        done = subprocess.run(  # noqa: S603 - this module
            [sys.executable, "-m", __name__],
            input=json.dumps(question).encode(),
            capture_output=True,
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the SDK does not end within {_LIMIT:g} s"
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if done.returncode or not lines:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"the SDK cannot be run: {''.join(last)}"
    return lines[-1]


# In the process of its own


def _chat(url: str, body: dict[str, Any], *, stream: bool) -> str:
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    create: Any = client.chat.completions.create
    if not stream:
        choice = create(**body).choices[0]
        return _chat_line([choice.message], choice.finish_reason)
    choices = [choice for chunk in create(**body) for choice in chunk.choices[:1]]
    finish = [choice.finish_reason for choice in choices if choice.finish_reason]
    return _chat_line([choice.delta for choice in choices], *finish[-1:])


def _chat_line(messages: list[Any], finish: str | None = None) -> str:
    """A line for messages or deltas; fragments of a call are joined by its index, as SDKs do."""
    calls: dict[int, list[str]] = {}
    for message in messages:
        for number, call in enumerate(message.tool_calls or ()):
            joined = calls.setdefault(getattr(call, "index", number), ["", ""])
            joined[0] += call.function.name or ""
            joined[1] += call.function.arguments or ""
    text = "".join(message.content or "" for message in messages)
    return _line(text, [f"{name} {arguments}" for name, arguments in calls.values()], finish)


def _responses(url: str, body: dict[str, Any], *, stream: bool) -> str:
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    answer: Any = client.responses.create(**body)
    if stream:
        ends = [event for event in answer if event.type in _ENDS]
        if not ends or not hasattr(ends[-1], "response"):
            return f"gets {ends[-1] if ends else 'no end'}"
        answer = ends[-1].response
    calls = [item for item in answer.output if item.type == "function_call"]
    return _line(
        answer.output_text, [f"{call.name} {call.arguments}" for call in calls], answer.status
    )


_ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


def _anthropic(url: str, body: dict[str, Any], *, stream: bool) -> str:
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
    given: Any = {name: value for name, value in body.items() if name != "stream"}
    if stream:
        with client.messages.stream(**given) as events:
            message: Any = events.get_final_message()
    else:
        message = client.messages.create(**given)
    calls = [part for part in message.content if part.type == "tool_use"]
    text = "".join(part.text for part in message.content if part.type == "text")
    return _line(text, [f"{c.name} {json.dumps(c.input)}" for c in calls], message.stop_reason)


def _gemini(url: str, body: dict[str, Any], *, stream: bool) -> str:
    from google import genai

    client = genai.Client(api_key="k", http_options={"base_url": url})
    given: Any = {"model": "m", "contents": "hello"}
    if stream:
        answers = list(client.models.generate_content_stream(**given))
    else:
        answers = [client.models.generate_content(**given)]
    parts = [part for answer in answers for part in (answer.parts or ())]
    finish = [str(c.finish_reason) for a in answers for c in a.candidates or () if c.finish_reason]
    calls = [part.function_call for part in parts if part.function_call]
    text = "".join(part.text for part in parts if part.text)
    return _line(text, [f"{call.name} {json.dumps(call.args)}" for call in calls], *finish[-1:])


def _ollama(url: str, body: dict[str, Any], *, stream: bool) -> str:
    import ollama

    chat: Any = ollama.Client(host=url).chat(**body)
    answers = list(chat) if stream else [chat]
    messages = [answer.message for answer in answers]
    calls = [call.function for message in messages for call in message.tool_calls or ()]
    text = "".join(message.content or "" for message in messages)
    shown = [f"{call.name} {json.dumps(dict(call.arguments))}" for call in calls]
    return _line(text, shown, answers[-1].done_reason if answers else None)


def _bedrock(url: str, body: dict[str, Any], *, stream: bool) -> str:
    boto3, config = import_module("boto3"), import_module("botocore.config")
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="k",
        aws_secret_access_key="k",  # noqa: S106 - a dummy
        config=config.Config(retries={"max_attempts": 0}),
    )
    if stream:
        return f"gets {list(client.converse_stream(modelId='m', **body)['stream'])}"
    answer = client.converse(modelId="m", **body)
    del answer["ResponseMetadata"]
    return f"gets {answer}"


_SDKS: Mapping[str, Callable[..., str]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
    "bedrock": _bedrock,
}


def _line(text: str, calls: list[str], finish: str | None = None) -> str:
    """The result for a user, in words."""
    shown = [f"the text {text!r}"] if text else []
    shown += [f"the calls {'; '.join(calls)}"] if calls else []
    return f"gets {', '.join(shown) or 'nothing'}, finish {finish}"


def _server(question: Mapping[str, Any]) -> HTTPServer:
    """A server that gives one answer to every request."""
    data = base64.b64decode(question["data"])

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(question["status"] or 502)
            for name, value in question["headers"]:
                if name not in ("content-length", "transfer-encoding", "connection", "date"):
                    self.send_header(name, value)
            # An answer that broke off is shorter than it announces.
            missing = 0 if question["whole"] else 1
            self.send_header("content-length", str(len(data) + missing))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    return HTTPServer(("127.0.0.1", 0), Answering)


def main() -> None:
    """Reads an answer, and prints what the SDK gets of it."""
    question = json.load(sys.stdin)
    server = _server(question)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    read = _SDKS.get(question["api"])
    if read is None:
        print(f"there is no SDK for {question['api']} here")
        return
    try:
        line = read(url, question["body"], stream=question["stream"])
    except ImportError as error:
        line = f"the SDK is not installed: {error}"
    except Exception as error:  # noqa: BLE001 - what the SDK raises is what its user gets
        line = f"raises {type(error).__name__}: {error}"
    print(" ".join(f"the official SDK {line}".split()))


if __name__ == "__main__":
    main()
