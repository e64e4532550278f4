"""Judges what came out of a gateway against what its upstream answered. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mockllm.checking.judging.difference import canonical_text, format_value
from mockllm.checking.outcome import TOKEN_COUNTS
from mockllm.checking.resilience.rule_verdicts import Finding
from mockllm.checking.rules import Cost
from mockllm.conformance.gateways.cases import GatewayCase
from mockllm.conformance.gateways.prices import Prices, cost_mistakes
from mockllm.conformance.gateways.reading import Reading, answer_ways, stream_mistakes
from mockllm.core.errors import RequestError
from mockllm.core.text import shorten
from mockllm.core.turn import Text, ToolCall, Turn
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.wire.protocols.records import Json, Way
from mockllm.wire.protocols.values import json_object

INCREMENTAL = 0.6
"""The least part of the time that an answer takes upstream in which it arrives at the client."""

_LONGEST = 600

OVERLOADED = 529
"""A status that some services answer with in place of 503."""

SOON = 1.0
"""Seconds after which a client that has left is to be gone upstream."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The observations of a case: what the client sent and read, and what reached the upstream.

    Args:
        body: of the client's request.
        exchanges: the requests of the case upstream, each with what was sent.
        tries: how many requests upstream one request of a client may cause, where they fail.
        prices: of the gateway; None where costs are not judged.
        second: the same of the second request, which sends back what came out of the first one.
    """

    case: GatewayCase
    body: Json
    reading: Reading
    exchanges: tuple[Exchange, ...]
    tries: int = 1
    prices: Prices | None = None
    second: Observed | None = None


Mistakes = Iterator[tuple[str, Cost | None]]
"""What is wrong under a rule, each with its cost where that is not the rule's."""


def findings(rules: Iterable[tuple[str, Mistakes]]) -> Iterator[Finding]:
    """The findings of rules."""
    for rule, mistakes in rules:
        wrong = list(mistakes)
        if not wrong:
            yield Finding(rule, "right")
        for text, cost in wrong:
            yield Finding(rule, "wrong", shorten(text, _LONGEST), cost)


def answer_findings(seen: Observed, like: Observed | None) -> Iterator[Finding]:
    """The findings about an answer, one for each rule that the case can judge.

    Args:
        like: the case whose answer this one has.
    """
    missed = [exchange.fault_missed for exchange in seen.exchanges]
    if seen.case.fault and all(missed):
        rule = "upstream-cut-reported" if seen.case.breaks_off else "boundary-free"
        yield Finding(rule, "not judged", f"the fault did not strike: {missed[0]}")
        return
    yield from findings(_rules(seen, like))
    if seen.prices is not None:
        yield from _cost_findings(seen.case, seen.reading, seen.prices)


def _cost_findings(case: GatewayCase, reading: Reading, prices: Prices) -> Iterator[Finding]:
    """The finding about what a whole answer costs, by the tokens that the upstream counted; none
    where these may not have come."""
    may_lack = case.breaks_off or case.may_lose_end or reading.ending != "whole"
    counted = None if may_lack else case.answered.usage
    if counted is None:
        return
    if reading.costs:
        mistakes = cost_mistakes(reading.costs, prices.cost(counted))
        yield from findings([("cost-right", ((text, None) for text in mistakes))])
    else:
        yield Finding("cost-right", "not judged", "the answer does not say what it costs")


def is_unasked_body(seen: Observed) -> bool:
    """Whether a body came in place of a stream, and no error."""
    fails = seen.case.error is not None or seen.case.expected.error is not None
    return seen.reading.ending == "body" and not fails


def delivery_findings(seen: Observed) -> Iterator[Finding]:
    """The finding about whether an answer arrives, whatever it says."""
    yield from findings([("answer-delivered", _delivery(seen.reading))])


def _rules(seen: Observed, like: Observed | None) -> Iterator[tuple[str, Mistakes]]:
    """The rules that a case can judge."""
    case, reading = seen.case, seen.reading
    if case.leaves:
        yield "leaves-with-client", _stays(seen)
        return
    yield "one-request", _further_requests(seen)
    if case.error is not None:
        yield "error-kept", _http_error(case, reading)
        return
    expected = case.expected
    if is_unasked_body(seen):
        yield "answer-delivered", _delivery(reading)
        return
    if case.breaks_off:
        yield "upstream-cut-reported", _cut(case, expected, reading)
    elif expected.error is not None:
        yield "error-kept", _stream_error(expected.error.message, reading)
    elif case.may_lose_end and reading.ending != "whole":
        yield (
            "answer-delivered",
            iter([("it never ends", None)] if reading.ending == "late" else []),
        )
    else:
        yield "answer-delivered", _delivery(reading)
        if reading.ending in ("whole", "unfinished"):
            yield from _content_rules(case, expected, reading)
    form = list(_form(case, reading))
    if case.request.stream and reading.ending != "refused":
        yield "stream-valid", iter(form)
    if reading.ways and not any(cost is None for _, cost in form):  # they follow from the form
        yield "readings-agree", _disagreements(case, reading)
    if case.paced:
        yield "delivered-as-it-comes", _delays(seen)
    if like is not None and like.reading.ending == "whole":
        yield "boundary-free", _differs(reading, like.reading)


def _form(case: GatewayCase, reading: Reading) -> Mistakes:
    """Mistakes that a gateway between two equal APIs only hands on are not its own."""
    down, up = case.pair.protocols
    sent = stream_mistakes(b"".join(case.answer.data), up, up.usual) if down is up else ()
    for mistake in reading.mistakes:
        if mistake not in sent:
            text, loses_content = mistake
            yield text, None if loses_content else "wrong metadata"


def _disagreements(case: GatewayCase, reading: Reading) -> Mistakes:
    """Parts of an answer that clients of the API read differently. A gateway between two equal APIs
    may hand on what its upstream sent so."""
    down, up = case.pair.protocols
    found = _by_value(reading.ways)
    if found and down is up:
        data = b"".join(case.answer.data)
        sent = {key for key, _ in _by_value(answer_ways(data, up, up.usual))}
        found = [(key, values) for key, values in found if key not in sent]
    for (part, _), values in found:
        texts = (
            " and ".join(names) if part in _MADE_UP else f"{value} by {' and '.join(names)}"
            for value, names in values.items()
        )
        yield f"{part} by several readings: {'; '.join(texts)}", _PART_COSTS.get(part, _METADATA)


_METADATA: Cost = "wrong metadata"
_MADE_UP = ("answer id", "role")
"""The parts whose values say nothing to a person."""

_PART_COSTS: Mapping[str, Cost] = {
    "calls": "wrong call",
    **dict.fromkeys(("text", "refusal", "reasoning", "signatures", "citations"), "data lost"),
}


def _by_value(ways: Iterable[Way]) -> list[tuple[tuple[str, str], dict[str, list[str]]]]:
    """The parts of an answer of which ways disagree, each with the ways that read each value."""
    parts: dict[tuple[str, str], dict[str, list[str]]] = {}
    for way in ways:
        values = parts.setdefault((way.part, way.of), {})
        values.setdefault(_way_value(way), []).append(way.name)
    return [(part, values) for part, values in parts.items() if len(values) > 1]


def _way_value(way: Way) -> str:
    if way.part == "calls":
        return _call_list([f"{name} {canonical_text(text or '{}')}" for name, text in way.value])
    return format_value(list(way.value) if isinstance(way.value, tuple) else way.value)


# Whole answers


def _delivery(reading: Reading) -> Mistakes:
    match reading.ending:
        case "whole":
            return
        case "body":
            yield f"the client cannot read the answer: {reading.problem}", "data lost"
        case "unfinished":
            end = f": {reading.problem}" if reading.problem else ""
            yield f"the answer has no end{end}", "wrong metadata"
        case "error":
            yield f"the client gets an error: {reading.error_message}", None
        case "refused":
            text = reading.error_message or "nothing about it"
            yield f"the client gets status {reading.reply.status}: {text}", None
        case _:
            yield f"the answer does not arrive: {reading.reply.problem or reading.problem}", None


def _content_rules(
    case: GatewayCase, expected: Turn, reading: Reading
) -> Iterator[tuple[str, Mistakes]]:
    got = reading.turn
    if expected.tool_calls or got.tool_calls:
        yield "calls-kept", _calls(expected.tool_calls, got.tool_calls)
    if expected.tool_calls:
        yield "ids-kept", _ids(expected.tool_calls, got.tool_calls)
    if expected.text or expected.refusal or got.text or got.refusal:
        yield "text-kept", _texts(expected, got)
    if expected.reasoning or got.reasoning:
        yield "reasoning-kept", _reasoning(case, expected, got)
    if case.may_lose_end:
        return
    yield "finish-kept", _finish(case, expected, got)
    if expected.usage is not None:
        yield "usage-kept", _usage(expected, got)


def call_text(call: ToolCall) -> str:
    """Name and arguments, the same for equal ones however they are written."""
    return f"{call.name} {canonical_text(call.arguments)}"


def _calls(expected: Sequence[ToolCall], got: Sequence[ToolCall]) -> Mistakes:
    want, have = list(map(call_text, expected)), list(map(call_text, got))
    if want == have:
        return
    lost, added = Counter(want) - Counter(have), Counter(have) - Counter(want)
    if added:
        yield f"the calls are {_call_list(have)}, not {_call_list(want)}", None
    elif lost:
        yield f"lost {_call_list(list(lost.elements()))}", "data lost"
    else:
        yield f"the calls come in the order {_call_list(have)}", "wrong metadata"


def _call_list(calls: Sequence[str]) -> str:
    return "; ".join(calls) or "none"


def _ids(expected: Sequence[ToolCall], got: Sequence[ToolCall]) -> Mistakes:
    """Ids may be others, as results are named by them; but each call has one, and its own."""
    if len(expected) != len(got) or not all(call.id for call in expected):
        return
    ids = [call.id for call in got]
    if not all(ids):
        yield "a call has no id", None
    elif len(set(ids)) < len(ids):
        yield f"calls share the id {format_value(ids[0])}", None


def _texts(expected: Turn, got: Turn) -> Mistakes:
    """A refusal may come as a text: APIs differ in having a place for it, and clients show both."""
    lost = (Counter(_sources(expected)) - Counter(_sources(got))).elements()
    for source in lost:
        yield f"lost the citation of {format_value(source)}", None
    if expected.text + expected.refusal == got.text + got.refusal:
        return
    for name in ("text", "refusal"):
        want, have = getattr(expected, name), getattr(got, name)
        if want != have:
            yield f"the {name} is {format_value(have)}, not {format_value(want)}", None


def _sources(turn: Turn) -> Iterator[str]:
    """The addresses of the pages that a text cites; APIs differ in how they name other sources."""
    for part in turn.parts:
        if isinstance(part, Text):
            yield from (cite.url for cite in part.citations if "://" in cite.url)


def _reasoning(case: GatewayCase, expected: Turn, got: Turn) -> Mistakes:
    if expected.reasoning != got.reasoning:
        have, want = format_value(got.reasoning), format_value(expected.reasoning)
        yield f"the reasoning is {have}, not {want}", None
    # An encoder signs reasoning that has no signature; the upstream did not send that one.
    sent = set(signatures(case.answered))
    lost = (Counter(signatures(expected)) - Counter(signatures(got))).elements()
    for signature in lost:
        if signature in sent:
            yield f"lost the signature {format_value(signature)}", None


def signatures(turn: Turn) -> Iterator[str]:
    """The signatures of all parts: Gemini signs the call after the reasoning."""
    return filter(None, (getattr(part, "signature", None) for part in turn.parts))


def _finish(case: GatewayCase, expected: Turn, got: Turn) -> Mistakes:
    """Services name the same end differently, and gateways may do so, too."""
    accepted = {expected.finish}
    if {expected.finish, case.answered.finish} & {"refusal", "content_filter"}:
        accepted |= {"refusal", "content_filter"}
    # What a refusal in words ends with, and OpenAI a call that the request names.
    if case.answered.refusal or case.request.tool_choice not in _CHOICES:
        accepted.add("stop")
    if got.finish not in accepted:
        yield f"it ended by {got.finish or 'nothing'}, not by {expected.finish}", None
    elif expected.stop_sequence != got.stop_sequence and expected.stop_sequence is not None:
        what = format_value(expected.stop_sequence)
        yield f"the stop sequence is {format_value(got.stop_sequence)}, not {what}", None


_CHOICES = ("auto", "none", "required")


def _usage(expected: Turn, got: Turn) -> Mistakes:
    want, have = expected.usage, got.usage
    assert want is not None
    if have is None:
        yield "no usage is handed on", None
        return
    wrong = [
        f"{name} {getattr(have, name)}, not {getattr(want, name)}"
        for name in TOKEN_COUNTS
        if getattr(want, name) and getattr(have, name) != getattr(want, name)
    ]
    if wrong:
        yield f"the usage has {', '.join(wrong)}", None


def _differs(got: Reading, like: Reading) -> Mistakes:
    want, have = _values_to_compare(like), _values_to_compare(got)
    for name, value in want.items():
        if have[name] != value:
            text = f"{name}: {format_value(have[name])}; in one write {format_value(value)}"
            yield text, None
            return


def _values_to_compare(reading: Reading) -> Mapping[str, object]:
    turn = reading.turn
    usage = turn.usage
    return {
        "ending": reading.ending,
        "text": turn.text + turn.refusal,
        "reasoning": turn.reasoning,
        "calls": list(map(call_text, turn.tool_calls)),
        "finish": turn.finish,
        "usage": None if usage is None else [getattr(usage, name) for name in TOKEN_COUNTS],
    }


# Answers that break off, and errors


def _cut(case: GatewayCase, expected: Turn, reading: Reading) -> Mistakes:
    made = set(map(call_text, expected.tool_calls))
    if reading.ending in ("error", "refused", "broken"):
        return
    if reading.ending == "late":
        yield f"the client still waits: {reading.reply.problem}", "unreliable"
    elif reading.ending == "unfinished":
        if not case.ends_orderly:
            yield "the answer ends in order, without an error and without its end", "cut unreported"
    else:
        wrong = [text for call in reading.turn.tool_calls if (text := call_text(call)) not in made]
        if wrong:
            text = f"an answer that broke off ends as a whole one, with {_call_list(wrong)}"
            yield text, "wrong call"
        else:
            yield "an answer that broke off ends as a whole one", None


def _http_error(case: GatewayCase, reading: Reading) -> Mistakes:
    sent = case.error
    assert sent is not None
    wanted = (sent.error and sent.error.message) or ""
    error = reading.error
    if error is None:
        yield from _hidden_error(wanted, reading, f"status {sent.status}")
        return
    down, up = case.pair.protocols
    accepted = {sent.status} | ({503} if sent.status == OVERLOADED and down is not up else set())
    if error.status not in accepted:
        yield f"status {sent.status} comes as {error.status}", "wrong metadata"
    yield from _message(wanted, reading)
    if wanted in reading.error_message:
        yield from _error_form(case, sent.status, wanted, reading)
    wait = None if error.retry_after is None else error.retry_after / 1_000_000
    if case.retry_after is not None and wait != case.retry_after:
        yield "the time to wait (retry-after) is lost", "wrong metadata"


def _message(wanted: str, reading: Reading) -> Mistakes:
    message = reading.error_message
    if wanted not in message:
        text = f"the message is {format_value(message)}, not {format_value(wanted)}"
        yield text, "wrong metadata"


def _error_form(case: GatewayCase, status: int, wanted: str, reading: Reading) -> Mistakes:
    """Whether the message, and the type beside it, stand where clients of the API read them."""
    down = case.pair.protocols[0]
    form = down.error_body(RequestError(wanted, status=status))
    got: Any = json_object(reading.reply.body)
    for key in _path_to(wanted, form):
        is_named = isinstance(got, Mapping) and ("type" not in form or got.get("type"))
        if not is_named or key not in got:
            yield "the body of the error does not have the form of the API", "wrong metadata"
            return
        form, got = form[key], got[key]


def _path_to(text: str, value: Any) -> tuple[str, ...]:
    """The keys that lead to a text in nested objects; () where it is not there."""
    if not isinstance(value, Mapping):
        return ()
    for key, inner in value.items():
        if inner == text:
            return (key,)
        if path := _path_to(text, inner):
            return (key, *path)
    return ()


def _stream_error(wanted: str, reading: Reading) -> Mistakes:
    if reading.ending in ("error", "refused"):
        return _message(wanted, reading)
    return _hidden_error(wanted, reading, "an error in the stream")


def _hidden_error(wanted: str, reading: Reading, what: str) -> Mistakes:
    """The fate of an error that the client does not get as one."""
    match reading.ending:
        case "whole":
            yield f"{what} ends as a whole answer", "silent failure"
        case "error":
            yield f"{what} comes as an error in a stream with status 200", "wrong metadata"
            if wanted not in reading.error_message:
                yield f"the message is {format_value(reading.error_message)}", "wrong metadata"
        case "unfinished" | "body" if wanted.encode() in reading.reply.body:
            yield f"{what} is sent in a form that clients of the API do not read", None
        case "unfinished" | "body":
            yield f"{what} comes as an answer without an end", "cut unreported"
        case "late":
            yield f"{what}: the client still waits", "unreliable"
        case _:
            yield f"{what} comes as a connection that breaks off", "wrong metadata"


# Time and requests


def _further_requests(seen: Observed) -> Mistakes:
    fails = seen.case.error is not None or seen.case.breaks_off or seen.reading.ending != "whole"
    allowed, sent = seen.tries if fails else 1, len(seen.exchanges)
    if sent > allowed:
        yield f"{sent} requests reach the upstream, and {allowed} would do", None


def _delays(seen: Observed) -> Mistakes:
    times = [chunk.at for chunk in seen.reading.reply.chunks]
    planned = seen.case.answer.times
    took = (planned[-1] - planned[0]) / 1_000_000
    arrived = (times[-1] - times[0]) / 1_000_000 if times else 0.0
    if arrived < INCREMENTAL * took:
        yield (
            f"the upstream sends for {took:.2f} s, and the client gets it in {arrived:.2f} s",
            None,
        )


def _stays(seen: Observed) -> Mistakes:
    left = seen.reading.reply.left
    for exchange in seen.exchanges:
        sent = exchange.sent
        waited = sent.clock + sent.duration - left
        if exchange.in_use or not sent.client_gone:
            yield "the gateway reads on after its client has left", None
        elif waited > SOON:
            yield f"the gateway leaves {waited:.1f} s after its client", None
