"""Ways in which clients of several APIs read an answer; each package states those of its API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mockllm.wire.protocols.records import Fields, Way, WayPart
from mockllm.wire.protocols.values import count, mapping, objects, string


def first_and_last(part: WayPart, name: str, values: Iterable[object]) -> Iterator[Way]:
    """Clients that keep the first of several values, and those that keep the last.

    Args:
        name: of the value; null and "" are none.
    """
    given = [value for value in values if value not in (None, "")]
    if given:
        yield Way(part, f"the first {name}", given[0], name)
        yield Way(part, f"the last {name}", given[-1], name)


def usage_ways(usages: Iterable[object], names: Sequence[str], total: str = "") -> Iterator[Way]:
    """Clients that take the first or the last usage, that add up all of them (LangChain), and that
    read the total of all tokens.

    Args:
        usages: the objects with usage; others are left out.
        names: the fields with the counts that make up the total.
        total: the field with the total; "" if there is none.
    """
    given = [usage for usage in map(mapping, usages) if usage]
    if not given:
        return
    counts = [tuple(count(usage.get(name)) for name in names) for usage in given]
    yield from first_and_last("usage", "usage", counts)
    added = tuple(map(sum, zip(*counts, strict=True)))
    yield Way("usage", "all usages added up", added, "usage")
    if total and isinstance(given[-1].get(total), int):
        yield Way("total tokens", f"`{total}`", given[-1][total])
        yield Way("total tokens", "the counts added up", sum(counts[-1]))


def choice_ways(chunks: Sequence[Fields], content: str) -> Iterator[Way]:
    """The ways of reading chunks with `choices`: by position or by index, the first or the last
    finish reason, id and usage.

    Args:
        content: the field of a choice with what is new; its text is `content`, or it is the text.
    """
    first = [choice for chunk in chunks for choice in objects(chunk.get("choices"))[:1]]
    zero = [
        choice
        for chunk in chunks
        for choice in objects(chunk.get("choices"))
        if not choice.get("index")
    ]
    for name, choices in (("the first choice of each chunk", first), ("the choice 0", zero)):
        yield Way("text", name, "".join(_text_of(choice.get(content)) for choice in choices))
    reasons = (choice.get("finish_reason") for choice in zero)
    yield from first_and_last("finish", "finish reason", reasons)
    yield from first_and_last("answer id", "id", (chunk.get("id") for chunk in chunks))
    usages = (chunk.get("usage") for chunk in chunks)
    yield from usage_ways(usages, ("prompt_tokens", "completion_tokens"), "total_tokens")


def _text_of(value: object) -> str:
    return string(value.get("content")) if isinstance(value, Mapping) else string(value)
