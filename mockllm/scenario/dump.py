"""A scenario as the YAML that a person would have written; the inverse of `load`.

`loads(dump(scenario)) == (scenario,)` for every scenario that can be loaded. Keys come in the
order of the documentation; values that equal the default are left out.
"""

from __future__ import annotations

from typing import Any

from mockllm.scenario import model as m
from mockllm.scenario.durations import duration, percent
from mockllm.scenario.jsontext import compact, parse
from mockllm.scenario.yamltext import Flow, write

__all__ = ["answer", "dump"]

_MAX_BRACKETS = 50
"""Arguments with more brackets are dumped as text: `load` bounds how deeply YAML may nest."""


def dump(scenario: m.Scenario) -> str:
    """One YAML document, without `---`; several make a file when joined with `---` lines.

    A variant that changes nothing about its turn is left out, as it cannot be written.
    """
    return write(_scenario(scenario))


def _given(**values: Any) -> dict[str, Any]:
    """The values but for None, False and empty tuples."""
    return {
        key: value
        for key, value in values.items()
        if value is not None and value is not False and value != ()
    }


def _scenario(scenario: m.Scenario) -> dict[str, Any]:
    return _given(
        scenario=scenario.name,
        description=scenario.description or None,
        apis=Flow(scenario.apis) if scenario.apis else None,
        match=_match(scenario.match),
        tools=[_tool_spec(tool) for tool in scenario.tools] or None,
        seed=scenario.seed,
        defaults=_defaults(scenario.defaults) or None,
        turns=[_turn(turn) for turn in scenario.turns],
        then="restart" if scenario.restart else None,
        ids="any" if scenario.any_ids else None,
    )


def _match(match: m.Match | None) -> Any:
    if match is None or match.anything:
        return "any" if match else None
    headers = {name: _condition(condition) for name, condition in match.headers}
    return _given(
        model=match.model,
        user=_condition(match.user),
        system=_condition(match.system),
        tools=_flow(match.tools),
        headers=headers or None,
        body=match.body,
    )


def _flow(items: tuple[Any, ...]) -> Flow | None:
    return Flow(items) if items else None


def _condition(condition: m.TextCondition | None) -> Any:
    if condition is None:
        return None
    return condition.value if condition.op == "contains" else {condition.op: condition.value}


def _tool_spec(tool: m.ToolSpec) -> dict[str, Any]:
    return _given(name=tool.name, description=tool.description or None, parameters=tool.parameters)


def _defaults(defaults: m.Defaults) -> dict[str, Any]:
    return _given(
        split=_split(defaults.split),
        every=_duration(defaults.every),
        ttft=_duration(defaults.ttft),
        jitter=_percent(defaults.jitter),
        usage=_usage(defaults.usage),
    )


def _split(split: m.Split | None) -> Any:
    match split:
        case m.RandomSplit():
            return {"random": Flow([split.low, split.high])}
        case tuple():
            return list(split)
        case _:
            return split


def _duration(microseconds: int | None) -> Any:
    # A bare 0 needs no quotes as a number, and no unit.
    return duration(microseconds) if microseconds else microseconds


def _percent(share: float | None) -> str | None:
    return None if share is None else percent(share)


def _usage(usage: m.UsageSpec | None) -> Any:
    if usage is None or not usage.sent:
        return "none" if usage else None
    return _given(
        input=usage.input, output=usage.output, reasoning=usage.reasoning, cached=usage.cached
    )


def _turn(turn: m.TurnSpec) -> dict[str, Any]:
    base = _turn_keys(turn)
    when = [{"api": api, **changed} for api, changed in _changes(turn, base) if changed]
    return base | _given(
        recorded=None if turn.recorded is None else turn.recorded.file,
        when=when[0] if len(when) == 1 else when or None,
    )


def _changes(turn: m.TurnSpec, base: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """For each variant the keys whose values differ; None for keys that it removes."""
    out: list[tuple[str, dict[str, Any]]] = []
    for api, variant in turn.variants:
        own = _turn_keys(variant)
        # `reply` of a variant replaces the turn's `http`, and the other way round.
        removed = [key for key in base if key not in own and key not in ("reply", "http")]
        changed = {key: value for key, value in own.items() if base.get(key) != value}
        out.append((api, changed | dict.fromkeys(removed)))
    return out


def answer(turn: m.TurnSpec) -> dict[str, Any]:
    """The keys of a turn that its answer depends on, as JSON values; `when` is not among them."""
    return _given(
        reply=[_part(part) for part in turn.reply] or None,
        http=_http(turn.http),
        finish=turn.finish,
        finish_raw=turn.finish_raw,
        usage=_usage(turn.usage),
        timing=_timing(turn.timing),
        wire=_wire(turn.wire),
    )


def _turn_keys(turn: m.TurnSpec) -> dict[str, Any]:
    answered = answer(turn)
    wire = answered.pop("wire", None)
    return _given(
        request=_request(turn.request),
        **answered,
        attempts=[_attempt(http) for http in turn.attempts] or None,
        wire=wire,
        expect=_outcome(turn.expect),
        repeat=turn.repeat,
    )


def _request(request: m.Expect | None) -> Any:
    if request is None:
        return None
    return _given(
        results={id: _result(result) for id, result in request.results} or None,
        offers=_flow(request.offers),
        tool_choice=request.tool_choice,
        user=_condition(request.user),
        body=request.body,
    ) | ({} if request.schema is None else {"schema": request.schema})


def _result(result: m.ResultCondition) -> Any:
    if result.error or result.text is None:
        return {"error": True}
    if result.text.op == "equals":
        return result.text.value
    return {result.text.op: result.text.value}


def _http(http: m.Http | None) -> Any:
    if http is None:
        return None
    more = _http_more(http)
    return {"status": http.status, **more} if more else http.status


def _attempt(http: m.Http) -> dict[str, Any]:
    return {"http": http.status, **_http_more(http)}


def _http_more(http: m.Http) -> dict[str, Any]:
    return _given(
        headers=dict(http.headers) or None,
        retry_after=_duration(http.retry_after),
        error=None if http.error is None else _error(http.error),
    )


def _error(error: m.ErrorSpec) -> dict[str, Any]:
    return _given(message=error.message, type=error.type, code=error.code)


def _timing(timing: m.Timing | None) -> Any:
    if timing is None:
        return None
    return _given(
        ttft=_duration(timing.ttft),
        every=_duration(timing.every),
        jitter=_percent(timing.jitter),
        at=_flow(tuple(_duration(at) for at in timing.at)),
    )


def _wire(wire: m.Wire | None) -> Any:
    if wire is None:
        return None
    comments, segments = wire.comments, wire.segments
    return _given(
        line_end=wire.line_end,
        bom=wire.bom,
        multiline=wire.multiline,
        comments=comments and _given(every=comments.every, text=comments.text or None),
        group=wire.group,
        segments=segments and _segments(segments),
        quirks=_flow(wire.quirks),
    )


def _segments(segments: m.Segments | tuple[int, ...]) -> Any:
    if isinstance(segments, tuple):
        return Flow(segments)
    if segments.low == segments.high:
        return segments.low
    return {"random": Flow([segments.low, segments.high])}


def _outcome(outcome: m.Outcome | None) -> Any:
    if outcome is None:
        return None
    return _given(
        text=outcome.text,
        reasoning=outcome.reasoning,
        refusal=outcome.refusal,
        tool_calls=outcome.tool_calls,
        finish=outcome.finish,
        usage=_usage(outcome.usage),
        opaque=None if outcome.opaque is None else list(outcome.opaque),
        errors=outcome.errors,
    )


def _part(part: m.AnyPart) -> dict[str, Any]:
    match part:
        case m.TextPart():
            citations = [_citation(citation) for citation in part.citations]
            keys = _given(text=part.text, citations=citations or None, logprobs=part.logprobs)
        case m.ReasoningPart():
            keys = _given(reasoning=part.text, signature=part.signature, summary=part.summary)
        case m.RefusalPart():
            keys = {"refusal": part.text}
        case m.ToolPart():
            keys = _given(
                tool=part.name,
                id=part.id,
                arguments=_arguments(part.arguments),
                signature=part.signature,
                malformed=part.malformed,
            )
        case m.ParallelPart():
            calls = [_part(call) for call in part.calls]
            return _given(parallel=calls, order=_flow(part.order))
        case m.InterleavedPart():
            members = [_part(member) for member in part.parts]
            return {"interleaved": members, "order": _flow(part.order)}
        case m.PausePart():
            return {"pause": _duration(part.duration)}
        case m.FramePart():
            return {"frame": _frame(part), "api": part.api}
        case m.ErrorPart():
            return {"error": _error(part.error)}
        case m.AutoPart():
            return {"auto": True}
    return keys | _given(split=_split(part.split), every=_duration(part.every))


def _citation(citation: m.Citation) -> dict[str, Any]:
    return _given(
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


def _frame(part: m.FramePart) -> dict[str, Any]:
    data = {} if part.data is None else {"data": part.data}
    return data | _given(
        event=part.event, id=part.id, retry=part.retry, comment=part.comment, raw=part.raw
    )
