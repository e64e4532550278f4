"""Captured exchanges to scenarios: which requests are one conversation, and what answers them.

Pure: `store.folder` writes the result. The exchanges have been redacted before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from mockllm.core.errors import MockLLMError, ScenarioError, WireError
from mockllm.core.request import WORLD, Request
from mockllm.play.agents.auxiliary import auxiliary_request, auxiliary_route
from mockllm.play.matching.conversation import History, openings
from mockllm.play.tapes.captured import Captured, Tape, detect_api, request_of
from mockllm.play.tapes.socket_session import Recording, SocketSession
from mockllm.record.recording.drafting.conversations import (
    Conversation,
    KnownConversations,
    Placement,
)
from mockllm.record.recording.drafting.draft import (
    LIVE,
    Draft,
    DraftedTurn,
    Line,
    Origin,
    description_of,
    free_name,
    line_of,
    slug,
)
from mockllm.record.recording.drafting.matches import (
    Matches,
    MatchRule,
    Pattern,
    is_same,
    no_pattern,
)
from mockllm.record.recording.drafting.route_drafts import (
    begun_route,
    route_line,
    route_of,
    route_turn,
)
from mockllm.record.recording.drafting.socket_drafts import socket_line, socket_scenario
from mockllm.record.recording.drafting.turns import (
    answering,
    draft_turn,
    tried_before,
    turn_from_history,
    with_turn,
)
from mockllm.record.redaction.redact import RequestKey, key_of_request, key_of_route
from mockllm.scenario.ignoring import GENERATED, differing, normal_text, text_ignoring, with_ignored
from mockllm.scenario.model import Ignored, Recorded, Scenario, TurnSpec
from mockllm.scenario.route_model import RouteSpec
from mockllm.wire.protocols.route_matching import Detected

_USUAL = MatchRule()

TapeOf = Callable[[Recorded], Tape | None]


class Drafting:
    """Drafts scenarios one exchange at a time: a recorder never knows the last one.

    Args:
        known: scenarios that were written before; conversations go on in them.
        tape: what was recorded before (`Folder.tape`).
        overwrite: let conversations of this run replace `known` ones with the same opening.
        reserved: names that are taken by scenarios elsewhere.
    """

    def __init__(
        self,
        *,
        match: MatchRule = _USUAL,
        known: Iterable[Scenario] = (),
        tape: TapeOf = lambda recorded: None,
        pattern: Pattern = no_pattern,
        overwrite: bool = False,
        reserved: Iterable[str] = (),
    ) -> None:
        self._tape = tape
        self._reserved = frozenset(reserved)
        self._rule = match
        self._matches = Matches(match, pattern, self._first)
        self._known = KnownConversations(self._is_cut, overwrite)
        self._conversations: dict[str, Conversation] = {}
        self._earlier: dict[str, list[Conversation]] = {}
        self._routes: dict[tuple[RouteSpec, RequestKey], list[Conversation]] = {}
        self._unread: list[tuple[Conversation, int, Recorded]] = []
        self._same_request: Counter[RequestKey] = Counter()
        for scenario in known:
            if scenario.server is None:  # an MCP server has no conversation
                self._add_known(scenario)

    def add(self, exchange: Recording, origin: Origin = LIVE) -> tuple[Draft, ...]:
        """The scenario that an exchange belongs to, whole, with the one that ignores more than it
        did, and the competing ones that need a further condition now; or that of a session."""
        try:
            if isinstance(exchange, SocketSession):
                return (self._socket(exchange, origin),)
            return self._drafts(exchange, origin)
        except RecursionError:  # JSON may be as deep as it can be read
            return (Draft(None, report=(Line(exchange.source, "skipped", _TOO_DEEP),)),)

    def _drafts(self, exchange: Captured, origin: Origin) -> tuple[Draft, ...]:
        found = detect_api(exchange)
        if found.protocol is None:
            route = auxiliary_route(exchange.method, exchange.path, exchange.host)
            if route is not None and not self._rule.auxiliary:
                return (_beside(exchange, f"{route.agent} route"),)
            return (self._route(exchange, origin, found.reason),)
        understood = _understood(exchange, found)
        if isinstance(understood, Line):
            return (Draft(None, report=(understood,)),)
        request, answer = understood
        auxiliary = auxiliary_request(request)
        if auxiliary is not None and not self._rule.auxiliary:
            return (_beside(exchange, f"{auxiliary.agent} {auxiliary.kind}"),)
        if request.previous is not None:
            self._read_answers()
        twin = self._twin(request)
        ignoring = self._now_ignoring(twin, request) if twin is not None else ()
        placement = self._placement(request, origin.group, twin, is_new=bool(ignoring))
        # Without conditions it is to play only when it is named.
        key = (
            key_of_request(request, exchange.hidden, placement.ignore)
            if self._rule.conditions
            else None
        )
        recorded = self._number_recording(key, retried=placement.kind == "retry")
        try:
            conversation, base, others, left_out = self._put(
                placement, request, replace(answer.spec, recorded=recorded), exchange, origin
            )
        except ScenarioError as error:
            reason = f"it makes no scenario: {error.problems[0].message}"
            return *ignoring, Draft(None, report=(Line(exchange.source, "skipped", reason),))
        index = len(conversation.turns) - 1
        turn = conversation.turns[index]
        id = answer.decoded.id if answer.decoded is not None else ""
        self._known.keep_answer(conversation, index, id, request)
        conversation.last, conversation.cut = request, bool(exchange.cut)
        conversation.earlier = False
        assert turn.recorded is not None
        line = line_of(exchange, answer, placement, conversation.scenario, left_out)
        world = request.world
        if (
            request.previous is not None
            and world is not None
            and not (world.values or world.is_recorded)
        ):
            note = "its request names no folder, so those in it and its answer stay as they are"
            line = replace(line, description=f"{line.description}; {note}")
        recorded_turns = {turn.recorded.file: answer}
        draft = Draft(conversation.scenario, recorded_turns, (line,), base, origin.stem)
        return *ignoring, draft, *others

    def _route(self, exchange: Captured, origin: Origin, reason: str) -> Draft:
        """The draft of an exchange that calls no model. Requests of one group with an equal digest
        are turns of one scenario, in their order; any other request begins a scenario."""
        try:
            plain = exchange.plain()
            route, key = route_of(plain), key_of_route(plain, self._rule.ignore)
            known = self._routes.get((route, key), ()) if key is not None else ()
            own = next((last for last in reversed(known) if last.group == origin.group), None)
            base = own.scenario if own is not None else None
            scenario = base or with_ignored(
                begun_route(plain, route, origin, self._free_name), self._rule.ignore
            )
            recorded = self._number_recording(key)
            turn = route_turn(scenario, plain, recorded)
        except (MockLLMError, ValueError) as error:
            line = Line(exchange.source, "skipped", f"{reason}; {error}")
            return Draft(None, report=(line,))
        scenario = replace(scenario, turns=(*scenario.turns, turn.spec))
        if own is not None:
            own.scenario = scenario
        else:
            own = Conversation(scenario, len(self._conversations), None, group=origin.group)
            self._keep(own)
            if key is not None:
                self._routes.setdefault((route, key), []).append(own)
        line = route_line(plain, scenario, recorded.order)
        assert turn.spec.recorded is not None
        return Draft(scenario, {turn.spec.recorded.file: turn}, (line,), base, origin.stem)

    def _socket(self, session: SocketSession, origin: Origin) -> Draft:
        """The draft of a session, which is a scenario of its own."""
        try:
            scenario, turn = socket_scenario(session, origin, self._free_name)
        except MockLLMError as error:
            return Draft(None, report=(Line(session.source, "skipped", str(error)),))
        scenario = with_ignored(scenario, self._rule.ignore)
        self._keep(Conversation(scenario, len(self._conversations), None, group=origin.group))
        assert turn.spec.recorded is not None
        line = socket_line(session, scenario)
        return Draft(scenario, {turn.spec.recorded.file: turn}, (line,), stem=origin.stem)

    def adopt_changes(self, draft: Draft, as_written: Draft) -> None:
        """Takes over what a folder changed in a draft: the name, the match. A conversation that it
        could not write goes on from what is there."""
        if draft.scenario is None:
            return
        if as_written.scenario is None:
            conversation = self._conversations[draft.scenario.name]
            if draft.base is None:
                conversation.group = _UNWRITTEN
                self._matches.drop(conversation)
            else:
                self._change(conversation, draft.base)
            return
        conversation = self._conversations.pop(draft.scenario.name)
        self._change(conversation, as_written.scenario)
        self._conversations[as_written.scenario.name] = conversation

    def adopt(self, name: str, group: str) -> None:
        """Lets a scenario that was known before belong to a group: its file is read again."""
        conversation = self._conversations.get(name)
        if conversation is not None and not conversation.group:
            conversation.group = group

    # Known scenarios

    def _add_known(self, scenario: Scenario) -> None:
        user = scenario.match.user if scenario.match is not None else None
        known = Conversation(scenario, len(self._conversations), user, earlier=True)
        first = self._first(known) if user is None and scenario.route is None else None
        history = next(openings(first.messages), None) if first is not None else None
        if history is not None:
            known.opening = self._matches.condition(history.opening, _ignored_by(scenario))
        self._keep(known)
        if known.opening is not None and known.opening.op == "equals":
            opening = normal_text(GENERATED, known.opening.value)
            self._earlier.setdefault(opening, []).append(known)
        for index, turn in enumerate(scenario.turns):
            if turn.recorded is None:
                continue
            key = _key_of(turn.recorded)
            if turn.recorded.request:
                self._same_request[key] += 1
            if scenario.route is None:
                self._unread.append((known, index, turn.recorded))
            elif turn.recorded.request:
                self._routes.setdefault((scenario.route, key), []).append(known)

    def _keep(self, conversation: Conversation) -> None:
        self._conversations[conversation.scenario.name] = conversation
        if conversation.scenario.route is None:
            self._known.keep(conversation)
            self._matches.keep(conversation)

    def _change(self, conversation: Conversation, scenario: Scenario) -> None:
        if scenario.route is not None:
            conversation.scenario = scenario
            return
        self._matches.drop(conversation)
        conversation.scenario = scenario
        self._matches.keep(conversation)

    def _first(self, conversation: Conversation) -> Request | None:
        recorded = conversation.turns[0].recorded
        if conversation.first is None and recorded is not None:
            conversation.first = self._request_of(recorded)
        return conversation.first

    def _request_of(self, recorded: Recorded) -> Request | None:
        tape = self._tape(recorded)
        found = _understood(tape.exchange) if tape is not None else None
        return found[0] if isinstance(found, tuple) else None

    def _is_cut(self, conversation: Conversation) -> bool:
        if conversation.cut is None:
            recorded = conversation.turns[-1].recorded
            tape = self._tape(recorded) if recorded is not None else None
            conversation.cut = tape is not None and bool(tape.exchange.cut)
        return conversation.cut

    def _read_answers(self) -> None:
        """Reads the ids of the answers of earlier runs, once a request points at one."""
        unread, self._unread = self._unread, []
        for conversation, index, recorded in unread:
            tape = self._tape(recorded)
            found = _understood(tape.exchange) if tape is not None else None
            if isinstance(found, tuple) and found[1].decoded is not None:
                self._known.keep_answer(conversation, index, found[1].decoded.id)

    # What differs from run to run

    def _twin(self, request: Request) -> Conversation | None:
        """The conversation of an earlier run that began with this request, but for what it ignores
        or, if there is no other such, for values that clients make up anew."""
        history = next(openings(request.messages), None)
        if history is None or history.turns or not self._rule.conditions:
            return None
        generated = []
        for known in self._earlier.get(normal_text(GENERATED, history.opening), ()):
            first = self._first(known) if known.scenario.match is not None else None
            if first is None or not is_same(first, request, GENERATED):
                continue
            if is_same(first, request, _ignored_by(known.scenario)):
                return known
            if differing(first.body, request.body):
                generated.append(known)
        return generated[0] if len(generated) == 1 else None

    def _now_ignoring(self, twin: Conversation, request: Request) -> tuple[Draft, ...]:
        """The draft of an earlier conversation that has to ignore what differs in a request; none
        where it does already."""
        first, opening, base = self._first(twin), twin.opening, twin.scenario
        assert first is not None
        assert opening is not None
        if is_same(first, request, _ignored_by(base)):
            return ()
        scenario = with_ignored(base, differing(first.body, request.body) or ())
        ignore = _ignored_by(scenario)
        turns = tuple(self._with_digest(turn, ignore) for turn in scenario.turns)
        scenario = replace(scenario, turns=turns)
        self._known.drop(twin)
        twin.opening = text_ignoring(opening, ignore)
        self._known.keep(twin)
        self._change(twin, scenario)
        return (Draft(scenario, base=base),)

    def _with_digest(self, turn: TurnSpec, ignore: Ignored) -> TurnSpec:
        """A recorded turn that is found by its request without what is ignored."""
        recorded = turn.recorded
        request = self._request_of(recorded) if recorded is not None and recorded.request else None
        key = key_of_request(request, (), ignore) if request is not None else None
        if key is None or recorded is None:
            return turn
        new = self._number_recording(key)
        found = replace(new, file=recorded.file, path=recorded.path, hidden=recorded.hidden)
        return replace(turn, recorded=replace(found, partial=recorded.partial))

    def _placement(
        self, request: Request, group: str, twin: Conversation | None, *, is_new: bool
    ) -> Placement:
        """The place of a request, and what of it does not count."""
        placement = self._known.find(request, group)
        same = placement.conversation or twin
        ignore = _ignored_by(same.scenario) if same is not None else ()
        if placement.conversation is None:
            of_agent = WORLD if request.agent else ()
            new = (*self._rule.ignore, *of_agent)
            ignore += tuple(part for part in dict.fromkeys(new) if part not in ignore)
        name = twin.scenario.name if twin is not None and is_new else ""
        return replace(placement, ignore=ignore, twin=name)

    # The scenario of an exchange

    def _number_recording(self, key: RequestKey | None, *, retried: bool = False) -> Recorded:
        """The digest that finds a recording by its own request, and its number among those of the
        same."""
        if key is None:
            return Recorded("")
        order = max(0, self._same_request[key] - retried)  # a retry may be another request
        self._same_request[key] = order + 1
        digest, redacted, ignore, hidden = key
        return Recorded("", None, digest, redacted, hidden, ignore, order)

    def _put(
        self,
        placement: Placement,
        request: Request,
        spec: TurnSpec,
        exchange: Captured,
        origin: Origin,
    ) -> tuple[Conversation, Scenario | None, tuple[Draft, ...], tuple[str, ...]]:
        conversation = placement.conversation
        if conversation is None or placement.kind == "branch":
            return self._begin(placement, request, spec, exchange, origin)
        base = conversation.scenario
        kept = base.turns[: 0 if placement.kind == "restart" else placement.position]
        spec = self._answering(placement, spec)
        if placement.kind == "retry":
            spec = tried_before(base.turns[-1], spec)
        any_ids = base.any_ids or placement.renamed_ids
        scenario, left_out = _append_turn(replace(base, turns=kept, any_ids=any_ids), spec)
        first = request if placement.kind == "restart" else self._first(conversation)
        scenario, others = self._with_match(scenario, first, placement.ignore)
        self._change(conversation, scenario)
        conversation.first = first
        return conversation, base, others, left_out

    def _begin(
        self,
        placement: Placement,
        request: Request,
        spec: TurnSpec,
        exchange: Captured,
        origin: Origin,
    ) -> tuple[Conversation, Scenario | None, tuple[Draft, ...], tuple[str, ...]]:
        """A new conversation; one that branches off begins with the turns in common."""
        parent, history = placement.conversation, placement.history
        if parent is not None:
            name, opening, first = _stem(parent.scenario.name), parent.opening, self._first(parent)
            turns = tuple(map(_without_request, parent.turns[: placement.position]))
        else:
            text = history.opening if history is not None else ""
            name, first = slug(text, f"{request.api}-conversation"), request
            opening = self._matches.condition(text, placement.ignore) if text else None
            turns = self._echoes(history, placement.ignore)
        if origin.stem:
            name = slug(origin.stem, name)
        scenario = Scenario(
            name=self._free_name(name),
            turns=turns,
            description=description_of(exchange, origin),
            any_ids=placement.renamed_ids,
        )
        scenario, left_out = _append_turn(scenario, self._answering(placement, spec))
        scenario, others = self._with_match(scenario, first, placement.ignore)
        begun = Conversation(scenario, len(self._conversations), opening, first, group=origin.group)
        self._keep(begun)
        return begun, None, others, left_out

    def _free_name(self, name: str) -> str:
        return free_name(name, self._is_taken)

    def _is_taken(self, name: str) -> bool:
        return name in self._conversations or name in self._reserved

    def _answering(self, placement: Placement, spec: TurnSpec) -> TurnSpec:
        user = placement.history.user if placement.history is not None else None
        if user is None or placement.position == 0 or placement.kind == "restart":
            return spec
        return answering(spec, self._matches.condition(user, placement.ignore))

    def _echoes(self, history: History | None, ignore: Ignored) -> tuple[TurnSpec, ...]:
        """The turns before the first one that was recorded, as the client sends them back."""
        turns: list[TurnSpec] = []
        for turn in history.turns if history is not None else ():
            user = turn.user if turns else None
            condition = self._matches.condition(user, ignore) if user is not None else None
            turns.append(answering(turn_from_history(turn), condition))
        return tuple(turns)

    def _with_match(
        self, scenario: Scenario, first: Request | None, ignore: Ignored
    ) -> tuple[Scenario, tuple[Draft, ...]]:
        if scenario.match is None and first is not None:
            history = next(openings(first.messages), None)
            opening = history.opening if history is not None else None
            scenario = replace(scenario, match=self._matches.opening(first, opening, ignore))
        if scenario.match is not None:
            scenario = with_ignored(scenario)
        scenario, changes = self._matches.distinguish(scenario, first)
        others = []
        for conversation, changed in changes:
            others.append(Draft(changed, base=conversation.scenario))
            self._change(conversation, changed)
        return scenario, tuple(others)


def _understood(
    exchange: Captured, found: Detected | None = None
) -> tuple[Request, DraftedTurn] | Line:
    """The neutral request and the drafted turn, or why the exchange is skipped."""
    found = found or detect_api(exchange)
    try:
        if found.protocol is None:
            raise WireError(found.reason)
        request = request_of(exchange, found)
        return request, draft_turn(exchange, found, request)
    except MockLLMError as error:
        return Line(exchange.source, "skipped", str(error))


def _beside(exchange: Captured, what: str) -> Draft:
    """No scenario of what an agent asks beside the conversation."""
    reason = (
        f"{exchange.source}: {what}, which mockllm answers by itself where no scenario does; "
        "`auxiliary = true` in mockllm.toml records it"
    )
    return Draft(None, report=(Line(exchange.source, "skipped", reason, unwanted=True),))


def _key_of(recorded: Recorded) -> RequestKey:
    return recorded.request, recorded.redacted, recorded.ignore, recorded.hidden


def _ignored_by(scenario: Scenario) -> Ignored:
    return scenario.match.ignore if scenario.match is not None else ()


_TOO_DEEP = "the request or its answer is nested too deeply"

_UNWRITTEN = "\0"
"""The group of conversations that are in no file: no exchange belongs to them."""

_NUMBERED = re.compile(r"-\d+$")


def _stem(name: str) -> str:
    return _NUMBERED.sub("", name) or name


def _without_request(turn: TurnSpec) -> TurnSpec:
    recorded = turn.recorded
    if recorded is None:
        return turn
    return replace(turn, recorded=Recorded(recorded.file, recorded.path, partial=recorded.partial))


def _append_turn(scenario: Scenario, spec: TurnSpec) -> tuple[Scenario, tuple[str, ...]]:
    number = f"{len(scenario.turns) + 1}.{len(spec.attempts)}"
    return with_turn(scenario, spec, f"{scenario.name}.{number}.draft")
