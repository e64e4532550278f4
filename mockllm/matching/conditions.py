"""The conditions that a request can be checked against, each with a message where it fails.

A check returns None where the condition holds, else what was expected and what was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from hashlib import sha256
from json import dumps, loads
from typing import TYPE_CHECKING, Any

from mockllm.core.later import later
from mockllm.core.patterns import compiled
from mockllm.core.request import Message, Request
from mockllm.core.text import display
from mockllm.scenario.model import Expect, Match, ResultCondition, TextCondition

if TYPE_CHECKING:
    from mockllm.scenario.schema_validation import Validator

__all__ = [
    "Judged",
    "check_expect",
    "check_match",
    "check_partial",
    "check_text",
    "judged_expectations",
    "judged_user_text",
    "last_user_text",
    "model_holds",
    "results_sent",
    "text_holds",
]

_MAX_ERRORS = 50
_SMALL_BODY = 64 * 1024
"""Of a body that is validated on the event loop, in bytes; others are validated in a thread."""


def text_holds(condition: TextCondition, text: str) -> bool:
    """Whether a text meets a condition; a regular expression may match anywhere in it.

    Raises:
        PatternGaveUpError: the search for a regular expression took too long.
    """
    if condition.op == "contains":
        return condition.value in text
    if condition.op == "equals":
        return condition.value == text
    return compiled(condition.value).found_in(text)


def model_holds(glob: str, model: str) -> bool:
    """Whether the name of a model matches a glob (`gpt-4*`), case included."""
    return fnmatchcase(model, glob)


def last_user_text(request: Request) -> str:
    """The text of the last user message; "" where there is none."""
    for message in reversed(request.messages):
        if message.role == "user":
            return message.text
    return ""


def judged_user_text(match: Match, request: Request) -> str:
    """The text that `match.user` is judged by: the last of a user that meets it, else the last."""
    if match.user is not None:
        for message in reversed(request.messages):
            if message.role == "user" and text_holds(match.user, message.text):
                return message.text
    return last_user_text(request)


def check_text(what: str, condition: TextCondition, text: str) -> str | None:
    """Why a text does not meet a condition.

    Args:
        what: names the text in the message.
    """
    if text_holds(condition, text):
        return None
    verb = {"contains": "contain", "equals": "be", "regex": "match the regex"}[condition.op]
    return f"{what} must {verb} {display(condition.value)}, got {display(text)}"


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
        for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
            problem = check_partial(f"{what}[{index}]", left, right)
            if problem is not None:
                return problem
        return None
    if expected == actual and isinstance(expected, bool) == isinstance(actual, bool):
        return None
    return f"{what} must be {display(expected)}, got {display(actual)}"


def check_match(
    match: Match, request: Request, headers: Mapping[str, str], *, user: str | None = None
) -> Iterator[str | None]:
    """The result of each condition of a `match`, in a fixed order.

    Args:
        headers: with lower-case names.
        user: the user message to check in place of the last one; "" skips `match.user`, for
            callers that have checked it.
    """
    if match.user is not None and user != "":
        text = last_user_text(request) if user is None else user
        yield check_text("match.user: the last user message", match.user, text)
    if match.model is not None:
        holds = model_holds(match.model, request.model)
        yield (
            None
            if holds
            else f"match.model: the model must match {match.model!r}, got {request.model!r}"
        )
    if match.system is not None:
        yield check_text("match.system: the system prompt", match.system, request.system)
    if match.tools:
        offered = {tool.name for tool in request.tools}
        for name in match.tools:
            yield None if name in offered else _not_offered("match.tools", name, request)
    for name, condition in match.headers:
        yield _check_header(name, condition, headers)
    if match.body is not None:
        yield check_partial("match.body: body", match.body, request.body)
    if match.stream is not None and match.stream != request.stream:
        yield f"match.stream: the request must {'' if match.stream else 'not '}be for a stream"


def _not_offered(what: str, name: str, request: Request) -> str:
    offered = ", ".join(tool.name for tool in request.tools) or "none"
    return f"{what}: the tool {name!r} must be offered; offered: {offered}"


def _check_header(name: str, condition: TextCondition, headers: Mapping[str, str]) -> str | None:
    value = headers.get(name)
    if value is None:
        return f"match.headers: the header {name!r} must be sent, but is not there"
    return check_text(f"match.headers: the header {name!r}", condition, value)


def check_expect(
    expect: Expect,
    request: Request,
    since: Sequence[Message],
    earlier_calls: Sequence[tuple[str, str]] = (),
) -> list[str]:
    """A message for each condition of a turn's `request:` that the request does not meet.

    Args:
        since: the messages from the one at which the scenario's conversation begins.
        earlier_calls: the calls of the scenario's earlier turns, as (name, id).
    """
    judged = judged_expectations(expect, request, since, earlier_calls)
    return [problem for one in judged for problem in one.problems]


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition of a turn's `request:` with its result.

    Args:
        path: below `request`, as in the file.
        key: the call of a result, the name of a tool, or the text of the user.
        problems: a message for each reason why it does not hold; none where it holds.
    """

    path: str
    problems: tuple[str, ...]
    key: str = ""


def judged_expectations(
    expect: Expect,
    request: Request,
    since: Sequence[Message],
    earlier_calls: Sequence[tuple[str, str]] = (),
) -> Iterator[Judged]:
    """Every condition of a turn's `request:` with its result; arguments as of `check_expect`."""
    results = results_sent(since, earlier_calls)
    for call_id, condition in expect.results:
        yield _one(f"results.{call_id}", _check_result(call_id, condition, results), call_id)
    offered = {tool.name for tool in request.tools}
    for name in expect.offers:
        problem = None if name in offered else _not_offered("request.offers", name, request)
        yield _one("offers", problem, name)
    if expect.tool_choice is not None:
        same = expect.tool_choice == request.tool_choice
        message = f"request.tool_choice must be {expect.tool_choice!r}, got {request.tool_choice!r}"
        yield _one("tool_choice", None if same else message)
    if expect.user is not None:
        text = last_user_text(request)
        problem = check_text("request.user: the last user message", expect.user, text)
        yield _one("user", problem, text)
    if expect.body is not None:
        yield _one("body", check_partial("request.body: body", expect.body, request.body))
    if expect.schema is not None:
        yield Judged("schema", tuple(_check_schema(expect.schema, request.body)))


def _one(path: str, problem: str | None, key: str = "") -> Judged:
    return Judged(path, () if problem is None else (problem,), key)


def results_sent(
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
            id = next((id for name, id in waiting if name == message.name), "")
        results[id] = message
        waiting = [call for call in waiting if call[1] != id]
    return results


def _check_result(
    call_id: str, condition: ResultCondition, results: Mapping[str, Message]
) -> str | None:
    what = f"request.results: the result of call {call_id!r}"
    message = results.get(call_id)
    if message is None:
        got = ", ".join(results) or "none"
        return f"{what} must be sent, but is not there; results were sent for: {got}"
    if condition.error and not message.error and "error" not in message.text.lower():
        # Only some APIs have a flag for a failure; elsewhere the text is searched for "error".
        return f"{what} must report an error, got {display(message.text)}"
    if condition.text is not None:
        return check_text(what, condition.text, message.text)
    return None


def _check_schema(schema: Any, body: Mapping[str, Any]) -> list[str]:
    # Imported here: few scenarios have a schema.
    from mockllm.scenario.schema_validation import SchemaGaveUpError

    schema_text, body_text = dumps(schema), dumps(body)
    validate = partial(_validator(schema_text).errors, body, _MAX_ERRORS)
    try:
        if len(body_text) <= _SMALL_BODY:
            errors = validate()
        else:
            key = ("schema", schema_text, sha256(body_text.encode()).digest())
            errors = later(key, validate)
    except SchemaGaveUpError as problem:
        return [f"request.schema: the body cannot be checked: {problem}"]
    errors.sort(key=lambda error: error.json_path)
    return [f"request.schema: {error.json_path}: {error.message}" for error in errors]


@lru_cache(maxsize=256)
def _validator(schema: str) -> Validator:
    from mockllm.scenario.schema_validation import Validator

    return Validator(loads(schema))
