"""Readers of the conditions on a request: `match` of a scenario and `request` of a turn."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from mockllm.core.patterns import PatternError, compile_pattern
from mockllm.scenario import model as m
from mockllm.scenario.ignoring import flaw_of
from mockllm.scenario.reading.nodes import Mapping, Node, Scalar, Sequence
from mockllm.scenario.reading.tables import called_name, table
from mockllm.scenario.reading.values import (
    Findings,
    Reader,
    Table,
    boolean,
    fields,
    filled_entries,
    integer,
    is_null,
    json_value,
    keys,
    line,
    listing,
    matching_text,
    record,
    scalar,
    text,
)

T = TypeVar("T")

_names = listing(called_name, "tool names")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")


def _pattern(node: Node, findings: Findings) -> str | None:
    value = text(node, findings)
    if value is None:
        return None
    try:
        compile_pattern(value)
    except PatternError as problem:
        findings.add(node, str(problem))
        return None
    return value


def _glob(node: Node, findings: Findings) -> str | None:
    value = line(node, findings)
    if value is None or "[" not in value or "]" in value.partition("[")[2]:
        return value
    findings.must_be(node, "a pattern such as gpt-4*", "; its '[' is never closed")
    return None


def _single(node: Node, findings: Findings, table: Table) -> tuple[Any, Any] | None:
    """The only key of a mapping, and its value as read."""
    values = fields(node, findings, table)
    if values is None or not isinstance(node, Mapping):
        return None
    if len(node.entries) != 1:
        findings.add(node, f"must have exactly one key, of {', '.join(table.readers)}")
        return None
    return next(iter(values.items()), None)


def condition(node: Node, findings: Findings) -> m.AnyText | None:
    """A substring, or a mapping with one operator."""
    if isinstance(node, Sequence):
        findings.must_be(
            node, "a string", "; one of several is {any: [...]}, each of them {all: [...]}"
        )
        return None
    if not isinstance(node, Mapping):
        value = text(node, findings)
        return None if value is None else m.TextCondition("contains", value)
    return _text(_single(node, findings, _CONDITION))


def _text(single: tuple[Any, Any] | None) -> m.AnyText | None:
    if single is None:
        return None
    op, value = single
    if op in ("any", "all", "not"):
        return m.CombinedText(op, (value,) if op == "not" else value)
    return m.TextCondition(op, value)


_CONDITION = table(
    "condition",
    regex=_pattern,
    hidden="two hexadecimal digits",
    any=(_conditions := listing(condition, "conditions")),
    all=_conditions,
    **{"not": condition},
)


def _result(node: Node, findings: Findings) -> m.ResultCondition | None:
    """A condition on the result of a call; a number, as written, and true or false are equal."""
    if isinstance(node, Scalar) and not is_null(node):
        value = scalar(node)
        written = node.value.lower() if isinstance(value, bool) else node.value
        op: Literal["contains", "equals"] = "contains" if isinstance(value, str) else "equals"
        return m.ResultCondition(m.TextCondition(op, written))
    if not isinstance(node, Mapping):
        findings.must_be(node, "a string, or a mapping with one of " + ", ".join(_RESULT.readers))
        return None
    single = _single(node, findings, _RESULT)
    if single is None or single[0] != "error":
        text = _text(single)
        return None if text is None else m.ResultCondition(text)
    if not single[1]:
        findings.add(node, "must be {error: true}; to take any result, leave the call out")
    return m.ResultCondition(error=True)


def _result_text(node: Node, findings: Findings) -> m.AnyText | None:
    """A condition inside of one on a result."""
    if isinstance(node, Mapping) and "error" in node.entries:
        message = (
            "'error' cannot stand inside of 'any', 'all' or 'not'; combine conditions of the whole "
            "'request'"
        )
        findings.add(node, message)
        return None
    result = _result(node, findings)
    return None if result is None else result.text


_RESULT = table(
    "result",
    regex=_pattern,
    error=boolean,
    any=(_texts := listing(_result_text, "conditions")),
    all=_texts,
    **{"not": _result_text},
)


_Pairs = tuple[tuple[str, T], ...]
_Read = Callable[[Node, Findings], T | None]


def _pairs(what: str, read: _Read[T]) -> _Read[_Pairs[T]]:
    """A reader of mappings of any keys; `read` reads each value."""

    def read_all(node: Node, findings: Findings) -> _Pairs[T] | None:
        entries = filled_entries(node, f"a mapping of {what}", findings)
        if entries is None:
            return None
        pairs = [(key, read(inner, findings)) for key, inner in entries.items()]
        return tuple([(key, value) for key, value in pairs if value is not None])

    return read_all


header_value = matching_text(r"[^\x00-\x08\x0a-\x1f\x7f]*", "a header value, in one line")
"""A reader of the value of a header."""
_several_values = listing(header_value, "header values")

_POSITION = re.compile(r"0|[1-9][0-9]{0,3}")


def is_position(key: str) -> bool:
    """Whether a key of `results` may name a call by its position in the turn before, from 0."""
    return _POSITION.fullmatch(key) is not None


def headers(read: _Read[T]) -> _Read[_Pairs[T]]:
    """A reader of conditions on headers: names, put into lower case, with what `read` reads."""
    return _headers(_pairs("header names to values", read))


def sent_headers(node: Node, findings: Findings) -> _Pairs[str] | None:
    """The headers of an answer: names, put into lower case, with a value or a list of values."""
    found = _read_sent(node, findings)
    if found is None:
        return None
    return tuple([(name, value) for name, values in found for value in values])


def _header_values(node: Node, findings: Findings) -> tuple[str, ...] | None:
    values: tuple[str, ...] | None
    if isinstance(node, Sequence):
        values = _several_values(node, findings)
    else:
        value = header_value(node, findings)
        values = None if value is None else (value,)
    return values


def _headers(read_pairs: _Read[_Pairs[T]]) -> _Read[_Pairs[T]]:

    def read_all(node: Node, findings: Findings) -> _Pairs[T] | None:
        pairs = read_pairs(node, findings)
        if pairs is None or not isinstance(node, Mapping):
            return None
        seen: set[str] = set()
        for name, mark in node.keys.items():
            if not _HEADER.match(name):
                findings.add(node, f"{name!r} cannot be the name of an HTTP header", mark)
            elif name.lower() in seen:
                message = f"header {name!r} is there twice; upper and lower case are the same"
                findings.add(node, message, mark)
            seen.add(name.lower())
        return tuple([(name.lower(), value) for name, value in pairs])

    return read_all


_read_sent = _headers(_pairs("header names to values", _header_values))

_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")


def _file(node: Node, findings: Findings) -> str | None:
    """A digest, a URL, an id or a pattern for a media type, in one line."""
    value = line(node, findings)
    if value is None or not value.startswith("sha256:") or _SHA256.fullmatch(value):
        return value
    findings.must_be(node, "sha256: and 64 hexadecimal digits in lower case")
    return None


_file_list = listing(_file, "digests, URLs, ids or media types")
_natural = integer(0)
_MANY = table("count")


def _count(node: Node, findings: Findings) -> tuple[int, int | None] | None:
    """The fewest and the most; None: any number."""
    if not isinstance(node, Mapping):
        number = _natural(node, findings)
        return None if number is None else (number, number)
    values = fields(node, findings, _MANY)
    if values is None:
        return None
    if not node.entries:
        findings.add(node, f"must have one of {keys(_MANY.readers)}")
    least, most = values.get("least", 0), values.get("most")
    if most is not None and most < least:
        findings.add(node, f"can never hold: at least {least} and at most {most}")
    return least, most


_FILE_COUNT = table(
    "file_count",
    count=_count,
    type="a media type, such as image/*",
    digest="sha256: and 64 hexadecimal digits in lower case",
)


def _files(node: Node, findings: Findings) -> tuple[str, ...] | m.FileCount | None:
    """The files one by one, or how many there are."""
    if not isinstance(node, Mapping):
        files: tuple[str, ...] | None = _file_list(node, findings)
        return files
    values = fields(node, findings, _FILE_COUNT)
    if values is None:
        return None
    if not node.entries:
        findings.add(node, f"must have one of {keys(_FILE_COUNT.readers)}")
    least, most = values.pop("count", (1, None))
    return m.FileCount(least, most, **values)


def _ignored_part(node: Node, findings: Findings) -> str | None:
    value = line(node, findings)
    flaw = flaw_of(value) if value is not None else None
    if flaw is None:
        return value
    findings.add(node, flaw)
    return None


ignored = listing(_ignored_part, "what is not compared, such as uuid")


def _entry(node: Node, findings: Findings) -> m.Match | None:
    """Conditions inside of a `match`."""
    if isinstance(node, Mapping) and "ignore" in node.entries:
        message = "belongs to the whole 'match', not to a part of it"
        findings.add(node.entries["ignore"], message)
        return None
    return _conditions_of(m.Match, node, findings, _ENTRY)


def _conditions_of(
    make: Callable[..., T], node: Node, findings: Findings, table: Table, hint: str = ""
) -> T | None:
    """Conditions, of which there must be one, or what they ignore; None also where one of them
    cannot be read."""
    before = len(findings.found)
    values = fields(node, findings, table)
    if len(findings.found) > before or values is None:
        return None
    if not values:
        findings.add(node, f"must have a condition{hint}")
        return None
    return make(**table.arguments(values))


_MATCH = table(
    "match",
    ignore=ignored,
    any=(_entries := listing(_entry, "mappings of conditions")),
    all=_entries,
    model=_glob,
    user=condition,
    user_files=_files,
    system=condition,
    tools=_names,
    headers=headers(condition),
    query=_pairs("parameter names to conditions", condition),
    **{"not": _entry},
)
_ENTRY = Table({k: r for k, r in _MATCH.readers.items() if k != "ignore"}, (), _MATCH.fields)


NO_CONDITION = "; 'any' answers whatever nothing else does"
"""The hint for a `match` without conditions."""


def match(node: Node, findings: Findings) -> m.Match | None:
    """`any`, or conditions; None also where one of them cannot be read."""
    if isinstance(node, Scalar):
        if node.value == "any":
            return m.Match(anything=True)
        hint = "" if is_null(node) else "; a text of the user is 'match: {user: TEXT}'"
        findings.must_be(node, "'any', or a mapping with " + keys(_MATCH.readers), hint)
        return None
    return _conditions_of(m.Match, node, findings, _MATCH, NO_CONDITION)


def _schema(node: Node, findings: Findings) -> Any:
    if not isinstance(node, Scalar) or not is_null(node):
        value = json_value(node, findings)
        if isinstance(value, (dict, bool)):
            return value
    findings.must_be(node, "a JSON Schema: a mapping")
    return None


def _expected_entry(node: Node, findings: Findings) -> m.Expect | None:
    """Conditions inside of a `request`."""
    return _conditions_of(m.Expect, node, findings, REQUEST)


_expected_entries = listing(_expected_entry, "mappings of conditions")
CONDITIONS: dict[str, Reader] = {
    "results": _pairs("tool call ids to results", _result),
    "offers": _names,
    "user": condition,
    "user_files": _files,
    "system": condition,
    "schema": _schema,
    "any": _expected_entries,
    "all": _expected_entries,
    "not": _expected_entry,
}
"""The readers of conditions of a turn, as far as `schema.json` does not say how they are read."""

REQUEST = table("request", **CONDITIONS)
CONDITION_KEYS = tuple(REQUEST.readers)
expectation = record(m.Expect, REQUEST)
