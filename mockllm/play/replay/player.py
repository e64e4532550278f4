"""From the body of a request to its answer: parsing, selection, validation and compilation.

It sends nothing. The server, `mockllm show`, the checking kit and tests answer with a `Player`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from mockllm.core.errors import ExpectationError, NoMatchError, RequestError
from mockllm.core.jsontext import parse_object
from mockllm.core.later import later
from mockllm.core.request import OfferedTool, Request
from mockllm.play.agents.agent_requests import read_request
from mockllm.play.agents.auxiliary import auxiliary_request, find_summary
from mockllm.play.agents.known_agents import agent_of, conversation_of
from mockllm.play.matching.conversation import Selection, turn_at
from mockllm.play.matching.index import ScenarioIndex, mint_token, named_scenario, split_model
from mockllm.play.matching.request_validation import check_continuation, check_expectations
from mockllm.play.matching.select import select
from mockllm.play.replay.call import Answered, ApiCall, refuse
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.decision import (
    Decision,
    RequestCache,
    RequestKey,
    attempt_answer,
    draw,
    for_request,
    with_prefix_counted,
)
from mockllm.play.replay.fault_plan import NO_PLAN, FaultPlan
from mockllm.play.replay.latency.schedule import NO_LATENCY, Draw, LatencyPlan
from mockllm.play.replay.lookups import Lookups
from mockllm.play.replay.request_headers import (
    FAULT_HEADER,
    QUIRK_HEADER,
    requested_faults,
    requested_quirks,
)
from mockllm.play.replay.sessions.exchange import Cause, Played
from mockllm.play.replay.sessions.rounds import count_auxiliary, count_round
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.model import Hears, Match, Scenario, TurnSpec
from mockllm.scenario.part_model import AutoPart, tool_parts
from mockllm.scenario.reading.faults import HANDSHAKE
from mockllm.wire.protocols.base import Operation, WireProtocol

if TYPE_CHECKING:
    from mockllm.play.matching.route_selection import RouteRequest
    from mockllm.play.mcp.operations import McpPlayer
    from mockllm.play.replay.compilation.tape_player import RecordedAnswer, Recordings
    from mockllm.play.replay.route_player import RoutePlayer

FALLBACK = Scenario(
    name="fallback-auto",
    description="Answers anything that no scenario answers.",
    match=Match(anything=True),
    turns=(TurnSpec(reply=(AutoPart(),), repeat=True),),
)
"""The scenario that `--fallback auto` adds where no scenario of the files has `match: any`."""

_MAX_KEPT = 128 * 1024
"""Larger answers, in bytes, are only in the cache of the replayer, which is bounded in bytes."""


@dataclass(slots=True)
class DecisionDraft:
    """The findings about a request so far."""

    request: Request | None = None
    selection: Selection | None = None


def _changes(call: ApiCall, request: Request, recorded: RecordedAnswer | None) -> tuple[str, ...]:
    """The differences of a request from the one that its recording was made from."""
    if recorded is None:
        return ()
    if recorded.of is None:
        return recorded.uncompared
    is_same_path = recorded.why == "exact" and not call.target.segments
    if is_same_path and recorded.of.request_body == call.body:
        return ()  # most are; to detect the recorded API again takes a tenth of the request's time
    from mockllm.play.matching.request_changes import changes_of_call

    return changes_of_call(recorded.of, request, call.target, call.body, recorded.ignore)


def _shown_to_agent(error: RequestError, headers: Mapping[str, str]) -> RequestError:
    """The refusal with the status at which a known agent stops and shows the reason. What a service
    would refuse has the status of the service."""
    agent = agent_of(headers)
    is_own = isinstance(error, NoMatchError | ExpectationError) or error.mistake
    if agent is None or not agent.refused or not is_own:
        return error
    shown = copy(error)
    shown.status = agent.refused
    return shown


def _refusal_entry(decision: DecisionDraft | Decision, api: str) -> Played:
    """The journal entry of a refused request."""
    played, request, selection = Played(api=api), decision.request, decision.selection
    if request is not None:
        played = replace(played, model=request.model, stream=request.stream)
    if selection is not None:
        name, turn, position = selection.scenario.name, selection.turn, selection.position
        played = replace(played, scenario=name, turn=turn, position=position, form=selection.form)
    return played


class Player:
    """Answers requests with scenarios.

    Args:
        scenarios: or the index of another player, whose scenarios answer.
        strict: refuse requests that the real services refuse.
        fallback: answer requests that no scenario answers with a reply made from the request; an
            `AutoPart` says how long it is.
        quirks: of every streamed answer, as in `wire.quirks`; requests may add others.
        named: the name of the scenario that answers every request that names none.
        speed: of the pauses of answers with faults; the faults' own pauses stay.
        faults: which answers have which faults; an answer that has faults of its own keeps these
            alone.
        latency: how long answers take that have no times of their own.
        running: counts the answers that are on their way.
    """

    def __init__(
        self,
        scenarios: Iterable[Scenario] | ScenarioIndex,
        *,
        strict: bool = True,
        fallback: bool | AutoPart = False,
        quirks: Iterable[str] = (),
        named: str | None = None,
        speed: float = 1.0,
        faults: FaultPlan = NO_PLAN,
        latency: LatencyPlan = NO_LATENCY,
        running: Callable[[], int] = int,
    ) -> None:
        self.speed = speed
        self.served = (
            scenarios if isinstance(scenarios, ScenarioIndex) else ScenarioIndex(scenarios)
        )
        if fallback and not self.served.fallbacks:
            added = FALLBACK
            if isinstance(fallback, AutoPart):
                turn = replace(FALLBACK.turns[0], reply=(fallback,))
                added = replace(FALLBACK, turns=(turn,))
            self.served = ScenarioIndex((*self.served.scenarios, added))
        self.has_routes = any(scenario.route is not None for scenario in self.served.scenarios)
        """Whether any scenario answers a route that calls no model."""
        self.has_servers = any(scenario.server is not None for scenario in self.served.scenarios)
        """Whether there are MCP servers."""
        self.strict, self.fallback = strict, bool(fallback)
        self.named = named
        self.no_match: Callable[[ApiCall, NoMatchError], Decision] | None = None
        """Decides about requests that no scenario answers; None: they are refused."""
        self._quirks = tuple(quirks)
        self._faults = faults
        self._latency, self._running = latency, running
        self._replayer = Replayer(latency.latency)
        self.lookups = Lookups(self.served, self._replayer, speed)
        self._cache = RequestCache()
        self._headers = (*self.served.headers, QUIRK_HEADER, FAULT_HEADER, "user-agent")

    def play(self, call: ApiCall) -> Answered:
        """The answer to a request."""
        answered = self.play_without_plan(call)
        return self._with_drawn_faults(call, answered) if self._faults.choices else answered

    def opening_fault(
        self, headers: Mapping[str, str], session: Session, at: float
    ) -> Fault | None:
        """The fault of a request that opens a WebSocket.

        Args:
            at: when it came, in seconds after the start of the server.

        Raises:
            RequestError: its header has what is no fault.
        """
        if FAULT_HEADER in headers:
            faults = requested_faults(headers[FAULT_HEADER])
            return next((fault for fault in faults if fault.name == HANDSHAKE), None)
        return self._faults.draw_opening(session.name, session.requests_before + 1, at)

    def play_without_plan(self, call: ApiCall) -> Answered:
        """The answer to a request that none of the faults of the server's plan strikes."""
        key = (
            call.protocol.name,
            call.body,
            *call.target.key,
            *map(call.headers.get, self._headers),
            "socket" if call.on_socket else None,
        )
        decision = self._cache.decisions.get(key) or DecisionDraft()
        try:
            if isinstance(decision, DecisionDraft):
                decision = self._decide_and_keep(call, key, decision)
            return self._play(call, decision)
        except RequestError as error:
            shown = _shown_to_agent(error, call.headers)
            return refuse(call.protocol, shown, _refusal_entry(decision, call.protocol.name))

    def _with_drawn_faults(self, call: ApiCall, answered: Answered) -> Answered:
        faults = self._faults.draw(call.session.name, call.session.requests_before + 1, call.at)
        if not faults or answered.answer.fault or answered.played.outcome not in _PLAYED:
            return answered
        from mockllm.play.replay.broken_answer import break_answered
        from mockllm.play.replay.filling import played_selection

        scenario = self.served.by_name.get(answered.played.scenario or "")
        selection = None if scenario is None else played_selection(scenario, answered.played)
        way = scenario if selection is None else selection.scenario
        return break_answered(call, answered, faults, way, self.speed)

    def _play(self, call: ApiCall, decision: Decision) -> Answered:
        spec, session = decision.spec, call.session
        if decision.auxiliary:
            answer = attempt_answer(self._replayer, decision, call.protocol, 1)
            conversation = conversation_of(call.headers)
            if conversation:
                count_auxiliary(session, conversation)
            known = Played(
                "auxiliary",
                answer.status,
                api=call.protocol.name,
                model=decision.request.model,
                stream=decision.request.stream,
                auxiliary=decision.auxiliary,
                conversation=conversation,
            )
            return Answered(answer, known)
        # Before anything is counted: `NotDoneError` starts the call again.
        recorded = None if decision.answered is not None else self._recording(decision, call)
        notes: tuple[str, ...] = ()
        if decision.answered is None or spec.attempts:
            notes = _sample_notes(decision, recorded)
        attempt = 1
        if spec.attempts:
            tries = [self._recording(decision, call, attempted) for attempted in spec.attempts]
            selection = decision.selection
            attempt += session.attempt(selection.scenario, selection.position, spec.period)
            if attempt <= len(spec.attempts):
                return self._make(call, decision, attempt, tries[attempt - 1], notes)
        return self._play_turn(call, decision, attempt, recorded, notes)

    def _play_turn(
        self,
        call: ApiCall,
        decision: Decision,
        attempt: int,
        recorded: RecordedAnswer | None,
        notes: tuple[str, ...],
    ) -> Answered:
        session = call.session
        if decision.spec.one_of:
            decision = draw(decision, call.body, attempt, session)
        if decision.counts_prefix:
            decision = with_prefix_counted(decision, call.protocol, session)
        selection = decision.selection
        repeated = False
        if selection.scenario.turns[selection.index].recorded is not None:
            repeated = session.repeats(selection.scenario, selection.turn)
        conversation = conversation_of(call.headers)
        if conversation:
            count_round(session, conversation, selection, decision.spec)
            token = mint_token(selection.scenario, selection.position)
            session.keep_conversation(f"agent {conversation}", token)
            offered = " ".join(tool.name for tool in decision.request.tools)
            if offered:
                session.keep_conversation(f"tools {conversation}", offered)
        session.note_played(selection.scenario.name, selection.turn)
        answered = decision.answered
        if answered is None:
            answered = self._make(call, decision, attempt, recorded, notes)
            if answered.answer.size <= _MAX_KEPT and answered.answer.pace is None:
                decision.answered = answered
        known = answered.played
        if (attempt, repeated, conversation) != (known.attempt, known.repeated, known.conversation):
            known = replace(known, attempt=attempt, repeated=repeated, conversation=conversation)
            answered = replace(answered, played=known)
        id, kept = answered.answer.id, decision.request.conversation
        if id is not None and kept is not None:
            session.keep_conversation(kept, id.partition("_")[2])
        if self.fallback and id is not None and call.protocol.objects:
            kinds = [
                kind.name
                for kind in call.protocol.objects
                if kind.is_answer is not None and kind.is_answer(decision.request.body)
            ]
            for of in kinds if kept is None else [*kinds, kept]:
                from mockllm.play.replay.service_jobs import keep_answer  # few requests need it

                keep_answer(session, of, id)
        return answered

    def _make(
        self,
        call: ApiCall,
        decision: Decision,
        attempt: int,
        recorded: RecordedAnswer | None,
        notes: tuple[str, ...],
    ) -> Answered:
        """The answer of a try: its recording, or one that is made from what is written."""
        spec, request, selection = decision.spec, decision.request, decision.selection
        is_last = attempt > len(spec.attempts)
        why, problems = ("", ()) if recorded is None else (recorded.why, recorded.problems)
        is_reply = recorded is None or recorded.answer is None
        http = (spec if is_last else spec.attempts[attempt - 1]).http if is_reply else None
        is_made_stream = is_reply and http is None and request.stream
        wait = None if http is None else http.retry_after
        answer = attempt_answer(
            self._replayer,
            decision,
            call.protocol,
            min(attempt, len(spec.attempts) + 1),  # a reply that stays has the same bytes
            recorded,
            self.speed,
            partial(self._draw, call.session),
        )
        stored = call.protocol.stored
        is_kept = stored is None or stored.is_stored(request.body)
        is_background = call.protocol.background(request.body) is not None and not request.stream
        is_error = not is_last or spec.http is not None
        played = Played(
            outcome="error" if is_error else "played",
            status=answer.status,
            cause=_cause(decision, answer, is_error=is_error),
            problems=notes or problems,
            api=call.protocol.name,
            model=request.model,
            stream=request.stream,
            scenario=selection.scenario.name,
            turn=selection.turn,
            position=selection.position,
            attempt=attempt,
            form=selection.form,
            quirks=decision.quirks if is_made_stream else (),
            recorded=why,
            changes=_changes(call, request, recorded),
            retry_after=None if wait is None else wait / 1_000_000,
            answer_id=answer.id if is_kept else None,
            begins=is_background and is_kept and why != "exact",
        )
        return Answered(answer, played)

    def _draw(self, session: Session) -> Draw:
        """The source of the times of the next answer of a session."""
        number = session.requests_before + 1
        return Draw(self._latency.seed, session.name, number, self._running())

    def _decide_and_keep(self, call: ApiCall, key: RequestKey, draft: DecisionDraft) -> Decision:
        """A new decision for a request, which is kept for equal ones."""
        try:
            decision = self.select(call, self.strict, draft)
        except NoMatchError as error:
            if self.no_match is None:
                raise
            decision = self.no_match(call, error)
        except RequestError as refusal:
            decision = self._accepted_upstream(refusal, call)
        if decision.lasting:
            self._cache.keep(key, decision)
        return decision

    def _recording(
        self, decision: Decision, call: ApiCall, attempt: TurnSpec | None = None
    ) -> RecordedAnswer | None:
        """The recording of a turn, or of an earlier try; or why it is not played. None for one
        without a recording."""
        selection = decision.unfilled or decision.selection
        if (attempt or selection.scenario.turns[selection.index]).recorded is None:
            return None
        recorded = self.recordings.play(
            selection.scenario,
            selection.index,
            call.protocol,
            stream=decision.request.stream,
            quirks=bool(decision.quirks) and attempt is None,
            attempt=attempt,
        )
        world = decision.request.world if decision.unfilled is not None else None
        return recorded if world is None else recorded.on_machine(world)

    @cached_property
    def recordings(self) -> Recordings:
        """The recorded answers. Their modules are imported with the first one."""
        from mockllm.play.replay.compilation.tape_player import Recordings

        return Recordings()

    @cached_property
    def mcp(self) -> McpPlayer:
        """The player of MCP servers."""
        from mockllm.play.mcp.operations import McpPlayer  # few scenarios have some

        return McpPlayer(self.served.scenarios)

    @cached_property
    def routes(self) -> RoutePlayer:
        """The player of routes that call no model. Its modules are imported with the first such
        request."""
        from mockllm.play.replay.route_player import RoutePlayer

        return RoutePlayer(self.served.scenarios, self.named, self.speed)

    def play_route(self, request: RouteRequest, session: Session) -> Answered | None:
        """The answer to a request that calls no model; None where no scenario has its route."""
        return self.routes.play(request, session) if self.has_routes else None

    def select(self, call: ApiCall, strict: bool, draft: DecisionDraft) -> Decision:
        """The decision for a request: which turn answers it.

        Args:
            draft: gets what is found out on the way, also where the request is refused.

        Raises:
            RequestError: no scenario answers the request, or it is refused.
        """
        protocol = call.protocol
        body = parse_object(call.body)
        parsed = read_request(protocol, body, call.target, call.headers, strict=strict)
        if call.target.query:
            parsed = replace(parsed, query=call.target.query)
        if self.has_servers:
            from mockllm.play.mcp.tool_names import with_server_tools

            parsed = with_server_tools(parsed, self.mcp.names, self.mcp.used)
        draft.request = parsed
        request = self._with_scenario(self._with_previous(parsed, call), call)
        selection = None
        if request.agent:
            request = replace(request, resumes=find_summary(request))
            if request.previous is not None and not request.tools:
                request = self._with_earlier_tools(request, call)
        auxiliary = auxiliary_request(request)
        if auxiliary is not None:
            from mockllm.play.replay.auto import auxiliary_answers  # only agents need it

            selection = auxiliary_answers.select_beside(self.served, call, request, auxiliary)
            if selection is None:
                return auxiliary_answers.decide(self.served, call, request, auxiliary)
        if selection is None:
            selection = self._find_turn(request, call)
        draft.request, draft.selection = request, selection
        lasting = (
            parsed.conversation is None
            and parsed.tools == request.tools
            and parsed.previous == request.previous
            and len(selection.recordings) <= 1
            and not selection.scenario.in_order
        )
        if selection.continued and strict:
            check_continuation(selection, request, protocol)
        if selection.scenario.varies:
            from mockllm.play.matching.branching import take_branch  # few scenarios need it

            selection = take_branch(selection, request)
            draft.selection = selection
        spec = turn_at(selection.scenario, selection.position, protocol.name)
        assert spec is not None
        _check_request(request, selection, spec, call, strict)
        return self._with_headers(request, selection, spec, call, lasting)

    @cached_property
    def speakers(self) -> tuple[tuple[str, TurnSpec], ...]:
        """The turns before which the user says something, with the names of their scenarios."""
        return tuple(
            (scenario.name, turn)
            for scenario in self.served.scenarios
            for turn in scenario.turns
            if turn.hears is not None
        )

    def hear(self, call: Callable[[str], ApiCall]) -> Hears | None:
        """What the user says next: of the first turn that answers the request with its words.

        Args:
            call: the request that follows, from the words.
        """
        for name, turn in self.speakers:
            assert turn.hears is not None
            try:
                found = self.select(call(turn.hears.say), False, DecisionDraft()).selection
            except RequestError:
                continue
            chosen = found.scenario.turns[found.index]
            if found.scenario.name == name and chosen.hears == turn.hears:
                return turn.hears
        return None

    def _with_previous(self, request: Request, call: ApiCall) -> Request:
        """The request with the token of the answer that it continues, if the session knows it."""
        if request.conversation is not None and request.previous is None:
            request = replace(request, previous=call.session.conversation(request.conversation))
        if request.previous is None:
            return request
        previous = self._previous(request.previous, call.protocol, call.session)
        return replace(request, previous=previous)

    def _with_earlier_tools(self, request: Request, call: ApiCall) -> Request:
        """The request of an agent that continues an answer by its id, with the names of the tools
        that the requests before it offered."""
        names = call.session.conversation(f"tools {conversation_of(call.headers)}") or ""
        return replace(request, tools=tuple(OfferedTool(name) for name in names.split()))

    def _with_scenario(self, request: Request, call: ApiCall) -> Request:
        """The request with the scenario that the player or its model field names."""
        if self.named is not None and not named_scenario(self.served, request, call.headers):
            return replace(request, scenario=self.named)
        if "@" in request.model and request.scenario is None:
            plain, name = split_model(self.served, request.model)
            if name is not None:
                return replace(request, model=plain, scenario=name)
        return request

    def _find_turn(self, request: Request, call: ApiCall) -> Selection:
        """The turn that answers: of several recordings of one request, and of turns that answer
        once, the next one."""
        selection = select(self.served, request, call.headers)
        if selection.scenario.in_order:
            return self._next_in_order(selection, call)
        if len(selection.recordings) <= 1:
            return selection
        # They are played in their order, then the last one again.
        unplayed = call.session.next_unplayed(selection.recordings)
        return selection.with_turn(*(unplayed or selection.recordings[-1]))

    def _next_in_order(self, selection: Selection, call: ApiCall) -> Selection:
        """The next turn of a scenario whose turns answer once; the same one where its answer did
        not arrive whole. After the last one, that one where it repeats, or fails on purpose.

        Raises:
            NoMatchError: all were given.
        """
        from mockllm.play.matching.branching import left_in_order, with_next

        scenario = self.served.by_name[selection.scenario.name]
        last = len(scenario.turns) - 1
        broken = call.session.broken_turn(scenario.name, call.body)
        if broken is not None and not scenario.turns[broken].fails:
            return with_next(selection, scenario, broken)
        left = left_in_order(scenario, selection.scenario)
        unplayed = call.session.next_unplayed(left)
        if unplayed is not None:
            return with_next(selection, *unplayed)
        if scenario.turns[last].repeat or scenario.turns[last].fails:
            return with_next(selection, scenario, last)
        given = f"The only turn of scenario {scenario.name!r} was given"
        if last:
            given = f"All {last + 1} turns of scenario {scenario.name!r} were given, each once"
        raise NoMatchError(
            f"{given}. Add one for this request, or `repeat: true` to the last one.",
            status=404,
            code="no_turn",
        )

    def _with_headers(
        self, request: Request, selection: Selection, spec: TurnSpec, call: ApiCall, lasting: bool
    ) -> Decision:
        """The decision for a turn, with what the server and the headers of the request add."""
        quirks, headers = self._quirks, call.headers
        if QUIRK_HEADER in headers:
            quirks += requested_quirks(headers[QUIRK_HEADER])
        faults = requested_faults(headers[FAULT_HEADER]) if FAULT_HEADER in headers else ()
        if call.on_socket:  # its messages have the headers of the request that opened it
            faults = tuple(fault for fault in faults if fault.name != HANDSHAKE)
        if faults:
            spec = replace(spec, fault=spec.fault + faults)
        if spec.fault:  # a redirect names the path of the request, which is no part of the key
            lasting = lasting and all(fault.name != "redirect" for fault in spec.fault)
        decision = Decision(
            request, selection, spec, quirks, lasting, call.path, faults, call.on_socket
        )
        return decision if spec.one_of else for_request(decision)

    def _accepted_upstream(self, refusal: RequestError, call: ApiCall) -> Decision:
        """The decision for a request that the API refuses but a recorded service accepted.

        Its turn must be recorded, and the recorded request must be refused for the same reason.

        Raises:
            RequestError: the refusal, where that is not so.
        """
        if not self.strict:
            raise refusal
        try:
            decision = self.select(call, False, DecisionDraft())
        except RequestError:
            raise refusal from None
        recorded = decision.selection.scenario.turns[decision.selection.index].recorded
        if recorded is None:
            raise refusal
        from mockllm.play.replay.compilation.tape_player import accepted_request, same_refusal

        read = partial(accepted_request, recorded, call.protocol)
        accepted = later(("request", recorded, call.protocol.name), read)
        if accepted is None:
            raise refusal
        recorded_call = call._replace(
            target=accepted.target,
            body=accepted.body,
            session=Session(call.session.name),
        )
        try:
            self.select(recorded_call, True, DecisionDraft())
        except RequestError as refused_again:
            if same_refusal(refused_again, refusal):
                return decision
        raise refusal

    def _previous(self, id: str, protocol: WireProtocol, session: Session) -> str:
        """The token of the answer with this id, which has no prefix. Answers that were played as
        recorded have the id of the recorded service, others have a token as their id."""
        prefix = protocol.stored.prefix if protocol.stored is not None else ""
        known = session.answer(f"{prefix}{id}") or session.answer(id)
        if known is None or known.played.recorded != "exact" or known.played.position is None:
            return id
        scenario = self.served.by_name.get(known.scenario or "")
        return id if scenario is None else mint_token(scenario, known.played.position)

    def look_up(self, call: ApiCall, operation: Operation) -> Answered:
        """The answer to an operation besides `generate`."""
        try:
            if operation in call.protocol.jobs:
                from mockllm.play.replay.service_jobs import answer_job

                return answer_job(call, operation, self)
            models = None
            kinds = call.protocol.objects if self.fallback else ()
            if operation in ("model", "models") and any(kind.is_model for kind in kinds):
                from mockllm.play.replay.service_jobs import SessionJobs  # few requests need it

                models = SessionJobs(call, self).models_by_fate()
            return self.lookups.answer(call, operation, models)
        except RequestError as error:
            return refuse(call.protocol, error, Played(api=call.protocol.name))


def _check_request(
    request: Request, selection: Selection, spec: TurnSpec, call: ApiCall, strict: bool
) -> None:
    if not strict and spec.is_auto and not (request.model and request.messages):
        # An automatic answer would hide a mistake that hardly any service accepts.
        call.protocol.parse(request.body, call.target, True)
    if request.server_tools and call.protocol.client.tool_fields:
        from mockllm.play.mcp.tool_names import missing_tool

        missing = missing_tool(request, [part.name for part in tool_parts(spec.reply)])
        if missing:
            raise RequestError(missing, code="tool_not_offered")
    if spec.request is not None:
        check_expectations(selection, spec, request, call.protocol)


def _cause(decision: Decision, answer: HttpAnswer, *, is_error: bool) -> Cause:
    """The cause of an HTTP error or of a fault; "" for an answer without."""
    if is_error or (answer.fault is not None and not decision.faults):
        return "scenario"
    return "" if answer.fault is None else "request"


_PLAYED = ("played", "error")
"""The outcomes of answers that faults of a plan strike."""


def _sample_notes(decision: Decision, recorded: RecordedAnswer | None) -> tuple[str, ...]:
    """Notes about a reply of a turn, or of a try before it, that is made from the request."""
    if recorded is not None and recorded.answer is not None:
        return ()
    spec = decision.spec
    if not any(answer.is_auto for answer in (*spec.forms(), *spec.attempts)):
        return ()
    from mockllm.play.replay.auto.autoreply import sample_notes

    return sample_notes(decision.request)
