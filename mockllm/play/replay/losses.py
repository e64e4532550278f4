"""The parts of a scenario that a protocol cannot express, turn by turn, as messages for people.

The losses are the differences between a turn and the protocol's `project` of it, which the laws
hold to what the encoder really sends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mockllm.core.errors import RequestError
from mockllm.core.events import Cite
from mockllm.core.text import quantity
from mockllm.core.timeline import normal
from mockllm.core.turn import Media, Opaque, Reasoning, ServerTool, Text, ToolCall, Turn
from mockllm.play.replay.compilation.resolve import is_raw_sent, resolve
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.values import value_or_text

_STATED = ("service_tier", "fingerprint")
"""The fields of a turn about its answer that are no content (`WireProtocol.reply_fields`)."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of one turn over one protocol."""

    scenario: str
    turn: int
    api: str
    what: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.scenario}: turn {self.turn} over {self.api}: {'; '.join(self.what)}"


def find_losses(scenario: Scenario, protocols: Mapping[str, WireProtocol]) -> Iterator[Loss]:
    """The losses of a scenario's turns over each protocol that it plays over.

    Turns that are `auto` have none, and HTTP errors only when to try again.
    """
    for api, protocol in protocols.items():
        if not scenario.plays_over(api):
            continue
        for position in range(len(scenario.turns)):
            spec = scenario.turns[position].for_api(api)
            if spec.http is not None:
                if spec.http.retry_after is not None and not _tells_when(protocol):
                    yield Loss(scenario.name, position + 1, api, ("retry_after is not sent",))
                continue
            if spec.is_auto:
                continue
            turn = resolve(scenario, position, api)
            if turn.usage is not None and scenario.counts_prefix(spec):
                turn = replace(turn, usage=replace(turn.usage, input=2, cached=1))
            lost = (
                name
                for name in _STATED
                if getattr(spec, name) and name not in protocol.reply_fields
            )
            what = (
                *_differences(turn, normal(protocol.project(turn)), protocol),
                *(f"{name} is not sent" for name in lost),
                *(f"extra {place} is not sent" for place in _lost_places(spec, protocol)),
                *(["choices are not sent"] if spec.choices and protocol.choices is None else ()),
            )
            if what:
                yield Loss(scenario.name, position + 1, api, what)


def _tells_when(protocol: WireProtocol) -> bool:
    """Whether the errors of an API say when to try again: the close frames of Live do not."""
    errors = (RequestError("", status=503, retry_after=wait) for wait in (1.0, None))
    stated, unstated = (
        (protocol.error_headers("", error), protocol.error_body(error)) for error in errors
    )
    return stated != unstated


def _lost_places(spec: TurnSpec, protocol: WireProtocol) -> Iterator[str]:
    """The places of an extra where the answers of an API have nothing, though its errors may."""
    for place in spec.extra_for(protocol.name):
        if place != "reasoning" and place not in protocol.normalize.places:
            yield place


def _differences(written: Turn, received: Turn, protocol: WireProtocol) -> Iterator[str]:
    """The differences between the turn that a client receives and the written one."""
    if written.refusal and received.text == written.text + written.refusal:
        yield "the refusal is sent as text"
        written = replace(written, parts=(Text((received.text,)), *written.tool_calls))
    for name in ("text", "reasoning", "refusal"):
        before, after = getattr(written, name), getattr(received, name)
        if before != after:
            difference = "is not sent" if not after else "differs"
            yield f"the {name} {difference}" if before else f"there is {name} that was not written"
    yield from _call_differences(written, received)
    raw = written.finish_raw
    if raw is not None and not is_raw_sent(raw, received, protocol):
        yield f"finish_raw {raw} is not sent"
    if written.finish != received.finish:
        yield f"finish {written.finish} reads as {received.finish}"
    if written.stop_sequence is not None and written.stop_sequence != received.stop_sequence:
        yield "the stop sequence is not sent"
    if written.usage != received.usage:
        yield "usage is not sent" if received.usage is None else "usage differs"
    yield from _detail_differences(written, received, protocol.address.name)
    if written.whole() == received.whole() and _fragments(written) != _fragments(received):
        yield "fragments are cut differently"


def _call_differences(written: Turn, received: Turn) -> Iterator[str]:
    before, after = written.tool_calls, received.tool_calls
    if [call.name for call in before] != [call.name for call in after]:
        yield f"of {len(before)} calls {len(after)} are sent"
        return
    if [call.id for call in before] != [call.id for call in after]:
        yield "ids of calls are not sent"
    if [call.arguments for call in before] != [call.arguments for call in after]:
        yield "arguments are rewritten"
    elif [call.fragments for call in before] != [call.fragments for call in after]:
        yield "arguments are sent whole"


def _detail_differences(written: Turn, received: Turn, api: str) -> Iterator[str]:
    if _values(written, Reasoning, "signature") != _values(received, Reasoning, "signature"):
        yield "the signature of the reasoning differs"
    for kind, name in ((Text, "texts"), (ToolCall, "calls"), (Media, "images and sound")):
        signatures = set(_values(written, kind, "signature")) - {None, ""}
        if signatures - set(_values(received, kind, "signature")):
            yield f"signatures of {name} are not sent"
    if any(_values(written, Reasoning, "summary")) and not any(
        _values(received, Reasoning, "summary")
    ):
        yield "reasoning is not marked as a summary"
    yield from _citation_differences(_citations(written), _citations(received))
    if any(_values(written, Text, "logprobs")) and not any(_values(received, Text, "logprobs")):
        yield "log probabilities are not sent"
    yield from _media_differences(written, received)
    yield from _tool_differences(written, received)
    if len(_opaque(written, api)) > len(_opaque(received, api)):
        yield "not all frames of the scenario are sent"


def _citation_differences(written: list[Cite], received: list[Cite]) -> Iterator[str]:
    if written and not received:
        yield "citations are not sent"
    elif len(received) < len(written) and any(cite.passage for cite in written):
        yield "citations of documents are not sent"
    elif any(cite.passage for cite in written) and not any(cite.passage for cite in received):
        yield "places in cited documents are not sent"


def _citations(turn: Turn) -> list[Cite]:
    return [cite for part in turn.parts if isinstance(part, Text) for cite in part.citations]


def _media_differences(written: Turn, received: Turn) -> Iterator[str]:
    if len(_media(written, "image/")) > len(_media(received, "image/")):
        tools = len(_values(received, ServerTool, "kind")) - len(
            _values(written, ServerTool, "kind")
        )
        yield "images are sent as calls of a tool" if tools > 0 else "images are not sent"
    sounds, heard = _media(written, "audio/"), _media(received, "audio/")
    if sounds and not heard:
        yield "sound is not sent"
    elif any(sound.transcript for sound in sounds) and not any(sound.transcript for sound in heard):
        yield "the transcript of the sound is not sent"


def _tool_differences(written: Turn, received: Turn) -> Iterator[str]:
    """The differences between calls of tools that the service runs. What a scenario leaves out of
    them, services make up."""
    mine = [part for part in written.parts if isinstance(part, ServerTool)]
    theirs = [part for part in received.parts if isinstance(part, ServerTool)]
    if len(theirs) < len(mine):
        yield f"of {quantity(len(mine), 'call')} of hosted tools {len(theirs)} are sent"
        return
    pairs = list(zip(mine, theirs, strict=False))
    if any(one.id and one.id != other.id for one, other in pairs):
        yield "ids of hosted tools are not sent"
    if any(one.name and one.name != other.name for one, other in pairs):
        yield "names of hosted tools are not sent"
    if any(one.input and not _same_json(one.input, other.input) for one, other in pairs):
        yield "the input of hosted tools differs"
    if any(one.output and not _same_json(one.output, other.output) for one, other in pairs):
        yield "the output of hosted tools is not sent, or differs"


def _same_json(one: str, other: str | None) -> bool:
    return other is not None and value_or_text(one) == value_or_text(other)


def _media(turn: Turn, kind: str) -> list[Media]:
    return [
        part for part in turn.parts if isinstance(part, Media) and part.media_type.startswith(kind)
    ]


def _values(turn: Turn, kind: type, name: str) -> list[object]:
    """An attribute of all parts of a kind."""
    return [getattr(part, name) for part in turn.parts if isinstance(part, kind)]


def _opaque(turn: Turn, api: str) -> list[Opaque]:
    return [part for part in turn.parts if isinstance(part, Opaque) and part.api == api]


def _fragments(turn: Turn) -> tuple[object, ...]:
    own = [part for part in turn.parts if not isinstance(part, Opaque | ToolCall)]
    return tuple(part.fragments for part in own)
