"""Captured exchanges of Chat Completions and Responses, built by hand."""

import json

from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured
from tests.serve.server.recording.odd_upstream import delta, finish, text_events

EVENTS = (("content-type", "text/event-stream"),)
JSON = (("content-type", "application/json"),)
URL = "https://api.odd.test/v1/chat/completions"


def asks(*messages, stream=True, **more):
    return json.dumps(
        {"model": "odd-1", "stream": stream, "messages": list(messages), **more}
    ).encode()


def user(text):
    return {"role": "user", "content": text}


def model(text=None, *calls):
    """An assistant message; `calls` are (id, name, arguments)."""
    tool_calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, name, arguments in calls
    ]
    return {
        "role": "assistant",
        "content": text,
        **({"tool_calls": tool_calls} if tool_calls else {}),
    }


def result(id, content):
    return {"role": "tool", "tool_call_id": id, "content": content}


def timed(chunks, every=1000):
    return tuple(TimedBytes((at + 1) * every, data) for at, data in enumerate(chunks))


def exchange(request, chunks, status=200, headers=EVENTS, cut="", url=URL, source="test"):
    return Captured("POST", url, JSON, request, status, headers, timed(chunks), cut, source=source)


def answer(messages, *deltas, **more):
    """A streamed answer to these messages, with a delta for each string."""
    return exchange(asks(*messages, **more), text_events(*deltas))


def failure(messages, status=429, message="Slow down", headers=(("retry-after", "2"),)):
    body = json.dumps({"error": {"message": message, "type": "requests", "code": None}})
    return exchange(asks(*messages), [body.encode()], status, (*JSON, *headers))


def calling(messages, id, name="look", arguments="{}"):
    """A streamed answer with one tool call."""
    opening = {"index": 0, "id": id, "type": "function"}
    opening["function"] = {"name": name, "arguments": arguments}
    texts = [delta(0, role="assistant", tool_calls=[opening]), finish("tool_calls"), "[DONE]"]
    return exchange(asks(*messages), [f"data: {text}\n\n".encode() for text in texts])


def responding(input, id, text, previous=None, **more):
    """An answer of the Responses API that is not streamed."""
    request = {"model": "odd-1", "input": input, **more}
    if previous:
        request["previous_response_id"] = previous
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"id": f"msg_{id}", "type": "message", "role": "assistant", "status": "completed"}
    body = {
        "id": id,
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "odd-1",
        "output": [{**item, "content": content}],
    }
    url = "https://api.odd.test/v1/responses"
    content = [json.dumps(body).encode()]
    return exchange(json.dumps(request).encode(), content, headers=JSON, url=url)
