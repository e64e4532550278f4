"""Several candidates in one answer, joined from answers with one candidate each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.core.events import Frame
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.gemini import fields
from mockllm.wire.protocols.gemini_common import NO_JSON, json_value, wire
from mockllm.wire.protocols.records import Json, NumberedFrame
from mockllm.wire.protocols.values import objects


def join_candidates(
    frames: Sequence[NumberedFrame], turn: Turn, reply: Reply
) -> list[tuple[int, Frame]]:
    """The chunks of several candidates as one stream. Each has the usage of all of them so far, in
    proportion to the chunks that were sent."""
    chunks = list(_chunks(frames, turn, reply))
    return list(_as_array(chunks, turn)) if reply.options.array else chunks


def _as_array(chunks: list[tuple[int, Frame]], turn: Turn) -> Iterator[tuple[int, Frame]]:
    """The chunks as elements of one array, which a stream that is cut leaves open."""
    values = [
        (at, frame.data)
        for at, frame in chunks
        if frame.data is not None and json_value(frame.data) is not NO_JSON
    ]
    is_cut = turn.finish is None and turn.error is None
    for number, (at, text) in enumerate(values, 1):
        before = "[" if number == 1 else fields.ARRAY_SEPARATOR
        after = fields.ARRAY_END if number == len(values) and not is_cut else ""
        yield at, Frame(raw=before + text + after)


def _chunks(
    frames: Sequence[NumberedFrame], turn: Turn, reply: Reply
) -> Iterator[tuple[int, Frame]]:
    usage = turn.usage
    visible = 0 if usage is None else max(0, usage.output - usage.reasoning)
    for count, (at, number, frame) in enumerate(frames, 1):
        chunk = json_value(frame.data or "")
        if not isinstance(chunk, dict) or "candidates" not in chunk:
            yield at, frame
            continue
        candidates, counted = _with_index(chunk.pop("candidates"), number), {}
        if usage is not None:
            so_far = visible * count // len(frames)
            counted = {"usageMetadata": fields.write_usage(usage, so_far, reply)}
        yield at, Frame(wire({"candidates": candidates} | counted | {**chunk, **counted}))


def _with_index(candidates: object, number: int) -> list[Json]:
    return [{**one, "index": number} if number else one for one in objects(candidates)]


def join_bodies(bodies: Sequence[Json]) -> Json:
    """The bodies of several candidates as one, which has the usage of the first."""
    if "candidates" not in bodies[0]:  # the prompt is blocked
        return bodies[0]
    candidates = [
        candidate
        for number, body in enumerate(bodies)
        for candidate in _with_index(body.get("candidates"), number)
    ]
    return {**bodies[0], "candidates": candidates}
