"""The cases with faults: scenarios, faults, and the rules that each can judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from mockllm.checking.resilience.model import FaultCase
from mockllm.errors import RequestError
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol, dumps
from mockllm.scenario.faults import parse_faults
from mockllm.scenario.model import (
    ErrorSpec,
    Http,
    ParallelPart,
    Scenario,
    TextPart,
    Timing,
    ToolPart,
    ToolSpec,
    TurnSpec,
)

__all__ = ["fault_cases"]

_TEXT = "The forecast for Paris is sunny, with a light wind."
_WEATHER = ToolSpec(
    "get_weather",
    "The weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
)
_ARGUMENTS = '{"city":"Paris","days":12}'
_FRAGMENTS = ('{"ci', 'ty":"Pa', 'ris","days":1', "2}")
_ROME = '{"city":"Rome","days":1}'
_CUTS = ("close", "reset", "chunk", "orderly")


@lru_cache(maxsize=16)
def fault_cases(api: str) -> tuple[FaultCase, ...]:
    """The cases for the clients of an API."""
    found = (
        *_cuts(),
        *_retried(),
        *_statuses(),
        *_final_errors(PROTOCOLS[api]),
        *_waits(PROTOCOLS[api]),
        *_bodies(),
        *_stalls(),
        *_errors(),
        *_several(),
        *_cancelled(),
    )
    return tuple(_of_api(one, api) for one in found)


@dataclass(frozen=True, slots=True)
class _Written:
    """A case before it has an API."""

    name: str
    about: str
    rules: tuple[str, ...]
    turn: TurnSpec
    options: dict[str, Any]


def _of_api(written: _Written, api: str) -> FaultCase:
    tools = (_WEATHER,) if any(not isinstance(p, TextPart) for p in written.turn.reply) else ()
    scenario = Scenario(written.name, (written.turn,), apis=(api,), tools=tools)
    calls = tuple(
        one.arguments or "{}"
        for part in written.turn.reply
        for one in (part.calls if isinstance(part, ParallelPart) else (part,))
        if isinstance(one, ToolPart)
    )
    text = "".join(part.text for part in written.turn.reply if isinstance(part, TextPart))
    return FaultCase(
        f"{api}/{written.name}",
        api,
        written.about,
        (*written.rules, "leaves-nothing"),
        scenario,
        text=text,
        calls=calls,
        tools=tools,
        **written.options,
    )


_WORDS = TurnSpec(reply=(TextPart(_TEXT, split="words"),))
_CALL = TurnSpec(
    reply=(ToolPart("get_weather", arguments=_ARGUMENTS, id="call_1", split=_FRAGMENTS),)
)
_CALLS = TurnSpec(
    reply=(
        ParallelPart(
            (
                ToolPart("get_weather", arguments=_ROME, id="call_1"),
                ToolPart("get_weather", arguments=_ARGUMENTS, id="call_2", split=_FRAGMENTS),
            )
        ),
    )
)


def _cuts() -> Iterator[_Written]:
    for end in _CUTS:
        how = "in order" if end == "orderly" else f"by {end}"
        yield _Written(
            f"cut-in-text-{end}",
            f"each stream ends early, {how}, after some words",
            ("cut-reported", "retry-bounded", "error-names-cause"),
            _WORDS,
            {"faults": (f"cut:after=5 events,end={end}",), "kinds": _CUT},
        )
        yield _Written(
            f"cut-in-call-{end}",
            f"each stream ends, {how}, inside the arguments of a call",
            ("cut-reported", "cut-call-not-executed"),
            _CALL,
            {"faults": (f"cut:inside=call_1 arguments,end={end}",)},
        )
    for end in ("close", "orderly"):
        how = "in order" if end == "orderly" else "by close"
        yield _Written(
            f"cut-after-call-{end}",
            f"each stream ends, {how}, after the whole arguments and before the finish",
            ("cut-reported", "cut-call-not-executed"),
            _CALL,
            {"faults": (f"cut:before=finish,end={end}",)},
        )
    yield _Written(
        "cut-in-second-call",
        "each stream ends in the second of two calls",
        ("cut-reported", "cut-call-not-executed"),
        _CALLS,
        {"faults": ("cut:inside=call_2 arguments",)},
    )
    yield _Written(
        "cut-before-anything",
        "each stream ends after its headers",
        ("cut-reported",),
        _WORDS,
        {"faults": ("cut:before=first,end=orderly",)},
    )


_CUT = frozenset({"network", "protocol"})


def _tried(turn: TurnSpec, *faults: str, reply: tuple[Any, ...] = ()) -> TurnSpec:
    """A turn with earlier tries that have faults."""
    tries = tuple(
        Http(200, reply=TurnSpec(reply=reply, fault=parse_faults(fault))) for fault in faults
    )
    return replace(turn, attempts=tries)


def _retried() -> Iterator[_Written]:
    for end in ("close", "reset"):
        yield _Written(
            f"dies-and-succeeds-{end}",
            "the first stream dies after some words, the next one is whole",
            ("no-duplicate-output", "retry-same", "cut-reported"),
            _tried(_WORDS, f"cut:after=5 events,end={end}"),
            {},
        )
    old = (ToolPart("get_weather", arguments=_ROME, id="call_0"),)
    yield _Written(
        "other-call-after-retry",
        "the first stream dies after a call, the next one has another call",
        ("no-phantom-call", "cut-call-not-executed"),
        _tried(_CALL, "cut:before=finish,end=reset", reply=old),
        {},
    )
    yield _Written(
        "text-instead-of-call-after-retry",
        "the first stream dies after a call, the next one has no call",
        ("no-phantom-call", "cut-call-not-executed"),
        _tried(_WORDS, "cut:before=finish,end=close", reply=old),
        {},
    )
    yield _Written(
        "error-after-words",
        "the first stream has an error after some words, the next one is whole",
        ("no-duplicate-output", "retry-same"),
        _tried(_WORDS, "error:after=5 events,kind=overloaded"),
        {},
    )


def _statuses() -> Iterator[_Written]:
    for status in (400, 401, 403, 404, 422):
        yield _Written(
            f"status-{status}",
            f"every request gets status {status}",
            ("no-retry-where-useless", "error-names-cause"),
            _WORDS,
            {"faults": (f"status:status={status}",), "kinds": frozenset({"request"})},
        )
    yield _Written(
        "status-503",
        "every request gets status 503",
        ("retry-bounded", "error-names-cause", "retry-same"),
        _WORDS,
        {"faults": ("status:status=503",), "kinds": frozenset({"overloaded", "server"})},
    )
    yield _Written(
        "status-429",
        "every request gets status 429",
        ("retry-bounded", "error-names-cause"),
        _WORDS,
        {"faults": ("status:status=429",), "kinds": frozenset({"rate_limit"})},
    )
    yield _Written(
        "refused",
        "every connection is closed before an answer",
        ("retry-bounded", "error-names-cause"),
        _WORDS,
        {"faults": ("refuse:end=reset",), "kinds": frozenset({"network"})},
    )


_QUOTA = "insufficient_quota"


def _final_errors(protocol: WireProtocol) -> Iterator[_Written]:
    """An error that stays, with a status that does not; where the API's errors have such codes."""
    error = RequestError("You exceeded your quota.", status=429, type=_QUOTA, code=_QUOTA)
    if _QUOTA in dumps(protocol.error_body(error)):
        final = Http(429, error=ErrorSpec(error.message, _QUOTA, _QUOTA))
        yield _Written(
            "final-error",
            f"every request gets status 429 with the code {_QUOTA}",
            ("no-retry-where-useless",),
            TurnSpec(http=final),
            {"final": _QUOTA},
        )


def _waits(protocol: WireProtocol) -> Iterator[_Written]:
    for form, wait in (("seconds", 1.0), ("date", 1.0), ("ms", 0.3)):
        if form == "ms" and not _knows_milliseconds(protocol):
            continue
        yield _Written(
            f"retry-after-{form}",
            f"status 429 says to wait {wait:g} s ({form}); the next request is answered",
            ("retry-after-honoured",),
            _tried(_WORDS, f"status:status=429,retry_after={wait:g}s,retry_form={form}"),
            {"wait": wait},
        )
    yield _Written(
        "retry-after-overloaded",
        "status 503 says to wait 1 s; the next request is answered",
        ("retry-after-honoured",),
        _tried(_WORDS, "status:status=503,retry_after=1s,retry_form=seconds"),
        {"wait": 1.0},
    )
    yield _Written(
        "retry-after-too-long",
        "status 429 says to wait an hour",
        ("retry-after-honoured",),
        _tried(_WORDS, "status:status=429,retry_after=60m,retry_form=seconds"),
        {"wait": 3600.0},
    )
    yield _Written(
        "backoff",
        "status 503 four times, without a time to wait",
        ("backoff-grows",),
        _WORDS,
        {"faults": ("status:status=503",), "tries": 4, "requests": 2, "deadline": 30.0},
    )


def _knows_milliseconds(protocol: WireProtocol) -> bool:
    """Whether the service sends `retry-after-ms`."""
    return "retry-after-ms" in protocol.error_headers("", RequestError("", status=429), 1.0)


def _bodies() -> Iterator[_Written]:
    kinds = {
        "html": "a page of HTML",
        "error": "the JSON of an error",
        "empty": "an empty body",
        "gzip": "compressed data that cannot be read",
        "json": "a stream with an event that is not JSON",
    }
    for what, about in kinds.items():
        yield _Written(
            f"body-{what}",
            f"every answer has status 200 and {about}",
            ("wrong-body-reported",),
            _WORDS,
            {"faults": (f"garble:what={what}",)},
        )


def _stalls() -> Iterator[_Written]:
    places = {
        "before-headers": "before=headers",
        "after-headers": "before=first",
        "after-words": "after=5 events",
        "inside-event": "inside=event 5",
    }
    for name, place in places.items():
        yield _Written(
            f"stall-{name}",
            f"every stream stalls {name.replace('-', ' ')}, for ever",
            ("stall-times-out", "error-names-cause"),
            _WORDS,
            {
                "faults": (f"stall:{place}",),
                "tries": 2,
                "kinds": frozenset({"timeout", "network"}),
            },
        )
    slow = replace(_WORDS, timing=Timing(every=250_000))
    yield _Written(
        "slow-and-alive",
        "a stream with a word each 250 ms",
        ("stall-times-out",),
        slow,
        {"idle_timeout": 1.5},
    )


def _errors() -> Iterator[_Written]:
    kinds = {"overloaded": {"overloaded", "server"}, "rate_limit": {"rate_limit"}}
    for kind, expected in kinds.items():
        yield _Written(
            f"stream-error-{kind}",
            f"every stream has the service's error, {kind}, after some words",
            ("error-names-cause", "retry-bounded"),
            _WORDS,
            {
                "faults": (f"error:after=5 events,kind={kind}",),
                "kinds": frozenset(expected),
            },
        )


def _several() -> Iterator[_Written]:
    failures = {
        "cut": "cut:inside=event 5,end=reset",
        "stall": "stall:after=3 events",
        "idle-connection": "keepalive-closed",
        "html": "garble:what=html",
    }
    for name, fault in failures.items():
        yield _Written(
            f"next-after-{name}",
            f"the first answer has the fault {fault}, all others are whole",
            ("recovers",),
            _tried(_WORDS, fault),
            {"requests": 2, "tries": 2},
        )
    for name, fault in (("stall", "stall:after=3 events"), ("cut", "cut:after=3 events")):
        yield _Written(
            f"beside-{name}",
            f"of two requests at the same time, one answer has the fault {fault}",
            ("isolated",),
            replace(_tried(_WORDS, fault), timing=Timing(every=20_000)),
            {"requests": 2, "together": True, "tries": 1, "idle_timeout": 1.5},
        )


def _cancelled() -> Iterator[_Written]:
    yield _Written(
        "cancelled",
        "the client is cancelled after the first piece of a stream of 30 s",
        ("cancel-closes",),
        TurnSpec(reply=(TextPart(_TEXT * 4, split="words"),), timing=Timing(every=800_000, ttft=0)),
        {"cancel": True, "idle_timeout": 5.0},
    )
