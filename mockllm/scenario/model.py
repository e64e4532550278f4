"""A scenario as it is written: what `load` returns and `dump` writes. Only data may live here.

The written form is kept (`split: words` stays a rule, `parallel` stays a group), so that a
scenario can be written back in a readable form; `mockllm.play.replay.compilation.resolve` makes the
neutral `Turn`.
Durations are whole microseconds. JSON values are plain Python values that no one may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mockllm.core.record import record
from mockllm.core.request import FILLED, OfferedTool
from mockllm.core.tokens_and_fragments import Split
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.latency_model import Latency
from mockllm.scenario.mcp_model import McpEntry, McpServer, server_and_tool
from mockllm.scenario.part_model import (
    AnyPart,
    AutoPart,
    ErrorSpec,
    Gate,
    gates_in,
    tool_parts,
    without_gates,
)
from mockllm.scenario.route_model import JobSpec, MessageSpec, RouteAnswer, RouteSpec

if TYPE_CHECKING:
    from mockllm.core.events import FinishReason

Api = str
"""The name of a wire protocol: a key of `mockllm.wire.protocols.PROTOCOLS`."""


Ignored = tuple[str, ...]
"""`ignore:`, what of a request does not count, as written (`mockllm.scenario.ignoring`)."""


@record
class TextCondition:
    """A condition on a text; without an operator, YAML means `contains`.

    Args:
        op: of `hidden` the value has eight bits of a text that a recording hides.
        ignore: that of the `match` of its scenario.
    """

    op: Literal["contains", "equals", "regex", "hidden"]
    value: str
    ignore: Ignored = ()


@record
class CombinedText:
    """Conditions on one text: `all` of them must hold, or `any`; or the only one must not."""

    op: Literal["any", "all", "not"]
    conditions: tuple[AnyText, ...]


AnyText = TextCondition | CombinedText
"""A condition on a text."""


def written_text(condition: AnyText) -> Any:
    """A condition on a text as YAML has it."""
    if isinstance(condition, TextCondition):
        return condition.value if condition.op == "contains" else {condition.op: condition.value}
    inner = [written_text(part) for part in condition.conditions]
    return {condition.op: inner[0] if condition.op == "not" else inner}


def expected_texts(condition: AnyText | None) -> tuple[str, ...]:
    """The texts and regular expressions that a request for a scenario has: of `any` those of the
    first condition, of `not` none."""
    if condition is None or condition.op == "not":
        return ()
    if isinstance(condition, TextCondition):
        return (condition.value,)
    needed = condition.conditions[:1] if condition.op == "any" else condition.conditions
    return tuple(chain.from_iterable(map(expected_texts, needed)))


def _count(condition: AnyText | None) -> int:
    """How many conditions on a text must hold at once."""
    if condition is None:
        return 0
    if isinstance(condition, TextCondition) or condition.op != "all":
        return 1
    return sum(map(_count, condition.conditions))


@record
class FileCount:
    """The number of files of a message with this type and this digest.

    Args:
        most: None: any number.
        type: a pattern for the media type.
    """

    least: int = 1
    most: int | None = None
    type: str | None = None
    digest: str | None = None


@record
class Match:
    """When a scenario answers a request that did not name one; all conditions must hold.

    `anything` (`match: any`) answers what no other scenario answers. `headers` pairs lower-case
    names with conditions. `body` is a partial JSON body. `stream` is whether the answer is to be
    streamed. `query` pairs names of parameters with conditions, for routes that call no model.
    `user_files` are the files of the user message, each as a digest, a reference or a media type
    (`mockllm.play.matching.sent_files`), or how many it has of them. `ignore` is no condition: it
    is what the others do not compare. All of `all_of`, one of `any_of` and not `negated` must hold;
    what these have about the user's message is about the one at which the conversation begins.
    """

    anything: bool = False
    model: str | None = None
    user: AnyText | None = None
    user_files: tuple[str, ...] | FileCount = ()
    system: AnyText | None = None
    tools: tuple[str, ...] = ()
    headers: tuple[tuple[str, AnyText], ...] = ()
    body: Any = None
    stream: bool | None = None
    query: tuple[tuple[str, AnyText], ...] = ()
    ignore: Ignored = ()
    any_of: tuple[Match, ...] = ()
    all_of: tuple[Match, ...] = ()
    negated: Match | None = None

    @property
    def conditions(self) -> int:
        """The number of conditions, with those inside `all`; the scenario with the most wins."""
        single = (self.model, self.body, self.stream, self.negated)
        files = 1 if isinstance(self.user_files, FileCount) else len(self.user_files)
        texts = (self.user, self.system, *(one for _, one in (*self.headers, *self.query)))
        groups = bool(self.any_of) + sum(inner.conditions for inner in self.all_of)
        counted = len(self.tools) + files + sum(map(_count, texts)) + groups
        return sum(value is not None for value in single) + counted


@record
class ToolSpec:
    """A tool that the client is expected to offer; `parameters` is a JSON Schema."""

    name: str
    description: str = ""
    parameters: Any = None

    def offered_tool(self) -> OfferedTool:
        """The tool as a client offers it."""
        return OfferedTool(self.name, self.description, self.parameters or {})


@record
class UsageSpec:
    """Token counts. None is counted from the text by a fixed rule
    (`mockllm.play.replay.compilation.resolve`). `cached` may be `prefix`: what earlier requests of
    the session had begun with. With `sent` False (`usage: none`) the answer has no usage."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | Literal["prefix"] | None = None
    cache_written: int | None = None
    sent: bool = True


@record
class Timing:
    """When fragments are sent, in microseconds.

    Args:
        jitter: the largest random change of each pause, as a share of it (0.2 for `20%`).
        at: the offset of each fragment from the start of the answer, in place of all others.
        latency: what all times are drawn from, in place of all others.
    """

    ttft: int | None = None
    every: int | None = None
    jitter: float | None = None
    at: tuple[int, ...] = ()
    latency: Latency | None = None

    @property
    def is_exact(self) -> bool:
        """Whether it has times that are not drawn for each request."""
        return bool(self.ttft is not None or self.every is not None or self.at)


@record
class Defaults:
    """Values for all turns that have none of their own."""

    split: Split | None = None
    every: int | None = None
    ttft: int | None = None
    jitter: float | None = None
    latency: Latency | None = None
    usage: UsageSpec | None = None


@record
class Recorded:
    """The recorded bytes of a turn's answer, in a tape: a file beside the YAML.

    Args:
        file: as written: a path in the folder of the YAML.
        path: of the tape; None for a scenario that was not loaded from a file.
        request: the digest of the recorded request (`mockllm.play.matching.fingerprint`): the same
            request gets this answer; "" where it is not known.
        redacted: the places of the request that had secrets, which the digest leaves out: JSON
            pointers to strings of the body, `?name` for a parameter of the query, `{redacted}` for
            a segment of the path.
        hidden: eight bits of the value at each of these places (`mockllm.play.matching.hidden`), by
            which recordings are told apart that have the same digest; "" where they are not known.
        ignore: what else the digest leaves out.
        order: of several recordings with the same request, which one this is, from 0.
        partial: whether the YAML could not hold all of the answer, so that its tape is played
            whatever the turn says.
    """

    file: str
    path: str | None = field(default=None, compare=False)
    request: str = ""
    redacted: tuple[str, ...] = ()
    hidden: str = ""
    ignore: Ignored = ()
    order: int = 0
    partial: bool = False


@record
class Http:
    """An HTTP error in place of an answer; `retry_after` in microseconds."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    retry_after: int | None = None
    error: ErrorSpec | None = None


@record
class ResultCondition:
    """A condition on the result of a call: on its text, or (`error`) that it is a failure."""

    text: AnyText | None = None
    error: bool = False


@record
class Expect:
    """`request:` of a turn: conditions that the request must meet to be answered.

    Args:
        system: of the system prompt, and of messages of the system since the last answer.
        ignore: that of the `match` of its scenario, for `body`.
        any_of, all_of, negated: as of `Match`.
    """

    results: tuple[tuple[str, ResultCondition], ...] = ()
    offers: tuple[str, ...] = ()
    tool_choice: str | None = None
    user: AnyText | None = None
    user_files: tuple[str, ...] | FileCount = ()
    system: AnyText | None = None
    body: Any = None
    schema: Any = None
    ignore: Ignored = ()
    any_of: tuple[Expect, ...] = ()
    all_of: tuple[Expect, ...] = ()
    negated: Expect | None = None


_Conditions = TypeVar("_Conditions", Match, Expect)
_EntryPath = tuple[str | int, ...]


def groups_of(
    conditions: _Conditions,
) -> tuple[tuple[Literal["any", "all", "not"], tuple[_Conditions, ...]], ...]:
    """The entries under `any`, `all` and `not`; mostly there are none."""
    if not (conditions.any_of or conditions.all_of or conditions.negated):
        return ()
    negated = () if conditions.negated is None else (conditions.negated,)
    return ("any", conditions.any_of), ("all", conditions.all_of), ("not", negated)


def with_entries(conditions: _Conditions) -> Iterator[tuple[_EntryPath, _Conditions]]:
    """The conditions and, however deep, the entries of their groups, each with its path."""
    yield (), conditions
    for key, entries in groups_of(conditions):
        for index, entry in enumerate(entries):
            place: _EntryPath = (key,) if key == "not" else (key, index)
            yield from ((place + path, inner) for path, inner in with_entries(entry))


def positive_entries(conditions: _Conditions) -> Iterator[_Conditions]:
    """The conditions and the entries of their groups, but for those under a `not`."""
    return (inner for path, inner in with_entries(conditions) if "not" not in path)


def regexes_of(condition: AnyText | None) -> Iterator[str]:
    """The regular expressions of a condition that a text with their groups meets: none in `not`."""
    if isinstance(condition, TextCondition):
        if condition.op == "regex":
            yield condition.value
    elif condition is not None and condition.op != "not":
        for part in condition.conditions:
            yield from regexes_of(part)


def with_changed_entries(
    conditions: _Conditions, change: Callable[[_Conditions], _Conditions]
) -> _Conditions:
    """The conditions with each entry of their groups changed, not those inside of entries."""
    if not groups_of(conditions):
        return conditions
    negated = None if conditions.negated is None else change(conditions.negated)
    any_of, all_of = (tuple(map(change, e)) for e in (conditions.any_of, conditions.all_of))
    return replace(conditions, any_of=any_of, all_of=all_of, negated=negated)


@record
class Comments:
    """A comment line after every n-th event, with n in `every`."""

    every: int
    text: str = ""


@record
class Segments:
    """TCP writes of `low` to `high` bytes."""

    low: int
    high: int


@record
class Wire:
    """The form of the stream; None is what the service of the protocol does.

    Args:
        group: how many consecutive fragments of a part are joined into one.
        segments: the sizes of TCP writes in bytes; a tuple is used over and over.
    """

    line_end: Literal["lf", "crlf", "cr"] | None = None
    bom: bool = False
    multiline: bool = False
    comments: Comments | None = None
    group: int | None = None
    segments: Segments | tuple[int, ...] | None = None
    quirks: tuple[str, ...] = ()


@record
class ExpectedOutcome:
    """`expect:` of a turn: the outcome of a correct client, where it does not follow from
    `reply`; None follows from `reply`.

    Args:
        tool_calls: mappings with `id`, `name` and `arguments`.
        usage: a count that is None follows from `reply`.
        opaque: signatures, redacted and encrypted reasoning.
        errors: mappings with `tool` (an index) and `kind`.
    """

    text: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: Any = None
    finish: FinishReason | None = None
    usage: UsageSpec | None = None
    opaque: tuple[str, ...] | None = None
    errors: Any = None


Ending = Literal["stop", "tool_calls", "length", "content_filter", "refusal", "none"]
"""Why an answer ends; `none`: it is cut off, without a reason."""


Limit = Literal["max_tokens", "stop", "min_tokens"]
"""What a request says of the length of its answer."""

LIMITS: tuple[Limit, ...] = ("max_tokens", "stop", "min_tokens")


@record
class Branch:
    """An entry of `when:`: a whole turn that answers in place of the one that has the entry.

    Args:
        api: over which it answers; None: over every one.
        condition: what the request must have; None: nothing.
    """

    turn: TurnSpec
    api: Api | None = None
    condition: Expect | None = None


@record
class WeightedTurn:
    """An entry of `one_of:`: a whole turn, and how often it is drawn, compared with the others."""

    turn: TurnSpec
    weight: int = 1


@record
class Hears:
    """`hears:` of a turn: the user's words in the sound that the client sends.

    Args:
        after: how much sound the client sends until they are spoken, in microseconds.
        barge_in: whether the user says them while the answer before is on its way.
    """

    say: str
    after: int = 500_000
    barge_in: bool = False


Speech = Literal["tone", "silence", "none"]
"""How a text sounds where an API answers in speech."""


@record
class TurnSpec:
    """One turn of the model as written.

    Exactly one of `reply` (at least one part), `http`, `one_of` and, in a scenario with a `route`,
    `answer` is set; on a WebSocket `client`, `service` or both may be set instead.

    Args:
        name: for `go_to`; "" for none.
        go_to: the name of the turn that comes after it; "" for the next one.
        one_of: the turns of which one is drawn for each request.
        headers: of the answer, in lower case, besides those of the API and in place of them.
        template: whether its texts have values of the request (`mockllm.scenario.templates`); None:
            as the scenario says.
        finish_raw: the finish reason that is sent, where it is not the usual one of the API.
        stop_sequence: the text that the request stops at, where that ends the answer.
        obey: the limits of a request that cut the reply; () for those of the scenario.
        service_tier, fingerprint: what the answer says of its service, where the API has a field
            for it; None is what the API sends by itself.
        hears: what the user says before it, over APIs that take sound.
        speech: how its text sounds, over APIs that answer in speech; None: a tone.
        choices: further choices beside the reply, each with a `reply`, `finish` and `finish_raw`.
        gate: before which the whole answer waits; further ones are parts of the reply.
        attempts: what earlier tries of this turn get: an error; or an answer, which without a
            `reply` of its own has that of the turn. What was `recorded` of a try may also be an
            answer that was broken off, with nothing else.
        branches: the entries of `when`; the first whose protocol and conditions hold answers.
        times: how many requests in a row it answers, all of which must come.
        repeat: whether it answers all later requests, too, and its `attempts` begin again.
        recorded: of the turn itself; branches have none. That of the first turn on a WebSocket is
            the tape of the whole session.
        extra: by protocol and place, fields that its service adds, as
            `mockllm.wire.protocols.extra` describes them.
        fault: what breaks on the way, in this order.
        job: how the work goes on that the request only begins; None: there is none.
        client, service: the messages that each side of a WebSocket sends.
    """

    reply: tuple[AnyPart, ...] = ()
    http: Http | None = None
    request: Expect | None = None
    finish: Ending | None = None
    finish_raw: str | None = None
    stop_sequence: str | None = None
    usage: UsageSpec | None = None
    obey: tuple[Limit, ...] = ()
    service_tier: str | None = None
    fingerprint: str | None = None
    choices: tuple[TurnSpec, ...] = ()
    timing: Timing | None = None
    gate: Gate | None = None
    attempts: tuple[TurnSpec, ...] = ()
    wire: Wire | None = None
    expect: ExpectedOutcome | None = None
    times: int = 1
    repeat: bool = False
    recorded: Recorded | None = None
    branches: tuple[Branch, ...] = ()
    answer: RouteAnswer | None = None
    extra: tuple[tuple[Api, Any], ...] = ()
    fault: tuple[Fault, ...] = ()
    name: str = ""
    go_to: str = ""
    one_of: tuple[WeightedTurn, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    template: bool | None = None
    job: JobSpec | None = None
    hears: Hears | None = None
    speech: Speech | None = None
    client: tuple[MessageSpec, ...] = ()
    service: tuple[MessageSpec, ...] = ()

    @property
    def is_auto(self) -> bool:
        """Whether its reply is made from the request."""
        return any(isinstance(part, AutoPart) for part in self.reply)

    @property
    def period(self) -> int:
        """The number of tries after which its `attempts` begin again; 0: its reply stays."""
        return len(self.attempts) + 1 if self.repeat else 0

    def for_attempt(self, attempt: TurnSpec) -> TurnSpec:
        """The turn as an earlier try gets it: with the answer of the try in place of its own."""
        if attempt.http is not None or attempt.reply:
            return replace(attempt, obey=self.obey) if self.obey else attempt
        changed = {key: value for key in _OF_TRIES if (value := getattr(attempt, key)) is not None}
        return replace(
            self, attempts=(), recorded=None, fault=attempt.fault, gate=attempt.gate, **changed
        )

    def every(self) -> Iterator[TurnSpec]:
        """The turn, the tries before it, and what may answer in its place, with theirs."""
        yield self
        for turn in (
            *self.attempts,
            *(branch.turn for branch in self.branches),
            *(drawn.turn for drawn in self.one_of),
        ):
            yield from turn.every()

    def forms(self) -> tuple[TurnSpec, ...]:
        """Every way in which the turn may answer, by number: itself, then each entry of `when`;
        each is followed by its `one_of`."""
        return tuple(
            form
            for whole in (self, *(branch.turn for branch in self.branches))
            for form in (whole, *(drawn.turn for drawn in whole.one_of))
        )

    def answering(self, api: str) -> dict[int, TurnSpec]:
        """The forms of which one answers over a protocol, by number."""
        found: dict[int, TurnSpec] = {}
        number, always = 1 + len(self.one_of), False
        for branch in self.branches:
            if branch.api in (None, api) and not always:
                found |= branch.turn.forms_to_draw(number)
                always = branch.condition is None
            number += 1 + len(branch.turn.one_of)
        return found if always else self.forms_to_draw(0) | found

    def forms_to_draw(self, number: int = 0) -> dict[int, TurnSpec]:
        """The forms of which one is drawn, by number; `number` is that of the turn itself."""
        if not self.one_of:
            return {number: self}
        return {number + n: drawn.turn for n, drawn in enumerate(self.one_of, 1)}

    def with_each(self, change: Callable[[TurnSpec], TurnSpec]) -> TurnSpec:
        """The turn with a change of itself, and of all that may answer in its place."""
        own = change(self)
        branches = [replace(b, turn=b.turn.with_each(change)) for b in own.branches]
        drawn = [replace(d, turn=d.turn.with_each(change)) for d in own.one_of]
        return replace(own, branches=tuple(branches), one_of=tuple(drawn))

    @property
    def varies(self) -> bool:
        """Whether more than the protocol of a request decides what it answers, or what follows."""
        return bool(
            self.one_of
            or self.go_to
            or self.template
            or any(branch.condition or branch.turn.varies for branch in self.branches)
        )

    @property
    def fails(self) -> bool:
        """Whether its answer is an error, or breaks on its way."""
        return self.http is not None or bool(self.fault)

    def recordings(self) -> Iterator[Recorded]:
        """The recordings of the turn and of the tries before it."""
        for answer in (*self.attempts, self):
            if answer.recorded is not None:
                yield answer.recorded

    @property
    def has_actions(self) -> bool:
        """Whether it does something with a shell or a file, by whatever tool there is."""
        forms = (self, *self.attempts, *self.choices)
        return any(call.action for form in forms for call in tool_parts(form.reply))

    def for_api(self, api: str) -> TurnSpec:
        """This turn as protocol `api` plays it where no condition of `when` holds."""
        for branch in self.branches:
            if branch.api == api and branch.condition is None:
                return branch.turn
        return self

    def extra_for(self, api: str) -> Any:
        """By place, the fields that the service of protocol `api` adds; {} if there are none."""
        return dict(self.extra).get(api, {})


_OF_TRIES = ("finish", "finish_raw", "stop_sequence", "usage", "timing", "wire")
"""What an earlier try may change of the turn's own reply."""


Taken = tuple[int, int, int]
"""Which form of a turn answered: the index of the turn, the number of the form (`TurnSpec.forms`),
and the step (`Scenario.steps`)."""


_LOWEST_PRIORITY = 1 << 31
_OF_MACHINE = frozenset(FILLED)


@record
class Scenario:
    """A conversation with a model, as one YAML document describes it.

    Args:
        apis: the protocols that it plays over; () means every protocol.
        seed: None means the name.
        restart: whether the first turn follows the last one (`then: restart`).
        priority: which of several scenarios with as many conditions answers: the one with the
            lowest number, before those without one.
        in_order: whether each turn answers once in a session, in order, also where a request does
            not continue the conversation.
        obey: the limits of a request that cut the replies of turns without an `obey` of their own.
        any_ids: whether calls in a history may have ids that are not those of the scenario.
        route: the route that it answers, which calls no model; None: it plays a conversation.
        socket: whether the route is a WebSocket, and in which frames its service sends JSON and
            texts; "": it is none.
        template: whether the texts of its turns have values of the request.
        mcp: what MCP servers answer while it plays.
        server: the MCP server that the document describes, which has no turns; None: it describes
            none.
        file, line: where it was loaded from.
        path: of a scenario as one conversation goes (`mockllm.play.matching.branching`): where each
            of its turns comes from. () for a scenario as it is written.
        steps: the indices of the turns in the order in which they answer.
        varies: whether a conversation may go in different ways, or an answer be different for
            another request.
    """

    name: str
    turns: tuple[TurnSpec, ...]
    description: str = ""
    apis: tuple[Api, ...] = ()
    match: Match | None = None
    tools: tuple[ToolSpec, ...] = ()
    seed: str | None = None
    defaults: Defaults = Defaults()
    obey: tuple[Limit, ...] = ()
    restart: bool = False
    in_order: bool = False
    priority: int | None = None
    any_ids: bool = False
    route: RouteSpec | None = None
    socket: Literal["", "text", "binary"] = ""
    template: bool = False
    mcp: tuple[McpEntry, ...] = ()
    server: McpServer | None = None
    file: str = field(default="", compare=False, repr=False)
    line: int = field(default=0, compare=False, repr=False)
    path: tuple[Taken, ...] = field(default=(), compare=False, repr=False)
    steps: Sequence[int] = field(init=False, compare=False, repr=False)
    varies: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        steps: Sequence[int] = range(len(self.turns))
        if any(turn.times > 1 for turn in self.turns):
            steps = [n for n, turn in enumerate(self.turns) for _ in range(turn.times)]
        object.__setattr__(self, "steps", steps)
        varies = self.template or self.in_order or any(turn.varies for turn in self.turns)
        object.__setattr__(self, "varies", varies)

    def unroll(self) -> Scenario:
        """The scenario with each turn as often as it answers, where each answers once."""
        if not self.in_order:
            return self
        once = [replace(turn, times=1) for turn in self.turns]
        return replace(self, turns=tuple([once[index] for index in self.steps]))

    def is_template(self, turn: TurnSpec) -> bool:
        """Whether values of the request may stand in the texts of a turn."""
        return self.template if turn.template is None else turn.template

    def has_machine(self, turn: TurnSpec) -> bool:
        """Whether values of a client's machine may stand in the texts of a turn: `ignore` names
        them."""
        ignored = () if self.match is None else self.match.ignore
        if turn.recorded is not None:
            ignored += turn.recorded.ignore
        return not _OF_MACHINE.isdisjoint(ignored)

    def counts_prefix(self, turn: TurnSpec) -> bool:
        """Whether the cached tokens of a turn are those of a prefix (`cached: prefix`)."""
        usages = (turn.usage, self.defaults.usage)
        cached = (usage.cached for usage in usages if usage is not None)
        return next((count for count in cached if count is not None), None) == "prefix"

    @property
    def gates(self) -> tuple[str, ...]:
        """The names of its gates."""
        turns = [form for turn in self.turns for form in turn.every()]
        found = [[turn.gate] if turn.gate is not None else [] for turn in turns]
        found += [gates_in(turn.reply) for turn in turns]
        return tuple(gate.name for gates in found for gate in gates)

    def without_gates(self) -> Scenario:
        """The scenario where nobody opens gates: nothing waits."""

        def without(turn: TurnSpec) -> TurnSpec:
            attempts = tuple(map(without, turn.attempts))
            return replace(turn, gate=None, reply=without_gates(turn.reply), attempts=attempts)

        if not self.gates:
            return self
        return replace(self, turns=tuple(turn.with_each(without) for turn in self.turns))

    @property
    def jumps(self) -> bool:
        """Whether a conversation may leave turns out (`go_to`)."""
        return self.varies and any(form.go_to for turn in self.turns for form in turn.forms())

    @property
    def specificity(self) -> tuple[int, int]:
        """Of several scenarios that match a request, the one with the highest answers: the most
        conditions, then the lowest `priority`."""
        match = self.match or Match()
        conditions = -1 if match.anything else match.conditions
        return conditions, -_LOWEST_PRIORITY if self.priority is None else -self.priority

    @property
    def calls_servers(self) -> frozenset[str]:
        """The names in its calls that are tools of MCP servers: `weather.get_forecast`."""
        forms = (form for turn in self.turns for form in turn.every())
        names = (call.name for form in forms for call in tool_parts(form.reply))
        return frozenset(name for name in names if server_and_tool(name) is not None)

    @property
    def is_conversation(self) -> bool:
        """Whether it answers requests for answers of a model."""
        return self.route is None and self.server is None

    def plays_over(self, api: str) -> bool:
        """Whether the scenario answers requests for answers of a model, of a protocol."""
        return self.is_conversation and (not self.apis or api in self.apis)

    def shares_api(self, other: Scenario) -> bool:
        """Whether there is a protocol that both play over."""
        return not self.apis or not other.apis or not set(self.apis).isdisjoint(other.apis)

    @property
    def seeded(self) -> str:
        """The seed of everything random in this scenario."""
        return self.name if self.seed is None else self.seed
