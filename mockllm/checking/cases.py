"""Scenarios times protocols times variations and quirks: the cases that a client goes through.

A case is itself a scenario of one turn; whatever a case shows can be written down and played.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from mockllm.asking import asked, user_text
from mockllm.checking.case import Case, Events
from mockllm.checking.outcome import Call, Outcome, Trouble, Usage
from mockllm.checking.variation import PLAIN, Variation, draw, vary
from mockllm.derive import derive, derive_int
from mockllm.errors import RequestError, UsageError
from mockllm.matching import Pick
from mockllm.protocols import PROTOCOLS
from mockllm.quirks import QUIRKS, Quirk, Variant, find
from mockllm.replay import Answer, Replayer
from mockllm.request import Request
from mockllm.resolve import resolve
from mockllm.scenario.model import (
    APIS,
    Api,
    AutoPart,
    Match,
    Scenario,
    TextPart,
    TurnSpec,
    Wire,
)
from mockllm.sse import decode
from mockllm.turn import ToolCall, Turn

__all__ = ["case", "cases", "plain_cases", "quirk_cases", "single"]

Level = Literal["payloads", "bytes"]

_FINISH: dict[str, dict[str, tuple[str, ...]]] = {
    "chat": {"refusal": ("stop",)},
    "responses": {
        "stop": ("completed",),
        "tool_calls": ("completed",),
        "refusal": ("completed",),
        "length": ("max_output_tokens", "incomplete"),
        "content_filter": ("incomplete",),
    },
    "anthropic": {
        "stop": ("end_turn",),
        "tool_calls": ("tool_use",),
        "length": ("max_tokens",),
    },
    "gemini": {
        "stop": ("STOP",),
        "tool_calls": ("STOP",),
        "length": ("MAX_TOKENS",),
        "content_filter": ("SAFETY",),
        "refusal": ("STOP",),
    },
    "agui": {
        "stop": ("RUN_FINISHED", "success"),
        "tool_calls": ("RUN_FINISHED", "success", "stop"),
    },
}
"""The words of each protocol for a finish, besides the neutral one; the first is the usual."""


def single(scenario: Scenario, position: int = 0) -> Scenario:
    """One turn of a scenario as a scenario of its own, which answers anything."""
    turn = scenario.turns[position]
    name = scenario.name if len(scenario.turns) == 1 else f"{scenario.name}-{position + 1}"
    answer = replace(
        turn,
        request=None,
        attempts=(),
        repeat=False,
        reply=tuple(map(_said, turn.reply)),
        variants=tuple(
            (api, replace(each, request=None, attempts=(), repeat=False))
            for api, each in turn.variants
        ),
    )
    return replace(
        scenario,
        name=name,
        seed=scenario.seeded,
        match=Match(anything=True),
        turns=(answer,),
        restart=False,
    )


def _said(part: Any) -> Any:
    """Answers that are made from the request say something fixed in a case."""
    return TextPart("You said: Hello") if isinstance(part, AutoPart) else part


def case(
    scenario: Scenario,
    api: Api,
    variation: Variation = PLAIN,
    quirk: str = "",
    *,
    plain: Case | None = None,
) -> Case:
    """The case of a scenario of one turn (see `single`) over a protocol.

    Args:
        plain: the same without variation and quirk, where it is known.

    Raises:
        UsageError: the scenario does not play over the protocol, or has no stream to check.
    """
    spec = scenario.turns[0].for_api(api)
    if api not in scenario.apis:
        raise UsageError(f"scenario {scenario.name!r} does not play over {api}")
    if spec.http is not None:
        raise UsageError(f"turn 1 of {scenario.name!r} is an HTTP error; it has no stream")
    told = vary(scenario, variation)
    if quirk:
        told = _with_quirks(told, (quirk,))
    own = spec.wire.quirks if spec.wire else ()
    if plain is None and (quirk or own or variation != PLAIN):
        plain = case(_with_quirks(scenario, None) if own else scenario, api)
    return _compiled(told, api, _name(scenario, api, variation, quirk), variation, quirk, plain)


def _name(scenario: Scenario, api: str, variation: Variation, quirk: str) -> str:
    return " + ".join(filter(None, (f"{api}/{scenario.name}", str(variation), quirk)))


def _with_quirks(scenario: Scenario, quirks: tuple[str, ...] | None) -> Scenario:
    """A scenario with further quirks; None takes away those it has."""

    def turn(spec: TurnSpec) -> TurnSpec:
        wire = spec.wire or Wire()
        wire = replace(wire, quirks=() if quirks is None else (*wire.quirks, *quirks))
        return replace(
            spec,
            wire=None if wire == Wire() else wire,
            variants=tuple((api, turn(each)) for api, each in spec.variants),
        )

    return replace(scenario, turns=tuple(map(turn, scenario.turns)))


def _compiled(
    scenario: Scenario,
    api: Api,
    name: str,
    variation: Variation,
    quirk: str,
    plain: Case | None,
) -> Case:
    spec = scenario.turns[0].for_api(api)
    protocol = PROTOCOLS[api]
    prompt, model = user_text(scenario), "mock-model"
    request = asked(protocol, scenario, prompt, model)
    answer = Replayer().answer(Pick(scenario, 0, 0), request, protocol)
    turn = resolve(scenario, 0, api, protocol.call_prefix)
    quirks = [
        found for found in map(find, spec.wire.quirks if spec.wire else ()) if api in found[0].apis
    ]
    # What the protocol cannot say is gone before a quirk adds a word that is not its own.
    meant = protocol.project(turn)
    for _, variant in quirks:
        if variant.meaning is not None:
            meant = variant.meaning(meant)
    expected = _outcome(meant, spec, api)
    right = "same"
    for one, variant in quirks:
        right = variant.right or one.right
    if right == "same" and expected.errors:
        right = "error"
    return Case(
        name=name,
        api=api,
        scenario=scenario,
        prompt=prompt,
        tools=scenario.tools,
        answer=answer,
        events=_events(answer, api, [variant for _, variant in quirks]),
        expected=expected,
        finishes=_finishes(meant, api),
        right=right,  # type: ignore[arg-type]
        invariant=quirks[-1][0].invariant if quirks else "chunking-free",
        plain=plain,
        variation=variation,
        quirk=quirk,
        ids=all(variant.ids for _, variant in quirks),
        model=model,
        body=None if plain is not None else _body(scenario, request, api),
    )


def _body(scenario: Scenario, request: Request, api: Api) -> Any:
    """The answer that is not streamed; None for one that is an error."""
    try:
        answer = Replayer().answer(
            Pick(scenario, 0, 0), replace(request, stream=False), PROTOCOLS[api]
        )
    except RequestError:
        return None
    return json.loads(b"".join(answer.data)) if answer.status == 200 else None


def _events(answer: Answer, api: Api, variants: Sequence[Variant]) -> Events | None:
    """The decoded events; None where what is special about the answer lies below them."""
    if any(v.bytes is not None or v.content_type is not None for v in variants):
        return None
    if answer.ending != "complete":
        return None
    events: list[tuple[Any, str | None]] = []
    for frame in decode(b"".join(answer.data)):
        if frame.data == "[DONE]" and api == "chat":
            break  # clients stop reading here, and so do those that hand the chunks on
        if frame.data is None or frame.data == "[DONE]":
            continue
        try:
            events.append((json.loads(frame.data), frame.event))
        except ValueError:
            return None
    return Events(events)


# What the stream means


def _outcome(turn: Turn, spec: TurnSpec, api: Api) -> Outcome:
    usage = turn.usage
    outcome = Outcome(
        text=turn.text,
        reasoning=turn.reasoning,
        refusal=turn.refusal,
        tool_calls=tuple(map(_call, turn.tool_calls)),
        finish=turn.finish_raw or _usual(turn.finish, api),
        usage=None
        if usage is None
        else Usage(usage.input, usage.output, usage.reasoning, usage.cached),
        errors=(Trouble(turn.error.message, "stream_error"),) if turn.error else (),
    )
    told = spec.expect
    if told is None:
        return outcome
    if told.text is not None:
        outcome = replace(outcome, text=told.text)
    if told.finish is not None:
        outcome = replace(outcome, finish=_usual(told.finish, api))
    mistakes = told.errors or ()
    if all(mistake["kind"] == "malformed_arguments" for mistake in mistakes) and mistakes:
        return outcome  # read off the arguments themselves, as the policy of a client says
    if told.tool_calls is not None:
        outcome = replace(outcome, tool_calls=Outcome.of(tool_calls=told.tool_calls).tool_calls)
    errors = tuple(Trouble(each["kind"], each["kind"], each.get("tool")) for each in mistakes)
    return replace(outcome, errors=outcome.errors + errors)


def _usual(finish: str | None, api: Api) -> str | None:
    if finish is None:
        return None
    return _FINISH[api].get(finish, (finish,))[0]


def _finishes(turn: Turn, api: Api) -> frozenset[str]:
    """All words that are right: the wire's, the neutral one, and "other" for a foreign one. A
    raw word may name the field that it stood in (`promptFeedback.blockReason=...`)."""
    if turn.finish is None and turn.finish_raw is None:
        return frozenset()
    raw = turn.finish_raw or ""
    words = {
        turn.finish or "",
        raw,
        raw.rpartition("=")[2],
        *_FINISH[api].get(turn.finish or "", ()),
    }
    if turn.finish_raw:
        words |= {"other", "unknown"}
    if turn.finish in ("tool_calls", "refusal"):
        words.add("stop")
    return frozenset(words - {""})


def _call(call: ToolCall) -> Call:
    try:
        value = call.parsed()
    except ValueError:
        value = call.arguments
    return Call(call.name, value if isinstance(value, dict) else call.arguments, call.id or None)


# Many of them


def plain_cases(scenarios: Iterable[Scenario], api: Api) -> Iterator[Case]:
    """Every streamed turn of the scenarios that play over a protocol, as it is."""
    for scenario in scenarios:
        if api not in scenario.apis:
            continue
        for position, turn in enumerate(scenario.turns):
            if turn.for_api(api).http is None:
                yield case(single(scenario, position), api)


def quirk_cases(api: Api, quirks: Iterable[Quirk] | None = None) -> Iterator[Case]:
    """Every variant of the quirks (default: all) of a protocol, on its sample."""
    plain: dict[str, Case] = {}
    for quirk in QUIRKS.values() if quirks is None else quirks:
        if api not in quirk.apis:
            continue
        sample = quirk.sample
        if sample.name not in plain:
            plain[sample.name] = case(sample, api)
        for variant in quirk.variants:
            name = f"{quirk.name}:{variant.name}" if variant.name else quirk.name
            yield case(sample, api, quirk=name, plain=plain[sample.name])


def cases(
    api: Api,
    scenarios: Iterable[Scenario] = (),
    *,
    variations: int = 25,
    quirks: bool = True,
    seed: str = "0",
    level: Level = "bytes",
) -> Iterator[Case]:
    """The cases that a client of a protocol goes through, the plain ones first.

    Args:
        variations: of each turn, drawn from the seed.
        quirks: whether the quirks of the protocol follow, each on its sample.
        level: `payloads` leaves out what does not show in decoded events.
    """
    if api not in APIS:
        raise UsageError(f"there is no API {api!r}; there are: {', '.join(APIS)}")
    payloads = level == "payloads"
    plains = list(plain_cases(scenarios, api))
    yield from plains
    for plain in plains:
        for number in range(variations):
            drawn = draw(derive(seed, plain.name, number), payloads=payloads)
            yield case(plain.scenario, api, drawn, plain=plain)
    if quirks:
        for each in quirk_cases(api):
            if each.events is not None or not payloads:
                yield each


def sampled(found: Sequence[Case], count: int, seed: str) -> list[Case]:
    """At most `count` of the cases, drawn from a seed, in their order."""
    left = list(range(len(found)))
    while len(left) > count:
        left.pop(derive_int(seed, "left", len(left), below=len(left)))
    return [found[index] for index in left]
