"""The conditions of `match:` and `request:`, each with a message where a request does not meet it.

All that reads conditions reads them here: selection, errors, and the page that explains them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from json import dumps
from typing import Any, Literal, TypeVar

from mockllm.core.jsontext import compact, json_bytes
from mockllm.core.later import later
from mockllm.core.patterns import compile_pattern
from mockllm.core.record import record
from mockllm.core.request import Message, Request, SentFile
from mockllm.core.text import common_length, display, shorten
from mockllm.play.agents.tools import may_call
from mockllm.play.matching.hidden import is_hidden_value
from mockllm.play.matching.sent_files import check_files, source_of, wanted_files
from mockllm.scenario.ignoring import normal_body, normal_text, normal_value, wanted_text
from mockllm.scenario.model import (
    AnyText,
    Expect,
    FileCount,
    Ignored,
    Match,
    ResultCondition,
    TextCondition,
    groups_of,
    with_entries,
    written_text,
)

_MAX_ERRORS = 50
_SMALL_BODY = 64 * 1024
"""Of a body that is validated on the event loop, in bytes; others are validated in a thread."""


_SHOWN_ALIKE = 60
"""Texts that begin alike for more characters are shown from their first difference on."""

_SHOWN_BEFORE = 20
"""Characters that are shown before it."""

_DEMANDS = {
    "contains": "contain",
    "equals": "be",
    "regex": "match the regex",
    "hidden": "be the recorded value with the tag",
}

_Group = Literal["any", "all", "not"]
_Conditions = TypeVar("_Conditions", Match, Expect)


@record
class JudgedCondition:
    """A condition, and what a request has.

    Args:
        path: as in the file: `match.user.equals`, `request.results.call_1`.
        expected, actual: JSON values; None for a value that was not sent.
        problems: a message for each reason why it does not hold; none where it holds.
    """

    path: str
    expected: Any
    actual: Any
    problems: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        """Whether it holds."""
        return not self.problems


def first_problem(judged: Iterable[JudgedCondition]) -> str | None:
    """Why the first condition that does not hold does not; None where all hold."""
    return next((condition.problems[0] for condition in judged if condition.problems), None)


def _judgement(path: str, expected: Any, actual: Any, problem: str | None) -> JudgedCondition:
    return JudgedCondition(path, expected, actual, () if problem is None else (problem,))


def text_holds(condition: AnyText, text: str) -> bool:
    """Whether a text meets a condition; a regular expression may match anywhere in it.

    Raises:
        PatternGaveUpError: the search for a regular expression took too long.
    """
    if not isinstance(condition, TextCondition):
        holding = (text_holds(part, text) for part in condition.conditions)
        return all(holding) if condition.op == "all" else any(holding) == (condition.op == "any")
    if condition.op == "regex":
        return compile_pattern(condition.value).found_in(text)
    if condition.op == "hidden":
        return is_hidden_value(condition.value, text)
    wanted, sent = wanted_text(condition), normal_text(condition.ignore, text)
    return wanted in sent if condition.op == "contains" else wanted == sent


def model_holds(glob: str, model: str) -> bool:
    """Whether the name of a model matches a glob (`gpt-4*`), case included."""
    return fnmatchcase(model, glob)


def judged_message(match: Match, request: Request, headers: Mapping[str, str]) -> Message:
    """The user message that a `match` is judged by: the last that meets it, else the last.

    Args:
        headers: with lower-case names.
    """
    if match.user is not None or groups_read_message(match):
        for message in reversed(request.users):
            if message_holds(match, request, headers, message):
                return message
    return request.last_user


def check_text(what: str, condition: AnyText, text: str) -> str | None:
    """Why a text does not meet a condition."""
    if text_holds(condition, text):
        return None
    if not isinstance(condition, TextCondition):
        if condition.op != "all":
            return f"{what} must {_demand(condition)}, got {display(text)}"
        problems = (check_text(what, part, text) for part in condition.conditions)
        return next(filter(None, problems))
    wanted = wanted_text(condition)
    if condition.op == "regex":
        return f"{what} must match the regex {_describe_parting(wanted, text)}"
    if condition.op == "hidden":
        return f"{what} must have the value that was recorded, and is hidden; got {display(text)}"
    sent = normal_text(condition.ignore, text)
    if condition.op == "equals":
        return f"{what} must be {_describe_difference(wanted, sent)}"
    return f"{what} must contain {display(wanted)}, got {display(sent)}"


def _demand(condition: AnyText, *, negated: bool = False) -> str:
    """The demand on a text: `contain 'a' or not be 'b'`."""
    if isinstance(condition, TextCondition):
        demand = f"{_DEMANDS[condition.op]} {display(wanted_text(condition))}"
        return f"not {demand}" if negated else demand
    if condition.op == "not":
        return _demand(condition.conditions[0], negated=not negated)
    demands = []
    for part in condition.conditions:
        demand = _demand(part, negated=negated)
        is_inner = len(condition.conditions) > 1 and _has_several(part)
        demands.append(f"({demand})" if is_inner else demand)
    return (" or " if (condition.op == "any") != negated else " and ").join(demands)


def _has_several(condition: AnyText) -> bool:
    if isinstance(condition, TextCondition):
        return False
    return len(condition.conditions) > 1 or _has_several(condition.conditions[0])


def _describe_difference(expected: str, actual: str) -> str:
    """Two texts that are not equal, from shortly before their first difference if they begin
    alike: two beginnings of long prompts say nothing."""
    alike = common_length(expected, actual)
    if alike <= _SHOWN_ALIKE:
        return f"{display(expected)}, got {display(actual)}"
    start = alike - _SHOWN_BEFORE
    wanted, got = display(expected[start:]), display(actual[start:])
    return f"{wanted} from character {start + 1} on, got {got}"


def _describe_parting(regex: str, text: str) -> str:
    """A regular expression that a text does not match, from shortly before the place where the
    two part, if they begin alike."""
    parting = compile_pattern(regex).parting(text)
    if parting is None or parting[1] <= _SHOWN_ALIKE:
        return f"{display(regex)}, got {display(text)}"
    rest, alike = parting
    start = alike - _SHOWN_BEFORE
    wanted = text[start:alike] + _ESCAPED.sub(r"\1", rest)
    return f"{display(wanted)} from character {start + 1} on, got {display(text[start:])}"


_ESCAPED = re.compile(r"\\(\W)")


def check_partial(what: str, expected: Any, actual: Any) -> str | None:
    """Why a JSON value does not contain another. Objects may have more keys than expected;
    lists must have the same length."""
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping):
            return f"{what} must be an object, got {display(actual)}"
        for key, value in expected.items():
            if key not in actual:
                return f"{what}.{key} must be {display(value)}, but is not there"
            problem = check_partial(f"{what}.{key}", value, actual[key])
            if problem is not None:
                return problem
        return None
    if isinstance(expected, list):
        if not isinstance(actual, Sequence) or isinstance(actual, str):
            return f"{what} must be a list, got {display(actual)}"
        if len(expected) != len(actual):
            return f"{what} must have {len(expected)} items, got {len(actual)}"
        for index, (value, sent) in enumerate(zip(expected, actual, strict=True)):
            problem = check_partial(f"{what}[{index}]", value, sent)
            if problem is not None:
                return problem
        return None
    if expected == actual and isinstance(expected, bool) == isinstance(actual, bool):
        return None
    if isinstance(expected, str) and isinstance(actual, str):
        return f"{what} must be {_describe_difference(expected, actual)}"
    return f"{what} must be {display(expected)}, got {display(actual)}"


def check_no_more(what: str, expected: Any, actual: Any) -> str | None:
    """Why a JSON value has more than another one that it contains."""
    pairs: Iterable[tuple[str, Any, Any]] = ()
    if isinstance(expected, Mapping):
        for key in actual:
            if key not in expected:
                return f"{what}.{key} must not be there, got {display(actual[key])}"
        pairs = ((f"{what}.{key}", value, actual[key]) for key, value in expected.items())
    elif isinstance(expected, list):
        pairs = ((f"{what}[{n}]", value, actual[n]) for n, value in enumerate(expected))
    return next(filter(None, (check_no_more(*pair) for pair in pairs)), None)


def judged_match(
    match: Match,
    request: Request,
    headers: Mapping[str, str],
    *,
    message: Message | None = None,
    path: str = "match",
) -> Iterator[JudgedCondition]:
    """The conditions of a `match` in a fixed order, each judged when the iterator reaches it.

    Args:
        headers: with lower-case names.
        message: the user message that `match.user` is judged by, and groups that read one; None:
            these are left out.
        path: of the conditions in the file.
    """
    if match.user is not None and message is not None:
        yield _judged_text(f"{path}.user", "the last user message", match.user, message.text)
    yield from judged_model(match, request.model, path)
    if match.user_files:
        candidates = _candidate_files(match, request)
        yield _judged_files(f"{path}.user_files", match.user_files, candidates)
    if match.system is not None:
        yield _judged_text(f"{path}.system", "the system prompt", match.system, request.system)
    for name in match.tools:
        yield _judged_offer(f"{path}.tools", name, request)
    yield from judged_values(f"{path}.headers", "the header", match.headers, headers)
    yield from judged_values(f"{path}.query", "the parameter", match.query, request.query)
    body = normal_body(match.ignore, request) if match.body else None
    yield from judged_body(f"{path}.body", match.body, body, match.ignore)
    if match.stream is not None:
        verb = "" if match.stream else "not "
        problem = f"{path}.stream: the request must {verb}be for a stream"
        met = match.stream == request.stream
        yield _judgement(f"{path}.stream", match.stream, request.stream, None if met else problem)
    if groups_of(match) and (message is not None or not groups_read_message(match)):
        yield from _judged_match_groups(path, match, request, headers, message)


def groups_read_message(match: Match) -> bool:
    """Whether `any`, `all` or `not` of a match have a condition on the user's message."""
    return bool(groups_of(match)) and any(
        path and (part.user is not None or part.user_files) for path, part in with_entries(match)
    )


def message_holds(
    match: Match, request: Request, headers: Mapping[str, str], message: Message
) -> bool:
    """Whether `user`, `any`, `all` and `not` of a match hold for a user message of a request."""
    if match.user is not None and not text_holds(match.user, message.text):
        return False
    if not groups_of(match):  # most have none
        return True
    judged = _judged_match_groups("match", match, request, headers, message)
    return first_problem(judged) is None


def _judged_match_groups(
    path: str,
    match: Match,
    request: Request,
    headers: Mapping[str, str],
    message: Message | None,
) -> Iterator[JudgedCondition]:
    if message is not None:
        # All conditions of a group, those on files too, are about the message at which the
        # conversation begins: a later message does not end it.
        request = replace(request, messages=(message,))

    def judge(path: str, entry: Match) -> Iterator[JudgedCondition]:
        return judged_match(entry, request, headers, message=message, path=path)

    return judged_groups(path, match, judge)


def judged_groups(
    path: str,
    conditions: _Conditions,
    judge: Callable[[str, _Conditions], Iterator[JudgedCondition]],
) -> Iterator[JudgedCondition]:
    """`any`, `all` and `not` of conditions, each of them one condition.

    Args:
        judge: judges an entry, which has this path.
    """
    for key, entries in groups_of(conditions):
        if entries:
            inner = f"{path}.{key}"
            paths = [inner] if key == "not" else [f"{inner}[{n}]" for n in range(len(entries))]
            judged = [list(judge(*entry)) for entry in zip(paths, entries, strict=True)]
            yield _judged_group(inner, key, paths, judged)


def _judged_group(
    path: str, key: _Group, paths: Sequence[str], judged: Sequence[Sequence[JudgedCondition]]
) -> JudgedCondition:
    """`any`, `all` or `not` as one condition.

    Args:
        paths, judged: the path and the conditions of each entry.
    """
    problems = [first_problem(entry) for entry in judged]
    unmet = [problem for problem in problems if problem is not None]
    pairs = list(zip(paths, judged, strict=True))
    expected = [_by_path(entry, inner, "expected") for inner, entry in pairs]
    actual = {k: v for inner, entry in pairs for k, v in _by_path(entry, inner, "actual").items()}
    if key == "all":
        return _judgement(path, expected, actual, unmet[0] if unmet else None)
    if key == "any":
        message = f"{path}: one of these must hold: {'; '.join(unmet)}"
        return _judgement(path, expected, actual, message if len(unmet) == len(judged) else None)
    held = (f"{k} {display(v)}, got {display(actual[k])}" for k, v in expected[0].items())
    message = f"{path}: this must not hold, but it does: {'; '.join(held)}"
    return _judgement(path, expected[0], actual, None if unmet else message)


def _by_path(
    judged: Iterable[JudgedCondition], above: str, field: Literal["expected", "actual"]
) -> dict[str, Any]:
    """Values that conditions expect, or a request has, by their paths in an entry; a list where
    several have one path."""
    values: dict[str, list[Any]] = {}
    for condition in judged:
        key = condition.path.removeprefix(f"{above}.")
        values.setdefault(key, []).append(getattr(condition, field))
    return {key: some[0] if len(some) == 1 else some for key, some in values.items()}


def judged_model(match: Match, model: str, path: str = "match") -> Iterator[JudgedCondition]:
    """The condition on the model."""
    if match.model is not None:
        message = f"{path}.model: the model must match {match.model!r}, got {model!r}"
        problem = None if model_holds(match.model, model) else message
        yield _judgement(f"{path}.model", match.model, model, problem)


def judged_values(
    path: str,
    what: str,
    conditions: Sequence[tuple[str, AnyText]],
    values: Mapping[str, str],
) -> Iterator[JudgedCondition]:
    """Conditions on named texts; `what` says what they are."""
    for name, condition in conditions:
        text = values.get(name)
        subject = f"{path}: {what} {name!r}"
        message: str | None = f"{subject} must be sent, but is not there"
        if text is not None:
            message = check_text(subject, condition, text)
        operator, expected = _operator_and_value(condition)
        yield _judgement(f"{path}.{name}{operator}", expected, text, message)


def judged_body(
    path: str, expected: Any, actual: Any, ignore: Ignored = ()
) -> Iterator[JudgedCondition]:
    """The conditions on a body, one for each of the keys that are expected at its top."""
    if not expected:
        return
    expected, actual = normal_value(ignore, expected), normal_value(ignore, actual)
    for key, value in expected.items():
        problem = check_partial(f"{path}: body", {key: value}, actual)
        sent = actual.get(key) if isinstance(actual, Mapping) else actual
        yield _judgement(f"{path}.{key}", value, sent, problem)


def _judged_text(path: str, what: str, condition: AnyText, text: str) -> JudgedCondition:
    problem = check_text(f"{path}: {what}", condition, text)
    operator, expected = _operator_and_value(condition)
    return _judgement(path + operator, expected, text, problem)


def _operator_and_value(condition: AnyText) -> tuple[str, Any]:
    """The end of a condition's path, and what it expects."""
    operator = "" if condition.op == "contains" else f".{condition.op}"
    if isinstance(condition, TextCondition):
        return operator, condition.value
    return operator, written_text(condition)[condition.op]


def _candidate_files(match: Match, request: Request) -> list[tuple[SentFile, ...]]:
    """The files of each user message that meets `match.user`, else those of the last one."""
    return [
        message.files
        for message in request.users
        if match.user is None or text_holds(match.user, message.text)
    ] or [request.last_user.files]


def _judged_files(
    path: str, expected: tuple[str, ...] | FileCount, sent: Sequence[tuple[SentFile, ...]]
) -> JudgedCondition:
    """The condition on the files of a message.

    Args:
        sent: those of several messages, of which one has to meet it.
    """
    problems = [check_files(f"{path}: the user message", expected, files) for files in sent]
    met = None in problems
    shown = sent[problems.index(None)] if met else sent[-1]
    actual = [source_of(file) for file in shown]
    return _judgement(path, wanted_files(expected), actual, None if met else problems[-1])


def _judged_offer(path: str, name: str, request: Request) -> JudgedCondition:
    names = [tool.name for tool in request.tools]
    offered = ", ".join(names) or "none"
    message = f"{path}: the tool {name!r} must be offered; offered: {offered}"
    return _judgement(path, name, offered, None if name in names else message)


def judged_expectations(
    expect: Expect,
    request: Request,
    since: Sequence[Message],
    earlier_calls: Sequence[tuple[str, str]] = (),
) -> Iterator[JudgedCondition]:
    """Every condition of a turn's `request:`.

    Args:
        since: the messages from the one at which the scenario's conversation begins.
        earlier_calls: the calls of the scenario's earlier turns, as (name, id).
    """
    return _judged_entry("request", expect, request, _results_sent(since, earlier_calls))


def _judged_entry(
    path: str, expect: Expect, request: Request, results: Mapping[str, Message]
) -> Iterator[JudgedCondition]:
    """The conditions of a `request:`, or of an entry of its groups.

    Args:
        results: by the ids of their calls.
    """
    for call_id, condition in expect.results:
        yield _judged_result(f"{path}.results", call_id, condition, results)
    for name in expect.offers:
        yield _judged_offer(f"{path}.offers", name, request)
    if expect.tool_choice is not None:
        sent = request.tool_choice
        message = f"{path}.tool_choice must be {expect.tool_choice!r}, got {sent!r}"
        problem = None if expect.tool_choice == sent else message
        yield _judgement(f"{path}.tool_choice", expect.tool_choice, sent, problem)
    if expect.user is not None:
        text = request.last_user.text
        yield _judged_text(f"{path}.user", "the last user message", expect.user, text)
    if expect.user_files:
        files = [request.last_user.files]
        yield _judged_files(f"{path}.user_files", expect.user_files, files)
    if expect.system is not None:
        what = "the system prompt, or a message of the system since the last answer,"
        yield _judged_text(f"{path}.system", what, expect.system, request.new_system)
    body = normal_body(expect.ignore, request) if expect.body else None
    yield from judged_body(f"{path}.body", expect.body, body, expect.ignore)
    if expect.schema is not None:
        problems = tuple(_check_schema(f"{path}.schema", expect.schema, request.body))
        yield JudgedCondition(f"{path}.schema", expect.schema, request.body, problems)
    judge = partial(_judged_entry, request=request, results=results)
    yield from judged_groups(path, expect, judge)


def _results_sent(
    since: Sequence[Message], earlier_calls: Sequence[tuple[str, str]]
) -> dict[str, Message]:
    """The results that were sent, by the ids of their calls.

    Some APIs have no ids (Gemini): a result without one belongs to the first call of its name that
    has no result yet.
    """
    results: dict[str, Message] = {}
    waiting = list(earlier_calls)
    for message in since:
        if message.role != "tool":
            continue
        id = message.call_id
        if not id:
            id = next((id for name, id in waiting if may_call(name, message.name)), "")
        results[id] = message
        waiting = [call for call in waiting if call[1] != id]
    return results


def _judged_result(
    path: str, call_id: str, condition: ResultCondition, results: Mapping[str, Message]
) -> JudgedCondition:
    what = f"{path}: the result of call {call_id!r}"
    path, expected, problem = f"{path}.{call_id}", "an error", None
    message = results.get(call_id)
    text = None if message is None else message.text
    if condition.text is not None:
        operator, expected = _operator_and_value(condition.text)
        path += operator
    if message is None:
        got = ", ".join(results) or "none"
        problem = f"{what} must be sent, but is not there; results were sent for: {got}"
    elif condition.error and not message.error and "error" not in message.text.lower():
        # Only some APIs have a flag for a failure; elsewhere the text is searched for "error".
        problem = f"{what} must report an error, got {display(message.text)}"
    elif condition.text is not None:
        problem = check_text(what, condition.text, message.text)
    return _judgement(path, expected, text, problem)


def _check_schema(path: str, schema: Any, body: Mapping[str, Any]) -> list[str]:
    # Imported here: few scenarios have a schema.
    from mockllm.scenario.schema_validation import SchemaGaveUpError, Validator, compiled_schema

    schema_text, body_text = compact(schema), dumps(body)
    validator = compiled_schema(schema_text)
    assert isinstance(validator, Validator), f"a scenario was loaded with it: {validator}"
    validate = partial(validator.errors, body, _MAX_ERRORS)
    try:
        if len(body_text) <= _SMALL_BODY:
            errors = validate()
        else:
            key = ("schema", schema_text, sha256(json_bytes(body_text)).digest())
            errors = later(key, validate)
    except SchemaGaveUpError as problem:
        return [f"{path}: the body cannot be checked: {problem}"]
    errors.sort(key=lambda error: error.json_path)
    lines = (f"{path}: {error.json_path}: {error.message}" for error in errors)
    # A message quotes the whole value, and says at its end what is wrong with it.
    return [shorten(line, 400, keep=200, tail=199) for line in lines]
