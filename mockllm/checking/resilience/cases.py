"""The cases with faults: scenarios, faults, and the rules that each can judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from mockllm.checking.resilience.cut_cases import cuts, retried
from mockllm.checking.resilience.model import FaultCase
from mockllm.checking.resilience.status_cases import final_errors, statuses, waits
from mockllm.checking.resilience.written import TEXT, WORDS, Written, of_api, tried
from mockllm.protocols import PROTOCOLS
from mockllm.scenario.model import TextPart, Timing, TurnSpec

__all__ = ["fault_cases"]


@lru_cache(maxsize=16)
def fault_cases(api: str) -> tuple[FaultCase, ...]:
    """The cases for the clients of an API."""
    found = (
        *cuts(),
        *retried(),
        *statuses(),
        *final_errors(PROTOCOLS[api]),
        *waits(PROTOCOLS[api]),
        *_bodies(),
        *_stalls(),
        *_errors(),
        *_several(),
        *_cancelled(),
    )
    return tuple(of_api(one, api) for one in found)


def _bodies() -> Iterator[Written]:
    kinds = {
        "html": "a page of HTML",
        "error": "the JSON of an error",
        "empty": "an empty body",
        "gzip": "compressed data that cannot be read",
        "json": "a stream with an event that is not JSON",
    }
    for what, about in kinds.items():
        yield Written(
            f"body-{what}",
            f"every answer has status 200 and {about}",
            ("wrong-body-reported",),
            WORDS,
            {"faults": (f"garble:what={what}" + (",event=5" if what == "json" else ""),)},
        )


def _stalls() -> Iterator[Written]:
    places = {
        "before-headers": "before=headers",
        "after-headers": "before=first",
        "after-words": "after=5 events",
        "inside-event": "inside=event 5",
    }
    for name, place in places.items():
        yield Written(
            f"stall-{name}",
            f"every stream stalls {name.replace('-', ' ')}, for ever",
            ("stall-times-out", "error-names-cause"),
            WORDS,
            {
                "faults": (f"stall:{place}",),
                "tries": 2,
                "kinds": frozenset({"timeout", "network"}),
            },
        )
    slow = replace(WORDS, timing=Timing(every=250_000))
    yield Written(
        "slow-and-alive",
        "a stream with a word each 250 ms",
        ("stall-times-out",),
        slow,
        {"idle_timeout": 1.5},
    )


def _errors() -> Iterator[Written]:
    kinds = {"overloaded": {"overloaded", "server"}, "rate_limit": {"rate_limit"}}
    for kind, expected in kinds.items():
        yield Written(
            f"stream-error-{kind}",
            f"every stream has the service's error, {kind}, after some words",
            ("error-names-cause", "retry-bounded"),
            WORDS,
            {
                "faults": (f"error:after=5 events,kind={kind}",),
                "kinds": frozenset(expected),
            },
        )


def _several() -> Iterator[Written]:
    failures = {
        "cut": "cut:inside=event 5,end=reset",
        "stall": "stall:after=3 events",
        "idle-connection": "keepalive-closed",
        "html": "garble:what=html",
    }
    for name, fault in failures.items():
        yield Written(
            f"next-after-{name}",
            f"the first answer has the fault {fault}, all others are whole",
            ("recovers",),
            tried(WORDS, fault),
            {"requests": 2, "tries": 2},
        )
    for name, fault in (("stall", "stall:after=3 events"), ("cut", "cut:after=3 events")):
        yield Written(
            f"beside-{name}",
            f"of two requests at the same time, one answer has the fault {fault}",
            ("isolated",),
            replace(tried(WORDS, fault), timing=Timing(every=20_000)),
            {"requests": 2, "together": True, "tries": 1, "idle_timeout": 1.5},
        )


def _cancelled() -> Iterator[Written]:
    yield Written(
        "cancelled",
        "the client is cancelled after the first piece of a stream of 30 s",
        ("cancel-closes",),
        TurnSpec(reply=(TextPart(TEXT * 4, split="words"),), timing=Timing(every=800_000, ttft=0)),
        {"cancel": True, "idle_timeout": 5.0},
    )
