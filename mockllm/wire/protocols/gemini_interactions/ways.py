"""The ways in which documented clients read an answer of Interactions.

The AI SDK and ADK add up the deltas and pass over what `step.start` has; others begin with that. Of
the signatures of a thought the last counts that is not empty. The AI SDK drops the deltas of a step
without a start; google-genai hands on every event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.wire.protocols.gemini_interactions.steps import CALL
from mockllm.wire.protocols.records import Fields, NamedEvent, Way
from mockllm.wire.protocols.values import count, mapping, string
from mockllm.wire.protocols.ways import first_and_last

_COUNTS = ("total_input_tokens", "total_output_tokens", "total_thought_tokens")


def ways(events: Sequence[NamedEvent]) -> Iterator[Way]:
    """All ways of reading an answer."""
    values = [event for _, event in events]
    starts = {
        event.get("index"): mapping(event.get("step"))
        for event in values
        if event.get("event_type") == "step.start"
    }
    if not starts:
        return
    deltas = [event for event in values if event.get("event_type") == "step.delta"]
    opened = [event for event in deltas if event.get("index") in starts]
    for way, read in (("all deltas", deltas), ("the deltas of open steps", opened)):
        given = [mapping(event.get("delta")) for event in read]
        yield Way("text", way, _join(given, "text"))
        yield Way("calls", way, tuple(_calls(read, starts)))
    for index, step in starts.items():
        own = [mapping(event.get("delta")) for event in deltas if event.get("index") == index]
        yield from _starts(index, step, own)
    interactions = [mapping(event.get("interaction")) for event in values if "interaction" in event]
    yield from first_and_last("answer id", "id", (one.get("id") for one in interactions))
    ends = [mapping(event.get("interaction")) for event in values if _is_end(event)]
    yield from first_and_last("finish", "`status`", (end.get("status") for end in ends))
    for usage in filter(None, (mapping(end.get("usage")) for end in ends[-1:])):
        yield Way("total tokens", "`total_tokens`", usage.get("total_tokens"))
        yield Way("total tokens", "the counts added up", sum(count(usage.get(n)) for n in _COUNTS))


def _is_end(event: Fields) -> bool:
    return event.get("event_type") == "interaction.completed"


def _join(deltas: Sequence[Fields], kind: str) -> str:
    return "".join(string(delta.get(kind)) for delta in deltas if delta.get("type") == kind)


def _calls(deltas: Sequence[Fields], starts: dict[object, Fields]) -> Iterator[tuple[str, str]]:
    for index, step in starts.items():
        if step.get("type") == CALL:
            own = [mapping(event.get("delta")) for event in deltas if event.get("index") == index]
            text = "".join(string(delta.get("arguments")) for delta in own)
            yield string(step.get("name")), text


def _starts(index: object, step: Fields, deltas: Sequence[Fields]) -> Iterator[Way]:
    """What the start of a step has beside its deltas, which some clients leave out."""
    of = f"step {index}"
    if contents := [mapping(content) for content in step.get("content") or ()]:
        text, begun = _join(deltas, "text"), _join(contents, "text")
        yield Way("text", "the deltas", text, of)
        yield Way("text", "the start of the step and its deltas", begun + text, of)
    if step.get("type") == CALL and step.get("arguments"):
        joined = "".join(string(delta.get("arguments")) for delta in deltas)
        yield Way("calls", "the deltas", bool(joined), of)
        yield Way("calls", "the arguments in the start of the step", True, of)
    signatures = [text for delta in deltas if (text := string(delta.get("signature")))]
    if signatures:
        yield Way("signatures", "the first signature", signatures[0], of)
        yield Way("signatures", "the last signature", signatures[-1], of)
