"""Plays one case to a gateway: a server and a client of sockets, nothing else.

Start the gateway with http://127.0.0.1:LISTEN as its upstream, then run:

    python gateway_raw.py --up chat --down anthropic --case cut-call --listen 9000 \\
        --gateway http://127.0.0.1:4000 --model MODEL [--header NAME:VALUE] [--plain]

It prints what the gateway asked the server, what the server answered, and what the client got.
Without `--gateway` there is none between the two: the control run.
`--case all` plays every case. The server writes an answer in one write unless `--writes` says
`events` (one write each) or `bytes`.
"""

import argparse
import http.client
import json
import re
import socket
import threading
import time
from urllib.parse import urlsplit

SEPARATOR = "\u2028"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BAD = "messages.0: too long"

# Answers: ("text", TEXT), ("call", ID, NAME, FRAGMENTS of the arguments), ("end", FINISH),
# ("error", MESSAGE); what follows the last entry is the end of the connection, in order or not.
TWO_CALLS = [
    ("call", "call_A", "get_weather", ['{"path":', '"/a"}']),
    ("call", "call_B", "get_time", ['{"path":', '"/b"}']),
    ("end", "calls"),
]
CASES = {
    "text": [("text", "Hello"), ("text", " there."), ("end", "stop")],
    "call": [("call", "call_A", "delete_files", ['{"path":', '"/data/a"}']), ("end", "calls")],
    "two-calls": TWO_CALLS,
    "no-arguments": [("call", "call_A", "get_time", []), ("end", "calls")],
    "length-in-call": [("call", "call_A", "delete_files", ['{"path":"/da']), ("end", "length")],
    "u2028": [("text", f"one{SEPARATOR}two"), ("text", " three"), ("end", "stop")],
    "crlf": [("text", "Hello"), ("text", " there."), ("end", "stop")],
    "comment": [("text", "Hello"), ("text", " there."), ("end", "stop")],
    "error-event": [("text", "Hello"), ("error", "Overloaded")],
    "leave": [("text", f"{number} ") for number in range(30)],
    "cut-text": [("text", "Hello"), ("cut",)],
    "cut-call": [("call", "call_A", "delete_files", ['{"path":"/data/a']), ("cut",)],
    "ended-text": [("text", "Hello")],
    "ended-call": [("call", "call_A", "delete_files", ['{"path":"/data/a'])],
    "status-400": 400,
    "status-429": 429,
    "status-503": 503,
    "result": [("text", "Hello"), ("end", "stop")],
    "failed-result": [("text", "Hello"), ("end", "stop")],
    "picture": [("text", "Hello"), ("end", "stop")],
    "system": [("text", "Hello"), ("end", "stop")],
    "choose-tool": [("call", "call_A", "delete_files", ["{}"]), ("end", "calls")],
    "choose-any": [("call", "call_A", "delete_files", ["{}"]), ("end", "calls")],
    "choose-none": [("text", "Hello"), ("end", "stop")],
    "no-parallel": [("text", "Hello"), ("end", "stop")],
}

STREAMED = (
    "leave",
    "length-in-call",
    "crlf",
    "comment",
    "error-event",
    "cut-text",
    "cut-call",
    "ended-text",
    "ended-call",
)
"""What only a stream can have."""


# What a service of each API streams: lists of (event name or None, JSON).


def chat_events(answer):
    calls = 0

    def chunk(delta, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return None, {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }

    yield chunk({"role": "assistant", "content": ""})
    for kind, *rest in answer:
        if kind == "text":
            yield chunk({"content": rest[0]})
        elif kind == "call":
            head = {
                "index": calls,
                "id": rest[0],
                "type": "function",
                "function": {"name": rest[1], "arguments": ""},
            }
            yield chunk({"tool_calls": [head]})
            for part in rest[2]:
                yield chunk({"tool_calls": [{"index": calls, "function": {"arguments": part}}]})
            calls += 1
        elif kind == "error":
            yield None, {"error": {"message": rest[0], "type": "server_error", "code": None}}
        elif kind == "end":
            yield chunk({}, {"calls": "tool_calls"}.get(rest[0], rest[0]))
            usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
            yield None, {**chunk({})[1], "choices": [], "usage": usage}
            yield None, "[DONE]"


def anthropic_events(answer):
    index = -1
    open_kind = None

    def event(kind, **fields):
        return kind, {"type": kind, **fields}

    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 1},
    }
    yield event("message_start", message=message)
    for kind, *rest in answer:
        if (
            open_kind
            and (kind in ("call", "end") or kind != open_kind)
            and kind not in ("cut", "error")
        ):
            yield event("content_block_stop", index=index)
            open_kind = None
        if kind == "text":
            if open_kind is None:
                index, open_kind = index + 1, kind
                yield event(
                    "content_block_start", index=index, content_block={"type": "text", "text": ""}
                )
            yield event(
                "content_block_delta", index=index, delta={"type": "text_delta", "text": rest[0]}
            )
        elif kind == "call":
            index, open_kind = index + 1, kind
            block = {"type": "tool_use", "id": rest[0], "name": rest[1], "input": {}}
            yield event("content_block_start", index=index, content_block=block)
            for part in rest[2]:
                delta = {"type": "input_json_delta", "partial_json": part}
                yield event("content_block_delta", index=index, delta=delta)
        elif kind == "error":
            yield event("error", error={"type": "overloaded_error", "message": rest[0]})
        elif kind == "end":
            reason = {"stop": "end_turn", "calls": "tool_use", "length": "max_tokens"}[rest[0]]
            yield event(
                "message_delta",
                delta={"stop_reason": reason, "stop_sequence": None},
                usage={"output_tokens": 7},
            )
            yield event("message_stop")


def responses_events(answer):
    number = -1
    items = []
    text = None

    def event(kind, **fields):
        nonlocal number
        number += 1
        return kind, {"type": kind, "sequence_number": number, **fields}

    def response(status, usage=None):
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": status,
            "model": "m",
            "output": list(items),
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": usage,
        }

    def close_text():
        nonlocal text
        where = {"item_id": "msg_1", "output_index": len(items), "content_index": 0}
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {
            "id": "msg_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }
        yield event("response.output_text.done", **where, text=text, logprobs=[])
        yield event("response.content_part.done", **where, part=part)
        yield event("response.output_item.done", output_index=len(items), item=item)
        items.append(item)
        text = None

    yield event("response.created", response=response("in_progress"))
    yield event("response.in_progress", response=response("in_progress"))
    for kind, *rest in answer:
        if text is not None and kind in ("call", "end"):
            yield from close_text()
        where = {"item_id": "msg_1", "output_index": len(items), "content_index": 0}
        if kind == "text":
            if text is None:
                text = ""
                item = {
                    "id": "msg_1",
                    "type": "message",
                    "status": "in_progress",
                    "role": "assistant",
                    "content": [],
                }
                yield event("response.output_item.added", output_index=len(items), item=item)
                part = {"type": "output_text", "text": "", "annotations": []}
                yield event("response.content_part.added", **where, part=part)
            text += rest[0]
            yield event("response.output_text.delta", **where, delta=rest[0], logprobs=[])
        elif kind == "call":
            item = {
                "id": f"fc_{rest[0]}",
                "type": "function_call",
                "status": "in_progress",
                "call_id": rest[0],
                "name": rest[1],
                "arguments": "",
            }
            place = {"item_id": item["id"], "output_index": len(items)}
            yield event("response.output_item.added", output_index=len(items), item=item)
            for part in rest[2]:
                yield event("response.function_call_arguments.delta", **place, delta=part)
            if ("cut",) in answer or ("end", "calls") not in answer:
                continue
            whole = "".join(rest[2]) or "{}"
            yield event(
                "response.function_call_arguments.done", **place, name=rest[1], arguments=whole
            )
            item = {**item, "status": "completed", "arguments": whole}
            yield event("response.output_item.done", output_index=len(items), item=item)
            items.append(item)
        elif kind == "error":
            failed = {**response("failed"), "error": {"code": "server_error", "message": rest[0]}}
            yield event("response.failed", response=failed)
        elif kind == "end":
            usage = {
                "input_tokens": 11,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 7,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 18,
            }
            if rest[0] == "length":
                details = {"incomplete_details": {"reason": "max_output_tokens"}}
                yield event(
                    "response.incomplete", response={**response("incomplete", usage), **details}
                )
            else:
                yield event("response.completed", response=response("completed", usage))


def gemini_events(answer):
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}

    def chunk(parts, **more):
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0, **more}
        return None, {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": "m",
            "responseId": "r1",
        }

    for kind, *rest in answer:
        if kind == "text":
            yield chunk([{"text": rest[0]}])
        elif kind == "call" and ("end", "calls") in answer:
            arguments = json.loads("".join(rest[2]) or "{}")
            yield chunk([{"functionCall": {"name": rest[1], "args": arguments}}])
        elif kind == "error":
            yield None, {"error": {"code": 503, "message": rest[0], "status": "UNAVAILABLE"}}
        elif kind == "end":
            reason = {"length": "MAX_TOKENS"}.get(rest[0], "STOP")
            yield chunk([{"text": ""}], finishReason=reason)


# The same as one JSON body.


def calls_of(answer):
    return [(rest[0], rest[1], "".join(rest[2])) for kind, *rest in answer if kind == "call"]


def text_of(answer):
    return "".join(rest[0] for kind, *rest in answer if kind == "text")


def chat_body(answer):
    message = {"role": "assistant", "content": text_of(answer) or None}
    calls = [
        {"id": i, "type": "function", "function": {"name": n, "arguments": a}}
        for i, n, a in calls_of(answer)
    ]
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def anthropic_body(answer):
    content = [{"type": "text", "text": text_of(answer)}] if text_of(answer) else []
    content += [
        {"type": "tool_use", "id": i, "name": n, "input": json.loads(a or "{}")}
        for i, n, a in calls_of(answer)
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "tool_use" if calls_of(answer) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def responses_body(answer):
    return list(responses_events(answer))[-1][1]["response"]


def gemini_body(answer):
    parts = [{"text": text_of(answer)}] if text_of(answer) else []
    parts += [
        {"functionCall": {"name": n, "args": json.loads(a or "{}")}} for _, n, a in calls_of(answer)
    ]
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": "m",
        "responseId": "r1",
    }


EVENTS = {
    "chat": chat_events,
    "responses": responses_events,
    "anthropic": anthropic_events,
    "gemini": gemini_events,
}
BODIES = {
    "chat": chat_body,
    "responses": responses_body,
    "anthropic": anthropic_body,
    "gemini": gemini_body,
}


def error_body(api, status):
    kind = {400: "invalid_request_error", 429: "rate_limit_error", 503: "overloaded_error"}[status]
    return {
        "anthropic": {"type": "error", "error": {"type": kind, "message": BAD}},
        "gemini": {"error": {"code": status, "message": BAD, "status": "INVALID_ARGUMENT"}},
    }.get(api, {"error": {"message": BAD, "type": kind, "param": None, "code": None}})


# The server.


def frames(api, case):
    for name, data in EVENTS[api](CASES[case]):
        if case == "comment":
            yield b": keep-alive\n\n"
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        frame = (f"event: {name}\n" if name else "") + f"data: {text}\n\n"
        yield frame.replace("\n", "\r\n").encode() if case == "crlf" else frame.encode()


def elements(case):
    """Gemini without `alt=sse`: one JSON array, in pieces."""
    documents = [json.dumps(data, ensure_ascii=False) for _, data in gemini_events(CASES[case])]
    for number, document in enumerate(documents):
        yield (("," if number else "[") + ("\r\n" if number else "") + document + "\n").encode()
    if ("cut",) not in CASES[case]:
        yield b"]"


def read_request(connection):
    received = b""
    while b"\r\n\r\n" not in received:
        more = connection.recv(65536)
        if not more:
            return None
        received += more
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    if length:
        while len(body) < int(length[1]):
            body += connection.recv(65536)
    elif re.search(rb"transfer-encoding: *chunked", head, re.IGNORECASE):
        while not body.endswith(b"0\r\n\r\n"):
            body += connection.recv(65536)
        body = b"".join(
            re.findall(rb"[0-9a-fA-F]+\r\n(.*?)\r\n(?=[0-9a-fA-F]+\r\n)", body, re.DOTALL)
        )
    return head.split(b"\r\n")[0].decode(), body


def answer_request(connection, request, options, case, say):
    line, body = request
    say(f"upstream got: {line}\n    {body.decode(errors='replace')}")
    if line.startswith("GET") or not body:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        return
    plan = CASES[case]
    streamed = re.search(rb'"stream": ?true', body) or "streamGenerateContent" in line
    if isinstance(plan, int) or not streamed:
        status = plan if isinstance(plan, int) else 200
        data = json.dumps(
            error_body(options.up, status) if status != 200 else BODIES[options.up](plan)
        )
        extra = "retry-after: 7\r\n" if status in (429, 503) else ""
        head = (
            f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{extra}connection: close\r\n"
        )
        say(f"upstream sent: {status} {data}")
        connection.sendall(f"{head}content-length: {len(data.encode())}\r\n\r\n{data}".encode())
        return
    say("upstream sent:")
    array = "streamGenerateContent" in line and "alt=sse" not in line
    parts = list(elements(case) if array else frames(options.up, case))
    kind = "application/json" if array else "text/event-stream"
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n"
    connection.sendall(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
    for frame in parts:
        say("    " + frame.decode().rstrip().replace("\n", "\n    ").replace("\r", ""))
    whole = b"".join(parts)
    if options.writes == "once":
        parts = [whole]
    elif options.writes == "bytes":
        parts = [whole[place : place + 1] for place in range(len(whole))]
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    began = time.monotonic()
    if case == "leave":
        parts = list(frames(options.up, case))
    for part in filter(None, parts):
        try:
            connection.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        except OSError:
            say(f"    (the gateway has left after {time.monotonic() - began:.1f} s)")
            return
        time.sleep(
            {"bytes": 0, "events": 0.05, "once": 0}[options.writes] + 0.1 * (case == "leave")
        )
    span = time.monotonic() - began
    time.sleep(0.3)  # What was sent is read before the end is seen.
    if ("cut",) in plan:
        say("    (the connection is closed inside of the body)")
    else:
        say(f"    (the body ends in order; sent in {span:.1f} s)")
        connection.sendall(b"0\r\n\r\n")


def serve(listener, options, case, asked, said):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return

        def one(connection=connection):
            with connection:
                request = read_request(connection)
                if request:
                    asked.append(request)
                    answer_request(connection, request, options, case, said.append)

        threading.Thread(target=one, daemon=True).start()


# The client: what it asks in each API.


def chat_request(case, model, stream):
    messages = [{"role": "user", "content": "Clean up."}]
    if case == "system":
        messages.insert(0, {"role": "system", "content": "Be brief."})
    if case == "picture":
        url = {"url": f"data:image/png;base64,{PICTURE}"}
        messages[0]["content"] = [
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": url},
        ]
    if case in ("result", "failed-result"):
        call = {
            "id": "call_A",
            "type": "function",
            "function": {"name": "delete_files", "arguments": '{"path":"/x"}'},
        }
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_A", "content": "gone"},
        ]
    body = {
        "model": model,
        "messages": messages,
        "stream": stream,
        "max_tokens": 99,
        "tools": [
            {"type": "function", "function": {"name": n, "description": "d", "parameters": SCHEMA}}
            for n in ("delete_files", "get_time")
        ],
    }
    choice = {
        "choose-tool": {"type": "function", "function": {"name": "delete_files"}},
        "choose-any": "required",
        "choose-none": "none",
    }.get(case)
    if choice:
        body["tool_choice"] = choice
    if case == "no-parallel":
        body["parallel_tool_calls"] = False
    if stream:
        body["stream_options"] = {"include_usage": True}
    return "/v1/chat/completions", body


def responses_request(case, model, stream):
    items = [{"role": "user", "content": [{"type": "input_text", "text": "Clean up."}]}]
    if case == "picture":
        items[0]["content"].append(
            {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}
        )
    if case in ("result", "failed-result"):
        items += [
            {
                "type": "function_call",
                "call_id": "call_A",
                "name": "delete_files",
                "arguments": '{"path":"/x"}',
            },
            {"type": "function_call_output", "call_id": "call_A", "output": "gone"},
        ]
    body = {
        "model": model,
        "input": items,
        "stream": stream,
        "max_output_tokens": 99,
        "tools": [
            {
                "type": "function",
                "name": n,
                "description": "d",
                "parameters": SCHEMA,
                "strict": False,
            }
            for n in ("delete_files", "get_time")
        ],
    }
    if case == "system":
        body["instructions"] = "Be brief."
    choice = {
        "choose-tool": {"type": "function", "name": "delete_files"},
        "choose-any": "required",
        "choose-none": "none",
    }.get(case)
    if choice:
        body["tool_choice"] = choice
    if case == "no-parallel":
        body["parallel_tool_calls"] = False
    return "/v1/responses", body


def anthropic_request(case, model, stream):
    messages = [{"role": "user", "content": [{"type": "text", "text": "Clean up."}]}]
    if case == "picture":
        source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
        messages[0]["content"].append({"type": "image", "source": source})
    if case in ("result", "failed-result"):
        use = {"type": "tool_use", "id": "call_A", "name": "delete_files", "input": {"path": "/x"}}
        result = {"type": "tool_result", "tool_use_id": "call_A", "content": "gone"}
        if case == "failed-result":
            result["is_error"] = True
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    body = {
        "model": model,
        "messages": messages,
        "stream": stream,
        "max_tokens": 99,
        "tools": [
            {"name": n, "description": "d", "input_schema": SCHEMA}
            for n in ("delete_files", "get_time")
        ],
    }
    if case == "system":
        body["system"] = [
            {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
        ]
    choice = {
        "choose-tool": {"type": "tool", "name": "delete_files"},
        "choose-any": {"type": "any"},
        "choose-none": {"type": "none"},
        "no-parallel": {"type": "auto", "disable_parallel_tool_use": True},
    }.get(case)
    if choice:
        body["tool_choice"] = choice
    return "/v1/messages", body


def gemini_request(case, model, stream):
    contents = [{"role": "user", "parts": [{"text": "Clean up."}]}]
    if case == "picture":
        contents[0]["parts"].append({"inlineData": {"mimeType": "image/png", "data": PICTURE}})
    if case in ("result", "failed-result"):
        output = {"error": "gone"} if case == "failed-result" else {"output": "gone"}
        contents += [
            {
                "role": "model",
                "parts": [{"functionCall": {"name": "delete_files", "args": {"path": "/x"}}}],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "delete_files", "response": output}}],
            },
        ]
    declarations = [
        {"name": n, "description": "d", "parameters": SCHEMA} for n in ("delete_files", "get_time")
    ]
    body = {
        "contents": contents,
        "tools": [{"functionDeclarations": declarations}],
        "generationConfig": {"maxOutputTokens": 99},
    }
    if case == "system":
        body["systemInstruction"] = {"parts": [{"text": "Be brief."}]}
    choice = {
        "choose-tool": {"mode": "ANY", "allowedFunctionNames": ["delete_files"]},
        "choose-any": {"mode": "ANY"},
        "choose-none": {"mode": "NONE"},
    }.get(case)
    if choice:
        body["toolConfig"] = {"functionCallingConfig": choice}
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/models/{model}:{method}", body


REQUESTS = {
    "chat": chat_request,
    "responses": responses_request,
    "anthropic": anthropic_request,
    "gemini": gemini_request,
}


def ask(options, case, gateway):
    """What the client got, as text."""
    path, body = REQUESTS[options.down](case, options.model, not options.plain)
    path = options.path or path
    url = urlsplit(gateway)
    headers = {
        "content-type": "application/json",
        "authorization": "Bearer k",
        "x-api-key": "k",
        "x-goog-api-key": "k",
        "anthropic-version": "2023-06-01",
    }
    headers |= dict(header.split(":", 1) for header in options.header)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=options.timeout)
    print(f"client sent: POST {path}\n    {json.dumps(body)}", flush=True)
    got, status = b"", "nothing"
    first = last = time.monotonic()
    try:
        connection.request("POST", url.path + path, json.dumps(body), headers)
        response = connection.getresponse()
        names = ("content-type", "retry-after")
        kept = {name: response.getheader(name) for name in names if response.getheader(name)}
        status = f"{response.status} {kept}"
        while more := response.read1(65536):
            last = time.monotonic()
            first = first if got else last
            got += more
            if case == "leave":
                response.close()  # That of the connection leaves the socket to the response.
                connection.close()
                time.sleep(5)
                break
        end = "the body ends in order"
        if case == "leave":
            end = "the client has left"
    except (http.client.HTTPException, OSError) as error:
        end = repr(error)
    text = got.decode(errors="replace").replace(SEPARATOR, "<U+2028>").rstrip()
    times = f"first and last bytes {last - first:.1f} s apart"
    return f"client got: {status}\n    " + text.replace("\n", "\n    ") + f"\n    ({end}; {times})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--down", choices=REQUESTS, required=True)
    parser.add_argument("--up", choices=EVENTS, required=True)
    parser.add_argument("--case", choices=[*CASES, "all"], required=True)
    parser.add_argument("--listen", type=int, default=0)
    parser.add_argument("--gateway", help="its URL; without it, the client asks the server itself")
    parser.add_argument("--model", default="m")
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--path", help="where the client asks, if not where its API has it")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--writes", choices=["once", "events", "bytes"], default="once")
    parser.add_argument("--timeout", type=float, default=20)
    options = parser.parse_args()
    whole = [case for case in CASES if not options.plain or case not in STREAMED]
    for case in whole if options.case == "all" else [options.case]:
        print(
            f"== {case}: {options.down} to {options.up}, {'plain' if options.plain else 'streamed'}"
        )
        with socket.create_server(("127.0.0.1", options.listen), backlog=20) as listener:
            asked, said = [], []
            arguments = (listener, options, case, asked, said)
            threading.Thread(target=serve, args=arguments, daemon=True).start()
            itself = f"http://127.0.0.1:{listener.getsockname()[1]}"
            got = ask(options, case, options.gateway or itself)
            listener.shutdown(socket.SHUT_RDWR)
        print(*said, got, f"requests upstream: {len(asked)}\n", sep="\n", flush=True)


if __name__ == "__main__":
    main()
