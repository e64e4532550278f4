"""Events and items of the Responses API, built by hand."""

from __future__ import annotations

from typing import Any

from mockllm.checking.outcome import Call

A1 = Call("get_weather", {"city": "Paris"}, "call_A1")
B2 = Call("get_time", {"tz": "CET"}, "call_B2")
Z0 = Call("list_issues", {}, "call_Z0")
PARIS, CET = '{"city":"Paris"}', '{"tz":"CET"}'
CITY, TZ = ('{"city":', '"Paris"}'), ('{"tz":', '"CET"}')


def event(type: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{type}", **fields}


def item(call: Call, arguments: Any = "", id: str | None = "fc_A", **more: Any) -> dict[str, Any]:
    fields = {"id": id, "type": "function_call", "call_id": call.id, "name": call.name}
    return {**fields, "arguments": arguments, **more}


def added(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return event("output_item.added", output_index=index, item=item)


def done(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return event("output_item.done", output_index=index, item=item)


def arguments_delta(delta: str, index: int = 0, id: str | None = "fc_A") -> dict[str, Any]:
    where = {"output_index": index, "item_id": id}
    return event("function_call_arguments.delta", **where, delta=delta)


def arguments_done(arguments: Any, index: int = 0, id: str | None = "fc_A") -> dict[str, Any]:
    where = {"output_index": index, "item_id": id}
    return event("function_call_arguments.done", **where, arguments=arguments)


def text_event(
    name: str, text: str, index: int = 0, id: str = "msg_1", **more: Any
) -> dict[str, Any]:
    where = {"output_index": index, "item_id": id, **more}
    stage, key = name.rpartition(".")[::2]
    field = "delta" if key == "delta" else "refusal" if "refusal" in stage else "text"
    return event(name, **where, **{field: text})


def text_delta(text: str, index: int = 0, id: str = "msg_1") -> dict[str, Any]:
    return text_event("output_text.delta", text, index, id, content_index=0)


def text_done(text: str, index: int = 0, id: str = "msg_1") -> dict[str, Any]:
    return text_event("output_text.done", text, index, id, content_index=0)


def message(*texts: str, id: str = "msg_1") -> dict[str, Any]:
    content = [{"type": "output_text", "text": text} for text in texts]
    return {"type": "message", "id": id, "content": content}


def end(*output: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    return event(status, response={"status": status, "output": list(output), **more})


CREATED = event("created", sequence_number=0, response={"output": [], "usage": None})
DELTAS = [arguments_delta(each) for each in CITY]
