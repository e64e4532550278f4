"""Decisions: which turn answers a request, and what its tries get."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING

from mockllm.core.request import Request
from mockllm.core.seeded import derive_int
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.call import Answered
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.http_answer import HttpAnswer, http_error_answer
from mockllm.play.replay.jobs import begin_background
from mockllm.play.replay.latency.schedule import Draw, Pace
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.model import TurnSpec, UsageSpec
from mockllm.wire.protocols.base import WireProtocol, counted_tokens, prompt_parts
from mockllm.wire.protocols.records import PromptPart

if TYPE_CHECKING:
    from mockllm.play.replay.compilation.tape_player import RecordedAnswer


@dataclass(slots=True)
class Decision:
    """Which turn answers a request, and what it got once that was made.

    Args:
        spec: the turn, as the protocol of the request plays it.
        quirks: that the server and the request add to those of the turn.
        lasting: whether it depends on the request alone, not on the session.
        faults: those that a header of the request names; the turn's own are in `spec`, too.
        on_socket: whether the answer goes over a WebSocket.
        drawn: by the number of the form, the decisions for the entries of the turn's `one_of`.
        unfilled: the selection without the values of the client's machine, as recordings have it;
            None where the turn has none.
        auxiliary: what a request beside the conversation is for, where no scenario names it, as the
            journal has it; "" for others.
        counts_prefix: whether its usage has the tokens of a common prefix (`cached: prefix`).
    """

    request: Request
    selection: Selection
    spec: TurnSpec
    quirks: tuple[str, ...] = ()
    lasting: bool = True
    path: str = ""
    faults: tuple[Fault, ...] = ()
    on_socket: bool = False
    answered: Answered | None = None
    auxiliary: str = ""
    drawn: dict[int, Decision] = field(default_factory=dict)
    unfilled: Selection | None = None
    counts_prefix: bool = field(init=False)

    def __post_init__(self) -> None:
        counts = self.selection.scenario.counts_prefix(self.spec)
        self.counts_prefix = counts and self.spec.http is None


def for_request(decision: Decision) -> Decision:
    """The decision with the turn as this very request gets it.

    Raises:
        RequestError: the turn has a template that the request has no value for.
    """
    scenario, index = decision.selection.scenario, decision.selection.index
    is_template = scenario.is_template(scenario.turns[index]) or decision.spec.has_actions
    if not is_template and decision.request.world is None:
        return decision
    from mockllm.play.replay.filling import fill_selection  # few scenarios need it

    selection = fill_selection(decision.selection, decision.request)
    if selection is decision.selection:
        return decision
    unfilled = None if is_template else decision.selection
    spec = selection.scenario.turns[selection.index].for_api(decision.request.api)
    spec = replace(spec, fault=decision.spec.fault)
    return replace(decision, selection=selection, spec=spec, drawn={}, unfilled=unfilled)


def draw(decision: Decision, body: bytes, attempt: int, session: Session) -> Decision:
    """The decision for one of the replies of a turn: the same for the same request at the same try
    in a session.

    Args:
        attempt: the number of the try, of a turn that has `attempts`; of others they are counted
            here.
    """
    spec, selection = decision.spec, decision.selection
    scenario, position = selection.scenario, selection.position
    if not spec.attempts:
        attempt = 1 + session.attempt(scenario, position)
    request = sha256(body).hexdigest()
    total = sum(drawn.weight for drawn in spec.one_of)
    left = derive_int(scenario.seeded, position, "one of", request, attempt, below=total)
    number = 0
    while left >= spec.one_of[number].weight:
        left -= spec.one_of[number].weight
        number += 1
    form = selection.form + 1 + number
    if form not in decision.drawn:
        turn = spec.one_of[number].turn
        turn = replace(turn, fault=turn.fault + decision.faults, attempts=spec.attempts)
        chosen = selection.playing(turn, form, form)
        decision.drawn[form] = for_request(
            replace(decision, selection=chosen, spec=turn, answered=None, drawn={})
        )
    return decision.drawn[form]


# https://platform.openai.com/docs/guides/prompt-caching
# https://platform.claude.com/docs/en/build-with-claude/prompt-caching
_LEAST_CACHED = 1024
_CACHED_STEP = 128


def with_prefix_counted(decision: Decision, protocol: WireProtocol, session: Session) -> Decision:
    """The decision with the tokens that are in the cache: a prompt as far as an earlier request of
    the session with `cached: prefix` began with it, too. Afterwards this one is in it."""
    request, scenario = decision.request, decision.selection.scenario
    marked = protocol.client.marked_parts
    parts = prompt_parts(request) if marked is None else marked(request.body)
    kept = [n for n, part in enumerate(parts) if marked is None or part.marked]
    counters = _prefix_counters(request, parts[: kept[-1] + 1] if kept else [])
    session.expect((), counters)  # of shared state, all at once
    known = [session.add_to(counter, 0) > 0 for counter in counters]
    for n in kept:
        if not known[n]:
            session.add_to(counters[n])
    ends = list(accumulate(part.tokens for part in parts))
    cached = max((end for end, was_there in zip(ends, known, strict=False) if was_there), default=0)
    cached = cached if cached >= _LEAST_CACHED else 0
    written = 0
    if marked is None:
        cached -= cached % _CACHED_STEP
    elif kept and ends[kept[-1]] >= _LEAST_CACHED:
        written = ends[kept[-1]] - cached
    default = scenario.defaults.usage or UsageSpec()
    usage = decision.spec.usage or default
    inputs = (count for count in (usage.input, default.input) if count is not None)
    usage = replace(
        usage,
        input=next(inputs, max(1, *ends[-1:])),
        cached=cached,
        cache_written=written if usage.cache_written is None else usage.cache_written,
    )
    spec = replace(decision.spec, usage=usage, branches=())
    counted = decision.selection.playing(spec, usage)
    return replace(decision, selection=counted, spec=spec, answered=None)


def _prefix_counters(request: Request, parts: Iterable[PromptPart]) -> list[str]:
    """The counters of a session for the beginnings of a prompt, each a part longer."""
    digest = sha256(f"{request.api} {request.model}".encode("utf-8", "surrogatepass"))
    counters = []
    for part in parts:
        digest.update(sha256(part.text.encode("utf-8", "surrogatepass")).digest())
        counters.append(f"cache {digest.hexdigest()[:32]}")
    return counters


RequestKey = tuple[str | bytes | None, ...]
"""All parts of a request that a decision depends on."""


class RequestCache:
    """Decisions by all parts of the request that they depend on.

    Clients repeat requests: in retries, in loops of tests, in load tests. The cache is cleared when
    it is full. The largest requests are not kept, and other large ones from their second time on:
    most never come again, and would be what fills the memory.
    """

    _MAX_DECISIONS = 1024
    _MAX_KEY = 64 * 1024
    _MAX_FIRST = 2 * 1024
    _MAX_SEEN = 16 * 1024

    def __init__(self) -> None:
        # A plain dictionary, since every request is looked up here. `cachetools.LRUCache` hashes
        # and compares the key, with the whole body in it, three times: 0.5 instead of 0.2 µs for
        # a body of 300 bytes, 17 instead of 12 µs for one of 60 kB.
        self.decisions: dict[RequestKey, Decision] = {}
        """Those that are kept."""
        self._seen: set[int] = set()

    def keep(self, key: RequestKey, decision: Decision) -> None:
        """Keeps a decision, unless its request is large, or large and new."""
        size = sum(len(part) for part in key if part is not None)
        if size > self._MAX_KEY or (size > self._MAX_FIRST and not self._comes_again(key)):
            return
        if len(self.decisions) >= self._MAX_DECISIONS:
            self.decisions.clear()
        self.decisions[key] = decision

    def _comes_again(self, key: Hashable) -> bool:
        """Whether a request was there before; a wrong yes is possible, and does no harm."""
        digest = hash(key)  # a bytes object computes its hash once
        if digest in self._seen:
            return True
        if len(self._seen) >= self._MAX_SEEN:
            self._seen.clear()
        self._seen.add(digest)
        return False


def attempt_answer(
    replayer: Replayer,
    decision: Decision,
    protocol: WireProtocol,
    attempt: int,
    recorded: RecordedAnswer | None = None,
    speed: float = 1.0,
    draw: Callable[[], Draw] = Draw,
) -> HttpAnswer:
    """The answer to a try at a turn, with its faults: its recording, an error, or a reply.

    Args:
        attempt: its number, from 1; after those that the turn has for earlier tries comes its own.
        speed: of the pauses of an answer with faults; those of the faults stay.
        draw: what times are drawn from, where the turn has latency.
    """
    spec, selection, tried = decision.spec, decision.selection, None
    faults = spec.fault
    if attempt <= len(spec.attempts):
        tried = spec.for_attempt(spec.attempts[attempt - 1])
        spec, faults = tried, tried.fault + decision.faults
    if recorded is not None and recorded.answer is not None:
        answer = replayer.pace_recording(
            recorded.answer, selection, spec, decision.request, protocol.name
        )
    elif spec.http is not None:
        answer = http_error_answer(protocol, spec, selection, attempt)
    else:
        answer = replayer.answer(
            selection,
            decision.request,
            protocol,
            decision.quirks,
            tried=tried,
            attempt=0 if tried is None else attempt,
            duration=0 if recorded is None else recorded.duration,
        )
        background = protocol.background(decision.request.body)
        if background is not None and not decision.request.stream:
            answer = begin_background(answer, background)
    answer = answer.behind(spec.gate)
    if answer.pace is not None and speed:
        answer = _with_drawn_times(answer, answer.pace, draw(), decision.request)
    if not faults:
        return answer
    # Imported with the first fault.
    from mockllm.play.replay.broken_answer import broken, circumstances

    scenario, position = selection.scenario, selection.position
    around = circumstances(
        protocol, decision.request, decision.path, scenario, position, decision.on_socket
    )
    return broken(answer, faults, around, speed)


def _with_drawn_times(answer: HttpAnswer, pace: Pace, draw: Draw, request: Request) -> HttpAnswer:
    """The answer at the times that are drawn for one request."""
    prompt = counted_tokens(request) if pace.latency.prefill else 0
    due = pace.due(draw, prompt)
    return replace(answer, times=tuple([due[number] for number in answer.times]))
