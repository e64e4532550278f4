"""Readers of faults: from YAML (`fault:`), and from the text of an option or a header."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from mockllm.core.errors import UsageError
from mockllm.core.pairs import split_pairs
from mockllm.scenario.durations import read_duration
from mockllm.scenario.fault_model import Fault, Place
from mockllm.scenario.reading.nodes import Mapping, Node, Scalar
from mockllm.scenario.reading.tables import choices, table
from mockllm.scenario.reading.values import (
    Findings,
    Reader,
    Table,
    Vocabulary,
    choice,
    duration,
    fields,
    integer,
    is_null,
    keys,
    suggestion,
    text,
)

_COUNT = r"([0-9]{1,9}) ?(events?|bytes?)"
_EVENT = r"event ?([0-9]{1,9})(?: (prelude|headers|payload|checksum))?"
_CALL = r"(\S+) arguments"
_CONTENT = ("text", "reasoning", "refusal")

_MOST = 1_000_000_000


def _after(node: Node, findings: Findings) -> Place | None:
    value = node.value if isinstance(node, Scalar) else ""
    count = re.fullmatch(_COUNT, value)
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
    if (event := re.fullmatch(_EVENT, value)) is not None and event[1].strip("0"):
        return Place("in event", int(event[1]), event[2] or "")
    if value == "character":
        return Place("in character")
    if value in _CONTENT:
        return Place("in content", name=value)
    if (call := re.fullmatch(_CALL, value)) is not None:
        return Place("in call", name=call[1])
    findings.must_be(
        node,
        "'event 3', 'event 3 payload' (or prelude, headers, checksum), 'character', 'text', "
        "'reasoning', 'refusal' or 'ID arguments'",
    )
    return None


def _place_table(name: str, **readers: Reader | str) -> Table:
    return table(
        name, after=_after, inside=_inside, before=_before(choices(name, "before")), **readers
    )


def _before(names: tuple[str, ...]) -> Reader:
    read = choice(*names)

    def place(node: Node, findings: Findings) -> Place | None:
        name = read(node, findings)
        return None if name is None else Place("before", name=name)

    return place


def _for(node: Node, findings: Findings) -> int | str | None:
    if isinstance(node, Scalar) and node.value == "ever":
        return "ever"
    value: int | None = duration(node, findings)
    return value


_WITHOUT_FRAME = 1004, 1005, 1015
"""Codes that no close frame may have (RFC 6455, section 7.4.1). Nor may 1006, which stands here for
an end without one."""


def _code(node: Node, findings: Findings) -> int | None:
    code: int | None = integer(1000, 4999)(node, findings)
    if code in _WITHOUT_FRAME:
        findings.must_be(node, "a code that a close frame may have, or 1006 for none at all")
        return None
    return code


PLACE_KEYS = ("after", "inside", "before")

OF_SERVERS = frozenset({"slow-accept", "limit"})
"""The faults of connections, which only a server can have."""

HANDSHAKE = "handshake"
"""The fault of the request that opens a WebSocket."""

_OUTSIDE = {
    **dict.fromkeys(
        OF_SERVERS,
        "is a fault of a server's connections, such as `mockllm serve --fault {name}:number=2`",
    ),
    HANDSHAKE: "is a fault of the request that opens a WebSocket, before a scenario answers; give "
    f"it as `mockllm serve --fault {HANDSHAKE}:status=426`, to a session, or in the header "
    "x-mockllm-fault",
}
"""The faults that no turn has, and why."""

_NEEDED: dict[str, tuple[str, ...]] = {
    "cut": PLACE_KEYS,
    "error": (),
    "drip": ("rate", "every"),
    HANDSHAKE: ("status", "pause", "code"),
}
"""By the name of a fault, parameters of which it needs one; no other one needs any."""

_NUMBER = Table({"number": integer(1, _MOST)})
_STATUS = table("fault_status")
_CUT = _place_table(
    "fault_cut",
    code=_code,
    reason="a reason of words without ',', ';' and '=', such as keepalive ping timeout",
)

FAULTS: dict[str, Table] = {
    "refuse": table("fault_refuse"),
    "status": _STATUS,
    "cut": _CUT,
    "stall": _place_table("fault_stall", **{"for": _for}),
    "drip": table("fault_drip"),
    "burst": table("fault_burst"),
    "garble": table("fault_garble"),
    "error": _place_table("fault_error"),
    "duplicate": table("fault_duplicate"),
    "reorder": table("fault_reorder"),
    "fragment": table("fault_fragment"),
    "keepalive-closed": Table({}),
    "redirect": table("fault_redirect"),
    HANDSHAKE: Table(
        {
            **{key: _STATUS.readers[key] for key in ("status", "body", "retry_after")},
            "retry_form": _STATUS.readers["retry_form"],
            "pause": duration,
            "code": _code,
            "reason": _CUT.readers["reason"],
        }
    ),
    "slow-accept": _NUMBER,
    "limit": _NUMBER,
}
"""The parameters of each fault, by its name."""


def fault(name: str, node: Node, findings: Findings, *, bare: bool = False) -> Fault | None:
    """A fault, from the mapping of its parameters; null, or a `bare` name, is one without any."""
    parameters = FAULTS[name]
    values: dict[str, Any] | None
    if isinstance(node, Scalar) and not bare and not is_null(node) and parameters.readers:
        findings.must_be(
            node, f"a mapping with {keys(parameters.readers)}", f"; such as {_as_written(name)}"
        )
        return None
    if bare or is_null(node):
        values = {}
        for key in parameters.required:
            findings.add(node, f"needs the key {key!r}")
    else:
        values = fields(node, findings, parameters)
    if values is None:
        return None
    given = set(node.entries) if isinstance(node, Mapping) else set()
    places = [key for key in PLACE_KEYS if key in given and key in parameters.readers]
    needed = _NEEDED.get(name, ())
    if needed and not given & set(needed):
        listed = ", ".join(map(repr, needed))
        findings.add(node, f"needs one of {listed}, such as {_EXAMPLES[name]}")
    if len(places) > 1:
        findings.add(node, f"strikes at one place; keep one of {', '.join(places)}")
    if {"rate", "every"} <= given:
        findings.add(node, "has one speed; keep 'rate' or 'every'")
    if "code" in given and given & {"end", "status"}:
        findings.add(node, "ends in one way; keep 'code', or 'end' (of a handshake 'status')")
    if "reason" in given and "code" not in given:
        findings.add(node, "has a 'reason', which needs a 'code' beside it")
    place = next((values.pop(key) for key in places if key in values), None)
    ordered = tuple((key, values[key]) for key in parameters.readers if key in values)
    return Fault(name, place, ordered)


_PARAMETERS = {
    "status": "status: 529",
    "stall": "before: first, for: 5s",
    "error": "after: 3 events",
}


def _as_written(name: str) -> str:
    """A fault as a turn has it: `{cut: {after: 3 events}}`."""
    given = _EXAMPLES.get(name, _PARAMETERS.get(name, "")).partition(", in")[0]
    return f"{{{name}: {{{given}}}}}" if given else name


_EXAMPLES = {
    "cut": "after: 3 events",
    "drip": "rate: 100, in bytes a second, or every: 2s, for each byte",
    HANDSHAKE: "status=426",
}


def faults(node: Node, findings: Findings) -> tuple[Fault, ...] | None:
    """The faults of a turn: the name of one without parameters, or a mapping of names to
    parameters, which are applied in that order."""
    if isinstance(node, Scalar):
        if node.value in FAULTS and node.value not in _OUTSIDE:
            only = fault(node.value, node, findings, bare=True)
            return None if only is None else (only,)
        findings.add(node, _as_mapping(node.value) or _unknown(node.value))
        return None
    if not isinstance(node, Mapping) or not node.entries:
        findings.must_be(node, "the name of a fault, or such as {cut: {after: 3 events}}")
        return None
    faults_ = []
    for name, inner in node.entries.items():
        if name not in FAULTS or name in _OUTSIDE:
            findings.add(node, _unknown(name), node.keys[name])
        elif (read := fault(name, inner, findings)) is not None:
            faults_.append(read)
    return tuple(faults_) or None


table("faults", **{name: partial(fault, name) for name in FAULTS if name not in _OUTSIDE})


def _as_mapping(written: str) -> str:
    """How a turn has a fault that is written as options have it; "" for another text."""
    name, _, rest = _NAME_AND_PAIRS.findall(written)[0]
    if name not in FAULTS or name in _OUTSIDE or not rest:
        return ""
    try:
        pairs = split_pairs(rest, "after=3events")
    except ValueError:
        return f"is the text of an option; here write {_as_written(name)}"
    inner = ", ".join(f"{key}: {value}" for key, value in pairs.items())
    return f"is the text of an option; here write {{{name}: {{{inner}}}}}"


_WORDS = {
    **dict.fromkeys(("timeout", "hang", "delay"), "stall"),
    **dict.fromkeys(("close", "disconnect", "abort", "truncate", "drop"), "cut"),
    **dict.fromkeys(("reset", "connection_reset_by_peer", "empty_response"), "refuse"),
    **dict.fromkeys(("malformed", "malformed_response_chunk", "corrupt"), "garble"),
    **dict.fromkeys(("slow", "throttle"), "drip"),
    **dict.fromkeys(("http", "429", "500", "503", "529"), "status"),
}
"""By the words of other tools, the fault that is meant."""


def _unknown(name: str, known: Iterable[str] | None = None) -> str:
    """The message about a fault that is none of `known`; default: those of a turn."""
    if known is None and name in _OUTSIDE:
        return f"{name} {_OUTSIDE[name].format(name=name)}"
    known = known or [name for name in FAULTS if name not in _OUTSIDE]
    listed = f"there are: {', '.join(known)}"
    if (meant := _WORDS.get(name.lower())) is not None:
        listed = f"you may mean {meant!r}; {listed}"
    return f"there is no fault {name!r}{suggestion(name, known) or '; ' + listed}"


def parse_faults(written: str) -> tuple[Fault, ...]:
    """The faults of a text: `NAME KEY=VALUE...`, or `NAME:KEY=VALUE,...`, several joined by `;`.

    Raises:
        UsageError: what is wrong, and what there is.
    """
    findings = Findings(Vocabulary())
    faults_ = [_parse_fault(part.strip(), findings) for part in written.split(";")]
    if findings.found:
        messages = "; ".join(_message(*finding) for finding in findings.found)
        names_it = messages.startswith(f"there is no fault {written!r}")
        raise UsageError(messages if names_it else f"fault {written!r}: {messages}")
    return tuple(read for read in faults_ if read is not None)


def _message(node: Node, mark: Any, message: str) -> str:
    where = mark if isinstance(mark, str) and mark else node.mark
    message = f"has an {message}" if where and message.startswith("unknown key") else message
    return f"{where} {message}" if where else message


_NAME_AND_PAIRS = re.compile(r"([^\s:,=]*)\s*(:?)(.*)", re.DOTALL)


def _parse_fault(written: str, findings: Findings) -> Fault | None:
    name, colon, rest = _NAME_AND_PAIRS.findall(written)[0]
    node = Mapping({}, {}, name)
    if name not in FAULTS:
        findings.add(Scalar(name, True, ""), _unknown(name, FAULTS))
        return None
    try:
        pairs = split_pairs(rest, "after=3events") if colon or rest else {}
    except ValueError as error:
        findings.add(node, str(error))
        return None
    for key, value in pairs.items():
        node.entries[key] = Scalar(value, True, key)
        node.keys[key] = name
    return fault(name, node, findings)
