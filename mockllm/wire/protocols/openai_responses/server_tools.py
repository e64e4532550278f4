"""The output items of tools that the service hosts, as neutral `ServerTool` parts.

https://platform.openai.com/docs/api-reference/responses-streaming and the types of
`ResponseOutputItem` in openai-python.

Each type of item has an entry in `SERVER_TOOLS`; `item_fields` has the readers and writers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from mockllm.core.turn import ServerTool
from mockllm.wire.protocols.openai_responses import item_fields
from mockllm.wire.protocols.openai_responses.item_fields import Details
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import string


@dataclass(frozen=True, slots=True)
class ItemType:
    """One type of output item of a hosted tool.

    Args:
        type: of the item.
        kind: of the neutral part.
        prefix: of the derived ids of items.
        read: the neutral call of a finished item; its id is set by `read_item`.
        write: the fields of a finished item besides `type`, the ids and `status`.
        begin: the stems of the events after `output_item.added`.
        end: the stems of the events before `output_item.done`.
        failed: the stem of the event that replaces the last of `end` if the call failed.
        delta: the stem of the events `.delta` and `.done` of the input; "" if it comes whole.
        value: the field of the whole input in `.done`.
        calls: whether the id of the call is a `call_id`, which the client sends back, and the
            item has an id besides.
        has_status: whether items have a status.
        opening: the values of fields that are still empty in `output_item.added`.
        bare: whether `output_item.added` has none of the fields of `write`.
        details: the events with the content of a finished item, which come before those of `end`.
    """

    type: str
    kind: str
    prefix: str
    read: Callable[[Fields], ServerTool]
    write: Callable[[ServerTool], Json]
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    failed: str = ""
    delta: str = ""
    value: str = ""
    calls: bool = False
    has_status: bool = True
    opening: Fields = field(default_factory=dict)
    bare: bool = False
    details: Details | None = None

    def read_item(self, fields: Fields) -> ServerTool:
        """The neutral call of a finished item."""
        id = string(fields.get("call_id" if self.calls else "id"))
        return replace(self.read(fields), id=id)

    def progress(self, value: Fields) -> tuple[str, ...]:
        """The stems of the events before `output_item.done`, for a finished item."""
        if self.failed and value.get("error"):
            return (*self.end[:-1], self.failed)
        return self.end


def _of_fields(
    type: str,
    prefix: str,
    *,
    kind: str = "",
    result: str = "",
    needed: Fields | None = None,
    **other: Any,
) -> ItemType:
    """An item that has its fields as input, `result` excepted; it lacks none of `needed`."""
    kind = kind or type
    read, write = (
        item_fields.read_fields(kind, result),
        item_fields.write_fields(result, needed or {}),
    )
    return ItemType(type, kind, prefix, read, write, **other)


_EXEC = {"type": "exec", "command": [], "env": {}}
_TYPES = (
    ItemType(
        "web_search_call",
        "web_search",
        "ws",
        item_fields.read_web_search,
        item_fields.write_web_search,
        begin=("web_search_call.in_progress", "web_search_call.searching"),
        end=("web_search_call.completed",),
        bare=True,
    ),
    ItemType(
        "file_search_call",
        "file_search",
        "fs",
        item_fields.read_file_search,
        item_fields.write_file_search,
        begin=("file_search_call.in_progress", "file_search_call.searching"),
        end=("file_search_call.completed",),
        opening={"queries": [], "results": None},
    ),
    ItemType(
        "code_interpreter_call",
        "code_interpreter",
        "ci",
        item_fields.read_code,
        item_fields.write_code,
        begin=("code_interpreter_call.in_progress",),
        end=("code_interpreter_call.interpreting", "code_interpreter_call.completed"),
        delta="code_interpreter_call_code",
        value="code",
        opening={"code": "", "outputs": []},
    ),
    ItemType(
        "mcp_call",
        "mcp",
        "mcp",
        item_fields.read_mcp,
        item_fields.write_mcp,
        begin=("mcp_call.in_progress",),
        end=("mcp_call.completed",),
        failed="mcp_call.failed",
        delta="mcp_call_arguments",
        value="arguments",
        opening={"arguments": "", "output": None, "error": None},
    ),
    ItemType(
        "mcp_list_tools",
        "mcp_list_tools",
        "mcpl",
        item_fields.read_mcp_tools,
        item_fields.write_mcp_tools,
        begin=("mcp_list_tools.in_progress",),
        end=("mcp_list_tools.completed",),
        failed="mcp_list_tools.failed",
        has_status=False,
        opening={"tools": []},
    ),
    ItemType(
        "mcp_approval_request",
        "mcp_approval_request",
        "mcpr",
        item_fields.read_approval,
        item_fields.write_approval,
        has_status=False,
    ),
    _of_fields(
        "image_generation_call",
        "ig",
        kind="image_generation",
        result="result",
        begin=("image_generation_call.in_progress", "image_generation_call.generating"),
        end=("image_generation_call.completed",),
        bare=True,
        details=item_fields.PARTIAL_IMAGES,
    ),
    _of_fields(
        "computer_call",
        "cu",
        kind="computer",
        needed={"action": {"type": "screenshot"}, "pending_safety_checks": []},
        calls=True,
    ),
    _of_fields("local_shell_call", "lsh", kind="local_shell", needed={"action": _EXEC}, calls=True),
    _of_fields(
        "shell_call",
        "sh",
        kind="shell",
        needed={"action": {"commands": []}},
        calls=True,
        opening={"action": {"commands": []}},
        details=item_fields.COMMANDS,
    ),
    _of_fields(
        "apply_patch_call",
        "apc",
        kind="apply_patch",
        needed={"operation": {"type": "delete_file", "path": ""}},
        calls=True,
    ),
    _of_fields(
        "tool_search_call",
        "tsc",
        kind="tool_search",
        needed={"arguments": {}, "execution": "server"},
        calls=True,
        opening={"arguments": {}},
    ),
    _of_fields(
        "tool_search_output",
        "tso",
        result="tools",
        needed={"execution": "server"},
        calls=True,
    ),
    _of_fields(
        "shell_call_output",
        "sho",
        result="output",
        calls=True,
        opening={"output": []},
        details=item_fields.COMMAND_OUTPUTS,
    ),
    _of_fields("local_shell_call_output", "lso", result="output"),
    _of_fields("function_call_output", "fco", result="output", calls=True),
    _of_fields("custom_tool_call_output", "ctco", result="output", calls=True),
    _of_fields("apply_patch_call_output", "apo", result="output", calls=True),
    _of_fields("computer_call_output", "cuo", result="output", calls=True),
    _of_fields(
        "program", "pr", needed={"code": "", "fingerprint": ""}, has_status=False, calls=True
    ),
    _of_fields("program_output", "pro", result="result", calls=True),
    _of_fields(
        "compaction",
        "cmp",
        needed={"encrypted_content": ""},
        has_status=False,
        details=item_fields.COMPACTING,
    ),
    _of_fields(
        "mcp_approval_response",
        "mcpa",
        result="approve",
        needed={"approval_request_id": "", "reason": None},
        has_status=False,
    ),
    _of_fields(
        "additional_tools", "at", result="tools", needed={"role": "system"}, has_status=False
    ),
)

SERVER_TOOLS = {item.type: item for item in _TYPES}
"""By the type of the item."""

BY_KIND = {item.kind: item for item in _TYPES}
"""By the kind of the neutral part."""

PROGRESS = {
    f"response.{stem}": item.type
    for item in _TYPES
    for stem in (
        *item.begin,
        *item.end,
        *filter(None, (item.failed,)),
        *(item.details.stems if item.details else ()),
    )
}
"""The types of the events that only report progress, or repeat what the finished item has, with the
type of their item."""


def encodable(call: ServerTool) -> ServerTool:
    """The call as one of a kind of this API; tools of other APIs become calls of an MCP server. To
    the client both are the same: the service ran a tool, and shows its input and output."""
    if call.kind in BY_KIND:
        return call
    name = call.name or call.kind
    return replace(call, kind="mcp", name=name)


def item_type(call: ServerTool) -> ItemType:
    """The type of the item of a call."""
    return BY_KIND[encodable(call).kind]
