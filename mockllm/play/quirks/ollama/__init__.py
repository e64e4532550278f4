"""The quirks of Ollama, group L.

First what they share: objects, their messages and calls. A scenario may send raw frames with any
content; a frame that is not an object counts as an empty one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from mockllm.core.http import TimedBytes
from mockllm.play.quirks.base import (
    Context,
    FramesChange,
    Item,
    Quirk,
    Tolerance,
    Variant,
    each,
    quirks_of,
    spread,
    with_parameters,
)
from mockllm.play.quirks.framing.changes import line_ends
from mockllm.play.quirks.samples import CALL, REASONING, TEXT, TWO_CALLS
from mockllm.play.quirks.streams import (
    ARGUMENTS_AS_TEXT,
    end_position,
    separate_characters,
    time_at,
)
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import objects

quirk = quirks_of("ollama")
"""A quirk of Ollama."""


def message(item: Item) -> Json:
    """The message in an object, or the object where it has none (`/api/generate`)."""
    value = item.data if item.raw is None and isinstance(item.data, dict) else {}
    inner = value.get("message")
    return inner if isinstance(inner, dict) else value


def calls(item: Item) -> list[Json]:
    """The calls in an object. Changes of them change it."""
    return objects(message(item).get("tool_calls"))


def _every_call(items: list[Item]) -> Iterator[Json]:
    return (call for item in items for call in calls(item))


def _every_function(items: list[Item]) -> Iterable[Json]:
    functions = (call.get("function") for call in _every_call(items))
    return (function for function in functions if isinstance(function, dict))


def _last(items: list[Item]) -> int | None:
    """The position of the object that ends the answer; None where there is none, or an error."""
    position = end_position((item.data for item in items), "ollama")
    return None if position is None or "error" in items[position].data else position


def _in_last(change: Callable[[Json], object]) -> FramesChange:
    """A change of the object that ends the answer."""

    def place(items: list[Item]) -> list[Json]:
        position = _last(items)
        return [] if position is None else [items[position].data]

    return each(place, change)


def _without(*names: str) -> Callable[[Json], None]:
    def change(fields: Json) -> None:
        for name in names:
            fields.pop(name, None)

    return change


# Framing


def _blank(stream: list[TimedBytes], _: Context) -> list[TimedBytes]:
    return [TimedBytes(timed.at, timed.data + b"\n") for timed in stream]


def _without_last_line_end(stream: list[TimedBytes], _: Context) -> list[TimedBytes]:
    if not stream or not stream[-1].data.endswith(b"\n"):
        return stream
    return [*stream[:-1], replace(stream[-1], data=stream[-1].data[:-1])]


# Calls


def _with_last(items: list[Item], _: Context) -> list[Item]:
    """Moves the calls into the object that ends the answer."""
    position = _last(items)
    moved = [call for item in items[:position] for call in calls(item)]
    if position is None or not moved:
        return items
    own = message(items[position])
    own["tool_calls"] = [*moved, *calls(items[position])]
    return [item for item in items if item is items[position] or not calls(item)]


def _in_one(items: list[Item], _: Context) -> list[Item]:
    """Joins the calls of objects that follow each other."""
    joined: list[Item] = []
    for item in items:
        if joined and calls(item) and calls(joined[-1]):
            own = message(joined[-1])
            own["tool_calls"] = [*calls(joined[-1]), *calls(item)]
        else:
            joined.append(item)
    return joined


def _as_text(function: Json) -> None:
    function["arguments"] = dumps(function["arguments"])


# Content


def _think_tags(items: list[Item], _: Context) -> list[Item]:
    """Sends thinking as content between tags, as before Ollama 0.9."""
    opened = False
    for item in items:
        own = message(item)
        name = "response" if "response" in own else "content"
        thought, text = own.pop("thinking", None), own.get(name)
        if isinstance(thought, str):
            own[name] = thought if opened else f"<think>\n{thought}"
            opened = True
        elif opened and name in own:
            own[name] = f"\n</think>\n\n{text or ''}"
            opened = False
    return items


def _nulls(item: Item) -> list[Item]:
    own = message(item)
    for name in ("content", "response"):
        if own.get(name) == "":
            own[name] = None
    if own.get("role"):
        own |= {"thinking": own.get("thinking"), "tool_calls": own.get("tool_calls")}
    return [item]


# Ends


def _without_last(items: list[Item], _: Context) -> list[Item]:
    position = _last(items)
    return items if position is None else [*items[:position], *items[position + 1 :]]


def _done_false(end: Json) -> None:
    end["done"] = False
    end.pop("done_reason", None)


def _finish_with_tool_calls(items: list[Item], context: Context) -> list[Item]:
    if not list(_every_call(items)):
        return items
    return _in_last(lambda end: end.update(done_reason="tool_calls"))(items, context)


_COUNTS = ("prompt_eval_count", "eval_count", "prompt_eval_cached_count")


def _without_usual_reason(end: Json) -> None:
    """Leaves out a reason that a client may conclude from the end itself."""
    if end.get("done_reason") == "stop":
        del end["done_reason"]


_FAILED = "llama runner process has terminated: exit status 2"


@with_parameters
def _error_line(items: list[Item], context: Context, error: str, *, at_end: bool) -> list[Item]:
    """Puts an error in place of the end of an answer, or of all of it."""
    position = _last(items)
    if position is None:
        return items
    before = items[:position] if at_end else []
    return [*before, Item(time_at(items, len(before)), {"error": error})]


QUIRKS: tuple[Quirk, ...] = (
    quirk("ollama-blank-lines", TEXT, Variant(bytes=_blank)),
    quirk(
        "ollama-line-ends",
        TEXT,
        Variant("crlf", bytes=line_ends(b"\r\n")),
        Variant("no-last", bytes=_without_last_line_end),
    ),
    quirk(
        "ollama-line-separators",
        TEXT,
        # JSON may hold them as they are.
        Variant(frames=separate_characters("\u2028\u2029\u0085"), as_sent=True),
    ),
    quirk("ollama-calls-in-last", CALL, _with_last),
    quirk("ollama-calls-one-object", TWO_CALLS, _in_one),
    quirk("ollama-call-ids", CALL, Variant(frames=each(_every_call, _without("id")), ids=False)),
    quirk(
        "ollama-same-index",
        TWO_CALLS,
        Variant("zero", each(_every_function, lambda function: function.update(index=0))),
        Variant("none", each(_every_function, _without("index"))),
    ),
    quirk(
        "ollama-args-string",
        CALL,
        Variant(
            frames=each(_every_function, _as_text),
            tolerated=(ARGUMENTS_AS_TEXT,),
        ),
    ),
    quirk("ollama-think-tags", REASONING, Variant(frames=_think_tags, as_sent=True)),
    quirk("ollama-null-fields", CALL, spread(_nulls)),
    quirk(
        "ollama-no-done",
        TEXT,
        Variant("no-last", _without_last, as_sent=True),
        Variant("false", _in_last(_done_false), as_sent=True),
    ),
    quirk("ollama-done-missing", TEXT, _in_last(_without("done"))),
    quirk(
        "ollama-no-reason",
        TEXT,
        Variant(
            frames=_in_last(_without_usual_reason),
            tolerated=(
                Tolerance(
                    "a client may hand on that there is no reason",
                    lambda turn, _: replace(turn, finish=None, finish_raw=None),
                    end=True,
                ),
            ),
        ),
    ),
    quirk("ollama-done-reason", CALL, Variant(frames=_finish_with_tool_calls, as_sent=True)),
    quirk(
        "ollama-counts-missing",
        TEXT,
        Variant("prompt", _in_last(_without("prompt_eval_count")), as_sent=True),
        Variant("all", _in_last(_without(*_COUNTS)), as_sent=True),
    ),
    quirk(
        "ollama-error-line",
        TEXT,
        Variant("later", _error_line(_FAILED, at_end=True), as_sent=True),
        Variant("first", _error_line(_FAILED, at_end=False), as_sent=True),
    ),
)
