"""The stream of a case as text: its events, or its bytes as the client reads them. Pure."""

from __future__ import annotations

from typing import Any

from mockllm.checking.cases.case import Case, Level
from mockllm.core.text import shorten
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.values import json_object

_MOST_LINES = 40
_WIDEST = 160


def format_stream(case: Case, level: Level = "payloads", at: int | None = None) -> str:
    """The stream of a case, shortened if it is long.

    One line for each event, without the fields that are the same in all events; at the level of
    bytes one line for each read, as a literal of Python that can be copied. A mark shows the line
    that matters.

    Args:
        at: the index of the event or read that the client raised at; default: the first one that
            differs from the plain form of the case.
    """
    lines = format_reads(case) if level == "bytes" else _event_lines(case)
    at = first_changed(case, level) if at is None else at
    return "\n".join(_shorten_lines(lines, at))


def format_reads(case: Case) -> list[str]:
    """The result of each read of the client, as literals of Python, whole."""
    return [repr(chunk) for chunk in case.chunks]


def first_changed(case: Case, level: Level = "payloads") -> int | None:
    """The index of the first event or read that is not in the plain form; None if there is none."""
    if case.plain is None:
        return None
    if level == "bytes":
        return _first_byte_changed(case, case.plain)
    if case.events is None or case.plain.events is None:
        return None
    plain = case.plain.events.decoded
    for index, event in enumerate(case.events.decoded):
        if index >= len(plain) or plain[index] != event:
            return index
    return None


def _first_byte_changed(case: Case, plain: Case) -> int | None:
    """The index of the read with the first byte that is not in the plain form."""
    data, other = b"".join(case.chunks), b"".join(plain.chunks)
    same = next(
        (index for index, (a, b) in enumerate(zip(data, other, strict=False)) if a != b),
        min(len(data), len(other)),
    )
    end = 0
    for index, chunk in enumerate(case.chunks):
        end += len(chunk)
        if same < end:
            return index
    return None


def _shorten_lines(lines: list[str], at: int | None) -> list[str]:
    """At most `_MOST_LINES` lines, those around `at` among them, each of limited width."""
    marks = ["> " if index == at else "  " for index in range(len(lines))]
    short = [
        mark + shorten(line, _WIDEST, keep=_WIDEST - 41, tail=40)
        for mark, line in zip(marks, lines, strict=True)
    ]
    if at is None:
        short = [line[2:] for line in short]
    if len(short) <= _MOST_LINES:
        return short
    middle = min(max(at or 0, 0), len(short) - 1)
    start = max(5, min(middle - _MOST_LINES // 2, len(short) - _MOST_LINES + 5))
    end = start + _MOST_LINES - 10
    parts = [short[:5], short[start:end], short[end:][-5:]]
    return [
        *parts[0],
        *([f"… {start - 5} more …"] if start > 5 else []),
        *parts[1],
        *([f"… {len(short) - end - 5} more …"] if len(short) - end > 5 else []),
        *parts[2],
    ]


def _event_lines(case: Case) -> list[str]:
    carrier = PROTOCOLS[case.api].usual
    frames = carrier.readable(b"".join(case.chunks))
    name = "" if carrier.name == "ndjson" else "data: "
    values = [json_object(frame.data) for frame in frames]
    constant = _constant_fields([value for value in values if value is not None])
    lines = []
    for frame, value in zip(frames, values, strict=True):
        event = f"{frame.kind}: {frame.event} " if frame.event else ""
        if value is not None:
            rest = {key: item for key, item in value.items() if key not in constant}
            lines.append(f"{event}{name}{dumps(rest)}")
        elif frame.data is not None:
            lines.append(f"{event}{name}{frame.data}")
        elif frame.comment is not None:
            lines.append(f": {frame.comment}")
    return lines or [repr(b"".join(case.chunks))]


def _constant_fields(values: list[dict[str, Any]]) -> set[str]:
    """The fields that have the same value in all objects; none for a single object."""
    if len(values) < 2:
        return set()
    first = values[0]
    return {
        key
        for key, item in first.items()
        if all(key in value and value[key] == item for value in values)
    }
