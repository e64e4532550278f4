"""The calls of a stream that have begun and not ended when it breaks off. Pure."""

from __future__ import annotations

from functools import lru_cache

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.readable import readable_events
from mockllm.core.events import Finish, PartEnd, ToolStart


def open_calls(case: Case) -> frozenset[str]:
    """The ids of the calls that are open at the end of a stream.

    Empty where the API does not mark the end of each call, but of the answer alone: arguments that
    parse are then all that a client has to go by.
    """
    started, ended, _ = _calls(b"".join(case.chunks), case.api)
    if not started - ended or case.plain is None:
        return frozenset()
    _, _, marked = _calls(b"".join(case.plain.chunks), case.plain.api)
    return (started - ended) & marked


@lru_cache(maxsize=256)
def _calls(data: bytes, api: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The ids of the calls that start, that end, and that end before the frame of the finish."""
    ids: dict[int, str] = {}
    ended: set[str] = set()
    before_finish: set[str] = set()
    for events in readable_events(data, api):
        now = set()
        for event in events:
            if isinstance(event, ToolStart):
                ids[event.part] = event.id
            elif isinstance(event, PartEnd) and event.part in ids:
                now.add(ids[event.part])
        ended |= now
        if not any(isinstance(event, Finish) for event in events):
            before_finish |= now
    return frozenset(ids.values()), frozenset(ended), frozenset(before_finish)
