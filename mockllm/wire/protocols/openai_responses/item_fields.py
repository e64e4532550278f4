"""The fields of the items of hosted tools, as neutral calls and back.

A pair of functions for each form of item: `read_...` gives the neutral call of a finished item,
`write_...` the fields of an item besides `type`, the ids and `status`. They are inverse for what
the service sends; of a call of another API, `write_...` keeps what the item can hold.
`Details` are the events with the content of an item between its beginning and its end.
The code of a code interpreter is JSON text `{"code": ...}` in a neutral call and plain text on the
wire; the fragments of the one and the deltas of the other correspond. Only pure functions may live
here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mockllm.core.turn import ServerTool
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.openai_responses.objects import Options
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, json_object, mapping, string, value_or_text

# Code as JSON text

_BEGIN = '{"code":"'
END = '"}'
"""The text after the last fragment."""

_TOKENS = re.compile(
    r'(?:[^"\\]|\\["\\/bfnrt]'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*"
)


def escape_code(code: str) -> str:
    """Code inside the neutral text, after the beginning and before the end."""
    return dumps(code)[1:-1]


def begin_code(code: str) -> str:
    """The first code in the neutral text."""
    return _BEGIN + escape_code(code)


def code_text(code: str) -> str:
    """The whole neutral text."""
    return begin_code(code) + END


def code_deltas(fragments: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The deltas on the wire: for each fragment those that it completes, none of them empty. A text
    of another form cannot be read before its end, so that its code is one delta of the last
    fragment: the field `code` of an object, or the text itself."""
    reading = _Reading()
    deltas = [reading.add(fragment) for fragment in fragments]
    if fragments and not reading.begun:
        deltas[-1] = _code_in("".join(fragments))
    return tuple((delta,) if delta else () for delta in deltas)


def code_of(fragments: Sequence[str]) -> str | None:
    """The code of a neutral text in fragments; None without any."""
    if not fragments:
        return None
    return "".join(delta for deltas in code_deltas(fragments) for delta in deltas)


def _code_in(text: str) -> str:
    code = (json_object(text) or {}).get("code")
    return code.encode("utf-8", "replace").decode() if isinstance(code, str) else text


class _Reading:
    def __init__(self) -> None:
        self.begun = False
        self._unread = ""
        self._ended = False

    def add(self, fragment: str) -> str:
        """The code that this fragment completes."""
        if self._ended:
            return ""
        self._unread += fragment
        if not self.begun:
            if not self._unread.startswith(_BEGIN):
                return ""
            self.begun = True
            self._unread = self._unread.removeprefix(_BEGIN)
        match = _TOKENS.match(self._unread)
        whole = match[0] if match else ""
        self._unread = self._unread[len(whole) :]
        # The end of the string, or no JSON: neither is code.
        self._ended = self._unread[:1] == '"' or len(self._unread) > len(r"\ud83d\ude0")
        code: str = json.loads(f'"{whole}"', strict=False)
        return code


# JSON texts


def _parse(text: str | None) -> Any:
    return value_or_text(text) if text else None


def _text(value: Any) -> str | None:
    return None if value is None else dumps(value)


def _plain_text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


# Searches


def read_web_search(fields: Fields) -> ServerTool:
    """A search: the action is the input, its sources are the output."""
    action = {**mapping(fields.get("action"))}
    sources = action.pop("sources", None)
    return ServerTool("web_search", fragments=_whole(action or None), output=_text(sources))


def write_web_search(call: ServerTool) -> Json:
    """The action of a search; results of other APIs become its sources."""
    given, results = _parse(call.input), _parse(call.output)
    if not isinstance(given, dict):
        given = {} if given is None else {"query": _plain_text(given)}
    action = {"type": "search", **given}
    if not isinstance(action["type"], str):
        action["type"] = "search"
    action.pop("sources", None)
    if isinstance(results, list):
        action["sources"] = [source for result in results for source in _source(result)]
    return {"action": action}


def _source(value: Any) -> list[Json]:
    """A source of a search; results of other APIs have more fields than `url`."""
    if not isinstance(value, dict):
        return []
    if value.get("type") in ("url", "api"):
        return [value]
    return [{"type": "url", "url": value["url"]}] if isinstance(value.get("url"), str) else []


def read_file_search(fields: Fields) -> ServerTool:
    """A search in files: the queries are the input, the results the output."""
    queries = fields.get("queries")
    given = {"queries": queries} if isinstance(queries, list) else None
    results = _text(fields.get("results"))
    return ServerTool("file_search", fragments=_whole(given), output=results)


def write_file_search(call: ServerTool) -> Json:
    """Queries and results of a search in files."""
    given, results = _parse(call.input), _parse(call.output)
    queries = mapping(given).get("queries")
    if not isinstance(queries, list):
        query = mapping(given).get("query", None if isinstance(given, dict) else given)
        queries = [] if query is None else [_plain_text(query)]
    return {"queries": queries, "results": results if isinstance(results, list) else None}


# Code


def read_code(fields: Fields) -> ServerTool:
    """A run of code: `{"code": ...}` is the input, the list of outputs the output."""
    code = fields.get("code")
    given = (code_text(code),) if isinstance(code, str) else ()
    outputs = fields.get("outputs")
    output = dumps(outputs) if isinstance(outputs, list) else None
    return ServerTool("code_interpreter", fragments=given, output=output)


def write_code(call: ServerTool) -> Json:
    """Code and outputs of a run."""
    output = _parse(call.output)
    return {
        "code": code_of(call.fragments),
        "container_id": "",  # derived by `layout`, for each answer anew
        "outputs": None if output is None else _outputs(output),
    }


def _outputs(value: Any) -> list[Any]:
    """The outputs of a run; other APIs have one object with the texts that were printed."""
    if isinstance(value, list) and all(mapping(output).get("type") for output in value):
        return value
    printed = [mapping(value).get(name) for name in ("output", "stdout", "stderr")]
    texts = [text for text in printed if isinstance(text, str)]
    return [{"type": "logs", "logs": "".join(texts) if texts else _plain_text(value)}]


# MCP

_LABEL = "mcp"
"""The label of a server that the scenario does not name."""


def _name_with_label(fields: Fields) -> str:
    label, name = string(fields.get("server_label")), string(fields.get("name"))
    return name if label == _LABEL and "/" not in name else f"{label}/{name}"


def _server(name: str) -> tuple[str, str]:
    label, slash, tool = name.partition("/")
    return (label, tool) if slash else (_LABEL, name)


def read_mcp(fields: Fields) -> ServerTool:
    """A call of an MCP server; a failed one has the output `{"error": ...}`."""
    error, output = fields.get("error"), fields.get("output")
    if error is not None:
        output = {"error": error}
    arguments = string(fields.get("arguments"))
    fragments = (arguments,) if arguments else ()
    return ServerTool("mcp", "", _name_with_label(fields), fragments, _text(output))


def write_mcp(call: ServerTool) -> Json:
    """Arguments, output and server of a call."""
    label, name = _server(call.name)
    output, error = _parse(call.output), None
    if isinstance(output, dict) and list(output) == ["error"]:
        error, output = output["error"], None
    return {
        "approval_request_id": None,
        "arguments": call.input or "{}",
        "error": error,
        "name": name,
        "output": None if output is None else _plain_text(output),
        "server_label": label,
    }


def read_mcp_tools(fields: Fields) -> ServerTool:
    """The list of the tools of an MCP server: the output, `{"error": ...}` where it failed."""
    tools, error = fields.get("tools"), fields.get("error")
    listed = tools if isinstance(tools, list) else None
    output = _text(listed if error is None else {"error": error})
    return ServerTool("mcp_list_tools", "", string(fields.get("server_label")), (), output)


def write_mcp_tools(call: ServerTool) -> Json:
    """The tools of an MCP server."""
    output = _parse(call.output)
    failed = isinstance(output, dict) and output.get("error") is not None
    return {
        "server_label": call.name,
        "tools": [tool for tool in array(output) if isinstance(tool, dict)],
        **({"error": output["error"]} if failed else {}),
    }


def read_approval(fields: Fields) -> ServerTool:
    """The request to approve a call of an MCP server."""
    arguments = string(fields.get("arguments"))
    fragments = (arguments,) if arguments else ()
    return ServerTool("mcp_approval_request", "", _name_with_label(fields), fragments)


def write_approval(call: ServerTool) -> Json:
    """The call of an MCP server that is to be approved."""
    label, name = _server(call.name)
    return {"arguments": call.input or "{}", "name": name, "server_label": label}


# Items whose fields are the input


def _whole(value: Any) -> tuple[str, ...]:
    return () if value is None else (dumps(value),)


_IDENTITY = frozenset({"id", "type", "status", "call_id"})


def read_fields(kind: str, result: str) -> Callable[[Fields], ServerTool]:
    """A reader of items whose field `result` is the output, and all others the input."""

    def read(fields: Fields) -> ServerTool:
        rest = {k: v for k, v in fields.items() if k not in _IDENTITY | {result}}
        output = _text(fields.get(result)) if result else None
        return ServerTool(kind, fragments=_whole(rest or None), output=output)

    return read


def write_fields(result: str, needed: Fields) -> Callable[[ServerTool], Json]:
    """A writer of such items; fields that the input lacks are those of `needed`."""

    def write(call: ServerTool) -> Json:
        given = mapping(_parse(call.input))
        own = {k: v for k, v in given.items() if k not in _IDENTITY | {result}}
        fields = {**needed, **own}
        return fields | ({result: _parse(call.output)} if result else {})

    return write


# Events with the content of items


@dataclass(frozen=True, slots=True)
class Details:
    """The events with the content of one type of item, before those of its end. They repeat what
    the finished item has, so the decoder reads the item. It keeps images as frames, as those that
    a service sends before the finished one are others.

    Args:
        stems: of the types of those that the decoder passes over.
        write: the stem and the fields of each event, for a finished item.
        names_item: whether the events have an `item_id` besides the `output_index`.
    """

    stems: tuple[str, ...]
    write: Callable[[Fields, Options], Iterator[tuple[str, Json]]]
    names_item: bool = True


def _commands(item: Fields, options: Options) -> Iterator[tuple[str, Json]]:
    commands = array(mapping(item.get("action")).get("commands"))
    for index, command in enumerate(commands):
        if isinstance(command, str):
            at = {"command_index": index}
            yield "shell_call_command.added", {**at, "command": ""}
            yield "shell_call_command.delta", {**at, "delta": command}
            yield "shell_call_command.done", {**at, "command": command}


def _command_outputs(item: Fields, options: Options) -> Iterator[tuple[str, Json]]:
    for index, output in enumerate(array(item.get("output"))):
        at = {"command_index": index}
        texts = {name: mapping(output).get(name) for name in ("stdout", "stderr")}
        delta = {name: text for name, text in texts.items() if text and isinstance(text, str)}
        if delta:
            yield "shell_call_output_content.delta", {**at, "delta": delta}
        yield "shell_call_output_content.done", {**at, "output": [output]}


PARTIAL_IMAGE = "image_generation_call.partial_image"
_SHOWN = ("background", "output_format", "quality", "size")


def _partial_images(item: Fields, options: Options) -> Iterator[tuple[str, Json]]:
    """As many images as the request asks for; each is the finished one."""
    image = item.get("result")
    if isinstance(image, str):
        shown = {name: item[name] for name in _SHOWN if name in item}
        for index in range(options.partial_images):
            fields = {"partial_image_b64": image, "partial_image_index": index, **shown}
            yield PARTIAL_IMAGE, fields


def _compacting(item: Fields, options: Options) -> Iterator[tuple[str, Json]]:
    if options.compacting:
        yield "compaction.compacting", {}


COMMANDS = Details(
    tuple(f"shell_call_command.{event}" for event in ("added", "delta", "done")),
    _commands,
    names_item=False,
)
COMMAND_OUTPUTS = Details(
    tuple(f"shell_call_output_content.{event}" for event in ("delta", "done")), _command_outputs
)
PARTIAL_IMAGES = Details((), _partial_images)
COMPACTING = Details(("compaction.compacting",), _compacting)
