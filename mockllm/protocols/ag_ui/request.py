"""Requests of AG-UI: the input of a run to the neutral request, with validation by its types.

https://docs.ag-ui.com/sdk/python/core/types#runagentinput
"""

from __future__ import annotations

from mockllm.core.http import Target
from mockllm.core.request import OfferedTool, Request
from mockllm.protocols.ag_ui import API
from mockllm.protocols.ag_ui.created import ids_of_path
from mockllm.protocols.ag_ui.errors import CHECKS, TEXT, wrong_type
from mockllm.protocols.ag_ui.messages import check_messages, read_messages
from mockllm.protocols.ag_ui.objects import Options
from mockllm.protocols.records import Fields
from mockllm.protocols.values import array, encodable, mapping, string

_MODEL = "ag-ui"


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of the input of a run. The path may name the scenario, and the thread and
    the run where the body leaves them out. AG-UI has no model: it is `forwardedProps.model` if
    present, else `ag-ui`. `context`, `state` and `resume` are only in `body`."""
    if target.segments:
        body = {**ids_of_path(target), **body}
    (_INPUT if strict else CHECKS.mapping)("", body)
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
    offers = map(mapping, array(value))
    return tuple(
        OfferedTool(name, string(offer.get("description")), mapping(offer.get("parameters")))
        for offer in offers
        if isinstance(name := offer.get("name"), str)
    )


# Checks


def _check_name(where: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise wrong_type(where, "the name of a tool", value)


_TOOL = CHECKS.fields({"name": _check_name, "description": TEXT}, {"parameters": CHECKS.mapping})
_CONTEXT = CHECKS.fields({"description": TEXT, "value": TEXT})
_ANSWER = CHECKS.fields({"interruptId": TEXT, "status": TEXT})
_INPUT = CHECKS.fields(
    {"threadId": TEXT, "runId": TEXT, "messages": check_messages},
    {
        "protocolVersion": TEXT,
        "parentRunId": TEXT,
        "tools": CHECKS.list_of(_TOOL),
        "context": CHECKS.list_of(_CONTEXT),
        "resume": CHECKS.list_of(_ANSWER),
    },
)
