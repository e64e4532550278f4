"""The parts of an answer, as functions: the same words and keys as in scenario files.

Each gives the mapping that a file would have; whether it is right is checked where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "Part",
    "auto",
    "error",
    "frame",
    "interleaved",
    "parallel",
    "pause",
    "reasoning",
    "refusal",
    "text",
    "tool",
]

Part = Mapping[str, Any]
Split = str | int | Mapping[str, Any] | Sequence[str]
"""`"whole"`, `"chars"`, `"words"`, a number of characters, `{"random": [1, 8]}`, or the
fragments themselves."""


def _part(head: dict[str, Any], **keys: Any) -> Part:
    """A mapping with the keys that say something."""
    unsaid = (None, False)
    return head | {
        key: value
        for key, value in keys.items()
        if value != () and not any(value is nothing for nothing in unsaid)
    }


def text(
    text: str,
    *,
    split: Split | None = None,
    every: str | None = None,
    citations: Sequence[Mapping[str, str]] = (),
    logprobs: bool = False,
) -> Part:
    """Visible text.

    Args:
        split: how it is cut into fragments.
        every: the pause between fragments, such as `"20ms"`.
        citations: mappings with `url`, `title` and `cited_text`.
    """
    return _part({"text": text}, split=split, every=every, citations=citations, logprobs=logprobs)


def reasoning(
    text: str,
    *,
    split: Split | None = None,
    every: str | None = None,
    signature: str | None = None,
    summary: bool = False,
) -> Part:
    """Reasoning, or a summary of it; `split` and `every` as in `text`."""
    keys = {"split": split, "every": every, "signature": signature, "summary": summary}
    return _part({"reasoning": text}, **keys)


def refusal(text: str, *, split: Split | None = None, every: str | None = None) -> Part:
    """The model's words for not answering; `split` and `every` as in `text`."""
    return _part({"refusal": text}, split=split, every=every)


def tool(
    name: str,
    arguments: Mapping[str, Any] | str | None = None,
    *,
    id: str | None = None,
    signature: str | None = None,
    malformed: bool = False,
    split: Split | None = None,
    every: str | None = None,
) -> Part:
    """A tool call.

    Args:
        arguments: a mapping, or text that is sent letter for letter; None: a call without.
        id: default: derived.
        signature: the provider's opaque proof of the reasoning behind the call.
        malformed: whether the arguments may be something else than a JSON object.
        split, every: as in `text`, of the arguments.
    """
    keys = {"id": id, "signature": signature, "malformed": malformed, "split": split}
    given = {} if arguments is None else {"arguments": arguments}
    return _part({"tool": name, **given}, **keys, every=every)


def parallel(*calls: Part, order: Sequence[int] = ()) -> Part:
    """Tool calls whose fragments interleave: round robin, or as `order` says, which has the
    index of a call for each fragment."""
    return _part({"parallel": list(calls)}, order=tuple(order))


def interleaved(*parts: Part, order: Sequence[int]) -> Part:
    """Parts whose fragments come between each other's: `order` has the index of a part for each
    fragment, the opening of a call and a frame being one, too."""
    return {"interleaved": list(parts), "order": list(order)}


def pause(duration: str) -> Part:
    """Nothing is sent for so long, such as `"300ms"`."""
    return {"pause": duration}


def frame(
    data: Any = None,
    *,
    api: str,
    event: str | None = None,
    id: str | None = None,
    retry: int | None = None,
    comment: str | None = None,
    raw: str | None = None,
) -> Part:
    """One frame of a protocol as it is: `data` (text, or a JSON value) with its lines, or a
    `comment`, or `raw` text."""
    lines = {"data": data, "event": event, "id": id, "retry": retry}
    keys = {**lines, "comment": comment, "raw": raw}
    return {
        "frame": {key: value for key, value in keys.items() if value is not None},
        "api": api,
    }


def error(message: str | None = None, *, type: str | None = None, code: str | None = None) -> Part:
    """The error inside the stream, which ends it."""
    return {"error": _part({}, message=message, type=type, code=code)}


def auto() -> Part:
    """An answer made from the request."""
    return {"auto": True}
