"""Requests of AG-UI: the input of a run to the neutral request, with validation by its types.

https://docs.ag-ui.com/sdk/python/core/types#runagentinput
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core.request import OfferedTool, Request
from mockllm.core.target import Target
from mockllm.protocols.ag_ui import API
from mockllm.protocols.ag_ui.created import ids_of_path
from mockllm.protocols.ag_ui.errors import fields, list_of, mapping, text, wrong_type
from mockllm.protocols.ag_ui.messages import check_messages, read_messages
from mockllm.protocols.ag_ui.objects import Options
from mockllm.protocols.values import encodable, string

_MODEL = "ag-ui"


def parse(body: Mapping[str, Any], target: Target, strict: bool) -> Request:
    """The neutral request of the input of a run. The path may name the scenario, and the thread and
    the run where the body leaves them out. AG-UI has no model: it is `forwardedProps.model` if
    present, else `ag-ui`. `context`, `state` and `resume` are only in `body`."""
    if target.segments:
        body = {**ids_of_path(target), **body}
    fields("", body, _REQUIRED if strict else {}, _OTHERS if strict else {})
    history = read_messages(body.get("messages"))
    props = body.get("forwardedProps")
    model = string(props.get("model")) if isinstance(props, dict) else ""
    return Request(
        api=API,
        model=encodable(model) or _MODEL,
        body=body,
        stream=True,
        messages=history,
        system="\n".join([message.text for message in history if message.role == "system"]),
        tools=_tools(body.get("tools")),
        scenario=target.segments.get("scenario"),
    )


def options(request: Request) -> Options:
    """The options for the encoder; never fails, whatever the body holds."""
    usual = Options()
    body = request.body
    parent = body.get("parentRunId")
    return Options(
        encodable(string(body.get("threadId"))) or usual.thread_id,
        encodable(string(body.get("runId"))) or usual.run_id,
        encodable(parent) if isinstance(parent, str) else None,
    )


def _tools(value: object) -> tuple[OfferedTool, ...]:
    offered = []
    for tool in value if isinstance(value, list) else ():
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str):
            parameters = tool.get("parameters")
            offered.append(
                OfferedTool(
                    name,
                    string(tool.get("description")),
                    parameters if isinstance(parameters, dict) else {},
                )
            )
    return tuple(offered)


# Checks of single fields


def _check_tool(where: str, value: object) -> None:
    fields(where, value, {"name": _check_name, "description": text}, {"parameters": mapping})


def _check_name(where: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise wrong_type(where, "the name of a tool", value)


def _check_context(where: str, value: object) -> None:
    fields(where, value, {"description": text, "value": text}, {})


def _check_answer(where: str, value: object) -> None:
    fields(where, value, {"interruptId": text, "status": text}, {})


_REQUIRED = {"threadId": text, "runId": text, "messages": check_messages}
_OTHERS = {
    "protocolVersion": text,
    "parentRunId": text,
    "tools": list_of(_check_tool),
    "context": list_of(_check_context),
    "resume": list_of(_check_answer),
}
