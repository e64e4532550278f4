"""A scenario as the YAML that a person would have written; the inverse of `load`.

`loads(dump(scenario)) == (scenario,)` for every scenario that can be loaded. Keys come in the
order of the documentation; values that equal the default are left out.
"""

from __future__ import annotations

from typing import Any

from mockllm.scenario import model as m
from mockllm.scenario.dump_parts import (
    dump_duration,
    dump_error,
    dump_part,
    dump_split,
    flow,
    given,
)
from mockllm.scenario.durations import percent
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
    """The file alone, or with what finds it again."""
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
