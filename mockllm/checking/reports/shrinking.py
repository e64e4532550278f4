"""Shrinks a failed case: its scenario and how the answer is cut.

The search is greedy. What is simpler is tried from the largest step to the smallest, and whatever
still breaks the same invariant is where it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from itertools import chain
from typing import Any

from mockllm.checking.cases.build import case as compile_case
from mockllm.checking.cases.case import Case
from mockllm.checking.cases.scenarios import PLAIN, Variation
from mockllm.core.errors import MockLLMError
from mockllm.core.jsontext import compact
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.part_model import (
    AnyPart,
    Content,
    ParallelPart,
    TextPart,
    content_of,
    tool_parts,
)
from mockllm.wire.protocols.values import json_object

TRIES = 400
"""How many smaller cases are tried."""


def shrink(case: Case, breaks: Callable[[Case], bool], *, tries: int = TRIES) -> Case:
    """The smallest case found for which `breaks` holds; at worst the case itself."""
    varied = case.quirk or case.variation != PLAIN
    scenario = (case.plain if varied and case.plain is not None else case).scenario
    turn = scenario.turns[0].for_api(case.api)
    first = replace(turn, timing=None, expect=None, branches=()), case.variation
    smallest, candidates = case, chain([first], _simpler(*first))
    for _ in range(tries):
        candidate = next(candidates, None)
        if candidate is None:
            break
        smaller = _compile_smaller(scenario, case, *candidate)
        if smaller is not None and _size(smaller) <= _size(case) and breaks(smaller):
            smallest, candidates = smaller, chain(_simpler(*candidate))
    return smallest


def _size(case: Case) -> tuple[int, int]:
    return len(case.chunks), case.answer.size


def _compile_smaller(
    scenario: Scenario, case: Case, turn: TurnSpec, variation: Variation
) -> Case | None:
    """The case with another turn and variation; None where there is no such stream."""
    used = {call.name for call in tool_parts(turn.reply)}
    tools = tuple(tool for tool in scenario.tools if tool.name in used)
    small = replace(scenario, turns=(turn,), apis=(case.api,), description="", tools=tools)
    try:
        return compile_case(small, case.api, variation, case.quirk)
    except (MockLLMError, ValueError):
        return None


def _simpler(turn: TurnSpec, variation: Variation) -> Iterator[tuple[TurnSpec, Variation]]:
    """The turn and its variation with less of either."""
    for fewer in _fewer_cuts(variation):
        yield turn, fewer
    if turn.wire is not None:
        yield replace(turn, wire=None), variation
    for reply in _shorter_replies(turn.reply):
        yield replace(turn, reply=reply), variation


def _fewer_cuts(variation: Variation) -> Iterator[Variation]:
    if variation == PLAIN:
        return
    yield PLAIN
    for field in fields(PLAIN):
        given: Any = getattr(variation, field.name)
        plain = getattr(PLAIN, field.name)
        one_size: Any = given[:1] if isinstance(given, tuple) else given
        for simpler in (plain, one_size):
            if given != simpler:
                yield replace(variation, **{field.name: simpler})


def _shorter_replies(parts: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """One part alone, all but one, and all with less of one of them."""
    if len(parts) > 1:
        yield from ((part,) for part in parts)
        yield from (parts[:at] + parts[at + 1 :] for at in range(len(parts)))
    for at, part in enumerate(parts):
        for shorter in _shorter(part):
            yield (*parts[:at], shorter, *parts[at + 1 :])


def _shorter(part: Any) -> Iterator[AnyPart]:
    content = content_of(part)
    if isinstance(part, ParallelPart):
        for several in _shorter_replies(part.calls):
            yield ParallelPart(several) if len(several) > 1 else several[0]
    elif content is not None and content.text and not getattr(part, "malformed", False):
        yield from _shorter_content(part, content)


def _shorter_content(part: Any, content: Content) -> Iterator[AnyPart]:
    if isinstance(part, TextPart) and part.tokens:
        part = replace(part, logprobs=True)  # the tokens are those of the whole text
    if isinstance(part, TextPart) and part.citations:
        yield replace(part, citations=())
    for text in _shorter_json(content.text) if content.is_json else _shorter_texts(content.text):
        changed: Any = {content.field: text, "split": _split(part.split, text or "")}
        yield replace(part, **changed, every=None)
    if part.split is not None:
        yield replace(part, split=None, every=None)


def _shorter_texts(text: str) -> Iterable[str]:
    lengths = (1, len(text) // 2, len(text) - 1) if len(text) > 1 else ()
    return dict.fromkeys(text[:length] for length in lengths)


def _shorter_json(text: str) -> Iterator[str | None]:
    value = json_object(text) or {}  # `{raw: ...}` may be no JSON
    for key in value:
        rest = {name: inner for name, inner in value.items() if name != key}
        yield compact(rest) if rest else None


def _split(split: Any, text: str) -> Any:
    """The cut of a shorter text: in two, where the fragments are those of the longer one."""
    return 1 + len(text) // 2 if isinstance(split, tuple) else split
