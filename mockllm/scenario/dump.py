"""A scenario as the YAML that a person would have written; the inverse of `load`.

`loads(dump(scenario)) == (scenario,)` for every scenario that can be loaded. Keys come in the order
of `schema.json`, under the names that it has for the fields of the model; values that equal the
default are left out.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from mockllm.core.jsontext import compact, parse
from mockllm.core.tokens_and_fragments import RandomSplit, Split
from mockllm.scenario import model as m
from mockllm.scenario.durations import duration, percent
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.latency_model import Latency
from mockllm.scenario.mcp_model import McpEntry, McpTry
from mockllm.scenario.part_model import (
    AutoPart,
    Citation,
    FramePart,
    Gate,
    MediaSource,
    NativePart,
    ToolPart,
)
from mockllm.scenario.reading.definitions import PROPERTIES
from mockllm.scenario.reading.media import usual_type
from mockllm.scenario.reading.tables import FIELDS
from mockllm.scenario.reading.turns import NOT_DRAWN
from mockllm.scenario.route_model import MessageSpec, Pending, RouteAnswer, RouteSpec
from mockllm.scenario.yamltext import Flow, FlowMap, MessageMap, TextFile, write

_Write = Callable[[Any], Any]

_NAMES: dict[type, str] = {
    m.Expect: "request",
    m.ExpectedOutcome: "outcome",
    FramePart: "frame",
    RouteAnswer: "answer",
}
_CAPITAL = re.compile("(?<!^)(?=[A-Z])")


def _definition(kind: type) -> str:
    """The definition of what a class of the model is written as: `text_part` of `TextPart`, `turn`
    of `TurnSpec`."""
    return _NAMES.get(kind) or _CAPITAL.sub("_", kind.__name__.removesuffix("Spec")).lower()


def dump(scenario: m.Scenario) -> str:
    """One YAML document, without `---`; several make a file when joined with `---` lines.

    A variant that changes nothing about its turn is left out, as it cannot be written.
    """
    return write(_keys(scenario) if scenario.server is None else _server(scenario))


def _server(scenario: m.Scenario) -> dict[str, Any]:
    """An MCP server, whose description is that of its scenario."""
    keys = _keys(scenario.server)
    described = {"description": scenario.description} if scenario.description else {}
    return {"mcp": keys.pop("mcp"), **described, **keys}


def _keys(value: Any) -> dict[str, Any]:
    """The mapping that an object of the model is written as."""
    keys: dict[str, Any] = {}
    for key, field, default, written in _layout(value.__class__):
        item = getattr(value, field)
        if item != default:
            keys[key] = written(item)
    return keys


@cache
def _layout(kind: Any) -> tuple[tuple[str, str, Any, _Write], ...]:
    """Key, field, default and writer of each key that a class of the model has a field for."""
    definition = _definition(kind)
    defaults = {field.name: field.default for field in fields(kind)}
    names = FIELDS.get(definition, {})
    return tuple(
        (key, name, defaults[name], _writer(key, schema))
        for key, schema in PROPERTIES[definition].items()
        if (name := names.get(key, key)) in defaults
    )


def _writer(key: str, schema: dict[str, Any]) -> _Write:
    return _BY_REFERENCE.get(schema.get("$ref", "")) or _BY_KEY.get(key, _value)


def _value(value: Any) -> Any:
    """The YAML of a value of the model; a JSON value is itself."""
    kind = type(value)
    if kind is tuple:
        # A list of words or numbers stands on one line.
        flat = all(isinstance(item, (str, int)) for item in value)
        return Flow(value) if flat else [_value(item) for item in value]
    if kind in _BY_TYPE:
        return _BY_TYPE[kind](value)
    return _keys(value) if is_dataclass(value) else value


# Values of single keys


def _duration(microseconds: int) -> Any:
    # A bare 0 needs no quotes as a number, and no unit.
    return duration(microseconds) if microseconds else microseconds


def _durations(offsets: tuple[int, ...] | str) -> Any:
    if isinstance(offsets, str):  # where an entry of a server strikes
        return offsets
    return Flow(map(_duration, offsets))


def _pairs(pairs: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return {name: _value(value) for name, value in pairs}


def _headers(pairs: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """The headers of an answer or the conditions on them, those of one name as a list."""
    values: dict[str, list[Any]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(_value(value))
    return {name: found if len(found) > 1 else found[0] for name, found in values.items()}


def _extra(by_api: tuple[tuple[m.Api, Any], ...]) -> dict[str, Any]:
    """The fields of each protocol, those of a place on one line."""
    return {
        api: {place: FlowMap(added) for place, added in places.items()} for api, places in by_api
    }


def _faults(faults: tuple[Fault, ...]) -> Any:
    if len(faults) == 1 and not faults[0].parameters():
        return faults[0].name
    return {fault.name: FlowMap(fault.parameters()) or None for fault in faults}


def _attempts(attempts: tuple[m.TurnSpec | McpTry, ...]) -> list[Any]:
    """The tries before a turn; the keys of an error stand beside `http`."""
    written = []
    for attempt in attempts:
        if isinstance(attempt, McpTry):
            written.append(_keys(attempt))
            continue
        keys = _keys(attempt)
        if attempt.http is not None:
            error = _keys(attempt.http)
            keys |= {"http": error.pop("status")} | error
        written.append({key: keys[key] for key in PROPERTIES["attempt"] if key in keys})
    return written


def _by_server(entries: tuple[McpEntry, ...]) -> dict[str, Any]:
    servers: dict[str, list[Any]] = {}
    for entry in entries:
        servers.setdefault(entry.server, []).append(_keys(entry))
    return servers


def _split(split: Split) -> Any:
    return list(split) if isinstance(split, tuple) else _value(split)


_MAX_BRACKETS = 50
"""JSON with more brackets is dumped as text: `load` bounds how deeply YAML may nest."""


def readable(text: str) -> Any:
    """The JSON value, where `load` makes exactly the same text of it; else the text itself."""
    if text.count("[") + text.count("{") > _MAX_BRACKETS:
        return text
    try:
        value = parse(text)
    except ValueError:
        return text
    return value if compact(value) == text else text


def _arguments(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    value = readable(arguments)
    return value if isinstance(value, dict) else arguments


def _json_text(text: str) -> Any:
    """The JSON value, where `load` makes exactly the same text of it; else `{raw: text}`."""
    value = text if isinstance(text, TextFile) else readable(text)
    # Null and false would count as left out.
    if value is text or value is None or value is False:
        return {"raw": text}
    return {"raw": text} if isinstance(value, dict) and set(value) == {"raw"} else value


_BY_REFERENCE: dict[str, _Write] = {
    "#/$defs/answer": lambda answer: _answer(answer),
    "#/$defs/duration": _duration,
    "#/$defs/mcp_timing": lambda ttft: {"ttft": _duration(ttft)},
    "#/$defs/mcp_answer": lambda answer: _keys(answer),
    "#/$defs/json_text": _json_text,
    "#/$defs/percent": percent,
}
_BY_KEY: dict[str, _Write] = {
    "arguments": _arguments,
    "at": _durations,
    "attempts": _attempts,
    "extra": _extra,
    "fault": _faults,
    "headers": _headers,
    "ids": lambda _: "any",
    "mcp": lambda mcp: mcp if isinstance(mcp, str) else _by_server(mcp),
    "opaque": list,
    "query": _pairs,
    "redacted": list,
    "results": _pairs,
    "split": _split,
    "then": lambda _: "restart",
}
"""The writers of values whose types do not show how they are written."""


# Values that are no plain mapping


def _match(match: m.Match) -> Any:
    if match.anything:
        return "any"
    # `ignore` is written once, and holds for all entries.
    return _keys(m.with_changed_entries(match, lambda entry: replace(entry, ignore=())))


def _result(result: m.ResultCondition) -> Any:
    return {"error": True} if result.text is None else m.written_text(result.text)


def _file_count(files: m.FileCount) -> dict[str, Any]:
    count: Any = {"least": files.least, "most": files.most}
    if files.least == files.most:
        count = files.least
    elif files.most is None:
        count = {"least": files.least}
    return {"count": count, **_keys(files)}


def _usage(usage: m.UsageSpec) -> Any:
    return _keys(usage) if usage.sent else "none"


def _recorded(recorded: m.Recorded) -> Any:
    keys = _keys(recorded)
    return keys if len(keys) > 1 else recorded.file


def _hears(hears: m.Hears) -> Any:
    keys = _keys(hears)
    return keys if len(keys) > 1 else hears.say


def _gate(gate: Gate) -> Any:
    keys = _keys(gate)
    return keys if len(keys) > 1 else gate.name


def _http(http: m.Http) -> Any:
    keys = _keys(http)
    return keys if len(keys) > 1 else http.status


def _answer(answer: RouteAnswer) -> dict[str, Any]:
    body = {answer.kind: answer.value} if answer.kind else {}
    return _keys(answer) | body


def _message(message: MessageSpec) -> dict[str, Any]:
    """A message, on one line where it is short: a conversation has many."""
    value = _keys(message.value) if message.kind == "close" else message.value
    return {message.kind: MessageMap(value) if isinstance(value, dict) else value}


def _pending(pending: Pending) -> str:
    """`3 polls` or `2s`."""
    if pending.duration:
        return duration(pending.duration)
    return f"{pending.polls} poll{'s' * (pending.polls != 1)}"


def _segments(segments: m.Segments) -> Any:
    if segments.low == segments.high:
        return segments.low
    return {"random": Flow([segments.low, segments.high])}


def _tool(part: ToolPart) -> dict[str, Any]:
    if part.action:
        values = json.loads(part.arguments or "{}")
        value = next(iter(values.values())) if len(values) == 1 else values
        return {part.action: value} | ({} if part.id is None else {"id": part.id})
    if not part.custom:
        return _keys(part)
    text = part.arguments or ""
    keys = _keys(replace(part, arguments=""))
    return {
        "input" if key == "arguments" else key: text if key == "arguments" else value
        for key, value in keys.items()
    }


def _citation(citation: Citation) -> dict[str, Any]:
    source = (
        {} if citation.document is not None or citation.search_result is not None else {"url": ""}
    )
    return source | _keys(citation)


def _media(source: MediaSource) -> dict[str, Any]:
    if not source.file:
        return {"base64": base64.b64encode(source.data).decode(), "type": source.type}
    type = {} if usual_type(source.file) == source.type else {"type": source.type}
    return {"file": source.file, **type}


def _frame(part: FramePart) -> dict[str, Any]:
    keys = _keys(replace(part, first=False))
    if isinstance(part.data, TextFile):
        keys = {"data_file": part.data.file} | _keys(replace(part, data=None, first=False))
    return {"frame": keys, "api": part.api} | ({"first": True} if part.first else {})


def _native(part: NativePart) -> dict[str, Any]:
    value = part.value
    return {
        "native": {"file": value.file} if isinstance(value, TextFile) else value,
        "api": part.api,
    }


def _turn(turn: m.TurnSpec) -> dict[str, Any]:
    keys = _whole(turn)
    base = _whole(replace(turn, recorded=None)) if turn.branches else {}
    when = [branch for branch in (_branch(branch, base) for branch in turn.branches) if branch]
    if when:
        keys["when"] = when[0] if len(when) == 1 else when
    return keys


def _branch(branch: m.Branch, base: dict[str, Any]) -> dict[str, Any]:
    """The keys that a branch changes of its turn, with its conditions; {} where it changes
    nothing."""
    changed = _changes(base, branch.turn)
    if not changed:
        return {}
    condition = {} if branch.condition is None else _keys(branch.condition)
    return ({} if branch.api is None else {"api": branch.api}) | condition | changed


def _changes(base: dict[str, Any], turn: m.TurnSpec) -> dict[str, Any]:
    """The keys whose values differ from those of another turn; None for keys that are removed."""
    own = _whole(turn)
    # A reply replaces the other turn's `http`, and the other way round.
    removed = [key for key in base if key not in own and key not in ("reply", "http", "one_of")]
    changed = {key: value for key, value in own.items() if base.get(key) != value}
    return changed | dict.fromkeys(removed)


def _whole(turn: m.TurnSpec) -> dict[str, Any]:
    """The keys of a turn but `when`; of an entry of `one_of` those that differ from the turn's."""
    keys = _keys(replace(turn, branches=(), one_of=()))
    if turn.one_of:
        base = {key: value for key, value in keys.items() if key not in NOT_DRAWN}
        drawn = [({"weight": d.weight} if d.weight > 1 else {}, d.turn) for d in turn.one_of]
        written = [weight | _changes(base, form) for weight, form in drawn]
        plain = [entry["reply"] if entry.keys() == {"reply"} else entry for entry in written]
        keys["one_of"] = plain
    return keys


_BY_TYPE: dict[type, _Write] = {
    m.Match: _match,
    m.TextCondition: m.written_text,
    m.CombinedText: m.written_text,
    m.FileCount: _file_count,
    m.ResultCondition: _result,
    RouteSpec: str,
    m.UsageSpec: _usage,
    m.TurnSpec: _turn,
    m.Recorded: _recorded,
    m.Hears: _hears,
    m.Http: _http,
    Gate: _gate,
    RouteAnswer: _answer,
    MessageSpec: _message,
    Pending: _pending,
    m.Segments: _segments,
    RandomSplit: lambda split: {"random": Flow([split.low, split.high])},
    ToolPart: _tool,
    Citation: _citation,
    MediaSource: _media,
    FramePart: _frame,
    NativePart: _native,
    AutoPart: lambda part: {"auto": {"tokens": part.tokens} if part.tokens else True},
    Latency: lambda latency: latency.text,
}
