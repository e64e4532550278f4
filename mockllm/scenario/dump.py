"""A scenario as the YAML that a person would have written; the inverse of `load`.

`loads(dump(scenario)) == (scenario,)` for every scenario that can be loaded. Keys come in the
order of the documentation; values that equal the default are left out.
"""

from __future__ import annotations

from typing import Any

from mockllm.scenario import model as m
from mockllm.scenario.durations import duration, percent
from mockllm.scenario.jsontext import compact, parse
from mockllm.scenario.yamltext import Flow, FlowMap, write


def dump(scenario: m.Scenario) -> str:
    """One YAML document, without `---`; several make a file when joined with `---` lines.

    A variant that changes nothing about its turn is left out, as it cannot be written.
    """
    return write(_scenario(scenario))


def _scenario(scenario: m.Scenario) -> dict[str, Any]:
    return given(
        scenario=scenario.name,
        description=scenario.description or None,
        route=None if scenario.route is None else str(scenario.route),
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
    return given(
        model=match.model,
        user=_condition(match.user),
        system=_condition(match.system),
        tools=flow(match.tools),
        headers=headers or None,
        query={name: _condition(condition) for name, condition in match.query} or None,
        body=match.body,
    ) | ({} if match.stream is None else {"stream": match.stream})


def _condition(condition: m.TextCondition | None) -> Any:
    if condition is None:
        return None
    return condition.value if condition.op == "contains" else {condition.op: condition.value}


def _answer(answer: m.RouteAnswer | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    status = None if answer.status == 200 else answer.status
    body = {answer.kind: answer.value} if answer.kind else {}
    return given(status=status, headers=dict(answer.headers) or None) | body


def _tool_spec(tool: m.ToolSpec) -> dict[str, Any]:
    return given(name=tool.name, description=tool.description or None, parameters=tool.parameters)


def _defaults(defaults: m.Defaults) -> dict[str, Any]:
    return given(
        split=dump_split(defaults.split),
        every=dump_duration(defaults.every),
        ttft=dump_duration(defaults.ttft),
        jitter=_percent(defaults.jitter),
        usage=_usage(defaults.usage),
    )


def _percent(share: float | None) -> str | None:
    return None if share is None else percent(share)


def _usage(usage: m.UsageSpec | None) -> Any:
    if usage is None or not usage.sent:
        return "none" if usage else None
    return given(
        input=usage.input, output=usage.output, reasoning=usage.reasoning, cached=usage.cached
    )


def _turn(turn: m.TurnSpec) -> dict[str, Any]:
    base = _turn_keys(turn)
    when = [{"api": api, **changed} for api, changed in _changes(turn, base) if changed]
    return base | given(
        recorded=_recorded(turn.recorded),
        when=when[0] if len(when) == 1 else when or None,
    )


def _recorded(recorded: m.Recorded | None) -> Any:
    if recorded is None:
        return None
    keys = given(
        file=recorded.file,
        request=recorded.request or None,
        redacted=list(recorded.redacted) or None,
        order=recorded.order or None,
        partial=recorded.partial,
    )
    return keys if len(keys) > 1 else recorded.file


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


def _extra(extra: Any) -> dict[str, Any]:
    """The fields of one protocol, those of a place on one line."""
    return {place: FlowMap(fields) for place, fields in extra.items()}


def _turn_keys(turn: m.TurnSpec) -> dict[str, Any]:
    return given(
        request=_request(turn.request),
        reply=[dump_part(part) for part in turn.reply] or None,
        http=_http(turn.http),
        answer=_answer(turn.answer),
        finish=turn.finish,
        finish_raw=turn.finish_raw,
        usage=_usage(turn.usage),
        timing=_timing(turn.timing),
        attempts=[_attempt(http) for http in turn.attempts] or None,
        wire=_wire(turn.wire),
        extra={name: _extra(fields) for name, fields in turn.extra} or None,
        fault=dump_faults(turn.fault),
        expect=_outcome(turn.expect),
        repeat=turn.repeat,
    )


def _request(request: m.Expect | None) -> Any:
    if request is None:
        return None
    return given(
        results={id: _result(result) for id, result in request.results} or None,
        offers=flow(request.offers),
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


def dump_faults(faults: tuple[m.Fault, ...]) -> Any:
    """Faults as YAML has them."""
    if len(faults) == 1 and not faults[0].parameters():
        return faults[0].name
    return {
        one.name: FlowMap(one.parameters()) if one.parameters() else None for one in faults
    } or None


def _attempt(http: m.Http) -> dict[str, Any]:
    if http.reply is not None:
        return _turn_keys(http.reply)
    status = {} if http.status < 400 else {"http": http.status}
    extra = {name: _extra(fields) for name, fields in http.extra} or None
    return (
        status
        | _http_more(http)
        | given(recorded=_recorded(http.recorded), extra=extra, fault=dump_faults(http.fault))
    )


def _http_more(http: m.Http) -> dict[str, Any]:
    return given(
        headers=dict(http.headers) or None,
        retry_after=dump_duration(http.retry_after),
        error=None if http.error is None else dump_error(http.error),
    )


def _timing(timing: m.Timing | None) -> Any:
    if timing is None:
        return None
    return given(
        ttft=dump_duration(timing.ttft),
        every=dump_duration(timing.every),
        jitter=_percent(timing.jitter),
        at=flow(tuple(dump_duration(at) for at in timing.at)),
    )


def _wire(wire: m.Wire | None) -> Any:
    if wire is None:
        return None
    comments, segments = wire.comments, wire.segments
    return given(
        line_end=wire.line_end,
        bom=wire.bom,
        multiline=wire.multiline,
        comments=comments and given(every=comments.every, text=comments.text or None),
        group=wire.group,
        segments=segments and _segments(segments),
        quirks=flow(wire.quirks),
    )


def _segments(segments: m.Segments | tuple[int, ...]) -> Any:
    if isinstance(segments, tuple):
        return Flow(segments)
    if segments.low == segments.high:
        return segments.low
    return {"random": Flow([segments.low, segments.high])}


def _outcome(outcome: m.ExpectedOutcome | None) -> Any:
    if outcome is None:
        return None
    return given(
        text=outcome.text,
        reasoning=outcome.reasoning,
        refusal=outcome.refusal,
        tool_calls=outcome.tool_calls,
        finish=outcome.finish,
        usage=_usage(outcome.usage),
        opaque=None if outcome.opaque is None else list(outcome.opaque),
        errors=outcome.errors,
    )


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
