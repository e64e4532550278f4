"""Readers of turns: replies, HTTP errors, timing, the wire format, expectations and variants."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from mockllm.core.text import similar_names
from mockllm.scenario import model as m
from mockllm.scenario.reading.conditions import (
    CONDITION_KEYS,
    CONDITIONS,
    REQUEST,
    expectation,
    ignored,
    sent_headers,
)
from mockllm.scenario.reading.definitions import PROPERTIES
from mockllm.scenario.reading.faults import faults
from mockllm.scenario.reading.files import tape_path
from mockllm.scenario.reading.jobs import job
from mockllm.scenario.reading.latency import drawn_or_exact, latency
from mockllm.scenario.reading.nodes import Mapping, Node, Scalar, Sequence
from mockllm.scenario.reading.parts import ends, error, gate, reply
from mockllm.scenario.reading.routes import answer
from mockllm.scenario.reading.sockets import messages
from mockllm.scenario.reading.tables import inner_path, path_of_file, table, turn_name
from mockllm.scenario.reading.values import (
    Findings,
    Reader,
    Table,
    boolean,
    choice,
    duration,
    excerpt,
    fields,
    filled_entries,
    integer,
    is_null,
    json_value,
    line,
    listing,
    matching_text,
    record,
    scalar,
    suggestion,
    text,
    unknown,
)


def _fields(node: Node, findings: Findings) -> dict[str, Any] | None:
    entries = filled_entries(node, "a mapping of fields to their values", findings)
    return None if entries is None else json_value(node, findings)


_PLACES = table(
    "extra",
    **{key: _fields for key in PROPERTIES["extra"] if key != "reasoning"},
    reasoning=record(dict, table("reasoning_place")),
)
_KINDS = (
    ("choice", "candidate"),
    ("message", "response", "interaction", "content", "metadata"),
    ("item", "text", "message"),
)
"""Places of one kind, in the words of several services."""


def extra(node: Node, findings: Findings) -> tuple[tuple[m.Api, Any], ...] | None:
    """By protocol, the fields of each place."""
    entries = filled_entries(node, "a mapping of APIs to their fields", findings)
    if entries is None or not isinstance(node, Mapping):
        return None
    by_api: list[tuple[m.Api, Any]] = []
    for api, item in entries.items():
        if api not in findings.vocabulary.apis():
            unknown(node, api, findings, findings.vocabulary.apis())
        else:
            by_api.append((api, _by_place(item, api, findings)))
    return tuple(by_api)


def _by_place(node: Node, api: str, findings: Findings) -> dict[str, Any]:
    """The fields of each place that an API has; others are added with its word for them."""
    places = findings.vocabulary.places(api)
    if not isinstance(node, Mapping) or not node.entries:
        findings.add(node, f"must be a mapping of places to fields; {api} has {', '.join(places)}")
        return {}
    read: dict[str, Any] = {}
    for name, item in node.entries.items():
        if name in places:
            read[name] = _PLACES.readers[name](item, findings)
            continue
        kinds = [word for kind in _KINDS if name in kind for word in kind if word in places]
        hint = f"; there it is {kinds[0]!r}" if kinds else suggestion(name, places)
        message = f"{excerpt(name)!r} is no place of {api}, which has {', '.join(places)}{hint}"
        findings.add(node, message, node.keys[name])
    return read


_MAX_SEGMENT = 16 * 1024 * 1024
_REMOVED: Any = object()
"""The null with which a variant removes a key of its turn."""
_NO_API: Any = ""

_MOST_TOKENS = PROPERTIES["usage"]["input"]["maximum"]
_tokens = integer(0, _MOST_TOKENS)


def _cached(node: Node, findings: Findings) -> Any:
    """A count, or `prefix`."""
    if isinstance(node, Scalar) and type(scalar(node)) is not int:
        return choice("prefix")(node, findings)
    return _tokens(node, findings)


_USAGE = table("usage", cached=_cached)
_mapped_usage = record(m.UsageSpec, _USAGE)


def usage(node: Node, findings: Findings) -> m.UsageSpec | None:
    """Counts, or `none`."""
    if isinstance(node, Scalar):
        if node.value == "none":
            return m.UsageSpec(sent=False)
        findings.must_be(node, "a mapping with the keys " + ", ".join(_USAGE.readers) + ", or none")
        return None
    return _mapped_usage(node, findings)


_timing = drawn_or_exact(
    record(m.Timing, table("timing", at=listing(duration, "durations"), latency=latency))
)
_HTTP = table("http", headers=sent_headers, error=error)
_mapped_http = record(m.Http, _HTTP)


def http(node: Node, findings: Findings) -> m.Http | None:
    """A status, or a mapping with it."""
    if not isinstance(node, Scalar):
        return _mapped_http(node, findings)
    status = _HTTP.readers["status"](node, findings)
    return None if status is None else m.Http(status)


_limits = listing(choice(*m.LIMITS), "limits, such as max_tokens")


def obey(node: Node, findings: Findings) -> tuple[m.Limit, ...] | None:
    """Limits of a request, each once."""
    limits: tuple[m.Limit, ...] | None = _limits(node, findings)
    if limits is not None and len(set(limits)) < len(limits):
        findings.add(node, "must name each limit once")
    return limits


_place = matching_text(
    r"(?:/(?:[^~]|~[01])*)*|\?.*|\{redacted[0-9]*\}",
    "a JSON pointer, such as /messages/0/content, or ?name or {redacted}",
)
_RECORDED = table(
    "recorded",
    request="a digest: 16 hexadecimal digits",
    redacted=listing(_place, "places of a request"),
    hidden="two hexadecimal digits, or --, for each place of redacted",
    ignore=ignored,
)


def _recorded(node: Node, findings: Findings) -> m.Recorded | None:
    if isinstance(node, Mapping):
        values = fields(node, findings, _RECORDED)
    else:
        values = {"file": name} if (name := inner_path(node, findings)) else None
    if values is None:
        return None
    advice = "put it there, or take the key away to play the reply"
    path = path_of_file(values["file"], node, findings, tape_path, advice)
    return m.Recorded(path=path, **values)


_SEGMENTS = ends("segments", _MAX_SEGMENT)
_segment = integer(1, _MAX_SEGMENT)
_sizes = listing(_segment, "sizes in bytes")


def _segments(node: Node, findings: Findings) -> m.Segments | tuple[int, ...] | None:
    if isinstance(node, Scalar):
        size = _segment(node, findings)
        return None if size is None else m.Segments(size, size)
    if isinstance(node, Sequence):
        sizes: tuple[int, ...] | None = _sizes(node, findings)
        return sizes
    values = fields(node, findings, _SEGMENTS)
    return None if values is None else m.Segments(*values["random"])


def _quirk(node: Node, findings: Findings) -> str | None:
    name = line(node, findings)
    if name is None:
        return None
    problem = findings.vocabulary.quirk_problem(name)
    if problem is not None:
        findings.add(node, problem)
        return None
    return name


_wire = record(
    m.Wire,
    table(
        "wire",
        comments=record(m.Comments, table("comments")),
        segments=_segments,
        quirks=listing(_quirk, "names of quirks"),
    ),
)

_ANSWERED: dict[str, Reader] = {
    "reply": reply,
    "usage": usage,
    "timing": _timing,
    "gate": gate,
    "wire": _wire,
    "fault": faults,
}
_ATTEMPT = table(
    "attempt",
    http=http,
    headers=sent_headers,
    error=error,
    recorded=_recorded,
    extra=extra,
    **_ANSWERED,
)
_OF_ERRORS = ("headers", "retry_after", "error")
_FAILED = ("http", *_OF_ERRORS, "recorded", "extra")
"""The keys that an earlier try with an error may have."""


def _attempt(node: Node, findings: Findings) -> m.TurnSpec | None:
    """`{http: 429, retry_after: 2s}`, or all keys inside of `http`; a recorded try needs none.
    `{reply: [...], fault: ...}` is an answer; without a `reply` it is that of the turn."""
    if isinstance(node, Scalar) and type(scalar(node)) is int:
        findings.must_be(node, "a try", f"; write {{http: {node.value}}}")
        return None
    values = fields(node, findings, _ATTEMPT)
    if values is None or not isinstance(node, Mapping):
        return None
    inner = node.entries.get("http")
    is_answer = node.entries.keys().isdisjoint(_FAILED) or values.keys() == {"recorded"}
    if inner is None and is_answer:
        return m.TurnSpec(**values) if values else None
    if inner is None:
        findings.add(
            node,
            "needs 'http', the status of the error, or 'reply' or 'fault' for an answer; a "
            "recorded try may do without",
        )
        return None
    for key in [key for key in node.entries if key not in (*_FAILED, "fault", "gate")]:
        findings.add(node, f"{key!r} is part of an answer, and this try gets an error; keep one")
        values.pop(key, None)
    values = _whole_error(node, findings, values, _OF_ERRORS)
    return m.TurnSpec(**values) if "http" in values else None


def _whole_error(
    node: Mapping, findings: Findings, values: dict[str, Any], keys: tuple[str, ...]
) -> dict[str, Any]:
    """Values with those of an error, which may stand beside `http`, in it."""
    inner = node.entries.get("http")
    for key in keys:
        if key not in node.entries:
            continue
        if inner is None:
            findings.add(node, f"{key!r} is part of an error, and goes with 'http'", node.keys[key])
        elif isinstance(inner, Mapping) and key in inner.entries:
            findings.add(node, f"{key!r} is written twice, here and under 'http'", node.keys[key])
    own = {key: values[key] for key in keys if key in values}
    others = {key: value for key, value in values.items() if key not in keys}
    if "http" in others:
        others["http"] = replace(others["http"], **own)
    return others


def _maybe_empty(several: Reader) -> Reader:
    """A reader of lists; an empty list means that there are none."""

    def read(node: Node, findings: Findings) -> tuple[Any, ...] | None:
        if isinstance(node, Sequence) and not node.items:
            return ()
        values: tuple[Any, ...] | None = several(node, findings)
        return values

    return read


def _mappings(table: Table, of: str) -> Reader:
    several = _maybe_empty(listing(record(dict, table), of))

    def read(node: Node, findings: Findings) -> list[Any] | None:
        values = several(node, findings)
        return None if values is None else list(values)

    return read


_outcome = record(
    m.ExpectedOutcome,
    table(
        "outcome",
        tool_calls=_mappings(table("call", id=line, arguments=json_value), "tool calls"),
        usage=usage,
        opaque=_maybe_empty(listing(text, "opaque values")),
        errors=_mappings(
            table("mistake", kind="a kind of error, such as malformed_arguments"), "errors"
        ),
    ),
)


_HEARS = record(m.Hears, table("hears"))


def _hears(node: Node, findings: Findings) -> m.Hears | None:
    """The words alone, or a mapping with them."""
    if isinstance(node, Mapping):
        heard: m.Hears | None = _HEARS(node, findings)
        return heard
    words = text(node, findings)
    return None if words is None else m.Hears(words)


_REPLIES = ("reply", "http", "one_of")
_IN_BRANCHES = PROPERTIES["when"].keys() - CONDITION_KEYS
_IN_DRAWN = PROPERTIES["drawn_reply"].keys()
NOT_DRAWN = ("one_of", "name", "times", "repeat", "go_to", "request", "attempts", "hears")
"""Keys that a turn has once, whichever of its replies is drawn."""


def _unread(node: Node, _: Findings) -> Node:
    """A value that is read when the rest of its turn is known."""
    return node


def _repeat(node: Node, findings: Findings) -> bool | None:
    value = scalar(node) if isinstance(node, Scalar) else None
    if type(value) is int:
        advice = f"for {value} requests in a row write 'times: {value}'"
        findings.add(node, f"must be true or false; {advice}")
        return None
    return boolean(node, findings)


_TURN = table(
    "turn",
    name=turn_name,
    go_to=turn_name,
    request=expectation,
    http=http,
    answer=answer,
    error=error,
    attempts=listing(_attempt, "answers to earlier tries, such as [{http: 429}]"),
    expect=_outcome,
    extra=extra,
    job=job,
    client=messages,
    service=messages,
    obey=obey,
    recorded=_recorded,
    headers=sent_headers,
    hears=_hears,
    one_of=_unread,
    when=_unread,
    repeat=_repeat,
    service_tier="a word without spaces, such as flex",
    fingerprint="a word without spaces, such as fp_44709d6fcb",
    choices=listing(record(m.TurnSpec, table("choice", reply=reply)), "choices, each with a reply"),
    **_ANSWERED,
)


def _or_removed(read: Reader) -> Reader:
    return lambda node, findings: _REMOVED if is_null(node) else read(node, findings)


_OF_TURNS = {key: _or_removed(read) for key, read in _TURN.readers.items()}
_BRANCH = table(
    "when", **CONDITIONS, **{key: read for key, read in _OF_TURNS.items() if key in _IN_BRANCHES}
)
_DRAWN_REPLY = table(
    "drawn_reply", **{key: read for key, read in _OF_TURNS.items() if key in _IN_DRAWN}
)


def turn(node: Node, findings: Findings) -> m.TurnSpec:
    """A turn with its branches; an empty turn where it cannot be read."""
    if isinstance(node, Scalar):
        spaced = re.fullmatch(r"([a-z_]+):(\S.*)", node.value)
        if spaced is not None and spaced[1] in _TURN.readers:
            hint = f"; after ':' belongs a space, as in '{spaced[1]}: {spaced[2]}'"
        else:
            hint = "; what the model says is 'reply: TEXT'"
        findings.must_be(node, "a turn, a mapping with 'reply' or other keys", hint)
        return m.TurnSpec()
    values = fields(node, findings, _TURN)
    if values is None or not isinstance(node, Mapping):
        return m.TurnSpec()
    _check_one_answer(node, findings)
    values = _whole_error(node, findings, values, ("retry_after", "error"))
    when, recorded = values.pop("when", None), values.pop("recorded", None)
    _draw(values, findings, values)
    branches = () if when is None else _branches(when, findings, values)
    return m.TurnSpec(**values, recorded=recorded, branches=branches)


_ANSWERS = ("reply", "http", "one_of", "answer")


def _intended_key(key: str) -> str:
    """The key of a turn that one is, or is a typo of, which is reported already."""
    return next(iter(similar_names(key.lower(), _TURN.readers)), "")


def _check_one_answer(node: Mapping, findings: Findings) -> None:
    given = [key for key in _ANSWERS if key in node.entries]
    given += [key for key in ("client", "service") if key in node.entries][:1]
    if "answer" in given and len(given) > 1:
        others = " and ".join(repr(key) for key in given if key != "answer")
        findings.add(node, f"has 'answer', the answer of a route, and {others}; keep one of them")
    elif len(given) > 1:
        findings.add(node, _either(given))
    elif not given and not any(_intended_key(key) in _ANSWERS for key in node.entries):
        findings.add(node, "needs a 'reply', or 'http' for an error, or the 'answer' of a route")


def _either(given: list[str]) -> str:
    first, *_, last = map(repr, given)
    return f"must have either {first} or {last}, got both"


def _branches(node: Node, findings: Findings, base: dict[str, Any]) -> tuple[m.Branch, ...]:
    if isinstance(node, Sequence) and not node.items:
        findings.add(node, "must be a list of overrides, got an empty one")
    branches: list[m.Branch] = []
    for item in node.items if isinstance(node, Sequence) else [node]:
        branch = _branch(item, findings, base)
        key = branch.api, branch.condition
        if branch.api != _NO_API and key in [(other.api, other.condition) for other in branches]:
            same = repr(branch.api) if branch.condition is None else "the same conditions"
            findings.add(item, f"is the second for {same}; make one of the two")
        branches.append(branch)
    return tuple(branches)


def _branch(node: Node, findings: Findings, base: dict[str, Any]) -> m.Branch:
    """The whole turn for one protocol, or for requests that meet conditions.

    A branch that cannot be read has no name, and keeps its index.
    """
    before = len(findings.found)
    values = fields(node, findings, _BRANCH)
    if values is None or not isinstance(node, Mapping):
        return m.Branch(m.TurnSpec(), _NO_API)
    api = values.pop("api", None)
    conditions = {key: values.pop(key) for key in CONDITION_KEYS if key in values}
    if node.entries.keys().isdisjoint(("api", *CONDITION_KEYS)):
        findings.add(node, f"needs 'api', or a condition: {', '.join(CONDITION_KEYS)}")
    _draw(values, findings, base | values)
    whole = _merge_values(node, findings, base, values)
    if whole == base and len(findings.found) == before:
        findings.add(node, "changes nothing about its turn")
    condition = m.Expect(**REQUEST.arguments(conditions)) if conditions else None
    return m.Branch(m.TurnSpec(**whole), api, condition)


def _merge_values(
    node: Node, findings: Findings, base: dict[str, Any], values: dict[str, Any]
) -> dict[str, Any]:
    """The values of a turn with some replaced, or removed by null."""
    merged = base | values
    replaced = [key for key in _REPLIES if values.get(key, _REMOVED) is not _REMOVED]
    if len(replaced) > 1:
        findings.add(node, _either(replaced))
    for key in _REPLIES if replaced else ():
        if key not in replaced:
            merged.pop(key, None)
    whole = {key: value for key, value in merged.items() if value is not _REMOVED}
    if merged.keys() & {*_REPLIES} and not whole.keys() & {*_REPLIES}:
        findings.add(node, "takes the reply away; put another, or 'http', in its place")
    return whole


def _draw(values: dict[str, Any], findings: Findings, whole: dict[str, Any]) -> None:
    """Reads the `one_of` in some values: each entry is the whole turn with another reply."""
    node = values.get("one_of")
    if node is None or node is _REMOVED:
        return
    left_out = (*_REPLIES, *NOT_DRAWN)
    base = {
        key: value for key, value in whole.items() if key not in left_out and value is not _REMOVED
    }
    if isinstance(node, Sequence) and len(node.items) > 1:
        values["one_of"] = tuple([_weighted_turn(item, findings, base) for item in node.items])
        return
    findings.must_be(node, "a list of at least two replies")
    del values["one_of"]


def _weighted_turn(node: Node, findings: Findings, base: dict[str, Any]) -> m.WeightedTurn:
    if isinstance(node, Mapping) and not _DRAWN_REPLY.readers.keys().isdisjoint(node.entries):
        values = fields(node, findings, _DRAWN_REPLY) or {}
        if node.entries.keys().isdisjoint(("reply", "http")):
            findings.add(node, "needs a 'reply', or 'http' for an error")
        weight = values.pop("weight", 1)
        return m.WeightedTurn(m.TurnSpec(**_merge_values(node, findings, base, values)), weight)
    return m.WeightedTurn(m.TurnSpec(**base, reply=reply(node, findings)))
