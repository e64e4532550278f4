"""The contents of the page of a case. Pure.

The bytes of its stream, with line ends, cuts and escapes visible; expected and actual outcome side
by side, with each difference marked.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from mockllm.conformance.results import CaseResult, Stream
from mockllm.core.visible_bytes import VisibleLine, visible_lines
from mockllm.wire.framing.frame_text import readable

_FIRST_LINES, _LAST_LINES = 60, 15
_MOST_SHOWN = 48 * 1024
"""Bytes that a page shows of one stream; all of them can be copied."""
_MOST_TICKS = 200


@dataclass(frozen=True, slots=True)
class Tick:
    """A write on the time axis."""

    left: float
    label: str


@dataclass(frozen=True, slots=True)
class BytesView:
    """The view of a stream on a page.

    Args:
        first, folded, last: its lines; `folded` are shown on request.
        unshown: bytes at the end that are not shown at all.
        packed: all bytes, in base64 if `packing` is `base64`, compressed before if it is `gzip`.
        is_text: whether they are UTF-8 without NUL, so that they can be copied as text.
        timed: whether the writes have different times, or only an order.
    """

    first: tuple[VisibleLine, ...]
    folded: tuple[VisibleLine, ...]
    last: tuple[VisibleLine, ...]
    size: int
    writes: int
    unshown: int
    packed: str
    packing: str
    is_text: bool
    ticks: tuple[Tick, ...]
    timed: bool
    duration: str


def bytes_view(stream: Stream) -> BytesView:
    """The view of a stream."""
    data = b"".join(stream.writes)
    shown = list(_first_writes(stream.writes))
    lines = list(visible_lines(shown, readable(shown)))
    edge = _FIRST_LINES + _LAST_LINES
    whole = len(lines) <= edge + 5
    packed, packing = _pack(data)
    timed = len(set(stream.times)) > 1
    return BytesView(
        first=tuple(lines if whole else lines[:_FIRST_LINES]),
        folded=() if whole else tuple(lines[_FIRST_LINES:-_LAST_LINES]),
        last=() if whole else tuple(lines[-_LAST_LINES:]),
        size=len(data),
        writes=len(stream.writes),
        unshown=max(0, len(data) - _MOST_SHOWN),
        packed=packed,
        packing=packing,
        is_text=_is_text(data),
        ticks=tuple(_ticks(stream, timed=timed)),
        timed=timed,
        duration=_time(max(stream.times)) if timed else "",
    )


def _first_writes(writes: Sequence[bytes]) -> Iterator[bytes]:
    left = _MOST_SHOWN
    for data in writes:
        if left <= 0:
            return
        yield data[:left]
        left -= len(data)


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _pack(data: bytes) -> tuple[str, str]:
    packed = gzip.compress(data, mtime=0)
    small = len(packed) < len(data)
    return base64.b64encode(packed if small else data).decode(), "gzip" if small else "base64"


# Times


def _ticks(stream: Stream, *, timed: bool) -> Iterator[Tick]:
    """The writes on the axis: by time, or in their order where all are sent at once."""
    if len(stream.writes) > _MOST_TICKS:
        return
    last = max(stream.times) if timed else max(1, len(stream.writes) - 1)
    for number, data in enumerate(readable(stream.writes)):
        at = stream.times[number] if timed else number
        when = f" at {_time(at)}" if timed else ""
        start = " ".join(data[:60].decode("utf-8", "replace").split())
        yield Tick(round(100 * at / last, 2), f"write {number + 1}{when}: {start}")


def _time(microseconds: int) -> str:
    if microseconds >= 1_000_000:
        return f"{microseconds / 1_000_000:g} s"
    return f"{microseconds / 1000:g} ms"


_FIELDS = ("text", "reasoning", "refusal", "tool_calls", "finish", "usage", "errors", "role")
_MORE = ("opaque", "model", "response_id")
_NAMES = {
    "finish": "finish reason",
    "errors": "errors reported",
    "opaque": "values to send back",
    "response_id": "id of the answer",
}
_NO_PLACE = object()


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One field of both outcomes.

    Args:
        state: `same`; `differs` (a mistake); `accepted` (another value that is correct, too);
            `follows` (it is missing because of the client's error); `unjudged`.
        expected, actual: the runs of the values as text.
    """

    name: str
    state: str
    expected: tuple[Run, ...]
    actual: tuple[Run, ...]


def outcome_rows(
    expected: Mapping[str, Any], actual: Mapping[str, Any], case: CaseResult
) -> list[OutcomeRow]:
    """The rows of two outcomes of a case, or of its smallest stream."""
    wrong = frozenset(case.fields)
    rows: list[OutcomeRow] = []
    for name in (*_FIELDS, *_MORE):
        for label, left, right in _values(name, expected, actual):
            if left in (None, "") and right in (None, "", _NO_PLACE):
                continue
            state = _state(name, left, right, wrong, case)
            rows.append(_row(label, left, right, state))
    return rows


def _state(name: str, left: Any, right: Any, wrong: frozenset[str], case: CaseResult) -> str:
    if right is _NO_PLACE:
        return "unjudged"
    if (left or "") == (right or ""):
        return "same"
    if name in wrong:
        return "differs"
    if name in case.not_judged:
        return "unjudged"
    return "follows" if case.exception or "errors" in wrong else "accepted"


def _row(label: str, left: Any, right: Any, state: str) -> OutcomeRow:
    if right is _NO_PLACE:
        text = "the client has no place for it"
        return OutcomeRow(label, state, _plain(left), (Run("note", text),))
    if state != "differs":
        return OutcomeRow(label, state, _plain(left), _plain(right))
    ones, others = text_diff(left or "", right or "")
    nothing = (Run("note", "nothing"),)
    return OutcomeRow(label, state, ones or nothing, others or nothing)


def _plain(value: str | None) -> tuple[Run, ...]:
    return text_diff(value, value)[0] if value else (Run("note", "nothing"),)


def _values(
    name: str, expected: Mapping[str, Any], actual: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """The label and both values of a field as text; a row for each tool call."""
    left = expected.get(name)
    right = actual.get(name, _NO_PLACE)
    if name != "tool_calls":
        if name == "errors":
            right = _errors(actual)
        yield _NAMES.get(name, name), _text(left), right if right is _NO_PLACE else _text(right)
        return
    if right is _NO_PLACE:
        yield "tool calls", _text([*map(call_text, left or ())]), right
        return
    ours, theirs = list(left or ()), list(right or ()) if isinstance(right, list) else [right]
    for number in range(max(len(ours), len(theirs))):
        one = call_text(ours[number]) if number < len(ours) else ""
        other = call_text(theirs[number]) if number < len(theirs) else ""
        yield f"tool call {number + 1}", one, other


def _errors(actual: Mapping[str, Any]) -> list[Any]:
    crash = actual.get("crash")
    return [*(actual.get("errors") or ()), *([crash] if crash else ())]


def _text(value: Any) -> str | None:
    """A value as people read it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_text(item) or "" for item in value)
    if isinstance(value, Mapping):
        if "message" in value:
            raised = f" ({value['raised']})" if value.get("raised") else ""
            return f"{value['message']}{raised}"
        return ", ".join(f"{key} {_json(item)}" for key, item in value.items() if item is not None)
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def call_text(call: Any) -> str:
    """A tool call in three lines: name and arguments, then its id; arguments in one form whether
    the client keeps them parsed or as text."""
    if not isinstance(call, Mapping):
        return _json(call)
    lines = [f"{call.get('name') or '(no name)'}({arguments_text(call.get('arguments'))})"]
    lines.append(f"id {call['id']}" if call.get("id") else "no id")
    if isinstance(call.get("raw_arguments"), str):
        lines.append(f"arguments as text {call['raw_arguments'] or '(empty)'}")
    return "\n".join(lines)


def arguments_text(value: Any) -> str:
    """Arguments in one form, whether a client keeps them parsed or as text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(value)
    return "" if value in (None, {}) else _json(value)


_MOST_TOKENS = 3000
_LONGEST_SAME = 160


@dataclass(frozen=True, slots=True)
class Run:
    """Characters that both texts have (`same`), only the expected (`missing`), or only the actual
    one (`extra`); `fold` stands for a long part of both that is shown on request."""

    kind: str
    text: str


def text_diff(expected: str, actual: str) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """The runs of the expected and of the actual text: words where they are short, and their
    middle without the common beginning and end where they are long."""
    left, right = _tokens(expected), _tokens(actual)
    if len(left) + len(right) > _MOST_TOKENS:
        ends = _ends(expected, actual)
        return _runs(expected, ends, "missing"), _runs(actual, ends, "extra")
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    ones: list[Run] = []
    others: list[Run] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        ones += _run("same" if kind == "equal" else "missing", "".join(left[a:b]))
        others += _run("same" if kind == "equal" else "extra", "".join(right[c:d]))
    return tuple(ones), tuple(others)


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", text)


def _run(kind: str, text: str) -> Iterator[Run]:
    if kind == "same" and len(text) > _LONGEST_SAME:
        edge = _LONGEST_SAME // 4
        yield Run("same", text[:edge])
        yield Run("fold", text[edge:-edge])
        yield Run("same", text[-edge:])
    elif text:
        yield Run(kind, text)


def _ends(text: str, other: str) -> tuple[int, int]:
    """The lengths of the common beginning and of the common end."""
    most = min(len(text), len(other))
    head = next((n for n in range(most) if text[n] != other[n]), most)
    tail = next((n for n in range(most - head) if text[-1 - n] != other[-1 - n]), most - head)
    return head, tail


def _runs(text: str, ends: tuple[int, int], kind: str) -> tuple[Run, ...]:
    head, tail = ends
    end = len(text) - tail
    parts = [("same", text[:head]), (kind, text[head:end]), ("same", text[end:])]
    return tuple(run for name, part in parts for run in _run(name, part))
