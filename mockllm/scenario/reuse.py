"""Replies that have names: those of a scenario, and those of the files that it includes.

A named reply is read once, and its mistakes are reported where it is written. What is wrong only in
a turn that uses it (a call of a tool that the scenario does not have) is reported at that `use`.
"""

from __future__ import annotations

import re

from mockllm.core.record import record
from mockllm.scenario import model as m
from mockllm.scenario.check import check
from mockllm.scenario.reading import document
from mockllm.scenario.reading.nodes import (
    KeyPath,
    Mapping,
    Node,
    Sequence,
    SourceLocation,
    count_nodes,
    locate_path,
    reach,
)
from mockllm.scenario.reading.parts import BROKEN, reply
from mockllm.scenario.reading.tables import REPLY_NAME, included_name, table
from mockllm.scenario.reading.values import (
    Findings,
    NamedReply,
    excerpt,
    filled_entries,
    readable_fields,
)

_INCLUDED = table("included", replies=lambda *_: None, tools=document.tools)


@record
class IncludedFile:
    """The replies and tools of a file that scenarios include."""

    replies: dict[str, NamedReply]
    tools: tuple[m.ToolSpec, ...]


def is_included(root: Node) -> bool:
    """Whether a document has replies and tools for scenarios, and is none."""
    if not isinstance(root, Mapping):
        return False
    keys = root.entries.keys()
    return not keys & {"scenario", "turns", "mcp"} and bool(keys & {"replies", "tools"})


def read_included(root: Mapping, findings: Findings, file: str) -> IncludedFile:
    """The replies and tools of a file, for the scenarios that include it. A tool with a mistake has
    no name, so that its calls are not reported, too."""
    if "include" in root.entries:
        findings.add(root, "an included file includes no other", root.keys["include"])
        entries = {key: node for key, node in root.entries.items() if key != "include"}
        root = Mapping(entries, root.keys, root.mark)
    values = readable_fields(root, findings, _INCLUDED) or {}
    tools = list(values.get("tools", ()))
    for path, message in check(m.Scenario("", (), tools=tuple(tools))):
        findings.add(reach(root, path)[0], message)
        assert isinstance(path[1], int)
        tools[path[1]] = m.ToolSpec("")
    return IncludedFile(named_replies(root, findings, file), tuple(tools))


def named_replies(root: Mapping, findings: Findings, file: str) -> dict[str, NamedReply]:
    """The replies under `replies`. One with a mistake has a part that `check` skips."""
    named: dict[str, NamedReply] = {}
    node = root.entries.get("replies")
    if node is None:
        return named
    for name, inner in (filled_entries(node, "a mapping of names", findings) or {}).items():
        assert isinstance(node, Mapping)
        before = len(findings.found)
        if not re.fullmatch(REPLY_NAME, name):
            message = f"must have names of letters, digits, '_' and '-', got {excerpt(name)!r}"
            findings.add(node, message, node.keys[name])
        parts = reply(inner, findings)
        for path, message in check(m.Scenario("", (m.TurnSpec(reply=parts),))):
            # An `order` depends on the `split` that the scenario has by default.
            if "order" not in path:
                findings.add(reach(inner, path[3:])[0], message)
        if len(findings.found) > before:
            parts = (BROKEN,)
        named[name] = NamedReply(parts, count_nodes(inner), inner, file)
    return named


def included_names(root: Mapping, findings: Findings) -> list[tuple[Node, str]]:
    """The names of the files to include, each with its node."""
    node = root.entries.get("include")
    if node is None:
        return []
    names: dict[str, Node] = {}
    for item in node.items if isinstance(node, Sequence) and node.items else [node]:
        name = included_name(item, findings)
        if name in names:
            findings.add(item, f"{name!r} is included twice")
        elif name is not None:
            names[name] = item
    return [(item, name) for name, item in names.items()]


def include(included: IncludedFile, name: str, node: Node, findings: Findings) -> None:
    """Adds the replies and tools of a file to those that a scenario may use."""
    replies = findings.replies = findings.replies or {}
    for key, named in included.replies.items():
        other = replies.setdefault(key, named)
        if other is not named:
            where = f"{other.file}:{other.node.mark.line + 1}"
            findings.add(node, f"{name!r} has the reply {key!r}, which {where} has, too")
    findings.included_tools += included.tools


def locate_mistake(
    root: Mapping, path: KeyPath, message: str, findings: Findings
) -> tuple[SourceLocation, str]:
    """Where a mistake of a scenario is written, and its message. A part of a named reply is where
    it is used; a tool of an included file, at `include`."""
    if path[:1] == ("tools",) and _is_included_tool(root, path):
        return locate_path(root, ("include",)), message
    if findings.used and path[:1] == ("turns",) and "reply" in path[:-1]:
        return _locate_part(root, path, message, findings)
    return locate_path(root, path), message


def _is_included_tool(root: Mapping, path: KeyPath) -> bool:
    own = root.entries.get("tools")
    count = len(own.items) if isinstance(own, Sequence) else 0
    return "include" in root.entries and len(path) > 1 and path[1] not in range(count)


def _locate_part(
    root: Mapping, path: KeyPath, message: str, findings: Findings
) -> tuple[SourceLocation, str]:
    at = path.index("reply") + 1
    node, index, rest = reach(root, path[:at])[0], path[at], path[at + 1 :]
    assert isinstance(index, int)
    for number, item in enumerate(node.items if isinstance(node, Sequence) else [node]):
        named = findings.used.get(id(item))
        count = 1 if named is None else len(named.parts)
        if index >= count:
            index -= count
        elif named is None:
            return locate_path(root, (*path[:at], number, *rest)), message
        else:
            inner = locate_path(named.node, (index, *rest))
            where = f"{named.file}:{inner.line}:{inner.column}"
            return locate_path(root, (*path[:at], number, "use")), f"{message} (at {where})"
    return locate_path(root, path), message
