"""Readers of faults: from YAML (`fault:`), and from the text of an option or a header."""

from __future__ import annotations

import re
from typing import Any

from mockllm.errors import UsageError
from mockllm.scenario.durations import read_duration
from mockllm.scenario.fault_model import Fault, Place
from mockllm.scenario.reading.nodes import Mapping, Node, Scalar
from mockllm.scenario.reading.values import (
    Findings,
    Reader,
    Table,
    boolean,
    choice,
    duration,
    fields,
    integer,
    is_null,
    text,
)
from mockllm.scenario.reading.wording import suggestion

__all__ = ["FAULTS", "OF_SERVERS", "PLACE_KEYS", "TABLES", "faults", "parse_faults"]

_COUNT = re.compile(r"(\d{1,9}) ?(events?|bytes?)\Z", re.ASCII)
_EVENT = re.compile(r"event ?(\d{1,9})\Z", re.ASCII)
_CALL = re.compile(r"(\S+) arguments\Z")
_CONTENT = ("text", "reasoning", "refusal")
_BEFORE = ("first", "finish", "usage", "done")

_MOST = 1_000_000_000


def _after(node: Node, findings: Findings) -> Place | None:
    value = node.value if isinstance(node, Scalar) else ""
    count = _COUNT.match(value)
    if count is not None:
        return Place("events" if count[2].startswith("event") else "bytes", int(count[1]))
    try:
        return Place("time", read_duration(value))
    except ValueError:
        findings.must_be(node, "a place such as '3 events', '120 bytes' or '1.2s'")
        return None


def _inside(node: Node, findings: Findings) -> Place | None:
    value = text(node, findings)
    if value is None:
        return None
    if (event := _EVENT.match(value)) is not None and event[1].strip("0"):
        return Place("in event", int(event[1]))
    if value == "character":
        return Place("in character")
    if value in _CONTENT:
        return Place("in content", name=value)
    if (call := _CALL.match(value)) is not None:
        return Place("in call", name=call[1])
    findings.must_be(
        node, "'event 3', 'character', 'text', 'reasoning', 'refusal' or 'ID arguments'"
    )
    return None


def _before(*names: str) -> Reader:
    read = choice(*names)

    def place(node: Node, findings: Findings) -> Place | None:
        name = read(node, findings)
        return None if name is None else Place("before", name=name)

    return place


_PLACE: Table = {"after": _after, "inside": _inside, "before": _before(*_BEFORE)}
PLACE_KEYS = tuple(_PLACE)
_EVENT_NUMBER = {"event": integer(1, _MOST)}
_NUMBER = {"number": integer(1, _MOST)}


def _for(node: Node, findings: Findings) -> int | str | None:
    """A duration, or `ever`."""
    if isinstance(node, Scalar) and node.value == "ever":
        return "ever"
    value: int | None = duration(node, findings)
    return value


FAULTS: dict[str, Table] = {
    "refuse": {"end": choice("close", "reset")},
    "status": {
        "status": integer(400, 599),
        "body": choice("json", "html", "empty", "other"),
        "retry_after": duration,
        "retry_form": choice("service", "seconds", "date", "ms"),
        "should_retry": boolean,
    },
    "cut": {**_PLACE, "end": choice("close", "reset", "chunk", "orderly")},
    "stall": {**_PLACE, "before": _before("headers", *_BEFORE), "for": _for},
    "drip": {"rate": integer(1, _MOST), "every": duration},
    "burst": {"pause": duration},
    "garble": {
        "what": choice("json", "content-type", "html", "error", "gzip", "empty"),
        **_EVENT_NUMBER,
    },
    "error": {**_PLACE, "kind": choice("overloaded", "rate_limit", "server_error")},
    "duplicate": _EVENT_NUMBER,
    "reorder": _EVENT_NUMBER,
    "keepalive-closed": {},
    "redirect": {"status": integer(307, 308), "circle": boolean},
    "slow-accept": _NUMBER,
    "limit": _NUMBER,
}
"""The parameters of each fault, by its name."""

OF_SERVERS = frozenset({"slow-accept", "limit"})
"""The faults of connections, which only a server can have."""

_NEEDED: dict[str, tuple[str, ...]] = {
    "cut": PLACE_KEYS,
    "error": (),
    "drip": ("rate", "every"),
    "burst": ("pause",),
}
"""By the name of a fault, parameters of which it needs one; no other one needs any."""

TABLES: dict[str, Table] = {
    f"fault_{name}": table for name, table in FAULTS.items() if table and name not in OF_SERVERS
}
"""The tables above by the names of their definitions in the JSON Schema."""


def fault(name: str, node: Node, findings: Findings, *, bare: bool = False) -> Fault | None:
    """A fault, from the mapping of its parameters; null is one without any.

    Args:
        bare: whether the node is the name alone.
    """
    table = FAULTS[name]
    values: dict[str, Any] | None = {}
    if not bare and not is_null(node):
        values = fields(node, findings, table)
    if values is None:
        return None
    given = set(node.entries) if isinstance(node, Mapping) else set()
    places = [key for key in PLACE_KEYS if key in given and key in table]
    needed = _NEEDED.get(name, ())
    if needed and not given & set(needed):
        findings.add(node, f"needs {_one_of(needed)}, such as {_EXAMPLES[name]}")
    if len(places) > 1:
        findings.add(node, f"strikes at one place; keep one of {', '.join(places)}")
    if {"rate", "every"} <= given:
        findings.add(node, "has one speed; keep 'rate' or 'every'")
    place = next((values.pop(key) for key in places if key in values), None)
    ordered = tuple((key, values[key]) for key in table if key in values)
    return Fault(name, place, ordered)


_EXAMPLES = {
    "cut": "after: 3 events",
    "drip": "rate: 100, in bytes a second, or every: 2s, for each byte",
    "burst": "pause: 300ms",
}


def _one_of(keys: tuple[str, ...]) -> str:
    return repr(keys[0]) if len(keys) == 1 else "one of " + ", ".join(map(repr, keys))


def faults(node: Node, findings: Findings) -> tuple[Fault, ...] | None:
    """The faults of a turn: the name of one without parameters, or a mapping of names to
    parameters, which are applied in that order."""
    if isinstance(node, Scalar):
        if node.value in FAULTS and node.value not in OF_SERVERS:
            only = fault(node.value, node, findings, bare=True)
            return None if only is None else (only,)
        findings.add(node, _unknown(node.value))
        return None
    if not isinstance(node, Mapping) or not node.entries:
        findings.must_be(node, "the name of a fault, or such as {cut: {after: 3 events}}")
        return None
    found = []
    for name, inner in node.entries.items():
        if name not in FAULTS or name in OF_SERVERS:
            findings.add(node, _unknown(name), node.keys[name])
        elif (one := fault(name, inner, findings)) is not None:
            found.append(one)
    return tuple(found) or None


def _reader(name: str) -> Reader:
    return lambda node, findings: fault(name, node, findings)


TABLES["faults"] = {name: _reader(name) for name in FAULTS if name not in OF_SERVERS}


def _unknown(name: str) -> str:
    if name in OF_SERVERS:
        example = f"mockllm serve --fault {name}:number=2"
        return f"{name} is a fault of a server's connections, such as `{example}`"
    known = [one for one in FAULTS if one not in OF_SERVERS]
    return (
        f"there is no fault {name!r}{suggestion(name, known) or '; there are: ' + ', '.join(known)}"
    )


class _NoVocabulary:
    apis: tuple[str, ...] = ()

    def quirk_problem(self, name: str) -> str | None:
        return None

    def fault_mistakes(self, scenario: object) -> tuple[()]:
        return ()


def parse_faults(written: str) -> tuple[Fault, ...]:
    """The faults of a text: `NAME[:KEY=VALUE[,KEY=VALUE...]]`, several joined by `;`.

    Raises:
        UsageError: what is wrong, and what there is.
    """
    findings = Findings(_NoVocabulary())
    found = [_parsed(one.strip(), findings) for one in written.split(";")]
    if findings.found:
        raise UsageError(
            f"fault {written!r}: " + "; ".join(_message(*one) for one in findings.found)
        )
    return tuple(one for one in found if one is not None)


def _message(node: Node, mark: Any, message: str) -> str:
    where = mark if isinstance(mark, str) and mark else node.mark
    return f"{where} {message}" if where else message


def _parsed(written: str, findings: Findings) -> Fault | None:
    name, colon, rest = written.partition(":")
    name = name.strip()
    node = Mapping({}, {}, name)
    if name not in FAULTS:
        known = ", ".join(FAULTS)
        hint = suggestion(name, FAULTS) or f"; there are: {known}"
        findings.add(Scalar(name, True, ""), f"there is no fault {name!r}{hint}")
        return None
    for pair in rest.split(",") if colon else ():
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals:
            findings.add(node, f"needs KEY=VALUE after the colon, got {pair.strip()!r}")
            return None
        node.entries[key] = Scalar(value.strip(), True, key)
        node.keys[key] = name
    return fault(name, node, findings)
