"""What of a scenario a protocol has no way to say, turn by turn, in words.

Worked out from each protocol's `project`, so that it is what really happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mockllm.core.timeline import normal
from mockllm.core.turn import Opaque, Reasoning, Text, ToolCall, Turn
from mockllm.protocols.base import WireProtocol
from mockllm.replay.resolve import resolve
from mockllm.scenario.model import AutoPart, Scenario

__all__ = ["Loss", "lost"]


@dataclass(frozen=True, slots=True)
class Loss:
    """What one turn (counted from 1) loses over one protocol."""

    scenario: str
    turn: int
    api: str
    what: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.scenario}: turn {self.turn} over {self.api}: {'; '.join(self.what)}"


def lost(scenario: Scenario, protocols: Mapping[str, WireProtocol]) -> Iterator[Loss]:
    """What the turns of a scenario lose over each protocol that it plays over.

    Turns that are HTTP errors, or answer by themselves, have nothing to lose.
    """
    for api, protocol in protocols.items():
        if not scenario.plays_over(api):
            continue
        for position in range(len(scenario.turns)):
            spec = scenario.turns[position].for_api(api)
            if spec.http is not None or AutoPart() in spec.reply:
                continue
            turn = resolve(scenario, position, api, protocol.call_prefix)
            what = tuple(_differences(turn, normal(protocol.project(turn)), api))
            if what:
                yield Loss(scenario.name, position + 1, api, what)


def _differences(said: Turn, heard: Turn, api: str) -> Iterator[str]:
    if said.refusal and heard.text == said.text + said.refusal:
        yield "the refusal is sent as text"
        said = replace(said, parts=(Text((heard.text,)), *said.tool_calls))
    for name in ("text", "reasoning", "refusal"):
        before, after = getattr(said, name), getattr(heard, name)
        if before != after:
            kept = "is not sent" if not after else "is another"
            yield f"the {name} {kept}" if before else f"there is {name} that was not written"
    yield from _call_differences(said, heard)
    if said.finish != heard.finish:
        yield f"finish {said.finish} reads as {heard.finish}"
    if said.usage != heard.usage:
        yield "usage is not sent" if heard.usage is None else "usage is another"
    yield from _detail_differences(said, heard, api)
    if said.whole() == heard.whole() and _cut(said) != _cut(heard):
        yield "fragments are not those written"


def _call_differences(said: Turn, heard: Turn) -> Iterator[str]:
    before, after = said.tool_calls, heard.tool_calls
    if [call.name for call in before] != [call.name for call in after]:
        yield f"of {len(before)} calls {len(after)} are sent"
        return
    if [call.id for call in before] != [call.id for call in after]:
        yield "ids of calls are not sent"
    if [call.arguments for call in before] != [call.arguments for call in after]:
        yield "arguments are rewritten"
    elif [call.fragments for call in before] != [call.fragments for call in after]:
        yield "arguments are sent whole"


def _detail_differences(said: Turn, heard: Turn, api: str) -> Iterator[str]:
    if _of(said, Reasoning, "signature") != _of(heard, Reasoning, "signature"):
        yield "the signature of the reasoning is another"
    if any(_of(said, Reasoning, "summary")) and not any(_of(heard, Reasoning, "summary")):
        yield "reasoning is not marked as a summary"
    if any(_of(said, Text, "citations")) and not any(_of(heard, Text, "citations")):
        yield "citations are not sent"
    if any(_of(said, Text, "logprobs")) and not any(_of(heard, Text, "logprobs")):
        yield "log probabilities are not sent"
    if len(_opaque(said, api)) > len(_opaque(heard, api)):
        yield "frames as they are do not all come back"


def _of(turn: Turn, kind: type, name: str) -> list[object]:
    return [getattr(part, name) for part in turn.parts if isinstance(part, kind)]


def _opaque(turn: Turn, api: str) -> list[Opaque]:
    return [part for part in turn.parts if isinstance(part, Opaque) and part.api == api]


def _cut(turn: Turn) -> tuple[object, ...]:
    own = [part for part in turn.parts if not isinstance(part, Opaque | ToolCall)]
    return tuple(part.fragments for part in own)
