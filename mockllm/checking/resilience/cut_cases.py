"""Cases of streams that are cut, for good or before a try that succeeds."""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.checking.resilience.written import CALL, CALLS, ROME, WORDS, Written, tried
from mockllm.scenario.model import ToolPart

__all__ = ["cuts", "retried"]

_CUTS = ("close", "reset", "chunk", "orderly")
_CUT = frozenset({"network", "protocol"})


def cuts() -> Iterator[Written]:
    """Every stream of the case is cut."""
    for end in _CUTS:
        how = "in order" if end == "orderly" else f"by {end}"
        yield Written(
            f"cut-in-text-{end}",
            f"each stream ends early, {how}, after some words",
            ("cut-reported", "retry-bounded", "error-names-cause"),
            WORDS,
            {"faults": (f"cut:after=5 events,end={end}",), "kinds": _CUT},
        )
        yield Written(
            f"cut-in-call-{end}",
            f"each stream ends, {how}, inside the arguments of a call",
            ("cut-reported", "cut-call-not-executed"),
            CALL,
            {"faults": (f"cut:inside=call_1 arguments,end={end}",)},
        )
    for end in ("close", "orderly"):
        how = "in order" if end == "orderly" else "by close"
        yield Written(
            f"cut-after-call-{end}",
            f"each stream ends, {how}, after the whole arguments and before the finish",
            ("cut-reported", "cut-call-not-executed"),
            CALL,
            {"faults": (f"cut:before=finish,end={end}",)},
        )
    yield Written(
        "cut-in-second-call",
        "each stream ends in the second of two calls",
        ("cut-reported", "cut-call-not-executed"),
        CALLS,
        {"faults": ("cut:inside=call_2 arguments",)},
    )
    yield Written(
        "cut-before-anything",
        "each stream ends after its headers",
        ("cut-reported",),
        WORDS,
        {"faults": ("cut:before=first,end=orderly",)},
    )


def retried() -> Iterator[Written]:
    """The first stream breaks, and the next one is whole."""
    for end in ("close", "reset"):
        yield Written(
            f"dies-and-succeeds-{end}",
            "the first stream dies after some words, the next one is whole",
            ("no-duplicate-output", "retry-same", "cut-reported"),
            tried(WORDS, f"cut:after=5 events,end={end}"),
            {},
        )
    old = (ToolPart("get_weather", arguments=ROME, id="call_0"),)
    yield Written(
        "other-call-after-retry",
        "the first stream dies after a call, the next one has another call",
        ("no-phantom-call", "cut-call-not-executed"),
        tried(CALL, "cut:before=finish,end=reset", reply=old),
        {},
    )
    yield Written(
        "text-instead-of-call-after-retry",
        "the first stream dies after a call, the next one has no call",
        ("no-phantom-call", "cut-call-not-executed"),
        tried(WORDS, "cut:before=finish,end=close", reply=old),
        {},
    )
    yield Written(
        "error-after-words",
        "the first stream has an error after some words, the next one is whole",
        ("no-duplicate-output", "retry-same"),
        tried(WORDS, "error:after=5 events,kind=overloaded"),
        {},
    )
