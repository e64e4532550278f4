"""The kinds of mappings in the language, as `schema.json` defines them.

The schema is the one source of their keys, of which are required, and of what simple values may be.
Readers of all other values are written in Python, and given to `table` by their keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from mockllm.scenario.reading.definitions import DEFINITIONS, PROPERTIES
from mockllm.scenario.reading.nodes import Mapping, Node
from mockllm.scenario.reading.values import (
    Findings,
    Reader,
    Table,
    api_name,
    boolean,
    choice,
    duration,
    fields,
    integer,
    json_mapping,
    line,
    matching_text,
    percent,
    text,
)
from mockllm.scenario.yamltext import TextFile

_IN_ONE_LINE = r"^[^\r\n]+[\r\n]*$"

_GROUPS = {"any": "any_of", "all": "all_of", "not": "negated"}

FIELDS: dict[str, dict[str, str]] = {
    "scenario": {"scenario": "name", "then": "restart", "ids": "any_ids"},
    "match": _GROUPS,
    "request": _GROUPS,
    "reasoning_part": {"reasoning": "text"},
    "refusal_part": {"refusal": "text"},
    "tool_part": {"tool": "name"},
    "server_tool_part": {"server_tool": "kind"},
    "parallel_part": {"parallel": "calls"},
    "interleaved_part": {"interleaved": "parts"},
    "pause_part": {"pause": "duration"},
    "turn": {"when": "branches"},
    "mcp_server": {"mcp": "name"},
    "mcp_entry": {"timing": "ttft"},
}
"""By definition, the fields of the model that are not named as their keys."""

TABLES: dict[str, Table] = {}
"""Every kind of mapping in the language, by the name of its definition."""


def table(name: str, /, **readers: Reader | str) -> Table:
    """The keys of a definition with their readers."""
    properties = PROPERTIES[name]
    assert readers.keys() <= properties.keys(), f"{name} has no {readers.keys() - properties}"
    by_key = {key: _reader(schema, readers.get(key)) for key, schema in properties.items()}
    required = tuple(DEFINITIONS[name].get("required", ()))
    TABLES[name] = Table(by_key, required, FIELDS.get(name, {}))
    return TABLES[name]


def choices(name: str, key: str) -> tuple[str, ...]:
    """The names of which the value of a key must be one."""
    return _names(PROPERTIES[name][key]) or ()


def _reader(schema: dict[str, Any], given: Reader | str | None) -> Reader:
    if isinstance(given, str):
        return matching_text(schema["pattern"], given)
    if given is not None:
        return given
    known = _NAMED.get(schema.get("$ref", ""))
    names = _names(schema)
    if known is not None or names is not None:
        return known or choice(*names or ())
    if schema["type"] == "integer":
        return integer(schema["minimum"], schema.get("maximum"))
    return _BY_TYPE[schema["type"], schema.get("pattern")]


def _names(schema: dict[str, Any]) -> tuple[str, ...] | None:
    """The names of which a value must be one; None where it may be something else."""
    if "$ref" in schema:
        return _names(DEFINITIONS[schema["$ref"].removeprefix("#/$defs/")])
    if "const" in schema:
        return (schema["const"],)
    if "oneOf" in schema:
        options = [_names(option) for option in schema["oneOf"]]
        return None if None in options else sum(filter(None, options), ())
    return tuple(schema["enum"]) if "enum" in schema else None


_BY_TYPE: dict[tuple[str, str | None], Reader] = {
    ("boolean", None): boolean,
    ("object", None): json_mapping,
    ("string", None): text,
    ("string", _IN_ONE_LINE): line,
}

REPLY_NAME: str = DEFINITIONS["reply_name"]["pattern"]
_TOOL_NAME: str = DEFINITIONS["tool_name"]["pattern"]
inner_path: Reader = matching_text(
    DEFINITIONS["tape_name"]["pattern"],
    "a path inside the folder of this file, such as name.1.jsonl",
)
"""A reader of paths that stay in the folder of the scenario's file."""

turn_name = matching_text(
    DEFINITIONS["turn_name"]["pattern"],
    "a name of lower-case letters, digits and '-', such as goodbye",
)
gate_name = matching_text(
    DEFINITIONS["gate_name"]["pattern"],
    "the name of a gate: letters, digits, '-' and '_', such as thinking",
)
included_name: Reader = matching_text(
    DEFINITIONS["included_name"]["pattern"],
    "the name of a file in the folder of this one, such as common.yaml",
)
tool_name = matching_text(_TOOL_NAME, "a tool name: 1 to 64 letters, digits, '_' or '-'")
called_name = matching_text(
    DEFINITIONS["called_tool"]["pattern"],
    "a tool name: 1 to 64 letters, digits, '_' or '-', or SERVER.TOOL for a tool of an MCP server",
)
is_tool_name = re.compile(_TOOL_NAME).fullmatch
"""Whether services accept a text as the name of a tool, and so do scenarios."""


def long_text(node: Node, findings: Findings) -> str | None:
    """Any string, or `{file: NAME}`: the text of a file beside the YAML."""
    if not isinstance(node, Mapping):
        return text(node, findings)
    values = fields(node, findings, _TEXT_FILE)
    return None if values is None else _file_text(values["file"], node, findings)


def text_of_file(node: Node, findings: Findings) -> str | None:
    """The text of a file beside the YAML, from its name."""
    name = inner_path(node, findings)
    return None if name is None else _file_text(name, node, findings)


def _file_text(name: str, node: Node, findings: Findings) -> str | None:
    content = file_content(name, node, findings, "write the text here")
    if content is None:
        return None
    try:
        return TextFile(content.decode(), name)
    except UnicodeDecodeError as error:
        byte = f"0x{content[error.start]:02x}"
        message = f"{name!r} must be UTF-8, got byte {byte}; put it there, or write the text here"
        findings.add(node, message)
        return None


def file_content(name: str, node: Node, findings: Findings, instead: str) -> bytes | None:
    """The bytes of a file beside the YAML; `instead` is what else a person could do."""
    if findings.read_file is None:
        findings.add(node, f"names the file {name!r}, and this text is in no folder")
        return None
    try:
        return findings.read_file(name)
    except OSError as error:
        findings.add(node, f"{name!r} {error}; put it there, or {instead}")
        return None


def path_of_file(
    name: str, node: Node, findings: Findings, find: Callable[[str, str], str], advice: str
) -> str | None:
    """The path of a file beside the YAML, as `find` (of `reading.files`) gives it; None where it is
    not there, or not looked for."""
    if findings.sent:
        findings.add(node, "names a file, and scenarios that are sent have no files")
    if findings.sent or findings.file is None:
        return None
    try:
        return find(findings.file, name)
    except OSError as error:
        findings.add(node, f"{name!r} {error}; {advice}")
        return None


_NAMED: dict[str, Callable[[Node, Findings], Any]] = {
    "#/$defs/api": api_name,
    "#/$defs/duration": duration,
    "#/$defs/long_text": long_text,
    "#/$defs/percent": percent,
    "#/$defs/reply_name": text,
    "#/$defs/tape_name": inner_path,
    "#/$defs/tool_name": tool_name,
    "#/$defs/turn_name": turn_name,
}
_TEXT_FILE = table("text_file")
