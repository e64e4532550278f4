"""Takes the machine of a coding agent out of an exchange: folders and names become placeholders.

Where a stream has one in pieces, the first piece gets the placeholder, so that a replay finds it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import pairwise

from mockllm.core.errors import MockLLMError
from mockllm.core.patterns import TimedPattern
from mockllm.core.request import FILLED, WORLD, Request, World
from mockllm.play.tapes.captured import Captured, detect_api, request_of
from mockllm.record.redaction.find.bodies import Edit
from mockllm.record.redaction.find.finder import Finder
from mockllm.record.redaction.find.patterns import Detector

_PATTERN = "pattern"
"""The kind of what the pattern of a `Finder` finds."""


class _Nothing(Detector):
    """Finds no secrets: they are the matter of another pass."""

    def is_off(self, kind: str) -> bool:
        return True

    def find(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        yield from ()


def model_request(plain: Captured) -> Request | None:
    """The request of an exchange for an answer of a model; None for any other."""
    found = detect_api(plain)
    if found.protocol is not None:
        with suppress(MockLLMError, RecursionError):
            return request_of(plain, found)
    return None


def request_edits(text: str, world: World) -> list[Edit]:
    """The edits of a request that hide a machine."""
    return _edits(text, world, WORLD)


def answer_edits(text: str, world: World) -> list[Edit]:
    """The edits of an answer that hide a machine; a replay fills them in."""
    return _edits(text, world, FILLED)


def _edits(text: str, world: World, names: Collection[str]) -> list[Edit]:
    expression = world.expression(names)
    if not expression:
        return []
    finder = Finder((TimedPattern(expression),), detector=_Nothing())
    edits: list[Edit] = []
    for found in finder.find(text):
        if found.kind == _PATTERN and found.inner is None and not found.fixed:
            first, *others = sorted(found.parts)
            edits.append(Edit(*first, world.placeholder(found.secret)))
            edits += [Edit(*part, "") for part in others]
    edits.sort()
    apart = [b.start >= a.end for a, b in pairwise(edits)]
    return [edit for edit, is_apart in zip(edits, [True, *apart], strict=False) if is_apart]
