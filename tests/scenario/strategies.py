"""Hypothesis strategies for scenarios that can be loaded, with everything the model has."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from hypothesis import strategies as st

from mockllm.core.tokens_and_fragments import RandomSplit, Split
from mockllm.core.turn import beats
from mockllm.play.faults.strikes import carrier_mismatch
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.scenario import model as m
from mockllm.scenario.check import text_operators
from mockllm.scenario.fault_model import Place
from mockllm.scenario.ignoring import with_ignored
from mockllm.scenario.part_model import (
    AnyPart,
    AudioPart,
    AutoPart,
    Citation,
    ErrorPart,
    ErrorSpec,
    FramePart,
    Gate,
    GatePart,
    ImagePart,
    InterleavedPart,
    MediaSource,
    Member,
    ParallelPart,
    PausePart,
    ReasoningPart,
    RefusalPart,
    ServerToolPart,
    TextPart,
    TokenSpec,
    ToolPart,
)
from mockllm.scenario.reading.latency import read_latency
from mockllm.scenario.route_model import JobSpec, Pending
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.extra import extra_places
from tests.strategies import cut, finishes, json_values, names, texts

APIS = tuple(PROTOCOLS)

labels = st.from_regex(r"\A[!-~]{1,20}\Z")
lines = texts.filter(lambda text: text and not set(text) & {"\n", "\r"})
durations = st.integers(0, 10**7) | st.sampled_from([0, 1, 1000, 10**6, 6 * 10**7])
gates = st.builds(Gate, st.sampled_from(["door", "1", "A_b-2"]), st.integers(1, 10**8))
shares = st.floats(0, 1).map(abs)
random_splits = st.tuples(st.integers(1, 9), st.integers(0, 9)).map(
    lambda pair: RandomSplit(pair[0], sum(pair))
)
rules = st.sampled_from(["whole", "chars", "words"]) | st.integers(1, 99) | random_splits
json_mappings = st.dictionaries(texts, json_values | st.floats(allow_nan=False), max_size=3).filter(
    lambda value: "inf" not in repr(value)
)
bodies = json_mappings.filter(lambda body: not any(text_operators(body)))
plain_conditions = st.builds(
    m.TextCondition, st.sampled_from(["contains", "equals"]), texts
) | st.builds(m.TextCondition, st.just("regex"), st.sampled_from(["a+", "^$", r"\d", "null", "5"]))
conditions = st.recursive(
    plain_conditions,
    lambda inner: (
        st.builds(
            m.CombinedText,
            st.sampled_from(["any", "all"]),
            st.lists(inner, min_size=1, max_size=2).map(tuple),
        )
        | st.builds(m.CombinedText, st.just("not"), st.tuples(inner))
    ),
    max_leaves=3,
)
usages = st.builds(m.UsageSpec, *[st.none() | st.integers(0, 999)] * 5) | st.just(
    m.UsageSpec(sent=False)
)
CONTROLS = {chr(code) for code in (*range(9), *range(10, 32), 127)}
header_names = st.from_regex(r"\A[a-z0-9!#.-]{1,8}\Z")
header_values = lines.filter(lambda text: not set(text) & CONTROLS)
errors = st.builds(ErrorSpec, *[st.none() | texts] * 3)
maybe_names = st.lists(names, max_size=2).map(tuple)
sent_files = st.lists(
    st.sampled_from(["image/*", "https://a.example/b.png", f"sha256:{'0' * 64}"]), max_size=2
).map(tuple) | st.builds(
    m.FileCount,
    least=st.integers(0, 2),
    most=st.none() | st.integers(2, 3),
    type=st.sampled_from([None, "image/*"]),
    digest=st.sampled_from([None, f"sha256:{'0' * 64}"]),
)


def grouped(make: Any, entries: Any) -> Any:
    """Conditions with `any`, `all` and `not` of further ones."""
    some = st.lists(entries, max_size=2).map(tuple)
    return st.builds(replace, make, any_of=some, all_of=some, negated=st.none() | entries)


plain_matches = st.builds(
    m.Match,
    model=st.none() | lines.filter(lambda text: "[" not in text),
    user=st.none() | conditions,
    user_files=sent_files,
    system=st.none() | conditions,
    tools=maybe_names,
    headers=st.dictionaries(header_names, conditions, max_size=2).map(lambda d: tuple(d.items())),
    query=st.dictionaries(names, conditions, max_size=2).map(lambda d: tuple(d.items())),
    body=st.none() | bodies,
).filter(lambda match: match.conditions > 0)
ignored = st.lists(
    st.sampled_from(["uuid", "timestamp", "date", "$.metadata", "$..id", "/run-[0-9]+/"]),
    max_size=2,
).map(tuple)
match_entries = plain_matches | grouped(plain_matches, plain_matches)
matches = (
    st.just(m.Match(anything=True))
    | st.builds(replace, plain_matches, ignore=ignored)
    | st.builds(replace, grouped(plain_matches, match_entries), ignore=ignored)
)
https = st.builds(
    m.Http,
    status=st.integers(400, 599),
    headers=st.dictionaries(header_names, header_values, max_size=2).map(
        lambda d: tuple(d.items())
    ),
    retry_after=st.none() | durations,
    error=st.none() | errors,
)
latencies = st.sampled_from(
    [
        "ttft=300ms",
        "ttft=lognormal(300ms, p99=2s)  itl=normal(20ms,5ms)",
        "prefill=50us/token load-factor=1.5@64 itl=uniform(1ms, 2ms)",
    ]
).map(read_latency)
timings = st.builds(
    m.Timing,
    ttft=st.none() | durations,
    every=st.none() | durations,
    jitter=st.none() | shares,
    at=st.lists(durations, max_size=3).map(tuple),
) | st.builds(m.Timing, latency=latencies)
wires = st.builds(
    m.Wire,
    line_end=st.none() | st.sampled_from(["lf", "crlf", "cr"]),
    bom=st.booleans(),
    multiline=st.booleans(),
    comments=st.none() | st.builds(m.Comments, st.integers(1, 9), texts),
    group=st.none() | st.integers(2, 9),
    segments=st.none()
    | st.builds(lambda low, more: m.Segments(low, low + more), *[st.integers(1, 99)] * 2)
    | st.integers(1, 9).map(lambda size: m.Segments(size, size))
    | st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple),
    quirks=st.lists(st.sampled_from(["sse-crlf", "sse-bom", "chat-index-missing"]), max_size=2).map(
        tuple
    ),
)
tapes = st.sampled_from(["a.jsonl", "tapes/a b.1.jsonl", "..a", "null", "1"]).map(m.Recorded)
outcomes = st.builds(
    m.ExpectedOutcome,
    text=st.none() | texts,
    reasoning=st.none() | texts,
    refusal=st.none() | texts,
    usage=st.none() | usages,
    opaque=st.none() | st.lists(texts, max_size=2).map(tuple),
    tool_calls=st.none()
    | st.lists(
        st.fixed_dictionaries({"name": names}, optional={"id": lines, "arguments": json_mappings}),
        max_size=2,
    ),
    finish=st.none() | finishes,
    errors=st.none()
    | st.lists(
        st.fixed_dictionaries(
            {"kind": st.just("malformed_arguments")}, optional={"tool": st.integers(0, 3)}
        ),
        max_size=2,
    ),
)
defaults = st.builds(
    m.Defaults,
    split=st.none() | rules,
    every=st.none() | durations,
    ttft=st.none() | durations,
    jitter=st.none() | shares,
    usage=st.none() | usages,
) | st.builds(m.Defaults, split=st.none() | rules, latency=latencies, usage=st.none() | usages)
json_texts = (json_values | st.floats(allow_nan=False, allow_infinity=False)).map(
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
)
fields = st.dictionaries(texts, json_values, min_size=1, max_size=2)


@st.composite
def extras(draw: st.DrawFn, apis: tuple[m.Api, ...]) -> tuple[tuple[m.Api, Any], ...]:
    """Fields at places that the APIs have."""
    drawn = draw(st.lists(st.sampled_from(apis), max_size=2, unique=True))
    places = {api: [p for p in extra_places(PROTOCOLS[api]) if p != "reasoning"] for api in drawn}
    kept = {
        api: draw(st.dictionaries(st.sampled_from(places[api]), fields, min_size=1))
        for api in drawn
    }
    return tuple(kept.items())


tool_specs = st.lists(
    st.builds(
        m.ToolSpec,
        names,
        texts,
        st.sampled_from([None, {"type": "object"}, {"properties": {"a": True}}]),
    ),
    max_size=2,
    unique_by=lambda tool: tool.name,
).map(tuple)


@st.composite
def splits(draw: st.DrawFn, value: str) -> Split | None:
    """A split for `value`: none, a rule, or its fragments."""
    fragments = draw(cut(value)) if value else ("",)
    return draw(st.none() | rules | st.just(fragments))


spans = st.tuples(st.integers(0, 99), st.integers(0, 99)).map(lambda pair: (pair[0], sum(pair)))
numbers = st.integers(0, 9)
cited = st.one_of(
    st.builds(Citation, lines | st.just(""), texts, texts),
    *[
        st.builds(Citation, lines, texts, texts, document=numbers, **{unit: spans})
        for unit in ("characters", "pages", "blocks")
    ],
    st.builds(Citation, lines | st.just(""), texts, search_result=numbers, blocks=spans),
)


probabilities = st.floats(-99, 0, allow_nan=False) | st.integers(-99, 0)


def token_specs(text: str) -> st.SearchStrategy[TokenSpec]:
    """A token of a text."""
    top = st.lists(st.builds(TokenSpec, texts, probabilities), max_size=2).map(tuple)
    return st.builds(TokenSpec, st.just(text), probabilities, top)


@st.composite
def spoken(draw: st.DrawFn) -> AnyPart:
    """A text, reasoning or refusal part."""
    text = draw(texts)
    split, every = draw(splits(text)), draw(st.none() | durations)
    kind = draw(st.integers(0, 2))
    if kind == 0:
        citations = draw(st.lists(cited, max_size=2))
        signature = draw(st.none() | texts)
        logprobs: Any = draw(st.booleans())
        if text and logprobs and draw(st.booleans()):
            logprobs = tuple(draw(token_specs(own)) for own in draw(cut(text)))
        return TextPart(text, split, every, tuple(citations), logprobs, signature)
    if kind == 1:
        return ReasoningPart(text, split, every, draw(st.none() | texts), draw(st.booleans()))
    return RefusalPart(text, split, every)


@st.composite
def calls(draw: st.DrawFn, tools: tuple[m.ToolSpec, ...], ids: count[int]) -> ToolPart:
    """A call, with an id of its own or none, of one of the tools, or malformed."""
    malformed = draw(st.booleans())
    known = st.sampled_from([tool.name for tool in tools]) if tools else names
    name = draw(names if malformed else known)
    if malformed and draw(st.booleans()):
        arguments: str | None = draw(texts)
    else:
        spaced = draw(st.booleans())
        separators = None if spaced else (",", ":")
        value = json.dumps(draw(json_mappings), ensure_ascii=spaced, separators=separators)
        arguments = draw(st.none() | st.just(value))
    split = draw(st.none() | rules if arguments is None else splits(arguments))
    id = draw(st.none() | names.map(lambda name: f"{name}{next(ids)}"))
    every, signature = draw(st.none() | durations), draw(st.none() | texts)
    if not malformed and not tools and draw(st.integers(0, 3)) == 0:
        text = draw(texts) or None
        split = draw(st.none() | rules if text is None else splits(text))
        return ToolPart(name, id, text, False, split, every, signature, True)
    return ToolPart(name, id, arguments, malformed, split, every, signature)


@st.composite
def server_tools(draw: st.DrawFn) -> ServerToolPart:
    """A tool of the service: with input and output, each as compact JSON or as other text."""
    input, output = draw(st.none() | texts | json_texts), draw(st.none() | texts | json_texts)
    return ServerToolPart(
        draw(st.sampled_from(["web_search", "mcp", "a b"])),
        draw(st.none() | names),
        draw(st.none() | names),
        input,
        output,
        draw(st.none() | rules if input is None else splits(input)),
        draw(st.none() | durations),
    )


@st.composite
def media(draw: st.DrawFn) -> AnyPart:
    """An image, or sound with or without a transcript, in the YAML."""
    kind, data = draw(st.sampled_from(["image", "audio"])), draw(st.binary(max_size=9))
    source = MediaSource(data, f"{kind}/{draw(names)}")
    every, signature = draw(st.none() | durations), draw(st.none() | texts)
    if kind == "image":
        return ImagePart(source, every, signature)
    transcript = draw(texts)
    split, size = draw(splits(transcript)), draw(st.none() | st.integers(1, 9))
    return AudioPart(source, transcript, size, split, every, signature)


@st.composite
def frames(draw: st.DrawFn, apis: tuple[m.Api, ...]) -> FramePart:
    """A raw frame."""
    api = draw(st.sampled_from(apis))
    kind = draw(st.integers(0, 2))
    if kind == 0:
        data = draw(texts | json_mappings | st.booleans() | st.integers())
        line = st.sampled_from([None, ""]) | lines
        options = [line, line, st.none() | st.integers(0, 99)]
        return FramePart(api, data, *[draw(option) for option in options])
    text = draw(texts)
    return FramePart(api, comment=text) if kind == 1 else FramePart(api, raw=text)


@st.composite
def interleaved(draw: st.DrawFn, part: st.SearchStrategy[Any]) -> InterleavedPart:
    """Parts with an order of their fragments; random splits, which cannot have one, are removed."""
    parts, counts = [], []
    for member in draw(st.lists(part, min_size=1, max_size=3)):
        if isinstance(member, FramePart):
            counts.append(1)
        else:
            split = getattr(member, "split", "")
            whole = isinstance(split, RandomSplit | None)
            member = replace(member, split="whole") if whole else member
            counts.append(beats_of(member))
        parts.append(member)
    order = [index for index, count_ in enumerate(counts) for _ in range(count_)]
    return InterleavedPart(tuple(parts), tuple(draw(st.permutations(order))))


def beats_of(part: Member) -> int:
    """The number of fragments in which a part streams, as the player counts them."""
    turns = (m.TurnSpec(reply=(part,)),)
    return sum(map(beats, resolve(m.Scenario("a", turns), 0, "chat").parts))


@st.composite
def replies(
    draw: st.DrawFn, apis: tuple[m.Api, ...], tools: tuple[m.ToolSpec, ...], ids: count[int]
) -> tuple[AnyPart, ...]:
    """At least one part; `auto` stands alone, an error comes last."""
    if draw(st.integers(0, 9)) == 0:
        return (AutoPart(draw(st.sampled_from(["", "200", "uniform(1, 2.5)"]))),)
    call = calls(tools, ids)
    parallel = st.lists(call, min_size=1, max_size=3).map(lambda own: ParallelPart(tuple(own)))
    part = st.one_of(
        spoken(),
        call,
        server_tools(),
        media(),
        parallel,
        interleaved(spoken() | call | server_tools() | media() | frames(apis)),
        frames(apis),
        durations.map(lambda long: PausePart(long)),
    )
    own = draw(st.lists(part, min_size=1, max_size=3))
    if draw(st.integers(0, 4)) == 0:
        own.append(ErrorPart(draw(errors)))
    return tuple(own)


def fault_values(**values: list[Any]) -> st.SearchStrategy[Any]:
    """Some of the parameters of a fault, in their order."""
    chosen = [
        st.none() | st.tuples(st.just(key), st.sampled_from(own)) for key, own in values.items()
    ]
    return st.tuples(*chosen).map(lambda pairs: tuple(pair for pair in pairs if pair is not None))


def fault_of(
    name: str,
    place: st.SearchStrategy[Any] = st.none(),  # noqa: B008 - it is not changed
    **values: list[Any],
) -> st.SearchStrategy[m.Fault]:
    """A fault with some parameters; `for` is written `for_`."""
    own = {key.rstrip("_"): options for key, options in values.items()}
    return st.builds(m.Fault, st.just(name), place, fault_values(**own))


# These strike in every answer.
first = st.sampled_from(
    [Place("before", name="first"), Place("events", 0), Place("bytes", 0), Place("time", 0)]
)
parts_of_frames = st.sampled_from(["", "prelude", "headers", "payload", "checksum"])
places = first | st.one_of(
    st.builds(Place, st.just("events") | st.just("bytes"), st.integers(0, 10**9 - 1)),
    st.builds(Place, st.just("time"), st.integers(0, 10**9)),
    st.builds(Place, st.just("in event"), st.integers(1, 10**9 - 1), parts_of_frames),
    st.just(Place("in character")),
    st.builds(Place, st.just("in content"), name=st.sampled_from(["text", "reasoning", "refusal"])),
    st.builds(Place, st.just("in call"), name=st.from_regex(r"[!-+.-:<-~]{1,9}", fullmatch=True)),
    st.builds(Place, st.just("before"), name=st.sampled_from(["finish", "usage", "done"])),
)


def socket_faults() -> st.SearchStrategy[m.Fault]:
    """The faults that only a WebSocket has."""
    return st.one_of(
        fault_of("stall", places, for_=["ever", 70_000], pings=[True, False]),
        fault_of("cut", places, end=["expired"]),
        fault_of("cut", places, code=[1000, 1006, 4999]).map(_with_reason),
        fault_of("fragment", event=[1, 2], bytes=[1, 7]),
        fault_of("garble", what=["opcode"], event=[1, 2]),
        fault_of("handshake", pause=[70_000]).map(_with_status),
    )


def _with_status(handshake: m.Fault) -> m.Fault:
    """It needs one of several parameters."""
    return replace(handshake, values=(("status", 426), ("body", "html"), *handshake.values))


def _with_reason(cut: m.Fault) -> m.Fault:
    """A reason stands beside a code, and only there."""
    return replace(cut, values=(*cut.values, ("reason", "is gone: a/b"))) if cut.values else cut


def all_faults(place: st.SearchStrategy[Place]) -> st.SearchStrategy[m.Fault]:
    """Every fault of an answer, with some of its parameters."""
    return st.one_of(
        fault_of("refuse", end=["close", "reset"]),
        fault_of(
            "status",
            status=[429, 503],
            body=["html", "empty", "json", "other"],
            retry_after=[50_000, 0],
            retry_form=["seconds", "date", "ms"],
            should_retry=[True, False],
        ),
        fault_of("cut", place, end=["close", "reset", "chunk", "orderly"]),
        fault_of("stall", st.none() | place, for_=["ever", 70_000]),
        st.just(m.Fault("drip", values=(("every", 2_000),))),
        st.just(m.Fault("drip", values=(("rate", 200),))),
        st.just(m.Fault("burst", values=(("pause", 300_000),))),
        fault_of("garble", what=["content-type", "html", "gzip", "empty"]),
        fault_of("error", st.none() | place, kind=["rate_limit", "server_error"]),
        fault_of("redirect", status=[307, 308], circle=[True, False]),
        st.just(m.Fault("keepalive-closed")),
    )


def _needs_bytes(fault: m.Fault) -> bool:
    """Whether a fault strikes only in an answer that has bytes: a fault before it may leave none,
    and the loader refuses what cannot strike."""
    is_json = fault.name == "garble" and fault.get("what") is None
    return is_json or fault.get("end") == "orderly"


faults = (
    st.lists(all_faults(first), max_size=2, unique_by=lambda one: one.name)
    .filter(lambda drawn: not any(map(_needs_bytes, drawn[1:])))
    .map(tuple)
)
failed = st.builds(
    m.TurnSpec,
    http=https,
    recorded=st.none() | tapes,
    fault=all_faults(first).map(lambda one: (one,)) | st.just(()),
    gate=st.none() | gates,
)
tries = st.builds(
    lambda fault, finish, reply: m.TurnSpec(reply=reply, finish=finish, fault=fault),
    all_faults(first).map(lambda one: (one,)),
    st.none() | finishes,
    st.just(()) | st.just((TextPart("Sorry"),)),
)


choices = st.lists(
    st.builds(
        m.TurnSpec,
        reply=st.lists(spoken() | server_tools(), min_size=1, max_size=2).map(tuple),
        finish=st.none() | st.just("none") | finishes,
        finish_raw=st.none() | texts,
    ),
    max_size=2,
).map(tuple)
pendings = st.builds(Pending, polls=st.integers(0, 10**9 - 1)) | st.builds(
    Pending, duration=st.integers(1, 10**7)
)
limits = st.sampled_from([(), ("max_tokens",), ("stop", "min_tokens")])


def _carried_by(apis: Sequence[m.Api]) -> Callable[[m.TurnSpec], bool]:
    """Whether the faults of a turn can strike over each of some APIs: some are of HTTP only."""
    on_socket = any(PROTOCOLS[api].address.is_socket for api in apis)
    return lambda turn: not on_socket or not any(carrier_mismatch(one, True) for one in turn.fault)


@st.composite
def turns(
    draw: st.DrawFn,
    apis: tuple[m.Api, ...],
    tools: tuple[m.ToolSpec, ...],
    ids: count[int],
    last: bool,
    restart: bool,
) -> m.TurnSpec:
    """A turn, with variants for some protocols."""
    # A variant for the other API may leave the turn to the one that has WebSockets only.
    carried = _carried_by(() if apis is APIS else apis)
    reply = draw(replies(apis, tools, ids)) if draw(st.integers(0, 4)) else ()
    turn = m.TurnSpec(
        reply=reply,
        http=None if reply else draw(https),
        request=draw(st.none() | expectations),
        finish=draw(st.none() | st.just("none") | finishes),
        finish_raw=draw(st.none() | texts),
        usage=draw(st.none() | usages),
        service_tier=draw(st.none() | labels),
        fingerprint=draw(st.none() | labels),
        hears=draw(st.none() | st.builds(m.Hears, texts, st.integers(0, 10**9), st.booleans())),
        speech=draw(st.sampled_from([None, "tone", "silence", "none"])),
        choices=draw(choices) if reply else (),
        obey=draw(limits),
        timing=draw(st.none() | timings),
        attempts=tuple(draw(st.lists((failed | tries).filter(carried), max_size=2))),
        wire=draw(st.none() | wires),
        fault=draw(faults.filter(lambda drawn: carried(m.TurnSpec(fault=drawn)))),
        expect=draw(st.none() | outcomes),
        times=draw(st.sampled_from([1, 1, 2, 10_000])),
        repeat=last and not restart and draw(st.booleans()),
        extra=draw(extras(apis)),
        gate=draw(st.none() | gates),
        headers=draw(
            st.sampled_from([(), (("x-request-id", "r1"), ("x-two", ""), ("x-two", "b"))])
        ),
        template=draw(st.sampled_from([None, False])),
        job=draw(st.none() | st.builds(JobSpec, pendings, st.booleans())) if reply else None,
    )
    if draw(st.booleans()):
        turn = replace(turn, finish=draw(st.sampled_from([None, "stop"])), stop_sequence="END")
    recorded = draw(st.none() | tapes)
    if reply and recorded is None and not isinstance(reply[-1], AutoPart | ErrorPart):
        held = draw(st.lists(st.builds(Gate, st.just("in-reply")), max_size=1))
        turn = replace(turn, reply=(*reply, *map(GatePart, held)))
    if reply and recorded is None and draw(st.booleans()):
        plain = m.TurnSpec(
            **{
                field: getattr(turn, field)
                for field in (
                    *("finish", "finish_raw", "stop_sequence", "usage", "obey", "job"),
                    *("timing", "wire", "fault", "expect", "speech", "gate"),
                )
            },
            extra=turn.extra,
            headers=turn.headers,
            template=turn.template,
        )
        turn = replace(turn, reply=(), one_of=tuple(draw(drawn_replies(plain))))
    branches = []
    for api in draw(st.lists(st.sampled_from(apis), unique=True, max_size=2)):
        variant = replace(
            turn,
            finish=draw(st.none() | finishes) if turn.stop_sequence is None else turn.finish,
            usage=draw(st.none() | usages),
            service_tier=draw(st.none() | labels),
            choices=draw(st.sampled_from([turn.choices, ()])),
            wire=draw(st.none() | wires),
            obey=draw(limits),
            attempts=tuple(draw(st.lists(failed.filter(_carried_by([api])), max_size=1))),
            extra=draw(st.sampled_from([turn.extra, ()])),
        )
        if last and draw(st.booleans()):
            other = draw(replies(apis, tools, ids)) if draw(st.booleans()) else ()
            http = None if other else draw(https)
            variant = replace(variant, reply=other, http=http, one_of=(), repeat=False)
        condition = draw(st.none() | expectations.filter(lambda drawn: drawn != m.Expect()))
        if variant != turn and _carried_by([api])(turn):
            whole = api if condition is None else draw(st.sampled_from([api, None]))
            branches.append(m.Branch(variant, whole, condition))
    return replace(turn, branches=tuple(branches), recorded=recorded)


def drawn_replies(plain: m.TurnSpec) -> st.SearchStrategy[list[m.WeightedTurn]]:
    """Replies of which one is drawn, each with all else of a turn."""
    parts = st.builds(TextPart, texts).map(lambda part: (part,))
    forms = st.builds(lambda reply: replace(plain, reply=reply), parts) | st.builds(
        lambda http, finish: replace(plain, http=http, finish=finish, stop_sequence=None),
        https,
        finishes,
    )
    weighted = st.builds(m.WeightedTurn, forms, st.integers(1, 5))
    return st.lists(weighted, min_size=2, max_size=3)


plain_expectations = st.builds(
    m.Expect,
    offers=maybe_names,
    tool_choice=st.none() | lines,
    user=st.none() | conditions,
    user_files=sent_files,
    body=st.none() | bodies,
    schema=st.sampled_from([None, True, False, {"type": "object"}]),
)
expectations = plain_expectations | grouped(
    plain_expectations, plain_expectations.filter(lambda expect: expect != m.Expect())
)
results = st.builds(m.ResultCondition, conditions) | st.builds(
    m.ResultCondition, error=st.just(True)
)


@st.composite
def scenarios(draw: st.DrawFn) -> m.Scenario:
    """A whole scenario in which `check` finds no problem."""
    apis = draw(st.just(()) | st.permutations(APIS).map(lambda five: tuple(five[:2])))
    tools, ids, restart = draw(tool_specs), count(), draw(st.booleans())
    number = draw(st.integers(1, 3))
    own: list[m.TurnSpec] = []
    for index in range(number):
        turn = draw(turns(apis or APIS, tools, ids, index == number - 1, restart))
        played = [part for before in own for part in before.reply]
        known = [part.id for part in played if isinstance(part, ToolPart) and part.id]
        if known and turn.request and not turn.branches and draw(st.booleans()):
            request = replace(
                turn.request, results=((draw(st.sampled_from(known)), draw(results)),)
            )
            turn = replace(turn, request=request)
        own.append(turn)
    scenario = m.Scenario(
        name=draw(st.from_regex(r"\A[a-z0-9][a-z0-9-]{0,9}\Z")),
        turns=tuple(own),
        description=draw(st.just("") | lines),
        apis=apis,
        match=draw(st.none() | matches),
        tools=tools,
        seed=draw(st.none() | texts),
        defaults=draw(defaults),
        obey=draw(limits),
        restart=restart,
        any_ids=draw(st.booleans()),
    )
    return with_ignored(scenario)
