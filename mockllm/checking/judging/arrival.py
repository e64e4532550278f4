"""The texts of a stream in the order in which their fragments arrive. Pure."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.readable import readable_events
from mockllm.core.events import ReasoningDelta, RefusalDelta, TextDelta

_Fragment = TextDelta | ReasoningDelta | RefusalDelta

_DELTAS: dict[str, type[_Fragment]] = {
    "text": TextDelta,
    "reasoning": ReasoningDelta,
    "refusal": RefusalDelta,
}


def is_in_order_of_arrival(case: Case, name: str, got: str) -> bool:
    """Whether a text is the expected one with its fragments in the order of their arrival.

    Of several texts that grow at the same time, a client may keep one after the other, or append
    each fragment as it comes.
    """
    expected = getattr(case.expected, name)
    if len(got) != len(expected) or Counter(got) != Counter(expected):
        return False
    return _joined(b"".join(case.chunks), case.api, name) == got


@lru_cache(maxsize=64)
def _joined(data: bytes, api: str, name: str) -> str:
    kind = _DELTAS[name]
    return "".join(
        event.text
        for events in readable_events(data, api)
        for event in events
        if isinstance(event, kind)
    )
