"""Answers to what agents ask beside the conversation of their user: titles, summaries, checks."""

from __future__ import annotations

from mockllm.core.request import Request
from mockllm.play.agents.auxiliary import AuxiliaryRequest
from mockllm.play.agents.known_agents import conversation_of
from mockllm.play.matching.conditions import text_holds
from mockllm.play.matching.conversation import Selection
from mockllm.play.matching.index import ScenarioIndex, mint_token
from mockllm.play.matching.select import last_answer, select_for_auxiliary
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.decision import Decision
from mockllm.scenario.model import Scenario, TurnSpec, positive_entries
from mockllm.scenario.part_model import ServerToolPart, TextPart


def select_beside(
    served: ScenarioIndex, call: ApiCall, request: Request, auxiliary: AuxiliaryRequest
) -> Selection | None:
    """The turn of a scenario that names a request beside the conversation; None where none does.

    A scenario names it by a condition on the system prompt that only this request has, by the words
    of the agent and no word of the user, or by the tools that it lacks.
    """

    def names(scenario: Scenario) -> bool:
        """Whether a scenario that answers the request means it."""
        match = scenario.match
        if match is None:
            return False
        if match.negated is not None and match.negated.tools and not request.tools:
            return True
        entries = tuple(positive_entries(match))
        if auxiliary.system:
            return any(entry.system is not None for entry in entries)
        if not auxiliary.user:
            return False
        *before, last = (message.text for message in request.users)
        conditions = [entry.user for entry in entries if entry.user is not None]
        return any(
            text_holds(condition, last) and not any(text_holds(condition, text) for text in before)
            for condition in conditions
        )

    return select_for_auxiliary(served, request, call.headers, names)


def decide(
    served: ScenarioIndex, call: ApiCall, request: Request, auxiliary: AuxiliaryRequest
) -> Decision:
    """The answer that mockllm gives by itself, in the form of the API."""
    token = ""
    if "{summary}" in auxiliary.reply:
        last = last_answer(served, request, call.headers)
        # The text of a message may be all that a request has of the conversation.
        token = mint_token(*last) if last is not None else _latest_token(call)
    text, hosted = auxiliary.text(token), auxiliary.hosted
    turn = TurnSpec(reply=(ServerToolPart(hosted, input=text) if hosted else TextPart(text),))
    name = f"{auxiliary.agent} {auxiliary.kind}"
    scenario = Scenario(name, (turn,))
    selection = Selection(scenario, 0, 0, variation=(text,))
    return Decision(request, selection, turn, lasting=False, path=call.path, auxiliary=name)


def _latest_token(call: ApiCall) -> str:
    conversation = conversation_of(call.headers)
    return (call.session.conversation(f"agent {conversation}") or "") if conversation else ""
