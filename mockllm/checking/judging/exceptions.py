"""The invariants that the errors and exceptions of a client point to. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.difference import Difference, complete_finishes, printable
from mockllm.checking.judging.stream_reading import names_what_is_passed_over
from mockllm.checking.outcome import Call, Outcome, Trouble
from mockllm.checking.policy import Policy
from mockllm.scenario.part_model import TextPart, apis_written_out

_NULL = re.compile("NoneType|^KeyError|null|undefined", re.IGNORECASE)
"""The message of an exception on a value that is null or missing."""

_INPUT_MODEL = re.compile(r"^\w*Validat\w+|validation error", re.IGNORECASE)
"""The exception of a typed model of the input (pydantic, msgspec, attrs)."""

_NOT_IN_MODEL = re.compile(r"extra|unexpected|not permitted|does not match any|unknown|literal|tag")

_FRAMING = re.compile(
    r"^(JSONDecodeError|SyntaxError|UnicodeDecodeError)|Expecting value|Extra data|utf-8|utf8|"
    r"Unterminated string|Invalid control character|\b(no|not|invalid) (valid )?JSON\b|"
    r"BOM|invalid continuation|unexpected end of (data|JSON)",
    re.IGNORECASE,
)
"""What a client raises that reads lines, events or characters wrongly: the data it gets is then no
JSON, or no UTF-8."""

_IS_CUT = re.compile(
    r"\bcut\b|truncated|incomplete|ended (early|without)|unexpected end of (the )?(stream|input)|"
    r"closed before|without (a |an )?(end|finish)",
    re.IGNORECASE,
)
"""A client that reports a complete stream as cut has missed its end."""

_NO_ARGUMENTS = re.compile(
    r"JSON object must be str|expected string or bytes|Expecting value: line 1 column 1 \(char 0\)|"
    r"Unexpected end of JSON input|EOF while parsing a value"
)
"""What parsers of JSON raise on null and on an empty text."""


def exception_invariant(trouble: Trouble, case: Case) -> tuple[str | None, bool]:
    """The invariant that an exception points to by itself, and whether it is certain.

    None where only the case can decide.
    """
    message = trouble.message
    offered = {tool.name for tool in case.tools}
    for call in case.expected.tool_calls:
        if offered and call.name not in offered and f"KeyError: '{call.name}'" in message:
            return "unknown-tool", True
        if f"{call.name}{call.name}" in message:
            return "name-kept", True
    if _NO_ARGUMENTS.search(message) and any(c.arguments == {} for c in case.expected.tool_calls):
        return "zero-arguments", False
    if _names_finish(message, case):
        return "finish-and-usage", False
    if _INPUT_MODEL.search(message):
        return ("unknown-event" if _NOT_IN_MODEL.search(message) else "null-tolerant"), False
    if trouble.crash and _NULL.search(message):
        return "null-tolerant", False
    return None, False


def _names_finish(message: str, case: Case) -> bool:
    """Whether an exception is about a finish that not every answer has."""
    finish = (case.expected.finish or "").rpartition("=")[2]
    if not finish or finish in complete_finishes(case.api):
        return False
    return re.search(rf"\b{re.escape(finish)}\b", message) is not None


def unexpected_errors(
    case: Case, got: Outcome, policy: Policy, excluded: Sequence[tuple[int, Call, str]]
) -> Iterator[Difference]:
    """Errors that neither the stream nor the policy explains."""
    choices = {"malformed-contained": policy.malformed, "unknown-tool": policy.unknown_tool}
    required = [exclusion for exclusion in excluded if choices[exclusion[2]] == "error"]
    for trouble in got.errors:
        if not trouble.crash and any(name in trouble.message for name in case.custom):
            continue
        if (
            trouble.crash
            or not required
            or not (trouble.tool is not None or is_about_call(trouble, case))
        ):
            causes = [invariant for _, _, invariant in excluded[:1]]
            yield _difference(case, trouble, causes, within_text=_ends_within_text(case, got))


def is_about_call(trouble: Trouble, case: Case) -> bool:
    """Whether an error names a call of the case."""
    names = {name for call in case.expected.tool_calls for name in (call.name, call.id) if name}
    return any(name in trouble.message for name in names)


def _ends_within_text(case: Case, got: Outcome) -> bool:
    """Whether a client has read only the beginning of the text: what it missed is not the end."""
    text, expected = str(got.text), case.expected.text
    return 0 < len(text) < len(expected) and expected.startswith(text)


def _difference(
    case: Case, trouble: Trouble, excluded: list[str], *, within_text: bool
) -> Difference:
    where = f" ({printable(trouble.raised)})" if trouble.raised else ""
    field = "crash" if trouble.crash else "errors"
    description = f"reports an error: {printable(trouble.message)}{where}"
    certain, conclusive = exception_invariant(trouble, case)
    unknown = not conclusive and (
        _has_citations(case) or names_what_is_passed_over(case, trouble.message)
    )
    cut = _IS_CUT.search(trouble.message) and not certain
    first, *others = [
        *(["unknown-event"] if unknown else []),
        *([certain] if certain else []),
        *(["null-tolerant"] if trouble.crash and not certain else []),
        *(["text-accumulates"] if cut and within_text else []),
        *(["finish-and-usage"] if cut else []),
        *(causes := _possible_causes(case, excluded)),
        *(["framing-read"] if _FRAMING.search(trouble.message) else []),
        *([] if causes else ["null-tolerant"]),
    ]
    return Difference(
        field,
        description,
        first,
        conclusive=conclusive,
        alternatives=tuple(dict.fromkeys(others)),
        recognised=certain is not None,
    )


def _has_citations(case: Case) -> bool:
    """Whether the answer of a plain case has citations, which no outcome has."""
    parts = case.scenario.turns[0].for_api(case.api).reply
    return case.plain is None and any(isinstance(p, TextPart) and p.citations for p in parts)


def _possible_causes(case: Case, excluded: list[str]) -> list[str]:
    """The invariants that an error in a correct stream may point to, the likeliest first."""
    turn = case.scenario.turns[0].for_api(case.api)
    found = list(excluded)
    comments = turn.wire is not None and turn.wire.comments is not None
    if comments:
        found.append("framing-read")
    if apis_written_out(turn.reply):
        found.append("unknown-event")
    calls = case.expected.tool_calls
    if case.malformed:
        found.append("malformed-contained")
    if calls and all(call.arguments == {} for call in calls):
        found.append("zero-arguments")
    if calls:
        found.append("arguments-concatenate")
    if case.expected.refusal:
        found.append("text-accumulates")
    if case.finish_values & {"length", "content_filter"}:
        found.append("finish-and-usage")
    return found
