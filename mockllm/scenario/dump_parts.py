"""The parts of a reply as JSON values for YAML; the inverse of `parts`."""

from __future__ import annotations

from typing import Any

from mockllm.scenario import model as m
from mockllm.scenario.durations import duration
from mockllm.scenario.jsontext import compact, parse
from mockllm.scenario.yamltext import Flow

_MAX_BRACKETS = 50
"""Arguments with more brackets are dumped as text: `load` bounds how deeply YAML may nest."""


def given(**values: Any) -> dict[str, Any]:
    """The values but for None, False and empty tuples."""
    return {
        key: value
        for key, value in values.items()
        if value is not None and value is not False and value != ()
    }


def flow(items: tuple[Any, ...]) -> Flow | None:
    """The items as a list on one line; None for none."""
    return Flow(items) if items else None


def dump_split(split: m.Split | None) -> Any:
    """A split as it is written."""
    match split:
        case m.RandomSplit():
            return {"random": Flow([split.low, split.high])}
        case tuple():
            return list(split)
        case _:
            return split


def dump_duration(microseconds: int | None) -> Any:
    """A duration in microseconds as it is written."""
    # A bare 0 needs no quotes as a number, and no unit.
    return duration(microseconds) if microseconds else microseconds


def dump_error(error: m.ErrorSpec) -> dict[str, Any]:
    """An error as a mapping."""
    return given(message=error.message, type=error.type, code=error.code)


def dump_part(part: m.AnyPart) -> dict[str, Any]:
    """A part as a mapping."""
    match part:
        case m.TextPart():
            citations = [_citation(citation) for citation in part.citations]
            keys = given(
                text=part.text,
                citations=citations or None,
                logprobs=part.logprobs,
                signature=part.signature,
            )
        case m.ReasoningPart():
            keys = given(reasoning=part.text, signature=part.signature, summary=part.summary)
        case m.RefusalPart():
            keys = {"refusal": part.text}
        case m.ToolPart():
            keys = given(
                tool=part.name,
                id=part.id,
                arguments=None if part.custom else _arguments(part.arguments),
                input=(part.arguments or "") if part.custom else None,
                signature=part.signature,
                malformed=part.malformed,
            )
        case m.ServerToolPart():
            keys = given(
                server_tool=part.kind,
                id=part.id,
                name=part.name,
                input=_json_text(part.input),
                output=_json_text(part.output),
            )
        case m.ParallelPart():
            calls = [dump_part(call) for call in part.calls]
            return given(parallel=calls, order=flow(part.order))
        case m.InterleavedPart():
            members = [dump_part(member) for member in part.parts]
            return {"interleaved": members, "order": flow(part.order)}
        case m.PausePart():
            return {"pause": dump_duration(part.duration)}
        case m.FramePart():
            return {"frame": _frame(part), "api": part.api}
        case m.ErrorPart():
            return {"error": dump_error(part.error)}
        case m.AutoPart():
            return {"auto": True}
    return keys | given(split=dump_split(part.split), every=dump_duration(part.every))


def _citation(citation: m.Citation) -> dict[str, Any]:
    return given(
        url=citation.url,
        title=citation.title or None,
        cited_text=citation.cited_text or None,
    )


def _arguments(arguments: str | None) -> Any:
    """A mapping, where `load` makes exactly the same text of it; else the text."""
    if arguments is None or arguments.count("[") + arguments.count("{") > _MAX_BRACKETS:
        return arguments
    try:
        value = parse(arguments)
    except ValueError:
        return arguments
    return value if isinstance(value, dict) and compact(value) == arguments else arguments


def _json_text(text: str | None) -> Any:
    """The JSON value, where `load` makes exactly the same text of it; else `{raw: text}`."""
    if text is None:
        return None
    if isinstance(text, m.TextFile):
        return {"raw": text}
    if text.count("[") + text.count("{") <= _MAX_BRACKETS:
        try:
            value = parse(text)
        except ValueError:
            return {"raw": text}
        # Null and false would count as left out.
        if (
            value is not None
            and value is not False
            and set(value if isinstance(value, dict) else ()) != {"raw"}
        ):
            return value if compact(value) == text else {"raw": text}
    return {"raw": text}


def _frame(part: m.FramePart) -> dict[str, Any]:
    data = {} if part.data is None else {"data": part.data}
    if isinstance(part.data, m.TextFile):
        data = {"data_file": part.data.file}
    return data | given(
        event=part.event, id=part.id, retry=part.retry, comment=part.comment, raw=part.raw
    )
