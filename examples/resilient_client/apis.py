"""What differs between five APIs: the request, and how one event adds to the answer.

`API.read` takes an event and returns the text that it adds. It never raises for a field that is
missing: an event that nothing is known of adds nothing.
"""

import json
from dataclasses import dataclass, field


@dataclass
class Answer:
    """The answer of one try. `ended`: its end marker came, nothing follows. `finish` alone is
    enough where the connection then ends as HTTP requires."""

    text: str = ""
    calls: dict = field(default_factory=dict)  # by what the API identifies a call by
    finish: str | None = None
    ended: bool = False

    def call(self, key):
        return self.calls.setdefault(key, {"id": "", "name": "", "arguments": ""})

    def tool_calls(self):
        """The calls; to be used of a complete answer only, since `1` may be the begin of `12`."""
        return [{**call, "arguments": call["arguments"] or "{}"} for call in self.calls.values()]


class Chat:
    """OpenAI Chat Completions, and services that copy it."""

    def request(self, base_url, key, model, prompt, tools):
        tools = [{"type": "function", "function": tool} for tool in tools]
        body = {"model": model, "messages": [{"role": "user", "content": prompt}], "stream": True}
        return f"{base_url}/chat/completions", bearer(key), with_tools(body, tools)

    def read(self, answer, event):
        text = ""
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            text += delta.get("content") or ""
            for part in delta.get("tool_calls") or []:
                call, function = answer.call(part["index"]), part.get("function") or {}
                call["id"] = call["id"] or part.get("id") or ""
                call["name"] = call["name"] or function.get("name") or ""
                call["arguments"] += function.get("arguments") or ""
            answer.finish = choice.get("finish_reason") or answer.finish
        return text


class Responses:
    """OpenAI Responses."""

    def request(self, base_url, key, model, prompt, tools):
        tools = [{"type": "function", **tool} for tool in tools]
        body = {"model": model, "input": prompt, "stream": True}
        return f"{base_url}/responses", bearer(key), with_tools(body, tools)

    def read(self, answer, event):
        type, item, at = event.get("type", ""), event.get("item") or {}, event.get("output_index")
        if type == "response.output_item.done" and item.get("type") == "function_call":
            # It repeats everything that the deltas sent, so these are not needed.
            call = answer.call(at)
            call.update(id=item["call_id"], name=item["name"], arguments=item["arguments"])
        elif type in ("response.completed", "response.incomplete"):
            why = event["response"].get("incomplete_details") or {}
            answer.finish = why.get("reason") or type.removeprefix("response.")
            answer.ended = True
        return event.get("delta") or "" if type == "response.output_text.delta" else ""


class Anthropic:
    """Anthropic Messages."""

    def request(self, base_url, key, model, prompt, tools):
        tools = [{**tool, "input_schema": tool.get("parameters") or {}} for tool in tools]
        tools = [{key: tool[key] for key in tool if key != "parameters"} for tool in tools]
        body = {"model": model, "max_tokens": 4096, "stream": True}
        body["messages"] = [{"role": "user", "content": prompt}]
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        return f"{base_url}/v1/messages", headers, with_tools(body, tools)

    def read(self, answer, event):
        type, delta = event.get("type"), event.get("delta") or {}
        block = event.get("content_block") or {}
        if block.get("type") == "tool_use":
            answer.call(event["index"]).update(id=block["id"], name=block["name"])
        elif delta.get("type") == "input_json_delta":
            answer.call(event["index"])["arguments"] += delta["partial_json"]
        answer.finish = delta.get("stop_reason") or answer.finish
        answer.ended = type == "message_stop"
        return delta.get("text") or "" if delta.get("type") == "text_delta" else ""


class Gemini:
    """Gemini's `streamGenerateContent`. It has no end marker: a finish reason, and the end."""

    def request(self, base_url, key, model, prompt, tools):
        body = {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
        url = f"{base_url}/v1beta/models/{model}:streamGenerateContent?alt=sse"
        declared = [{"functionDeclarations": list(tools)}] if tools else []
        return url, {"x-goog-api-key": key}, with_tools(body, declared)

    def read(self, answer, event):
        text = ""
        for candidate in event.get("candidates") or []:
            for part in (candidate.get("content") or {}).get("parts") or []:
                if part.get("functionCall"):  # always whole, and often without an id
                    value, number = part["functionCall"], len(answer.calls)
                    id, arguments = value.get("id") or f"call_{number}", value.get("args") or {}
                    answer.call(number).update(
                        id=id, name=value["name"], arguments=json.dumps(arguments)
                    )
                elif not part.get("thought"):
                    text += part.get("text") or ""
            answer.finish = candidate.get("finishReason") or answer.finish
        return text


class AGUI:
    """AG-UI. The base URL is that of the agent."""

    def request(self, base_url, key, model, prompt, tools):
        message = {"id": "user_1", "role": "user", "content": prompt}
        body = {"threadId": "thread_1", "runId": "run_1", "messages": [message], "context": []}
        return base_url, bearer(key), {**body, "tools": tools, "state": {}, "forwardedProps": {}}

    def read(self, answer, event):
        type = event.get("type")
        if type == "TOOL_CALL_START":
            id = event["toolCallId"]
            answer.call(id).update(id=id, name=event["toolCallName"])
        elif type == "TOOL_CALL_ARGS":
            answer.call(event["toolCallId"])["arguments"] += event["delta"]
        elif type == "RUN_FINISHED":
            answer.finish, answer.ended = type, True
        return event.get("delta") or "" if type == "TEXT_MESSAGE_CONTENT" else ""


APIS = {
    "chat": Chat(),
    "responses": Responses(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
    "agui": AGUI(),
}


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def with_tools(body, tools):
    return {**body, "tools": tools} if tools else body


def error_of(event):
    """The error in an event or a body, in the form of any of the services; None if it has none."""
    if event.get("type") == "response.failed":
        return (event.get("response") or {}).get("error") or event
    if event.get("type") in ("error", "RUN_ERROR"):
        return event.get("error") or event
    return event.get("error")
