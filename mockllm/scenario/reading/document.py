"""The reader of whole documents.

Readers check keys, types and ranges. Rules between values (calls and their tools, fragments and
their value) are in `check`, which gets the scenario that is read here.
"""

from __future__ import annotations

from mockllm.scenario import model as m
from mockllm.scenario.ignoring import with_ignored
from mockllm.scenario.reading import mcp
from mockllm.scenario.reading.conditions import match
from mockllm.scenario.reading.latency import drawn_or_exact, latency
from mockllm.scenario.reading.nodes import Mapping, Node, Scalar, Sequence
from mockllm.scenario.reading.parts import rule
from mockllm.scenario.reading.routes import route
from mockllm.scenario.reading.tables import table
from mockllm.scenario.reading.turns import obey, turn, usage
from mockllm.scenario.reading.values import (
    Findings,
    api_name,
    listing,
    readable_fields,
    record,
    scalar,
    text,
)
from mockllm.scenario.route_model import RouteSpec

_tool_spec = record(m.ToolSpec, table("tool"))
_apis = listing(api_name, "apis")


def _tool(node: Node, findings: Findings) -> m.ToolSpec:
    # A tool that cannot be read stays in the list without a name, so that its calls are not
    # reported as calls of an unknown tool.
    return _tool_spec(node, findings) or m.ToolSpec("")


def _each_once(node: Node, findings: Findings) -> tuple[m.Api, ...] | None:
    names: tuple[m.Api, ...] | None = _apis(node, findings)
    if names is not None and len(set(names)) < len(names):
        findings.add(node, "must name each api once")
    return names


def _seed(node: Node, findings: Findings) -> str | None:
    if isinstance(node, Scalar) and type(scalar(node)) is int:
        return node.value
    return text(node, findings)


def _turns(node: Node, findings: Findings) -> tuple[m.TurnSpec, ...] | None:
    if isinstance(node, Sequence) and node.items:
        return tuple([turn(item, findings) for item in node.items])
    if isinstance(node, Sequence):
        findings.add(node, "must have at least one turn")
    else:
        findings.must_be(node, "a list of turns", "; each begins with '- '")
    return None


tools = listing(_tool, "tools")

_SCENARIO = table(
    "scenario",
    scenario="a name of lower-case letters, digits and '-', such as two-tools",
    route=route,
    apis=_each_once,
    match=match,
    tools=tools,
    seed=_seed,
    defaults=drawn_or_exact(
        record(m.Defaults, table("defaults", split=rule, latency=latency, usage=usage))
    ),
    obey=obey,
    turns=_turns,
    mcp=mcp.of_scenario,
    # Read before, by `mockllm.scenario.reuse`.
    include=lambda *_: None,
    replies=lambda *_: None,
)


def scenario(node: Node, findings: Findings) -> m.Scenario | None:
    """The scenario that a document describes; None where the document is no mapping.

    Where findings are added, the scenario is incomplete and serves only to find more problems.
    """
    if not isinstance(node, Mapping):
        empty = isinstance(node, Scalar) and node.plain and not node.value
        message = "the document is empty" if empty else "must be a mapping"
        findings.add(node, f"{message}; a scenario begins with 'scenario: NAME' and has 'turns'")
        return None
    if mcp.is_server(node):
        return mcp.server(node, findings)
    values = readable_fields(node, findings, _SCENARIO) or {}
    if "route" in node.entries and "route" not in values:
        values["route"] = RouteSpec("", "")  # so that its answers are not reported, too
    restart = values.pop("then", None) is not None
    any_ids = values.pop("ids", None) is not None
    if findings.included_tools:
        values["tools"] = (*values.get("tools", ()), *findings.included_tools)
    name, turns = values.pop("scenario", ""), values.pop("turns", ())
    return with_ignored(m.Scenario(name, turns, restart=restart, any_ids=any_ids, **values))
