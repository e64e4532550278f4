"""Compiles one case: a scenario, combined with a protocol, a variation and a quirk. Pure.

Every case is itself a scenario of one turn, so that a failure can be saved and replayed. Compiled
cases are kept for the whole process: suites of one API share them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

from mockllm.checking.cases.case import MODEL, Case, Decoded, Events
from mockllm.checking.cases.expected import (
    accepted_finish_values,
    as_streamed,
    outcome_of_turn,
    with_plan_apart,
)
from mockllm.checking.cases.scenarios import (
    PLAIN,
    Variation,
    limit_chunks,
    vary,
    with_quirks,
    without_quirk,
    without_wire,
)
from mockllm.checking.material import tested_invariants
from mockllm.checking.outcome import Outcome, Trouble, is_kept
from mockllm.core.errors import RequestError, UsageError, WireError
from mockllm.core.request import Request
from mockllm.core.turn import Turn
from mockllm.play.matching.conversation import Selection
from mockllm.play.quirks import Quirk, Variant, find
from mockllm.play.quirks.base import Right
from mockllm.play.replay.client_requests import first_request, user_text
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.scenario.model import Api, Scenario, TurnSpec, Wire
from mockllm.scenario.part_model import InterleavedPart, frame_apis, members
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.decoding import decode_turn as read_turn


def case(
    scenario: Scenario,
    api: Api,
    variation: Variation = PLAIN,
    quirk: str = "",
    *,
    plain: Case | None = None,
) -> Case:
    """The case of a scenario of one turn (see `single`) over a protocol."""
    spec = scenario.turns[0].for_api(api)
    if not scenario.plays_over(api):
        raise UsageError(f"scenario {scenario.name!r} does not play over {api}")
    if spec.http is not None:
        raise UsageError(f"turn 1 of {scenario.name!r} is an HTTP error; it has no stream")
    wire = spec.wire or Wire()
    if plain is None and (quirk or wire.quirks or variation != PLAIN):
        plain = case(with_quirks(scenario, None) if wire.quirks else scenario, api)
    elif plain is None and wire != Wire():
        # The scenario itself cuts its answer: that is a variation, too.
        plain = case(without_wire(scenario), api)
    name = case_name(scenario, api, variation, quirk)
    varied = _apply_variation(scenario, api, variation, plain)
    if plain is None or quirk or wire.quirks:
        if quirk:
            varied = with_quirks(varied, (quirk,))
        return _compile_case(varied, api, name, variation, quirk, plain)
    return _cut_differently(varied, plain, name, variation)


def case_name(scenario: Scenario, api: str, variation: Variation, quirk: str) -> str:
    """The name of a case: `API/SCENARIO`, with `+QUIRK` or `+QUIRK:VARIANT`, then `~VARIATION`.

    It has no blanks, so that it is one word of a command line, as in
    `chat/sample-call+chat-index-missing~split3-1,cut12`.
    """
    cut = "" if variation == PLAIN else f"~{variation}"
    return f"{api}/{scenario.name}{f'+{quirk}' if quirk else ''}{cut}"


def _apply_variation(
    scenario: Scenario, api: Api, variation: Variation, plain: Case | None
) -> Scenario:
    """The scenario with a variation, whose chunks are larger where the stream is long."""
    varied = vary(scenario, variation)
    if plain is None or not variation.cut:
        return varied
    fragments = _count_fragments(varied.turns[0].for_api(api))
    per_event = plain.answer.size // max(1, len(plain.answer.data))
    size = plain.answer.size + fragments * min(per_event, _USUAL_EVENT)
    return vary(scenario, limit_chunks(variation, size))


_USUAL_EVENT = 400
"""An event with one fragment has about so many bytes at most."""


def _count_fragments(turn: TurnSpec) -> int:
    """The fragments that a variation cut; it leaves interleaved parts as they are."""
    cut = members(part for part in turn.reply if not isinstance(part, InterleavedPart))
    splits = (getattr(part, "split", None) for part in cut)
    return sum(len(split) for split in splits if isinstance(split, tuple))


def first_answer(scenario: Scenario, api: Api) -> tuple[Request, HttpAnswer]:
    """The request of a client that offers the scenario's tools, and the answer to it."""
    request = first_request(PROTOCOLS[api], scenario, user_text(scenario), MODEL)
    return request, Replayer().answer(Selection(scenario, 0, 0), request, PROTOCOLS[api])


def _cut_differently(scenario: Scenario, plain: Case, name: str, variation: Variation) -> Case:
    """The plain case with a variation: another stream, and the same outcome."""
    _, answer = first_answer(scenario, plain.api)
    return replace(
        plain,
        name=name,
        scenario=scenario,
        answer=answer,
        events=None if plain.events is None else Events(partial(_values, answer, plain.api)),
        plain=plain,
        variation=variation,
        body=None,
    )


def _compile_case(
    scenario: Scenario,
    api: Api,
    name: str,
    variation: Variation,
    quirk: str,
    plain: Case | None,
) -> Case:
    spec = scenario.turns[0].for_api(api)
    request, answer = first_answer(scenario, api)
    quirks = _quirks(spec, api)
    variants = [variant for _, variant in quirks]
    turn = _turn_sent(scenario, api, variants, answer)
    received = _received_turn(turn, variants)
    expected = outcome_of_turn(received, spec, api)
    reaction = _reaction(spec, answer, scenario, request, plain)
    # Quirks say what they demand, and know nothing of a turn that ends with an error anyway.
    if reaction == "same" and expected.errors:
        reaction = "error"
    events = decode_answer(answer, api, variants)
    values = None if events is None else [value for value, _ in events.decoded]

    def with_ids_of_plain(outcome: Outcome) -> Outcome:
        if plain is not None and plain.expected.role is None and is_kept(outcome.role):
            outcome = replace(outcome, role=None)
        if values is not None:
            return as_streamed(outcome, values, api, changed=bool(quirks))
        return outcome if reaction != "same" else _identified_as(plain, outcome)

    acceptable = list(_acceptable_outcomes(turn, variants, spec, api))
    if values is None and plain is not None and plain.events is not None:
        planned = [value for value, _ in plain.events.decoded]
    else:
        planned = values or []
    for outcome in (expected, *acceptable):
        acceptable += with_plan_apart(outcome, planned, api)
    return Case(
        name=name,
        api=api,
        scenario=scenario,
        prompt=user_text(scenario),
        tools=scenario.tools,
        answer=answer,
        events=events,
        expected=with_ids_of_plain(expected),
        finish_values=accepted_finish_values(received, api, spec, values or ()),
        reaction=reaction,
        invariant=_tested_invariant(scenario, quirks),
        plain=plain,
        variation=variation,
        quirk=quirk,
        ids=all(variant.ids for variant in variants),
        custom=frozenset(
            text for call in received.tool_calls if call.custom for text in (call.name, call.id)
        ),
        body=None if plain is not None else _body(scenario, request, api),
        tolerated=tuple(map(with_ids_of_plain, acceptable)),
    )


def _identified_as(plain: Case | None, outcome: Outcome) -> Outcome:
    """The outcome with id and model of the plain form, where only the bytes differ."""
    if plain is None:
        return outcome
    known = plain.expected
    return replace(outcome, response_id=known.response_id, model=known.model)


def _tested_invariant(scenario: Scenario, quirks: Sequence[tuple[Quirk, Variant]]) -> str:
    """The invariant that a case tests: that of its last quirk, else that of its scenario."""
    if quirks:
        return quirks[-1][0].prose.invariant
    return tested_invariants().get(scenario.name, "chunking-free")


def _quirks(spec: TurnSpec, api: Api) -> list[tuple[Quirk, Variant]]:
    """The quirks of a turn that occur in a protocol."""
    found = map(find, spec.wire.quirks if spec.wire else ())
    return [(quirk, variant) for quirk, variant in found if quirk.applies_to(api)]


def _turn_sent(
    scenario: Scenario, api: Api, variants: Sequence[Variant], answer: HttpAnswer
) -> Turn:
    """The turn that an answer has: that of the scenario, or what our decoder reads in the stream
    where a quirk changes it. The stream is read without other quirks, which it need not know."""
    protocol = PROTOCOLS[api]
    if not any(variant.as_sent for variant in variants):
        # A quirk may add a value that the protocol itself cannot carry, so project first.
        return _project_turn(protocol.project, resolve(scenario, 0, api))
    wire = scenario.turns[0].for_api(api).wire
    others = [name for name in (wire.quirks if wire else ()) if not find(name)[1].as_sent]
    for name in others:
        scenario = without_quirk(scenario, name)
    if others:
        _, answer = first_answer(scenario, api)
    return read_turn(protocol, protocol.usual.readable(b"".join(answer.data)))[0]


@lru_cache(maxsize=64)
def _project_turn(project: Callable[[Turn], Turn], turn: Turn) -> Turn:
    """The part of a turn that a protocol can carry: the same for all quirks of a sample, one after
    another."""
    return project(turn)


def _received_turn(turn: Turn, variants: Sequence[Variant]) -> Turn:
    """The turn that a correct client gets."""
    for variant in variants:
        if variant.expected is not None:
            turn = variant.expected(turn)
    return turn


def _acceptable_outcomes(
    turn: Turn, variants: Sequence[Variant], spec: TurnSpec, api: Api
) -> Iterator[Outcome]:
    """The other outcomes that are acceptable; `Variant.tolerated` has the reasons."""
    for position, variant in enumerate(variants):
        before = _received_turn(turn, variants[:position])
        for tolerance in variant.tolerated:
            other = _received_turn(tolerance.turn(before, api), variants[position + 1 :])
            outcome = outcome_of_turn(other, spec, api)
            yield outcome if tolerance.end else _reported_if_cut(outcome)


def _reported_if_cut(outcome: Outcome) -> Outcome:
    """The outcome with an error, where the answer has no end."""
    if outcome.finish is not None or outcome.errors:
        return outcome
    return replace(outcome, errors=(Trouble("the stream ends before the answer", "truncated"),))


# Quirks that change nothing


def _reaction(
    spec: TurnSpec, answer: HttpAnswer, scenario: Scenario, request: Request, plain: Case | None
) -> Right:
    """The reaction of a correct client to the quirks of a turn, as far as they change the
    answer."""
    reaction: Right = "same"
    for name in spec.wire.quirks if spec.wire else ():
        quirk, variant = find(name)
        required = variant.right or quirk.prose.right
        if not quirk.applies_to(request.api) or required == reaction:
            continue
        if required == "same" or _changes_answer(answer, scenario, name, request, plain):
            reaction = required
    return reaction


def _changes_answer(
    answer: HttpAnswer, scenario: Scenario, quirk: str, request: Request, plain: Case | None
) -> bool:
    """Whether a quirk changed the answer: a quirk of tool calls does not change one of text."""
    without = without_quirk(scenario, quirk)
    if plain is not None and plain.scenario == without:
        return changes(answer, plain.answer)
    return changes(
        answer, Replayer().answer(Selection(without, 0, 0), request, PROTOCOLS[request.api])
    )


def changes(answer: HttpAnswer, plain: HttpAnswer) -> bool:
    """Whether an answer differs from the plain one: in its bytes, its writes, its headers, or its
    ending."""
    return (answer.data, answer.headers, answer.ending) != (plain.data, plain.headers, plain.ending)


def _body(scenario: Scenario, request: Request, api: Api) -> Any:
    """The body of the answer that is not streamed; None if that is an error, or has not the outcome
    of the stream, because a body has no frames."""
    spec = scenario.turns[0].for_api(api)
    if spec.expect is not None and api in frame_apis(spec.reply):
        return None
    try:
        answer = Replayer().answer(
            Selection(scenario, 0, 0), replace(request, stream=False), PROTOCOLS[api]
        )
    except RequestError:
        return None
    return json.loads(b"".join(answer.data)) if answer.status == 200 else None


_FIELD = re.compile(rb"\xef\xbb\xbf|(data|event|id|retry)?(:|$)")
"""How every line of an event stream begins (WHATWG SSE, 9.2.6: field names, comments, BOM)."""


def decode_answer(answer: HttpAnswer, api: Api, variants: Sequence[Variant]) -> Events | None:
    """The decoded events of an answer.

    None if what is special about the answer does not show in events: its bytes, its content
    type, a connection that breaks, or data that are not JSON.
    """
    if not all(variant.in_events for variant in variants):
        return None
    if answer.ending != "complete":
        return None
    if variants and not _is_framed(b"".join(answer.data), PROTOCOLS[api].usual):
        return None
    try:
        events = _values(answer, api)
    except (ValueError, WireError):
        return None
    return Events(lambda: events)


def _is_framed(data: bytes, carrier: Carrier) -> bool:
    """Whether a stream has nothing but frames, and what its carrier allows between them."""
    if carrier.name == "sse":
        return all(map(_FIELD.match, data.splitlines()))
    scanner = carrier.scanner()
    spans = [*scanner.read(data), *scanner.close()]
    return all(carrier.block(data[begin:end]) for begin, end in spans)


def _values(answer: HttpAnswer, api: Api) -> Decoded:
    """The events of a stream."""
    protocol = PROTOCOLS[api]
    end = protocol.end_data
    events: Decoded = []
    for frame in protocol.usual.decode(b"".join(answer.data)):
        if frame.data is not None and frame.data == end:
            break  # clients stop reading here, and pass on nothing that follows
        if frame.data is not None and frame.data != "[DONE]":
            events.append((json.loads(frame.data), frame.event))
    return events


_MOST_CASES = 4096
"""More than one API has at both levels together, with 25 variations of the shipped scenarios."""

_MOST_SCENARIOS = 4096
_digests: dict[int, tuple[Scenario, str]] = {}


@dataclass(frozen=True, slots=True)
class _Key:
    """The inputs that a case depends on.

    Args:
        digest: stands for the scenario, which cannot be hashed.
        objects: the protocol and the quirks: tests replace them.
    """

    digest: str
    api: Api
    variation: Variation
    quirk: str
    objects: tuple[int, ...]
    scenario: Scenario = field(compare=False)
    # Objects that are alive keep their `id`.
    alive: tuple[object, ...] = field(compare=False)


def cached_case(
    scenario: Scenario, api: Api, variation: Variation = PLAIN, quirk: str = ""
) -> Case:
    """A case of a scenario of one turn (see `build.case`), compiled once."""
    found = _objects(scenario, api, quirk)
    ids = tuple(map(id, found))
    return _compile_once(_Key(_digest(scenario), api, variation, quirk, ids, scenario, found))


@lru_cache(maxsize=_MOST_CASES)
def _compile_once(key: _Key) -> Case:
    is_plain = not key.quirk and key.variation == PLAIN
    plain = None if is_plain else cached_case(key.scenario, key.api)
    return case(key.scenario, key.api, key.variation, key.quirk, plain=plain)


def _objects(scenario: Scenario, api: Api, quirk: str) -> tuple[object, ...]:
    wire = scenario.turns[0].for_api(api).wire
    names = (*(wire.quirks if wire else ()), *filter(None, [quirk]))
    found: list[Any] = [PROTOCOLS[api]]
    for name in names:
        found += find(name)
    return tuple(found)


def _digest(scenario: Scenario) -> str:
    """The same for scenarios that are the same in every respect, the order of keys included."""
    known = _digests.get(id(scenario))
    if known is not None:
        return known[1]
    if len(_digests) >= _MOST_SCENARIOS:
        _digests.clear()
    digest = sha256(repr(scenario).encode(errors="surrogatepass")).hexdigest()
    _digests[id(scenario)] = scenario, digest
    return digest
