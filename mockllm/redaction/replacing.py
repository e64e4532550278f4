"""Puts placeholders where secrets were found: in texts, in timed bytes, and in their length."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mockllm.core.timed_bytes import TimedBytes
from mockllm.redaction.find.finder import Found
from mockllm.redaction.placeholders import Placeholders, proportional_parts, spread_out


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """A part of a text, from `start` to `end`, and what replaces it."""

    start: int
    end: int
    text: str


def edits(found: Iterable[Found], placeholders: Placeholders) -> list[Edit]:
    """The edits that remove what was found, in the order of the text.

    Where two secrets overlap, the later one gets what the earlier one leaves. The placeholder of a
    secret that is cut is cut in proportion.
    """
    covered: list[tuple[int, int]] = []
    result: list[Edit] = []
    for one in found:
        parts = [rest for part in one.parts for rest in _uncovered(part, covered)]
        if not parts:
            continue
        for part in parts:
            covered.insert(bisect_left(covered, part), part)
        sizes = [end - start for start, end in parts]
        texts = proportional_parts(_replacement(one, placeholders), sizes)
        result += [Edit(*part, text) for part, text in zip(parts, texts, strict=True)]
    return sorted(result)


def _uncovered(part: tuple[int, int], covered: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    start, end = part
    rest = []
    index = bisect_left(covered, (start, start))
    if index and covered[index - 1][1] > start:
        index -= 1
    while index < len(covered) and covered[index][0] < end:
        if start < covered[index][0]:
            rest.append((start, covered[index][0]))
        start = max(start, covered[index][1])
        index += 1
    return [*rest, (start, end)] if start < end else rest


def _replacement(found: Found, placeholders: Placeholders) -> str:
    if found.inner is None:
        return found.fixed or placeholders.give(found.secret)
    run, inner = found.inner
    return run.encode(edited(run.text, edits(inner, placeholders)))


def edited(text: str, changes: Sequence[Edit]) -> str:
    """A text with edits made, which must be in its order."""
    parts, last = [], 0
    for change in changes:
        parts += [text[last : change.start], change.text]
        last = change.end
    return "".join([*parts, text[last:]])


def recut(
    chunks: Sequence[TimedBytes], text: str, changes: Sequence[Edit], data: bytes
) -> tuple[TimedBytes, ...]:
    """Edited bytes cut where the chunks were cut; none that had bytes becomes empty if there are
    enough.

    Args:
        text: the bytes of the chunks, as the text that the edits are for.
        data: the same with the edits made.
    """
    spans = _in_bytes(text, changes)
    ends, end = [], 0
    for chunk in chunks:
        end += len(chunk.data)
        ends.append(_moved(end, spans))
    spread_out(ends, [bool(chunk.data) for chunk in chunks])
    cuts = zip([0, *ends], ends, chunks, strict=False)
    return tuple(TimedBytes(chunk.at, data[start:end]) for start, end, chunk in cuts)


def _in_bytes(text: str, changes: Sequence[Edit]) -> list[tuple[int, int, int]]:
    spans, last, at = [], 0, 0
    for change in changes:
        start = at + _size(text[last : change.start])
        at = start + _size(text[change.start : change.end])
        last = change.end
        spans.append((start, at, _size(change.text)))
    return spans


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def _moved(end: int, spans: Sequence[tuple[int, int, int]]) -> int:
    """Where an end is in the edited bytes."""
    shift = 0
    for start, stop, size in spans:
        if end <= start:
            break
        if end < stop:
            return start + shift + size * (end - start) // (stop - start)
        shift += size - (stop - start)
    return end + shift


def with_length(
    headers: tuple[tuple[str, str], ...], size: int | None, change: int | None = None
) -> tuple[tuple[str, str], ...]:
    """Headers with the right `content-length`, where they have one.

    Args:
        size: the new length, in bytes.
        change: by how many bytes it changes instead, for a body that was cut. Without either the
            header is left out.
    """
    result = []
    for name, value in headers:
        if name.lower() == "content-length":
            if size is None and (change is None or not value.isdigit()):
                continue
            value = str(size if size is not None else int(value) + (change or 0))
        result.append((name, value))
    return tuple(result)
