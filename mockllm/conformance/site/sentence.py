"""What happened in a case, in one plain sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mockllm.checking.rules import RESILIENCE
from mockllm.conformance.results import CaseResult
from mockllm.conformance.site.outcome_view import arguments_text
from mockllm.core.text import shorten

_LONGEST = 90


def sentence(case: CaseResult) -> str:
    """What the client does in a case, and what is in the stream.

    The first difference decides: it is the one that the others follow from.
    """
    if case.group in RESILIENCE:
        return _of_rule(case)
    if case.verdict == "right":
        return "The client ends with the expected outcome."
    if case.verdict == "tolerated":
        return f"The client ends with another outcome that is acceptable: {_reason(case)}."
    if case.verdict == "not judged":
        return f"This case was not judged: {_reason(case)}."
    if case.verdict == "adapter":
        return "The adapter failed, and not the client, so that nothing is known of the client."
    return next(_mistakes(case), f"The outcome is not the expected one: {_first(case)}.")


def _of_rule(case: CaseResult) -> str:
    """What the client does under a rule of resilience."""
    if case.differences:
        text = _short(_first(case))
        return f"{text[:1].upper()}{text[1:]}."
    if case.verdict == "not applicable":
        return f"The rule does not apply: {_reason(case)}."
    once = f" Once in three times it was not: {case.unconfirmed}." if case.unconfirmed else ""
    kept = "The rule is kept." if case.verdict == "right" else f"Not judged: {_reason(case)}."
    return f"{kept}{once}"


def _reason(case: CaseResult) -> str:
    return (case.reason or "no reason is recorded").removeprefix("accepted: ").rstrip(".")


def _first(case: CaseResult) -> str:
    return (case.differences[0] if case.differences else _reason(case)).rstrip(".")


def _mistakes(case: CaseResult) -> Iterator[str]:
    expected, actual = case.expected, case.actual
    if case.verdict in ("crash", "rejected") or actual.get("crash"):
        error = _short(case.exception or _first(case))
        if case.reaction != "same":
            yield f"The client crashes instead of reporting a clear error: {error}"
        kind = "crashes" if case.verdict == "crash" else "reports an error"
        yield f"The client {kind} where the stream can be read: {error}"
    if case.verdict == "silent":
        why = _first(case).partition("; got ")[0]
        yield f"{why[:1].upper()}{_short(why[1:])}: the client returns {_end(actual)}"
    about = " ".join(case.differences)
    yield from _calls(_list(expected, "tool_calls"), _list(actual, "tool_calls"), about)
    for name in ("text", "reasoning", "refusal"):
        if name in about:
            yield from _texts(name, expected.get(name) or "", actual)
    if case.differences:
        yield _by_field(case.differences[0])


_FORMS = (
    (
        r"calls come in the order (.+), not (.+)",
        "The client ends with the calls in the order {}; sent were {}.",
    ),
    (
        r"the raw arguments of (.+) are (.+), not (.+)",
        "The client keeps the arguments of {} as the text {} where the stream has {}.",
    ),
    (
        r"finish is (.+), although the answer failed",
        "The client ends with finish reason {}, although the answer failed.",
    ),
    (
        r"the error has not the service's message (.+); it is (.+)",
        "The client's error leaves out the service's message {}; it is {}.",
    ),
)
"""Differences, and their sentences."""

_NAMES = {"finish": "finish reason", "response_id": "the id of the answer"}


def _by_field(difference: str) -> str:
    """A sentence for a difference in a field that is neither a text nor a call."""
    text = _short(difference)
    found = re.fullmatch(r"(finish|role|model|response_id) is (.+), not (.+)", text)
    if found is not None:
        name = _NAMES.get(found[1], found[1])
        return f"The client ends with {name} {found[2]} where the stream has {found[3]}."
    for pattern, form in _FORMS:
        found = re.fullmatch(pattern, text)
        if found is not None:
            return form.format(*found.groups())
    if text.startswith("usage"):
        return f"The client's token counts are wrong: {text}."
    if text.startswith("opaque values: "):
        return f"The client changes a value that it has to send back: {text[15:]}."
    return f"The client's outcome is not that of the stream: {text}."


def _list(outcome: Mapping[str, Any], name: str) -> list[Any]:
    value = outcome.get(name)
    return value if isinstance(value, list) else []


def _end(actual: Mapping[str, Any]) -> str:
    calls = _list(actual, "tool_calls")
    if calls:
        return f"{_names(calls)} as if complete."
    if actual.get("text"):
        return f"the text “{_short(str(actual['text']))}” as if complete."
    return f"no text and no call, with finish reason {actual.get('finish') or 'none'}."


def _calls(expected: Sequence[Any], actual: Sequence[Any], about: str) -> Iterator[str]:
    """Of calls, where the differences are about them.

    The policy may leave out calls that the stream has, so the number of calls is not enough.
    """
    if f"calls, not {len(expected)}" in about and len(expected) != len(actual):
        got = f"{_count(len(actual))}{f', {_names(actual)},' if actual else ''}"
        want = f"{_count(len(expected))}{f': {_names(expected)}' if expected else ''}"
        yield f"The client ends with {got} where the stream has {want}."
    if len(expected) != len(actual):
        return
    for number, (want, got) in enumerate(zip(expected, actual, strict=True), 1):
        if not isinstance(want, Mapping) or not isinstance(got, Mapping):
            continue
        fields = [("name", _plain), ("arguments", arguments_text)]
        fields += [("id", _plain)] if "its id is" in about else []
        for field, text in fields:
            one, other = text(want.get(field)), text(got.get(field))
            if one != other:
                yield (
                    f"In call {number} the client ends with {field} {_quoted(other)} "
                    f"where the stream has {_quoted(one)}."
                )


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def _quoted(text: str) -> str:
    return f"`{_short(text)}`" if text else "`{}`"


def _texts(name: str, want: str, actual: Mapping[str, Any]) -> Iterator[str]:
    if name not in actual or (actual[name] or "") == want:
        return
    got = actual[name] or ""
    if not isinstance(got, str):
        return
    if not got:
        yield f"The client loses the {name}: the stream has “{_short(want)}”."
    elif want and got in want:
        yield f"The client loses a part of the {name}: it ends with “{_short(got)}”."
    else:
        sent = f"the stream has “{_short(want)}”" if want else "the stream has none"
        yield f"The client ends with the {name} “{_short(got)}” where {sent}."


def _count(number: int) -> str:
    words = {0: "no call", 1: "one call", 2: "two calls", 3: "three calls", 4: "four calls"}
    return words.get(number, f"{number} calls")


def _names(calls: Sequence[Any]) -> str:
    texts = [_name(one) for one in calls]
    return _short(" and ".join(texts) if len(texts) < 4 else ", ".join(texts))


def _name(call: Any) -> str:
    if not isinstance(call, Mapping):
        return _short(str(call))
    id = f" (id {call['id']})" if call.get("id") else ""
    return f"{call.get('name') or '(no name)'}{id}"


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), 2 * _LONGEST, keep=2 * _LONGEST)
