"""Shrinks a failed case: its scenario and how the answer is cut.

Hypothesis searches: every draw decides what is left out, and the smallest example that it finds is
the smallest case that still breaks the same invariant.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import case as compile_case
from mockllm.checking.cases.scenarios import PLAIN, Variation
from mockllm.core.jsontext import compact
from mockllm.errors import MockLLMError, UsageError
from mockllm.scenario.model import (
    AnyPart,
    Citation,
    FramePart,
    ParallelPart,
    ReasoningPart,
    RefusalPart,
    Scenario,
    TextPart,
    ToolPart,
    Wire,
)

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

TRIES = 400
"""How many smaller cases are tried."""


def shrink(case: Case, breaks: Callable[[Case], bool], *, tries: int = TRIES) -> Case:
    """The smallest case found for which `breaks` holds; at worst the case itself."""
    try:
        from hypothesis import HealthCheck, Phase, find, settings
        from hypothesis.errors import NoSuchExample
        from hypothesis.strategies import composite
    except ImportError as error:
        raise UsageError(
            "hypothesis makes failures small and is not installed: pip install hypothesis"
        ) from error

    varied = case.quirk or case.variation != PLAIN
    plain = case.plain if varied and case.plain is not None else case

    @composite
    def smaller(draw: DrawFn) -> Case | None:
        return _smaller(_Draw(draw), plain.scenario, case)

    try:
        found = find(
            smaller(),
            lambda one: one is not None and breaks(one),
            settings=settings(
                max_examples=tries,
                database=None,
                derandomize=True,
                deadline=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            ),
        )
    except NoSuchExample:
        return case
    return case if found is None or _size(found) > _size(case) else found


def _size(case: Case) -> tuple[int, int]:
    return len(case.chunks), case.answer.size


class _Draw:
    """The draws of one smaller case."""

    def __init__(self, draw: DrawFn) -> None:
        from hypothesis import strategies as st

        self._draw, self._st = draw, st

    def keep(self) -> bool:
        """Whether a part is kept; hypothesis tries to leave it out."""
        kept: bool = self._draw(self._st.booleans())
        return kept

    def length(self, most: int) -> int:
        """How much of a part is kept; hypothesis tries to keep little."""
        length: int = self._draw(self._st.integers(0, most))
        return length

    def one_of(self, *values: Any) -> Any:
        """One of the values, the simplest first."""
        return self._draw(self._st.sampled_from(values))


def _smaller(draw: _Draw, scenario: Scenario, case: Case) -> Case | None:
    turn = scenario.turns[0].for_api(case.api)
    reply = tuple(kept for part in turn.reply if (kept := _part(draw, part)) is not None)
    if not reply:
        return None
    wire = turn.wire if turn.wire is not None and draw.keep() else None
    smaller = replace(
        turn,
        reply=reply,
        wire=wire if wire != Wire() else None,
        timing=None,
        expect=None,
        variants=(),
    )
    used = {call.name for part in reply for call in _calls(part)}
    small = replace(
        scenario,
        turns=(smaller,),
        apis=(case.api,),
        description="",
        tools=tuple(tool for tool in scenario.tools if tool.name in used),
    )
    variation = _variation(draw, case.variation)
    try:
        return compile_case(small, case.api, variation, case.quirk)
    except (MockLLMError, ValueError):
        return None


def _calls(part: AnyPart) -> tuple[ToolPart, ...]:
    if isinstance(part, ParallelPart):
        return part.calls
    return (part,) if isinstance(part, ToolPart) else ()


def _part(draw: _Draw, part: AnyPart) -> AnyPart | None:
    """A smaller part, or None if it is left out."""
    if not draw.keep():
        return None
    match part:
        case TextPart():
            return _text(draw, replace(part, citations=_some(draw, part.citations)))
        case ReasoningPart() | RefusalPart():
            return _text(draw, part)
        case ToolPart():
            return _tool(draw, part)
        case ParallelPart(calls=calls):
            kept = tuple(_tool(draw, call) for call in calls if draw.keep())
            return ParallelPart(kept) if len(kept) > 1 else (kept[0] if kept else None)
        case FramePart():
            return part
        case _:
            return part


def _text(
    draw: _Draw, part: TextPart | ReasoningPart | RefusalPart
) -> TextPart | ReasoningPart | RefusalPart:
    text = part.text[: draw.length(len(part.text))]
    return replace(part, text=text, split=_split(draw, text, part.split), every=None)


def _split(draw: _Draw, text: str, split: Any) -> Any:
    """A simpler way of cutting a text. Fragments that the scenario spells out are kept only while
    they still join to the text."""
    if isinstance(split, tuple) and "".join(split) == text and draw.keep():
        return split
    return draw.one_of(None, 1 + len(text) // 2, 1)


def _tool(draw: _Draw, part: ToolPart) -> ToolPart:
    if part.malformed or not part.arguments:
        return replace(part, every=None)
    arguments = json.loads(part.arguments)
    if not isinstance(arguments, dict):
        return part
    kept = {key: value for key, value in arguments.items() if draw.keep()}
    text = part.arguments if kept == arguments else compact(kept)
    whole = replace(part, arguments=text if kept else None, every=None)
    return replace(whole, split=_split(draw, whole.arguments or "", part.split))


def _some(draw: _Draw, citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
    return tuple(citation for citation in citations if draw.keep())


def _variation(draw: _Draw, full: Variation) -> Variation:
    """The variation with some of it left out."""
    if full == PLAIN:
        return PLAIN
    return Variation(
        split=_sizes(draw, full.split),
        group=full.group if full.group and draw.keep() else None,
        line_end=full.line_end if full.line_end and draw.keep() else None,
        bom=full.bom and draw.keep(),
        multiline=full.multiline and draw.keep(),
        comments=full.comments if full.comments and draw.keep() else None,
        cut=_sizes(draw, full.cut),
    )


def _sizes(draw: _Draw, sizes: tuple[int, ...]) -> tuple[int, ...]:
    if not sizes or not draw.keep():
        return ()
    return draw.one_of(sizes[:1], (1,), sizes)  # type: ignore[no-any-return]
